#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the unit tests
. "$(dirname "$0")/common.sh"
pkg-config --exists cmocka || skip_suite "there is no cmocka"
plain_tree
check_tree
