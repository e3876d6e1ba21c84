# SPDX-License-Identifier: Apache-2.0
"""The qemu command line of a guest, and the guest's setup script, from the rig."""

import os
import shlex
import socket

from . import LAB_DIR, monitor
from .spec import Gpu, HostBridge, Nic, Nvme, Switch

BUSES_PER_BRIDGE = 32  # bus numbers set aside for each PCIe host bridge
NIC_MODELS = {"virtio": "virtio-net-pci", "e1000e": "e1000e"}
NIC_MODULES = {"virtio": "virtio_net", "e1000e": "e1000e"}
GPU_MODEL = "bochs-display"  # a display; guest/start makes a GPU of it
RDMA_MODULES = ["rdma_rxe", "rdma_ucm", "ib_uverbs"]


def mac(rig, guest, nic):
    return f"52:54:00:00:{rig.guests.index(guest) + 1:02x}:{guest.nics.index(nic) + 1:02x}"


def quoted(path):
    """A path inside a qemu option, where a comma ends the value."""
    return path.replace(",", ",,")


class Cables:
    """How the NICs of a rig are wired; a context manager that closes this process's ends.

    All ends of a cable inside one guest meet in a qemu hub. Between guests the first guest on the cable is the middle
    of a star, with one pair of sockets per other guest. They do not block, and qemu (7.2) is given them rather than a
    path to listen at: it leaves what it accepts blocking, and a guest that sends to one that does not read (frozen, or
    its port down) then stands still itself, until the other reads.
    """

    def __init__(self, rig):
        self.guests_on = {}  # cable name: guest names
        for guest in rig.guests:
            for nic in guest.nics:
                on = self.guests_on.setdefault(self.cable_of(guest, nic), [])
                if guest.name not in on:
                    on.append(guest.name)
        self.sockets = {}  # (cable name, guest name): the guest's sockets to the others on the cable
        for cable, (first, *others) in self.guests_on.items():
            for other in others:
                for name, end in zip((first, other), socket.socketpair(socket.AF_UNIX)):
                    end.setblocking(False)
                    self.sockets.setdefault((cable, name), []).append(end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for ends in self.sockets.values():
            for end in ends:
                end.close()

    @staticmethod
    def cable_of(guest, nic):
        """A NIC without a cable has one of its own (with a '.', which no rig file can name)."""
        return nic.cable or f"{guest.name}.{nic.name}"

    def files(self, guest):
        """The numbers of the open files that this guest's qemu is to inherit."""
        return [end.fileno() for (_, name), ends in self.sockets.items() if name == guest.name for end in ends]

    def netdevs(self, guest):
        """qemu arguments for all cables of a guest."""
        arguments = []
        for number, cable in enumerate(dict.fromkeys(self.cable_of(guest, nic) for nic in guest.nics)):
            ends = [f"net-{nic.name}" for nic in guest.nics if self.cable_of(guest, nic) == cable]
            streams = [f"server=off,addr.type=fd,addr.str={end.fileno()}"
                       for end in self.sockets.get((cable, guest.name), ())]
            if len(ends) == len(streams) == 1:  # one to one, as most cables are: a hub would cost a third of the speed
                arguments += ["-netdev", f"stream,id={ends[0]},{streams[0]}"]
                continue
            for index, stream in enumerate(streams):
                name = f"stream{number}-{index}"
                arguments += ["-netdev", f"stream,id={name},{stream}",
                              "-netdev", f"hubport,id=hub-{name},hubid={number},netdev={name}"]
            for end in ends:
                arguments += ["-netdev", f"hubport,id={end},hubid={number}"]
        return arguments


class PciTree:
    """Places devices: each on a port of its own under the host bridge or switch it names."""

    def __init__(self, nodes):
        self.nodes = nodes  # NUMA nodes of the guest; QEMU takes none of a bridge where there is one
        self.arguments = []
        self.kinds = {}  # name of a place: HostBridge or Switch
        self.ports = 0

    def add_host_bridge(self, bridge):
        self.kinds[bridge.name] = HostBridge
        bus = BUSES_PER_BRIDGE * len([k for k in self.kinds.values() if k is HostBridge])
        node = f",numa_node={bridge.node}" if self.nodes > 1 else ""
        self.arguments += ["-device", f"pxb-pcie,id={bridge.name},bus=pcie.0,bus_nr={bus}{node}"]

    def port_under(self, place):
        """A new port; returns the bus to put one device on."""
        if place is None:
            return "pcie.0"
        self.ports += 1
        model = "pcie-root-port" if self.kinds[place] is HostBridge else "xio3130-downstream"
        port = f"port{self.ports}"
        self.arguments += ["-device", f"{model},id={port},bus={place},chassis={self.ports},"
                                      f"slot={self.ports}"]
        return port

    def add_switch(self, switch):
        bus = self.port_under(switch.on)
        self.kinds[switch.name] = Switch
        self.arguments += ["-device", f"x3130-upstream,id={switch.name},bus={bus}"]

    def add_endpoint(self, device, model):
        self.arguments += ["-device", f"{model},bus={self.port_under(device.on)}"]


def losses(guest):
    """Each NIC's way for `lab-trouble lose`: what passes goes to a device that forgets it."""
    return [word for nic in guest.nics for word in (
        "-chardev", f"null,id=nowhere-{nic.name}",
        "-object", f"filter-redirector,id={monitor.loss_name(nic)},netdev=net-{nic.name},queue=all,status=off,"
                   f"outdev=nowhere-{nic.name}")]


def nic_model(rig, guest, nic):
    model = f"{NIC_MODELS[nic.model]},netdev=net-{nic.name},mac={mac(rig, guest, nic)}"
    return f"{model},host_mtu={nic.mtu}" if nic.model == "virtio" else model


def devices(rig, guest, directory):
    tree = PciTree(guest.nodes)
    drives = []
    for device in guest.devices:
        if isinstance(device, HostBridge):
            tree.add_host_bridge(device)
        elif isinstance(device, Switch):
            tree.add_switch(device)
        elif isinstance(device, Nic):
            tree.add_endpoint(device, nic_model(rig, guest, device))
        elif isinstance(device, Gpu):
            tree.add_endpoint(device, GPU_MODEL)
        elif isinstance(device, Nvme):
            image = os.path.join(directory, device.name + ".img")
            with open(image, "wb") as file:
                file.truncate(device.size << 20)
            drives += ["-drive", f"if=none,format=raw,id=drive-{device.name},file={quoted(image)}"]
            tree.add_endpoint(device, f"nvme,drive=drive-{device.name},serial={device.name}")
    return drives + tree.arguments


def processors_and_memory(guest):
    arguments = ["-smp", f"cpus={guest.cpus},sockets={guest.sockets},"
                         f"cores={guest.cpus // guest.sockets},threads=1", "-m", f"{guest.memory}M"]
    if guest.nodes > 1:
        cpus = guest.cpus // guest.nodes
        for node in range(guest.nodes):
            arguments += ["-object", f"memory-backend-ram,id=memory{node},"
                                     f"size={guest.memory // guest.nodes}M",
                          "-numa", f"node,nodeid={node},memdev=memory{node},"
                                   f"cpus={node * cpus}-{(node + 1) * cpus - 1}"]
    return arguments


def shared(tag, path, options):
    """A 9p share; bus=pcie.0 keeps it out of the rig's own PCIe tree."""
    return ["-fsdev", f"local,id={tag},path={quoted(path)},security_model=none,multidevs=remap{options}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag},bus=pcie.0"]


def qemu_arguments(rig, guest, parts, cables, directory):
    """Arguments for the qemu of one guest; `directory` is the run's share with a folder per guest."""
    own = os.path.join(directory, guest.name)
    return ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none",
            "-qmp", f"unix:{quoted(monitor.socket_path(directory, guest))},server=on,wait=off",
            "-accel", "tcg,thread=multi", "-machine", "q35",
            # The guest takes its time from the cycle counter, which is the host's under TCG. The other
            # clock, an emulated HPET, is as true but 1 us slower to read: too slow to time messages.
            "-cpu", "max,+invtsc",
            *processors_and_memory(guest),
            "-chardev", f"file,id=console,path={quoted(own)}/console", "-serial", "chardev:console",
            "-kernel", parts.kernel, "-initrd", parts.initramfs,
            "-append", f"console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable LAB_GUEST={guest.name}",
            *cables.netdevs(guest), *losses(guest), *devices(rig, guest, own),
            *shared("host", "/", ",readonly=on"), *shared("lab", directory, "")]


def setup_script(rig, guest, modules_dir):
    """The part of guest/start that depends on the rig; its words are functions there."""
    modules = {NIC_MODULES[nic.model] for nic in guest.nics}
    if guest.of_kind(Nvme):
        modules.add("nvme")
    lines = [f"modules {shlex.quote(modules_dir)} {' '.join([*sorted(modules), *RDMA_MODULES])} || return"]
    for nic in guest.nics:
        lines.append(f"nic {nic.name} {mac(rig, guest, nic)} {nic.mtu} {nic.address or '-'} "
                     f"{nic.state} {nic.rxe or '-'} || return")
    if guest.of_kind(Gpu):
        lines.append("gpus || return")
    lines.append(f"PATH={shlex.quote(os.path.join(LAB_DIR, 'guest', 'bin'))}:$PATH")  # lab-trouble
    lines += [f"bash -c {shlex.quote(command)} || return" for command in guest.setup]
    return "\n".join(lines) + "\n"


def hosts_file(rig):
    """Lines for /etc/hosts: each guest by its first address."""
    named = ((guest.name, [nic.address for nic in guest.nics if nic.address]) for guest in rig.guests)
    return "".join(f"{addresses[0].split('/')[0]} {name}\n" for name, addresses in named if addresses)
