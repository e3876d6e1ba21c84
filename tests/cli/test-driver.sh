#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people see of the NVIDIA driver: tables and findings of described machines, with the stand-in for NVML.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH
fakes=${GTOPO_BUILD:-.}/tests/fakes
if [ ! -e "$fakes/.libs/libnvidia-ml.so.1" ]; then
  skip "the driver's part of maps" "the stand-in for NVML is not built: make check TESTS="
  finish
fi
export LD_LIBRARY_PATH=$fakes/.libs:${LD_LIBRARY_PATH:-}

# described NAME OPTION...: the map of a machine in $work/map.json
described() {
  local name=$1 root
  shift
  export GTOPO_FAKE_NVML_MACHINE=$GTOPO_SOURCE/tests/fakes/machines/$name
  root=$(TMPDIR=$work "$fakes/make_machine" "$GTOPO_FAKE_NVML_MACHINE") || return
  run "$bench" map --fsroot "$root" --name n -o "$work/map.json" "$@"
}
# a line of the table: its name and the cells, one space between
row_is() { grep -q "^$1 $2 " <(tr -s '\t ' ' ' < "$work/stdout"); }

described dgx-h100 --driver always
check "a healthy machine exits 0" status_is 0
run "$bench" show --matrix "$work/map.json"
check "any two GPUs of a DGX H100 are NV18" row_is GPU7 'NV18 NV18 NV18 NV18 NV18 NV18 NV18 X'
described hidden-nvswitches --driver always
run "$bench" show --matrix "$work/map.json"
check "so are they in a virtual machine that has no NVSwitch" row_is GPU0 'X NV18 NV18 NV18 NV18 NV18 NV18 NV18'
provider=${GTOPO_SAMPLES:-$GTOPO_SOURCE/../shared/samples}/nccl-xml/azure-ndv5.xml
if [ -e "$provider" ]; then
  described hidden-nvswitches --driver always --overlay "$provider"
  run "$bench" show --matrix=nccl "$work/map.json"
  check "with its provider's tree laid over it they are NVL, and a GPU is near its own NIC" \
    row_is GPU7 'NVL NVL NVL NVL NVL NVL NVL X PXN PXN PXN PXN PXN PXN PXN PIX'
else
  skip "a provider's tree laid over a virtual machine" "there are no samples"
fi
described dgx-1v --driver always
run "$bench" show --matrix "$work/map.json"
check "a DGX-1 is a cube mesh" row_is GPU0 'X NV1 NV1 NV2 NV2 SYS SYS SYS'
described gb200-tray --driver always
run "$bench" show --matrix "$work/map.json"
check "the memory of Blackwell is a NUMA node" grep -qP '^GPU3\t.*\t26$' "$work/stdout"
described dead-nvlink --driver always
check "a dead NVLink exits 1" status_is 1
check "and says which" stderr_has 'fault nvlink-down.*gpu3'
described dead-nvlink
check "a record of another machine is not completed by this one's driver" status_is 0
described dgx-h100 --driver auto
check "which auto says too" bash -c "! grep -q nvml_index '$work/map.json'"
GTOPO_FAKE_NVML_FAIL=nvmlInit_v2:0:18 described dgx-h100 --driver always
check "a driver that does not start exits 1" status_is 1
check "and says what to do" stderr_has 'gpu-driver'
described dgx-h100 --driver sometimes
check "--driver takes three words" status_is 2
check "and names them" stderr_has 'auto, always or never'
finish
