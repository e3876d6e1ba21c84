#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# guests: what differing ends agree on, the ways into GPU memory, tests/gpu/run, and faults in mid-probe under sanitizers
. "$(dirname "$0")/common.sh"
[ -x "$source/tests/lab/run" ] || skip_suite "there is no tests/lab/run"
times=${GTOPO_FAULT_TIMES:-1}

# rig SECONDS PROGRAM... -- ENVIRONMENT-OF-THE-AGENTS...: its TAP lines; failed is set when it does not end well
rig() {
  local seconds=$1 program=() status
  shift
  while [ "$1" != -- ]; do
    program+=("$1")
    shift
  done
  shift
  echo "# ${program[*]}"
  guests "$seconds" "${program[*]}" "$*"
  status=$?
  # Not what a program in a guest ends with: a guest did not come up or stood still. Emulated kernels do, rarely.
  if [ $status = 124 ] || [ $status = 125 ]; then
    echo "# the guests failed ($status), see above: once more"
    guests "$seconds" "${program[*]}" "$*"
    status=$?
  fi
  [ $status = 0 ] || failed=1
}

guests() { # SECONDS PROGRAM ENVIRONMENT: lab/run's exit status
  GTOPO_BUILD=$tree "$source/tests/lab/run" rdma-managed --deadline "$1" \
    --set ASAN_OPTIONS=verify_asan_link_order=0 --set GTOPO_RIG_SECONDS="$1" \
    --on a "lab-wait serving; $source/tests/rig/$2; s=\$?; lab-signal done; exit \$s" \
    --on b "$source/tests/rig/serve $3" | sed -n 's/^a| //p'
  return "${PIPESTATUS[0]}"
}

plain_tree
make -C "$tree" -j"$JOBS" check TESTS= || exit 1
fakes=$tree/tests/fakes/.libs
rig 200 agreement --
rig 300 gpu-ways peer-memory -- "LD_LIBRARY_PATH=$fakes" GTOPO_FAKE_CUDA_ORDERING=0 GTOPO_FAKE_CUDA_ACCESS=all
rig 300 gpu-ways staged -- "LD_LIBRARY_PATH=$fakes" GTOPO_FAKE_CUDA_ORDERING=0 GTOPO_FAKE_CUDA_ACCESS=none
echo "# tests/gpu/run, where there is an RDMA device"
GTOPO_BUILD=$tree "$source/tests/lab/run" rdma-one --deadline 280 --set GTOPO_BENCH="$tree/gtopo-bench" \
  --set GTOPO_MODULE_DIR="$tree/.libs" --set GTOPO_SOURCE="$source" -- bash "$source/tests/cli/test-gpu-run.sh" || failed=1
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
build_tree asan --enable-werror CFLAGS="-g -O1 $flags" LDFLAGS="$flags"
make -C "$tree" -j"$JOBS" check TESTS= || exit 1
rig $((150 + 150 * times)) faults --times "$times" -- "LD_PRELOAD=$tree/tests/rig/.libs/saboteur.so"
[ $failed = 0 ]
