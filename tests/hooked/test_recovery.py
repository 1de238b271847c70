# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A home is lost, and all begins again (daemon/membership/recovery.h): what was said before that, and comes after it."""

import os
import signal
import subprocess

import conftest

NAMES = [f"n{number}" for number in range(24)]
FILLERS = 3000  # as many names in each of three directories are more than an index of 1 MiB has


def rulers(build, path, *sessions):
    """The numbers of its coordinator in sessions of those members."""
    for members in sessions:
        command = [build / "tests" / "cluster" / "home_of", path, ",".join(map(str, members)), ""]
        yield int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def made_natively(stage, build, name, names, is_meant):
    """A directory that no daemon knows, whose coordinator is the one that is meant before and after a daemon of four is started
    again."""
    for number in range(512):
        path = stage.out / f"{name}-{number}"
        path.mkdir()
        if is_meant(*rulers(build, path, (1, 2, 3, 4), (1, 2, 3, 5))):
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
