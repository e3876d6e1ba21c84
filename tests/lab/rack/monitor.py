# SPDX-License-Identifier: Apache-2.0
"""What happens to a rack while it runs: a cable is pulled, a guest freezes. Guests ask for it with `lab-trouble`.

A request is a file in the run's folder requests/, one line of words; its answer is the file NAME.answer: "ok", or what
is wrong. The hands are qemu's own, through its monitor socket (QMP).
"""

import json
import os
import socket

from . import LabError

USAGE = "expected: pull GUEST NIC | plug GUEST NIC | freeze GUEST | thaw GUEST"
TIMEOUT_S = 5


def execute(path, command, arguments):
    """One command to the monitor at `path`; LabError with what qemu says against it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        lines = connection.makefile("rw", encoding="utf-8")
        lines.readline()  # the greeting
        for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            answer = {}
            while "return" not in answer:  # events come in between
                answer = json.loads(lines.readline())
                if "error" in answer:
                    raise LabError(2, answer["error"]["desc"])


class Requests:
    """The requests of the guests of one run."""

    def __init__(self, rig, directory):
        self.rig = rig
        self.directory = directory
        self.folder = os.path.join(directory, "requests")
        os.makedirs(self.folder)

    def command_of(self, words):
        """The guest, and the monitor's command."""
        verbs = {"pull": 3, "plug": 3, "freeze": 2, "thaw": 2}
        if not words or verbs.get(words[0]) != len(words):
            raise LabError(2, USAGE)
        guest = self.rig.guest(words[1])
        if len(words) == 2:
            return guest, {"freeze": "stop", "thaw": "cont"}[words[0]], {}
        if words[2] not in [nic.name for nic in guest.nics]:
            raise LabError(2, f"guest {guest.name} has no NIC {words[2]}")
        return guest, "set_link", {"name": f"net-{words[2]}", "up": words[0] == "plug"}

    def answer(self, words):
        try:
            guest, command, arguments = self.command_of(words)
            execute(socket_path(self.directory, guest), command, arguments)
        except (LabError, OSError, ValueError) as error:
            return str(error)
        return "ok"

    def serve(self):
        """Do what was asked for since the last call."""
        for name in os.listdir(self.folder):
            if "." in name:  # an answer, or not yet whole
                continue
            path = os.path.join(self.folder, name)
            with open(path, encoding="utf-8") as file:
                answer = self.answer(file.read().split())
            os.unlink(path)
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(answer + "\n")
            os.rename(path + ".new", path + ".answer")


def socket_path(directory, guest):
    return os.path.join(directory, guest.name, "monitor")
