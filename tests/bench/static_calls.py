#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""static_calls.py [options]: what a call of a statically linked program costs that is answered by a helper (shunt-static).

One process makes files, looks at each, opens it, and removes it: the program linked statically, natively and under shunt, there
in a directory for temporary files, which is in no root, and in one whose files are redirected; and linked as usual, under shunt,
in another such directory; by turns. The kernel places program and helper where it likes."""

import pathlib
import tempfile

import measuring

COUNTS = {"static-files": (5_000, 200, "files in a round of a static program")}
CALLS = ("create", "stat", "open", "unlink")
PROGRAM = "bench_worker_static"
MOST = {"foreign": ("native, foreign", 8), "redirected": ("native", 25)}  # beside what, and us more than that


def one_round(crew, files, turn):
    return {call: crew.microseconds(call, files, prefix=f"r{turn}") for call in CALLS}


def findings(rounds):
    for call in CALLS:
        for where, (beside, most) in MOST.items():
            more = [one[f"static, {where}"][call] - one[f"static, {beside}"][call] for one in rounds]
            yield measuring.Finding(17, f"{call} of a static program, a {where} path: more than natively", "us", more, most=most)
        for way in rounds[0]:
            yield measuring.Finding(17, f"{call}, {way}", "us", [one[way][call] for one in rounds])


def measure(options):
    if not (options.build / "tests" / "bench" / PROGRAM).exists():
        raise measuring.Failed(f"{PROGRAM} was not built: it needs libc's archive")
    with measuring.Area(options) as area, tempfile.TemporaryDirectory() as elsewhere:
        area.start()
        foreign = pathlib.Path(elsewhere)
        ways = {"static, native": (PROGRAM, area.plain, None), "static, native, foreign": (PROGRAM, foreign / "native", None),
                "static, foreign": (PROGRAM, foreign / "under-shunt", "n0"),
                "static, redirected": (PROGRAM, area.root / "static", "n0"),
                "dynamic, redirected": ("bench_worker", area.root / "dynamic", "n0")}
        for _, directory, _ in ways.values():
            directory.mkdir(exist_ok=True)
        # A static program that is handed no path of a root is left alone.
        crews = {way: area.crew(program, directory, 1, area.root, node=node) for way, (program, directory, node) in ways.items()}
        crews["static, redirected"].make("create", 1, prefix="first")
        area.must_be_redirected()
        rounds = measuring.alternate(options.rounds, "static programs", {
            way: lambda turn, crew=crew: one_round(crew, options.static_files, turn) for way, crew in crews.items()})
        area.end_crews()
        return list(findings(rounds))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
