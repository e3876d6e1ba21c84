#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the readers of maps and of NCCL's files against clang's fuzzer: half a minute each, five seconds with --quick
. "$(dirname "$0")/common.sh"
need clang
echo 'int LLVMFuzzerTestOneInput(const char *d, long s) { return !d && s; }' |
  clang -x c -fsanitize=fuzzer -o "$build_root/fuzzer-probe" - || skip_suite "clang has no fuzzer (libclang-rt-dev)"
plain_tree
seconds=30
[ "$GTOPO_QUICK" = 1 ] && seconds=2
make -C "$tree" fuzz FUZZ_SECONDS=$seconds
