#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# a build without any optional library, and its unit tests about modules
. "$(dirname "$0")/common.sh"
build_tree bare --enable-werror --without-verbs --without-ofi
check_modules || exit 1
"$tree/gtopo-bench" version
