# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""tests/node/random_calls.py by turns from three nodes: calls come to what they come to natively by turns from three processes, each of
which has descriptors and a working directory of its own. SHUNT_SEEDS says how many orders (default 10)."""

import os
import pathlib

import pytest
from conftest import one_node
from test_spread import NODES, by_turns

SEEDS = int(os.environ.get("SHUNT_SEEDS", "10"))
PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "node" / "random_calls.py"


@pytest.mark.parametrize("net, placement, leaf_full", [("host", "branch", 50000), ("host", "auto", 50000), ("host", "branch", 3),
                                                       ("network", "auto", 50000)], indirect=["net"])
def test_random_calls_by_turns(session, tmp_path, placement, leaf_full):
    native, seen = tmp_path / "native", tmp_path / "shunt."  # paths are of one length
    for above in (native, seen):
        above.mkdir()
        (above / "root").mkdir()
    words = list(map(str, [300, *range(1, SEEDS + 1)]))
    expected = by_turns(PROGRAM, native, [str(native / "root"), *words], lambda _: [one_node.PYTHON], lambda _: {})
    session.root = seen / "root"
    for node in NODES:
        session.at("start", node, "--placement", placement, "--leaf-full", leaf_full).check()
    got = by_turns(PROGRAM, seen, [str(seen / "root"), *words], lambda node: [*session.words("exec", node, "--"), one_node.PYTHON],
                   lambda node: {**session.settings, **session.net.settings(node)})
    session.stop(*reversed(NODES))
    one_node.assert_equal_text(expected, got)
