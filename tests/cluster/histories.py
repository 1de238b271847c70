# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Records histories of clients on several nodes and has them checked."""

import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
NODES = ("a", "b", "c", "d")
CLIENTS = ("a", "b", "c", "d", "a", "b", "c", "d")
OPERATIONS = 100


@functools.cache
def checker(build):
    """The checker, compiled for this build directory; others may do so at the same time, or run it."""
    program = build / "tests" / "cluster" / "linearizable"
    own = f"{program}.{os.getpid()}"
    subprocess.run(["go", "build", "-o", own, "."], cwd=HERE / "linearizable" / "check", check=True)
    os.replace(own, program)
    return program


@dataclass
class Judgement:
    """What the checker found."""

    text: str
    histories: int
    wrong: int
    undecided: int
    failed: int = 0  # operations, for want of an answer
    cut: int = 0  # histories with such operations
    done: int = 0  # histories in which some of them had been carried out all the same


class Histories:
    """Of all histories a quarter begins with names in the trunk that were made natively, a quarter with names that
    an earlier session has made on all nodes, and half with nothing."""

    def __init__(self, session, build, area, seed, count, placement, nodes=NODES):
        self.session, self.nodes = session, nodes
        self.program = build / "tests" / "cluster" / "history"
        self.checker = checker(build)
        self.out = area / "histories"
        self.seed, self.count, self.placement = seed, count, placement
        self.out.mkdir()

    def words(self, name, first, count, operations, clients):
        return [self.program, self.session.root, self.out / name, self.seed, first, count, operations, *clients]

    def begin_natively(self):
        natively = list(map(str, self.words("native", 0, self.count // 4, 0, ("-", "-"))))
        subprocess.run(natively, check=True, timeout=300)

    def begin(self):
        quarter = self.count // 4
        self.begin_natively()
        with self.serving():
            self.session.on("a", *self.words("early", quarter, quarter, 0, self.nodes), timeout=300).check()

    @contextlib.contextmanager
    def serving(self, **settings):
        self.session.start(*self.nodes, placement=self.placement, **settings)
        try:
            yield
        finally:
            self.session.tool("stop", "--root", self.session.root)

    @contextlib.contextmanager
    def served(self, **settings):
        """Daemons that know nothing of what there is to begin with."""
        self.begin()
        with self.serving(**settings):
            yield

    def daemons(self):
        status = json.loads(self.session.tool("status", "--root", self.session.root, "--json").check())
        return [member["pid"] for member in status[0]["members"]]

    def run(self, **settings):
        words = self.words("run", 0, self.count, OPERATIONS, CLIENTS)
        return self.session.on("a", *words, timeout=900, **settings).check()

    def record(self, **settings):
        with self.served(**settings):
            self.run(**settings)

    @contextlib.contextmanager
    def begun(self, first, programs, count):
        """So many programs record so many histories each, from the number `first` on. The block begins when all are at
        work, and they are waited for at its end. Two clients of each are on each node."""
        clients = self.nodes * 2
        numbers = range(first, first + programs * count, count)
        words = [self.words(f"run-{number:06}", number, count, OPERATIONS, clients) for number in numbers]
        processes = [self.session.begin("exec", self.nodes[0], "--", *map(str, of_one)) for of_one in words]
        try:
            self.session.wait_for(lambda: all(len(list(self.out.glob(f"run-{number:06}.*"))) == len(clients)
                                              for number in numbers))
            yield
            assert [process.wait(300) for process in processes] == [0] * programs
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def judge(self, *words):
        """A word may be `-cut`: operations may have failed because a node was out of reach."""
        files = sorted(self.out.iterdir())
        done = subprocess.run([self.checker, "-within", "100s", *words, *files], capture_output=True, text=True,
                              timeout=900, check=False)
        counts = re.search(r"^(\d+) histories, .*: (\d+) not linearizable, (\d+) not decided$", done.stdout, re.MULTILINE)
        failed = re.search(r"^(\d+) operations failed in (\d+) histories, .* happened in (\d+)$", done.stdout, re.MULTILINE)
        assert done.returncode in (0, 1) and counts, done.stdout + done.stderr
        return Judgement(done.stdout, *map(int, counts.groups()), *map(int, failed.groups() if failed else ()))

    def check(self, *words):
        found = self.judge(*words)
        print("\n".join(found.text.splitlines()[-1 - len(words):]))
        assert found.histories == self.count
        assert found.wrong + found.undecided == 0, (
            f"seed {self.seed}, placement {self.placement}\n{found.text[-12000:]}")
        return found
