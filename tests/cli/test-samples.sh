#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every machine among the samples: a map, both tables, and a topology file for NCCL that gives the same file again.
. "$(dirname "$0")/common.sh"
bench=${GTOPO_BENCH:-$(dirname "$0")/../../build/gtopo-bench}
samples=${GTOPO_SAMPLES:-$(dirname "$0")/../../../shared/samples}
map=$work/map.json again=$work/again.json

if [ ! -d "$samples/hwloc" ]; then
  echo "ok 1 - the machines among the samples # SKIP no samples of machines here"
  echo 1..1
  exit 0
fi

# is_mapped: a finding is no failure
is_mapped() { [ "$status" -le 1 ]; }
fits_nccl() { [ "$(head -c 8 "$work/first.xml")" = "<system " ] && ! grep -q $'\t' "$work/first.xml"; }
has_few_elements() { [ "$(grep -c '<[a-z]' "$work/first.xml")" -le 250 ]; }

# machine NAME OPTION PLACE
machine() {
  run "$bench" map "$2" "$3" -o "$map"
  check "$1: a map" is_mapped
  for table in --matrix --matrix=nccl --rails --nearest; do
    run "$bench" show "$table" "$map"
    check "$1: show $table" status_is 0
  done
  run "$bench" export nccl "$map" -o "$work/first.xml"
  check "$1: a file for NCCL" status_is 0
  check "$1: in the form that NCCL's parser takes" fits_nccl
  check "$1: of no more elements than it takes" has_few_elements
  run "$bench" map --nccl-xml "$work/first.xml" -o "$again"
  check "$1: which is read" is_mapped
  run "$bench" export nccl "$again" -o "$work/second.xml"
  check "$1: and gives the same file" cmp "$work/first.xml" "$work/second.xml"
}

for file in "$samples"/nccl-xml/*.xml; do
  machine "$(basename "$file")" --nccl-xml "$file"
done
for file in "$samples"/hwloc/*.xml; do
  grep -q '<topology version="3' "$file" || machine "$(basename "$file")" --hwloc-xml "$file"
done
for file in "$samples"/hwloc/*.tar.*; do
  mkdir "$work/tree"
  tar -C "$work/tree" -xf "$file"
  machine "$(basename "$file")" --fsroot "$(dirname "$(find "$work/tree" -maxdepth 3 -name sys -type d | head -n 1)")"
  rm -r "$work/tree"
done
for file in "$samples"/hwloc/*.xml; do
  grep -q '<topology version="3' "$file" || continue
  run "$bench" map --hwloc-xml "$file" -o "$map"
  check "$(basename "$file"): exit status 2" status_is 2
  check "it says which hwloc reads it" stderr_has 'version 3.*which gputopo runs with, reads version 2'
done

# A tree over a machine: its own map, and that of another.
dgx2=$samples/hwloc/nvidiaDGX2.xml
run "$bench" map --hwloc-xml "$dgx2" -o "$map"
run "$bench" map --hwloc-xml "$dgx2" --overlay "$map" -o "$again"
check "its own map over a DGX-2" is_mapped
same_matrix() { diff <("$bench" show --matrix "$map") <("$bench" show --matrix "$again"); }
check "gives the same matrix" same_matrix
run "$bench" map --hwloc-xml "$dgx2" --overlay "$samples/nccl-xml/azure-ndv5.xml" -o "$work/none.json"
check "another machine's file over it: exit status 2" status_is 2
check "it says so" stderr_has 'azure-ndv5\.xml'
check "and nothing is written" test ! -e "$work/none.json"
finish
