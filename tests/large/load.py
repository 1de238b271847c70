# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Benchmarks that load a directory: postmark with small files by the thousand, dbench with a file server's work. Their
speed is not of interest here."""

import functools
import re

from suite import Suite

# From a name in postmark's report to a number in it: what it did, not how fast.
COUNTS = re.compile(r"^\s*(\d+) (created|read|appended|deleted)|(Creation alone|Mixed with transactions|Deletion alone)"
                    r": (\d+) files|(\d+\.\d+) megabytes (read|written)")
POSTMARK = (("postmark", "set number 2000\nset transactions 6000\nset size 500 9000\n"),
            ("postmark-subdirectories", "set number 3000\nset transactions 4000\nset subdirectories 40\n"
             "set size 10 4000\nset buffering false\n"))
DBENCH = (("dbench", 2, []), ("dbench-xattr-sync", 2, ["--xattr", "--sync-dir", "--fsync"]))
SECONDS = 5


def postmark(settings, place):
    commands = f"set seed 7\nset location {place.root}\n{settings}run\nquit\n"
    return ["sh", "-c", 'printf %s "$1" | postmark', "postmark", commands]


def postmark_counts(place, ended):
    return [line.strip() for line in re.sub(r" \(.*per second\)", "", ended.out).splitlines()
            if COUNTS.search(line) or "Error" in line]


def dbench(clients, options, place):
    return ["dbench", "-t", SECONDS, "-c", "/usr/share/dbench/client.txt", "-D", place.root, *options, clients]


def dbench_operations(place, ended):
    """How much is done in a time differs; what is done does not, and that none of it fails."""
    made = re.findall(r"^ +(\w+) +\d+ +[\d.]+ +[\d.]+$", ended.out, re.MULTILINE)
    bad = [line for line in (ended.out + ended.err).splitlines()
           if re.search(r"fail|error|ERROR|expected", line) and "semaphore" not in line]  # of System V, now and then
    return [*sorted(made), *bad]


def suites():
    marks = [Suite(name, functools.partial(postmark, settings), postmark_counts) for name, settings in POSTMARK]
    return marks + [Suite(name, functools.partial(dbench, clients, options), dbench_operations)
                    for name, clients, options in DBENCH]
