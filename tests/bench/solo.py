#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""solo.py [options]: a directory that one node uses: is it left alone, and what does a create cost there?

One process makes files natively and under shunt by turns, each round in a directory of its own, with placement auto: in
a session of one node, and in one of two, where another node's daemon is home of half of the names. Then it is counted
how many files are in a branch: none, or it is no private directory any more."""

import measuring

COUNTS = {"solo-files": (10_000, 200, "files in a round")}


def one_round(crew, files, turn):
    """Microseconds of a create."""
    crew.make("create", 1, prefix=f"first{turn}")
    return crew.microseconds("create", files, prefix=f"r{turn}")


def measure_session(options, nodes):
    with measuring.Area(options) as area:
        area.start(*nodes, placement="auto")
        area.under_shunt("mkdir", area.root / "out")
        crews = {"native": area.crew("bench_worker", area.plain, 1),
                 "shunt": area.crew("bench_worker", area.root / "out", 1, node="n0")}
        ways = {name: lambda turn, crew=crew: one_round(crew, options.solo_files, turn) for name, crew in crews.items()}
        rounds = measuring.alternate(options.rounds, f"a directory of one node, {len(nodes)} in the session", ways)
        return rounds, area.redirected()


def measure(options):
    found = []
    for nodes in (("n0",), ("n0", "n1")):
        rounds, redirected = measure_session(options, nodes)
        who = "one node in the session" if len(nodes) == 1 else f"{len(nodes)} nodes in the session"
        added = [one["shunt"] - one["native"] for one in rounds]
        found += [measuring.Finding(9, f"files redirected, {who}", "", [redirected], most=0),
                  measuring.Finding(9, f"added to a create, {who}", "us", added, most=10)]
    return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
