#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""limit.py [options]: how much memory a node takes for a root of many names, with a limit.

A native tree of a thousand directories of ten thousand names (each directory's names are links to one file of its own, so that
it takes a few minutes and little of the disk) becomes a root. A process under shunt lists every directory, and looks up a name
that is there and one that is not; twice, the second time when the catalogue has all. Meanwhile the memory of node and daemon is looked at ten times a second: the files of
the run directory, which are in memory, and the daemon's own (anonymous). The catalogue is on the file system that is measured
(SHUNT_CATALOGUE_DIR), as it is larger than the limit. `--given` measures a tree that is there, of such names. Natively the
same is done by turns."""

import pathlib
import sys
import threading
import time

import measuring

COUNTS = {"limit-directories": (1_000, 200, "directories"), "limit-names": (10_000, 2_000, "names of each"),
          "limit-mib": (128, 8, "SHUNT_INDEX_LIMIT, MiB")}
MAKE = """
import os, sys
for number in range(int(sys.argv[2])):
    os.mkdir(f"{sys.argv[1]}/d{number:04}")
    fd = os.open(f"{sys.argv[1]}/d{number:04}", os.O_RDONLY)
    os.close(os.open("name-00000000000", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    for name in range(1, int(sys.argv[3])):
        os.link("name-00000000000", f"name-{name:011}", src_dir_fd=fd, dst_dir_fd=fd)
    os.close(fd)
"""
TOUCH = """
import os, sys
for number in range(int(sys.argv[2])):
    d = f"{sys.argv[1]}/d{number:04}"
    assert len(os.listdir(d)) == int(sys.argv[3]), d
    os.stat(f"{d}/name-00000000007")
    assert not os.path.exists(f"{d}/none")
"""


def memory_of(daemon):
    """{what: bytes}; some may be gone since."""
    sizes = {}
    for line in pathlib.Path(f"/proc/{daemon['pid']}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            sizes["daemon"] = int(line.split()[1]) << 10
    sizes["run"] = sum(path.stat().st_blocks * 512 for path in pathlib.Path(daemon["run_dir"]).iterdir() if path.is_file())
    sizes["all"] = sizes["daemon"] + sizes["run"]
    return sizes


class Watch:
    """The most of each, while the block lasts."""

    def __init__(self, daemon):
        self.daemon, self.most, self.ended = daemon, {}, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while True:
            for what, size in memory_of(self.daemon).items():
                self.most[what] = max(size, self.most.get(what, 0))
            if self.ended.wait(0.1):
                return

    def __enter__(self):
        self.thread.start()
        return self.most

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def touch(area, words, natively):
    began = time.monotonic()
    (area.run if natively else area.under_shunt)(measuring.PYTHON, "-c", TOUCH, *words)
    return time.monotonic() - began


def await_catalogue(area):
    deadline = time.monotonic() + 1800
    while area.status()["counters"]["catalogue_behind_seconds"] > 0:
        if time.monotonic() > deadline:
            raise measuring.Failed("the catalogue is never complete")
        time.sleep(0.5)


def session(area, words, limit):
    area.environment["SHUNT_INDEX_LIMIT"] = limit
    area.start(placement="auto")
    daemon = area.daemons()["n0"]
    found = {"idle": memory_of(daemon)["all"]}
    with Watch(daemon) as most:
        found["first"] = touch(area, words, False)
        await_catalogue(area)
        found["second"] = touch(area, words, False)
    counters = area.status()["counters"]
    area.stop()
    return {**found, **most, **counters}


def mib(values):
    return [value / 2**20 for value in values]


def measure(options):
    directories, names, limit = options.limit_directories, options.limit_names, options.limit_mib
    total = directories * names
    with measuring.Area(options) as area:
        area.environment["SHUNT_CATALOGUE_QUIET"] = "1"
        area.environment["SHUNT_CATALOGUE_DIR"] = str(area.top / "catalogues")
        (area.top / "catalogues").mkdir()
        given = getattr(options, "given", None)
        if given:
            area.root = given.resolve()
        else:
            measuring.say(f"limit: making {total:,} names in {directories:,} directories")
            area.run(measuring.PYTHON, "-c", MAKE, area.root, directories, names)
        words = [area.root, directories, names]
        rounds = measuring.alternate(options.rounds, "limit", {
            "limited": lambda _: session(area, words, f"{limit}M"), "not": lambda _: session(area, words, "1T"),
            "native": lambda _: touch(area, words, True)})
    limited = [one["limited"] for one in rounds]
    if any(one["evictions"] < directories // 2 for one in limited):
        raise measuring.Failed("too few directories were evicted: the limit was not reached")
    what = f"{total:,} names in {directories:,} directories, SHUNT_INDEX_LIMIT={limit}M"
    return [
        measuring.Finding(11, f"{what}: run directory and the daemon's own memory, at most", "MiB",
                          mib(one["all"] for one in limited), most=limit),
        measuring.Finding(11, "... the run directory, at most", "MiB", mib(one["run"] for one in limited)),
        measuring.Finding(11, "... the daemon's own, at most", "MiB", mib(one["daemon"] for one in limited)),
        measuring.Finding(11, "... both when nothing was used yet", "MiB", mib(one["idle"] for one in limited)),
        measuring.Finding(11, "... both without a limit", "MiB", mib(one["not"]["all"] for one in rounds)),
        measuring.Finding(11, "... to list all and look up two names in each, the first time", "s",
                          [one["first"] for one in limited]),
        measuring.Finding(11, "... and the second time", "s", [one["second"] for one in limited]),
        measuring.Finding(11, "... without a limit, the first time", "s", [one["not"]["first"] for one in rounds]),
        measuring.Finding(11, "... and the second time", "s", [one["not"]["second"] for one in rounds]),
        measuring.Finding(11, "... natively", "s", [one["native"] for one in rounds]),
        measuring.Finding(11, "... directories evicted", "", [one["evictions"] for one in limited]),
        measuring.Finding(11, "... that came back", "", [one["evictions_returned"] for one in limited]),
        measuring.Finding(11, "... listings taken from the catalogue", "", [one["catalogue_taken"] for one in limited]),
        measuring.Finding(11, "... the catalogue", "MiB", mib(one["catalogue_bytes"] for one in limited)),
    ]


def arguments():
    parser = measuring.common_options(__doc__)
    measuring.add_counts(parser, COUNTS)
    parser.add_argument("--given", type=pathlib.Path, help="a tree that is there; nothing in it is changed but `.shunt`")
    options = parser.parse_args()
    measuring.settle(options, COUNTS)
    return options


def main():
    options = arguments()
    try:
        findings = measure(options)
    except measuring.FAILURES as failure:
        sys.exit(f"limit.py: {failure}")
    sys.exit(measuring.report(findings, options))


if __name__ == "__main__":
    main()
