# SPDX-License-Identifier: Apache-2.0
"""One run of a rig: boot its guests, run their commands, bring back what they wrote.

The run's directory is on the host and, over 9p, in every guest at /run/lab:

    hosts, signals/           for all guests
    requests/                 what guests ask of the host, see monitor.py
    go                        appears when every guest is ready: commands start
    GUEST/start setup command                       from the host
    GUEST/ready failed stdout stderr status out/    from the guest
    GUEST/console qemu                              logs
    GUEST/monitor                                   qemu's, for the host
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

from . import EXIT_BROKEN, EXIT_DEADLINE, LAB_DIR, LabError, machine, monitor, parts

TAIL_LINES = 40
POLL_S = 0.02
BOOT_S = 100  # about 10 on an idle machine; a guest that takes longer stands still


class Follower:
    """Copies a growing file to a binary stream; with a prefix, line by line."""

    def __init__(self, path, stream, prefix=b""):
        self.path = path
        self.stream = stream
        self.prefix = prefix
        self.file = None
        self.rest = b""

    def copy(self, last=False):
        if self.file is None and os.path.exists(self.path):
            self.file = open(self.path, "rb")
        data = self.file.read() if self.file else b""
        if self.prefix:
            data = self.prefixed(data, last)
        if data:
            self.stream.write(data)
            self.stream.flush()
        if last and self.file:
            self.file.close()

    def prefixed(self, data, last):
        *lines, self.rest = (self.rest + data).split(b"\n")
        if last and self.rest:
            lines.append(self.rest)
        return b"".join(self.prefix + line + b"\n" for line in lines)


class GuestRun:
    """One guest of the run: its folder and its qemu."""

    def __init__(self, guest, directory, command):
        self.guest = guest
        self.name = guest.name
        self.folder = os.path.join(directory, guest.name)
        self.command = command
        self.process = None
        self.followers = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def has(self, name):
        return os.path.exists(self.path(name))

    def status(self):
        with open(self.path("status"), encoding="ascii") as file:
            return int(file.read())

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def fill_folder(self, rig, host_parts, environment):
        os.makedirs(self.path("out"))
        shutil.copy(os.path.join(LAB_DIR, "guest", "start"), self.path("start"))
        self.write("setup", machine.setup_script(rig, self.guest, host_parts.modules))
        if self.command is not None:
            exports = dict(environment, OUT=f"/run/lab/{self.name}/out")
            self.write("command", "".join(f"export {key}={shlex.quote(value)}\n"
                                          for key, value in exports.items()) +
                       f"cd {shlex.quote(os.getcwd())} || exit\n{self.command}\n")

    def boot(self, arguments, files):
        """Start qemu, which inherits the open `files`."""
        # The signal at the parent's death leaves no guest behind even when this process is killed.
        argv = [parts.program("setpriv"), "--pdeathsig", "KILL", parts.program("qemu-system-x86_64"),
                *arguments]
        with open(self.path("qemu"), "wb") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=files, start_new_session=True)

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stands(self):
        return "".join(f"{self.name} monitor| {line}\n" for line in monitor.stands(self.path("monitor")))

    def logs(self):
        """What qemu said, and the last lines of the console."""
        text = ""
        for name in ("qemu", "console"):
            if self.has(name):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    lines = [line.rstrip() for line in file][-TAIL_LINES:]
                text += "".join(f"{self.name} {name}| {line}\n" for line in lines)
        return text


class Session:
    """Runs `commands` (guest name: shell text) on a rig; a context manager that ends all guests."""

    def __init__(self, rig, directory, commands, options):
        self.rig = rig
        self.directory = directory
        self.options = options
        self.deadline = options.deadline or rig.deadline
        self.begun = time.monotonic()
        self.runs = [GuestRun(guest, directory, commands.get(guest.name)) for guest in rig.guests]
        self.busy = [run for run in self.runs if run.command is not None]
        self.requests = monitor.Requests(rig, directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for run in self.runs:
            run.kill()

    def boot(self, host_parts, environment):
        """Start every guest, wait until all are ready."""
        os.makedirs(os.path.join(self.directory, "signals"))
        with open(os.path.join(self.directory, "hosts"), "w", encoding="ascii") as file:
            file.write(machine.hosts_file(self.rig))
        for run in self.runs:
            run.fill_folder(self.rig, host_parts, environment)
            if self.options.console:
                run.followers.append(Follower(run.path("console"), sys.stderr.buffer,
                                              f"{run.name} console| ".encode()))
        with machine.Cables(self.rig) as cables:
            for run in self.runs:
                run.boot(machine.qemu_arguments(self.rig, run.guest, host_parts, cables, self.directory),
                         cables.files(run.guest))
        self.wait("did not come up", lambda: all(run.has("ready") for run in self.runs), min(self.deadline, BOOT_S))

    def run(self):
        """Let the commands go; the first exit status that is not 0, in the order of the guests."""
        for run in self.busy:
            prefix = f"{run.name}| ".encode() if len(self.busy) > 1 else b""
            run.followers += [Follower(run.path("stdout"), sys.stdout.buffer, prefix),
                              Follower(run.path("stderr"), sys.stderr.buffer, prefix)]
        with open(os.path.join(self.directory, "go"), "w", encoding="ascii"):
            pass
        try:
            self.wait("did not finish", lambda: all(run.has("status") for run in self.busy), self.deadline)
        finally:
            self.copy_output(last=True)
        return next((run.status() for run in self.busy if run.status()), 0)

    def copy_output(self, last=False):
        for run in self.runs:
            for follower in run.followers:
                follower.copy(last)

    def wait(self, trouble, done, deadline):
        """Until done(); LabError when a guest ends or fails, or `deadline` seconds after the run began."""
        while not done():
            self.copy_output()
            self.requests.serve()
            for run in self.runs:
                if run.has("failed") or (run.process and run.process.poll() is not None):
                    raise LabError(EXIT_BROKEN, f"guest {run.name} of rig {self.rig.name} failed; "
                                                "its console is above", run.logs())
            if time.monotonic() >= self.begun + deadline:
                late = [run for run in self.runs if not run.has("ready")] \
                    or [run for run in self.busy if not run.has("status")]
                raise LabError(EXIT_DEADLINE,
                               f"rig {self.rig.name} {trouble} within {deadline} s: guest "
                               f"{', '.join(run.name for run in late)}; the console is above",
                               "".join(run.logs() + run.stands() for run in late))
            time.sleep(POLL_S)

    def bring_back(self, target):
        """Copy $OUT of the guests to `target`; with several commands a folder and the streams of each."""
        several = len(self.busy) > 1
        for run in self.busy:
            folder = os.path.join(target, run.name) if several else target
            try:
                shutil.copytree(run.path("out"), folder, symlinks=True, dirs_exist_ok=True)
            except (OSError, shutil.Error) as error:
                raise LabError(EXIT_BROKEN, f"cannot bring back the files of guest {run.name}: {error}") \
                    from None
            if several:
                for name in ("stdout", "stderr", "status"):
                    if run.has(name):
                        shutil.copy(run.path(name), os.path.join(target, f"{run.name}.{name}"))
