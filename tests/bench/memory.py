#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""memory.py [options]: what an index of many names takes, what a waiting thread takes, and what the daemon itself takes.

One process makes files with names of 16 bytes in one directory (one node, placement branch). Then: the bytes in use of
the index, the channel's bytes for each queue pair (a thread that waits has one), and what of the daemon is in memory, without the
pages of the index. Only pages of the channel that were used are in memory, so that is not a queue pair's part of it."""

import os
import pathlib
import struct

import measuring

COUNTS = {"index-names": (1_000_000, 2_000, "names of the index")}
MILLION = 1_000_000
FILL = """
import os, sys
for number in range(int(sys.argv[2])):
    os.close(os.open(f"{sys.argv[1]}/name-{number:011}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
"""


def resident(pid):
    """KiB in memory: {what is mapped: how much}."""
    found, path = {}, None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            path = words[5] if len(words) > 5 else ""
        elif words[0] == "Rss:":
            found[path] = found.get(path, 0) + int(words[1])
    return found


def lane_size(road):
    """KiB; what is in front of the queue pairs is shared out among them."""
    with open(road, "rb") as file:
        _, _, lanes = struct.unpack("QII", file.read(16))  # lib/request/channel.h
    return os.stat(road).st_size / lanes / 1024


def findings(area, names):
    daemon, counters = area.daemons()["n0"], area.status()["counters"]
    mapped = resident(daemon["pid"])
    of_index = sum(size for path, size in mapped.items() if path.endswith("/index"))
    index = counters["index_bytes"] * MILLION / names / 1e6
    yield measuring.Finding(7, f"index, for 1,000,000 names of 16 bytes ({names:,} made)", "MB", [index], most=200)
    yield measuring.Finding(7, "shared memory for a thread", "KiB", [lane_size(pathlib.Path(daemon["run_dir"]) / "channel")],
                            most=64)
    yield measuring.Finding(7, f"shuntd in memory with {names:,} names, without pages of the index", "MB",
                            [(sum(mapped.values()) - of_index) * 1024 / 1e6], most=32)
    yield measuring.Finding(7, "... of that its own data (heap, stacks and other anonymous memory)", "MB",
                            [sum(size for path, size in mapped.items() if not path.startswith("/")) * 1024 / 1e6])


def measure(options):
    names = options.index_names
    with measuring.Area(options) as area:
        area.start()
        (area.root / "out").mkdir()
        measuring.say(f"memory: making {names:,} files")
        area.under_shunt(measuring.PYTHON, "-c", FILL, area.root / "out", names)
        area.must_be_redirected()
        return list(findings(area, names))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
