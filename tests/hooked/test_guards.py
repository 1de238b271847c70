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


@pytest.mark.parametrize("rows", ["yes", "checkpoints"])
def test_histories_in_which_all_is_reserved_ahead_are_linearizable(session, build, tmp_path, rows):
    """After any two names what follows from them, right or wrong: the names of others, and names that nobody ever makes."""
    made = histories.Histories(session, build, tmp_path, SEED + 4, max(1, COUNT // 3), "branch")
    with made.served(SHUNT_HOOKS=DELAYS, SHUNT_BREAK="ahead-late"):
        made.run(SHUNT_HOOKS=DELAYS, HISTORY_ROWS=rows)
        counts = [session.status("--node", node)["counters"] for node in made.nodes]
    made.check()
    assert sum(count["prefetched"] for count in counts) > made.count // 10, "or this shows nothing"


@pytest.mark.parametrize("guard", ["no-cas", "absent-while-pending", "absent-unloaded", "loser-unlinks"])
def test_a_guard_that_is_missing_is_seen(session, build, tmp_path, guard):
    made = histories.Histories(session, build, tmp_path, SEED + 3, 60, "branch")
    made.record(SHUNT_HOOKS=DELAYS, SHUNT_BREAK=guard)
    assert made.judge().wrong > 0
