# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Members that vanish, or are silent for so long that the others take them for lost. A lease is as short here as it may
be, 6 seconds."""

import os
import pathlib
import signal
import subprocess
import time

import pytest
from daemons import epoch_lines, stand_still

pytestmark = pytest.mark.parametrize("net", ["host"], indirect=True)


@pytest.fixture
def nodes(session):
    session.settings["SHUNT_STALE"] = "6"
    session.start("a", "b", "c")
    for node in "abc":
        session.sh(node, f"mkdir -p d && for i in $(seq 20); do echo {node}$i >d/{node}$i; done")
    assert session.homes() == ["a", "b", "c"]
    return session


def node_names(session):
    return sorted(member["node"] for member in session.members())


def branches(session):
    return sorted(os.listdir(session.root / ".shunt" / "b"))


def log_of(session, node):
    return (pathlib.Path(session.member(node)["run_dir"]) / "log").read_text()


ALL = sorted(f"{node}{i}" for node in "abc" for i in range(1, 21))


@pytest.mark.parametrize("lost", "ac")  # the first of the homes, and the last
def test_the_others_go_on_without_a_node_that_vanished(nodes, lost):
    one, other = sorted({"a", "b", "c"} - {lost})
    nodes.vanish(lost)
    # What has to know a home that is gone waits, and then goes on.
    waiting = nodes.begin("exec", one, "--", "sh", "-c",
                          "for i in $(seq 50); do echo new >d/new$i || exit 1; done; cat d/*")
    assert waiting.wait(60) == 0
    assert node_names(nodes) == [one, other]
    assert f"{lost}.2" in branches(nodes) and f"{lost}.1" not in branches(nodes), "its branch is fenced"
    assert nodes.homes() == [one, other]
    # Its files are there for everybody, and as good as any.
    assert sorted(nodes.names(other, "d")) == sorted(ALL + [f"new{i}" for i in range(1, 51)])
    assert nodes.sh(other, f"cat d/{lost}7") == f"{lost}7\n"
    nodes.sh(one, f"rm d/{lost}1 && mv d/{lost}2 d/{lost}3 && mv d/{lost}4 d/moved && ln d/{lost}5 d/linked && ! test -e d/{lost}1")
    assert nodes.sh(other, f"cat d/{lost}3 d/moved d/linked") == f"{lost}2\n{lost}4\n{lost}5\n"
    # It comes back, in a branch of its own.
    nodes.start(lost)
    nodes.sh(lost, f"echo back >d/back && test $(cat d/{lost}7) = {lost}7")
    assert nodes.homes() == ["a", "b", "c"]
    assert nodes.branch_of("d/back") == lost and f"{lost}.3" in branches(nodes)
    assert nodes.sh(one, "cat d/back") == "back\n"
    nodes.stop(*nodes.homes())
    assert nodes.tool("fsck", nodes.root).status == 0


def test_who_was_only_silent_comes_back_as_another(nodes):
    """Its processes wait meanwhile, and notice nothing but that."""
    first = nodes.member("c")["pid"]
    stand_still(first)
    at_work = nodes.begin("exec", "c", "--", "sh", "-c", "cat d/c1 d/a1 >/dev/null && echo late >d/late && rm d/c2")
    nodes.wait_for(lambda: node_names(nodes) == ["a", "b"])
    assert nodes.sh("a", "cat d/c1") == "c1\n" and at_work.poll() is None
    os.kill(first, signal.SIGCONT)
    assert at_work.wait(60) == 0
    assert nodes.sh("a", "cat d/late; test -e d/c2 || echo gone") == "late\ngone\n"
    assert nodes.homes() == ["a", "b", "c"] and nodes.member("c")["pid"] != first
    assert "session: has gone on without this daemon" in log_of(nodes, "c")


def test_who_ends_while_it_joins_is_lost_like_others(nodes, build):
    """Before its first look at anything: as soon as it is a member."""
    words = [build / "daemon" / "shuntd", "--root", nodes.root, "--node", "d", "--placement", "branch", "--foreground"]
    joining = subprocess.Popen(list(map(str, words)), env={**nodes.environment(), **nodes.net.settings("d")},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while "node d" not in epoch_lines(nodes.root):
        assert joining.poll() is None
    joining.kill()
    joining.wait()
    waiting = nodes.begin("exec", "a", "--", "sh", "-c", "for i in $(seq 50); do echo new >d/new$i || exit 1; done")
    assert waiting.wait(60) == 0
    nodes.wait_for(lambda: node_names(nodes) == ["a", "b", "c"])


def test_a_daemon_that_is_told_to_stop_while_it_is_started_again_leaves(nodes):
    for pause in (0.01, 0.02, 0.03, 0.04):
        daemon = nodes.member("c")["pid"]
        supervisor = int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(daemon, signal.SIGKILL)
        time.sleep(pause)  # wherever its successor is by then
        os.kill(supervisor, signal.SIGTERM)
        nodes.wait_for(lambda: not nodes.is_running(supervisor))
        assert nodes.begin("exec", "a", "--", "sh", "-c", f"for i in $(seq 20); do echo >d/n{pause}$i || exit 1; done").wait(60) == 0
        nodes.start("c")


def test_without_a_lease_the_index_says_nothing(nodes):
    """A node that stands still as a whole, and is back: what it knew of its own names is out of date."""
    session, mine = nodes, [name for name in ALL if name.startswith("c")]
    reader = "import os, signal\nfor name in %r: os.stat('d/' + name)\nos.kill(os.getpid(), signal.SIGSTOP)\n" \
             "print([name for name in %r if os.path.exists('d/' + name)])" % (mine, mine)
    stopped = session.begin("exec", "c", "--", "python3", "-c", reader, stdout=-1)
    session.wait_for(lambda: pathlib.Path(f"/proc/{stopped.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    first = session.member("c")["pid"]
    stand_still(first)
    session.wait_for(lambda: node_names(session) == ["a", "b"])
    session.sh("a", "rm d/c*")
    os.kill(stopped.pid, signal.SIGCONT)
    with pytest.raises(Exception, match="timed out"):
        stopped.wait(2)  # it waits for its daemon
    os.kill(first, signal.SIGCONT)
    assert stopped.communicate(timeout=60)[0] == b"[]\n"


def test_fewer_than_half_decide_nothing(nodes):
    nodes.settings["SHUNT_DEADLINE"] = "3"
    for node in "bc":
        nodes.vanish(node)
    nodes.wait_for(lambda: "less than half" in log_of(nodes, "a"))
    assert node_names(nodes) == ["a", "b", "c"] and {"b.1", "c.1"} <= set(branches(nodes))
    failed = nodes.on("a", "ls", "d", cwd=nodes.root)
    assert failed.status != 0 and "did not answer within SHUNT_DEADLINE" in failed.err and "Input/output error" in failed.err
    assert nodes.at("stop", "a").status == 0, "it does not wait for others to take its names over"
    assert (nodes.root / "d").is_dir()


def test_one_of_two_goes_on(session):
    session.settings["SHUNT_STALE"] = "6"
    session.start("a", "b")
    session.sh("b", "echo kept >kept")
    assert session.homes() == ["a", "b"]
    session.vanish("b")
    assert session.sh("a", "cat kept; for i in $(seq 20); do echo $i >n$i; done; ls | wc -l") == "kept\n21\n"
    assert node_names(session) == ["a"]
    session.wait_for(lambda: session.homes() == ["a"])
