#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What nodes with kernels of their own do in a second, each with files of its own, and what it costs: natively in a directory for
each, natively in one of all, and in that under shunt, by turns.

    tests/kernels/rates.py KIND COUNT [--rounds N] [--files N] [--python | --mixed] [--disk-ms N]

KIND and COUNT as for kernel_nodes.py, which starts them; $SHUNT_BUILD is the build (build). Measured are creates, renames to a new
name, checkpoints (FILE.tmp is made and becomes FILE) and unlinks, of numbered names, by a program in C. With --python they are
Python's, which handles a signal, so that shunt has to hold signals back (three system calls more for each); with --mixed of names
in no order, too. Said are the median and the lowest and highest of the rates of all nodes together, and for a call the packets that
nodes send and the requests to the disk that they share."""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
CONFIGURATIONS = ("native private", "native shared", "shunt auto", "shunt branch")
PHASES = ("create", "rename", "checkpoint", "unlink")


# On a node

def counters():
    packets = sum(int(path.read_text()) for path in pathlib.Path("/sys/class/net").glob("e*/statistics/tx_packets"))
    disks = [line.split() for line in open("/proc/diskstats", encoding="ascii")]
    return packets, sum(int(words[3]) + int(words[7]) for words in disks if words[2] == "ubdb")


def python_phases(directory, rank, files, mixed):
    """phase -> what makes its calls, and says how long that took"""
    def name(kind, i):
        number = zlib.crc32(f"{kind} {i}".encode()) if mixed else i
        return f"{directory}/{kind}{rank}.{number:05}"

    def make(path):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))

    def checkpoint(i):
        make(name("c", i) + ".tmp")
        os.rename(name("c", i) + ".tmp", name("c", i))

    def timed(call):
        began = time.monotonic()
        for i in range(files):
            call(i)
        return time.monotonic() - began

    calls = {"create": lambda i: make(name("f", i)), "rename": lambda i: os.rename(name("f", i), name("g", i)),
             "checkpoint": checkpoint, "unlink": lambda i: os.unlink(name("g", i))}
    return {phase: functools.partial(timed, calls[phase]) for phase in PHASES}


def c_phases(directory, rank, files):
    sys.path.insert(1, str(HERE.parent / "bench"))
    from measuring import Crew  # pylint: disable=import-outside-toplevel
    crew = Crew([pathlib.Path(os.environ["SHUNT_BUILD"]) / "tests" / "bench" / "bench_worker", directory, 1], None)
    calls = {"create": ("create", "f"), "rename": ("rename", "f"), "checkpoint": ("checkpoint", "c"), "unlink": ("unlink-renamed", "f")}

    def timed(call, prefix):
        return crew.make(call, files, prefix=f"{prefix}{rank}")[0][0]
    return {phase: functools.partial(timed, *calls[phase]) for phase in PHASES}


def work(directory, rank, address, port, files, names):
    """Says for each phase how long it took, and what was counted meanwhile."""
    from meeting import Place  # pylint: disable=import-outside-toplevel
    os.makedirs(directory, exist_ok=True)
    phases = c_phases(directory, rank, files) if names == "c" else python_phases(directory, rank, files, names == "mixed")
    place, measured = Place(rank, address, port), {}
    for phase, make in phases.items():
        place.exchange()
        before, seconds = counters(), make()
        place.exchange()  # others may still cause packets of this node
        measured[phase] = (seconds, *(after - first for after, first in zip(counters(), before)))
    print(json.dumps(measured))


# Here

def measured_on(cluster, command, options):
    """Of all nodes: their lists of measures, by phase."""
    import meeting  # pylint: disable=import-outside-toplevel
    with meeting.held(cluster.listener(), len(cluster.nodes)) as (address, port):
        words = f"{address} {port} {options.files} {'mixed' if options.mixed else 'python' if options.python else 'c'}"
        begun = [cluster.popen(node, f"{command(rank)} {rank} {words}", stdout=subprocess.PIPE)
                 for rank, node in enumerate(cluster.nodes)]
        said = [process.communicate(timeout=600)[0] for process in begun]
    assert not any(process.returncode for process in begun), said
    return [json.loads(text) for text in said]


def command_of(cluster, configuration, number):
    """What each rank runs, up to its rank."""
    place, shunt = f"/mnt/shared/{number}", f"{cluster.build}/tools/shunt"
    worker = f"env SHUNT_BUILD={cluster.build} python3 {HERE}/rates.py --work"
    if configuration == "native private":
        return lambda rank: f"{worker} {place}/{rank}"
    if configuration == "native shared":
        return lambda rank: f"{worker} {place}"
    root = f"/mnt/shared/{configuration.replace(' ', '-')}"
    return lambda rank: f"{shunt} exec --root {root} -- {worker} {root}/{number}"


def compare(cluster, options):
    """configuration -> phase -> a list of (rate, packets, disk requests), one for each round"""
    results = {configuration: {phase: [] for phase in PHASES} for configuration in CONFIGURATIONS}
    calls = len(cluster.nodes) * options.files
    for number in range(options.rounds * len(CONFIGURATIONS)):
        turn, which = divmod(number, len(CONFIGURATIONS))
        configuration = CONFIGURATIONS[which if turn % 2 == 0 else -1 - which]
        nodes = measured_on(cluster, command_of(cluster, configuration, number), options)
        for phase in PHASES:
            of_all = [node[phase] for node in nodes]
            results[configuration][phase].append((sum(options.files / seconds for seconds, _, _ in of_all),
                                                  sum(packets for _, packets, _ in of_all) / calls,
                                                  sum(requests for _, _, requests in of_all) / calls))
    return results


def spread(values, form):
    low, median, high = min(values), statistics.median(values), max(values)
    return f"{median:{form}} ({low:{form}} to {high:{form}})"


def tell(results):
    for phase in PHASES:
        for configuration in CONFIGURATIONS:
            rates, packets, requests = zip(*results[configuration][phase])
            print(f"{phase:10} {configuration:14} {spread(rates, ',.0f')} a second; packets {spread(packets, '.2f')}; "
                  f"disk requests {spread(requests, '.2f')}")


def main(options):
    sys.path.insert(0, str(HERE))
    import kernel_nodes  # pylint: disable=import-outside-toplevel
    if reason := kernel_nodes.what_is_missing(options.kind):
        sys.exit(f"rates.py: {reason}")
    kernel_nodes.prepare()
    cluster = kernel_nodes.Cluster(tempfile.mkdtemp(prefix="shunt-kernels.", dir="/dev/shm"))
    try:
        cluster.start(options.kind, options.count, options.disk_ms)
        for placement in ("auto", "branch"):
            root = f"/mnt/shared/shunt-{placement}"
            cluster.must(1, f"mkdir {root}")
            for node in cluster.nodes:
                cluster.must(node, f"ls {root}; {cluster.build}/tools/shunt start --root {root} --placement {placement}")
        tell(compare(cluster, options))
    finally:
        cluster.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("kind", choices=("ocfs2", "gfs2", "nfs", "ceph"))
        parser.add_argument("count", type=int)
        parser.add_argument("--rounds", type=int, default=7)
        parser.add_argument("--files", type=int, default=300, help="of each node, in each phase")
        parser.add_argument("--disk-ms", type=float, default=0, help="what a request to the disk takes longer (not ceph)")
        parser.add_argument("--python", action="store_true", help="the calls are Python's")
        parser.add_argument("--mixed", action="store_true", help="... and names in no order")
        main(parser.parse_args())
