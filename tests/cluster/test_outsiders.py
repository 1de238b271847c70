# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What programs without the library make in the trunk, or remove there, is listed as it is on each of several nodes."""

import pytest


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_each_node_lists_what_an_outsider_did(session):
    session.start("a", "b", "c")
    session.homes()
    session.sh("a", "mkdir d; for i in $(seq 20); do echo x >d/a$i; done")
    session.sh("b", "for i in $(seq 20); do echo x >d/b$i; done")
    known = {f"{node}{i}" for node in "ab" for i in range(1, 21)}
    for i in range(20):
        (session.root / "d" / f"core.{i}").write_text("x")
        known.add(f"core.{i}")
        assert set(session.names("abc"[i % 3], "d")) == known
        if i % 2:
            (session.root / "d" / f"core.{i - 1}").unlink()
            known.remove(f"core.{i - 1}")
    assert set(session.names("a", "d")) == set(session.names("b", "d")) == set(session.names("c", "d")) == known
    # And nothing of it is in the way of what shunt does.
    session.sh("b", "cd d; rm core.*; ls")
    assert not list((session.root / "d").glob("core.*"))
    assert set(session.names("c", "d")) == {name for name in known if not name.startswith("core.")}
