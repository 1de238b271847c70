# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Daemons and nodes that are lost while all work, and come back. Each file system first has to find out by itself that a node is
gone, and stands still until then."""

import contextlib
import time

import pytest

SHORT = 3  # seconds, less than any of them takes for a loss
WORK = """
i=0
while [ ! -e stop ]; do
    i=$((i + 1))
    echo $i >out/node{node}-$i && mv out/node{node}-$i out/done{node}-$i || exit 1
    echo $i >out/node{node} || exit 1
done
echo $i
"""


class Work:
    """Each of some nodes makes files, and renames them."""

    def __init__(self, session, nodes):
        self.session, self.nodes = session, nodes
        self.loops = {node: session.begin(node, WORK.format(node=node)) for node in nodes}
        self.counts = {}

    def made(self, looker, node):
        """NFS may tell the size of a file that is being written before its bytes, which are zeros until then: it is read again."""
        text = "\0"
        while "\0" in text:
            text = self.session.sh(looker, f"cat out/node{node} 2>/dev/null || echo 0")
        return int(text.strip() or 0)

    def goes_on(self, looker):
        """All of these nodes make more."""
        before = {node: self.made(looker, node) for node in self.nodes}
        for node, loop in self.loops.items():
            self.session.wait_for(lambda node=node, loop=loop: loop.poll() is not None or self.made(looker, node) > before[node],
                                  f"work of node {node}")
            assert loop.poll() is None, f"node {node}: {loop.communicate()[0][-3000:]}"

    def end(self, looker):
        self.session.sh(looker, "touch stop")
        for node, loop in self.loops.items():
            said = loop.communicate(timeout=90)[0]
            assert loop.returncode == 0, f"node {node}: {said[-3000:]}"
            self.counts[node] = int(said.split()[-1])

    def names(self):
        return {f"done{node}-{i}" for node, count in self.counts.items() for i in range(1, count + 1)}


@contextlib.contextmanager
def work_of(session, nodes, looker):
    """They do it in the block, and nothing of it fails, or is lost."""
    session.sh(looker, "mkdir out; ls out")
    work = Work(session, nodes)
    try:
        work.goes_on(looker)
        yield work
        work.goes_on(looker)
        work.end(looker)
    finally:
        for loop in work.loops.values():
            loop.kill()
    listed = set(session.names(looker, "out"))
    assert work.names() <= listed, sorted(work.names() - listed)[:20]
    assert {name for node in nodes for name in listed if name.startswith(f"done{node}-")} == work.names()


def daemon_of(session, node):
    """Its process, if all are homes; else None."""
    members = session.status(node)["members"]
    mine = [member["pid"] for member in members if member["node"] == f"node{node}"]
    return mine[0] if mine and all(member["home"] == "yes" for member in members) else None


@pytest.fixture
def hasty(idle):
    """A node that is silent for six seconds is lost."""
    idle.settings["SHUNT_STALE"] = "6"
    idle.start()
    return idle


def names_of(nodes):
    return [f"node{node}" for node in nodes]


def test_a_daemon_that_is_killed(session):
    """Its supervisor starts another one; who works meanwhile notices nothing."""
    last = session.nodes[-1]
    with work_of(session, session.nodes, 1):
        session.wait_for(lambda: daemon_of(session, last), "homes")
        killed = daemon_of(session, last)
        session.cluster.must(last, f"kill -KILL {killed}")
        session.wait_for(lambda: daemon_of(session, last) not in (None, killed), "another daemon")
    session.stop()


def test_a_node_that_stands_still_for_a_moment(session):
    with work_of(session, session.nodes, 1):
        session.cluster.freeze(session.nodes[-1])
        time.sleep(SHORT)
        session.cluster.thaw(session.nodes[-1])


@pytest.mark.long
def test_a_network_that_is_away_for_a_moment(session):
    with work_of(session, session.nodes, 1):
        session.cluster.cut(session.nodes[-1])
        time.sleep(SHORT)
        session.cluster.mend(session.nodes[-1])


@pytest.mark.long
def test_a_daemon_and_all_that_it_knew(hasty):
    """Nobody starts another one, until the node joins again."""
    *others, lost = hasty.nodes
    hasty.sh(lost, "mkdir d; for i in $(seq 20); do echo $i >d/$i; done")
    with work_of(hasty, others, 1):
        hasty.cluster.must(lost, "pkill -KILL shuntd; rm -rf /dev/shm/*")
        hasty.wait_for(lambda: hasty.members(1) == names_of(others), "the loss")
        assert hasty.sh(1, "cat d/7") == "7\n"
        hasty.start(lost)
        assert hasty.sh(lost, "cat d/7; echo new >d/new") == "7\n"
        assert hasty.sh(1, "cat d/new; rm -r d") == "new\n"
    hasty.stop()


@pytest.mark.long
@pytest.mark.parametrize("which", ["first", "last"])
def test_a_node_that_loses_its_power(hasty, which):
    """What was synced is there; the others go on, whichever home it was; it boots, and joins again."""
    lost = hasty.nodes[0 if which == "first" else -1]
    others = [node for node in hasty.nodes if node != lost]
    looker = others[0]
    hasty.sh(lost, "mkdir d; for i in $(seq 20); do echo $i >d/$i; done; sync")
    hasty.cluster.must(lost, "sync")
    with work_of(hasty, others, looker):
        hasty.cluster.off(lost)
        hasty.wait_for(lambda: hasty.members(looker) == names_of(others), "the loss")
        assert len(hasty.names(looker, "d")) == 20
        assert hasty.sh(looker, "cat d/* | sort -n | tail -n 1; mv d/1 d/moved; rm d/2") == "20\n"
        hasty.cluster.boot(lost)
        hasty.start(lost)
        assert hasty.sh(lost, "cat d/moved; ls d | wc -l; echo back >d/back") == "1\n19\n"
        assert hasty.sh(looker, "cat d/back; rm -r d") == "back\n"
    hasty.stop()
    hasty.cluster.must(looker, hasty.words(hasty.shunt, "fsck", hasty.root))


@contextlib.contextmanager
def spoils(cluster):
    """Who was lost to OCFS2 or GFS2 has to boot again; CephFS lets it in only by another mount."""
    cluster.spoiled = cluster.kind in ("ocfs2", "gfs2", "ceph")
    yield


@pytest.mark.long
@pytest.mark.parametrize("away, back", [("freeze", "thaw"), ("cut", "mend")], ids=["freeze", "cut"])
def test_a_node_that_is_away_until_it_is_lost(hasty, away, back):
    """The others go on. When it is back, it is a member again where the file system lets it, and its processes notice nothing but
    that they had to wait."""
    *others, lost = hasty.nodes
    if hasty.cluster.kind == "gfs2" and away == "cut" and len(others) == 1:
        pytest.skip("two nodes of GFS2 that do not hear each other need fencing, which is not here")
    hasty.sh(lost, "mkdir d; for i in $(seq 20); do echo $i >d/$i; done")
    hasty.cluster.must(lost, "sync")  # what a lost node's kernel has not written is lost (CephFS), natively, too
    with spoils(hasty.cluster), work_of(hasty, others, 1):
        waits = hasty.begin(lost, "while [ ! -e d/go ]; do cat d/7 >/dev/null || exit 1; done; echo late >d/late; rm d/2")
        getattr(hasty.cluster, away)(lost)
        hasty.wait_for(lambda: hasty.members(1) == names_of(others), "the loss")
        assert hasty.sh(1, "cat d/7; touch d/go") == "7\n"
        if hasty.cluster.spoiled:
            hasty.cluster.off(lost)
            waits.kill()
        else:
            getattr(hasty.cluster, back)(lost)
            assert waits.wait(120) == 0, waits.communicate()[0]
            assert hasty.sh(1, "cat d/late; test -e d/2 || echo gone") == "late\ngone\n"
            hasty.wait_for(lambda: hasty.members(1) == names_of(hasty.nodes), "its return")
