#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""remote.py [options]: what it costs to make a name whose home is another node's daemon, where the network and the file
system take their time.

Two daemons of this host with a network between them that delays what is sent by 100 us, so that a question and its answer
take 200 us at least (slow_fabric.c), on a file system that needs 1 ms for a create (slow_file_system.py). One process of the
second node makes files: natively, under shunt with names whose home is the first node, and under shunt with names whose home
is its own daemon, by turns; and names in a row, half of which have their home there, and which are asked for ahead. What is
wanted is the time under shunt over that natively.

Then 16 processes of the second node make files with names whose home is the first one, at the same time: told is how many
frames both daemons sent for a create, which is a question, an answer, and the word of how it went. In memory, where the
daemons are what they wait for; and on the slow file system, where the kernel lets one create at a time into a directory,
so that few are under way at once which could share a frame: there is no limit for that.

All shares this machine's processors: both nodes, the network, and the file system."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

import measuring

COUNTS = {"remote-files": (400, 10, "files in a round through a remote home"),
          "remote-ranks": (16, 16, "processes that share frames"),
          "fabric-delay": (100, 100, "microseconds that the fabric takes"),
          "create-time": (1000, 1000, "microseconds that the file system needs for a create")}
HERE = pathlib.Path(__file__).resolve().parent
HOME, MAKER = "n0", "n1"  # members 1 and 2


@contextlib.contextmanager
def slow_file_system(options, microseconds, *what):
    """Where it is mounted; slow_file_system.py says what is slow there."""
    mount = pathlib.Path(tempfile.mkdtemp(prefix="shunt-bench-slow.", dir=options.dir))
    words = [measuring.PYTHON, HERE / "slow_file_system.py", microseconds, mount, *what]
    server = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "serving\n":
            raise measuring.Failed("no file system could be mounted: that needs FUSE and the superuser")
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=False)
        server.kill()
        server.wait()
        server.stdout.close()
        os.rmdir(mount)


def await_homes(area):
    """A daemon that joined is given its part of the names a little later."""
    until = time.monotonic() + measuring.PATIENCE
    while any(member["home"] != "yes" for member in area.daemons().values()):
        if time.monotonic() > until:
            raise measuring.Failed("not all daemons become homes of names")
        time.sleep(0.02)


def start(area, options):
    """Both daemons, with the delay between them; a directory that both use."""
    library = options.build / "tests" / "bench" / "slow_fabric.so"
    slow = {"LD_PRELOAD": str(library), "SLOW_FABRIC": str(options.fabric_delay)}
    area.environment["SHUNT_FABRIC"] = "tcp:lo"
    area.environment.update(slow)
    area.start(HOME, MAKER)
    for name in slow:
        del area.environment[name]
    await_homes(area)
    area.under_shunt("mkdir", area.root / "out", node=HOME)
    for node in (HOME, MAKER):  # else it would be delegated to its one user
        area.under_shunt("ls", area.root / "out", node=node)
    (area.plain / "out").mkdir()


def crew(area, processes, member, node=MAKER):
    directory = (area.root if node else area.plain) / "out"
    made = area.crew("bench_remote", directory, processes, member, node=node)
    made.make("create", 1, prefix=f"first{member}", active=processes)
    return made


def latencies(options, mount):
    """[{way: microseconds of a create}]"""
    with measuring.Area(options, parent=mount) as area:
        start(area, options)
        crews = {"native": crew(area, 1, 1, node=None), "remote": crew(area, 1, 1), "own": crew(area, 1, 2),
                 "row": crew(area, 1, 0)}
        area.must_be_redirected()
        ways = {name: lambda turn, one=one: one.microseconds("create", options.remote_files, prefix=f"r{turn}")
                for name, one in crews.items()}
        return measuring.alternate(options.rounds, "through a remote home", ways)


def frames(options, mount, processes):
    """[frames that were sent for a create]"""
    with measuring.Area(options, parent=mount) as area:
        start(area, options)
        makers = crew(area, processes, 1)
        each = max(1, options.remote_files // processes)
        counted = lambda: area.status("--all")["all"]["frames_sent"]  # noqa: E731

        def one_round(turn):
            before = counted()
            asked = counted() - before  # for the question how many
            makers.make("create", each, prefix=f"r{turn}", active=processes)
            return (counted() - before - 2 * asked) / (each * processes)

        return measuring.repeat(options.rounds, "frames", one_round)


def findings(rounds):
    yield measuring.Finding(6, "create through a remote home, over the file system's own", "x",
                            [one["remote"] / one["native"] for one in rounds], most=1.3)
    yield measuring.Finding(6, "... with its home on the same node", "x", [one["own"] / one["native"] for one in rounds])
    yield measuring.Finding(6, "create of names in a row, half of them with a remote home, over the file system's own", "x",
                            [one["row"] / one["native"] for one in rounds], most=1.1)
    words = {"native": "natively", "remote": "through a remote home", "own": "with its home on the same node",
             "row": "of names in a row"}
    for way, how in words.items():
        yield measuring.Finding(6, f"create, {how}", "us", [one[way] for one in rounds])


def measure(options):
    many = f"{options.remote_ranks} ranks"
    with slow_file_system(options, options.create_time) as mount:
        found = list(findings(latencies(options, mount)))
        places = {"in memory": (None, 0.75), "where creates are slow": (mount, None)}
        for where, (parent, most) in places.items():
            found.append(measuring.Finding(6, f"frames for a create through a remote home, {many}, {where}", "",
                                           frames(options, parent, options.remote_ranks), most=most))
            found.append(measuring.Finding(6, f"... one rank, {where}", "", frames(options, parent, 1)))
    return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
