#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# the tarball builds, passes its unit tests, installs and uninstalls, from a read-only source
. "$(dirname "$0")/common.sh"
plain_tree
make -C "$tree" distcheck AM_DISTCHECK_CONFIGURE_FLAGS=--enable-werror DISTCHECK_JOBS="$JOBS" MAKEFLAGS="-j$JOBS"
status=$?
chmod -R u+w "$tree"/gputopo-*/ 2> /dev/null && rm -rf "$tree"/gputopo-*/
exit $status
