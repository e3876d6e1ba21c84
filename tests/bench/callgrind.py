# SPDX-License-Identifier: Apache-2.0
"""Reads what `valgrind --tool=callgrind --compress-strings=no --compress-pos=no` writes: who executed how many
instructions itself, and who called whom how often."""

import collections
import pathlib


class Profile:
    """A function is the pair of its object file and its name; one without a symbol has its address for a name."""

    def __init__(self, path):
        self.instructions = collections.Counter()  # of a function itself
        self.calls = collections.Counter()  # (caller, callee)
        here = name = callee = callee_object = None
        is_inclusive = False  # the line after calls= is what the callee cost, and is counted there
        for line in pathlib.Path(path).read_text().splitlines():
            key, _, value = line.partition("=")
            if key == "ob":
                here = value
            elif key == "fn":
                name, callee_object = (here, value), None
            elif key == "cob":
                callee_object = value
            elif key == "cfn":
                callee, callee_object = (callee_object or here, value), None  # no cob: the caller's own object
            elif key == "calls":
                self.calls[name, callee] += int(value.split()[0])
                is_inclusive = True
            elif line[:1].isdigit() and name:
                if not is_inclusive:
                    self.instructions[name] += int(line.split()[1])
                is_inclusive = False

    def __sub__(self, other):
        """What grew from `other` to this one."""
        growth = Profile.__new__(Profile)
        growth.instructions = self.instructions.copy()
        growth.instructions.subtract(other.instructions)
        growth.calls = self.calls.copy()
        growth.calls.subtract(other.calls)
        return growth
