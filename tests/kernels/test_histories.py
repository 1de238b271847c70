# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Clients on all nodes work on the same few names at once: what they saw is what one directory shows (tests/cluster's programs).

SHUNT_HISTORIES says how many histories of a hundred operations there are (default 12), SHUNT_SEED what they are made from. On NFS
they are recorded with lookupcache=none, with which alone names are strict there (shunt(7)), unless SHUNT_HISTORIES_AS_MOUNTED is
set."""

import contextlib
import os
import re
import subprocess

import histories
import meeting
import pytest

COUNT = int(os.environ.get("SHUNT_HISTORIES", "12"))
SEED = int(os.environ.get("SHUNT_SEED", "1"))
CLIENTS = 8
KNOWS_FLAGS = ("gfs2",)  # of renameat2
AS_MOUNTED = "SHUNT_HISTORIES_AS_MOUNTED" in os.environ


class Histories(histories.Histories):
    """Each client is a process of a node; what they write down is fetched from there."""

    def __init__(self, session, area, count, placement="branch"):
        super().__init__(session, session.cluster.build, area, SEED, count, placement, session.nodes)

    def record_by(self, clients, name, first, count, operations, is_served=True, **settings):
        """Client i is on the node clients[i]."""
        cluster = self.session.cluster
        with meeting.held(cluster.listener(), len(clients)) as (address, port):
            begun = []
            for me, node in enumerate(clients):
                words = ["env", f"HISTORY_ME={me}", f"HISTORY_MEETING={address}:{port}",
                         *(f"{name}={value}" for name, value in settings.items()), self.program, self.session.root,
                         f"/tmp/{name}", self.seed, first, count, operations, *["-"] * len(clients)]
                line = self.session.under(*words) if is_served else " ".join(map(str, words))
                begun.append(cluster.popen(node, line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            said = [process.communicate(timeout=900)[0] for process in begun]
        assert [process.returncode for process in begun] == [0] * len(clients), "".join(said)
        for me, node in enumerate(clients):
            written = cluster.must(node, f"cat /tmp/{name}.{me}; rm /tmp/{name}.{me}")
            if cluster.kind == "nfs":  # counts of links are remembered for some seconds there, as all attributes are
                written = re.sub(r"^((?!.* i ).*) \d+$", r"\1 0", written, flags=re.MULTILINE)
            (self.out / f"{name}.{me}").write_text(written)

    def begin_natively(self):
        self.record_by([self.nodes[0]] * 2, "native", 0, self.count // 4, 0, is_served=False)

    def begin(self):
        quarter = self.count // 4
        self.begin_natively()
        with self.serving():
            self.record_by(self.nodes, "early", quarter, quarter, 0)

    @contextlib.contextmanager
    def serving(self, **_):
        self.session.start(placement=self.placement)
        yield
        self.session.stop()

    def run(self, **settings):
        clients = [self.nodes[number % len(self.nodes)] for number in range(CLIENTS)]
        self.record_by(clients, "run", 0, self.count, histories.OPERATIONS, **settings)


@pytest.fixture
def strict(idle):
    """What is to be strict."""
    is_other = idle.cluster.kind == "nfs" and not AS_MOUNTED
    if is_other:
        idle.cluster.mount_again("lookupcache=none")
    yield idle
    if is_other:
        idle.end()
        idle.cluster.mount_again()


def words_for(cluster):
    """How the checker is to read histories of this file system."""
    plain = [] if cluster.kind in KNOWS_FLAGS else ["-plain"]
    return [*plain, "-keeps-open"] if cluster.kind == "nfs" else plain


@pytest.mark.parametrize("placement", ["branch", pytest.param("auto", marks=pytest.mark.long)])
def test_histories_are_linearizable(strict, tmp_path, placement):
    made = Histories(strict, tmp_path, COUNT, placement)
    made.record()
    made.check(*words_for(strict.cluster))
