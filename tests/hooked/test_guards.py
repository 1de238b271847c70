# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The check of tests/cluster/test_linearizable.py again, with delays at every hook; and with guards taken away, which it
must see.

SHUNT_HISTORIES and SHUNT_SEED as there."""

import os

import histories
import pytest

COUNT = int(os.environ.get("SHUNT_HISTORIES", "300"))
SEED = int(os.environ.get("SHUNT_SEED", "1"))
DELAYS = "*:random=200us"


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_histories_with_delays_are_linearizable(session, build, tmp_path, placement):
    made = histories.Histories(session, build, tmp_path, SEED + 2, max(1, COUNT // 3), placement)
    made.record(SHUNT_HOOKS=DELAYS)
    made.check()


# What is taken away, and the placement that shows it.
GUARDS = {"no-cas": "branch", "absent-while-pending": "branch", "absent-unloaded": "branch", "loser-unlinks": "branch"}


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_missing_is_seen(session, build, tmp_path, guard):
    made = histories.Histories(session, build, tmp_path, SEED + 3, 100, GUARDS[guard])
    made.record(SHUNT_HOOKS=DELAYS, SHUNT_BREAK=guard)
    said, well = made.judge()
    assert not well, said
    assert " 0 not decided" in said, said
