#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the virtual rack itself: guests boot, see each other, and stop
. "$(dirname "$0")/common.sh"
[ -x "$source/tests/lab/selftest" ] || skip_suite "there is no tests/lab/selftest"
"$source/tests/lab/selftest"
