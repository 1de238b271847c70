#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""scaling_measure.py [--build DIR] [--out FILE]: what creates and collectives of 1 to 64 daemons on this machine cost.

Starts sessions of so many daemons on one machine, in memory. Of each it notes, as JSON for scaling.py: how many files
a second the clients of all nodes together make in one directory, what that costs in CPU time, batches and frames, and
how long one client waits for a listing of an empty directory, which all daemons are asked for along their tree, when
nothing else happens. It also notes what creates cost where so many daemons serve in sessions of four, side by side."""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
DAEMONS = (1, 2, 3, 4, 8, 16, 32, 64)
CALIBRATED = 4  # daemons; what more of them do, the model is to find
CLIENTS = 4  # of a node
COLLECTIVES = 300
COUNTERS = ("requests", "batches", "creates", "frames_sent", "frames_received")
# Told `create DIRECTORY UNTIL` (of the clock that all processes share) or `list DIRECTORY COUNT`.
WORKER = """
import json, os, sys, time
def used(): return time.process_time_ns() / 1000
def create(directory, until):  # names that nobody foresees
    count, before = 0, used()
    while time.monotonic() < float(until):
        os.close(os.open(f"{directory}/{sys.argv[1]}-{serial}-{count * count}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        count += 1
    return {"files": count, "us": used() - before}
def timed(call, count):
    took, before = [], used()
    for _ in range(int(count)):
        began = time.monotonic_ns()
        call()
        took.append((time.monotonic_ns() - began) / 1000)
    return {"took": took, "us": used() - before}
def listed(directory, count):
    return timed(lambda: os.listdir(directory), count)
serial = 0
print(flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    serial += 1
    print(json.dumps({"create": create, "list": listed}[verb](*words)), flush=True)
"""


def come_first():
    """Before all else that may run here, if the superuser measures: what is nice is so only to its own session, where the
    kernel groups processes by session. Which share of the cores is then to be had by those that want all of it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return 1.0
    runtime, period = (int(pathlib.Path(f"/proc/sys/kernel/sched_rt_{name}_us").read_text()) for name in ("runtime", "period"))
    return runtime / period if 0 < runtime < period else 1.0


def used_by(pid):
    """Of a daemon's main thread, and of its others, which carry frames: CPU time, and how often it has gone to sleep."""
    used = {"main us": 0, "main sleeps": 0, "fabric us": 0, "fabric sleeps": 0}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        thread = "main" if task.name == str(pid) else "fabric"
        lines = (task / "status").read_text().splitlines()
        used[f"{thread} us"] += int((task / "schedstat").read_text().split()[0]) / 1000
        used[f"{thread} sleeps"] += next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return used


class Session:
    """Daemons of one machine that serve one root, each as a node of its own, and clients on each of these."""

    def __init__(self, build, place, count):
        self.tool = build / "tools" / "shunt"
        self.root = place / "root"
        (place / "run").mkdir(parents=True)
        self.root.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
        # A daemon that nobody can join has no fabric: one node alone is that.
        fabric = "tcp:lo" if count > 1 else "none"
        self.environment = {**kept, "SHUNT_RUN_DIR": str(place / "run"), "SHUNT_FABRIC": fabric}
        self.nodes = [f"n{number}" for number in range(count)]
        self.workers = {}

    def begin(self, *words, **options):
        return subprocess.Popen(list(map(str, words)), env=self.environment, cwd="/", text=True, **options)

    def run(self, *words):
        process = self.begin(*words, stdout=subprocess.PIPE)
        out = process.communicate()[0]
        if process.returncode != 0:
            sys.exit(f"scaling_measure.py: status {process.returncode} of {' '.join(map(str, words))}")
        return out

    def status(self, *words):
        return json.loads(self.run(self.tool, "status", "--root", self.root, "--json", *words))[0]

    def start(self):
        """Until all of them are homes."""
        begun = [self.begin(self.tool, "start", "--root", self.root, "--node", node, "--placement", "branch")
                 for node in self.nodes]
        if any([process.wait() for process in begun]):
            sys.exit("scaling_measure.py: a daemon did not start")
        while any(member["home"] != "yes" for member in self.status()["members"]):
            time.sleep(0.05)
        self.pids = [member["pid"] for member in self.status()["members"]]

    def begin_workers(self):
        for node in self.nodes:
            for which in range(CLIENTS):
                self.workers[node, which] = self.begin(
                    self.tool, "exec", "--root", self.root, "--node", node, "--", PYTHON, "-c", WORKER, f"{node}-{which}",
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)

    def clients(self, count):
        """So many of each node."""
        return [self.workers[node, which] for node in self.nodes for which in range(count)]

    def used(self):
        status = self.status("--all") if len(self.nodes) > 1 else self.status()
        each = [used_by(pid) for pid in self.pids]
        counts = status.get("all", status["counters"])
        return {**{name: sum(one[name] for one in each) for name in each[0]}, **{name: counts[name] for name in COUNTERS}}

    def forget(self, name):
        """Removes a directory natively: the files of all rounds are more than a tmpfs has room for."""
        for top in (self.root / name, *self.root.glob(f".shunt/b/*/{name}-*")):
            shutil.rmtree(top)

    def finish(self):
        for worker in self.workers.values():
            worker.stdin.close()
        for worker in self.workers.values():
            worker.wait()
        if (self.root / ".shunt").exists():
            self.run(self.tool, "stop", "--root", self.root, "--all")


def tell(workers, words_of):
    """All at once; what they say at the end."""
    for number, worker in enumerate(workers):
        worker.stdin.write(" ".join(map(str, words_of(number))) + "\n")
    return [json.loads(worker.stdout.readline()) for worker in workers]


def per(before, after, count):
    return {name: (sum(one[name] for one in after) - sum(one[name] for one in before)) / count for name in after[0]}


def measure_creates(sessions, clients, seconds, serial):
    """All clients of these sessions at once, those of a session in one directory, which all of them know."""
    crews = [(session, worker) for session in sessions for worker in session.clients(clients)]
    workers = [worker for _, worker in crews]
    for session in sessions:
        (session.root / f"out{serial}").mkdir()

    def words_of(until):
        return lambda number: ("create", crews[number][0].root / f"out{serial}", until)

    tell(workers, words_of(time.monotonic() + 0.002 * len(workers) + 0.1))
    before = [session.used() for session in sessions]
    began = time.monotonic()
    told = tell(workers, words_of(began + seconds))
    took = time.monotonic() - began
    after = [session.used() for session in sessions]
    files = sum(one["files"] for one in told)
    for session in sessions:
        session.forget(f"out{serial}")
    return {"rate": files / took, "client us": sum(one["us"] for one in told) / files, **per(before, after, files)}


def measure_collective(session, count):
    """A listing of an empty directory, which all daemons are asked for; one client, and nothing else happens. Another node
    has listed it before: of one that a node has for itself no other is asked."""
    directory = session.root / "few"
    directory.mkdir(exist_ok=True)
    tell(session.clients(1)[:2], lambda _: ("list", directory, 20))
    worker = session.clients(1)[:1]
    before = [session.used()]
    told = tell(worker, lambda _: ("list", directory, count))[0]
    after = [session.used()]
    return {"latency us": statistics.median(told["took"]), "client us": told["us"] / count, **per(before, after, count)}


class Ground:
    """All sessions are there all the time, so that what is compared is measured by turns."""

    def __init__(self, build, place, daemons):
        self.sessions = {count: Session(build, place / f"s{count}", count) for count in daemons}
        # What many daemons on few cores cost each other's caches, sessions tell that have nothing to do with each other.
        self.small = [Session(build, place / f"small{number}", CALIBRATED) for number in range(max(daemons) // CALIBRATED)]
        self.all = [*self.sessions.values(), *self.small]

    def start(self):
        for session in self.all:
            session.start()
        for session in self.all:
            session.begin_workers()
        for session in self.all:
            for worker in session.workers.values():
                worker.stdout.readline()

    def measure_round(self, serial, seconds):
        found = []
        for count, session in self.sessions.items():
            for clients in (1, CLIENTS) if 1 < count <= CALIBRATED else (CLIENTS,):
                row = measure_creates([session], clients, seconds, f"{serial}-{clients}")
                found.append({"what": "creates", "daemons": count, "clients": clients, **row})
            if count > 1:
                found.append({"what": "collective", "daemons": count, **measure_collective(session, COLLECTIVES)})
            if count >= CALIBRATED:
                row = measure_creates(self.small[:count // CALIBRATED], CLIENTS, seconds, f"{serial}-{count}")
                found.append({"what": "side by side", "daemons": count, "clients": CLIENTS, **row})
        return found

    def finish(self):
        for session in self.all:
            session.finish()


def medians(rounds):
    """Of each figure that of all rounds; with how far they are apart."""
    found = []
    for rows in zip(*rounds):
        row = {name: statistics.median(one[name] for one in rows) if isinstance(value, float) else value
               for name, value in rows[0].items()}
        name = "latency us" if row["what"] == "collective" else "rate"
        row["spread"] = [min(one[name] for one in rows), max(one[name] for one in rows)]
        found.append(row)
    return found


@contextlib.contextmanager
def held(path):
    """No other process that holds the same lock works meanwhile."""
    with open(path, "a") if path else contextlib.nullcontext() as lock:
        if path:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TESTS.parent / "build", help="the build directory")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("scaling.json"), help="where the figures go")
    parser.add_argument("--daemons", default=",".join(map(str, DAEMONS)), help="how many daemons a session has")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8, help="that creates are measured each time")
    parser.add_argument("--lock", help="a file to hold locked (flock) while it measures, if others measure here, too")
    options = parser.parse_args()
    share = come_first()
    memory = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="shunt-scaling.", dir=memory, ignore_cleanup_errors=True) as place:
        ground = Ground(options.build.resolve(), pathlib.Path(place), list(map(int, options.daemons.split(","))))
        try:
            ground.start()
            print("all daemons serve", flush=True)
            with held(options.lock):
                rounds = [ground.measure_round(number, options.seconds) for number in range(options.rounds)]
        finally:
            ground.finish()
    machine = {"cores": os.cpu_count(), "share": share, "kind": platform.machine(), "date": time.strftime("%Y-%m-%d"),
               "rounds": options.rounds}
    options.out.write_text(json.dumps({"machine": machine, "measured": medians(rounds)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
