# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""tests/bench/slurm_start.py, once, with two nodes: it still measures what it is for. How fast anything is, is not looked at."""

import pathlib
import sys

from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import slurm_start  # noqa: E402


def test_the_start_and_end_of_a_job(cluster):
    """`shunt stop --all` comes right after the start there, and reaches all daemons."""
    found = slurm_start.times(cluster, BUILD, nodes=2, rounds=1)
    assert set(found) == set(slurm_start.WAYS) and all(len(one) == 1 and min(one[0]) >= 0 for one in found.values())
    assert [one.figure for one in slurm_start.findings(found, 2)] == [slurm_start.FIGURE] * 5
