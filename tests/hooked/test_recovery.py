# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A home is lost, and all begins again (daemon/membership/recovery.h): what was said before that, and comes after it."""

import os
import signal
import subprocess

import conftest
import pytest
from daemons import epoch_lines

NAMES = [f"n{number}" for number in range(24)]
FILLERS = 3000  # as many names in each of three directories are more than an index of 1 MiB has


def rulers(build, path, *sessions):
    """The numbers of its coordinator in sessions of those members."""
    for members in sessions:
        command = [build / "tests" / "cluster" / "home_of", path, ",".join(map(str, members)), ""]
        yield int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def made_natively(stage, build, name, names, is_meant, *sessions):
    """A directory that no daemon knows, whose coordinator is the one that is meant before and after a daemon is started again, of
    four if no sessions are named."""
    for number in range(512):
        path = stage.out / f"{name}-{number}"
        path.mkdir()
        if is_meant(*rulers(build, path, *(sessions or ((1, 2, 3, 4), (1, 2, 3, 5))))):
            for text in names:
                (path / text).touch()
            return path.name
    raise AssertionError("no such directory")


def test_word_of_an_eviction_from_before_a_loss_takes_nothing_away(stage, build):
    """It comes over another daemon, when the directory has been loaded again."""
    agreed, loaded = stage.meeting(), stage.meeting()
    hooks = {"b": agreed.seen_before_at("evict-agreed"), "c": loaded.seen_at("load-complete")}
    evicted = made_natively(stage, build, "evicted", NAMES, lambda before, after: (before, after) == (2, 5))
    fillers = [made_natively(stage, build, f"filler-{one}", [f"filler-{number:06}" for number in range(FILLERS)],
                             lambda before, after: before in (3, 4)) for one in range(3)]
    for node in "abcd":
        stage.session.start(node, SHUNT_INDEX_LIMIT="1M", **({"SHUNT_HOOKS": hooks[node]} if node in hooks else {}))
    assert stage.session.homes() == list("abcd")
    for node in "ac":
        assert stage.does(node, f"sorted(os.listdir('{evicted}'))") == str(sorted(NAMES))
    before = stage.daemons()["d"]
    agreed.again()
    user = stage.call("d", f"[os.listdir(one) for _ in iter(int, 1) for one in {fillers}]")
    agreed.reached()
    os.killpg(user.process.pid, signal.SIGKILL)
    stage.crash("d")
    conftest.wait_until(lambda: stage.daemons().get("d", before) != before, "the next daemon of d")
    conftest.wait_until(lambda: stage.session.member("a")["home"] == "coming", "all to begin again")
    stage.session.status("--node", "a")  # it has told the others
    loaded.again()
    passes_on = stage.daemons()["a"]
    conftest.one_node.stand_still(passes_on)
    agreed.go()
    listing = stage.call("c", f"sorted(os.listdir('{evicted}'))")
    loaded.reached()
    os.kill(passes_on, signal.SIGCONT)
    assert listing.answer() == str(sorted(NAMES))
    for node in "abcd":
        assert stage.does(node, f"[os.path.exists('{evicted}/' + name) for name in {NAMES}] == [True] * {len(NAMES)}") == "True"


def is_reached_as(stage, number):
    """There is a member of that number, and it has written its address."""
    _, _, member = "\n".join([*epoch_lines(stage.session.root), ""]).partition(f"\nmember {number}\n")
    return "\naddress " in member and "\naddress \n" not in member


def made_while_met(stage, build, node, is_meant, *sessions):
    """A directory that a call there has made, of which its daemon has not heard yet, and whose coordinators are meant: (its name,
    the meeting)."""
    names = [f"new-{number}" for number in range(300)]
    for name in [name for name, home in zip(names, stage.homes_of(build, *names)) if home == "a"]:
        made = stage.meeting()
        birth = stage.call(node, f"os.mkdir('{name}')", made.at("make-made"))
        made.reached()
        if is_meant(*rulers(build, stage.out / name, *sessions)):
            return name, made
        made.go()
        assert birth.answer() == "None"
    raise AssertionError("no such directory")


@pytest.mark.parametrize("ruler", [1, 4])
def test_word_of_a_new_directory_from_before_a_loss_does_not_empty_it(stage, build, ruler):
    """It comes to the daemon that was its coordinator. That one, or the next, has forgotten that the directory was used since."""
    told, loads = stage.meeting(), stage.meeting()
    hooks = {"b": loads.seen_at("load-begun"), "c": told.seen_before_at("notice-relayed")}
    for node in conftest.NODES:
        stage.session.start(node, **({"SHUNT_HOOKS": hooks[node]} if node in hooks else {}))
    assert stage.session.homes() == list(conftest.NODES)
    other = made_natively(stage, build, "other", [], lambda before, after: after == 4, (1, 2, 3), (1, 3, 4))
    for node in conftest.NODES:
        assert stage.does(node, "os.listdir() != []") == "True"
    new, made = made_while_met(stage, build, "c", lambda *both: both == (1, ruler), (1, 2, 3), (1, 3, 4))
    assert stage.does("a", f"make('{new}/n', 'text')") == "None"
    told.again()
    made.go()
    told.reached()
    with stage.session.stopped("a"):
        stage.crash("b")
        conftest.wait_until(lambda: is_reached_as(stage, 4), "the next daemon of b")
    conftest.wait_until(lambda: stage.session.member("a")["home"] == "coming", "all to begin again")
    stage.session.status("--node", "b")
    with stage.session.stopped("a"):
        loads.again()
        told.go()
        listing = stage.call("c", f"os.listdir('{other}')")
        loads.reached()
    assert listing.answer() == "[]"
    conftest.wait_until(stage.session.is_settled, "all to be homes")
    assert stage.does("b", f"read('{new}/n'), os.listdir('{new}')") == "('text', ['n'])"


def test_a_directory_that_is_evicted_as_a_node_joins_can_be_removed(stage, build):
    """The node was handed one of its names by a home that had not heard of that, and its coordinator did not know the node yet."""
    agreed, hands_over = stage.meeting(), stage.meeting()
    two_then_three = (1, 2), (1, 2, 3)
    evicted = made_natively(stage, build, "evicted", [], lambda *both: both == (2, 2), *two_then_three)
    names = [f"file-{number}" for number in range(200)]
    homes = [stage.homes_of(build, *names, of=stage.out / evicted, members=members) for members in two_then_three]
    name = next(name for name, *both in zip(names, *homes) if both == ["a", "c"])
    fillers = [made_natively(stage, build, f"filler-{one}", [f"filler-{number:06}" for number in range(FILLERS)],
                             lambda *both: both == (1, 1), *two_then_three) for one in range(4)]
    hooks = {"a": hands_over.seen_before_at("hands-over"), "b": agreed.seen_before_at("evict-agreed")}
    for node in hooks:
        stage.session.start(node, SHUNT_INDEX_LIMIT="1M", SHUNT_HOOKS=hooks[node])
    assert stage.session.homes() == ["a", "b"]
    assert stage.does("a", f"make('{evicted}/{name}')") == "None"
    assert stage.does("b", f"os.listdir('{evicted}')") == f"['{name}']"
    agreed.again()
    user = stage.call("a", f"[os.listdir(one) for _ in iter(int, 1) for one in {fillers}]")
    agreed.reached()
    os.killpg(user.process.pid, signal.SIGKILL)
    hands_over.again()
    joins = stage.session.begin("start", "c", "--placement", "branch")
    hands_over.reached()
    hands_over.go()
    stage.session.status("--node", "a")  # which has handed over
    agreed.go()
    assert joins.wait(60) == 0
    assert stage.session.homes() == list(conftest.NODES)
    assert stage.does("a", f"os.unlink('{evicted}/{name}'), os.rmdir('{evicted}')") == "(None, None)"


def test_a_new_directory_of_which_the_last_daemon_hears_late_has_its_names(stage, build):
    """It is home of all by now, and still to be told what another one that leaves had."""
    hands_over = stage.meeting()
    stage.session.start("a")
    stage.session.start("b", SHUNT_HOOKS=hands_over.at("hands-over"))
    assert stage.session.homes() == ["a", "b"]
    for node in "ab":
        assert stage.does(node, "os.listdir()") == "[]"
    new, made = made_while_met(stage, build, "a", lambda ruler: ruler == 2, (1, 2))
    assert stage.does("b", f"make('{new}/n', 'text')") == "None"
    leaves = stage.session.begin("stop", "b")
    hands_over.reached()
    made.go()
    assert stage.calls[-2].answer() == "None"
    stage.session.status("--node", "a")  # which has heard of it
    hands_over.go()
    assert leaves.wait(60) == 0
    assert stage.does("a", f"read('{new}/n'), os.listdir('{new}')") == "('text', ['n'])"
