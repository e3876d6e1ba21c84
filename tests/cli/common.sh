# SPDX-License-Identifier: Apache-2.0
# What the tests of the command share: running it, looking at what came out, a TAP line a test.
# shellcheck shell=bash
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/gtopo-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
count=0 failed=0 status=0
export LC_ALL=C

# run COMMAND...: leaves $status, stdout and stderr in files; is always true
run() {
  "$@" > "$work/stdout" 2> "$work/stderr" < /dev/null
  status=$?
  return 0
}

status_is() { [ "$status" = "$1" ]; }
stdout_has() { grep -qE -e "$1" "$work/stdout"; }
stderr_has() { grep -qE -e "$1" "$work/stderr"; }
stdout_is_empty() { [ ! -s "$work/stdout" ]; }
stderr_is_empty() { [ ! -s "$work/stderr" ]; }

# check NAME COMMAND...: one test; what came out of the last run explains a failure
check() {
  local name=$1
  shift
  count=$((count + 1))
  if "$@"; then
    echo "ok $count - $name"
  else
    echo "not ok $count - $name"
    echo "# failed: $*; status $status"
    sed 's/^/# stdout: /' "$work/stdout" | head -20
    sed 's/^/# stderr: /' "$work/stderr" | head -20
    failed=$((failed + 1))
  fi
}

# interrupt_at PATTERN COMMAND...: sends it SIGINT, as a terminal does, half a second after PATTERN was on its stdout;
# leaves $status and, in $took_ms, how long it took to end. A background job of a script would ignore the signal.
# interrupt_twice_at: and once more, half a second later.
interrupt_at() { interrupt 1 "$@"; }
interrupt_twice_at() { interrupt 2 "$@"; }
interrupt() {
  local times=$1 pattern=$2 before runner
  shift 2
  setsid bash -c 'trap - INT; exec "$@"' _ "$@" > "$work/stdout" 2> "$work/stderr" &
  runner=$!
  for _ in $(seq 100); do
    grep -q "$pattern" "$work/stdout" && break
    sleep 0.1
  done
  before=$(($(date +%s%N) + 500000000))
  for _ in $(seq "$times"); do
    sleep 0.5
    pkill -INT -g "$runner"
  done
  wait "$runner"
  status=$?
  took_ms=$((($(date +%s%N) - before) / 1000000))
}

skip() { # NAME REASON
  count=$((count + 1))
  echo "ok $count - $1 # SKIP $2"
}

finish() {
  echo "1..$count"
  [ $failed = 0 ]
  exit
}
