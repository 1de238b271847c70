# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Many nodes and one namespace: whichever node makes, moves and removes, all see one directory."""

import subprocess

import pytest

ALL = pytest.mark.parametrize("net, count", [("host", 3), ("network", 3), ("slow", 3), ("network", 8), ("slow", 8),
                                             ("network", 64)], indirect=["net"])
FILES = 10


def every(session, nodes, script):
    """Runs a script on all nodes at the same time, with $N the node and $NEXT the one after it."""
    following = dict(zip(nodes, [*nodes[1:], nodes[0]]))
    begun = [session.begin("exec", node, "--", "sh", "-euc", f"N={node} NEXT={following[node]}; {script}") for node in nodes]
    assert [process.wait(120) for process in begun] == [0] * len(nodes)


@ALL
def test_all_see_one_directory(session, count):
    nodes = [f"n{number}" for number in range(count)]
    session.start_at_once(*nodes)
    assert sorted(member["node"] for member in session.members()) == sorted(nodes)
    session.sh(nodes[0], "mkdir out")
    every(session, nodes, f"for i in $(seq {FILES}); do echo $N >out/$N-$i; done")
    for node in nodes:
        assert session.branch_of(f"out/{node}-1") == node
    every(session, nodes, f'[ "$(ls out | wc -l)" -eq {FILES * count} ]; [ "$(cat out/$NEXT-1)" = $NEXT ]')
    every(session, nodes, "mv out/$NEXT-1 out/$N-moved; rm out/$NEXT-2")
    every(session, nodes, f'[ "$(ls out | wc -l)" -eq {(FILES - 1) * count} ]; [ "$(cat out/$N-moved)" = $NEXT ]')
    session.stop(*reversed([member["node"] for member in session.members()]))
    session.tool("export", session.root).check()
    expected = {f"{node}-{which}" for node in nodes for which in ("moved", *range(3, FILES + 1))}
    assert {path.name for path in (session.root / "out").iterdir()} == expected


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_what_concerns_all_costs_the_logarithm_of_their_number(session):
    """Messages one after the other, there and back, on the longest way to the homes of a directory's names: a daemon and
    those that it asks in turn are a binary tree."""
    (session.root / "out").mkdir()
    nodes, hops = [], {}
    for count in (1, 2, 3, 4, 8, 16, 32, 64):
        fresh = [f"n{number}" for number in range(len(nodes), count)]
        session.start_at_once(*fresh)
        nodes += fresh
        session.homes()
        session.sh("n0", "ls out")
        status = session.status()
        assert status["node"] == "n0"
        hops[count] = status["counters"]["max_hops"]
    print("messages on the longest way, by the number of daemons:", hops)
    assert hops == {count: 2 * (count.bit_length() - 1) for count in hops}
    session.tool("stop", "--root", session.root, "--all").check()


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("first", "acd")
def test_nobody_is_sent_to_a_mirror_before_all_daemons_know_it(session, first):
    """Not even by a daemon that has heard of it already. Else the one that has not, and is home of the name, finds
    nothing at the place that it tells, and takes the file for removed."""
    outs = [session.root / f"out{number}" for number in range(8)]
    session.start("a", "b", "c", "d")
    session.sh("a", "mkdir out0 out1 out2 out3 out4 out5 out6 out7")
    for node in "abcd":
        session.sh(node, "ls out*")

    def touch(node, out):
        return session.begin("exec", node, "--", "touch", out / f"of-{node}")

    def marked():
        """Some of them, if not all: those that b rules wait for it even so far."""
        return [out for out in outs if (out / ".shunt-dir").exists()]

    with session.stopped("b"):
        begun = [touch(first, out) for out in outs]
        session.wait_for(marked)
        out = marked()[0]
        begun += [touch(node, out) for node in "acd" if node != first]
        for process in begun:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.2)
    assert [process.wait(30) for process in begun] == [0] * 10
    assert session.names("b", out.name) == ["of-a", "of-c", "of-d"]
    session.sh("b", "rm out*/of-*")
    assert session.names("a", out.name) == []


@pytest.mark.parametrize("net", ["host", "network"], indirect=True)
def test_all_are_counted_and_stopped_from_one_host(session):
    """Each namespace of the network can be asked by its own channel alone; a collective reaches the others."""
    nodes = ["a", "b", "c", "d", "e"]
    session.start(*nodes)
    session.sh("a", "mkdir out")
    for node in nodes:
        session.sh(node, f"echo >out/{node}")
    total = session.status("--all")["all"]
    assert (total["daemons"], total["creates"], total["redirected"]) == (5, 6, 5)
    assert "all together:" in session.tool("status", "--root", session.root, "--all").check()
    daemons = [member["pid"] for member in session.members()]
    with session.stopped("d"):
        result = session.tool("status", "--root", session.root, "--all")
        assert result.status == 1 and "not all of its daemons answer" in result.err
    session.tool("stop", "--root", session.root, "--all").check()
    assert not any(session.is_running(pid) for pid in daemons)
    session.tool("stop", "--root", session.root, "--all").check()
    session.tool("export", session.root).check()
    assert sorted(path.name for path in (session.root / "out").iterdir()) == nodes
