# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Clients on four nodes work on the same few names at once; what they saw must be what one directory shows to
operations that happen one after another (linearizable/: history.c writes histories, check/ judges them with Porcupine).

SHUNT_HISTORIES says how many histories of a hundred operations each case has (default 300; all that has been asked for
is 2000), SHUNT_SEED what they are made from."""

import contextlib
import os
import random
import signal
import threading

import histories
import pytest

# The network between nodes has tests of its own; here all processes share one clock and as few cores as there are.
pytestmark = pytest.mark.parametrize("net", ["host"], indirect=True)

COUNT = int(os.environ.get("SHUNT_HISTORIES", "300"))
SEED = int(os.environ.get("SHUNT_SEED", "1"))


@contextlib.contextmanager
def meanwhile(work):
    """Does it in a thread, which is handed the event to wait for; what it counted is the list."""
    done, counted = threading.Event(), []
    thread = threading.Thread(target=work, args=(done, counted))
    thread.start()
    try:
        yield counted
    finally:
        done.set()
        thread.join()


def stopped_now_and_then(daemons, seed):
    """Each of them is stopped for some milliseconds to a second, one at a time, again and again."""
    chance = random.Random(seed)

    def work(done, counted):
        while not done.wait(chance.uniform(0.01, 0.1)):
            daemon = chance.choice(daemons)
            os.kill(daemon, signal.SIGSTOP)
            done.wait(chance.choice([0.002, 0.02, 0.2, 1]) * chance.random())
            os.kill(daemon, signal.SIGCONT)

    return meanwhile(work)


def killed_now_and_then(session, seed):
    """Each of them crashes and is started again by its supervisor, one at a time, some while others still begin again."""
    chance = random.Random(seed)

    def work(done, counted):
        while not done.wait(chance.choice([0.01, 0.3, 1]) * chance.random()):
            daemon = chance.choice(session.members())["pid"]
            with contextlib.suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGKILL)
                counted.append(daemon)
            while chance.random() < 0.9 and not done.wait(0.02) and not session.is_settled():
                pass

    return meanwhile(work)


def joins_and_leaves(session, node):
    """A node, which nothing else runs on, takes names over and gives them back, again and again."""

    def work(done, counted):
        while not done.is_set():
            session.start(node)
            session.wait_for(lambda: done.is_set() or session.is_settled())
            session.stop(node)
            counted.append(node)

    return meanwhile(work)


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_histories_are_linearizable(session, build, tmp_path, placement):
    made = histories.Histories(session, build, tmp_path, SEED, COUNT, placement)
    made.record()
    made.check()


def test_histories_are_linearizable_while_daemons_stop(session, build, tmp_path):
    made = histories.Histories(session, build, tmp_path, SEED + 1, max(1, COUNT // 3), "branch")
    with made.served(), stopped_now_and_then(made.daemons(), SEED):
        made.run()
    made.check()


def test_histories_are_linearizable_while_daemons_crash(session, build, tmp_path):
    made = histories.Histories(session, build, tmp_path, SEED + 2, max(1, COUNT // 10), "branch")
    with made.served(), killed_now_and_then(session, SEED) as killed:
        made.run()
    print(f"{len(killed)} daemons were killed")
    assert killed
    made.check()


def test_histories_are_linearizable_while_a_node_joins_and_leaves(session, build, tmp_path):
    made = histories.Histories(session, build, tmp_path, SEED + 3, max(1, COUNT // 3), "branch")
    with made.served(), joins_and_leaves(session, "e") as joined:
        made.run()
    print(f"a node joined and left {len(joined)} times")
    assert joined
    made.check()
