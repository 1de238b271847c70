#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""soak.py [options]: mixed load from several nodes for so many minutes, and what their daemons use meanwhile.

Round after round workers of all nodes make, write, rename, link and remove files in a directory of their own, some are
killed, what is there is compared with the oracle, and the directory is removed. After each round it is looked how much
memory, how many descriptors, and how much room for its index each daemon has. What it has at most in the
last third of the time must not be more than it had in the third before, but for a tenth: else it grows, and the exit
status is 1."""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import ground
import rounds
from oracle import Failed

UNITS = {"memory": "KiB", "descriptors": "", "index": "KiB", "file": "KiB", "directories": ""}
LEAST = {"memory": 512, "descriptors": 8, "index": 512, "file": 1024, "directories": 16}  # to be noticed
KILLS = 2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--placement", default="auto", choices=["auto", "branch"])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--area", type=pathlib.Path, help="a directory on the file system under test", default="/dev/shm")
    return parser.parse_args()


def memory_of(pid):
    """Its own. Of the channel it has more and more in sight, up to all 24 MB of it, as processes take one queue pair after the
    other; the file of the index is looked at by itself."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))


def used_by(place, node):
    """What the daemon of a node has at this moment: index is what is in use of its file, whose free pages are the rest."""
    status, = json.loads(place.tool(node, "status", "--root", place.root, "--json"))
    member = next(member for member in status["members"] if member["node"] == node)
    counters = status["counters"]
    return {"memory": memory_of(member["pid"]),
            "descriptors": len(os.listdir(f"/proc/{member['pid']}/fd")),
            "index": counters["index_bytes"] // 1024,
            "file": os.stat(pathlib.Path(member["run_dir"]) / "index").st_blocks // 2,
            "directories": counters["directories"]}


class Soak(rounds.Clients):
    """Few are killed, rounds leave nothing, and what was seen after each is kept: {node: [{what: how much}]}."""

    def __init__(self, *options):
        super().__init__(*options)
        self.seen = {node: [] for node in self.place.nodes}

    def kill_in(self, round_):
        round_.begin_all()
        for _ in range(KILLS):
            round_.live(100 * rounds.LONGEST_LIFE)
            round_.kill_one()
        round_.finish()

    def one_round(self):
        super().one_round()
        round_, _ = self.standing.pop()
        round_.remove()
        for node, seen in self.seen.items():
            seen.append(used_by(self.place, node))

    def run(self, minutes):
        self.place.start()
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until or self.figures.rounds < 6:
            self.one_round()
            self.say(f"{self.figures}")
        self.heal()

    def greatest(self, node, what, third):
        count = len(self.seen[node])
        return max(seen[what] for seen in self.seen[node][third * count // 3:(third + 1) * count // 3])

    def growing(self):
        """[what grows, in words]."""
        found = []
        for node in self.place.nodes:
            for what, unit in UNITS.items():
                first, second, last = (self.greatest(node, what, third) for third in range(3))
                print(f"{node}: {what} at most {first}, {second}, {last} {unit}".rstrip())
                if last > second + max(second // 10, LEAST[what]):
                    found.append(f"{what} of {node}'s daemon")
        return found


def main():
    options = arguments()
    area = tempfile.mkdtemp(prefix="shunt-soak.", dir=options.area)
    nodes = [f"n{number}" for number in range(1, options.nodes + 1)]
    place = ground.Served(options.build.resolve(), area, nodes, options.placement)
    soak = Soak(place, options.seed, lambda text: print(f"\r{text}", end="", file=sys.stderr))
    how = f"soak, {options.nodes} nodes, placement {options.placement}, seed {options.seed}"
    try:
        soak.run(options.minutes)
    except Failed as failure:
        place.end_all()
        print(f"\n{how}: FAILED after {soak.figures}, see {area}\n{failure}")
        return 1
    growing = soak.growing()
    print(f"{how}: {soak.figures}: {'growing: ' + ', '.join(growing) if growing else 'all levels off'}")
    place.finish()
    return 1 if growing else 0


if __name__ == "__main__":
    sys.exit(main())
