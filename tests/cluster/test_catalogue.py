# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Catalogues of several nodes: a listing that is loaded from them equals the file system, whichever nodes wrote them or are present."""

import os
import subprocess

import cephfs
import pytest

NAMES = 300  # of each node, more than are read before a catalogue is asked
MAKE = "python3 -c 'import sys\nfor number in range({0}): open(f\"out/{1}{{number}}\", \"x\").close()'"

SLOW_IS_NO_MATTER = pytest.mark.parametrize("net", ["host"], indirect=True)


def fill(session):
    session.start("a", "b")
    session.sh("a", "mkdir out")
    for node in "ab":
        session.sh(node, MAKE.format(NAMES, node))
    session.stop("b", "a")
    assert len(list(session.root.glob(".shunt/b/*/catalogue"))) == 2


def expected(session):
    return sorted(path.name for path in session.root.glob(".shunt/b/*/out-*/*/*"))


def leaf_of(session, node):
    return max(session.root.glob(f".shunt/b/{node}.*/out-*/*"), key=lambda leaf: len(os.listdir(leaf)))


def taken(session, node):
    return session.status("--node", node)["counters"]["catalogue_taken"]


@SLOW_IS_NO_MATTER
def test_the_other_nodes_names_are_taken_from_its_catalogue(session):
    fill(session)
    session.start("a")
    assert sorted(session.names("a", "out")) == expected(session) and len(expected(session)) == 2 * NAMES
    assert taken(session, "a") >= 2, "of the leaf of either node"


@SLOW_IS_NO_MATTER
@pytest.mark.parametrize("leaves", ["a", "b"])
def test_what_a_node_alone_uses_is_recorded_as_it_leaves(session, leaves):
    """Its names are given back to all homes then, unless the other one has left first."""
    session.start("a", "b", SHUNT_CATALOGUE_QUIET="86400")
    session.wait_for(session.is_settled)
    session.sh("a", "mkdir out")
    session.sh("a", MAKE.format(NAMES, "a"))
    session.stop(leaves)
    session.stop(*{"a", "b"} - {leaves})
    session.start("a")
    assert sorted(session.names("a", "out")) == expected(session) and len(expected(session)) == NAMES
    assert taken(session, "a") >= 1


@SLOW_IS_NO_MATTER
@pytest.mark.parametrize("whose", ["a", "b"])
def test_what_was_changed_between_sessions_is_read(session, whose):
    fill(session)
    (leaf_of(session, whose) / "new").touch()
    (leaf_of(session, whose) / f"{whose}7").unlink()
    session.start("a", "b")
    for node in "ab":
        assert sorted(session.names(node, "out")) == expected(session)
    assert "new" in expected(session) and f"{whose}7" not in expected(session)


@SLOW_IS_NO_MATTER
def test_a_catalogue_that_others_made_stale_is_not_believed(session):
    """b's names change while b is not there; its own catalogue is of before, a's has them as they are."""
    fill(session)
    session.start("a")
    session.sh("a", "rm out/b7; mv out/b8 out/moved; touch out/more")
    session.stop("a")
    session.start("b")
    assert sorted(session.names("b", "out")) == expected(session)
    assert not {"b7", "b8"} & set(expected(session)) and {"moved", "more"} <= set(expected(session))
    assert taken(session, "b") >= 1


@SLOW_IS_NO_MATTER
def test_when_a_home_is_lost_its_names_are_loaded_again(session):
    session.start("a", "b", SHUNT_STALE="6", SHUNT_CATALOGUE_QUIET="1")
    session.sh("a", "mkdir out")
    for node in "ab":
        session.sh(node, MAKE.format(NAMES, node))
    session.wait_for(lambda: all(session.status("--node", node)["counters"]["catalogue_behind_seconds"] == 0 for node in "ab"))
    (leaf_of(session, "b") / "native").touch()  # which b has not seen
    session.vanish("b")
    session.wait_for(lambda: [member["node"] for member in session.members()] == ["a"])
    names = session.names("a", "out")
    assert sorted(names) == expected(session) and "native" in names and len(names) == 2 * NAMES + 1


@pytest.mark.skipif(cephfs.what_is_missing() is not None, reason=str(cephfs.what_is_missing()))
@pytest.mark.xdist_group("cephfs")
def test_on_cephfs_the_other_client_sees_each_change(build, tmp_path):
    """The times that a client is told are of now, also those of what another client changed a moment ago."""
    fill_there = "import sys\nfor number in range(int(sys.argv[2])): open(f'{sys.argv[1]}/n{number}', 'w').close()"
    with cephfs.two_nodes(tmp_path, build) as nodes:
        with nodes.session("branch"):
            out = nodes.shared("out")
            nodes.under_shunt(0, "python3", "-c", fill_there, out, NAMES)
        leaf = max((nodes.ceph.mounts[1] / "root").glob(".shunt/b/n0.*/out-*/*"), key=lambda path: len(os.listdir(path)))

        def count():
            words = ["strace", "-o", tmp_path / "trace", "-y", "-e", "trace=getdents64", nodes.shunt, "find", out, "-type", "f", "-count"]
            found = int(nodes.begin(0, *words, stdout=subprocess.PIPE, text=True).communicate(timeout=60)[0])
            return found, f"{leaf.parent.name}/{leaf.name}>" in (tmp_path / "trace").read_text()

        assert count() == (NAMES + 2, False)
        for change, more in ((leaf / "new").touch, 3), ((leaf / "n7").unlink, 2), (lambda: (leaf / "n8").rename(leaf / "n9"), 1):
            change()
            assert count() == (NAMES + more, True)
            with nodes.session("branch"):
                nodes.under_shunt(0, "ls", out)
                nodes.under_shunt(0, "touch", nodes.root / f"kept-{more}")  # a branch with nothing in it goes, and its catalogue
            assert count() == (NAMES + more, False), "the session has recorded it"
