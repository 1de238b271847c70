# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Many nodes and one namespace: whoever makes, moves and removes, all see one directory."""

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
