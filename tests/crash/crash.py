#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""crash.py [options] MODE KILLS: kills what MODE says so many times, looks after each kill, and prints its figures.

What is found is said, with the place of the root and the logs, which stay; the exit status is 1 then."""

import argparse
import pathlib
import sys
import tempfile
import time

import ground
import rounds
from oracle import Failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=sorted(rounds.MODES))
    parser.add_argument("kills", type=int)
    parser.add_argument("--nodes", type=int, default=1, help="of the session; 0: a plain directory, without shunt")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    parser.add_argument("--placement", default="branch", choices=["auto", "branch"])
    parser.add_argument("--leaf-full", type=int, help="how many names a leaf takes")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--cephfs", action="store_true", help="on a CephFS of its own, with a mount for each node")
    parser.add_argument("--area", type=pathlib.Path, help="a directory on the file system under test", default="/dev/shm")
    return parser.parse_args()


def place_for(options, area):
    base = ground.OnCephFS if options.cephfs else ground.Area
    if options.nodes == 0:
        return ground.Ground(options.build.resolve(), area, base)
    more = {"SHUNT_LEAF_FULL": str(options.leaf_full)} if options.leaf_full else {}
    nodes = [f"n{number}" for number in range(1, options.nodes + 1)]
    return ground.Served(options.build.resolve(), area, nodes, options.placement, base, **more)


def main():
    options = arguments()
    area = tempfile.mkdtemp(prefix="shunt-crash.", dir=options.area)
    place = place_for(options, area)
    mode = rounds.MODES[options.mode](place, options.seed, lambda text: print(f"\r{text}", end="", file=sys.stderr))
    where = " on CephFS" if options.cephfs else ""
    how = f"crash {options.mode}, {options.nodes} nodes{where}, placement {options.placement}, seed {options.seed}"
    try:
        mode.run(options.kills)
    except Failed as failure:
        place.end_all()
        print(f"\n{how}: FAILED after {mode.figures}, see {area}\n{failure}")
        return 1
    finally:
        place.base.finish()
    print(f"\n{how}: {mode.figures}: nothing lost")
    place.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
