# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Histories, as in test_linearizable.py, of clients on three nodes whose network fails and is mended: it is cut for less
than the deadline and for more, and in one direction; it loses packets, or connections, or has packets overtake each
other. What the clients saw must be what one directory shows, the time of the fault included, so nobody decides on both
sides of a cut. Then all files are there, once, and work goes on.

SHUNT_CUTS says how often the network fails in each way, and how many times as much is done while it is bad (default 1;
all that has been asked for is 20), SHUNT_SEED what histories and cuts are made from."""

import contextlib
import os

import pytest
from trial import HASTY, PATIENT, Trial, failing_network  # noqa: F401

CUTS = int(os.environ.get("SHUNT_CUTS", "1"))
SEED = int(os.environ.get("SHUNT_SEED", "1"))


@pytest.fixture
def trial(session, build, tmp_path):
    """with trial(deadline, ways=1) as made: histories are made there, and all is well after it."""

    @contextlib.contextmanager
    def make(deadline, ways=1):
        made = Trial(session, build, tmp_path, SEED, deadline, CUTS * ways)
        with made.served():
            with made.watched():
                yield made
            made.assert_whole()
        session.tool("fsck", session.root).check()

    return make


def test_a_cut_shorter_than_the_deadline_is_waited_for(trial, net):
    with trial(PATIENT, ways=3) as made:
        made.cut([net.isolated, net.link_down, net.parted], 0.2, 2)
    made.check()
    assert made.packets.lost > 0 and made.tcp["RetransSegs"] > 0


def assert_some_failed(made):
    found = made.check("-cut")
    assert found.failed > 0 and made.packets.lost > 0 and made.counters["frames_resent"] > 0


def test_a_cut_longer_than_the_deadline_is_an_error_and_no_more(trial, net):
    with trial(HASTY, ways=3) as made:
        made.cut([net.isolated, net.link_down, net.parted], 2.2, 4)
    assert_some_failed(made)


def test_one_direction_that_is_cut(trial, net):
    with trial(HASTY, ways=2) as made:
        made.cut([net.deaf, net.mute], 2.2, 3)
    assert_some_failed(made)


def test_packets_that_are_lost(trial, net):
    with trial(PATIENT) as made, net.lossy(0.05):
        made.work()
    made.check()
    assert made.packets.lost > 0.04 * made.packets.came and made.tcp["RetransSegs"] > 0


def test_packets_that_overtake_each_other(trial, net):
    with trial(PATIENT) as made, net.overtaken():
        made.work()
    made.check()
    assert made.packets.overtaken > 0 and made.tcp["TCPOFOQueue"] > 0


@pytest.mark.parametrize("deadline, words", [(PATIENT, []), (HASTY, ["-cut"])], ids=["patient", "hasty"])
def test_connections_that_break(trial, net, deadline, words):
    """What is under way is lost with them, without a word; and sent again, when the hasty do not wait any more."""
    with trial(deadline) as made, net.broken(every=1500):
        made.work()
    made.check(*words)
    assert made.packets.resets > 0 and made.tcp["EstabResets"] > 0 and made.counters["frames_resent"] > 0
