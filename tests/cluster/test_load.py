# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Who lists the mirrors of a directory that is loaded: each daemon those of its own node, and a share of those of absent nodes."""


import pytest

ON_ONE_HOST = pytest.mark.parametrize("net", ["host"], indirect=True)
MANY = 64  # branches
MIRROR = "out-{:012x}"
ID = 0x5f3a9c01d2e4


def nodes(count):
    return [f"n{number}" for number in range(count)]


def fill(session, of_nodes, names=3):
    """What sessions of these nodes left: a directory `out` with a file in the trunk and a mirror in the branch of each."""
    session.start("n0")
    session.sh("n0", "mkdir out; touch out/of-n0")
    session.stop("n0")
    mirror, = session.root.glob(".shunt/b/n0.1/out-*")
    (session.root / "out" / "of-trunk").touch()
    for node in of_nodes:
        leaf = session.root / ".shunt" / "b" / f"{node}.1" / mirror.name / "0"
        leaf.mkdir(parents=True, exist_ok=True)
        for number in range(names):
            (leaf / f"{node}-{number}").touch()
    return sorted(["of-n0", "of-trunk", *(f"{node}-{number}" for node in of_nodes for number in range(names))])


def mirrors(session, node):
    """How many mirrors its daemon has looked for: its own, those of absent nodes, and those of other daemons."""
    counters = session.status("--node", node)["counters"]
    return tuple(counters[f"mirrors_{whose}"] for whose in ("own", "absent", "others"))


@ON_ONE_HOST
@pytest.mark.parametrize("present", [MANY, MANY // 2])
def test_no_daemon_looks_for_more_mirrors_than_its_share(session, present):
    """Each node has two branches: that of this session, and that in which its names are."""
    here, expected = nodes(present), fill(session, nodes(MANY))
    session.start_at_once(*here)
    assert session.homes() == sorted(here)
    session.sh("n0", "ls")
    before = {node: mirrors(session, node) for node in here}
    assert sorted(session.names("n0", "out")) == expected
    listed = {node: tuple(now - then for now, then in zip(mirrors(session, node), before[node])) for node in here}
    assert listed == {node: (2, (MANY - present) // present, 0) for node in here}
    assert session.sh("n1", f"cd out; test -e n{MANY - 1}-2; test ! -e n{MANY - 1}-3; ls -A | wc -l") == f"{len(expected)}\n"
    session.tool("stop", "--root", session.root, "--all").check()
