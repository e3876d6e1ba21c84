#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run against the stand-in for the NVIDIA driver: each check has its row, and those that cannot run say why.
. "$(dirname "$0")/common.sh"
gpu_run=$(dirname "$0")/../gpu/run
fakes=$GTOPO_BUILD/tests/fakes/.libs

if [ ! -e "$fakes/libcuda.so.1" ]; then
  skip "the stand-in is checked as a GPU is" "it is not built"
  finish
fi

# This machine, with the two GPUs of the stand-in.
"$GTOPO_BENCH" map -o "$work/plain.json"
jq '.shapes[0].objects += [{name: "gpu0", kind: "gpu", parent: "machine"}, {name: "gpu1", kind: "gpu", parent: "machine"}]
    | .hosts[0].objects += {gpu0: {pci_address: "0000:1b:00.0"}, gpu1: {pci_address: "0000:3b:00.0"}}' \
  "$work/plain.json" > "$work/map.json"

# The NIC of a guest registers memory that processors can reach, and no dma-buf.
before=$SECONDS
LD_LIBRARY_PATH=$fakes GTOPO_FAKE_CUDA_ACCESS=all run timeout 300 "$gpu_run" --bench "$GTOPO_BENCH" \
  --tests "$GTOPO_BUILD/tests/unit" --pairs 3 --map "$work/map.json"
check "all is well" status_is 0
check "within five minutes" [ $((SECONDS - before)) -lt 300 ]
check "the rows say that this is no hardware" stdout_has '^\| .* 2 × Fake GPU, driver STAND-IN, WHICH IS NO HARDWARE'
check "the unit tests have a row" stdout_has '^\| `test_copy` on the GPU: [0-9]+ tests passed \|'
for copy in 'numa[0-9]+ to gpu0' 'gpu0 to numa[0-9]+' 'gpu0 to gpu1'; do
  check "a copy has one: $copy" stdout_has "^\| copy $copy, 64 MiB: [0-9.]+ GB/s, verified"
  if ! command -v nvbandwidth > /dev/null; then
    check "what is not compared says why" stdout_has "^\| copy $copy, 64 MiB, beside nvbandwidth: not run: no nvbandwidth \|"
  fi
done
if [ -d /sys/class/infiniband ]; then
  check "RDMA into GPU memory has its rows" stdout_has '^\| RDMA into GPU memory, nic[0-9]+:1, 1 MiB: [0-9.]+ GB/s; verified; '
  check "one for each way" stdout_has '^\| RDMA into GPU memory, .* --way dma-buf: (not run: )?'
  check "and one with the flush" stdout_has '^\| RDMA into GPU memory, .* --flush: '
else
  check "RDMA that cannot run says why" stdout_has '^\| RDMA into GPU memory: not run: no RDMA device \|'
fi
check "the map that was given is as it was" bash -c "jq -e '.measurements == []' '$work/map.json' > /dev/null"

run "$gpu_run" --help
check "--help says what it does" stdout_has '^Usage: run'
finish
