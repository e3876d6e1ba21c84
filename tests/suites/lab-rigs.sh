#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# two guests: the ways into GPU memory, and faults in the middle of a probe under AddressSanitizer and LeakSanitizer
. "$(dirname "$0")/common.sh"
[ -x "$source/tests/lab/run" ] || skip_suite "there is no tests/lab/run"
times=${GTOPO_FAULT_TIMES:-2}

# rig PROGRAM... -- ENVIRONMENT-OF-THE-AGENTS...: its TAP lines; failed is set when it does not end well
rig() {
  local program=()
  while [ "$1" != -- ]; do
    program+=("$1")
    shift
  done
  shift
  echo "# ${program[*]}"
  GTOPO_BUILD=$tree "$source/tests/lab/run" rdma-managed --deadline $((300 + 240 * times)) \
    --set ASAN_OPTIONS=verify_asan_link_order=0 --set GTOPO_RIG_SECONDS=$((300 + 240 * times)) \
    --on a "lab-wait serving; $source/tests/rig/${program[*]}; s=\$?; lab-signal done; exit \$s" \
    --on b "$source/tests/rig/serve $*" | sed -n 's/^a| //p'
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
}

plain_tree
make -C "$tree" -j"$JOBS" check TESTS= || exit 1
fakes=$tree/tests/fakes/.libs
rig gpu-ways peer-memory -- "LD_LIBRARY_PATH=$fakes" GTOPO_FAKE_CUDA_ACCESS=all
rig gpu-ways staged -- "LD_LIBRARY_PATH=$fakes" GTOPO_FAKE_CUDA_ACCESS=none
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
build_tree asan --enable-werror CFLAGS="-g -O1 $flags" LDFLAGS="$flags"
make -C "$tree" -j"$JOBS" check TESTS= || exit 1
rig faults --times "$times" -- "LD_PRELOAD=$tree/tests/rig/.libs/saboteur.so"
[ $failed = 0 ]
