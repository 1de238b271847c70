# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Names are those of one directory on all nodes, whatever their kernels remember."""

import os

import pytest

STEPS = os.environ.get("STEPS", "40")


@pytest.mark.parametrize("placement", ["branch", pytest.param("auto", marks=pytest.mark.long)])
def test_all_see_each_step(idle, placement):
    """steps.py; natively NFS does not."""
    idle.start(placement=placement)
    said, is_well = idle.met("steps.py", "steps", STEPS=STEPS)
    assert is_well and "0 wrong" in said, said[-4000:]


def test_one_of_all_wins(session):
    """races.py: O_EXCL, mkdir, rename and the like, by all at the same time."""
    said, is_well = session.met("races.py", "races", 5)
    assert is_well, said[-4000:]


def test_directories_that_are_made_again(session):
    """made_again.py: what is used is the one that is there now."""
    said, is_well = session.met("made_again.py", "made-again")
    assert is_well, said[-4000:]


def test_what_one_writes_all_read(session):
    for node in session.nodes:
        session.sh(node, f"mkdir -p out; for i in $(seq 20); do echo {node}-$i >out/{node}-$i; done")
    for node in session.nodes:
        assert len(session.names(node, "out")) == 20 * len(session.nodes)
        assert len(set(session.sh(node, "cat out/*").split())) == 20 * len(session.nodes)
    session.stop()


def test_what_one_gives_a_directory_files_of_all_have(session):
    """Its group, although their kernels have its attributes of before."""
    first = session.nodes[0]
    session.sh(first, "mkdir d")
    for node in session.nodes:
        assert session.sh(node, f"touch d/before{node}; stat -c %a d") == "755\n"
    session.sh(first, "chgrp 1234 d; chmod 2775 d")
    for node in session.nodes:
        assert session.sh(node, f"touch d/after{node}; stat -c %g d/after{node}") == "1234\n"


def test_a_directory_of_a_file_that_is_open_and_removed(session):
    """NFS keeps it under another name until it is closed: rmdir is refused until then, as natively, and nothing else is."""
    first, last = session.nodes[0], session.nodes[-1]
    session.sh(first, "mkdir d; mkfifo close")
    for node in session.nodes:
        session.sh(node, f"touch d/{node}; rm d/{node}")
    holds = session.begin(first, "exec 3<>d/open; rm d/open; touch go; read line <close")
    session.wait_for(lambda: "go" in session.names(last), "an open file")
    refused = session.cluster.run(last, session.under("rmdir", "d"))
    is_kept = session.cluster.kind == "nfs"
    assert (refused.returncode != 0) == is_kept and ("not empty" in refused.stderr) == is_kept, refused.stderr
    session.sh(last, "mkdir -p d")
    for node in session.nodes:
        session.sh(node, f"echo {node} >d/{node}")
    assert session.names(first, "d") == list(map(str, session.nodes))
    session.sh(first, "echo >close")
    assert holds.wait(60) == 0, holds.communicate()[0]
    session.sh(last, "rm d/*; rmdir d")
    assert session.names(first) == ["close", "go"]
