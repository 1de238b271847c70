# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""slow_wire.py DELAY JITTER: an Ethernet whose packets take DELAY milliseconds, each up to JITTER more or less.

A line `NAMESPACE DEVICE` on its standard input makes an interface of that name in that network namespace, which is
plugged into the wire; the answer is `made`. It ends with its input. Packets overtake each other, as with netem."""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_MAX = 65536


class Wire:
    def __init__(self, delay, jitter):
        self.delay, self.jitter = delay / 1000, jitter / 1000
        self.chance = random.Random(1)
        self.ports = []  # a descriptor for each interface
        self.port_of = {}  # by the address of its interface
        self.flying = []  # (when, number, packet, ports)
        self.count = 0

    def plug(self, namespace, device):
        """An interface belongs to the namespace in which it was made; its other end is the descriptor."""
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        setns(there)
        port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        setns(home)
        os.close(home)
        os.close(there)
        self.ports.append(port)

    def take(self, port):
        """One packet from an interface: where it goes to is learnt from where others came from."""
        try:
            packet = os.read(port, FRAME_MAX)
        except BlockingIOError:
            return
        self.port_of[packet[6:12]] = port
        known = self.port_of.get(packet[:6])
        to = [known] if known is not None else [other for other in self.ports if other != port]
        when = time.monotonic() + self.delay + self.chance.uniform(-self.jitter, self.jitter)
        self.count += 1
        heapq.heappush(self.flying, (when, self.count, packet, to))

    def deliver(self):
        while self.flying and self.flying[0][0] <= time.monotonic():
            _, _, packet, to = heapq.heappop(self.flying)
            for port in to:
                try:
                    os.write(port, packet)
                except OSError:  # the interface is down, or its queue full: a packet is lost
                    pass

    def wait(self):
        """Until something is to be done, in milliseconds."""
        return max(0, self.flying[0][0] - time.monotonic()) * 1000 if self.flying else None


def setns(descriptor):
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def main():
    wire = Wire(float(sys.argv[1]), float(sys.argv[2]))
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll(wire.wait()):
            if descriptor != 0:
                wire.take(descriptor)
                continue
            line = os.read(0, 4096).decode().split()
            if not line:
                return
            wire.plug(*line)
            poll.register(wire.ports[-1], select.POLLIN)
            print("made", flush=True)
        wire.deliver()


main()
