#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_rates.py [options]: how fast nodes make, look at and remove files on a CephFS, and what it costs every process.

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs). All nodes at the same time make files and
remove them, in another directory make files, rename each and rename it back, and in a third one make files and stat, open
and touch those of the next node: natively in a directory each, natively in one shared directory, and in a shared directory
under shunt (placement branch, a daemon on each node), by turns. The first table has the medians of all rounds: files a
second of all nodes together, and for a file the requests to the metadata server, the answers of the clients (ceph-fuse) to
the kernel, and microseconds of CPU and context switches of the program, the daemons of shunt and those of Ceph. The findings
are ratios of rates in the same round. And once a round files are made in a root of their own that is then exported, by one
node, with the time of that counted in. Each begins when the servers are done with what the one before left them to do.

All processes share this machine's processors. So the rate is what is left of them, and what a rate is depends on the
machine; the counters do not."""

import contextlib
import copy
import pathlib
import statistics
import subprocess
import time

import measuring
import on_cephfs

COUNTS = {"files": (500, 50, "files of each node on a CephFS"), "nodes": (2, 2, "nodes of a CephFS, then twice as many")}
CONFIGURATIONS = ("private", "shared", "shunt")
OWN, RENAMES, NEIGHBOURS = ("create", "unlink"), ("create", "renames"), ("stat", "open", "utime")
CALLS = ("create", *NEIGHBOURS, "renames", "unlink")
AT_REST, LOOK = 0.05, 0.5  # of a processor; seconds
# The least ratio of the rate under shunt to that of another configuration.
LEAST = {("create", "private"): 0.95, ("create", "shared"): 2.5, ("unlink", "private"): 0.95, ("unlink", "shared"): 1.5,
         ("stat", "shared"): 1, ("open", "shared"): 1, ("utime", "shared"): 1, ("renames", "private"): None,
         ("renames", "shared"): None}


def daemons_of(root):
    """Those that serve a root, on whatever pretended node, and their supervisors."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # one that has ended
            line = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
            if line[0].endswith(b"/shuntd") and str(root).encode() in line:
                found.append(int(entry.name))
    return found


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
            counts[f"{name} us"] = sum(map(measuring.cpu_of, pids))
            counts[f"{name} switches"] = sum(sum(measuring.switches_of(pid).values()) for pid in pids)
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


@contextlib.contextmanager
def crews_of(nodes, configuration, turn):
    """{directory: crew} of each node, its own directory and the next node's, whose files it looks at; and where each makes
    files."""
    crews, where = [], directories(nodes, configuration, turn)
    with contextlib.ExitStack() as stack:
        for node in range(nodes.count):
            of_node = {}
            for directory in {where[node], where[(node + 1) % nodes.count]}:
                words = [nodes.build / "tests" / "bench" / "bench_worker", directory, 1]
                words = nodes.tool(node, "exec", "--", *words) if configuration == "shunt" else words
                of_node[directory] = measuring.Crew(nodes.words(node, *words), nodes.environment)
                stack.callback(of_node[directory].end)
            of_node[where[node]].make("create", 1, prefix=f"first-{node}")
            crews.append(of_node)
        yield crews, where


def come_to_rest(nodes):
    """A server that has just served a shared directory goes on with that for a while, and would be slower for the next."""
    used = lambda: sum(measuring.cpu_of(process.pid) for process in nodes.ceph.processes)  # noqa: E731
    before, until = used(), time.monotonic() + measuring.PATIENCE
    while time.monotonic() < until:
        time.sleep(LOOK)
        now = used()
        if now - before < AT_REST * LOOK * 1e6:
            return
        before = now
    raise measuring.Failed("the servers of the CephFS do not come to rest")


def measure_call(costs, crews, where, call, files):
    before, told = costs.read(), []
    for node, of_node in enumerate(crews):
        owner = (node + 1) % len(crews) if call in NEIGHBOURS else node
        told.append(of_node[where[owner]])
        told[-1].begin(call, files, prefix=f"file-{owner}")
    told = [crew.wait()[0] for crew in told]
    after, whole = costs.read(), files * len(crews)
    row = {"files/s": sum(files / seconds for seconds, _, _ in told)}
    row.update({name: (after[name] - before[name]) / whole for name in ("requests", "answers")})
    row["program us"], row["program switches"] = (sum(each[column] for each in told) / whole for column in (1, 2))
    row.update({name: (after[name] - before[name]) / whole for name in after if name not in row})
    return row


def measure_pass(nodes, costs, configuration, turn, files, calls):
    """In a directory of its own: what has been looked at by another node costs more to remove."""
    with crews_of(nodes, configuration, turn) as (crews, where):
        return {call: measure_call(costs, crews, where, call, files) for call in calls}


def measure_turn(nodes, costs, configuration, turn, files):
    looks = measure_pass(nodes, costs, configuration, f"{turn}-looks", files, ("create", *NEIGHBOURS))
    renames = measure_pass(nodes, costs, configuration, f"{turn}-renames", files, RENAMES)
    return {**looks, **renames, **measure_pass(nodes, costs, configuration, turn, files, OWN)}


def measure_exported(nodes, turn, files, *careful):
    """Files are made under shunt and then renamed (with --careful: linked) into the trunk: files a second and requests, with both
    counted in."""
    nodes = copy.copy(nodes)
    nodes.root, whole = nodes.place / f"exported-{turn}", files * nodes.count
    with nodes.session("branch"):
        with crews_of(nodes, "shunt", turn) as (crews, where):
            rate = measure_call(Costs(nodes), crews, where, "create", files)
    requests, began = nodes.ceph.requests(), time.monotonic()
    nodes.run(0, nodes.shunt, "export", *careful, nodes.root, stdout=subprocess.DEVNULL)
    exporting = time.monotonic() - began
    return {"files/s": 1 / (1 / rate["files/s"] + exporting / whole),
            "requests": rate["requests"] + (nodes.ceph.requests() - requests) / whole}


def measure_rounds(options, count):
    """[{(call, configuration): {what: how much}}] of so many nodes."""
    with on_cephfs.some_nodes(options, count) as nodes, nodes.session("branch"):
        costs = Costs(nodes)
        ways = {name: lambda turn, name=name: measure_turn(nodes, costs, name, f"{turn}-{name}", options.files)
                for name in CONFIGURATIONS}
        ways["exported"] = lambda turn: {"create": measure_exported(nodes, f"{turn}-renamed", options.files)}
        ways["exported carefully"] = lambda turn: {"create": measure_exported(nodes, f"{turn}-linked", options.files, "--careful")}

        def rested(way):
            def one_turn(turn):
                if not options.quick:
                    come_to_rest(nodes)
                return way(turn)
            return one_turn

        rounds = measuring.alternate(options.rounds, f"CephFS, {count} nodes", {name: rested(way) for name, way in ways.items()})
    return [{(call, name): row for name, calls in one.items() for call, row in calls.items()} for one in rounds]


def show_costs(rounds):
    for call in CALLS:
        what = f"{call}, for a file: medians of {len(rounds)} rounds"
        print(f"{what:48}" + "".join(f"{name:>12}" for name in CONFIGURATIONS))
        for column in rounds[0][call, "shunt"]:
            medians = [statistics.median(one[call, name][column] for one in rounds) for name in CONFIGURATIONS]
            print(f"{column:48}" + "".join(f"{median:12.2f}" for median in medians))
        print()


def findings(rounds, nodes):
    for (call, other), least in LEAST.items():
        what = f"{call} of the next node's files" if call in NEIGHBOURS else "rename and back" if call == "renames" else call
        yield measuring.Finding(1, f"CephFS, {nodes} nodes, {what}: rate under shunt over native, {other}", "x",
                                [one[call, "shunt"]["files/s"] / one[call, other]["files/s"] for one in rounds], least=least)
    for how in ("exported", "exported carefully"):
        for other in ("private", "shared"):
            yield measuring.Finding(1, f"CephFS, {nodes} nodes, create, {how}: rate under shunt over native, {other}", "x",
                                    [one["create", how]["files/s"] / one["create", other]["files/s"] for one in rounds])
        yield measuring.Finding(1, f"CephFS, {nodes} nodes: requests for create, {how}", "",
                                [one["create", how]["requests"] for one in rounds])


def counts_of(options):
    return [options.nodes] if options.quick else [options.nodes, 2 * options.nodes]


def measure(options, show=lambda rounds: None):
    found = []
    for count in counts_of(options):
        rounds = measure_rounds(options, count)
        show(rounds)
        found += findings(rounds, count)
    return found


if __name__ == "__main__":
    measuring.main(lambda options: measure(options, show_costs), __doc__, COUNTS)
