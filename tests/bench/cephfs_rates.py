#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_rates.py [--build DIR] [--files N] [--rounds N] [--nodes N]: how fast nodes make and remove files on a CephFS,
and what it costs every process.

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs). All nodes make files at the same time, and then
remove them: natively in a directory each, natively in one shared directory, and in a shared directory under shunt
(placement branch, a daemon on each node), by turns, every second round backwards. The first table has the medians of all
rounds: files a second of all nodes together, and for a file the requests to the metadata server, the answers of the
clients (ceph-fuse) to the kernel, and microseconds of CPU and context switches of the program, the daemons of shunt and
those of Ceph. The second one has the ratios of rates in the same round: their median, least and greatest.

All processes share this machine's processors. So the rate is what is left of them, and what a rate is depends on the
machine; the counters do not."""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cluster"))

import cephfs  # noqa: E402

CONFIGURATIONS = ("private", "shared", "shunt")
CALLS = ("create", "unlink")
WORKER = """
import os, resource, sys, time
directory, node = sys.argv[1:]
def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
def measure(call, prefix, count):
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    for number in range(count):
        call(f"{directory}/{prefix}{node}-{number}")
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(took, used * 1e6, after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw, flush=True)
measure(create, "first", 1)
for line in sys.stdin:
    call, count = line.split()
    measure({"create": create, "unlink": os.unlink}[call], "file", int(count))
"""


def used_by(pid):
    """Microseconds of CPU and context switches of a process so far."""
    time, switches = 0, 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        time += int((task / "schedstat").read_text().split()[0]) / 1000
        switches += sum(int(line.split()[1]) for line in (task / "status").read_text().splitlines()
                        if "ctxt_switches" in line)
    return time, switches


def daemons_of(root):
    """Those that serve a root, on whatever pretended node, and their supervisors."""
    words = [(entry.name, (entry / "cmdline").read_bytes().split(b"\0"))
             for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and (entry / "cmdline").exists()]
    return [int(pid) for pid, line in words if line[0].endswith(b"/shuntd") and str(root).encode() in line]


class Costs:
    """What has been used so far, of everything that is counted."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.groups = {"shuntd": daemons_of(nodes.root)}
        for process in nodes.ceph.processes:
            self.groups.setdefault(process.args[0], []).append(process.pid)

    def read(self):
        counts = {"requests": self.nodes.ceph.requests(), "answers": self.nodes.ceph.answers()}
        for name, pids in self.groups.items():
            each = [used_by(pid) for pid in pids]
            counts[f"{name} us"], counts[f"{name} switches"] = (sum(column) for column in zip(*each))
        return counts


def directories(nodes, configuration, turn):
    """A fresh one for each node, or one for all."""
    if configuration == "shunt":
        return [nodes.shared(f"p{turn}")] * nodes.count
    natively = nodes.place / "native"
    names = [f"{turn}-{node}" for node in range(nodes.count)] if configuration == "private" else [f"{turn}"] * nodes.count
    for node, name in enumerate(names):
        nodes.run(node, "mkdir", "-p", natively / name)
    return [natively / name for name in names]


def begin_workers(nodes, configuration, turn):
    workers = []
    for node, directory in enumerate(directories(nodes, configuration, turn)):
        words = [cephfs.PYTHON, "-c", WORKER, directory, node]
        if configuration == "shunt":
            words = nodes.tool(node, "exec", "--", *words)
        workers.append(nodes.begin(node, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for worker in workers:
        worker.stdout.readline()
    return workers


def measure_call(costs, workers, call, files):
    before = costs.read()
    for worker in workers:
        worker.stdin.write(f"{call} {files}\n")
        worker.stdin.flush()
    told = [[float(word) for word in worker.stdout.readline().split()] for worker in workers]
    after = costs.read()
    whole = files * len(workers)
    row = {"files/s": sum(files / seconds for seconds, _, _ in told)}
    row.update({name: (after[name] - before[name]) / whole for name in ("requests", "answers")})
    row["program us"], row["program switches"] = (sum(each[column] for each in told) / whole for column in (1, 2))
    row.update({name: (after[name] - before[name]) / whole for name in after if name not in row})
    return row


def measure_turn(nodes, costs, configuration, turn, files):
    workers = begin_workers(nodes, configuration, turn)
    rows = {call: measure_call(costs, workers, call, files) for call in CALLS}
    for worker in workers:
        worker.stdin.close()
    nodes.together(*workers)
    return rows


def measure_all(nodes, rounds, files):
    """All rounds: one row for each configuration and call."""
    costs, results = Costs(nodes), []
    for number in range(rounds):
        order = CONFIGURATIONS if number % 2 == 0 else CONFIGURATIONS[::-1]
        rows = {name: measure_turn(nodes, costs, name, f"{number}-{name}", files) for name in order}
        results.append({(call, name): rows[name][call] for name in CONFIGURATIONS for call in CALLS})
    return results


def show_costs(results):
    cases = [(call, name) for call in CALLS for name in CONFIGURATIONS]
    print(f"{f'medians of {len(results)} rounds, for a file':32}" + "".join(f"{' '.join(case):>16}" for case in cases))
    for column in results[0][cases[0]]:
        medians = [statistics.median(one[case][column] for one in results) for case in cases]
        print(f"{column:32}" + "".join(f"{median:16.2f}" for median in medians))


def show_ratios(results):
    print(f"\n{'ratios of rates in a round':32}{'median':>16}{'least':>16}{'greatest':>16}")
    for call in CALLS:
        for other in ("private", "shared"):
            ratios = [one[call, "shunt"]["files/s"] / one[call, other]["files/s"] for one in results]
            columns = (statistics.median(ratios), min(ratios), max(ratios))
            print(f"{f'{call}: shunt / {other}':32}" + "".join(f"{ratio:16.2f}" for ratio in columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TESTS.parent / "build", help="the build directory")
    parser.add_argument("--files", type=int, default=500, help="files of each node")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all configurations")
    parser.add_argument("--nodes", type=int, default=2, help="nodes")
    options = parser.parse_args()
    # Where shunt's own files of a node are as a rule, too: in memory.
    memory = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="shunt-cephfs.", dir=memory, ignore_cleanup_errors=True) as top:
        with cephfs.some_nodes(top, options.build, options.nodes) as nodes, nodes.session("branch"):
            results = measure_all(nodes, options.rounds, options.files)
    show_costs(results)
    show_ratios(results)


main()
