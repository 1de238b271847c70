# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes as network namespaces: each has an interface and an address of its own, and reaches the others by a wire alone.

The wire is a bridge. A slow one delays each packet by its own time, so that packets overtake each other: by the kernel's
netem, or, where the kernel was built without that, by wire.py, which does the same; that is also the one which can be
cut. Nothing of it touches the network of the machine. Needs the superuser, and iproute2."""

import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
from dataclasses import astuple, dataclass

DEVICE = "wire0"
WIRE = pathlib.Path(__file__).with_name("wire.py")
DELAY, JITTER = 2, 1  # milliseconds, in each direction
NUMBERS = itertools.count()
NODES_MAX = 99


def works(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def what_is_missing():
    """Why there can be no namespaces here, or None."""
    return None if works("unshare", "--net", "true") else "network namespaces are not allowed here"


def ip(*words, lines=()):
    done = subprocess.run(["ip", *map(str, words)], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(map(str, words))}: {done.stderr}"


@dataclass
class Packets:
    """What became of them."""

    came: int
    lost: int
    overtaken: int
    resets: int

    def __sub__(self, before):
        return Packets(*(now - then for now, then in zip(astuple(self), astuple(before))))


class Wire:
    """wire.py at work."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, WIRE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        return Packets(*map(int, self.process.stdout.readline().split()))

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


class OneHost:
    """No network at all: the nodes are daemons of one host."""

    is_slow = False

    def into(self, _node):
        """What is put before a command that is to run on a node."""
        return []

    def settings(self, _node):
        return {"SHUNT_FABRIC": "tcp"}

    def end(self):
        pass


class Network:
    """Nodes are made as they are asked for."""

    def __init__(self, is_slow=False, wire=None):
        self.name = f"shunt-{os.getpid()}-{next(NUMBERS)}"
        self.numbers = {}
        self.is_slow = is_slow
        has_netem = works("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        self.wire = Wire() if is_slow and not has_netem else wire
        if is_slow and not has_netem:
            self.wire.tell("delay", DELAY, JITTER)
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.name, "link", "set", "bridge", "up")

    def namespace(self, node):
        return f"{self.name}-{node}"

    def address(self, node):
        return f"10.77.0.{self.numbers[node]}"

    def set_addresses(self, node):
        """All neighbours are told beforehand: those that are asked for, of all namespaces together, the kernel counts up
        to a limit (net.ipv4.neigh.default.gc_thresh3, 1024), which is that of 32 nodes."""
        number = self.numbers[node]
        neighbours = [other for other in range(1, NODES_MAX + 1) if other != number]
        ip("-n", self.namespace(node), "-batch", "-",
           lines=[f"link set {DEVICE} address 02:00:00:00:00:{number:02}", f"link set {DEVICE} up",
                  f"address add {self.address(node)}/16 dev {DEVICE}",
                  *(f"neighbour add 10.77.0.{other} lladdr 02:00:00:00:00:{other:02} dev {DEVICE} nud permanent"
                    for other in neighbours)])

    def add_interface(self, node):
        if self.wire is not None:
            self.wire.tell("plug", self.namespace(node), DEVICE)
            return
        port = f"port{self.numbers[node]}"
        ip("-n", self.name, "link", "add", port, "type", "veth", "peer", "name", DEVICE, "netns", self.namespace(node))
        ip("-n", self.name, "link", "set", port, "up", "master", "bridge")
        if self.is_slow:
            subprocess.run(["tc", "-n", self.namespace(node), "qdisc", "add", "dev", DEVICE, "root", "netem",
                            "delay", f"{DELAY}ms", f"{JITTER}ms"], check=True)

    def add(self, node):
        self.numbers[node] = len(self.numbers) + 1
        ip("netns", "add", self.namespace(node))
        self.add_interface(node)
        self.set_addresses(node)

    def into(self, node):
        if node not in self.numbers:
            self.add(node)
        return ["nsenter", f"--net=/run/netns/{self.namespace(node)}", "--"]

    def settings(self, node):
        """By interface, and by address, in turn."""
        where = DEVICE if self.numbers[node] % 2 else self.address(node)
        return {"SHUNT_FABRIC": f"tcp:{where}"}

    def end(self):
        if self.wire is not None:
            self.wire.end()
        for node in self.numbers:
            with contextlib.suppress(AssertionError):
                ip("netns", "delete", self.namespace(node))
        ip("netns", "delete", self.name)


class SeveralNetworks(Network):
    """Nodes with an interface that has the same address on each of them, as a container runtime's bridge, and one that no
    other node reaches, as for management; both come before the wire, which no setting names.

    `wire`: "same" subnet for all nodes; "routed": each in one of its own; "ipv6": no IPv4 but on the other interfaces."""

    def __init__(self, wire):
        super().__init__()
        self.of_wire = wire

    def add_interface(self, node):
        number = self.numbers[node]
        ip("-n", self.namespace(node), "-batch", "-",
           lines=["link set lo up", "link add docker0 type bridge", "address add 172.17.0.1/16 dev docker0",
                  "link add admin0 type bridge", f"address add 10.99.{number}.5/24 dev admin0",
                  "link set docker0 up", "link set admin0 up"])
        super().add_interface(node)

    def address(self, node):
        number = self.numbers[node]
        return f"fd00:77::{number:x}" if self.of_wire == "ipv6" else f"10.77.0.{number}"

    def set_addresses(self, node):
        """What is for nowhere goes over the wire, where nobody answers."""
        prefix = {"same": "/24", "routed": "/32", "ipv6": "/64 nodad"}[self.of_wire]
        routes = ["route add 10.77.0.0/16 dev " + DEVICE] if self.of_wire == "routed" else []
        default = [] if self.of_wire == "ipv6" else ["route add default dev " + DEVICE]
        ip("-n", self.namespace(node), "-batch", "-",
           lines=[f"link set {DEVICE} up", f"address add {self.address(node)}{prefix} dev {DEVICE}", *routes, *default])

    def settings(self, _node):
        return {"SHUNT_FABRIC": "tcp"}


def what_cannot_fail():
    """Why there can be no FailingNetwork here, or None."""
    return what_is_missing() or (None if os.path.exists("/dev/net/tun") else "there is no /dev/net/tun")


class FailingNetwork(Network):
    """Between its nodes packets are lost, and connections break, as long as a test says so."""

    def __init__(self):
        super().__init__(wire=Wire())

    def count(self):
        return self.wire.tell("count")

    def seen_by_tcp(self, node, name):
        """A counter of the node's kernel, as in /proc/net/snmp and netstat: by turns a line of names and one of values."""
        words = [*self.into(node), "cat", "/proc/net/snmp", "/proc/net/netstat"]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        lines = [line.split() for line in text.splitlines() if line.startswith("Tcp")]
        return next(int(values[names.index(name)]) for names, values in zip(lines[::2], lines[1::2]) if name in names)

    @contextlib.contextmanager
    def telling(self, words, until):
        """What wire.py is told, and what to undo it."""
        self.wire.tell(*words)
        try:
            yield
        finally:
            self.wire.tell(*until)

    def overtaken(self):
        return self.telling(["delay", 1, 1], ["delay", 0, 0])

    def broken(self, every):
        """By each so many-th packet."""
        return self.telling(["reset", every], ["reset", 0])

    @contextlib.contextmanager
    def lossy(self, share=1, is_on=lambda sender, receiver: True):
        ways = [way for way in itertools.permutations(self.numbers, 2) if is_on(*way)]
        with contextlib.ExitStack() as stack:
            for sender, receiver in ways:
                words = ["lose", self.namespace(sender), self.namespace(receiver)]
                stack.enter_context(self.telling([*words, share], [*words, 0]))
            yield

    def isolated(self, node):
        return self.lossy(is_on=lambda sender, receiver: node in (sender, receiver))

    def mute(self, node):
        """Hears the others, which do not hear it."""
        return self.lossy(is_on=lambda sender, _: node == sender)

    def deaf(self, node):
        return self.lossy(is_on=lambda _, receiver: node == receiver)

    def parted(self, node):
        """From one other alone, which all the rest reach, too."""
        other = next(other for other in self.numbers if other != node)
        return self.lossy(is_on=lambda *way: set(way) == {node, other})

    @contextlib.contextmanager
    def link_down(self, node):
        """Its kernel knows that there is no way any more, and forgets what it knew of its neighbours."""
        ip("-n", self.namespace(node), "link", "set", DEVICE, "down")
        try:
            yield
        finally:
            ip("-n", self.namespace(node), "link", "set", DEVICE, "up")


NETWORKS = {"host": OneHost, "network": Network, "slow": lambda: Network(is_slow=True)}
# These a test asks for by name.
SEVERAL_NETWORKS = {"same": lambda: SeveralNetworks("same"), "routed": lambda: SeveralNetworks("routed"),
                    "ipv6": lambda: SeveralNetworks("ipv6")}
