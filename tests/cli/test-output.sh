#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where results go: standard output under its other names or closed, files that may not be written, a map that several
# probes add to, and what was there before a run that measured nothing.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH
unset XDG_RUNTIME_DIR
cd "$work" || exit 1
quick=(--metric latency --seconds 0.1)
latency() { "$bench" probe numa0 "${quick[@]}" "$@"; }

# ---- standard output, under its other names ----

for name in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
  echo before > both
  inode=$(stat -c %i both)
  { latency -o "$name"; "$bench" map -o "$name"; } >> both 2> "$work/stderr"
  check "$name is standard output: what was in its file stays" [ "$(head -1 both)" = before ]
  check "it is the same file" [ "$(stat -c %i both)" = "$inode" ]
  check "what was written to it one after the other is in it" bash -c 'grep -q "half round trip" both && grep -q gputopo-map both'
done
"$bench" run -o /dev/stdout --transport ofi:shm --seconds 0.2 > "$work/stdout" 2> "$work/stderr"
check "a run leaves it to the map, as with -o -" grep -q gputopo-map "$work/stdout"
{ echo before >&3; "$bench" map -o /dev/fd/3; } 3> third
check "another descriptor is written to as it is" bash -c 'head -1 third | grep -qx before && tail -n +2 third | jq -e .format > /dev/null'
run "$bench" map -o /dev/fd/9
check "one that is not open exits 2" status_is 2

# ---- closed descriptors ----

lost() { # REDIRECTION...
  bash -c "'$bench' probe numa0 ${quick[*]} $*" 2> "$work/stderr"
  status=$?
  status_is 2 && stderr_has 'standard output cannot be written: Bad file descriptor'
}
check "a closed standard output loses no report unsaid" lost '>&-'
check "nor with standard input closed too" lost '<&- >&-'
bash -c "'$bench' map -o all-closed.json <&- >&- 2>&-"
check "a file is written with all three closed" grep -q gputopo-map all-closed.json
bash -c "'$bench' probe numa0 ${quick[*]} -o closed.txt <&- >&-" 2> "$work/stderr"
check "and a report" grep -q 'half round trip' closed.txt
"$bench" show all-closed.json 2> "$work/stderr" | true
check "who reads no more is told nothing" stderr_is_empty

# ---- what cannot be ----

mkdir folder
refuses() { # WORDS OPTION...
  local words=$1
  shift
  run latency "$@"
  status_is 2 && stderr_has "$words" && stdout_is_empty
}
check "a folder as output is refused before anything is measured" refuses 'needs a file, and "folder" is a folder' -o folder
check "a folder as map" refuses 'needs a file, and "folder" is a folder' --map folder
check "an empty name" refuses 'output needs the name of a file' -o ''
check "an empty name of a map" refuses 'map needs the name of a file' --map ''
check "standard input as map" refuses 'needs a file: measurements are added' --map -
check "the report does not replace the map" refuses 'are one file' --map new.json -o ./new.json
check "neither is made" [ ! -e new.json ]
"$bench" map -o there.json
ln -s there.json link.json
cp there.json copy.json
check "nor under another name" refuses 'are one file' --map there.json -o link.json
check "it is as it was" cmp there.json copy.json

# ---- several probes, one map ----

for i in 1 2 3 4 5 6; do
  "$bench" probe numa0 --metric latency --transport ofi:tcp --iterations 200 --size "$i" --map shared.json > "of-$i" 2>&1 &
done
wait
ended_well=$(grep -l 'iterations *yes' of-? | wc -l)
check "probes that run at once add to one map, and each keeps the others' ($ended_well of 6 measured)" \
  [ "$(jq '.measurements | length' shared.json)" = "$ended_well" ]
check "most did" [ "$ended_well" -ge 3 ]
check "the host is in it once" [ "$(jq '.hosts | length' shared.json)" = 1 ]
exec 8< . && flock 8
run "$bench" probe numa0 --metric latency --transport ofi:tcp --iterations 200 --map shared.json
check "a folder that somebody holds locked is not waited for without end" status_is 2
check "it is said" stderr_has 'is not written: its folder has been locked for 5 s'
check "and the report is there" stdout_has 'half round trip'
exec 8<&-

# ---- signals ----

signalled() { # SIGNAL SECONDS COMMAND...: it gets the signal after so long; leaves $status
  local signal=$1 after=$2 runner
  shift 2
  setsid bash -c 'trap - INT; exec "$@"' _ "$@" > "$work/stdout" 2> "$work/stderr" &
  runner=$!
  sleep "$after"
  kill "-$signal" "$runner"
  wait "$runner"
  status=$?
}

echo former > report
signalled INT 1 "$bench" probe numa0 --metric bandwidth --transport ofi:tcp --size 512M --depth 2 --timeout 60 -o report
check "Ctrl-C before the first figure exits with 4" status_is 4
check "and leaves the report that was there" grep -qx former report
check "which is said" stderr_has 'nothing was measured: "report" is left as it was'
signalled HUP 1.5 "$bench" probe numa0 --metric latency --size 1,2 --seconds 20 --precision 0 -o report
check "a terminal that hangs up ends it with 4" status_is 4
check "what was measured is kept" grep -q 'half round trip' report
signalled HUP 0.5 nohup "$bench" probe numa0 --metric latency --seconds 1 --precision 0
check "under nohup it goes on" status_is 0
finish
