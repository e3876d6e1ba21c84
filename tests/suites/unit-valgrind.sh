#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the unit tests under valgrind, but for those about size, number and time
. "$(dirname "$0")/common.sh"
need valgrind
pkg-config --exists cmocka || skip_suite "there is no cmocka"
plain_tree
make -C "$tree" -j"$JOBS" check TESTS= || exit 1 # builds them
tests=$(cd "$source" && ls tests/unit/test_*.c | sed 's/\.c$//' | grep -vE '/test_(scale|path_oracle|transport|copy|discover_hostile)$')
check_tree TESTS="$(echo $tests)" LOG_COMPILER=valgrind LOG_FLAGS="-q --error-exitcode=99 --leak-check=full \
  --errors-for-leak-kinds=definite --child-silent-after-fork=yes"
