#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""calls.py [options]: what file calls cost natively and under shunt, as a table.

bench_calls runs natively and under shunt (one node, placement branch) by turns, so that both see the same neighbours;
of each case the median over the rounds is shown with its spread (the lowest and the highest round). Outside the root
the native figure is that of libc's own function in the same process. Calls that make, remove or rename names ask the
kernel once which directory that is, since links lead from elsewhere into a root: what that alone takes, one statx before
libc's own function, is measured next to it, by turns as well.

As findings there are nanoseconds that shunt adds: what was promised of calls outside the root, and a figure's limits of
those inside, in microseconds."""

import statistics

import measuring

COUNTS = {"names": (100_000, 2_000, "names of the directory that is listed")}
OUTSIDE = {"outside, absolute: stat": 50, "outside, absolute: open and close": 100,  # two calls
           "outside, absolute: open, ENOENT": 50, "outside, relative: stat": 350,
           "outside, relative: open and close": 350, "outside, relative: open, ENOENT": 350,
           "outside, absolute: create, close and unlink": 2000,
           "outside, absolute: two renames": 2000, "outside, absolute: list three names": 1000,
           "start of /bin/true": 100_000, "start of a test that a file is there": 1_000_000}
ASKING = ("outside, absolute: create, close and unlink", "outside, absolute: two renames")
INSIDE = {"branch: stat": 1500, "branch: open and close": 1500, "create and close": 10_000, "unlink": 10_000,
          "rename": 12_000}
QUICK_PART = 50  # so many times fewer calls
PER_NAME = "list a directory of many names"
FILL = "import sys\nfor i in range(int(sys.argv[2])): open(f'{sys.argv[1]}/name-{i:06}', 'x').close()"


class Calls:
    def __init__(self, area, options):
        self.area, self.names, self.part = area, options.names, QUICK_PART if options.quick else 1
        self.cold = area.top / "cold"
        self.ways = {"native": (area.plain, area.run), "shunt": (area.root, area.under_shunt)}

    def prepare(self):
        self.cold.mkdir()
        (self.cold / "known").touch()
        for top in (self.area.plain, self.area.root):
            for name in ("hot", "trunk", "many"):
                (top / name).mkdir()
            (top / "trunk" / "known").touch()
        self.area.start()
        for top, run in self.ways.values():
            run("touch", top / "hot" / "known")
            run(measuring.PYTHON, "-c", FILL, top / "many", self.names)
        self.area.must_be_redirected()

    def measure(self, way):
        """{case: [nanoseconds]}, with those of libc's own function where the program tells them."""
        top, run = self.ways[way]
        program = self.area.build / "tests" / "bench" / "bench_calls"
        lines = run(program, self.cold, top / "hot", top / "trunk", top / "many", self.part).splitlines()
        found = {case: list(map(float, values)) for case, *values in (line.split("\t") for line in lines)}
        found[PER_NAME][0] /= self.names
        return found

    def rounds(self, count):
        """[{case: (native, under shunt)}], or (native, under shunt, natively with a statx before)"""
        ways = {way: lambda turn, way=way: self.measure(way) for way in self.ways}
        return [{case: (values[1], values[0], values[2]) if len(values) > 1 else (one["native"][case][0], values[0])
                 for case, values in one["shunt"].items()} for one in measuring.alternate(count, "calls", ways)]


def shown(values):
    return f"{statistics.median(values):9.0f} ({min(values):.0f}..{max(values):.0f})"


def print_table(rounds):
    print(f"{'ns a call; listing: ns a name':44} {'native':>24} {'under shunt':>26} {'ratio':>7} {'added':>8}")
    for case in rounds[0]:
        native, shunt = zip(*(one[case][:2] for one in rounds))
        # Neighbours in time are compared, then the median of the comparisons is taken.
        added = statistics.median(two - one for one, two in zip(native, shunt))
        ratio = statistics.median(two / one for one, two in zip(native, shunt))
        limit = f"  (promised: at most {OUTSIDE[case]})" if case in OUTSIDE else ""
        asked = statistics.median(one[case][2] - one[case][0] for one in rounds) if case in ASKING else None
        of_that = "" if asked is None else f", of which what the kernel is asked takes {asked:.0f}"
        print(f"{case:44} {shown(native):>24} {shown(shunt):>26} {ratio:7.2f} {added:8.0f}{limit}{of_that}")
    print()


def findings(rounds):
    for limits, unit in ((INSIDE, 1000), (OUTSIDE, 1)):
        for case, limit in limits.items():
            added = [(one[case][1] - one[case][0]) / unit for one in rounds]
            yield measuring.Finding(2, f"added to {case}", "us" if unit == 1000 else "ns", added, most=limit / unit)
    for case in ASKING:
        alone = [one[case][1] - one[case][2] for one in rounds]
        yield measuring.Finding(2, f"added to {case}, beside a statx for each name", "ns", alone)


def measure_rounds(options):
    with measuring.Area(options) as area:
        calls = Calls(area, options)
        calls.prepare()
        return calls.rounds(options.rounds)


def measure(options, show=lambda rounds: None):
    rounds = measure_rounds(options)
    show(rounds)
    return list(findings(rounds))


if __name__ == "__main__":
    measuring.main(lambda options: measure(options, print_table), __doc__, COUNTS)
