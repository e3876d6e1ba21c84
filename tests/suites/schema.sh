#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# doc/*.schema.json say what the library writes, and no more
. "$(dirname "$0")/common.sh"
python=$(python_with_jsonschema) || skip_suite "there is no python3 with jsonschema 4"
plain_tree
make -C "$tree" tests/schema/print_map tests/schema/print_probe || exit 1
here=$build_root/this-host.json
"$tree/gtopo-bench" map -o "$here"
[ $? -le 1 ] || exit 1 # 1: something was found, and the map is written
"$python" "$source/tests/schema/check.py" "$tree/tests/schema/print_map" "$source/doc/map.schema.json" "$here"
status=$?
# Where libfabric has neither, there is a document of failures.
for transport in ofi:shm ofi:tcp; do
  GTOPO_MODULE_DIR=$tree/.libs "$tree/gtopo-bench" probe numa0 --transport $transport --size 8,64K --seconds 0.1 --json \
    > "$build_root/probe-${transport#ofi:}.json"
done
"$python" "$source/tests/schema/check_probe.py" "$tree/tests/schema/print_probe" "$source/doc/probe.schema.json" \
  "$build_root"/probe-*.json || status=1
exit $status
