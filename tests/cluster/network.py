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

    def __init__(self, delay, jitter):
        words = [sys.executable, WIRE, str(delay), str(jitter)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

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
        self.wire = Wire(DELAY, JITTER) if is_slow and not has_netem else wire
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


NETWORKS = {"host": OneHost, "network": Network, "slow": lambda: Network(is_slow=True)}
