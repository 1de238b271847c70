# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Processes contend for names: exactly one wins each, natively and under shunt."""

import pytest
from conftest import run


@pytest.mark.parametrize("placement,leaf_full", [("branch", 50000), ("branch", 7), ("auto", 50000)])
def test_exactly_one_wins_each_name(build, shunt, root, placement, leaf_full):
    result = shunt("run", "--root", root, "--placement", placement, "--leaf-full", str(leaf_full), "--",
                   build / "tests" / "node" / "race", root, "4", "200")
    result.check()
    assert result.out.count("200 of 200 won, 0 wrong") == 8, result.out
    assert not (root / ".shunt").exists()


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_directories_come_go_and_are_exchanged(build, shunt, root, area, placement):
    for place in ("outside", "native", "native-outside"):
        (area / place).mkdir()
    program = build / "tests" / "node" / "moving"
    right = "come 0, go 0, exchange 0, out 0\n"
    assert run([program, area / "native", area / "native-outside"]).check() == right
    assert shunt.run(root, [program, root, area / "outside"], placement=placement).check() == right
    assert not (root / ".shunt").exists()
