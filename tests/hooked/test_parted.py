# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Two nodes that do not reach each other for a while, and reach all others: what one tells the other comes after what both hear
over a third."""

import json
import os
import signal
import subprocess

import conftest
import pytest
from test_interleavings import expect, guarded
from test_recovery import FILLERS, made_natively, rulers
from trial import failing_network  # noqa: F401

NODES = "abcd"
SESSION = (1, 2, 3, 4)


@pytest.fixture
def stage(session, build, tmp_path):
    """Nothing but what a test has evicted has its coordinator on b."""
    stage = conftest.Stage(session, build, tmp_path)
    for number in range(100):
        if list(rulers(build, stage.out, SESSION)) != [2]:
            break
        stage.out.rename(session.root / f"other-{number}")
        stage.out.mkdir()
    yield stage
    stage.end()


def evictions(stage, node):
    return json.loads(stage.session.at("status", node, "--json").check())[0]["counters"]["evictions"]


def new_directory(stage, build, node, ruler):
    """A directory that a call there has made, of which its daemon has not heard yet, and whose coordinator is that member: (its name,
    the call, the meeting)."""
    for number in range(300):
        made, name = stage.meeting(), f"new-{number}"
        birth = stage.call(node, f"os.mkdir('{name}')", made.at("make-made"))
        made.reached()
        if list(rulers(build, stage.out / name, SESSION)) == [ruler]:
            return name, birth, made
        made.go()
        assert birth.answer() == "None"
    raise AssertionError("no such directory")


def name_at_home_on(build, directory, member):
    names = [f"n{number}" for number in range(100)]
    command = [build / "tests" / "cluster" / "home_of", directory, ",".join(map(str, SESSION)), *names]
    homes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return names[homes.index(str(member))]


@guarded("new-untold")
def test_word_of_a_new_directory_that_comes_after_its_eviction_does_not_empty_it(stage, build, net, guard):
    """Its maker would agree over another daemon, which reaches the coordinator, as it does not."""
    fillers = [made_natively(stage, build, f"filler-{one}", [f"filler-{number:06}" for number in range(FILLERS)],
                             lambda ruler: ruler == 4, SESSION) for one in range(3)]
    waits, filled = stage.meeting(), stage.meeting()
    for node in NODES:
        stage.session.start(node, SHUNT_INDEX_LIMIT="1M", SHUNT_BREAK=guard or "", SHUNT_HOOKS=waits.seen_at("evict-awaits-word"))
    assert stage.session.homes() == list(NODES)
    for node in NODES:
        assert stage.does(node, "os.listdir() != []") == "True"
    new, birth, made = new_directory(stage, build, "c", 2)
    for node in "dc":
        assert stage.does(node, f"os.listdir('{new}')") == "[]"
    name = name_at_home_on(build, stage.out / new, 1)
    file = stage.call("c", f"make('{new}/{name}', 'text')", filled.at("create-made"))
    filled.reached()
    before = evictions(stage, "b")
    with net.lossy(is_on=lambda *way: set(way) == {"b", "c"}):
        made.go()
        assert birth.answer() == "None"
        filled.go()
        assert file.answer() == "None"
        user = stage.call("d", f"[os.listdir(one) for _ in iter(int, 1) for one in {fillers}]")
        conftest.wait_until(lambda: waits.is_reached() or evictions(stage, "b") > before, "the eviction")
    os.killpg(user.process.pid, signal.SIGKILL)
    assert waits.is_reached() == (guard is None)
    seen = [stage.does(node, f"os.path.exists('{new}/{name}'), os.listdir('{new}')") for node in "cd"]
    expect(guard, seen == [f"(True, ['{name}'])"] * 2)
