#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bash completion: commands, options of a command, files.
. "$(dirname "$0")/common.sh"
PATH=$(dirname "$GTOPO_BENCH"):$PATH
. "$GTOPO_SOURCE/doc/gtopo-bench.bash"

# completed WORD... : what is offered for the last word, sorted; as bash has it, which splits words at : and =
completed() {
  COMP_LINE="$*" COMP_POINT=$(printf %s "$*" | wc -c)
  _gtopo_bench
  printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
}
offers() { # EXPECTED WORD...
  local expected=$1
  shift
  [ "$(completed "$@") " = "$expected  " ]
}

: > "$work/stdout" > "$work/stderr"
check "a command is completed" offers "run" gtopo-bench r
check "every command is offered" offers "agent export help map probe run show version" gtopo-bench ""
check "options of a command are completed" offers "--matrix" gtopo-bench show --ma
check "options of another are not" offers "" gtopo-bench map --ma
check "options of probe are completed" offers "--relaxed-ordering" gtopo-bench probe --rel
check "operations are completed" offers "read" gtopo-bench probe nic0:1 --operation r
check "transports are completed, from the colon on" offers "shm tcp" gtopo-bench probe --transport ofi:
check "behind an equals sign too" offers "shm" gtopo-bench probe --transport=ofi:s
check "metrics are completed behind an equals sign" offers "latency" gtopo-bench probe numa0 --metric=l
check "addresses of this host are completed" offers "numa0" gtopo-bench probe numa0
check "transports of run are others" offers "ofi ofi:shm ofi:tcp verbs" gtopo-bench run --transport ""
check "ways are completed" offers "peer-memory" gtopo-bench probe --way p
check "formats are completed" offers "nccl" gtopo-bench export ""
check "files are completed" offers "$work/stderr $work/stdout" gtopo-bench show "$work/std"
finish
