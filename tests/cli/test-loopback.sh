#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `gtopo-bench run --loopback` and `show --affinity`, with a host that is made up: two NUMA nodes, a GPU, three ports with a
# link and one without.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH here=$(dirname "$0") map=$work/map.json
unset XDG_RUNTIME_DIR

map_says() { jq -e "$1" "$map" > /dev/null; }
no_agents() { ! pgrep -f "fake-prober" > /dev/null; }
loopback() { # MODE ARGUMENT...
  local mode=$1
  shift
  run "$bench" run --loopback --hosts a -o "$map" --launch "exec $here/fake-prober $mode {host}" "$@"
}

loopback fine
check "a host by itself: exit status 0" status_is 0
check "every memory through every port, and all ports at once" map_says '.measurements | length == 3 * 3 * 2 + 3'
check "from a memory back into it" map_says 'all(.measurements[]; .from == .to and .verified)'
check "those at once say how many there were" map_says \
  '[.measurements[] | select(.concurrent) | [.from, .concurrent]] == [["a/gpu0@nic0:1", 3], ["a/gpu0@nic2:1", 3], ["a/gpu0@nic2:2", 3]]'
check "how the memory of a GPU was reached is in the map" map_says \
  'all(.measurements[]; (.from_way == "dma-buf") == (.from | startswith("a/gpu")))'
check "the matrix has a column for each RDMA port" stdout_has '^bandwidth, GB/s +NIC0:1 +NIC1:1 +NIC2:1 +NIC2:2'
check "a row for each memory, with the class beside each figure" stdout_has '^GPU0 +12\.5 PHB +- PHB +12\.5 PHB +12\.5 PHB *$'
check "what was not measured is -" stdout_has '^NUMA0 +12\.5 SYS +- SYS +12\.5 SYS +12\.5 SYS *$'
check "and a row of all at once, with its sum" stdout_has '^all at once +12\.5 PHB +- +12\.5 PHB +12\.5 PHB +in all 37\.5 GB/s$'
check "which says the memory of each" stdout_has '^ +with +GPU0 +- +GPU0 +GPU0 *$'
check "latency has a matrix too" stdout_has '^latency, us +NIC0:1'
sed -n '/: each memory/,/^The map is/p' "$work/stdout" | sed '/^The map is/d' > "$work/matrix"
check "the matrix ends the report" bash -c "tail -n 2 '$work/stdout' | grep -q '^The map is in'"
run "$bench" show --affinity "$map"
check "show --affinity prints the same matrix" diff <(sed '/^$/d' "$work/matrix") <(sed '/^$/d' "$work/stdout")
run "$bench" show "$map"
check "show says what ran at once" stdout_has '^    one of 3 probes that ran at once$'

loopback share
check "a port that gets less beside the others is found" map_says \
  '[.findings[] | select(.rule == "rails-share") | [.object, .severity]] == [["a/nic0:1", "warning"]]'
check "with both figures" stdout_has 'rails-share on a/nic0:1: a/gpu0@nic0:1 gets 5 GB/s when 3 ports run at once, 40 % of the 12\.5 GB/s'
check "exit status 1 for it" status_is 1
before=$SECONDS
loopback lost
check "a port that cannot start is found" map_says '[.findings[] | select(.rule == "probe-failed" and .object == "a/nic0:1")] | length == 1'
check "the others start without it" map_says '[.measurements[] | select(.concurrent) | .concurrent] == [2, 2]'
check "and wait for nothing" [ $((SECONDS - before)) -le 10 ]
check "exit status 4 for it" status_is 4
check "its cell says -" stdout_has '^all at once +- +- +12\.5 PHB +12\.5 PHB +in all 25\.0 GB/s$'

loopback fine --only gpu0
check "--only takes a GPU" map_says '[.measurements[].from] | unique == ["a/gpu0@nic0:1", "a/gpu0@nic2:1", "a/gpu0@nic2:2"]'
loopback fine --only nic2:2
check "or a port" map_says '(.measurements | length == 6) and all(.measurements[]; .from | endswith("@nic2:2"))'
loopback fine --only nic1
check "a port without a link exits 3" status_is 3
loopback fine --transport ofi
check "a transport without ports exits 2" status_is 2
check "and says why" stderr_has 'a loopback goes through RDMA ports'
run "$bench" show --affinity --matrix "$map"
check "--affinity and --matrix exclude each other" stderr_has 'exclude each other'
run "$bench" show --affinity "$GTOPO_SOURCE/tests/fuzz/corpus-map-json/host.json"
check "a map without RDMA ports says so" stdout_has 'host has no RDMA port in the map'
if [ -d /sys/class/infiniband ]; then
  skip "a host without RDMA says so" "this host has RDMA devices"
else
  run "$bench" run --loopback -o "$map"
  check "a host without RDMA exits 3" status_is 3
  check "and says what to do" stderr_has 'load the RDMA driver, or measure the host without loopback'
fi
check "no agent is left" no_agents
finish
