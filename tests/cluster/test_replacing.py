# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A program without shunt replaces or removes names of a root that is served, and puts other things there: each call on them has
the native result on both nodes, and what is there then is the same."""

import json
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("replacing.py")


def differing(native, shunt):
    return {name: (native[name], shunt[name]) for name in native if native[name] != shunt[name]}


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("cases, placement", [("one", "branch"), ("one", "auto"), ("old", "branch"), ("new", "auto")])
def test_what_came_in_the_place_of_a_name_is_what_calls_meet(session, tmp_path, cases, placement):
    def natively(step, top=session.root / "top"):
        return subprocess.run([sys.executable, PROGRAM, step, top, cases], stdout=subprocess.PIPE, check=True).stdout

    def on(node, step):
        return session.on(node, sys.executable, PROGRAM, step, session.root / "top", cases).check()

    for step in ("make", "replace"):
        natively(step, tmp_path / "plain")
    called, left = (json.loads(natively(step, tmp_path / "plain")) for step in ("call", "after"))
    natively("make")
    session.start("a", "b", placement=placement)
    for node in "ab":
        on(node, "look")
    natively("replace")
    assert differing(called, json.loads(on("b", "call"))) == {}
    for node in "ab":
        assert differing(left, json.loads(on(node, "after"))) == {}
