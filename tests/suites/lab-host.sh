#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts with one thing wrong each, as guests: the map has exactly the findings that it should
. "$(dirname "$0")/common.sh"
[ -x "$source/tests/lab/run" ] || skip_suite "there is no tests/lab/run"
need jq

# A rig, and the findings of its map, each as RULE:OBJECT in the order of the map; none when nothing is wrong.
rigs() {
  cat << 'END'
pci-two-sockets
link-narrow      pcie-link-degraded:nic0
acs-redirect     pcie-acs-redirect:a locality-hidden:a
nic-missing      nic-missing:package1
nic-wrong-socket nic-wrong-socket:nic1
bond-member-down bond-member-down:nic1:1
END
}

discover() { # RIG DIRECTORY: map.json of the rig's first guest in the directory
  "$source/tests/lab/run" "$1" --deadline 200 --out "$2" -- bash -c 'gtopo-bench map -o "$OUT/map.json"'
}

# A guest that did not come up or stood still says nothing of the map. Emulated kernels do, rarely: once more.
discover_again() {
  local status
  discover "$@"
  status=$?
  case $status in 124 | 125) discover "$@" ;; *) return $status ;; esac
}

finds() { # RIG FINDING...
  local rig=$1 out found
  shift
  out=$(mktemp -d)
  discover_again "$rig" "$out"
  found=$(jq -r '.findings[] | "\(.rule):\(.object | sub("^[^/]*/"; ""))  \(.text)"' "$out/map.json")
  rm -rf "$out"
  printf 'expected: %s\nfound:\n%s\n' "$*" "$found"
  [ "$(cut -d' ' -f1 <<< "$found" | xargs)" = "$*" ]
}

plain_tree
export GTOPO_BUILD=$tree
while read -r rig findings; do
  # shellcheck disable=SC2086 # words are findings
  check "on $rig: ${findings:-nothing}" finds "$rig" $findings
done < <(rigs)
finish
