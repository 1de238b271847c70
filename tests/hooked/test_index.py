# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A daemon that stands still, or dies, in the middle of a change of its index: readers wait for it, or for the next."""

import os
import signal

import conftest
import pytest


def amid_a_removal(stage, happens):
    """What processes of the node answer that look while its daemon stands there, and something happens to it then."""
    held = stage.meeting()
    stage.begin(hooks=[held.seen_before_at("index-removal")])
    stage.does("a", "[make(name, name) for name in ('m', 'n', 'other')][0]")
    daemon = stage.daemons()["a"]
    held.again()
    removal = stage.call("a", "os.unlink('m')")
    held.reached()
    looks = [stage.call("a", line) for line in ("read('other')", "os.path.exists('m')", "len(os.listdir())")]
    with pytest.raises(AssertionError):  # that is what it is to wait for
        conftest.wait_until(lambda: any(call.has_ended() for call in looks), "one that did not wait", within=1)
    happens(daemon)
    held.go()
    return [call.answer() for call in (removal, *looks)]


def test_a_daemon_that_stands_still_amid_a_change_is_waited_for(stage):
    assert amid_a_removal(stage, lambda daemon: None) == ["None", "other", "False", "2"]


def test_a_daemon_that_dies_amid_a_change_is_followed_by_the_next(stage):
    assert amid_a_removal(stage, lambda daemon: os.kill(daemon, signal.SIGKILL)) == ["None", "other", "False", "2"]
