#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""all.py [options]: every figure that shunt is to reach, as a table in Markdown: what was wanted, what was found.

Runs the benchmarks one after the other, which takes an hour and more; --figures takes some of them. It says on standard
error what it is at. --results keeps all values, with the date and the machine. The exit status is 1 if a benchmark
failed; a figure that was not reached is no failure. Nothing else should be at work on the machine."""

import importlib
import sys

import measuring

BENCHMARKS = {"cephfs_rates": 1, "cephfs_requests": 1, "calls": 2, "rates": 2, "pass_through": 3, "listing": 4,
              "daemon_cost": 5, "remote": 6, "memory": 7, "data": 8, "solo": 9,
              "catalogue": 10, "limit": 11, "loading": 12, "leaving": 13, "through_mount": 14, "slurm_start": 15, "moving": 16,
              "static_calls": 17}


def wanted(text):
    numbers = [int(word) for word in text.split(",")]
    if not set(numbers) <= set(BENCHMARKS.values()):
        raise ValueError
    return numbers


def measure_all(options, modules):
    """Those that work do not suffer from one that does not: (findings, failures)."""
    findings, failures = [], []
    for name, module in modules.items():
        measuring.say(f"{name}.py")
        try:
            findings += module.measure(options)
        except measuring.FAILURES as failure:
            failures.append(f"{name}.py: {failure}")
            measuring.say(failures[-1])
    return sorted(findings, key=lambda one: one.figure), failures


def counts_of(modules):
    """Each option is one benchmark's, or one would measure with the numbers of another."""
    options = [option for module in modules for option in module.COUNTS]
    for option in options:
        assert options.count(option) == 1, option
    return {option: what for module in modules for option, what in module.COUNTS.items()}


def main():
    modules = {name: importlib.import_module(name) for name in BENCHMARKS}
    counts = counts_of(modules.values())
    parser = measuring.common_options(__doc__)
    parser.add_argument("--figures", type=wanted, default=sorted(set(BENCHMARKS.values())), metavar="N[,N]...",
                        help="which of them (default: all)")
    measuring.add_counts(parser, counts)
    options = parser.parse_args()
    measuring.settle(options, counts)
    findings, failures = measure_all(options, {name: module for name, module in modules.items()
                                               if BENCHMARKS[name] in options.figures})
    sys.exit(measuring.report(findings, options, failures))


if __name__ == "__main__":
    main()
