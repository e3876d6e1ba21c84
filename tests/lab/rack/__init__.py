# SPDX-License-Identifier: Apache-2.0
"""The virtual rack: rig files, guest machines, and running commands inside them."""

import os

LAB_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE_ROOT = os.path.dirname(os.path.dirname(LAB_DIR))

EXIT_USAGE = 2
EXIT_MISSING = 77     # a part of the lab is not installed
EXIT_DEADLINE = 124   # as timeout(1)
EXIT_BROKEN = 125     # the lab failed, not the command


class LabError(Exception):
    """One sentence for the user, the exit status that goes with it, and logs to show before it."""

    def __init__(self, status, sentence, logs=""):
        super().__init__(sentence)
        self.status = status
        self.logs = logs
