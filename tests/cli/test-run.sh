#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gtopo-bench run and map: measuring this host, being interrupted, losing agents, refusing nonsense.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH
map=$work/map.json
unset XDG_RUNTIME_DIR

# jq's word on the map that was written
map_says() { jq -e "$1" "$map" > /dev/null; }
no_temporaries() { [ -z "$(find "$work" -name '*.tmp')" ]; }
no_agents() { ! pgrep -f "gtopo-bench agent" > /dev/null; }

if "$bench" run -o "$map" --transport verbs --seconds 0.2 > /dev/null 2>&1 || [ -d /sys/class/infiniband ]; then
  skip "a host without RDMA says so" "this host has RDMA devices"
else
  rm -f "$map"
  run "$bench" run -o "$map" --transport verbs
  check "without an RDMA port, asking for verbs exits 3" status_is 3
  check "and says what to do instead" stderr_has "no RDMA port.*"
fi

run "$bench" run -o "$map" --transport ofi --seconds 0.3
check "run measures this host" status_is 0
check "each probe has unit, interval, samples and transport" stdout_has '[GM]B/s \[[0-9.]+ \.\. [0-9.]+\] n=[0-9]+, ofi:shm send 64 KiB'
check "latency too" stdout_has 'us \[[0-9.]+ \.\. [0-9.]+\] n=[0-9]+, ofi:tcp send 8 B'
check "progress is for terminals" stderr_is_empty
check "four measurements with verified data" map_says '[.measurements[] | select(.verified and .provenance == "measured")] | length >= 4'
run "$bench" show "$map"
check "the tree shows what was measured on its links" stdout_has 'numa0 .*measured [0-9.]+ GB/s'

run "$bench" run -o - --transport ofi:shm --seconds 0.2
check "-o - leaves standard output to the map" jq -e '.format == "gputopo-map"' "$work/stdout"
check "and tells the results on standard error" stderr_has 'ofi:shm send'
run "$bench" run -o "$map" --only numa0 --transport ofi:shm --seconds 0.2
check "--only measures that object" map_says '.measurements | length == 2'

# ---- being interrupted ----

rm -f "$map"
interrupt_at "ofi:shm send" "$bench" run -o "$map" --transport ofi --seconds 3 --precision 0
check "Ctrl-C stops within a second ($took_ms ms)" [ "$took_ms" -lt 1000 ]
check "it exits with 4" status_is 4
check "it says so" stderr_has "cancelled after"
check "what was measured is in the map" map_says '.measurements | length >= 1'
check "no agent is left" no_agents

# Agents that take their time to end, as one that gives back the memory of a GPU does.
slow() { echo "$bench agent; sleep $1; echo {host} >> $work/ended"; }
interrupt_at "ofi:shm send" "$bench" run -o "$map" --hosts a --launch "$(slow 1.5)" --transport ofi --seconds 3 --precision 0
check "after Ctrl-C agents may end by themselves ($took_ms ms)" [ "$(wc -l < "$work/ended")" = 2 ]
check "at once when they have ended" [ "$took_ms" -lt 4000 ]

interrupt_twice_at "ofi:shm send" "$bench" run -o "$map" --hosts a --launch "$(slow 3)" --transport ofi --seconds 3 --precision 0
check "a second Ctrl-C waits for nothing ($took_ms ms)" [ "$took_ms" -lt 2000 ]
check "and exits as the signal does" status_is 130
sleep 4
check "the agents that it left end by themselves" [ "$(wc -l < "$work/ended")" = 4 ]
check "and none is left" no_agents

run "$bench" run -o "$map" --transport ofi --seconds 6 --precision 0 --deadline 3
check "--deadline ends the run, keeping what was measured" map_says '.measurements | length >= 1'
check "and exits with 4" status_is 4

# ---- losing an agent ----

"$bench" run -o "$map" --transport ofi:shm --seconds 2 --precision 0 > "$work/stdout" 2> "$work/stderr" &
runner=$!
for _ in $(seq 50); do
  victim=$(pgrep -f "gtopo-bench agent" | head -1)
  [ -n "$victim" ] && break
  sleep 0.1
done
sleep 1
kill -KILL "$victim"
wait "$runner"
status=$?
check "an agent that dies costs its probe: exit status 4" status_is 4
check "which is found" map_says '[.findings[] | select(.rule == "probe-failed")] | length == 1'
check "the other probe is measured" map_says '.measurements | length == 1'
check "no agent is left then either" no_agents

"$bench" probe numa0 --metric bandwidth --transport ofi:shm --seconds 20 --precision 0 --timeout 30 > "$work/stdout" 2> "$work/stderr" &
runner=$!
for _ in $(seq 50); do
  mapfile -t agents < <(pgrep -f "gtopo-bench agent")
  [ "${#agents[@]}" = 2 ] && break
  sleep 0.1
done
sleep 1
before=$SECONDS
kill -KILL "${agents[0]}"
wait "$runner"
status=$?
check "how an agent died is told" stderr_has 'the agent of the first end was ended by signal 9 \(Killed\)'
check "the other one is not waited for until its deadline" [ $((SECONDS - before)) -le 5 ]
check "it gives back what it has in shared memory" bash -c '! ls /dev/shm | grep -q "^$1:"' _ "${agents[1]}"
rm -f "/dev/shm/${agents[0]}:"*

# ---- several hosts ----

run "$bench" run -o "$map" --hosts a,b --launch "exec $bench agent" --transport ofi:shm --seconds 0.2
check "two hosts are gathered into one map" map_says '[.hosts[].name] == ["a", "b"]'
run "$bench" run -o "$map" --hosts a,b --launch "[ {host} = a ] && exec $bench agent" --transport ofi:shm --seconds 0.2
check "a host that cannot be reached is found missing" map_says '[.findings[] | select(.rule == "host-missing" and .severity == "fault")] | length == 1'
check "the rest is measured" map_says '.measurements | length == 2'
check "exit status 4" status_is 4
run "$bench" run -o "$map" --hosts 'a;reboot' --launch "exec $bench agent {host}"
check "a host's name is no shell command" stderr_has 'cannot be the name of a host'
check "exit status 2 for it" status_is 2

agent=$(dirname "$0")/fake-agent
run "$bench" run -o "$map" --hosts bad,good --launch "[ {host} = bad ] && exec $agent fail {host}; exec $bench agent" --transport ofi:shm --seconds 0.2
check "a host that is out of memory costs itself only" map_says '[.hosts[].name] == ["good"] and (.measurements | length == 2)'
run "$bench" run -o "$map" --hosts bad,good --launch "[ {host} = bad ] && exec $agent other {host}; exec $bench agent" --transport ofi:shm --seconds 0.2
check "a host that tells of another is found missing" map_says '[.hosts[].name] == ["good"] and ([.findings[] | select(.rule == "host-missing")] | length == 1)'
check "a host named twice exits 2" bash -c "'$bench' run -o '$map' --hosts a,a 2>&1 | grep -q 'named twice'"
before=$SECONDS
run "$bench" run -o "$map" --hosts a,b --deadline 1 --launch "sleep 4321"
check "--deadline holds for silent hosts" [ $((SECONDS - before)) -le 4 ]
check "what hosts were started with is gone" bash -c '! pgrep -f "[s]leep 4321"'

# ---- nonsense ----

refuses() { # STATUS WORDS ARGUMENT...
  local wanted=$1 words=$2
  shift 2
  rm -f "$work/no.json"
  run "$bench" "$@"
  status_is "$wanted" && stderr_has "$words" && stdout_is_empty && [ ! -e "$work/no.json" ] && no_temporaries
}
check "an unknown address exits 2" refuses 2 'has no "gpu9"' run -o "$work/no.json" --only gpu9
check "an unknown transport exits 2" refuses 2 'no transport "carrier-pigeon"' run -o "$work/no.json" --transport carrier-pigeon
check "a number out of range exits 2" refuses 2 'seconds takes seconds, from' run -o "$work/no.json" --seconds -1
check "a number that is none exits 2" refuses 2 'size takes bytes, from' run -o "$work/no.json" --size 64q
check "a folder that is not there exits 2 at once" refuses 2 'cannot be written' run -o "$work/nowhere/map.json"
"$bench" map -o "$work/former.json"
cp "$work/former.json" "$work/kept.json"
run "$bench" run -o "$work/kept.json" --launch false --hosts a,b
check "a run that measures nothing leaves a map that was there" cmp "$work/former.json" "$work/kept.json"
check "and says so" stderr_has 'nothing was measured: .*kept.json" is left as it was'
check "--launch without --hosts exits 2" refuses 2 'needs --hosts' run -o "$work/no.json" --launch x
check "an endless file is refused" refuses 2 'holds zero bytes' show /dev/zero
run "$bench" map --fsroot / -o "$work/root.json"
check "this machine can be read as a record" status_is 0
ln -s loop-b "$work/loop-a" && ln -s loop-a "$work/loop-b"
run "$bench" map -o "$work/loop-a"
check "links that lead nowhere exit 2" status_is 2
run "$bench" map -o "$work/$(printf 'a%.0s' $(seq 250))"
check "a file's name may be as long as names can be" status_is 0
check "an fsroot that is not there exits 2" refuses 2 'nowhere cannot be read' map -o "$work/no.json" --fsroot "$work/nowhere"
check "an fsroot without sys exits 2" refuses 2 'holds no readable folder sys' map -o "$work/no.json" --fsroot "$work"
check "XML that is none exits 2" refuses 2 'is not hwloc.s XML' map -o "$work/no.json" --hwloc-xml "$GTOPO_SOURCE/README.md"
check "a file that is no topology of NCCL's exits 2" refuses 2 'README.md:1: ' map -o "$work/no.json" --nccl-xml "$GTOPO_SOURCE/README.md"
check "a bad host name exits 2" refuses 2 'cannot be the name' map -o "$work/no.json" --name a/b
echo '<topology version="3.0">' > "$work/v3.xml"
check "XML of hwloc 3 says what reads it" refuses 2 'version 3.0.*reads version 2' map -o "$work/no.json" --hwloc-xml "$work/v3.xml"

# ---- the same input, the same bytes ----

"$bench" map -o "$work/one.json" && "$bench" map > "$work/two.json"
# Free memory of a virtual machine can change between the two.
same() { diff <(jq 'del(.hosts[].objects.numa0.memory_B)' "$work/one.json") <(jq 'del(.hosts[].objects.numa0.memory_B)' "$work/two.json"); }
check "the same machine gives the same map" same
mkdir "$work/folder"
run "$bench" map -o "$work/folder"
check "a folder as output exits 2" status_is 2
check "a map on a full disk exits 2" bash -c "'$bench' map > /dev/full 2> /dev/null; [ \$? = 2 ]"
finish
