# SPDX-License-Identifier: Apache-2.0
"""What the rigs on two guests share: a prober in this guest, an agent and a shell in the other (`serve`)."""

import json
import os
import select
import socket
import subprocess
import sys
import time

BUILD = os.environ["GTOPO_BUILD"]
OTHER = "10.9.1.2"  # guest b on the management network of the rig rdma-managed
AGENT_PORT, SHELL_PORT = 7000, 7001

# What rdma_rxe (6.1) may say of packets that come again, to perftest as to us: between two busy guests, with nothing
# lost, `ib_write_bw -s 65536 -n 2000 -u 12` ended with it (status 9) in three of seven runs.
RXE_FAILURE = "remote invalid request error"


def other(command, timeout_s=20):
    """Run a shell command in the other guest; its output."""
    with socket.create_connection((OTHER, SHELL_PORT), timeout=timeout_s) as connection:
        connection.sendall(command.encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def here(command):
    return subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout


def until(what, holds, timeout_s=20):
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"rig: {what}: not within {timeout_s} s")
        time.sleep(0.05)


class Prober:
    """tests/rig/prober as a process that lives for many probes."""

    def __init__(self, wrapper=(), **environment):
        self.process = subprocess.Popen([*wrapper, f"{BUILD}/tests/rig/prober"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, **environment})

    def ask(self, **options):
        request = {"peer": f"{OTHER}:{AGENT_PORT}", **{key.replace("__", "."): value for key, value in options.items()}}
        line = " ".join(f"{key}={value}" for key, value in request.items()) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def answer(self, timeout_s):
        """The answer, or None when none came in time."""
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else sys.exit(f"rig: the prober ended with {self.process.wait()}")

    def probe(self, timeout_s=60, **options):
        self.ask(**options)
        return self.answer(timeout_s) or sys.exit(f"rig: no answer within {timeout_s} s")

    def stands(self):
        """Where each thread is in the kernel, for when no answer comes."""
        return here(f"head -n 20 /proc/{self.process.pid}/task/*/stack")

    def end(self):
        """The exit status; sanitizers and valgrind say theirs with it."""
        self.process.stdin.close()
        return self.process.wait(timeout=120)


class Checks:
    """TAP lines."""

    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, holds, detail=""):
        self.count += 1
        self.failed += not holds
        print(f"{'ok' if holds else 'not ok'} {self.count} - {name}")
        if not holds and detail:
            print("\n".join("# " + line for line in str(detail).splitlines()))
        sys.stdout.flush()

    def finish(self):
        print(f"{self.count - self.failed} passed, {self.failed} failed, 0 skipped")
        sys.exit(1 if self.failed else 0)
