# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A system call of `shunt export` or `shunt fsck --repair` fails once: each of a kind in turn. The command does what it is for, or
it fails, says why and what to do, and nothing that is not so; the same command, run again, does what it is for."""

import collections
import json
import os
import re
import shutil
import stat

import pytest

from conftest import HERE, PYTHON, run
from test_tool import as_user, give, user  # noqa: F401: a fixture
from union_on_disk import Union

pytestmark = pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced

WITHOUT_NOREPLACE = [PYTHON, HERE / "without_noreplace.py"]
REMEDY = re.compile(r"[^(]\([^()]+(\([^()]*\)[^()]*)*\)$", re.M)


def make_newer(file, than):
    """Of what has that content: the file system's clock may stand for a while."""
    while file.stat().st_ctime_ns <= than.stat().st_ctime_ns:
        file.write_text(file.read_text())


def make(root):
    """A redirected directory with a name that is there twice, an empty one, a plain one, and what is not shunt's."""
    if root.exists():
        shutil.rmtree(root)
    union = Union(root)
    mirror = union.mark("out", 1)
    union.put("n1.1", mirror, "a", "words")
    union.put("n2.3", mirror, "c", "more", leaf=2)
    (root / "out" / "twice").write_text("trunk")
    make_newer(union.put("n1.1", mirror, "twice", "branch"), root / "out" / "twice")
    union.leaf("n2.3", union.mark("empty", 2))
    (root / "plain").mkdir()
    (root / "plain" / "file").write_text("plain")
    return union


def stray(union):
    """A mirror that was renamed: what is in it is not seen."""
    (union.root / ".shunt" / "b" / "n1.1" / "out-000000000001").rename(union.root / ".shunt" / "b" / "n1.1" / "aside")


def copied(union):
    """A directory that was copied natively has the marker of another one."""
    (union.root / "copy").mkdir()
    shutil.copy(union.root / "out" / ".shunt-dir", union.root / "copy" / ".shunt-dir")


def found(root):
    """What is below a root, but shunt's own; whether there is any of that."""
    files = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if name.parts[0] != ".shunt":
            mode = stat.S_IMODE(path.lstat().st_mode)
            is_told = path.is_file() and name.name != ".shunt-dir"  # which says when its directory was made
            files[str(name)] = mode, path.read_text() if is_told else None
    return files, (root / ".shunt").exists()


def looked_into(root):
    """The same with names and places of what is in branches."""
    return found(root), sorted(str(path.relative_to(root)) for path in root.glob(".shunt/b/*/*/*/*"))


# What is not so in any of these roots.
FALSE = {"export": ["is a plain directory", "does not belong", "directory that is gone", "only a whole root", "not a root"],
         "fsck": [": clean", "not a root", "does not belong"]}


class Failing:
    def __init__(self, root, change, words, within, become):
        self.root, self.change, self.words, self.within, self.become = root, change, words, within, become

    def make(self):
        self.change(make(self.root))

    def run(self, *traced):
        return self.become([*self.words, self.root], [*self.within, *traced])

    def traced(self, log, call, *inject):
        return self.run("strace", "-qq", "-o", log, "-e", f"trace={call}", *inject)

    def count(self, log, call):
        """Before the root is opened, as what the loader and libc need; and all."""
        before, opens, after = log.read_text().partition(f'openat(AT_FDCWD, "{self.root}"')
        return before.count(f"{call}("), (before + opens + after).count(f"{call}(")

    def fail_each(self, log, call, error):
        """How often it did."""
        self.make()
        whole = self.traced(log, f"{call},openat")
        first, last = self.count(log, call)
        expected = looked_into(self.root)
        self.run()
        again = looked_into(self.root)
        for number in range(first + 1, last + 1):
            self.make()
            result = self.traced(log, call, "-e", f"inject={call}:error={error}:when={number}")
            self.check(result, whole, expected, (log.read_text().splitlines()[number - 1:number], result))
            second = self.run()
            assert second.status == whole.status or looked_into(self.root) == again, (result, second)
            assert looked_into(self.root) in (expected, again), (result, second)
        return last - first

    def check(self, result, whole, expected, what):
        if result.status == whole.status and result.out == whole.out:
            assert looked_into(self.root) == expected, what
            return
        said = result.err + (result.out if self.words[0] == "fsck" else "")
        assert result.status > 0, what
        assert REMEDY.search(said), what
        assert not [words for words in FALSE[self.words[0]] if words in result.out + result.err], what


@pytest.fixture
def failing(shunt, area):
    def begin(words, change=lambda union: None, within=(), become=None):
        return Failing(area / "root", change, words, within, become or (lambda words, within: run([*within, shunt.path, *words])))
    return begin


CALLS = ["openat", "statx", "getdents64", "unlinkat", "renameat2", "read", "utimensat"]
COPIED = ["openat", "statx", "unlinkat"]  # by which is known whose the copy is, and by which its marker goes
EXPORT, REPAIR = ["export"], ["fsck", "--repair"]


@pytest.mark.parametrize("words", [EXPORT, REPAIR], ids=lambda words: words[0])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails(failing, area, words, call):
    count = failing(words).fail_each(area / "calls", call, "EIO")
    assert count > 0 or (words, call) == (REPAIR, "utimensat")


@pytest.mark.parametrize("words", [EXPORT, REPAIR], ids=lambda words: words[0])
@pytest.mark.parametrize("call", COPIED)
def test_a_copied_marker(failing, area, words, call):
    """The files of the original do not go to the copy, and what is said to be done is."""
    assert failing(words, copied).fail_each(area / "calls", call, "EIO") > 0


@pytest.mark.parametrize("call, error", [("renameat2", "EINTR"), ("statx", "ESTALE"), ("unlinkat", "EROFS")])
def test_export_is_told_another_error(failing, area, call, error):
    assert failing(EXPORT).fail_each(area / "calls", call, error) > 0


@pytest.mark.parametrize("call, error", [("linkat", "EDQUOT"), ("unlinkat", "EIO")])
def test_careful_export_is_told_an_error(failing, area, call, error):
    """Where none has lost a conflict: a link changes the time by which that is decided."""
    scene = failing(["export", "--careful"], lambda union: (union.root / "out" / "twice").unlink(), within=WITHOUT_NOREPLACE)
    assert scene.fail_each(area / "calls", call, error) > 0


@pytest.mark.parametrize("call", ["linkat", "unlinkat"])
def test_careful_export_where_a_loser_has_both_names(failing, area, call):
    """Or cannot be taken aside: both files are kept, and no other program is blamed. Which of them loses a link may have changed."""
    scene, log = failing(["export", "--careful"], within=WITHOUT_NOREPLACE), area / "calls"
    told = 0
    for number in range(1, 60):
        scene.make()
        result = scene.traced(log, call, "-e", f"inject={call}:error=EIO:when={number}")
        if "(INJECTED)" not in log.read_text():
            break
        assert result.status == 0 or REMEDY.search(result.err), (number, result)
        assert "appeared" not in result.err, (number, result)
        told += "which lost a conflict, cannot be renamed to twice.shunt-conflict-trunk (" in result.err
        scene.run().check()
        kept = {path.name: path.read_text() for path in (scene.root / "out").iterdir() if path.name.startswith("twice")}
        assert sorted(kept.values()) == ["branch", "trunk"] and len(kept) == 2 and "twice" in kept, (number, kept)
        assert looked_into(scene.root)[1] == []
    assert told == 1


@pytest.mark.parametrize("words", [["fsck", "--restore"], ["fsck", "--delete"]], ids=lambda words: words[1])
@pytest.mark.parametrize("call, error", [("openat", "EMFILE"), ("statx", "EIO"), ("unlinkat", "EIO"), ("renameat2", "EIO"), ("mkdirat", "ENOSPC"), ("read", "ESTALE")])
def test_orphans(failing, area, words, call, error):
    """Of a directory that was removed natively."""
    count = failing(words, lambda union: shutil.rmtree(union.root / "out")).fail_each(area / "calls", call, error)
    assert count > 0 or (words[1], call) in [("--delete", "renameat2"), ("--delete", "mkdirat")]


@pytest.mark.parametrize("call", ["openat", "getdents64"])
def test_a_stray_mirror_that_cannot_be_looked_for(failing, area, call):
    """Nothing is exported: without its marker it would be an orphan once it is back."""
    scene = failing(EXPORT, stray)
    scene.make()
    before = looked_into(scene.root)
    assert scene.fail_each(area / "calls", call, "EIO") > 0
    assert looked_into(scene.root) == before


def give_all(union, user):
    """The file that wins the conflict does so still."""
    give(union.root, user)
    twice, = union.root.glob(".shunt/b/n1.1/*/*/twice")
    make_newer(twice, union.root / "out" / "twice")


def closed(union):
    (union.root / "out").chmod(0o555)
    (union.root / "plain").chmod(0o555)


@pytest.mark.parametrize("loser", ["trunk", "branch"])
def test_a_conflict_in_a_directory_that_lets_its_owner_write_nothing(shunt, user, area, loser):  # noqa: F811
    union = make(area / "root")
    mirror, = union.root.glob(".shunt/b/n1.1/out-*")
    for path in mirror / "0", mirror, union.root / "out":
        path.chmod(0o555)
    give_all(union, user)
    if loser == "branch":
        make_newer(union.root / "out" / "twice", mirror / "0" / "twice")
    as_user(user, shunt, area, ["export", union.root]).check()
    files, is_left = found(union.root)
    lost, = [name for name in files if "shunt-conflict" in name]
    other = {"trunk": "branch", "branch": "trunk"}[loser]
    assert files["out/twice"][1] == other and files[lost][1] == loser and files["out"] == (0o555, None) and not is_left, files


@pytest.mark.parametrize("call", ["fchmodat", "symlinkat"])
def test_a_mode_that_cannot_be_put_back(failing, shunt, user, area, call):  # noqa: F811
    """It is not said that all is done, and the next export puts it back."""
    def change(union):
        closed(union)
        give_all(union, user)
    scene = failing(EXPORT, change, become=lambda words, within: as_user(user, shunt, area, words, within))
    (area / "logs").mkdir()
    os.chown(area / "logs", user.pw_uid, user.pw_gid)
    assert scene.fail_each(area / "logs" / "calls", call, "EIO") > 0


@pytest.mark.parametrize("call", ["readlinkat", "getdents64"])
def test_what_a_killed_export_has_opened_cannot_be_read(failing, shunt, user, area, call):  # noqa: F811
    def change(union):
        closed(union)
        give_all(union, user)
        kill = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=renameat2:signal=KILL:when=2"]
        as_user(user, shunt, area, ["export", union.root], kill).check(-9)
        assert stat.S_IMODE((union.root / "out").stat().st_mode) == 0o755
    scene = failing(EXPORT, change, become=lambda words, within: as_user(user, shunt, area, words, within))
    (area / "logs").mkdir()
    os.chown(area / "logs", user.pw_uid, user.pw_gid)
    assert scene.fail_each(area / "logs" / "calls", call, "EIO") > 0
    scene.run().check()
    assert stat.S_IMODE((scene.root / "out").stat().st_mode) == 0o555


def moved_names(log):
    """Which openat and getdents64 of a live export are on what is below .shunt/b: (call, number)."""
    counts, descriptors = collections.Counter(), set()
    for line in log.read_text().splitlines():
        call, _, rest = line.partition("(")
        counts[call] += 1
        first = rest.partition(",")[0]
        is_below = "/.shunt/b" in line or first in descriptors
        if call == "openat":
            descriptors.discard(rest.rpartition("= ")[2])
            if is_below and "DIRECTORY" in line:
                descriptors.add(rest.rpartition("= ")[2])
        if is_below and call in ("openat", "getdents64"):
            yield call, counts[call]


def test_a_live_export_is_told_an_error(shunt, root, area, run_base):
    """It does not pass over what it could not read, and say that it is done."""
    settings, log = {"SHUNT_RUN_DIR": run_base, "SHUNT_NODE": "n1"}, area / "calls"
    words = [shunt.path, "export", "--live", "--json", root]
    traced = ["strace", "-qq", "-o", log, "-e", "trace=openat,getdents64,close"]
    shunt("start", "--root", root, "--placement", "branch", **settings).check()
    shunt("exec", "--root", root, "--", "sh", "-c", f"mkdir {root}/out; echo 1 >{root}/out/1; echo 2 >{root}/out/2", **settings).check()
    whole = json.loads(run([*traced, *words], **settings).check())
    assert (whole["in_use"], whole["complete"]) == (1, False), "its names have just come"
    looks = list(moved_names(log))
    assert len(looks) >= 5
    for call, number in looks:
        result = run([*traced, "-e", f"inject={call}:error=EIO:when={number}", *words], **settings)
        assert "(INJECTED)" in log.read_text()
        assert result.status == 1 and REMEDY.search(result.err) and not json.loads(result.out)["complete"], (call, number, result)
    shunt("stop", "--export", "--root", root, **settings).check()
    assert {path.name: path.read_text() for path in (root / "out").iterdir()} == {"1": "1\n", "2": "2\n"}
