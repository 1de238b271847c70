# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""wire.py: an Ethernet that delays packets, loses them, and breaks connections, as it is told.

It reads lines, one at a time, since it answers each, and ends with its input.

    plug NAMESPACE DEVICE    makes an interface of that name in that network namespace, plugged into the wire
    delay MEAN JITTER        packets take MEAN milliseconds, each up to JITTER more or less, so that they overtake each
                             other, as with the kernel's netem
    lose FROM TO SHARE       loses that share (0 to 1) of the packets from one namespace to another
    reset EVERY              makes of each so many-th TCP packet that carries data one that ends its connection; 0: of none
    count                    nothing

The answer is how many packets came through, were lost, were overtaken, and became resets."""

import collections
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_MAX = 65536
ETHERNET, FLAGS, CHECKSUM = 14, 13, 16  # the size of a header; where a TCP header has these
SYN, RST = 0x02, 0x04


def setns(descriptor):
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def data_of_tcp(packet):
    """Where the TCP header of a packet of IPv4 begins, if it carries data; else None."""
    if packet[12:14] != b"\x08\x00" or packet[23] != 6:
        return None
    tcp = ETHERNET + (packet[ETHERNET] & 15) * 4
    size = struct.unpack_from("!H", packet, 16)[0]
    has_data = ETHERNET + size > tcp + (packet[tcp + 12] >> 4) * 4
    return tcp if has_data and not packet[tcp + FLAGS] & SYN else None


def as_reset(packet, tcp):
    """The same with one more flag, and what RFC 1624 makes of its checksum then."""
    changed = bytearray(packet)
    if not changed[tcp + FLAGS] & RST:
        changed[tcp + FLAGS] |= RST
        sum_ = 0xFFFF - struct.unpack_from("!H", packet, tcp + CHECKSUM)[0] + RST
        struct.pack_into("!H", changed, tcp + CHECKSUM, 0xFFFF - (sum_ & 0xFFFF) - (sum_ >> 16))
    return bytes(changed)


class Port:
    """An interface belongs to the namespace in which it was made; its other end is a descriptor."""

    def __init__(self, namespace, device):
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        setns(there)
        self.descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.descriptor, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        setns(home)
        os.close(home)
        os.close(there)
        self.namespace = namespace

    def read(self):
        try:
            return os.read(self.descriptor, FRAME_MAX)
        except OSError:  # there is none, or the interface is down
            return None

    def write(self, packet):
        try:
            os.write(self.descriptor, packet)
        except OSError:  # the interface is down, or its queue full
            return False
        return True


class Wire:
    def __init__(self):
        self.mean = self.jitter = 0
        self.chance = random.Random(1)
        self.ports = {}  # by descriptor
        self.port_of = {}  # by the address of its interface
        self.lost = {}  # shares, by (from, to)
        self.reset_every = self.to_reset = 0
        self.flying = []  # (when, number, packet, way, port)
        self.newest = {}  # the number of the newest packet that has arrived, by (from, to)
        self.number = 0
        self.counts = collections.Counter()
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)

    def is_lost(self, way):
        share = self.lost.get(way, 0)
        return share > 0 and self.chance.random() < share

    def perhaps_reset(self, packet):
        tcp = data_of_tcp(packet) if self.reset_every else None
        if tcp is None:
            return packet
        self.to_reset -= 1
        if self.to_reset > 0:
            return packet
        self.to_reset = self.reset_every
        self.counts["resets"] += 1
        return as_reset(packet, tcp)

    def send(self, packet, way, to):
        if self.is_lost(way):
            self.counts["lost"] += 1
            return
        when = time.monotonic() + self.mean + self.chance.uniform(-self.jitter, self.jitter)
        self.number += 1
        heapq.heappush(self.flying, (when, self.number, self.perhaps_reset(packet), way, to))

    def take(self, port):
        """One packet from an interface: where it goes to is learnt from where others came from."""
        packet = port.read()
        if packet is None:
            return
        self.port_of[packet[6:12]] = port
        known = self.port_of.get(packet[:6])
        for to in [known] if known is not None else [other for other in self.ports.values() if other is not port]:
            self.send(packet, (port.namespace, to.namespace), to)

    def deliver(self):
        while self.flying and self.flying[0][0] <= time.monotonic():
            _, number, packet, way, to = heapq.heappop(self.flying)
            self.counts["came" if to.write(packet) else "lost"] += 1
            self.counts["overtaken"] += number < self.newest.get(way, 0)
            self.newest[way] = max(number, self.newest.get(way, 0))

    def plug(self, namespace, device):
        port = Port(namespace, device)
        self.ports[port.descriptor] = port
        self.poll.register(port.descriptor, select.POLLIN)

    def delay(self, mean, jitter):
        self.mean, self.jitter = float(mean) / 1000, float(jitter) / 1000

    def lose(self, sender, receiver, share):
        self.lost[sender, receiver] = float(share)

    def reset(self, every):
        self.reset_every = self.to_reset = int(every)

    def count(self):
        pass

    def obey(self, verb, *words):
        """What is answered."""
        verbs = {"plug": self.plug, "delay": self.delay, "lose": self.lose, "reset": self.reset, "count": self.count}
        verbs[verb](*words)
        return " ".join(str(self.counts[what]) for what in ("came", "lost", "overtaken", "resets"))

    def wait(self):
        """Until something is to be done, in milliseconds."""
        return max(0, self.flying[0][0] - time.monotonic()) * 1000 if self.flying else None

    def carry(self):
        while True:
            for descriptor, _ in self.poll.poll(self.wait()):
                if descriptor != 0:
                    self.take(self.ports[descriptor])
                    continue
                line = os.read(0, 4096).decode()
                if not line:
                    return
                print(self.obey(*line.split()), flush=True)
            self.deliver()


Wire().carry()
