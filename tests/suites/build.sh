#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# autoreconf, and an out-of-tree build in which every warning is an error
. "$(dirname "$0")/common.sh"
need autoreconf make gcc pkg-config
rm -f "$build_root/plain/.arguments" # from the beginning
plain_tree
