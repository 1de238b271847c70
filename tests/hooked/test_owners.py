# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A node renames the files that it made while an export waits for it (tools/leaving/owner.h), that of shunt-launch or one with helpers: one of
the two ends, or a program without shunt makes the same names; two nodes work in two directories."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest
from conftest import NODE, Meeting, one_node, wait_until

sys.path.append(str(NODE))
from daemons import is_running
from union_on_disk import Union

NAMES = [f"file.{i}" for i in range(40)]


@dataclass
class Scene:
    """The owner stands before the first file."""

    launch: subprocess.Popen
    root: pathlib.Path
    meeting: Meeting

    def agent(self):
        words = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                 for pid in pathlib.Path(f"/proc/{self.launch.pid}/task/{self.launch.pid}/children").read_text().split()}
        pid, = (pid for pid, of in words.items() if b"--keep-node" in of and of[of.index(b"--node") + 1] == b"fake0")
        return int(pid)

    def ended(self):
        out, err = self.launch.communicate(timeout=60)
        return one_node.Result(self.launch.args, self.launch.returncode, out, err)

    def contents(self):
        return {path.name: path.read_text() for path in (self.root / "out").iterdir()}


def has_open(process, what):
    for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just closed that one
            if os.readlink(fd) == what:
                return True
    return False


@pytest.fixture(params=[[], [one_node.PYTHON, NODE / "without_noreplace.py"]], ids=["noreplace", "look"])
def scene(request, build, tmp_path):
    union, meeting = Union(tmp_path / "root"), Meeting(tmp_path / "there")
    mirror = union.mark("out", 1)
    for name in NAMES:
        union.put("fake0.1", mirror, name, name)
    words = [*request.param, build / "tools" / "shunt-launch", "--root", union.root, "--fake-nodes", "1", "--json", "true"]
    launch = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=one_node.environment(SHUNT_HOOKS=meeting.at("owner-renames")))
    meeting.reached()
    yield Scene(launch, union.root, meeting)
    meeting.go()
    launch.kill()
    launch.communicate()


def assert_exported(scene):
    one_node.assert_plain(scene.root)
    assert scene.contents() == {name: name for name in NAMES}


def assert_interrupted(scene):
    """The export is, while the owner stands before its first file; it holds the root until that has gone on."""
    pipe = os.readlink(f"/proc/{scene.agent()}/fd/0")
    scene.launch.terminate()
    wait_until(lambda: not has_open(scene.launch, pipe), "word to the owner")
    assert (scene.root / ".shunt" / "session").is_dir()
    scene.meeting.go()
    result = scene.ended()
    assert result.status == 128 + signal.SIGTERM and "the export was interrupted, nothing is lost" in result.err, result
    return result


def test_an_owner_is_killed(scene):
    """The export does it all."""
    os.kill(scene.agent(), signal.SIGKILL)
    result = scene.ended()
    result.check()
    assert '"exported_files": 40, "exported_by_owners": 0' in result.err
    assert_exported(scene)


def test_the_launch_is_killed(scene, shunt):
    """The next export needs not wait for an owner that stands still, and that finds nothing to do when it goes on."""
    agent = scene.agent()
    scene.launch.kill()
    scene.launch.wait(60)
    shunt("export", scene.root).check()
    assert_exported(scene)
    scene.meeting.go()
    wait_until(lambda: not is_running(agent), "the end of the owner")
    assert_exported(scene)


def test_the_export_is_interrupted(scene, shunt):
    """It gives the root up once the owner has stopped."""
    assert_interrupted(scene)
    assert len(set(NAMES) & set(os.listdir(scene.root / "out"))) == 1  # that before which it stood
    shunt("export", scene.root).check()
    assert_exported(scene)


def test_names_that_appear_are_not_replaced(scene, shunt):
    """The export says it, as of its own files."""
    for name in NAMES:
        (scene.root / "out" / name).write_text("native")
    scene.meeting.go()
    result = scene.ended()
    assert result.status != 0 and result.err.count("appeared in the trunk") == 1, result
    shunt("export", scene.root).check()
    one_node.assert_plain(scene.root)
    words = list(scene.contents().values())
    assert words.count("native") == len(NAMES) and len(words) == 2 * len(NAMES)


def test_nodes_work_in_two_directories_at_the_same_time(build, tmp_path):
    """One of the nodes stands before its first file, wherever that is: the other one's directory is finished meanwhile, but for a
    directory in which the first one is at work, where each waits for the other."""
    union, meeting = Union(tmp_path / "root"), Meeting(tmp_path / "there")
    both, second = union.mark("both", 1), union.mark("second", 2)
    for name in NAMES:
        union.put("fake0.1", both, f"fake0.{name}", name)
        union.put("fake1.1", both, f"fake1.{name}", name)
        union.put("fake1.1", second, name, name)

    def there(directory, prefix=""):
        return {name for name in NAMES if (union.root / directory / f"{prefix}{name}").exists()}

    words = [build / "tools" / "shunt-launch", "--root", union.root, "--fake-nodes", "2", "--json", "true"]
    launch = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=one_node.environment(SHUNT_FABRIC="tcp:lo", SHUNT_HOOKS=meeting.at("owner-renames")))
    try:
        meeting.reached()
        wait_until(lambda: len(there("second")) + len(there("both", "fake0.")) == len(NAMES), "the other node's files")
        assert not there("both", "fake1.")
        if there("second"):
            wait_until(lambda: not (union.root / "second" / ".shunt-dir").exists(), "the end of the directory that is done")
        assert (union.root / "both" / ".shunt-dir").exists()
        meeting.go()
        out, err = launch.communicate(timeout=60)
    finally:
        meeting.go()
        launch.kill()
        launch.communicate()
    assert launch.returncode == 0 and '"exported_files": 120, "exported_by_owners": 120' in err, err
    one_node.assert_plain(union.root)
    assert there("second") == there("both", "fake0.") == there("both", "fake1.") == set(NAMES)


class Helped(Scene):
    def agent(self):
        pid, = pathlib.Path(f"/proc/{self.launch.pid}/task/{self.launch.pid}/children").read_text().split()
        return int(pid)


@pytest.fixture
def helped(build, tmp_path):
    """As `scene`, of an export to which a helper was brought by a stand-in for ssh."""
    union, meeting = Union(tmp_path / "root"), Meeting(tmp_path / "there")
    mirror = union.mark("out", 1)
    for name in NAMES:
        union.put("far.1", mirror, name, name)
    (tmp_path / "hosts").write_text("far\n")
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\nwhile [ "$1" = -o ]; do shift 2; done\n'
                   f'export SHUNT_NODE=$1 SHUNT_HOOKS={meeting.at("owner-renames")}\nshift\nexec sh -c "exec $*"\n')
    ssh.chmod(0o755)
    words = [build / "tools" / "shunt", "export", "--json", "--hosts", tmp_path / "hosts", union.root]
    export = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=one_node.environment(PATH=f"{ssh.parent}:{os.environ['PATH']}"))
    meeting.reached()
    yield Helped(export, union.root, meeting)
    meeting.go()
    export.kill()
    export.communicate()


def test_a_helper_is_killed(helped):
    os.kill(helped.agent(), signal.SIGKILL)
    said = helped.ended().check()
    assert '"files": 40' in said and '"by_owners": 0' in said
    assert_exported(helped)


def test_an_export_with_helpers_is_interrupted(helped, shunt):
    """It gives the root up once the helper has stopped, which ends."""
    agent = helped.agent()
    result = assert_interrupted(helped)
    assert '"files": 1' in result.out and '"by_owners": 1' in result.out
    assert not is_running(agent)
    shunt("export", helped.root).check()
    assert_exported(helped)


def test_an_export_with_helpers_is_killed(helped, shunt):
    """The helper ends, and what it has not renamed the next export does."""
    agent = helped.agent()
    helped.launch.kill()
    helped.launch.wait(60)
    helped.meeting.go()
    wait_until(lambda: not is_running(agent), "the end of the helper")
    shunt("export", helped.root).check()
    assert_exported(helped)
