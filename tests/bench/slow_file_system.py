# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""slow_file_system.py MICROSECONDS DIRECTORY [look]: mounts a small file system there that needs so long for each create; with
`look`, for each lookup of a name, and for the opening and each part of a listing.

It is that of tests/node/odd_file_system.py, in memory. But creates by several processes are under way at the same time;
and the kernel may keep what it was told, as the clients of parallel file systems do with what nobody else uses."""

import contextlib
import ctypes
import heapq
import os
import pathlib
import select
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "node"))

from odd_file_system import CREATE, LOOKUP, OPENDIR, READDIR, FileSystem, Node, mounted  # noqa: E402

REQUEST_MAX = 1 << 17
PR_SET_TIMERSLACK = 29


class KnownNode(Node):
    kept = 1_000_000


class Delayed:
    """Answers, each with the time when it is due."""

    def __init__(self):
        self.waiting = []

    def add(self, due, answer):
        heapq.heappush(self.waiting, (due, answer))

    def wait(self):
        """Seconds until the first is due; None: there is none."""
        return max(0, self.waiting[0][0] - time.monotonic()) if self.waiting else None

    def due(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            yield heapq.heappop(self.waiting)[1]


def serve(device, file_system, seconds, slow):
    delayed = Delayed()
    while True:
        if select.select([device], [], [], delayed.wait())[0]:
            came, request = time.monotonic(), os.read(device, REQUEST_MAX)
            answer = file_system.serve(request)
            if answer and struct.unpack_from("<I", request, 4)[0] in slow:
                delayed.add(came + seconds, answer)
            elif answer:
                os.write(device, answer)
        for answer in delayed.due():
            os.write(device, answer)


def main():
    """Until it is unmounted."""
    microseconds, directory, *what = sys.argv[1:]
    slow = (LOOKUP, OPENDIR, READDIR) if what else (CREATE,)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)  # else the kernel is up to 50 us late
    with contextlib.suppress(OSError):
        serve(mounted(directory), FileSystem("none", KnownNode), int(microseconds) / 1e6, slow)


main()
