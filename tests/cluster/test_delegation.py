# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory that one node alone uses is wholly at home there (daemon/coordinator/delegation.h)."""

import signal
import subprocess
import sys

import pytest

NAMES = 200


@pytest.fixture
def placement():
    return "branch"


@pytest.fixture
def three(session, placement):
    """Nodes a, b and c; a alone uses the directories 0 to 9, which are ruled by this one and that."""
    session.start("a", "b", "c", placement=placement)
    session.homes()
    session.sh("a", "mkdir 0 1 2 3 4 5 6 7 8 9; for d in ?; do echo $d >$d/first; done")
    return session


def asked(session):
    return session.status("--all")["all"]["remote_requests"]


def python(session, node, program):
    return session.on(node, sys.executable, "-c", program, cwd=session.root).check()


WORK = f"""
import os
for number in range({NAMES}):
    name = f'4/{{number}}'
    open(name, 'x').close()
    assert os.path.exists(name) and not os.path.exists(name + '.none')
    os.rename(name, name + '.done')
assert len(os.listdir('4')) == {NAMES} + 1
for number in range({NAMES}):
    os.unlink(f'4/{{number}}.done')
"""


def test_who_is_alone_in_a_directory_asks_nobody(three):
    python(three, "a", "import os; os.stat('4')")
    before = asked(three)
    python(three, "a", WORK)
    assert asked(three) - before <= 3, "what is asked of the directory that all of these are in"
    three.sh("b", "ls 4")
    before = asked(three)
    python(three, "a", WORK)
    assert asked(three) - before > NAMES


@pytest.mark.parametrize("who", ["b", "c"])
def test_who_comes_sees_what_is_there(three, who):
    for directory in range(10):
        assert three.sh(who, f"cat {directory}/first; echo >{directory}/{who}; ls {directory}") == f"{directory}\n{who}\nfirst\n"
        assert three.sh("a", f"ls {directory}; rm {directory}/{who}; echo >{directory}/last") == f"{who}\nfirst\n"
        assert three.sh(who, f"ls {directory}; cat {directory}/last") == "first\nlast\n\n"


CONTEND = f"""
import os, sys
won = 0
for number in range({NAMES}):
    try:
        os.close(os.open(f'4/{{number}}', os.O_CREAT | os.O_EXCL))
        won += 1
    except FileExistsError:
        pass
    try:
        os.rename(f'4/{{number}}', f'5/{{number}}.{{sys.argv[1]}}')
    except FileNotFoundError:
        pass
print(won)
"""


def test_who_comes_while_names_are_made_and_renamed_there(three):
    """Each name is made again by any process that finds none, and moved by one of them."""
    working = [three.begin("exec", node, "--", sys.executable, "-c", CONTEND, node, stdout=subprocess.PIPE, text=True)
               for node in "abc"]
    told = [process.communicate(timeout=60) for process in working]
    assert [process.returncode for process in working] == [0, 0, 0]
    names = [name for name in three.names("b", "5") if name != "first"]
    assert three.names("c", "4") == ["first"]
    assert NAMES <= len(names) <= sum(int(out) for out, _ in told)
    assert {name.split(".")[0] for name in names} == set(map(str, range(NAMES)))


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_who_leaves_gives_it_back(three):
    three.stop("a")
    assert three.homes() == ["b", "c"]
    for directory in range(10):
        assert three.sh("b", f"ls {directory}; echo >{directory}/new") == "first\n"
        assert three.sh("c", f"ls {directory}") == "first\nnew\n"


WORK_ON = """
made = 0
try:
    while made < 300:
        open(f'4/{made}', 'x').close()
        made += 1
        if made == 10:
            print(flush=True)
except OSError:
    pass
print(made)
"""


@pytest.mark.parametrize("who", ["a", "b"])
def test_who_leaves_while_somebody_works_there(three, who):
    """Until it is done, or there is no daemon on its node any more."""
    working = three.begin("exec", "a", "--", sys.executable, "-c", WORK_ON, stdout=subprocess.PIPE, text=True)
    assert working.stdout.readline() == "\n"
    three.stop(who)
    three.sh("c", "ls 4")
    if who == "b":
        three.stop("a")
    made = int(working.stdout.read())  # not communicate(), which passes over what was read with the line before
    assert working.wait(60) == 0
    assert len(three.names("c", "4")) == made + 1


def test_who_crashes_has_lost_nothing(three):
    pid, = (member["pid"] for member in three.members() if member["node"] == "a")
    subprocess.run(["kill", f"-{signal.SIGKILL.value}", str(pid)], check=True)
    for directory in range(10):
        assert three.sh("b", f"ls {directory}; echo >{directory}/new") == "first\n"
        assert three.sh("a", f"ls {directory}; cat {directory}/first") == f"first\nnew\n{directory}\n"


def test_who_joins_sees_what_is_there_and_may_rule_it(three):
    three.start("d")
    assert three.homes() == ["a", "b", "c", "d"]
    for directory in range(10):
        three.sh("a", f"echo >{directory}/second")
    before = asked(three)
    three.sh("a", "echo >4/third")
    assert asked(three) - before <= 1
    for directory in range(10):
        assert "first\nsecond\n" in three.sh("d", f"ls {directory}; echo >{directory}/new")
        assert "first\nnew\nsecond\n" in three.sh("b", f"ls {directory}")


def test_who_rules_it_next_knows_it(three):
    """Its mirrors have its mode, and go with it."""
    three.start("d")
    assert three.homes() == ["a", "b", "c", "d"]
    three.sh("a", "rm ?/first; chmod 0711 ?")
    mirrors = [path for path in (three.root / ".shunt" / "b" / "a.1").iterdir() if path.name[0] in "0123456789"]
    assert [path.stat().st_mode & 0o777 for path in mirrors] == [0o711] * 10
    three.sh("a", "rmdir ?; ls")
    assert not any(path.exists() for path in mirrors)


def test_who_joins_asks_for_it_at_once(three):
    """While others work there, and its coordinator changes."""
    working = three.begin("exec", "a", "--", sys.executable, "-c", f"for i in range({NAMES}): open(f'4/{{i}}', 'x').close()")
    others = [three.begin("exec", node, "--", "sh", "-c", "for i in 1 2 3 4 5; do ls ? >/dev/null || exit 1; done") for node in "bc"]
    three.start("d")
    assert "first" in three.sh("d", "ls ?; ls ? | grep -c first")
    assert [process.wait(60) for process in (working, *others)] == [0, 0, 0]
    for node in "abcd":
        assert len(three.names(node, "4")) == NAMES + 1


def test_it_is_removed_by_who_has_it_and_by_another(three):
    for directory in range(10):
        who = "abc"[directory % 3]
        assert "not empty" in three.at("exec", who, "--", "rmdir", str(directory), cwd=three.root).err
        three.sh("a", f"rm {directory}/first")
        three.sh(who, f"rmdir {directory}")
        three.sh("c", f"test ! -e {directory}; mkdir {directory}; test ! -e {directory}/first")
    assert three.sh("b", "cat ?/* 2>/dev/null; rmdir ?; ls") == ""
