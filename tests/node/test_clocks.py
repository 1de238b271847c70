# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Clocks that are not what they seem: a library that lies about the time (processes/liar.c), and time namespaces. With two
nodes a process compares the time with its daemon's lease."""

import shutil
import subprocess
import time

import pytest

from conftest import IS_SUPERUSER, PYTHON, environment, run, wait_until

LIES = ["86400", "-86400", "frozen"]
SETTINGS = {"SHUNT_FABRIC": "tcp", "SHUNT_DEADLINE": 10}


def may_make_time_namespaces():
    command = ["unshare", "-T", "--boottime", "100", "true"]
    return IS_SUPERUSER and shutil.which("unshare") and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def two_nodes(shunt, tmp_path):
    """two_nodes(*command): runs it on the first of two nodes of one root, which is its working directory."""
    root = tmp_path / "root"
    root.mkdir()
    settings = {**SETTINGS, "SHUNT_RUN_DIR": tmp_path / "run"}
    (tmp_path / "run").mkdir()
    for node in "ab":
        shunt("start", "--root", root, "--node", node, "--placement", "branch", **settings).check()
    yield lambda *command, **more: shunt("exec", "--root", root, "--node", "a", "--", *command, cwd=root, timeout=60, **settings, **more)
    for node in "ba":
        shunt("stop", "--root", root, "--node", node, **settings).check()


def lying(build, lie):
    """The words before a command that put the liar next to the shim."""
    return ["env", f"LIE={lie}", "sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{build}/tests/node/processes/libliar.so" exec "$@"', "sh"]


LOOKS = """import os
for i in range(40):
    open(f"f{i}", "w").close()
assert len(os.listdir()) == 40
for i in range(40):
    os.stat(f"f{i}")
    os.rename(f"f{i}", f"g{i}")
    os.unlink(f"g{i}")
assert os.listdir() == []
print("all")
"""


@pytest.mark.unsanitized
@pytest.mark.parametrize("lie", LIES)
def test_a_program_with_another_time_is_served(two_nodes, build, lie):
    assert two_nodes(*lying(build, lie), PYTHON, "-c", LOOKS).check() == "all\n"


@pytest.mark.unsanitized
@pytest.mark.parametrize("lie", LIES)
def test_tools_and_daemons_with_another_time_go_on(shunt, build, tmp_path, lie):
    root = tmp_path / "root"
    root.mkdir()
    words = lying(build, lie)
    # libfabric and the drivers that it loads wait by libc's clock: with a frozen one, for ever.
    daemons = [] if lie == "frozen" else words
    for node in "ab":
        run([*daemons, shunt.path, "start", "--root", root, "--node", node, "--placement", "branch"], **SETTINGS).check()
    run([*words, shunt.path, "exec", "--root", root, "--node", "a", "--", PYTHON, "-c", LOOKS], cwd=root, **SETTINGS).check()
    for node in "ba":
        run([*words, shunt.path, "stop", "--root", root, "--node", node], **SETTINGS).check()


def begin_to_hold(shunt, build, root, lie, verb, trace):
    """A tool that holds a root, and stands still before its first rename; it goes on when the tracer ends."""
    root.mkdir()
    shunt.run(root, ["sh", "-c", "mkdir d; echo x >d/f"], "branch", keep=True, cwd=root).check()
    if verb == "fsck":
        (root / "d" / "f").write_text("there twice")
    stands = ["strace", "-f", "-o", trace, "-e", "trace=renameat2,utimensat", "-e", "inject=renameat2:delay_enter=600s:when=1"]
    words = [*stands, *lying(build, lie), shunt.path, verb, *(["--repair"] if verb == "fsck" else []), root]
    return subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def when_it_beat(root):
    return max((beat.stat().st_mtime_ns for beat in root.glob(".shunt/session/beat.*")), default=0)


@pytest.mark.unsanitized
def test_a_tool_that_holds_a_root_beats_as_often_as_ever(shunt, build, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")
    cases = [*((lie, "export") for lie in LIES), ("frozen", "fsck")]
    began = time.monotonic()
    held = [(tmp_path / f"{verb}{lie}", tmp_path / f"trace-{verb}{lie}") for lie, verb in cases]
    tools = [begin_to_hold(shunt, build, root, *case, trace) for case, (root, trace) in zip(cases, held)]
    try:
        for root, _ in held:
            wait_until(lambda root=root: when_it_beat(root) != 0, 60)
        for _ in range(2):
            before = [when_it_beat(root) for root, _ in held]
            for (root, _), beat in zip(held, before):
                wait_until(lambda root=root, beat=beat: when_it_beat(root) != beat, 60)
        most = 4 + (time.monotonic() - began) / 2  # one every 2 s, and those of its begin
        assert [trace.read_text().count("beat.") <= most for _, trace in held] == [True] * len(cases)
    finally:
        for tool in tools:
            tool.kill()
    said = [tool.communicate(timeout=60)[0] for tool in tools]
    assert all("is a plain directory" in words or "1 repaired" in words for words in said), said


@pytest.mark.skipif(not may_make_time_namespaces(), reason="needs time namespaces")
@pytest.mark.parametrize("offset", ["100000", "-1"])
@pytest.mark.parametrize("clock", ["--boottime", "--monotonic"])
def test_a_process_in_another_time_namespace_is_served(two_nodes, clock, offset):
    assert two_nodes("unshare", "-T", clock, offset, PYTHON, "-c", LOOKS).check() == "all\n"


ENTERS = """import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x80) == 0  # CLONE_NEWTIME
open("/proc/self/timens_offsets", "w").write("7 100000 0\\n")
open("before", "w").close()
before = time.clock_gettime(time.CLOCK_BOOTTIME)
assert libc.setns(os.open("/proc/self/ns/time_for_children", os.O_RDONLY), 0) == 0
assert time.clock_gettime(time.CLOCK_BOOTTIME) > before + 1000
""" + LOOKS.replace("40", "41").replace('open(f"f', 'os.path.exists("before") and os.unlink("before")\n    open(f"f')


@pytest.mark.skipif(not may_make_time_namespaces(), reason="needs time namespaces")
def test_a_process_that_enters_a_time_namespace_is_served(two_nodes):
    assert two_nodes(PYTHON, "-c", ENTERS).check() == "all\n"
