#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""run.py [--build DIR] [--dir DIR] [--rounds N]: what file calls cost natively and under shunt, as a table.

bench_calls runs natively and under shunt (one node, placement branch) by turns, so that both see the same neighbours;
of each case the median over the rounds is shown with its spread (the lowest and the highest round). Outside the root
the native figure is that of libc's own function in the same process."""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

MANY = 100_000
CHECKED = {"outside, absolute: stat": 50, "outside, absolute: open and close": 50,
           "outside, absolute: open, ENOENT": 50, "outside, relative: stat": 350,
           "outside, relative: open and close": 350, "outside, absolute: create, close and unlink": 2000,
           "outside, absolute: two renames": 2000, "outside, absolute: list three names": 1000,
           "start of /bin/true": 100_000, "start of a test that a file is there": 1_000_000}
PER_NAME = "list a directory of many names"
FILL = "import sys\nfor i in range(int(sys.argv[2])): open(f'{sys.argv[1]}/name-{i:06}', 'x').close()"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


class Bench:
    def __init__(self, build, parent):
        self.shunt = build / "tools" / "shunt"
        self.program = build / "tests" / "bench" / "bench_calls"
        self.area = pathlib.Path(tempfile.mkdtemp(prefix="shunt-bench.", dir=parent))
        self.root, self.plain, self.cold = (self.area / name for name in ("root", "plain", "cold"))
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
        self.environment["SHUNT_RUN_DIR"] = str(self.area)

    def run(self, *words):
        done = subprocess.run(list(map(str, words)), env=self.environment, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"run.py: status {done.returncode} of {' '.join(map(str, words))}")
        return done.stdout

    def under_shunt(self, *words):
        return self.run(self.shunt, "exec", "--root", self.root, "--", *words)

    def prepare(self):
        for directory in (self.cold, self.root, self.plain):
            directory.mkdir()
        (self.cold / "known").touch()
        for top, run in ((self.plain, self.run), (self.root, self.under_shunt)):
            for name in ("hot", "trunk", "many"):
                (top / name).mkdir()
            (top / "trunk" / "known").touch()
            if top == self.root:
                self.run(self.shunt, "start", "--root", self.root, "--placement", "branch")
            run("touch", top / "hot" / "known")
            run(PYTHON, "-c", FILL, top / "many", MANY)
        if (self.root / "hot" / "known").exists():
            sys.exit("run.py: nothing was redirected, so this would measure nothing")

    def measure(self, top, run):
        """{case: [nanoseconds]}, with those of libc's own function where the program tells them."""
        lines = run(self.program, self.cold, top / "hot", top / "trunk", top / "many").splitlines()
        found = {case: list(map(float, values)) for case, *values in (line.split("\t") for line in lines)}
        found[PER_NAME][0] /= MANY
        return found

    def round(self):
        """{case: (native, under shunt)}."""
        native, shunt = self.measure(self.plain, self.run), self.measure(self.root, self.under_shunt)
        return {case: (values[-1] if len(values) > 1 else native[case][0], values[0]) for case, values in shunt.items()}

    def finish(self):
        if (self.root / ".shunt").exists():
            self.run(self.shunt, "stop", "--root", self.root)
        shutil.rmtree(self.area)


def shown(values):
    return f"{statistics.median(values):9.0f} ({min(values):.0f}..{max(values):.0f})"


def print_table(rounds):
    print(f"{'ns a call; listing: ns a name':44} {'native':>24} {'under shunt':>26} {'ratio':>7} {'added':>8}")
    for case in rounds[0]:
        native, shunt = zip(*(one[case] for one in rounds))
        # Neighbours in time are compared, then the median of the comparisons is taken.
        added = statistics.median(two - one for one, two in zip(native, shunt))
        ratio = statistics.median(two / one for one, two in zip(native, shunt))
        limit = f"  (promised: at most {CHECKED[case]})" if case in CHECKED else ""
        print(f"{case:44} {shown(native):>24} {shown(shunt):>26} {ratio:7.2f} {added:8.0f}{limit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    default = pathlib.Path(__file__).resolve().parents[2] / "build"
    parser.add_argument("--build", type=pathlib.Path, default=default, help="the build directory")
    parser.add_argument("--dir", type=pathlib.Path, default="/dev/shm", help="where to measure (default: /dev/shm)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), options.dir)
    try:
        bench.prepare()
        print_table([bench.round() for _ in range(options.rounds)])
    finally:
        bench.finish()


main()
