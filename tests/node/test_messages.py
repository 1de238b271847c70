# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a process is told when no daemon can be reached."""

import os
import pathlib
import tempfile

import pytest
from conftest import IS_SUPERUSER, redirected_files, run
from daemons import is_running, wait_until
from union_on_disk import Union


class Session:
    def __init__(self, shunt, root, run_base):
        self.shunt, self.root, self.settings = shunt, root, {"SHUNT_RUN_DIR": run_base}

    def __call__(self, *words, **settings):
        return self.shunt(words[0], *(["--root", self.root] if words[0] != "export" else []), *words[1:],
                          **{**self.settings, **settings})

    def start(self, *nodes, **settings):
        for node in nodes:
            self("start", "--placement", "branch", "--node", node, **settings).check()


@pytest.fixture
def session(shunt, root, run_base):
    made = Session(shunt, root, run_base)
    yield made
    made("stop")


# exec with no daemon


@pytest.mark.parametrize("was_served", [False, True])
def test_exec_without_a_daemon_runs_nothing(session, area, was_served):
    """Also where the command would not touch the root."""
    if was_served:
        session.start("n1")
        session("stop").check()
    result = session("exec", "--", "touch", area / "ran", SHUNT_NODE="n1")
    assert result.status == 125 and "no daemon is running for this root (run 'shunt start" in result.err, result
    assert not (area / "ran").exists()
    assert len(result.err.splitlines()) == 1


def test_exec_with_a_root_that_is_not_served(session, area, shunt):
    session.start("n1")
    (area / "other").mkdir()
    result = session("exec", "--root", area / "other", "--", "true", SHUNT_NODE="n1")
    assert result.status == 125 and f"{area}/other: no daemon is running" in result.err, result


# Which daemon


def test_exec_finds_the_one_daemon_of_this_host(session):
    session.start("n1")
    session("exec", "--", "touch", session.root / "file").check()
    assert session("exec", "--", "printenv", "SHUNT_NODE").check() == "n1\n"
    result = session("exec", "--node", "n2", "--", "true")
    assert result.status == 125 and "n1" in result.err, result
    result = session("exec", "--", "true", SHUNT_NODE="n2")
    assert result.status == 125 and "n1" in result.err, result


def test_exec_names_them_where_there_are_several(session):
    session.settings["SHUNT_FABRIC"] = "tcp:lo"
    session.start("n1", "n2")
    result = session("exec", "--", "true")
    assert result.status == 125 and "--node one of n" in result.err and ", n" in result.err, result
    session("exec", "--node", "n2", "--", "touch", session.root / "file").check()
    session("stop", "--node", "n1").check()
    assert session("exec", "--", "printenv", "SHUNT_NODE").check() == "n2\n"


def test_a_daemon_that_is_started_again_is_waited_for(session):
    session.start("n1")
    status = session("status", "--json").check()
    os.kill(int(status.split('"pid":')[1].split(",")[0]), 9)
    session("exec", "--", "touch", session.root / "file").check()


def test_status_waits_for_a_daemon_that_is_started_again(session):
    session.start("n1")
    for _ in range(5):
        daemon = int(session("status", "--json").check().split('"pid":')[1].split(",")[0])
        os.kill(daemon, 9)
        wait_until(lambda: not is_running(daemon))
    assert '"alive"' in session("status", "--json").check()


# Whose session


@pytest.mark.skipif(not IS_SUPERUSER, reason="to become another user takes the superuser")
def test_another_user_is_told_whose_session_it_is(shunt, run_base):
    with tempfile.TemporaryDirectory() as area:  # others may not go into pytest's
        os.chmod(area, 0o755)
        session = Session(shunt, pathlib.Path(area) / "root", run_base)
        session.root.mkdir()
        session.root.chmod(0o777)
        session.start("n1")
        become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        result = session("exec", "--", *become, "touch", session.root / "file")
        session("stop").check()
    assert result.status == 1 and "served for another user, number 0" in result.err and "no daemon" not in result.err, result


@pytest.mark.skipif(not IS_SUPERUSER, reason="to become another user takes the superuser")
def test_start_on_the_root_of_another_user(shunt, run_base):
    """Whoever can neither stop that session nor use it is told what there is to do."""
    with tempfile.TemporaryDirectory() as area:
        os.chmod(area, 0o755)
        run_base.chmod(0o1777)
        session = Session(shunt, pathlib.Path(area) / "root", run_base)
        session.root.mkdir()
        session.root.chmod(0o1777)
        session.start("n1")
        become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        for words in (["start", "--root"], ["run", "--root", session.root, "--", "true", ""], ["export"], ["stop", "--root"]):
            command = [*become, shunt.path, *words[:-1 if words[-1] == "" else None], *([] if words[-1] == "" else [session.root])]
            result = run(command, SHUNT_RUN_DIR=run_base)
            assert result.status != 0 and "ask that user to run 'shunt stop" in result.err, result
            assert len(result.err.splitlines()) == 1, result
        session("stop").check()


def test_a_host_that_is_not_in_the_session(session, area):
    """shunt-launch left it out; or its daemon goes by another name, or has another SHUNT_RUN_DIR."""
    session.start("n1")
    result = session("exec", "--", "sh", "-c", f"SHUNT_NODE=n2 exec touch {session.root}/file")
    assert result.status == 1, result
    assert ": no daemon is running for this root on this host, while a session of yours serves it elsewhere (give" in result.err
    Union(area / "held").hold(pid=4194000, host="elsewhere")
    result = session.shunt("exec", "--root", area / "held", "--", "true", SHUNT_NODE="n1")
    assert result.status == 125 and "no daemon is running for this root on this host, held by a session of " in result.err, result
    assert "on host elsewhere" in result.err and "(run 'shunt start --root" in result.err


def test_a_session_of_another_version(session):
    session.start("n1")
    session("stop").check()
    epochs = session.root / ".shunt" / "session"
    (epochs / "epoch.99").write_text("shunt-session 99\n")
    for words in (["start"], ["stop"], ["export", session.root]):
        result = session(*words)
        assert result.status == 1 and "its session is of another version of shunt (run 'shunt stop --root" in result.err, result
    (epochs / "epoch.99").unlink()


def test_a_session_that_no_other_host_can_join(session):
    session.start("n1")
    result = session("start", "--node", "n2", SHUNT_FABRIC="tcp:lo", timeout=60)
    assert result.status == 1 and "by a session that no other host can join (wait for the end" in result.err, result
    assert "SHUNT_FABRIC=tcp" in result.err and "shunt stop --root" in result.err


# Words that are mistyped


@pytest.mark.parametrize("typed, meant", [(["strat"], "start"), (["stauts"], "status"), (["exprot", "."], "export"),
                                          (["ls", "--jsno"], "--json"), (["start", "--rot", "."], "--root"),
                                          (["find", "-nmae", "x"], "-name"), (["help", "fcsk"], "fsck")])
def test_a_word_that_is_mistyped(shunt, typed, meant):
    result = shunt(*typed)
    assert result.status == 2 and f"did you mean '{meant}'?" in result.err and len(result.err.splitlines()) == 1, result


@pytest.mark.parametrize("typed", [["frobnicate"], ["prvoe"], ["ls", "--frobnicate"], ["ls", "-%"], ["x"]])
def test_a_word_that_is_like_none(shunt, typed):
    result = shunt(*typed)
    assert result.status == 2 and "did you mean" not in result.err, result


# After the end


AFTER = r"""
set -e
touch $ROOT/out/before; ls $ROOT/out >&2; cd $ROOT/out
$SHUNT stop --root $ROOT
$1
ls $ROOT/out; echo words >after; cat after; mv after moved; mkdir below; stat -c %F moved below; rm moved; rmdir below
(ls; echo of a subshell >sub; cat sub; rm sub); find $ROOT -name before; cd /
"""


def test_a_shell_that_goes_on_after_the_export(session):
    """The root is plain then, and nothing is said: neither to the shell, nor to its children, nor where it works."""
    session.start("n1")
    (session.root / "out").mkdir()
    script = AFTER.replace("$1", "$SHUNT export $ROOT >&2")
    result = session("exec", "--", "bash", "-c", script, ROOT=session.root, SHUNT=session.shunt.path)
    assert result.check().split("\n")[:4] == ["before", "words", "regular file", "directory"]
    assert "no daemon" not in result.err and "has ended" not in result.err, result.err
    assert os.listdir(session.root) == ["out"] and os.listdir(session.root / "out") == ["before"]


def test_a_shell_that_goes_on_without_an_export(session):
    """Its files are in a branch: calls fail."""
    session.start("n1")
    (session.root / "out").mkdir()
    result = session("exec", "--", "bash", "-c", AFTER.replace("$1", ""), ROOT=session.root, SHUNT=session.shunt.path)
    assert result.status != 0 and "run 'shunt start" in result.err, result


PROGRAMS = r"""
$SHUNT stop --root $ROOT
at() { echo "at $1" >&2; }
at nothing; true; /bin/true; env true; cat /dev/null; ls /; (cd /; /bin/true)
at ls; ls $ROOT/out $ROOT $ROOT/none
at cat; cat $ROOT/out/one $ROOT/out/two
at env; env ls $ROOT/out
at shell; for i in 1 2 3; do echo words >$ROOT/out/$i; test -e $ROOT/out; done; cd $ROOT/out
at subshell; (echo words >$ROOT/out/other; test -e $ROOT/out)
at child; sh -c "echo words >$ROOT/out/other; test -e $ROOT/out; /bin/true"
at "nothing more"; /bin/true; env true; (cd /; true)
"""


def test_each_program_that_comes_to_the_root_says_once_why_it_fails(session):
    """Without an export. One that does not come to it says nothing; what a shell has said, its forks do not say again."""
    session.start("n1")
    (session.root / "out").mkdir()
    result = session("exec", "--", "bash", "-c", PROGRAMS, ROOT=session.root, SHUNT=session.shunt.path)
    said = {}
    for line in result.err.splitlines():
        if line.startswith("at "):
            said[line.removeprefix("at ")] = 0
        elif line.startswith(f"shunt: {session.root}: "):
            assert "run 'shunt start" in line, line
            said[list(said)[-1]] += 1
    assert said == {"nothing": 0, "ls": 1, "cat": 1, "env": 1, "shell": 1, "subshell": 0, "child": 1, "nothing more": 0}, result.err


def test_a_session_that_begins_later_is_seen(session):
    """By a shell that saw the root plain in between, and by its children."""
    session.start("n1")
    (session.root / "out").mkdir()
    script = AFTER.replace("$1", "$SHUNT export $ROOT >&2") + """
    $SHUNT start --root $ROOT --node n1 --placement branch
    $SHUNT exec --root $ROOT -- touch $ROOT/out/redirected
    ls $ROOT/out; test -e $ROOT/out/redirected; echo of the shell >$ROOT/out/own; (cd $ROOT/out; cat own)
    """
    result = session("exec", "--", "bash", "-c", script, ROOT=session.root, SHUNT=session.shunt.path)
    assert result.check().endswith("before\nredirected\nof the shell\n")
    assert sorted(os.path.basename(path) for path in redirected_files(session.root)) == ["own", "redirected"]
