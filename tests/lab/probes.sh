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

lab pci-two-sockets -- gtopo-bench map -o -
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

lab pci-two-sockets -- gtopo-bench show --matrix
shown
check "NIC and disk on one switch are PIX" stdout_has '^NIC0 +X +SYS +PIX +SYS'
check "NICs on different sockets are SYS" stdout_has '^NIC1 +SYS +X +SYS +PIX'

lab pci-two-sockets --deadline 240 -- gtopo-bench run -o - --seconds 1
check "both ports are measured, alone and to each other" json \
  'len([x for x in m["measurements"] if x["transport"] == "verbs" and x["verified"]]) == 6'

lab pci-two-sockets --deadline 240 -- gtopo-bench run --loopback -o - --seconds 1
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

lab rdma-one -- "$lab/clock-check"
shown
check "the guest's cycle counter tells true time" status_is 0
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
lab rdma-one --deadline 120 --out "$work/out" -- bash -c \
  "for o in $operations; do gtopo-bench probe nic0 --operation \$o --json --seconds 0.5 > \$OUT/\$o.json; done"
for operation in $operations; do
  cp "$work/out/$operation.json" "$work/stdout"
  check "$operation is measured and verified" document \
    "not d['failures'] and len(p) == 2 and all(x['operation'] == '$operation' and x['verified'] for x in p)"
done
lab rdma-one -- gtopo-bench probe nic0 --size 8,4K..16K --seconds 0.5
shown
check "a sweep over sizes is a table" stdout_has '^ +16 KiB  write +-> half round trip +[0-9.]+  \[.*\] +us '
check "which says the GID and why" stdout_has '^  from +host; RC, MTU 4096, GID 1 ::ffff:10\.9\.0\.1 \(RoCE v2: same subnet\)'
lab rdma-one -- gtopo-bench probe nic0 --rdma-cm --seconds 1
shown
check "RDMA CM connects a port with itself" stdout_has '^  to +host; RC, RDMA CM, MTU 4096, GID 1 ::ffff:10\.9\.0\.1'
lab rdma-one -- bash -c 'sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1; gtopo-bench probe nic0 --rdma-cm --gid 0'
check "a GID without an address is refused: exit status 2" status_is 2
check "the message says what RDMA CM needs" stderr_has 'GID 0 of rxe0 port 1 has none'
lab rdma-one -- bash -c 'rm /dev/infiniband/rdma_cm; gtopo-bench probe nic0 --rdma-cm'
check "no RDMA CM: exit status 3" status_is 3
check "the message says what to load" stderr_has 'modprobe rdma_ucm'
lab rdma-one -- gtopo-bench probe nic0 --gid 17
check "a GID that is not there: exit status 2" status_is 2
lab rdma-pair --deadline 120 --on b "$lab/serve-perftest" \
  --on a "lab-wait serving && gtopo-bench probe nic0:1 b/nic0:1 --launch 'exec socat - TCP:{host}:7000' --seconds 1; s=\$?; lab-signal done; exit \$s"
shown
check "from this host to another" stdout_has '^a\| verbs bandwidth, a/nic0:1 -> b/nic0:1$'
check "with the GID of each" stdout_has '^a\|   to +host; .*::ffff:10\.9\.0\.2'
lab rdma-pair --deadline 240 \
  --on b "socat TCP-LISTEN:7000,fork,reuseaddr EXEC:'gtopo-bench agent' & lab-listening 7000 && lab-signal serving; lab-wait done 200" \
  --on a "lab-wait serving
    for operation in write:4K read:4K send:4K write-imm:4K fetch-add:8 compare-swap:8; do
      gtopo-bench probe nic0:1 b/nic0:1 --launch 'exec socat - TCP:{host}:7000' --rdma-cm -q 3 -t 16 --timeout 10 \
        --operation \${operation%:*} --size \${operation#*:} --seconds 1
    done
    lab-signal done"
shown
for operation in write read send write-imm fetch-add compare-swap; do
  check "RDMA CM connects two hosts for $operation: bandwidth" stdout_has "^a\| .* $operation +(->|<-) +[0-9.]+ .* yes\s*$"
  check "and latency" stdout_has "^a\| .* $operation +(->|<-) [a-z ]*round trip +[0-9.]+ .* yes\s*$"
done
check "and the description says so" stdout_has '^a\|   to +host; RC, RDMA CM, MTU 4096, GID 1 ::ffff:10\.9\.0\.2'

# The unit tests that need an RDMA device.
for test in test_connection test_endpoint test_transport test_probe; do
  lab rdma-one --deadline 400 -- "$build/tests/unit/$test"
  check "$test with an RDMA device" status_is 0
  check "$test skips nothing there" output_lacks 'SKIPPED'
done

# ---- from post to poll ----

"$lab/../bench/instructions" --path "$build" > "$work/stdout" 2> "$work/stderr"
status=$?
shown
check "no allocation, printing or system call of ours from post to poll" status_is 0

# ---- what goes wrong ----

lab nic-down -- gtopo-bench run -o - --seconds 1
check "a port that is switched off is told, the rest measured" json \
  '[f["object"] for f in m["findings"] if f["rule"] == "port-off"] == ["a/nic1:1"] and len(m["measurements"]) == 2'
check "which is no fault: exit status 0" status_is 0
lab nic-down -- gtopo-bench run --loopback -o - --seconds 1
check "in loopback the other port is measured, nothing at once" json \
  '{x["from"] for x in m["measurements"]} == {"a/numa0@nic0:1"} and not [x for x in m["measurements"] if "concurrent" in x]'
check "in the matrix the port that is off has -" stderr_has '^NUMA0 +[0-9.]+ [A-Z?]+ +- '
lab nic-down -- gtopo-bench probe nic1
check "a probe of a port that is down: exit status 3" status_is 3
lab nic-down -- gtopo-bench run -o no.json --only nic1
check "a port asked for that is down: exit status 3" status_is 3
check "the message names it and what to do" stderr_has 'nic1 has no link.*'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
