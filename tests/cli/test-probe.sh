#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gtopo-bench probe: words for what cannot be, measuring this host, every form of the report, being interrupted; and with
# agents whose figures are made up (fake-prober), what is printed of hardware that is not here.
# shellcheck disable=SC2016  # $n is jq's
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH
here=$(dirname "$0")
schema=$GTOPO_SOURCE/doc/probe.schema.json
unset XDG_RUNTIME_DIR
short=(--seconds 0.1)

no_temporaries() { [ -z "$(find "$work" -name '.gputopo*')" ]; }
no_agents() { ! pgrep -f "gtopo-bench agent" > /dev/null; }
document_says() { jq -e "$@" "$work/stdout" > /dev/null; }
rows() { grep -cE '^ +[0-9]+ ([KMG]i)?B +' "$work/stdout"; }
has_rows() { [ "$(rows)" = "$1" ]; }

# ---- the command line ----

usage() { # WORDS ARGUMENT...: exit status 2, the words on standard error, nothing on standard output
  local words=$1
  shift
  run "$bench" probe "$@"
  status_is 2 && stdout_is_empty && stderr_has "$words"
}

run "$bench" probe --help
check "--help shows the usage" stdout_has '^Usage: gtopo-bench probe \[OPTION\]\.\.\. A \[B\]$'
check "every option is on its line, with its argument" stdout_has '^  -s, --size LIST +message sizes'
check "an option that is too long for its column has a line of its own" stdout_has '^      --relaxed-ordering WHEN$'
man_has_every_option() {
  local option
  "$bench" probe --help > "$work/stdout"
  for option in $(grep -oE '^ +(-.,)? +--[a-z-]+' "$work/stdout" | grep -oE -e '--[a-z-]+' | grep -vx -e --help); do
    sed -n '/^\.SS probe/,/^\.SS agent/p' "$GTOPO_SOURCE/doc/gtopo-bench.1" | grep -qE -e "$option( |\$|\")" || return 1
  done
}
check "the manual page has every option" man_has_every_option

check "no address exits 2" usage 'name what to measure'
check "three addresses exit 2" usage 'unexpected argument "numa2"' numa0 numa1 numa2
check "an unknown option exits 2" usage "^gtopo-bench probe: .*--colour" numa0 --colour
while read -r option value words; do
  check "$option $value exits 2, and says what it takes" usage "$option takes $words.*not \"$value\"" numa0 "$option" "$value"
done << 'END'
--operation fly write, read, send
--metric speed bandwidth, latency or both
--size 0 sizes from 1 to 1G
--size 2G sizes from 1 to 1G
--size 64q sizes from 1 to 1G
--size 1.5 sizes from 1 to 1G
--size 4K.. sizes from 1 to 1G
--size 8..4 sizes from 1 to 1G
--size 4K,,8K sizes from 1 to 1G
--queue-pairs 0 a number from 1 to 64
--queue-pairs 65 a number from 1 to 64
--depth 8193 a number from 1 to 8192
--depth 1.5 a number from 1 to 8192
--moderation 0 a number from 1 to 8192
--post-list 65 a number from 1 to 64
--inline 5000 a number of bytes from 0 to 4096, or auto
--inline yes a number of bytes from 0 to 4096, or auto
--relaxed-ordering maybe on, off or auto
--mtu 1500 256, 512, 1024, 2048 or 4096
--mtu 8192 256, 512, 1024, 2048 or 4096
--traffic-class 256 a number from 0 to 255
--service-level 16 a number from 0 to 15
--gid 256 a number from 0 to 255
--gid 1,x a number from 0 to 255
--gid 1,2,3 a number from 0 to 255
--way gpudirect dma-buf, peer-memory, staged or auto
--way staged,magic dma-buf, peer-memory, staged or auto
--iterations 15 a number from 16 to 10000000
--precision 2 a share of the median
--seconds 0 seconds, from 0.001
--timeout never seconds, from 0.001
--compat iperf perftest
END
many=$(seq -s, 1 65)
check "65 sizes exit 2" usage 'at most 64' numa0 --size "$many"
check "--json and --compat exclude each other" usage 'exclude each other' numa0 --json --compat perftest
check "--compat and --seconds exclude each other" usage 'counts messages' numa0 --compat perftest --seconds 1
check "--iterations and --precision exclude each other" usage 'stands instead of' numa0 --iterations 100 --precision 0.1
check "--compat and --two-way exclude each other" usage 'of one direction' numa0 --compat perftest --two-way
check "--launch without another host exits 2" usage 'no address names one' numa0 --launch x
check "--way without a GPU exits 2" usage 'neither end is one' numa0 --way staged
check "--counters without a port exits 2" usage 'neither end is one' numa0 --counters
check "--gid without a port exits 2" usage 'neither end is one' numa0 --gid 3
check "an unknown transport exits 2" usage 'no transport "carrier-pigeon"' numa0 --transport carrier-pigeon
check "and names those that are there" stderr_has 'known: .*ofi:tcp, ofi:shm|known: .*ofi:shm, ofi:tcp'
check "ofi without a provider exits 2" usage 'needs the provider.s name, such as ofi:tcp' numa0 --transport ofi
check "an operation that the transport has not exits 2" usage 'has no operation "write"' numa0 --operation write
check "what is of one direction only is said in the options' words" usage 'leave --two-way out' numa0 --metric latency --two-way
while read -r option value transport; do
  [ "$value" = - ] && value=
  check "$option over $transport is refused, not ignored" usage "option $option is not honoured by transport ofi" \
    numa0 --transport "$transport" --metric bandwidth "$option" ${value:+"$value"}
  check "and it is said what to do" stderr_has "leave $option out, or use transport verbs"
done << 'END'
--queue-pairs 2 ofi:shm
--moderation 8 ofi:shm
--post-list 8 ofi:tcp
--inline 64 ofi:tcp
--relaxed-ordering on ofi:tcp
--mtu 1024 ofi:tcp
--traffic-class 8 ofi:tcp
--service-level 1 ofi:tcp
--verify-every - ofi:shm
--rdma-cm - ofi:tcp
END
check "an address that is not here exits 2" usage 'has no "gpu99"' gpu99
check "what is no memory and no port exits 2" usage 'neither a memory nor a port' package0
check "a folder that is not there exits 2 at once" usage 'cannot be written' numa0 -o "$work/nowhere/report"
check "a map that cannot be there exits 2 at once" usage 'cannot be written' numa0 --map "$work/nowhere/map.json"
echo '{' > "$work/broken.json"
check "a map that is none exits 2" usage 'broken\.json' numa0 --map "$work/broken.json"
check "and is left as it was" grep -qx '{' "$work/broken.json"

port=$("$bench" show | grep -oE '\bnic[0-9]+:[0-9]+' | head -1)
if [ -d /sys/class/infiniband ] || [ -z "$port" ]; then
  skip "a port without RDMA exits 3" "this host has RDMA devices, or no port at all"
else
  run "$bench" probe "$port"
  check "a port without RDMA exits 3" status_is 3
  check "and says what is missing" stderr_has "$port (is no RDMA port|has no link)"
fi

# ---- measuring this host ----

for transport in ofi:shm ofi:tcp; do
  run "$bench" probe numa0 --transport $transport "${short[@]}"
  check "$transport in loopback is measured" status_is 0
  check "$transport: bandwidth with its interval, unit and all" stdout_has \
    '^    64 KiB  send +-> +[0-9.]+  \[[0-9.]+ \.\. [0-9.]+\] +[GM]B/s +[0-9.]+ [kM]?/s +[0-9]+  (precision|deadline) +yes$'
  check "$transport: latency says what was timed" stdout_has '^       8 B  send +-> half round trip +[0-9.]+  \[.*\] +us '
  check "$transport: the head says the way, what was chosen and the method" stdout_has '^  from +host; libfabric'
  check "$transport: progress is for terminals" stderr_is_empty
done
run "$bench" probe numa0 numa0 --metric bandwidth "${short[@]}"
check "memory goes through ofi:shm by itself" stdout_has '^ofi:shm bandwidth, .*/numa0 -> .*/numa0$'
check "one metric may be left out" has_rows 1
run "$bench" probe "$(uname -n)/numa0" -s 1..8,64K --metric latency "${short[@]}"
check "the name of this host may be written" status_is 0
check "a sweep doubles, and lists go on" has_rows 5
run "$bench" probe numa0 --iterations 2000 --metric bandwidth
check "a number of messages may be asked for" stdout_has ' iterations +yes$'

run "$bench" probe numa0 --json --size 8,4K "${short[@]}"
check "--json is one document" document_says '.format == "gputopo-probe" and .version == 1 and (.probes | length == 4)'
check "units are in its keys" document_says '[.probes[].bandwidth_Bps.median // .probes[].latency_ns.median] | all(. > 0)'
check "and what was used: the depth, the pages, and no MTU" document_says \
  'all(.probes[].from.used; .queue_pairs == 1 and .depth > 0 and .page_B >= 4096 and .mtu_B == null)'
check "which operation, and whether the data was right" document_says 'all(.probes[]; .operation == "send" and .verified)'
check "and nothing failed" document_says '.failures == []'
python=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import jsonschema; jsonschema.Draft202012Validator' 2> /dev/null && python=$candidate && break
done
is_valid() {
  "$python" -c 'import json, jsonschema, sys
jsonschema.Draft202012Validator(json.load(open(sys.argv[1]))).validate(json.load(open(sys.argv[2])))' "$schema" "$1"
}
if [ -n "$python" ]; then
  check "it is as the schema says" is_valid "$work/stdout"
else
  skip "it is as the schema says" "there is no python3 with jsonschema 4"
fi

echo old > "$work/report"
chmod 640 "$work/report"
run "$bench" probe numa0 -o "$work/report" --metric latency "${short[@]}"
check "-o takes the report" grep -q 'half round trip' "$work/report"
check "standard output stays empty" stdout_is_empty
check "the file's mode stays" [ "$(stat -c %a "$work/report")" = 640 ]
run "$bench" probe numa0 -o "$work/report" --operation write
check "a mistake leaves the file as it was" grep -q 'half round trip' "$work/report"
check "no temporary file is left" no_temporaries
a_full_disk() { # STDOUT OPTION...
  local out=$1
  shift
  "$bench" probe numa0 --size 1,2,4 --metric latency "${short[@]}" "$@" > "$out" 2> "$work/stderr"
  status=$?
  status_is 2 && stderr_has 'cannot be written: No space left'
}
check "a full standard output exits 2" a_full_disk /dev/full
check "a full file exits 2" a_full_disk /dev/null -o /dev/full
a_closed_pipe() {
  local before=$SECONDS
  "$bench" probe numa0 --size 1..64M --seconds 1 --precision 0 2> "$work/stderr" | head -1 > /dev/null
  status=${PIPESTATUS[0]}
  status_is 2 && stderr_is_empty && [ $((SECONDS - before)) -lt 10 ]
}
check "a closed pipe ends a sweep, without a word" a_closed_pipe

# ---- a map ----

map=$work/map.json
map_says() { jq -e "$1" "$map" > /dev/null; }
run "$bench" probe numa0 --map "$map" "${short[@]}"
check "--map makes a map" map_says '[.hosts[]] | length == 1'
check "with the measurements" map_says '[.measurements[] | select(.provenance == "measured" and .transport == "ofi:shm")] | length == 2'
run "$bench" probe numa0 --map "$map" --transport ofi:tcp --metric latency "${short[@]}"
check "and adds to one" map_says '(.measurements | length == 3) and (.hosts | length == 1)'
run "$bench" show "$map"
check "which can be shown" stdout_has 'ofi:tcp'
check "on the link that was measured" stdout_has 'numa0 .*measured [0-9.]+ GB/s'

# ---- being interrupted ----

interrupt_at '"bandwidth_Bps"' "$bench" probe numa0 --metric bandwidth --size 64K,128K,256K --seconds 1 --precision 0 --json
check "Ctrl-C stops within a second ($took_ms ms)" [ "$took_ms" -lt 1000 ]
check "it exits with 4" status_is 4
check "it says so" stderr_has 'cancelled after [12] of 3 probes'
check "the document is closed, with what was measured" document_says '.probes | length >= 1'
check "no agent is left" no_agents

# ---- other hosts, and hardware that is made up ----

fake() { # MODE ARGUMENT...
  local mode=$1
  shift
  run "$bench" probe --launch "exec $here/fake-prober $mode {host}" "$@"
}

fake fine a/nic0:1 b/nic0
check "two hosts are gathered and measured" status_is 0
check "a NIC stands for its port, and ports mean verbs" stdout_has '^verbs bandwidth, a/nic0:1 -> b/nic0:1$'
check "a network is told in bits" stdout_has '^    64 KiB  write +-> +100\.0  \[98\.00 \.\. 102\.0\] +Gb/s +191 k/s +640  precision +yes$'
check "latency is told with its extremes, and what is not known as -" stdout_has \
  '^       8 B  write +-> half round trip +1\.250  \[1\.240 \.\. 1\.260\] +us +1\.100 +1\.500 +- +98\.00 +640  precision +yes$'
fake fine a/nic0:1 b/nic0:1 --two-way --metric bandwidth
check "two-way is told with both directions" stdout_has '^    64 KiB  write +<-> +196\.0 '
check "each by itself" stdout_has 'of which -> 100\.0 Gb/s, <- 96\.00 Gb/s$'
fake fine a/nic0:1 b/nic0:1 --two-way --metric bandwidth --map "$work/two-way.json"
check "a map takes both directions" jq -e \
  '.measurements[0] | .bandwidth_Bps.median == 24500000000 and .two_way == {forward: 12500000000, reverse: 12000000000}' "$work/two-way.json"
run "$bench" show "$work/two-way.json"
check "and shows them" stdout_has '^    both ways at once, of which -> 100 Gb/s, <- 96 Gb/s$'
fake fine a/nic0:1 b/nic0:1 --operation read --metric bandwidth --counters
check "a read comes the other way" stdout_has '^    64 KiB  read +<- '
check "--counters tells those that rose" stdout_has '^ +from: port_xmit_data 1099511627776$'
fake fine a/nic0:1 b/nic0:1 --operation fetch-add --json
check "atomic operations have 8 bytes" document_says 'all(.probes[]; .message_B == 8)'
check "the ends of each probe are told" document_says \
  '.from == "a/nic0:1" and .to == "b/nic0:1" and all(.probes[]; .from.device == "mlx5_0" and .from.numa == 1)'
check "what each end ran with is told beside what was asked for" document_says \
  'all(.probes[]; .from.used.mtu_B == 4096 and .to.used.relaxed_ordering and .from.used.gid == null and .options.mtu_B == null)'
fake lossy a/nic0:1 b/nic0:1 --metric bandwidth --size 2K..16K
check "what counters say is found, once for all sizes" [ "$(grep -c '^warning retransmits at write bandwidth 4 KiB and 2 more: ' "$work/stdout")" = 1 ]
check "it exits with 1" status_is 1
fake inside a/nic0:1 b/nic0:1
check "traffic that passes no port is found, in bandwidth and latency" stdout_has '^warning stayed-in-adapter: mlx5_0 port 1 on a'
check "it exits with 1" status_is 1
fake inside a/nic0
check "of a loopback it is a note" stdout_has '^note stayed-in-adapter'
check "which exits with 0" status_is 0
fake fine a/nic0 --metric bandwidth
check "one address is measured in loopback" stdout_has '^verbs bandwidth, a/nic0:1 -> a/nic0:1$'

export FAKE_PROBER_LOG=$work/told
fake fine a/nic0:1 b/nic0:1 -q 4 -t 64 -Q 16 -l 8 -I 64 -m 1024 -T 96 -S 3 -x 3,auto -R -D 7 --relaxed-ordering off \
  --verify-every --timeout 9 --precision 0.5
told() { # JQ-EXPRESSION: of the first thing that an agent was told, which is of the bandwidth
  head -1 "$work/told" | jq -e "$1" > /dev/null
}
check "options reach the agents: how much is under way" told '.queue_pairs == 4 and .depth == 64 and .moderation == 16 and .post_list == 8'
check "what is asked of the device" told '.inline_B == 64 and .mtu_B == 1024 and .traffic_class == 96 and .service_level == 3 and .relaxed_ordering == 0'
check "how it is connected" told '.connection_manager == 1 and .from.gid == 3 and .to.gid == -1'
check "how long, and what is checked" told '.seconds == 7 and .deadline_s == 9 and .precision == 0.5 and .verify_every == 1'
check "latency keeps to one queue pair" bash -c "tail -1 '$work/told' | jq -e '.metric == 1 and .queue_pairs == 1 and .verify_every == 0'"
unset FAKE_PROBER_LOG

# perftest's columns, byte by byte
fake fine a/nic0:1 b/nic0:1 --compat perftest
line=$(printf -- '-%.0s' $(seq 87))
printf '%s\n' "$line" ' #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]' > "$work/expected"
printf ' 65536      5000             11539.46            11530.11\t\t     0.184482\n' >> "$work/expected"
printf '%s\n' "$line" ' #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ' >> "$work/expected"
printf ' 2       1000          1.10           9.50         1.25     \t       1.26        \t0.13   \t\t1.50    \t\t9.50   \n%s\n' "$line" >> "$work/expected"
check "--compat perftest prints perftest's columns" cmp "$work/expected" "$work/stdout"
export FAKE_PROBER_LOG=$work/told-compat
fake fine a/nic0:1 b/nic0:1 --compat perftest --size 4K --metric bandwidth
compat_told() { jq -e "$1" "$FAKE_PROBER_LOG" > /dev/null; }
check "with perftest's defaults: one message a call" compat_told '.post_list == 1 and .moderation == 0'
rm "$FAKE_PROBER_LOG"
fake fine a/nic0:1 b/nic0:1 --compat perftest --size 4K --metric bandwidth -l 8
check "and of a list one completion" compat_told '.post_list == 8 and .moderation == 8'
unset FAKE_PROBER_LOG
fake fine a/nic0:1 b/nic0:1 --iterations 100 --json
check "its figures are in the document too" document_says '.probes | all(.perftest.iterations == 100) and .[0].perftest.bandwidth_peak_MiBps > 0'
run "$bench" probe numa0 --compat perftest
check "a transport that has no such figures says so" stderr_has 'perftest.s figures'
check "exit status 2 for it, before anything is measured" usage 'transport ofi:shm does not time' numa0 --compat perftest

# what goes wrong
fake fail a/nic0:1 b/nic0:1 --metric bandwidth --size 1K..16K
check "a size that fails is told, and the sweep goes on" stderr_has 'write bandwidth 4 KiB: a: made-up failure'
check "with its advice" stderr_has '^  made-up advice$'
check "the other sizes are in the table" has_rows 4
check "exit status 4" status_is 4
fake fail a/nic0:1 b/nic0:1 --size 4K,8K --json
check "failures are in the document" document_says '[.failures[] | select(.error == "device" and .message_B == 4096)] | length == 2'
[ -n "$python" ] && check "which is as the schema says" is_valid "$work/stdout"
fake dead a/nic0:1 b/nic0:1 --size 1..64M
check "when nothing works the rest is left out" stderr_has 'the other 51 of 54 probes were left out'
fake fine a/nic0:1 b/nic1
check "a port without a link exits 3" status_is 3
check "and is named" stderr_has 'b/nic1:1 has no link'
fake fine a/nic2 b/nic0
check "a NIC of two ports has to be told which" stderr_has 'a/nic2 has 2 ports'
check "exit status 2" status_is 2
run "$bench" probe a/nic0:1 b/nic0:1 --launch "[ {host} = a ] && exec $here/fake-prober fine {host}"
check "a host that cannot be reached exits 4" status_is 4
check "and is named" stderr_has '^gtopo-bench: b cannot be reached'
run "$bench" probe numa0 'b/nic0:1' --launch "exec $here/fake-prober fine {host}"
check "a memory here and a port there cannot be" stderr_has 'the first end of the probe has no RDMA port'

# GPU memory
fake fine a/gpu0@nic0:1 b/nic0:1 --metric bandwidth
if stderr_has 'there is no memory "gpu'; then
  skip "memory of a GPU goes through a port" "GPU memory is not built in"
else
  check "memory of a GPU goes through a port" stdout_has '^verbs bandwidth, a/gpu0@nic0:1 -> b/nic0:1$'
  check "the way that it was reached is told" stdout_has '^  from +dma-buf \(default mapping\); RC'
  fake staged a/gpu0@nic0:1 b/nic0:1 --size 64,4K
  check "a fallback is found once, below the table" [ "$(grep -c '^warning no-gpudirect: dma-buf: made-up reason' "$work/stdout")" = 1 ]
  check "with its next step" stdout_has '^    load nvidia-peermem$'
  check "it exits with 1" status_is 1
  fake staged a/gpu0@nic0:1 b/nic0:1 --size 64 --json
  check "with --json it is told on standard error" stderr_has 'warning no-gpudirect'
  check "and stands in the document" document_says '.probes[0] | .from.way == "staged" and .findings[0].severity == "warning"'
  fake staged a/gpu0@nic0:1 b/nic0:1 --compat perftest
  check "staged memory has no figures of perftest's, and it is said why" stderr_has 'staged through host memory, in chunks'
  export FAKE_PROBER_LOG=$work/told-ways
  fake fine a/gpu0@nic0:1 b/nic0:1 --way staged --metric bandwidth
  check "--way is for the end that has a GPU" bash -c "head -1 '$FAKE_PROBER_LOG' | jq -e '.from.way == \"staged\" and .to.way == \"\"'"
  unset FAKE_PROBER_LOG
fi
check "no agent is left at the end" no_agents
finish
