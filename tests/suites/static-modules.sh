#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# all modules built into the library: the build, its unit tests about modules, and no module beside it
. "$(dirname "$0")/common.sh"
build_tree static --enable-werror --with-static-modules
check_modules || exit 1
! find "$tree" -name verbs.so -o -name ofi.so | grep .
