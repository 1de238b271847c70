# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Histories of clients on three nodes whose network fails and is mended; with what became of packets and frames, which
shows that it did fail."""

import contextlib
import random
import time

import histories
import network
import pytest

NODES = ("a", "b", "c")
PROGRAMS = 8  # record histories at a time
HISTORIES = 4  # each
# Seconds. TCP tries again after as much as the time that it has waited: this is more than twice as long as any cut.
PATIENT, HASTY = 20, 1


@pytest.fixture(name="net")
def failing_network():
    """For the modules that import it: there sessions are on such a network."""
    if network.what_cannot_fail():
        pytest.skip(network.what_cannot_fail())
    net = network.FailingNetwork()
    yield net
    net.end()


class Trial:
    """In each round histories begin, the network fails in the next of some ways, is mended, and the histories end."""

    def __init__(self, session, build, area, seed, deadline, rounds):
        self.session, self.net = session, session.net
        self.chance = random.Random(seed)
        self.rounds = rounds
        self.made = histories.Histories(session, build, area, seed, rounds * PROGRAMS * HISTORIES, "branch", NODES)
        session.settings.update(SHUNT_DEADLINE=str(deadline), HISTORY_PATIENT="yes")

    @contextlib.contextmanager
    def served(self, **settings):
        self.made.begin_natively()
        with self.made.serving(**settings):
            self.session.homes()
            yield

    @contextlib.contextmanager
    def watched(self):
        """What becomes of packets in the block, and of frames until all have heard each other again."""
        before = self.net.count()
        yield
        self.packets = self.net.count() - before
        self.session.settings["SHUNT_DEADLINE"] = str(PATIENT)
        self.session.wait_for(lambda: all(self.reaches_all(node) for node in NODES))
        self.counters = self.session.status("--all")["all"]
        self.tcp = {name: sum(self.net.seen_by_tcp(node, name) for node in NODES)
                    for name in ("RetransSegs", "TCPOFOQueue", "EstabResets")}

    def reaches_all(self, node):
        """So many names have their homes everywhere. A connection that has waited for long tries again when those that the
        histories needed have long done so."""
        some = f"mkdir -p heard && cd heard && for i in $(seq 30); do : >{node}-$i || exit 1; done && ls"
        return self.session.on(node, "sh", "-c", some, cwd=self.session.root).status == 0

    @contextlib.contextmanager
    def round(self, number):
        """The block begins while its programs are at work, and they end after it, however long they had to wait."""
        with self.made.begun(number * PROGRAMS * HISTORIES, PROGRAMS, HISTORIES):
            time.sleep(self.chance.uniform(0, 0.3))
            yield

    def work(self):
        for number in range(self.rounds):
            with self.round(number):
                pass

    def cut(self, ways, shortest, longest):
        """Each time a node chosen at random is cut off, in the next of some ways, for so many seconds."""
        for number in range(self.rounds):
            with self.round(number), ways[number % len(ways)](self.chance.choice(NODES)):
                time.sleep(self.chance.uniform(shortest, longest))

    def assert_whole(self):
        """All nodes see the same names, each of which is one file somewhere, and work goes on."""
        seen = [sorted(self.names(node)) for node in NODES]
        assert seen[0] == seen[1] == seen[2] != []
        root = self.session.root
        assert len(seen[0]) == len([*root.glob("h*/?/n?"), *root.glob(".shunt/b/*/*/*/n?")])
        for node in NODES:
            self.session.sh(node, f"for i in $(seq 20); do echo >{node}-$i; mv {node}-$i after-{node}-$i; done")
        assert [len(self.session.sh(node, "ls -d after-*").split()) for node in NODES] == [60, 60, 60]

    def names(self, node):
        words = ["find", ".", "-path", "./h*/n?", "-printf", r"%p %i\n"]
        return self.session.on(node, *words, cwd=self.session.root, timeout=900).check().splitlines()

    def check(self, *words):
        frames = {name: self.counters[name] for name in ("frames_sent", "frames_resent", "frames_dropped")}
        print(self.packets, self.tcp, frames, sep="\n")
        return self.made.check(*words)
