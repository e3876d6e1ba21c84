# SPDX-License-Identifier: Apache-2.0
"""Rig files: what is in a rig, and the parser that reads it.

A rig file is read line by line: a keyword, then its values. Lines after a
`guest` line describe that guest. README.md lists the keywords. Every error
names file:line and says what was expected.
"""

import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional

from . import EXIT_USAGE, LAB_DIR, LabError

RIG_DIR = os.path.join(LAB_DIR, "rigs")
NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")  # 15 characters: the longest name of a Linux netdev


@dataclass
class Nic:
    name: str
    model: str = "virtio"
    on: Optional[str] = None
    cable: Optional[str] = None
    mtu: int = 1500
    address: Optional[str] = None
    state: str = "up"
    rxe: Optional[str] = None


@dataclass
class Nvme:
    name: str
    on: Optional[str] = None
    size: int = 16


@dataclass
class Gpu:
    name: str
    on: Optional[str] = None


@dataclass
class HostBridge:
    name: str
    node: int = 0


@dataclass
class Switch:
    name: str
    on: Optional[str] = None


@dataclass
class Guest:
    name: str
    line: int
    memory: int = 1024
    cpus: int = 2
    sockets: int = 1
    nodes: int = 1
    devices: List[object] = field(default_factory=list)  # in the order of the file
    setup: List[str] = field(default_factory=list)

    def of_kind(self, kind):
        return [device for device in self.devices if isinstance(device, kind)]

    @property
    def nics(self):
        return self.of_kind(Nic)


@dataclass
class Rig:
    name: str
    about: str = ""
    deadline: int = 60
    guests: List[Guest] = field(default_factory=list)

    def guest(self, name):
        for guest in self.guests:
            if guest.name == name:
                return guest
        known = ", ".join(guest.name for guest in self.guests)
        raise LabError(EXIT_USAGE, f"rig {self.name} has no guest '{name}'; its guests: {known}")


class Complaint(Exception):
    """What is wrong with a line; parse() adds file and line."""


def a_name(text):
    if not NAME.fullmatch(text):
        raise Complaint(f"'{text}' is not a name (a letter, then letters, digits, '-'; at most 15)")
    return text


def a_number(low, high):
    def read(text):
        if not text.isdigit() or not low <= int(text) <= high:
            raise Complaint(f"'{text}' is not a number from {low} to {high}")
        return int(text)
    return read


def one_of(*words):
    def read(text):
        if text not in words:
            raise Complaint(f"'{text}' is none of: {', '.join(words)}")
        return text
    return read


def an_address(text):
    try:
        if "/" in text:
            return str(ipaddress.IPv4Interface(text))
    except ValueError:
        pass
    raise Complaint(f"'{text}' is not an IPv4 address with prefix length, like 10.9.0.1/24")


@dataclass
class DeviceKind:
    make: Callable
    options: Dict[str, Callable]


DEVICES = {
    "host-bridge": DeviceKind(HostBridge, {"node": a_number(0, 7)}),
    "switch": DeviceKind(Switch, {"on": a_name}),
    "gpu": DeviceKind(Gpu, {"on": a_name}),
    "nvme": DeviceKind(Nvme, {"on": a_name, "size": a_number(1, 4096)}),
    "nic": DeviceKind(Nic, {
        "model": one_of("virtio", "e1000e"), "on": a_name, "cable": a_name,
        "mtu": a_number(68, 9000), "address": an_address,
        "state": one_of("up", "down"), "rxe": a_name}),
}
GUEST_NUMBERS = {"memory": a_number(256, 65536), "cpus": a_number(1, 64),
                 "sockets": a_number(1, 8), "nodes": a_number(1, 8)}
RIG_WORDS = ["about", "deadline", "guest"]
GUEST_WORDS = sorted([*GUEST_NUMBERS, *DEVICES, "setup"])


def read_device(keyword, rest, guest):
    """`nic eth0 key=value ...` -> Nic; names are unique within the guest."""
    name, *options = rest.split() or [""]
    kind = DEVICES[keyword]
    device = kind.make(a_name(name))
    if name in [other.name for other in guest.devices]:
        raise Complaint(f"guest {guest.name} already has a device '{name}'")
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or key not in kind.options:
            raise Complaint(f"'{option}' is not an option of {keyword}; "
                            f"it takes: {', '.join(k + '=' for k in sorted(kind.options))}")
        setattr(device, key, kind.options[key](value))
    check_place(device, guest)
    return device


def check_place(device, guest):
    """A device sits on a host bridge or switch named further up, or on the root bus."""
    if isinstance(device, HostBridge):
        if device.node >= guest.nodes:
            raise Complaint(f"node={device.node}, but guest {guest.name} has {guest.nodes} NUMA "
                            "node(s); 'nodes' must stand before 'host-bridge'")
        return
    places = [d.name for d in guest.of_kind(HostBridge) + guest.of_kind(Switch)]
    if device.on is None and isinstance(device, Switch):
        raise Complaint(f"switch {device.name} needs on=HOST-BRIDGE or on=SWITCH")
    if device.on is not None and device.on not in places:
        raise Complaint(f"on={device.on}: no host-bridge or switch of that name further up in guest "
                        f"{guest.name}")


def read_guest_line(guest, keyword, rest):
    if keyword in GUEST_NUMBERS:
        setattr(guest, keyword, GUEST_NUMBERS[keyword](rest))
    elif keyword in DEVICES:
        guest.devices.append(read_device(keyword, rest, guest))
    elif keyword == "setup":
        if not rest:
            raise Complaint("'setup' needs a shell command")
        guest.setup.append(rest)
    else:
        raise Complaint(f"unknown keyword '{keyword}'; expected one of: "
                        f"{', '.join(RIG_WORDS + GUEST_WORDS)}")


def read_line(rig, number, line):
    keyword, _, rest = line.partition(" ")
    rest = rest.strip()
    if keyword == "about":
        rig.about = rest
    elif keyword == "deadline":
        rig.deadline = a_number(1, 3600)(rest)
    elif keyword == "guest":
        if a_name(rest) in [guest.name for guest in rig.guests]:
            raise Complaint(f"there is already a guest '{rest}'")
        rig.guests.append(Guest(rest, number))
    elif rig.guests:
        read_guest_line(rig.guests[-1], keyword, rest)
    else:
        raise Complaint(f"'{keyword}' must stand after a 'guest' line; "
                        f"before it: {', '.join(RIG_WORDS)}")


def check_guest(guest):
    for what, parts in (("cpus", guest.sockets), ("cpus", guest.nodes), ("memory", guest.nodes)):
        if getattr(guest, what) % parts:
            raise Complaint(f"guest {guest.name}: {what} {getattr(guest, what)} cannot be divided "
                            f"evenly among {parts}")


def parse(path):
    """Read a rig file; LabError with file:line on the first mistake."""
    name = os.path.basename(path)[:-len(".rig")] if path.endswith(".rig") else os.path.basename(path)
    rig = Rig(name)
    number = 0
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.strip().replace("\t", " ")
                if line and not line.startswith("#"):
                    read_line(rig, number, line)
        if not rig.about:
            raise Complaint("the file has no 'about' line")
        if not rig.guests:
            raise Complaint("the file has no 'guest' line")
        for guest in rig.guests:
            number = guest.line
            check_guest(guest)
    except Complaint as complaint:
        raise LabError(EXIT_USAGE, f"{path}:{number}: {complaint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(EXIT_USAGE, f"cannot read rig file {path}: {error}") from None
    return rig


def rig_names():
    return sorted(name[:-len(".rig")] for name in os.listdir(RIG_DIR) if name.endswith(".rig"))


def find(rig):
    """A rig by its name, or by the path of its file when there is a '/' in it."""
    if "/" in rig:
        return parse(rig)
    if rig not in rig_names():
        raise LabError(EXIT_USAGE, f"unknown rig '{rig}'; the rigs are: {', '.join(rig_names())} "
                                   "(a path with '/' names a rig file)")
    return parse(os.path.join(RIG_DIR, rig + ".rig"))
