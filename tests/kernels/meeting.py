# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Processes on several nodes meet: each says a line, and is told what all have said once all have. Nothing of it goes through a
file system.

    meeting.py ADDRESS PORT COUNT     holds one meeting after the other, each of so many processes, until it is killed

A process says its number first, then anything that is JSON, and hears a list of that, in the order of the numbers."""

import contextlib
import json
import socket
import sys
import threading
import time


class Place:
    """Where one process meets the others."""

    def __init__(self, rank, address, port):
        self.socket = self.connect(address, port)
        self.told, self.heard = self.socket.makefile("w"), self.socket.makefile("r")
        print(rank, file=self.told, flush=True)

    @staticmethod
    def connect(address, port):
        for _ in range(600):
            try:
                return socket.create_connection((address, port))
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{address}: nobody is there to be met")

    def exchange(self, what=None):
        """What all give for it: all have come here by then."""
        print(json.dumps(what), file=self.told, flush=True)
        line = self.heard.readline()
        if not line:
            sys.exit("another process has ended")
        return json.loads(line)


def hold(listener, count):
    """One meeting. It is over for all when one leaves, since the others would wait for that one."""
    streams, places = [], {}
    for _ in range(count):
        stream = listener.accept()[0].makefile("rw")
        streams.append(stream)
        places[int(stream.readline())] = stream
    while all(lines := [places[rank].readline() for rank in sorted(places)]):
        for stream in streams:
            print(f"[{', '.join(line.strip() for line in lines)}]", file=stream, flush=True)
    for stream in streams:
        stream.close()


@contextlib.contextmanager
def held(listener, count, holds=hold):
    """Such a meeting, by a thread, in the block: where it is. The listener is closed after it."""
    def run():
        with contextlib.suppress(OSError, ValueError):  # nobody comes, or not all do
            holds(listener, count)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


if __name__ == "__main__":
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
        while True:
            hold(server, int(sys.argv[3]))
