# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The check of tests/cluster/test_network.py again, with guards taken away: what it forgives operations that failed for
want of an answer must not keep it from seeing that.

SHUNT_SEED as there."""

import os

from trial import HASTY, Trial, failing_network  # noqa: F401

SEED = int(os.environ.get("SHUNT_SEED", "1"))
ROUNDS = 3  # one may show nothing: its histories were over before the cut, or those that are wrong are not decided in time


def test_a_guard_that_is_missing_is_seen_in_a_cut_network(session, net, build, tmp_path):
    made = Trial(session, build, tmp_path, SEED, HASTY, ROUNDS)
    session.settings["SHUNT_BREAK"] = "no-cas"
    with made.served():
        made.cut([net.isolated], 2.2, 3)
    found = made.made.judge("-cut", "-within", "10s")
    assert found.failed > 0 and found.wrong > 0


def test_a_decision_on_both_sides_of_a_cut_is_seen(session, net, build, tmp_path):
    """Daemons answer for homes that they have not heard for as long as their clients wait."""
    made = Trial(session, build, tmp_path, SEED, HASTY, ROUNDS)
    with made.served(SHUNT_BREAK="silent-home"):
        made.cut([net.isolated], 3, 4)
    found = made.made.judge("-cut", "-within", "15s")
    assert found.failed > 0 and found.wrong > 0
