#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""rates.py [options]: creates, stats and removals a second, as mdtest counts them.

mdtest (of the ior sources) is in no distribution's packages here. This is `shunt bench`, whose processes do what mdtest's
do with -F: all make empty files in one directory, then all look at theirs, then all remove them, one phase after the
other, and a rate is that of all processes together. Native rates of the same run stand next to those under shunt (one
node, placement branch).

What is wanted are ten, twenty-five and five times the rates of mdtest under GekkoFS on a machine of this kind."""

import json

import measuring

COUNTS = {"rate-files": (10_000, 100, "files of each process in a round"), "ranks": (2, 2, "processes")}
WANTED = {"create": 70_000, "stat": 382_500, "unlink": 74_000}
WAYS = {"shared": "natively", "shunt": "under shunt"}


def measure(options):
    with measuring.Area(options) as area:
        measuring.say(f"rates: {options.rounds} rounds")
        told = json.loads(area.run(area.shunt, "bench", "--json", "--processes", options.ranks, "--files", options.rate_files,
                                   "--repetitions", options.rounds, "--operations", ",".join(WANTED),
                                   "--configurations", ",".join(WAYS), "--placement", "branch", area.top))
    return [measuring.Finding(2, f"as mdtest: {one['operation']} by {options.ranks} processes, {WAYS[one['configuration']]}",
                              "/s", one["rates"], least=WANTED[one["operation"]] if one["configuration"] == "shunt" else None)
            for one in told["results"]]


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
