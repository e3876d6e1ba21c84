# SPDX-License-Identifier: Apache-2.0
"""What happens to a rack while it runs: a cable is pulled, a guest freezes. Guests ask for it with `lab-trouble`.

A request is a file in the run's folder requests/, one line of words; its answer is the file NAME.answer: "ok", or what
is wrong. The hands are qemu's own, through its monitor socket (QMP).
"""

import json
import os
import socket

from . import LabError

USAGE = "expected: pull|plug|lose|pass GUEST NIC, or freeze|thaw GUEST"
VERBS = {"pull": 3, "plug": 3, "lose": 3, "pass": 3, "freeze": 2, "thaw": 2}  # and how many words there are
TIMEOUT_S = 5


def execute(path, command, arguments):
    """The answer to one command to the monitor at `path`; LabError with what qemu says against it."""
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
        return answer["return"]


def stands(path):
    """Where a guest's processors are, line by line: for one that does not go on. A name for RIP is in System.map."""
    try:
        text = execute(path, "human-monitor-command", {"command-line": "info registers -a"})
    except (LabError, OSError, ValueError) as error:
        return [f"does not answer: {error or type(error).__name__}"]
    return [line.strip() for line in text.splitlines() if line.startswith(("CPU#", "RIP="))]


def loss_of(nic, lost):
    return "qom-set", {"path": f"/objects/{loss_name(nic)}", "property": "status", "value": "on" if lost else "off"}


class Requests:
    """The requests of the guests of one run."""

    def __init__(self, rig, directory):
        self.rig = rig
        self.directory = directory
        self.folder = os.path.join(directory, "requests")
        os.makedirs(self.folder)

    def commands_of(self, words):
        """The guest, and what to ask of its monitor."""
        if not words or VERBS.get(words[0]) != len(words):
            raise LabError(2, USAGE)
        verb = words[0]
        guest = self.rig.guest(words[1])
        nics = [nic for nic in guest.nics if nic.name in words[2:]]
        if len(words) == 3 and not nics:
            raise LabError(2, f"guest {guest.name} has no NIC {words[2]}")
        if verb in ("pull", "plug"):
            return guest, [("set_link", {"name": f"net-{nics[0].name}", "up": verb == "plug"})]
        # What is sent to a frozen guest is lost, as on a real wire; else it would hold up its senders.
        loss = [loss_of(nic, verb in ("lose", "freeze")) for nic in nics or guest.nics]
        return guest, loss + {"freeze": [("stop", {})], "thaw": [("cont", {})]}.get(verb, [])

    def answer(self, words):
        try:
            guest, commands = self.commands_of(words)
            for command, arguments in commands:
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


def loss_name(nic):
    """The qemu object of a NIC that, when its status is on, lets nothing pass."""
    return f"loss-{nic.name}"


def socket_path(directory, guest):
    return os.path.join(directory, guest.name, "monitor")
