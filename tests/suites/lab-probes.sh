#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# measurements in the virtual rack, over real RDMA devices in software
. "$(dirname "$0")/common.sh"
[ -x "$source/tests/lab/probes.sh" ] || skip_suite "there is no tests/lab/probes.sh"
plain_tree
make -C "$tree" -j"$JOBS" check tests/bench/write_messages TESTS= || exit 1 # the programs, which the guests run
GTOPO_BUILD=$tree "$source/tests/lab/probes.sh"
