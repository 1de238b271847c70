# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A session inside another one's environment: both roots are served, or the inner one refuses."""

import shlex

import pytest

from conftest import run
from daemons import supervisor_of
from test_failures import Session


@pytest.fixture
def roots(area):
    """Three, each with a directory; where programs work that are in none."""
    made = [area / name for name in ("one", "two", "three")]
    for root in made:
        (root / "out").mkdir(parents=True)
    return made


@pytest.fixture
def tool(shunt, run_base):
    def call(*words, **options):
        return run([shunt.path, *words], **{"SHUNT_RUN_DIR": run_base, "SHUNT_NODE": "n1", "timeout": 60, **options})
    return call


@pytest.fixture
def sessions(shunt, run_base, roots):
    """Of all three, in each of which a file is in a branch."""
    made = [Session(shunt, root, run_base) for root in roots]
    for session in made:
        session.start().check()
        session.exec("sh", "-c", f"echo {session.root.name} >out/made", cwd=session.root).check()
        assert not (session.root / "out/made").exists()
    yield made
    for session in made:
        session.stop()


def nested(shunt, verb, roots, *command):
    """The words of one within the other."""
    words = list(command)
    for root in reversed(roots):
        words = [shunt.path, verb, "--root", root, *(["--placement", "branch"] if verb == "run" else []), "--", *words]
    return words[1:]


def read_all(roots):
    return ["cat", *(root / "out/made" for root in roots)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2), (0, 0), (0, 1, 0), (0, 1, 1)])
def test_exec_within_exec_serves_all(shunt, tool, sessions, order):
    roots = [sessions[i].root for i in order]
    names = "".join(f"{root.name}\n" for root in roots)
    assert tool(*nested(shunt, "exec", roots, *read_all(roots))).check() == names
    for root in roots:
        tool(*nested(shunt, "exec", roots, "sh", "-c", f"echo new >{root}/out/new; ls {root}/out")).check()
        assert not (root / "out/new").exists(), "it is in a branch"
    assert all(session.names("out") == ["made", "new"] for session in sessions if session.root in roots)


def test_each_root_is_named_once(shunt, tool, sessions):
    roots = [sessions[i].root for i in (0, 1, 0, 1)]
    said = tool(*nested(shunt, "exec", roots, "sh", "-c", "echo $SHUNT_ROOT")).check()
    assert sorted(said.strip().split(":")) == sorted(map(str, roots[:2]))


def test_a_root_that_is_only_a_default_is_not_joined(shunt, tool, sessions):
    """Outside every session SHUNT_ROOT is what --root takes the place of."""
    one, two = (session.root for session in sessions[:2])
    assert tool("exec", "--root", two, "--", "sh", "-c", "echo $SHUNT_ROOT", SHUNT_ROOT=one).check() == f"{two}\n"


@pytest.mark.parametrize("count", [2, 3])
def test_run_within_run_serves_all_and_ends_each(shunt, run_base, roots, count):
    """What is made in all roots within is exported by its own session; the outer ones go on."""
    used = roots[:count]
    inner = "; ".join(f"echo {root.name} >{root}/out/made; test -e {root}/out/made || echo missing" for root in used)
    command = ["sh", "-c", inner]
    for at, root in reversed(list(enumerate(used))):
        after = "; ".join(f"cat {outer}/out/made; echo more >{outer}/out/after{at}" for outer in used[:at])
        words = [shunt.path, "run", "--root", root, "--placement", "branch", "--", *command]
        command = ["sh", "-c", '"$@"; ' + (after or "true"), "sh", *words]
    said = run(command, SHUNT_RUN_DIR=run_base, SHUNT_NODE="n1", timeout=60).check()
    assert said == "".join("".join(f"{root.name}\n" for root in used[:at]) for at in reversed(range(1, count)))
    for place, root in enumerate(used):
        assert not (root / ".shunt").exists() and (root / "out/made").read_text() == f"{root.name}\n"
        assert all((root / f"out/after{at}").read_text() == "more\n" for at in range(place + 1, count))


def test_run_within_exec_and_exec_within_run(shunt, tool, sessions, roots, run_base):
    outer, inner = sessions[0], roots[1]
    sessions[1].stop().check()
    words = [shunt.path, "run", "--root", inner, "--placement", "branch", "--", "sh", "-c",
             f"cat {outer.root}/out/made; echo x >{outer.root}/out/x; echo y >{inner}/out/y"]
    assert outer.exec(*words).check() == "one\n"
    assert outer.names("out") == ["made", "x"] and not (outer.root / "out/x").exists()
    assert (inner / "out/y").exists()
    words = [shunt.path, "exec", "--root", outer.root, "--", "sh", "-c", f"cat {outer.root}/out/made; echo z >{inner}/out/z; ls {inner}/out"]
    assert tool("run", "--root", inner, "--placement", "branch", "--", *words).check() == "one\nmade\ny\nz\n"
    assert outer.exec("cat", outer.root / "out/x").check() == "x\n"


def launches(shunt, root, script, *lines):
    """One after the other."""
    words = [f"{shunt.path}-launch", "--root", root, "--placement", "branch"]
    return "; ".join(" ".join(shlex.quote(str(word)) for word in (*words, *line, "sh", "-c", script, "-")) for line in lines)


def test_a_launch_within_run_serves_all(shunt, tool, roots):
    one, two = roots[:2]
    script = f"cat {one}/out/made; echo x >>{one}/out/x; echo y >>{two}/out/y; test ! -e {one}/.shunt || echo seen"
    both = launches(shunt, two, script, [], ["mpiexec.hydra", "-n", 1])
    result = tool("run", "--root", one, "--placement", "branch", "--", "sh", "-c", f"echo one >{one}/out/made; {both}; ls {one}/out")
    assert result.check().split() == ["one", "one", "made", "x"], result.err
    assert (two / "out/y").read_text() == "y\ny\n" and (one / "out/x").read_text() == "x\nx\n"
    assert not (one / ".shunt").exists() and not (two / ".shunt").exists()


def test_ranks_that_cannot_see_the_outer_root_do_not_run(shunt, tool, roots):
    """Pretended nodes have no daemon for it."""
    one, two = roots[:2]
    result = tool("run", "--root", one, "--placement", "branch", "--", "sh", "-c",
                  launches(shunt, two, f"ls {one}/out", ["--fake-nodes", 1]))
    assert result.status == 97 and f"{one}: a process on " in result.err and result.out == "", result


def test_run_within_run_of_the_same_root(shunt, tool, roots):
    """The inner one refuses, or is one more user of the session; the outer one goes on, and exports at its end."""
    root, = roots[:1]
    inner = f"{shunt.path} run --root {root} --placement branch -- sh -c 'echo x >{root}/out/x'"
    result = tool("run", "--root", root, "--placement", "branch", "--", "sh", "-c",
                  f"echo a >{root}/out/a; {inner} || echo refused; cat {root}/out/a; echo b >{root}/out/b; ls {root}/out")
    lines = result.check().split()
    assert lines in (["refused", "a", "a", "b"], ["a", "a", "b", "x"])
    assert (root / "out/b").exists() and not (root / ".shunt").exists()


def test_an_inner_one_by_whose_settings_the_outer_one_cannot_be_found_refuses(shunt, tool, sessions, area):
    one, two = (session.root for session in sessions[:2])
    (area / "other").mkdir()
    for words, sentence in ((f"exec --root {two} --node n2", "no daemon of this host is named 'n2' (its daemon is: n1)"),
                            (f"run --root {area}/other --node n2", "is served in this environment")):
        result = tool("exec", "--root", one, "--", "sh", "-c", f"{shunt.path} {words} -- cat {one}/out/made")
        assert result.status == 125 and sentence in result.err and "n1" in result.err, result
    result = tool("exec", "--root", one, "--", "sh", "-c",
                  f"SHUNT_RUN_DIR={area}/other {shunt.path} exec --root {two} -- cat {one}/out/made")
    assert result.status == 125 and "SHUNT_RUN_DIR" in result.err


def test_of_an_outer_one_that_is_started_again_just_then_the_same_holds(shunt, tool, sessions, area):
    one = sessions[0]
    daemon = one.daemon()
    supervisor, = supervisor_of(daemon)
    (area / "other").mkdir()
    script = f"kill -STOP {supervisor}; kill -9 {daemon}; {shunt.path} run --root {area}/other --node n2 -- true; echo $?; kill -CONT {supervisor}"
    result = one.exec("bash", "-c", script)
    assert result.check() == "125\n" and "is served in this environment" in result.err
    one.exec("cat", one.root / "out/made").check()


def test_an_outer_root_that_has_gone_is_none(shunt, tool, sessions):
    one, two = sessions[:2]
    assert one.exec("sh", "-c", f"{shunt.path} stop --root {one.root}; {shunt.path} export {one.root} >&2; "
                    f"{shunt.path} exec --root {two.root} -- cat {two.root}/out/made {one.root}/out/made").check() == "two\none\n"


def test_more_roots_than_can_be_served_are_refused(shunt, tool, area):
    words = []
    for i in range(17):
        (area / f"r{i}").mkdir()
        words += ["--root", area / f"r{i}"]
    result = tool("exec", *words, "--", "true")
    assert result.status == 125 and "more than 16 roots" in result.err
