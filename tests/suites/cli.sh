#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gtopo-bench: what it prints and how it exits
. "$(dirname "$0")/common.sh"
plain_tree
# for test-gpu-run.sh and test-driver.sh; without cmocka there is none of them
pkg-config --exists cmocka && { make -C "$tree" -j"$JOBS" tests/fakes/libcuda.la tests/fakes/libnvidia-ml.la \
  tests/fakes/make_machine tests/unit/test_gpu tests/unit/test_copy || exit 1; }
export GTOPO_BENCH=$tree/gtopo-bench GTOPO_MODULE_DIR=$tree/.libs GTOPO_BUILD=$tree
status=0
for script in "$source"/tests/cli/test-*.sh; do
  echo "==== $(basename "$script")"
  bash "$script" || status=1
done
exit $status
