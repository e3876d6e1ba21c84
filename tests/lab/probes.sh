#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gtopo-bench on the rigs: the tree and the classes of a machine with two sockets, RDMA probes in one guest and between
# two beside perftest's, a port that is down. Prints TAP lines and a summary. Exit status 0 all passed, 1 something failed.
set -u
lab=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/lab-probes-XXXXXX")
trap 'rm -rf "$work"' EXIT
build=${GTOPO_BUILD:-$(cd "$lab/../.." && pwd)/build}
passed=0 failed=0

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then
    echo "ok $((passed + failed + 1)) - $name"
    passed=$((passed + 1))
  else
    echo "not ok $((passed + failed + 1)) - $name"
    echo "# failed: $*; status ${status:-}"
    tail -n 60 "$work/stdout" "$work/stderr" | sed 's/^/# /'
    failed=$((failed + 1))
  fi
}

lab() {
  "$lab/run" "$@" > "$work/stdout" 2> "$work/stderr"
  status=$?
}

# steps RIG SECONDS: standard input has lines "NAME COMMAND", run one after the other in one guest. A guest's boot takes
# longer than most of them.
steps() {
  local name command script=
  while read -r name command; do
    script+="( $command"$'\n'") > \$OUT/$name.stdout 2> \$OUT/$name.stderr < /dev/null; echo \$? > \$OUT/$name.status"$'\n'
  done
  rm -rf "$work/out"
  lab "$1" --deadline "$2" --out "$work/out" -- bash -c "$script"
  cp "$work/stdout" "$work/guest.stdout"
  cp "$work/stderr" "$work/guest.stderr"
}

# step NAME: what it gave is what the checks below look at; what the guest gave, if it did not come so far
step() {
  if [ -f "$work/out/$1.status" ]; then
    cp "$work/out/$1.stdout" "$work/stdout"
    cp "$work/out/$1.stderr" "$work/stderr"
    status=$(cat "$work/out/$1.status")
  else
    cp "$work/guest.stdout" "$work/stdout"
    cp "$work/guest.stderr" "$work/stderr"
    status="none of $1"
  fi
}

status_is() { [ "$status" = "$1" ]; }
stdout_has() { grep -qE -e "$1" "$work/stdout"; }
output_lacks() { ! grep -q "$1" "$work/stdout" "$work/stderr"; }
stderr_has() { grep -qE -e "$1" "$work/stderr"; }
shown() { sed 's/^/# /' "$work/stdout"; }
# json EXPRESSION: does it hold for the map m on stdout, with its objects o (name -> shape's and host's values)?
json() {
  /usr/bin/python3 - "$work/stdout" "$1" << 'END'
import json, sys
m = json.load(open(sys.argv[1]))
shape, host = m["shapes"][0], m["hosts"][0]
o = {x["name"]: {**x, **host["objects"].get(x["name"], {})} for x in shape["objects"]}
sys.exit(0 if eval(sys.argv[2]) else 1)
END
}

# ---- a machine with two sockets ----

steps pci-two-sockets 400 << 'END'
map gtopo-bench map -o -
matrix gtopo-bench show --matrix
path gtopo-bench show --path nic0 storage0
run gtopo-bench run -o - --seconds 1
loopback gtopo-bench run --loopback -o - --seconds 1
END
step map
check "map of two sockets: exit status 0" status_is 0
check "two packages, two NUMA nodes" json '{"package0", "package1", "numa0", "numa1"} <= set(o)'
check "one object for each PCIe switch" json 'sum(x["kind"] == "pci-switch" for x in o.values()) == 2'
check "a NIC and a disk on each switch" json \
  'all(sorted(x["kind"] for x in o.values() if x["parent"] == s) == ["nic", "storage"] for s in ("pci-switch0", "pci-switch1"))'
check "each RDMA device is on the NIC of its netdev" json \
  '{(x["device"], x["netdev"]) for x in o.values() if x["kind"] == "port"} == {("rxe0", "eth0"), ("rxe1", "eth1")}'
check "each NIC knows its NUMA node" json 'sorted(x["numa"] for x in o.values() if x["kind"] == "nic") == [0, 1]'
check "ports have GUID, GIDs with types, and state" json \
  'all(x["guid"] and x["state"] == "active" and {g["type"] for g in x["gids"]} == {"RoCE v2"} for x in o.values() if x["kind"] == "port")'

step matrix
shown
check "NICs on different sockets are SYS" stdout_has $'^NIC1\tSYS\t X \t'
step path
check "NIC and disk on one switch are PIX" stdout_has '^class PIX, 2 hops'

step run
check "both ports are measured, alone and to each other" json \
  'len([x for x in m["measurements"] if x["transport"] == "verbs" and x["verified"]]) == 6'

step loopback
check "two NUMA nodes through two ports, one by one and at once: exit status 0" status_is 0
check "each memory through each port and back, in bandwidth and latency" json \
  'sorted((x["from"], "latency_ns" in x) for x in m["measurements"] if "concurrent" not in x) == sorted((f"a/numa{n}@nic{p}:1", l) for n in (0, 1) for p in (0, 1) for l in (False, True)) and all(x["from"] == x["to"] for x in m["measurements"])'
check "both ports at once, each with its own socket's memory" json \
  '[(x["from"], x["concurrent"], x["stopped_by"]) for x in m["measurements"] if "concurrent" in x] == [("a/numa0@nic0:1", 2, "deadline"), ("a/numa1@nic1:1", 2, "deadline")]'
check "all of it verified" json 'all(x["verified"] for x in m["measurements"])'
check "software ports are no fault of the machine" json 'all(f["severity"] == "note" for f in m["findings"])'
check "the report ends with the matrix" stderr_has '^NUMA0 +[0-9.]+ PHB +[0-9.]+ SYS'
check "and with both at once" stderr_has '^all at once +[0-9.]+ PHB +[0-9.]+ PHB +in all [0-9.]+ [kMG]B/s'

# ---- RDMA beside perftest ----

rows=(write:bandwidth:65536 write:latency:2)
lab rdma-one --deadline 240 -- "$lab/compare-perftest" --pairs 7 "${rows[@]}"
shown
check "in one guest, bandwidth and latency agree with perftest's" status_is 0

lab rdma-pair --deadline 300 --on b "$lab/serve-perftest ${rows[*]}" \
  --on a "lab-wait serving && $lab/compare-perftest --peer b --pairs 3 ${rows[*]}; s=\$?; lab-signal done; exit \$s"
shown
check "between two guests both are measured" stdout_has 'pair 3 write:latency:2 gtopo-bench [0-9.]+ perftest [0-9.]+'

# ---- gtopo-bench probe ----

# document EXPRESSION: does it hold for the document d on stdout, with its probes p?
document() {
  /usr/bin/python3 - "$work/stdout" "$1" << 'END'
import json, sys
d = json.load(open(sys.argv[1]))
p = d["probes"]
sys.exit(0 if eval(sys.argv[2]) else 1)
END
}
operations="write read send write-imm fetch-add compare-swap"
unit_tests="test_connection test_endpoint test_transport test_probe"
steps rdma-one 900 << END
clock $lab/clock-check
$(for o in $operations; do echo "$o gtopo-bench probe nic0 --operation $o --json --seconds 0.5"; done)
sweep gtopo-bench probe nic0 --size 8,4K..16K --seconds 0.5
cm gtopo-bench probe nic0 --rdma-cm --seconds 1
gid gtopo-bench probe nic0 --gid 17
$(for t in $unit_tests; do echo "$t $build/tests/unit/$t"; done)
cm-gid sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1; gtopo-bench probe nic0 --rdma-cm --gid 0
no-cm rm /dev/infiniband/rdma_cm; gtopo-bench probe nic0 --rdma-cm
END
step clock
shown
check "the guest's cycle counter tells true time" status_is 0
for operation in $operations; do
  step "$operation"
  check "$operation is measured and verified" document \
    "not d['failures'] and len(p) == 2 and all(x['operation'] == '$operation' and x['verified'] for x in p)"
done
step sweep
shown
check "a sweep over sizes is a table" stdout_has '^ +16 KiB  write +-> half round trip +[0-9.]+  \[.*\] +us '
check "which says the GID and why" stdout_has '^  from +host; RC, MTU 4096, GID 1 ::ffff:10\.9\.0\.1 \(RoCE v2: same subnet\)'
step cm
shown
check "RDMA CM connects a port with itself" stdout_has '^  to +host; RC, RDMA CM, MTU 4096, GID 1 ::ffff:10\.9\.0\.1'
step cm-gid
check "a GID without an address is refused: exit status 2" status_is 2
check "the message says what RDMA CM needs" stderr_has 'GID 0 of rxe0 port 1 has none'
step no-cm
check "no RDMA CM: exit status 3" status_is 3
check "the message says what to load" stderr_has 'modprobe rdma_ucm'
step gid
check "a GID that is not there: exit status 2" status_is 2
for test in $unit_tests; do
  step "$test"
  check "$test with an RDMA device" status_is 0
  check "$test skips nothing there" output_lacks 'SKIPPED'
done

lab rdma-pair --deadline 300 \
  --on b "socat TCP-LISTEN:7000,fork,reuseaddr EXEC:'gtopo-bench agent' & lab-listening 7000 && lab-signal serving; lab-wait done 260" \
  --on a "lab-wait serving
    probe() { gtopo-bench probe nic0:1 b/nic0:1 --launch 'exec socat - TCP:{host}:7000' --seconds 1 \"\$@\"; }
    probe
    for operation in write:4K read:4K send:4K write-imm:4K fetch-add:8 compare-swap:8; do
      probe --rdma-cm -q 3 -t 16 --timeout 10 --operation \${operation%:*} --size \${operation#*:}
    done
    lab-signal done"
shown
check "from this host to another" stdout_has '^a\| verbs bandwidth, a/nic0:1 -> b/nic0:1$'
check "with the GID of each" stdout_has '^a\|   to +host; RC, MTU.*::ffff:10\.9\.0\.2'
for operation in write read send write-imm fetch-add compare-swap; do
  check "RDMA CM connects two hosts for $operation: bandwidth" stdout_has "^a\| .* $operation +(->|<-) +[0-9.]+ .* yes\s*$"
  check "and latency" stdout_has "^a\| .* $operation +(->|<-) [a-z ]*round trip +[0-9.]+ .* yes\s*$"
done
check "and the description says so" stdout_has '^a\|   to +host; RC, RDMA CM, MTU 4096, GID 1 ::ffff:10\.9\.0\.2'

# ---- from post to poll ----

"$lab/../bench/instructions" --path "$build" > "$work/stdout" 2> "$work/stderr"
status=$?
shown
check "no allocation, printing or system call of ours from post to poll" status_is 0

# ---- what goes wrong ----

steps nic-down 200 << 'END'
run gtopo-bench run -o - --seconds 1
loopback gtopo-bench run --loopback -o - --seconds 1
probe gtopo-bench probe nic1
only gtopo-bench run -o no.json --only nic1
END
step run
check "a port that is switched off is told, the rest measured" json \
  '[f["object"] for f in m["findings"] if f["rule"] == "port-off"] == ["a/nic1:1"] and len(m["measurements"]) == 2'
check "which is no fault: exit status 0" status_is 0
step loopback
check "in loopback the other port is measured, nothing at once" json \
  '{x["from"] for x in m["measurements"]} == {"a/numa0@nic0:1"} and not [x for x in m["measurements"] if "concurrent" in x]'
check "in the matrix the port that is off has -" stderr_has '^NUMA0 +[0-9.]+ [A-Z?]+ +- '
step probe
check "a probe of a port that is down: exit status 3" status_is 3
step only
check "a port asked for that is down: exit status 3" status_is 3
check "the message names it and what to do" stderr_has 'nic1 has no link.*'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
