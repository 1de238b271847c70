#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Large programs and their own test suites, natively and under shunt with their directories redirected: the outcomes
are the same. Installs what is missing. The last line is `N passed, N failed`; the exit status is 0 if none failed.

As root, some suites run a second time as nobody, who must be able to read the build directory."""

import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import suite

FAMILIES = ("python", "git", "database", "archives", "science", "languages", "load", "stress")
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHOWN = 60


def known_suites():
    every = [one for family in FAMILIES for one in importlib.import_module(family).suites()]
    return [one for one in every if os.geteuid() == 0 or not one.as_nobody]


def chosen(every, names):
    unknown = set(names) - {one.name for one in every}
    if unknown:
        sys.exit(f"run.py: no such suite: {', '.join(sorted(unknown))} (--list shows all)")
    return [one for one in every if not names or one.name in names]


def check_build(shunt, suites):
    if not shunt.exists():
        sys.exit(f"run.py: build first: there is no {shunt}")
    runs = [*suite.AS_NOBODY, shunt, "help"]
    if any(one.as_nobody for one in suites) and subprocess.run(runs, stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"run.py: nobody cannot run {shunt}, and some suites run as nobody")


def print_differences(outcome):
    for line in outcome.different[:SHOWN] + outcome.different[SHOWN:][-1:]:
        print(f"    {line}")
    if len(outcome.different) > SHOWN:
        print(f"    ({len(outcome.different)} lines in all)")


def run_all(suites, area, shunt):
    outcomes = []
    for number, one in enumerate(suites, 1):
        print(f"[{number}/{len(suites)}] {one.name}: ", end="", flush=True)
        outcome = suite.run_both(one, area, shunt)
        print(f"native {outcome.native.seconds:.1f} s, shunt {outcome.shunt.seconds:.1f} s:"
              f" {'DIFFERS' if outcome.different else 'same'}", flush=True)
        print_differences(outcome)
        outcomes.append(outcome)
    return outcomes


def print_table(outcomes):
    rows = [("NAME", "native", "shunt", "redirected", "")]
    rows += [(one.suite.name, str(one.native), str(one.shunt), str(one.shunt.redirected),
              "DIFFERS" if one.different else "same") for one in outcomes]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build", help="the build directory")
    parser.add_argument("--area", type=pathlib.Path, default=tempfile.gettempdir(),
                        help="where the suites run: a directory on the file system to be tested")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these suites only")
    parser.add_argument("--list", action="store_true", help="print the names of all suites")
    return parser.parse_args()


def main():
    options = parse_options()
    suites = chosen(known_suites(), options.only)
    if options.list:
        print("\n".join(one.name for one in suites))
        return 0
    subprocess.run(["bash", REPOSITORY / "tests" / "packages.sh", "large"], check=True)
    shunt = options.build.resolve() / "tools" / "shunt"
    check_build(shunt, suites)
    area = pathlib.Path(tempfile.mkdtemp(prefix="shunt-large.", dir=options.area)).resolve()
    area.chmod(0o755)
    outcomes = run_all(suites, area, shunt)
    failed = sum(bool(one.different) for one in outcomes)
    if failed == 0:
        area.rmdir()
    print_table(outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
