#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# doc/map.schema.json says what the library writes, and no more
. "$(dirname "$0")/common.sh"
python=$(python_with_jsonschema) || skip_suite "there is no python3 with jsonschema 4"
plain_tree
make -C "$tree" tests/schema/print_map || exit 1
here=$build_root/this-host.json
"$tree/gtopo-bench" map -o "$here"
[ $? -le 1 ] || exit 1 # 1: something was found, and the map is written
"$python" "$source/tests/schema/check.py" "$tree/tests/schema/print_map" "$source/doc/map.schema.json" "$here"
