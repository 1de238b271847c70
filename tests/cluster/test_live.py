# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Files leave while the session goes on: shunt export --live, --export background."""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import histories
import pytest
from immutable import immutable

# It is the same on each network.
pytestmark = pytest.mark.parametrize("net", ["host"], indirect=True)

COUNT = max(1, int(os.environ.get("SHUNT_HISTORIES", "300")) // 20)
SEED = int(os.environ.get("SHUNT_SEED", "1"))
TOP = pathlib.Path(__file__).resolve().parents[2]
MANUAL, NODE = TOP / "tools" / "shunt-export.1", TOP / "tests" / "node"
QUIET = 1  # the least that can be said, in seconds
MAKE = "import sys\nfor i in range(int(sys.argv[2])): open(f'out/{sys.argv[1]}.{i}', 'w').write(sys.argv[1])"


def make(session, node, count, prefix=None):
    session.on(node, sys.executable, "-c", MAKE, prefix or node, count, cwd=session.root).check()


def live(session, node, *words, status=0, quiet=QUIET):
    done = session.tool("export", "--live", "--json", "--quiet", quiet, "--node", node, session.root, *words)
    done.check(status)
    return json.loads(done.out)


def away(session, node="*"):
    """Files in branches."""
    return sorted(path.name for path in session.root.glob(f".shunt/b/{node}.*/*/*/*"))


def in_trunk(session):
    return sorted(name for name in os.listdir(session.root / "out") if name != ".shunt-dir")


def wait_until_quiet(session):
    """Nothing was made for so long, by the clock that files' times are of."""
    newest = max(path.stat().st_mtime for path in session.root.glob(".shunt/b/*/*/*"))
    session.wait_for(lambda: time.time() > newest + QUIET + 0.1)


def test_the_files_of_a_node_leave(pair):
    make(pair, "a", 100)
    make(pair, "b", 10)
    wait_until_quiet(pair)
    report = live(pair, "a")
    said = MANUAL.read_text().split('.B "export \\-\\-live"\n')[1].split("\n.SH ")[0]
    assert set(report) <= set(re.findall(r"\w+", said))
    assert report["files"] == 100 and report["directories"] == 1 and report["in_use"] == 0 and report["complete"] is True
    assert in_trunk(pair) == sorted(f"a.{i}" for i in range(100)) and len(away(pair, "b")) == 10 and not away(pair, "a")
    for node in "a", "b":
        assert len(pair.names(node, "out")) == 110
        assert pair.sh(node, "cat out/a.7 out/b.7; rm out/a.8; test ! -e out/a.8") == "ab"
        pair.sh(node, "echo new >out/a.8")
    wait_until_quiet(pair)
    assert live(pair, "b")["files"] == 11
    assert not away(pair) and len(pair.names("a", "out")) == 110
    assert live(pair, "a")["files"] == 0


def test_after_a_crash_of_the_daemon(pair):
    """It has another branch then, and what is in the first leaves as well."""
    make(pair, "a", 10)
    before = pair.member("a")
    os.kill(before["pid"], signal.SIGKILL)
    pair.wait_for(lambda: pair.member("a")["pid"] != before["pid"] and pair.is_settled())
    make(pair, "a", 5, "late")
    assert len(set(pair.root.glob(".shunt/b/a.*"))) == 2
    wait_until_quiet(pair)
    assert live(pair, "a")["files"] == 15 and not away(pair)
    assert len(pair.names("b", "out")) == 15


def test_a_directory_in_use_stays(pair):
    make(pair, "a", 10)
    report = live(pair, "a", quiet=3600)
    assert report["files"] == 0 and report["in_use"] == 1 and report["complete"] is False
    assert len(away(pair, "a")) == 10


def test_names_that_another_node_makes_keep_it(pair):
    make(pair, "a", 10)
    make(pair, "b", 1)
    made = pair.sh("b", "stat -c %.9Y out")
    pair.wait_for(lambda: pair.sh("a", "stat -c %.9Y out") == made)
    for leaf in pair.root.glob(".shunt/b/a.*/*/*"):
        os.utime(leaf, (1, 1))  # in this node's own part nothing has come or gone for long
    report = live(pair, "a", quiet=3600)
    assert report["files"] == 0 and report["in_use"] == 1 and len(away(pair, "a")) == 10
    wait_until_quiet(pair)
    assert live(pair, "a")["files"] == 10


def test_who_has_a_file_open_goes_on(pair):
    """It is the same file; and who remembers where files were asks again."""
    script = """
import os, sys
first = int(sys.argv[1])
held = {i: open(f"out/a.{i}", "r+") for i in range(first, first + 20)}
seen = {i: os.stat(f"out/a.{i}").st_ino for i in range(40)}
print("ready", flush=True)
sys.stdin.readline()
for i, file in held.items():
    assert file.read() == "a"
    file.write("more"), file.flush()
    assert os.path.samestat(os.fstat(file.fileno()), os.stat(f"out/a.{i}"))
    assert open(f"out/a.{i}").read() == "amore"
for i in held:
    assert os.stat(f"out/a.{i}").st_ino == seen[i]
one, two, three = (f"out/a.{first + n}" for n in range(3))
os.unlink(one), os.rename(two, two + ".moved"), os.chmod(three, 0o600), os.link(three, one)
assert not os.path.exists(two) and os.stat(two + ".moved").st_ino == seen[first + 1] and os.stat(one).st_nlink == 2
assert len(os.listdir("out")) == 40
"""
    make(pair, "a", 40)
    holders = [pair.begin("exec", node, "--", sys.executable, "-c", script, first, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
               for node, first in (("a", "0"), ("b", "20"))]
    assert [holder.stdout.readline() for holder in holders] == 2 * [b"ready\n"]
    wait_until_quiet(pair)
    assert live(pair, "a")["files"] == 40
    for holder in holders:
        holder.communicate(b"go\n", 60)
    assert [holder.returncode for holder in holders] == [0, 0]


@contextlib.contextmanager
def moved_all_the_while(session, build, nodes, seed, moved):
    """A process on each node moves whatever is in a branch to the trunk, however much it is used; one of them is killed now and
    then, and another one goes on. The file gets a byte for each file that was moved."""
    chance, done = random.Random(seed), threading.Event()

    def begin(node):
        with moved.open("ab") as to:
            return subprocess.Popen([build / "tests" / "cluster" / "mover", session.root], stdin=subprocess.PIPE, stdout=to,
                                    env={**session.environment(), "SHUNT_NODE": node})

    def kill_now_and_then():
        while not done.wait(chance.uniform(0.05, 0.3)):
            node = chance.choice(nodes)
            movers[node].kill()
            movers[node].communicate()
            movers[node] = begin(node)

    movers = {node: begin(node) for node in nodes}
    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        yield
    finally:
        done.set()
        killer.join()
        for mover in movers.values():
            mover.communicate(timeout=60)


def test_histories_are_linearizable_while_files_leave(session, build, tmp_path):
    made = histories.Histories(session, build, tmp_path, SEED, COUNT, "branch")
    moved = tmp_path / "moved"
    with made.served(), moved_all_the_while(session, build, histories.NODES, SEED, moved):
        made.run()
    print(f"{moved.stat().st_size} files were moved")
    assert moved.stat().st_size > 0
    made.check()


READ = """
import os, random, sys, threading
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set())).start()
reads = 0
while not done.is_set() or reads < 100:
    name = f"out/a.{random.randrange(int(sys.argv[1]))}"
    with open(name, "r+") as file:
        assert file.read(1) == "a" and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    reads += 1
"""


@contextlib.contextmanager
def read_all_the_while(session, count):
    readers = [session.begin("exec", node, "--", sys.executable, "-c", READ, str(count), stdin=subprocess.PIPE) for node in ("a", "b")]
    try:
        yield
    finally:
        for reader in readers:
            reader.communicate(timeout=60)
    assert [reader.returncode for reader in readers] == [0, 0]


def ended_on_the_way(session, count, number):
    """By a signal once so many files have left; its status."""
    wait_until_quiet(session)
    words = [session.shunt.path, "export", "--live", "--quiet", QUIET, "--node", "a", session.root]
    with subprocess.Popen([str(word) for word in words], env=session.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as tool:
        session.wait_for(lambda: len(in_trunk(session)) >= count)
        tool.send_signal(number)
        out, err = tool.communicate(timeout=60)
    return tool.returncode, out.decode(), err.decode()


def test_ended_at_any_moment_it_goes_on_later(pair):
    count = 2000
    make(pair, "a", count)
    with read_all_the_while(pair, count):
        for number, at in (signal.SIGKILL, 1), (signal.SIGINT, 500), (signal.SIGKILL, 1200):
            status, out, err = ended_on_the_way(pair, at, number)
            assert len(in_trunk(pair)) + len(away(pair)) == count and not set(in_trunk(pair)) & set(away(pair))
            assert len(pair.names("a", "out")) == count == len(pair.names("b", "out"))
            if number == signal.SIGINT and status != 0:  # it was on its way
                assert status == 128 + signal.SIGINT and "interrupted, nothing is lost" in err and out.startswith("moved ")
        wait_until_quiet(pair)
        live(pair, "a")
    assert len(in_trunk(pair)) == count


@pytest.fixture
def warm_pair(session):
    """A node's files go to its mirror after 16."""
    session.start("a", "b", placement="auto")
    session.sh("a", "mkdir out; ls out")
    session.sh("b", "ls out")
    return session


def test_what_has_left_stays_out_until_it_is_hot_again(warm_pair):
    make(warm_pair, "a", 100)
    born_away = len(away(warm_pair))
    assert born_away >= 80
    wait_until_quiet(warm_pair)
    assert live(warm_pair, "a")["files"] == born_away
    make(warm_pair, "a", 10, "later")
    assert not away(warm_pair) and len(in_trunk(warm_pair)) == 110
    make(warm_pair, "a", 40, "hot")
    assert len(away(warm_pair)) >= 20
    assert len(warm_pair.names("b", "out")) == 150


@pytest.mark.parametrize("lock", ["fcntl", "flock"])
def test_two_nodes_take_turns(pair, lock):
    """In one directory. The kernel has one lock for both, whichever node it is; a file system may have one of the kinds for all nodes."""
    make(pair, "a", 20)
    make(pair, "b", 20)
    wait_until_quiet(pair)
    with open(pair.root / "out" / ".shunt-dir", "r+b") as marker:
        if lock == "fcntl":
            fcntl.fcntl(marker, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        else:
            fcntl.flock(marker, fcntl.LOCK_EX)
        assert live(pair, "a")["in_use"] == 1 and len(away(pair)) == 40
    assert live(pair, "a")["files"] + live(pair, "b")["files"] == 40


@pytest.mark.parametrize("before", [[], [sys.executable, NODE / "without_noreplace.py"]])
def test_what_a_program_without_shunt_made_is_not_replaced(pair, before):
    make(pair, "a", 30)
    (pair.root / "out" / "a.3").write_text("native")
    wait_until_quiet(pair)
    words = [*before, pair.shunt.path, "export", "--live", "--json", "--quiet", QUIET, "--node", "a", pair.root]
    done = subprocess.run([str(word) for word in words], env=pair.environment(), capture_output=True, text=True, timeout=60, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["files"] == 29 and report["refused"] == 1 and not report["complete"]
    assert f"{pair.root}/out/a.3: " in done.stderr and done.stderr.count("\n") == 1
    assert away(pair) == ["a.3"] and (pair.root / "out" / "a.3").read_text() == "native"


def test_what_is_immutable_stays(pair):
    make(pair, "a", 3)
    fixed = next(pair.root.glob(".shunt/b/a.*/*/*/a.1"))
    with immutable(fixed):
        wait_until_quiet(pair)
        done = pair.tool("export", "--live", "--quiet", QUIET, "--node", "a", pair.root)
    done.check(1)
    assert done.err == f"shunt: {pair.root}/out/a.1: not permitted (run 'chattr -i -a' on it or its directory, or this as its owner)\n"
    assert away(pair) == ["a.1"]
