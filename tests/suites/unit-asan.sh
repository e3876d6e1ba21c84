#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the unit tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
. "$(dirname "$0")/common.sh"
pkg-config --exists cmocka || skip_suite "there is no cmocka"
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
build_tree asan --enable-werror CFLAGS="-g -O1 $flags" LDFLAGS="$flags"
check_tree
