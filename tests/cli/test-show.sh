#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `gtopo-bench show` of map files, good and bad. The maps are those of the fuzzer's corpus.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH corpus=$GTOPO_SOURCE/tests/fuzz/corpus-map-json

refused() { # FILE WORDS: status 2, nothing on stdout, the words on stderr
  run "$bench" show "$1"
  status_is 2 && stdout_is_empty && stderr_has "$2"
}

shows() { # FILE WORDS ARGUMENT...
  local file=$1 words=$2
  shift 2
  run "$bench" show "$@" "$file"
  status_is 0 && stderr_is_empty && stdout_has "$words"
}

shows_nothing() { run "$bench" show "$1" && status_is 0 && stderr_is_empty; }

cut_anywhere_is_refused() {
  local size cut
  size=$(stat -c %s "$corpus/host.json")
  for cut in 0 1 100 1000 $((size / 2)) $((size - 3)); do
    head -c "$cut" "$corpus/host.json" > "$work/cut.json"
    refused "$work/cut.json" 'cut\.json:[0-9]+:[0-9]+:' || return 1
  done
}

no_control_character_reaches_the_terminal() {
  printf '{"format":"gputopo-map","version":1,"\\u001b[2J":1}' > "$work/escape.json"
  refused "$work/escape.json" 'is not known' && ! grep -q $'\x1b' "$work/stderr"
}

from_standard_input() {
  "$bench" show - < "$corpus/host.json" > "$work/stdout" 2> "$work/stderr"
  status=$?
  status_is 0 && stdout_has gpu1
}

a_path_to_nothing() {
  run "$bench" show --path gpu0 gpu9 "$corpus/host.json"
  status_is 2 && stderr_has gpu9
}

simulated_is_said() { shows "$corpus/full.json" simulated; }

check "a truncated file is refused with its line" refused "$corpus/truncated.json" 'truncated\.json:[0-9]+:[0-9]+:'
check "a file cut anywhere is refused with its line" cut_anywhere_is_refused
check "a newer version is refused, both are named" refused "$corpus/newer.json" 'version 2.*version 1'
check "a missing file is named" refused "$work/none.json" 'none\.json.*No such file'
check "a folder is no map" refused "$work" 'Is a directory'
check "an empty file is refused" refused /dev/null '/dev/null'
check "a duplicate host is refused at its place" refused "$corpus/duplicate-name.json" 'hosts\[1\]'
check "an escape in a file does not reach the terminal" no_control_character_reaches_the_terminal
check "a host is shown" shows "$corpus/host.json" gpu1
check "a map without hosts is shown" shows_nothing "$corpus/empty.json"
check "every host of a cluster is shown" shows "$corpus/cluster.json" "^b( |$)"
check "the matrix has a row a device" shows "$corpus/host.json" $'^GPU1\tSYS\t X \tSYS\tPHB\t' --matrix
nccl=$GTOPO_SOURCE/tests/fuzz/corpus-nccl-xml/two-sockets.xml
# What scripts that read `nvidia-smi topo -m` are used to, to the byte.
is_the_known_table() {
  run "$bench" show --matrix "$nccl"
  status_is 0 && stderr_is_empty && diff - "$work/stdout" << END
	GPU0	GPU1	GPU2	NIC0	NIC1	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	NV2	XGMI	PXB	SYS	16-47	0		N/A
GPU1	NV2	 X 	PHB	SYS	NODE	N/A	N/A		N/A
GPU2	XGMI	PHB	 X 	SYS	NODE	N/A	N/A		N/A
NIC0	PXB	SYS	SYS	 X 	SYS				
NIC1	SYS	NODE	NODE	SYS	 X 				

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
  XGMI = Connection traversing XGMI links (AMD)

NIC Legend:

  NIC0: mlx5_0, mlx5_1
  NIC1: eth0

END
}
check "the matrix is the table of nvidia-smi topo -m" is_the_known_table
check "a cell has what was measured" shows "$corpus/full.json" $'^GPU0\t X \tNV18\tPIX 1\tSYS\t' --matrix
check "the matrix has storage where asked for" shows "$nccl" $'^STORAGE0\tSYS\tPHB\tPHB\tSYS\tNODE\t X \t' --matrix=storage
echo '<system version="1"/>' > "$work/none.xml"
check "a map without devices has no table" shows "$work/none.xml" 'no GPU or NIC in the map' --matrix
check "the nearest NICs of each GPU" shows "$nccl" '^GPU0 +NIC0:1 +PXB +15.8 GB/s +- +16-47 +mlx5_0 +several PCIe switches between; bottleneck: PCI-SWITCH0 to NIC0, pcie x8 at 16 GT/s$' --nearest
check "the nearest NICs of one GPU" shows "$nccl" '^GPU1 +NIC1:1 +NODE ' --nearest=gpu1
of_one_only() { ! stdout_has '^GPU0'; }
check "and of no other" of_one_only
nearest_refused() { run "$bench" show "--nearest=$1" "$nccl" && status_is 2 && stdout_is_empty && stderr_has "$2"; }
check "the nearest NICs of a NIC are refused" nearest_refused nic0 'nic0: name a GPU'
check "the nearest NICs of what is not there are refused" nearest_refused gpu9 gpu9
check "a topology file of NCCL's is shown as it is" shows "$nccl" 'gpu0 .*0000:03:00.0'
exports() { run "$bench" export nccl -o "$work/topo.xml" "$nccl" && status_is 0 && run "$bench" show --rails "$work/topo.xml" && stdout_has '^GPU2 +NIC'; }
check "a topology file for NCCL is written and read again" exports
check "each GPU gets a NIC" shows "$nccl" '^GPU2 +NIC' --rails
check "the matrix in NCCL's classes" shows "$nccl" $'^GPU1\tNVL\t.*PXN' --matrix=nccl
another_matrix() {
  run "$bench" show --matrix=other "$nccl"
  status_is 2 && stderr_has 'matrix=other'
}
check "another matrix is refused" another_matrix
check "a path is shown with its class" shows "$corpus/host.json" PIX --path gpu0 nic0
check "a path to what is not there exits 2" a_path_to_nothing
run "$bench" show --path nic0 "$corpus/host.json"
check "a path without its end is told from a map" stderr_has 'FROM and TO: .*host.json" is a file'
check "a map is read from standard input" from_standard_input
from_a_pipe() { run "$bench" show <(cat "$corpus/host.json") && status_is 0 && stdout_has gpu1; }
check "a map is read from a pipe" from_a_pipe
check "a simulated number is said to be one" simulated_is_said
finish
