# SPDX-License-Identifier: Apache-2.0
# What the suites share; each sources it. A suite's single tests are TAP lines or cmocka's; its exit status is 0, 77
# when it cannot run here, or anything else.
# shellcheck shell=bash
set -u
source=$GTOPO_SOURCE
build_root=$GTOPO_SUITES
count=0 failed=0

# The suite cannot run; the last line of its log says why.
skip_suite() {
  echo "skipped: $*"
  exit 77
}

need() { # COMMAND...
  local command
  for command; do
    command -v "$command" > /dev/null || skip_suite "there is no $command"
  done
}

# The first python3 that has jsonschema; there may be several on PATH.
python_with_jsonschema() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import jsonschema; jsonschema.Draft202012Validator' 2> /dev/null && echo "$python" && return
  done
  return 1
}

check() { # NAME COMMAND...: one test; what the command says explains a failure
  local name=$1 output
  shift
  count=$((count + 1))
  if output=$("$@" 2>&1); then
    echo "ok $count - $name"
  else
    echo "not ok $count - $name"
    printf '%s\n' "$output" | sed 's/^/# /' | head -100
    failed=$((failed + 1))
  fi
}

finish() {
  echo "1..$count"
  [ $failed = 0 ]
  exit
}

# build_tree NAME CONFIGURE-ARGUMENT...: configure and build out of tree; an earlier tree of the same arguments is used
# again. Leaves its path in $tree.
build_tree() {
  tree=$build_root/$1
  shift
  if [ ! -x "$source/configure" ] || [ ! -e "$source/build-aux/ltmain.sh" ] || [ "$source/configure.ac" -nt "$source/configure" ]; then
    (cd "$source" && autoreconf -fi) || exit 1
  fi
  if [ "$(cat "$tree/.arguments" 2> /dev/null)" != "$*" ]; then
    rm -rf "$tree"
    mkdir -p "$tree"
    (cd "$tree" && "$source/configure" "$@") || exit 1
    echo "$*" > "$tree/.arguments"
  fi
  make -C "$tree" -j"$JOBS" || exit 1
}

plain_tree() { build_tree plain --enable-werror; }

# check_tree [MAKE-ARGUMENT...]: the unit tests of $tree, each test's own log in ours.
check_tree() {
  local status test
  rm -f "$tree"/tests/unit/*.log "$tree"/tests/unit/*.trs
  make -C "$tree" -j"$JOBS" check "$@"
  status=$?
  for test in "$tree"/tests/unit/*.log; do
    [ -e "$test" ] || continue
    echo "==== $(basename "$test" .log)"
    cat "$test"
  done
  return $status
}

# Those of the unit tests that modules can change, in a tree that differs from the plain one in its modules only.
check_modules() {
  local test tests=
  for test in connection copy discover_ports endpoint exchange gpu loopback probe probe_json protocol transport; do
    tests+=" tests/unit/test_$test"
  done
  check_tree TESTS="$tests" check_PROGRAMS="$tests"
}
