# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""network_tap.py DEVICE FILE: writes down all packets of an interface, each after its length, until its input ends.

Says `ready` when it listens. read_streams() takes the file apart: what each client has sent to a port over TCP."""

import collections
import select
import socket
import struct
import sys

ALL = 3  # ETH_P_ALL
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6  # which the module does not name


def main(device, file):
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)  # or packets are lost while others have the processors
    listener.bind((device, 0))
    with open(file, "wb") as out:
        print("ready", flush=True)
        while True:
            readable = select.select([listener, sys.stdin], [], [])[0]
            if listener in readable:
                packet = listener.recv(1 << 17)
                out.write(struct.pack("!I", len(packet)) + packet)
            elif readable:
                break
    lost = struct.unpack("II", listener.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    if lost:
        sys.exit(f"{lost} packets were lost")


def segments(recorded):
    """(source port, destination port, sequence, payload, is SYN) of each packet of IPv4 and TCP."""
    at = 0
    while at < len(recorded):
        size = struct.unpack_from("!I", recorded, at)[0]
        packet = recorded[at + 4:at + 4 + size]
        at += 4 + size
        if packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
            continue
        tcp = 14 + (packet[14] & 15) * 4
        total = 14 + struct.unpack_from("!H", packet, 16)[0]
        source, destination, sequence = struct.unpack_from("!HHI", packet, tcp)
        yield source, destination, sequence, packet[tcp + (packet[tcp + 12] >> 4) * 4:total], bool(packet[tcp + 13] & 2)


def read_streams(recorded, port):
    """{the client's port: all bytes that it sent to that port}, of connections that were recorded from their beginning."""
    begun, parts = {}, collections.defaultdict(dict)
    for source, destination, sequence, payload, is_syn in segments(recorded):
        if destination == port and is_syn:
            begun[source] = sequence + 1
        elif destination == port and payload and source in begun:
            parts[source][(sequence - begun[source]) % (1 << 32)] = payload
    return {source: b"".join(part for _, part in sorted(of.items())) for source, of in parts.items()}


def count_segments(recorded, text):
    """{(source port, destination port): how many carry the text, how many there are}"""
    counts = {}
    for source, destination, _, payload, _ in segments(recorded):
        with_text, count = counts.get((source, destination), (0, 0))
        counts[source, destination] = with_text + (text in payload), count + 1
    return counts


if __name__ == "__main__":
    main(*sys.argv[1:])
