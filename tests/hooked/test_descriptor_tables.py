# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Threads with tables of descriptors of their own, where the library keeps directories open: as on a file system in user space."""

import pytest
from conftest import one_node
from descriptor_tables import FOREIGN_NUMBERS, IN_AN_OWN_TABLE, OWN_TABLES

PROGRAMS = {**{name: IN_AN_OWN_TABLE.format(own=own) for name, own in OWN_TABLES.items()}, "all others": FOREIGN_NUMBERS}
KEEPS = """
import os
open('file', 'x').close()
assert os.path.getsize('file') == 0 and any(int(number) >= 950 for number in os.listdir('/proc/self/fd'))
os.remove('file')
"""


@pytest.fixture
def runs(shunt, tmp_path):
    """Runs a program natively and under shunt: what it printed."""
    roots = [tmp_path / name / "root" for name in ("native", "shunt")]
    for root in roots:
        root.mkdir(parents=True)
    shunt("start", "--root", roots[1], "--placement", "branch", SHUNT_BREAK="near").check()
    under_shunt = [shunt.path, "exec", "--root", roots[1], "--", one_node.PYTHON, "-c"]
    one_node.run([*under_shunt, KEEPS], cwd=roots[1]).check()
    yield lambda program, **settings: (one_node.run([one_node.PYTHON, "-c", program], cwd=roots[0]).check(),
                                       one_node.run([*under_shunt, program], cwd=roots[1], **settings).check())
    shunt("stop", "--root", roots[1]).check()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_number_that_is_another_directory_in_a_threads_own_table(runs, program):
    expected, got = runs(program)
    assert got == expected


def test_a_number_that_nobody_looks_at_is_another_directory_there(runs):
    """Without what the library asks of each number: else the test above would show nothing."""
    expected, got = runs(PROGRAMS["unshare"], SHUNT_BREAK="number-unseen,leaf-unpinned")
    assert got != expected
