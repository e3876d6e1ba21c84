#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What it says of known machines: see tests/golden/check.
exec "$(dirname "$0")/../golden/check"
