# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""ring.py ADDRESS PORT ME COUNT WORD...: a process of tests/same that takes turns with others on other nodes. It has the pipes of
its ring (spread.h) here, which are put for the word RING. The turn goes to the next process by way of the holder of the ring (hold),
together with what this process has printed by then. The exit status is the program's."""

import json
import os
import select
import socket
import subprocess
import sys

PRINTED_AT_ONCE = 1 << 16
TURN_MAX = 512  # a write that is as short comes as one piece


class Member:
    """One process of the ring, as the holder sees it."""

    def __init__(self, stream):
        self.socket, self.rest = stream, b""
        # What comes after its number, and may be there by now, stays in the socket for `lines`.
        self.me = int(stream.makefile("rb", buffering=0).readline())

    def lines(self):
        """What it has said since, or None: it has left."""
        read = self.socket.recv(PRINTED_AT_ONCE)
        *lines, self.rest = (self.rest + read).split(b"\n")
        return [json.loads(line) for line in lines] if read else None


def hold(listener, count, out):
    """Sends turns on, and writes down what is printed; ends when all have left, as they do when one has failed."""
    members = {}
    for _ in range(count):
        member = Member(listener.accept()[0])
        members[member.socket] = member
    to = {member.me: member.socket for member in members.values()}
    while members:
        for stream in select.select(list(members), [], [])[0]:
            said = members[stream].lines()
            if said is None:
                members.pop(stream).socket.close()
            for one in said or ():
                if "printed" in one:
                    out.write(bytes.fromhex(one["printed"]))
                elif "failed" in one:  # the others would wait for their turn
                    for member in members.values():
                        member.socket.shutdown(socket.SHUT_RDWR)
                else:
                    to[one["to"]].sendall(bytes.fromhex(one["turn"]))


class Relay:
    def __init__(self, address, port, me, count):
        self.socket = socket.create_connection((address, port))
        self.tell(me)
        self.pipes = [os.pipe() for _ in range(count)]
        self.own = self.pipes[me][1]
        self.others = {pipe[0]: to for to, pipe in enumerate(self.pipes) if to != me}
        self.ends = ",".join(str(end) for pipe in self.pipes for end in pipe)

    def tell(self, what):
        self.socket.sendall(json.dumps(what).encode() + b"\n")

    def drain(self, out):
        """What has been printed so far; false at its end."""
        while select.select([out], [], [], 0)[0]:
            text = os.read(out, PRINTED_AT_ONCE)
            if not text:
                return False
            self.tell({"printed": text.hex()})
        return True

    def run(self, words, me, count):
        words = [f"--ring={me}/{count}:{self.ends}" if word == "RING" else word for word in words]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, cwd="/", pass_fds=[end for pipe in self.pipes for end in pipe])
        out = process.stdout.fileno()
        while True:
            ready = select.select([out, self.socket, *self.others], [], [])[0]
            if self.socket in ready:
                turn = self.socket.recv(TURN_MAX)
                if not turn:
                    process.kill()
                    return 1
                os.write(self.own, turn)
            goes_on = self.drain(out)
            # What was printed before a turn is passed on goes first; one that has ended may have passed it on since.
            for end in (ready if goes_on else select.select(list(self.others), [], [], 0)[0]):
                if end in self.others:
                    self.tell({"to": self.others[end], "turn": os.read(end, TURN_MAX).hex()})
            if not goes_on:
                if process.wait() != 0:
                    self.tell({"failed": process.returncode})
                return process.returncode


def main():
    address, port, me, count, *words = sys.argv[1:]
    sys.exit(Relay(address, int(port), int(me), int(count)).run(words, int(me), int(count)))


if __name__ == "__main__":
    main()
