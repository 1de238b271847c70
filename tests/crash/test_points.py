# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Kills at every named point (lib/base/hook.h), for a build with the option `hooks`. `step` is before and after each
change of names, so that its N-th time, for all N, is every point between two steps."""

import itertools
import json
import os
import pathlib
import re
import shutil
import time

import pytest
import rounds

pytestmark = pytest.mark.usefixtures("has_hooks")

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SEED = 1
IS_FULL = "SHUNT_CRASH_FULL" in os.environ  # full.sh: every step, not every sixth
EVERY = 1 if IS_FULL else 6
OPERATIONS = 400

# In rooms of which a process of the user's, or the daemon, consists.
ROOMS = {"client": ["lib/shim"], "shuntd": ["daemon"]}
# What a worker does not do: a program without shunt makes and takes what is found, or it is no regular file's business. Nor
# is it certain that one lists what another one is at work on just then, or that it looks at a file from its leaf, as on FUSE
# alone: neither changes anything; or that a directory goes while it is asked for (tests/hooked/test_interleavings.py). A daemon that
# dies before it serves is not started again. None is dropped by the others.
NOT_REACHED = {"adopt-found", "claim-unserved", "claim-absent", "times-misplaced", "still-unknown", "list-doubts", "list-pending", "leaf-seen",
               "leaf-used", "fabric-opens", "session-claimed", "cut-off", "hands-over", "session-read", "evict-awaits-word", "fence-awaited"}
# Where the daemon comes when it is quiet.
RECORDS = ["record-begun", "record-put", "record-all", "record-copied"]


def points(who):
    sources = [path for room in ROOMS[who] for path in (REPOSITORY / room).rglob("*.c")]
    found = {name for path in sources for line in re.findall(r"HOOK\((.*)\);", path.read_text())
             for name in re.findall(r'"([a-z-]+)"', line)}
    return sorted(found - NOT_REACHED - set(RECORDS))


def finish(place, round_):
    """What was killed is settled: nothing is missed, by processes that are there, cold, and by a later session."""
    oracle = round_.oracle(getattr(place, "excused", ()))
    round_.check_live(oracle)
    place.stop()
    place.fsck("--repair", statuses=(0, 1))
    place.is_clean()
    place.start()
    round_.check_live(oracle)


def begin(place, **hooks):
    place.start(**hooks)
    round_ = rounds.Round(place, rounds.Figures(), SEED, 0)
    round_.begin_all()
    return round_


@pytest.mark.parametrize("nodes, time", [(1, 3), (3, 1)] + IS_FULL * [(1, 1), (3, 3), (3, 10)])
@pytest.mark.parametrize("point", points("client"))
def test_a_process_is_killed(served, nodes, point, time):
    place = served(nodes)
    round_ = begin(place)
    number = round_.begin(SHUNT_HOOKS=f"{point}:kill={time}")
    _, process = round_.workers.pop(number)
    assert process.wait(60) == -9, f"{point} is not reached"
    round_.finish()
    finish(place, round_)


@pytest.mark.parametrize("time", [*range(1, 40, EVERY), 100, 200])
def test_a_process_is_killed_between_two_steps(served, time):
    place = served(1)
    round_ = begin(place)
    number = round_.begin(SHUNT_HOOKS=f"step:kill={time}")
    _, process = round_.workers.pop(number)
    assert process.wait(60) == -9
    round_.finish()
    finish(place, round_)


def kill_daemon_at(place, point, time):
    """One daemon of the first node, and it is started again."""
    reached = place.area / "died"
    place.start(SHUNT_HOOKS=f"{point}:kill={time}{reached}")
    round_ = rounds.Round(place, rounds.Figures(), SEED, 0)
    for _ in range(3):
        round_.begin(operations=OPERATIONS)
    for number in sorted(round_.workers):
        assert round_.workers.pop(number)[1].wait(60) == 0
    return pathlib.Path(f"{reached}.reached").exists(), round_


@pytest.mark.parametrize("time", [1, 5])
@pytest.mark.parametrize("point", points("shuntd"))
def test_a_daemon_is_killed(served, point, time):
    place = served(1)
    has_died, round_ = kill_daemon_at(place, point, time)
    if not has_died:
        pytest.skip("one daemon alone does not come there")
    finish(place, round_)


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("point, count", [*((point, 1) for point in RECORDS), ("record-begun", 2), ("record-put", 4), ("record-all", 2)])
def test_a_daemon_is_killed_while_it_writes_the_catalogue(served, point, count):
    """Which it does once it is quiet; and so does the next one."""
    place = served(1)
    died = place.area / "died"
    place.start(SHUNT_HOOKS=f"{point}:kill={count}{died}", SHUNT_CATALOGUE_QUIET="1")
    round_ = rounds.Round(place, rounds.Figures(), SEED, 0)

    def has_died():
        return pathlib.Path(f"{died}.reached").exists()

    def is_recorded():
        """A daemon that has died since the last look has no counters."""
        counters = json.loads(place.tool("n1", "status", "--json", "--root", place.root))[0].get("counters")
        return counters and counters["catalogue_names"] > 0 and counters["catalogue_behind_seconds"] == 0

    for _ in range(2):
        number = round_.begin(operations=OPERATIONS)
        assert round_.workers.pop(number)[1].wait(60) == 0
        wait_until(lambda: has_died() or is_recorded())
    assert has_died()
    finish(place, round_)


@pytest.mark.parametrize("time", range(1, 80, EVERY))
def test_a_daemon_is_killed_between_two_steps(served, time):
    """A first start may die, too: then nobody starts it again, and the next one finds what it has left."""
    place = served(1)
    first = place.begin_start("n1", SHUNT_HOOKS=f"step:kill={time}{place.area / 'died'}").wait(60)
    if first != 0:
        place.start()
    round_ = rounds.Round(place, rounds.Figures(), SEED, 0)
    for _ in range(3):
        round_.begin(operations=OPERATIONS)
    round_.live(8 * rounds.LONGEST_LIFE)
    round_.finish()
    finish(place, round_)


def test_a_daemon_is_killed_at_its_end(served):
    """At each step of it; then nobody serves. (The first ones are those of the start, which fails.)"""
    place, steps = served(1), 0
    for time in itertools.count(1):
        died = place.area / f"died-{time}"
        starts = place.begin_start("n1", SHUNT_HOOKS=f"step:kill={time}{died}").wait(60) == 0
        if starts:
            place.stop()
            place.fsck("--repair", statuses=(0, 1))
            place.is_clean()
            if not pathlib.Path(f"{died}.reached").exists():
                break
            steps += 1
        place.forget("n1")
        shutil.rmtree(place.root)
        place.root.mkdir()
    print(f"{steps} steps")
    assert steps >= 5
