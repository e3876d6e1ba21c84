#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the installed library as a stranger uses it: pkg-config, C, C++, symbols, needed libraries
. "$(dirname "$0")/common.sh"
need g++ nm readelf
plain_tree
"$source/tests/embed/run" "$tree"
