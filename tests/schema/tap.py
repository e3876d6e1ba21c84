# SPDX-License-Identifier: Apache-2.0
"""What the checks of schemas share: a TAP line a check, and what a built program prints."""

import subprocess
import sys

failed = count = 0


def check(name, problems):
    global failed, count
    count += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for problem in problems:
        print(f"# {problem}")


def printed(what):
    return subprocess.run([sys.argv[1], what], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def finish():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)
