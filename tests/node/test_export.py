# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Export that is stopped at every step, and export across file systems, mounts and project quotas."""

import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import HERE, PYTHON, assert_plain, redirected_files, run
from daemons import wait_until
from immutable import immutable
from union_on_disk import Union

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, owners and capabilities are root's")

# All that changes anything: between two of these calls nothing happens that could be cut short.
CHANGES = ("openat write pwrite64 copy_file_range ftruncate mkdirat linkat unlinkat renameat2 fchmod fchmodat fchownat "
           "utimensat fsetxattr fsync fdatasync syncfs").split()
WHEN = 1_600_000_000 * 10**9 + 7


def make(root):
    """Two redirected directories, files of many kinds in two branches."""
    union = Union(root)
    for number, directory in enumerate(("out", "out/sub"), 1):
        mirror = union.mark(directory, number)
        union.put("n1.1", mirror, "a", "words")
        if number == 2:
            union.put("n1.1", mirror, "b", "", leaf=2)
        union.put("n2.3", mirror, "c", "x" * 70000)
        (root / directory / "trunk").write_text("born here")
    special = union.leaf("n2.3", mirror) / "special"
    with open(special, "wb") as file:
        file.seek(3 << 20)
        file.write(b"behind a hole")
        file.truncate(8 << 20)
    os.chown(special, 12, 34)
    run(["setfacl", "-m", "u:56:rw", special]).check()
    special.chmod(0o4755)
    os.setxattr(special, "user.mark", b"mine")
    os.utime(special, ns=(WHEN, WHEN + 1))
    return union


def details(root):
    """What an export must not change, of every file below a plain directory."""
    found = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        st = path.stat()
        attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        found[str(path.relative_to(root))] = (path.read_bytes(), st.st_mode, st.st_uid, st.st_gid, st.st_nlink,
                                              st.st_mtime_ns, attributes)
    return found


@pytest.fixture
def private():
    """A mount name space of this test's own: a prefix to enter it by."""
    keeper = subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
    keeper.stdout.readline()
    yield ["nsenter", "--target", str(keeper.pid), "--mount"]
    keeper.kill()
    keeper.wait()


class Scene:
    """A root to be exported again and again, each time as it was at first."""

    def __init__(self, shunt, area, prefix, options, moves="renameat2", within=()):
        self.shunt, self.root, self.prefix, self.options = shunt, area / "root", prefix, options
        self.moves = moves  # the call that gives a file its place
        self.within = within  # what runs the export
        self.expected = self.files()

    def make(self):
        if self.root.exists():
            self.umount()
            shutil.rmtree(self.root)
        make(self.root)
        if self.prefix:  # its files are on another mount than their branches then
            run([*self.prefix, "mount", "--bind", self.root / "out", self.root / "out"]).check()

    def umount(self):
        if self.prefix:
            run([*self.prefix, "umount", self.root / "out"]).check()

    def files(self):
        """What the whole root holds."""
        self.make()
        found = {}
        for path, what in details(self.root).items():
            name = re.sub(r"^\.shunt/b/[^/]*/out-[0-9a-f]*/\d+/", "out/", path)
            name = re.sub(r"^\.shunt/b/[^/]*/sub-[0-9a-f]*/\d+/", "out/sub/", name)
            if not name.startswith(".shunt") and not name.endswith(".shunt-dir"):
                found[name] = (*what[:5], None if "trunk" in name or "special" not in name else what[5], what[6])
        return found

    def export(self, *inject):
        traced = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={','.join(CHANGES)}", *inject] if inject else []
        return run([*self.prefix, *self.within, *traced, self.shunt.path, "export", *self.options, self.root])

    def listed(self):
        if (self.root / ".shunt").exists():
            return self.shunt("ls", "-1", self.root / "out" / "sub").check().split()
        return sorted(os.listdir(self.root / "out" / "sub"))

    def assert_exported(self):
        assert_plain(self.root)
        found = {name: (*what[:5], self.expected[name][5] and what[5], what[6])
                 for name, what in details(self.root).items() if name in self.expected}
        assert found == self.expected
        assert details(self.root).keys() == self.expected.keys()


WITHOUT_NOREPLACE = [PYTHON, HERE / "without_noreplace.py"]


@pytest.fixture(params=["renamed", "looked at", "linked", "copied"])
def scene(request, shunt, area):
    """Four ways to export: by renames; by a look and a rename, or by links and removals, where no rename is known that replaces
    nothing; and, where a bind mount over the directory forbids all these, by copies."""
    if request.param == "renamed":
        yield Scene(shunt, area, [], [])
    elif request.param == "looked at":
        yield Scene(shunt, area, [], [], within=WITHOUT_NOREPLACE)
    elif request.param == "linked":
        yield Scene(shunt, area, [], ["--careful"], "linkat", within=WITHOUT_NOREPLACE)
    else:
        prefix = request.getfixturevalue("private")
        scene = Scene(shunt, area, prefix, ["--copy"], "linkat")
        yield scene
        scene.umount()


def stop_at_each(scene, call, number, stride):
    """At the first, the next ... of that call; strace counts each by itself. How often it was stopped."""
    for stopped, step in enumerate(itertools.count(1, stride)):
        scene.make()
        result = scene.export("-e", f"inject={call}:signal={number.value}:when={step}")
        if result.status == 0:
            scene.assert_exported()
            return stopped
        assert result.status in (-number, 128 + number), result
        # What a reader sees is whole at every point.
        assert scene.listed() == ["a", "b", "c", "special", "trunk"], (call, step)
        again = scene.export()
        again.check()
        assert "conflict" not in again.out, (call, step, again.out)
        scene.assert_exported()


@pytest.mark.unsanitized
@pytest.mark.parametrize("number, stride", [(signal.SIGKILL, 1), (signal.SIGINT, 3)])  # files are of several steps
def test_export_is_stopped_at_every_step(scene, number, stride):
    """Killed before, or interrupted within, the first, the second, the third ... call of each kind that changes anything, and
    run again: nothing is lost, replaced or there twice."""
    stopped = {call: stop_at_each(scene, call, number, stride) for call in CHANGES}
    print(f"stopped at {stopped}")
    assert sum(stopped.values()) > 30 and stopped[scene.moves] >= 6 // stride


@pytest.mark.unsanitized
def test_a_file_that_cannot_be_taken_out_of_its_leaf_stays_in_both_places(shunt, area):
    """Where files move by links and removals. The first removal is of the export's own claim on the root."""
    scene = Scene(shunt, area, [], ["--careful"], within=WITHOUT_NOREPLACE)
    scene.make()
    result = scene.export("-e", "inject=unlinkat:error=EIO:when=2+")
    result.check(1)
    for name in ("out/a", "out/c", "out/sub/a", "out/sub/b", "out/sub/c", "out/sub/special"):
        directory, _, file = name.rpartition("/")
        label = directory.rpartition("/")[2]
        assert re.search(rf"/{label}-[0-9a-f]+/\d+/{file}: input/output error", result.err), (name, result.err)
        assert (scene.root / name).stat().st_nlink == 2
    assert "is a plain directory" not in result.out
    assert scene.listed() == ["a", "b", "c", "special", "trunk"]
    scene.export().check()
    scene.assert_exported()


def test_without_the_option_nothing_is_copied(shunt, area, private):
    scene = Scene(shunt, area, private, [])
    before = details(scene.root)
    result = scene.export()
    result.check(1)
    assert result.err.count("\n") == 1 and "export --copy" in result.err and str(scene.root) in result.err
    left = details(scene.root)
    assert {name: what for name, what in left.items() if "/session/" not in name} == before
    scene.umount()
    scene.export().check()
    scene.prefix = []
    scene.assert_exported()


def test_a_file_with_two_links_is_not_copied(shunt, area, private):
    """Neither name can go on being the other's; all others are copied."""
    scene = Scene(shunt, area, private, ["--copy"])
    leaf = next(scene.root.glob(".shunt/b/n1.1/out-*/0"))
    os.link(leaf / "a", leaf / "same")
    result = scene.export()
    result.check(1)
    assert result.err.count("hard links") == 2 and (leaf / "a").stat().st_nlink == 2
    assert scene.shunt("ls", "-1", scene.root / "out").check() == "a\nc\nsame\nsub\ntrunk\n"
    assert (scene.root / "out" / "c").stat().st_nlink == 1
    os.unlink(leaf / "same")
    scene.export().check()
    scene.assert_exported()
    scene.umount()


def make_one(root):
    union = Union(root)
    union.put("n1.1", union.mark("out", 1), "a", "words")


def stopped_when_listed(shunt, root):
    """An export that stands still when it has listed a directory, before it renames the first file: its tracer, and it."""
    traced = ["strace", "-qq", "-e", "trace=getdents64,renameat2"]
    run([*traced, "-o", root.parent / "calls", shunt.path, "export", root]).check()
    number = (root.parent / "calls").read_text().split("renameat2(")[0].count("getdents64(")
    shutil.rmtree(root)
    make_one(root)
    tracer = subprocess.Popen([*traced, "-o", root.parent / "calls", "-e", f"inject=getdents64:signal=SIGSTOP:when={number}", shunt.path,
                               "export", root], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "stopped by SIGSTOP" in (root.parent / "calls").read_text())
    return tracer, int(pathlib.Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text())


@pytest.mark.unsanitized
@pytest.mark.parametrize("part", [4, 3, 2])
def test_a_part_of_a_branch_that_is_replaced_by_a_link_meanwhile(shunt, area, part):
    """By the owner of the root, while the superuser exports: nothing of another place comes to it."""
    root, elsewhere = area / "root", area / "elsewhere"
    make_one(root)
    tracer, export = stopped_when_listed(shunt, root)
    leaf = next(root.glob(".shunt/b/n1.1/out-*/0"))
    replaced = pathlib.Path(*leaf.parts[:len(root.parts) + part + 1])
    secret = elsewhere / leaf.relative_to(replaced) / "a"
    secret.parent.mkdir(parents=True)
    secret.write_text("secret")
    replaced.rename(area / "aside")
    replaced.symlink_to(elsewhere)
    os.kill(export, signal.SIGCONT)
    tracer.communicate(timeout=60)
    assert tracer.returncode == 1 and secret.read_text() == "secret"
    assert not (root / "out" / "a").exists()
    replaced.unlink()
    (area / "aside").rename(replaced)
    shunt("export", root).check()
    assert (root / "out" / "a").read_text() == "words"


@pytest.mark.unsanitized
@pytest.mark.parametrize("again", [False, True])
def test_a_directory_that_is_removed_meanwhile(shunt, area, again):
    """Natively, and perhaps made again: its files are orphans, which the export says at once, and restoring helps."""
    root = area / "root"
    make_one(root)
    tracer, export = stopped_when_listed(shunt, root)
    shutil.rmtree(root / "out")
    if again:
        (root / "out").mkdir()
    os.kill(export, signal.SIGCONT)
    _, err = tracer.communicate(timeout=60)
    mirror = next(root.glob(".shunt/b/n1.1/out-*"))
    assert tracer.returncode == 1 and err.startswith(f"shunt: {mirror}: 1 file of a directory that is gone (run 'shunt fsck --restore "), err
    shunt("fsck", "--restore", root).check(1)
    shunt("export", root).check()
    assert (root / "shunt-restored" / mirror.name / "a").read_text() == "words"
    assert_plain(root)


@pytest.mark.unsanitized
def test_an_export_whose_claim_runs_out(shunt, area):
    """It stands still, and cannot say then that it lives. No signal came, so none is told."""
    root = area / "root"
    make_one(root)
    tracer, export = stopped_when_listed(shunt, root)
    (root / ".shunt" / "session").rename(area / "session")
    over = time.clock_gettime(time.CLOCK_BOOTTIME) + 16  # its last heartbeat was before
    wait_until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > over)
    os.kill(export, signal.SIGCONT)
    _, err = tracer.communicate(timeout=60)
    assert tracer.returncode == 1 and err.startswith(f"shunt: {root}: the claim on it ran out, since "), (tracer.returncode, err)
    (area / "session").rename(root / ".shunt" / "session")
    shunt("export", root).check()
    assert_plain(root)
    assert (root / "out" / "a").read_text() == "words"


@pytest.mark.unsanitized
@pytest.mark.parametrize("words", [[], ["--all"], ["--export"]])
def test_stop_leaves_an_export_alone(shunt, area, words):
    """It ends daemons; what holds the root is none, and is not asked to end."""
    root = area / "root"
    make_one(root)
    tracer, export = stopped_when_listed(shunt, root)
    stop = shunt("stop", "--root", root, *words)
    again = shunt("export", root)
    os.kill(export, signal.SIGCONT)
    _, err = tracer.communicate(timeout=60)
    assert (tracer.returncode, err) == (0, "")
    assert stop.check() == "" and stop.err.count("\n") == (words == ["--export"])
    assert again.status == 1 and re.search(r"\(node export, process \d+\).* \(interrupt it, or wait for its end\)$", again.err.strip())
    assert_plain(root)
    assert (root / "out" / "a").read_text() == "words"


@pytest.fixture
def small(area):
    """A tmpfs of 4 MB, where this process sees it too."""
    place = area / "small"
    place.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", place]).check()
    yield place
    run(["umount", "-R", "-l", place])


def test_the_space_runs_out_under_a_copy(shunt, area, small):
    """A leaf on another file system, and too little room where its files belong."""
    union = Union(small / "root")
    leaf = union.leaf("n1.1", union.mark("out", 1))
    run(["mount", "-t", "tmpfs", "-o", "size=40m", "none", leaf]).check()
    (leaf / "a").write_bytes(b"a" * (1 << 20))
    (leaf / "b").write_bytes(b"b" * (8 << 20))
    result = shunt("export", union.root)
    result.check(1)
    assert "export --copy" in result.err and sorted(os.listdir(leaf)) == ["a", "b"]
    result = shunt("export", "--copy", union.root)
    result.check(1)
    assert "no space left" in result.err and result.err.count("\n") == 1, result.err
    assert sorted(os.listdir(union.root / "out")) == [".shunt-dir", "a"] and os.listdir(leaf) == ["b"]
    run(["mount", "-o", "remount,size=40m", small]).check()
    result = shunt("export", "--copy", union.root)
    assert "busy" in result.err, "a leaf that is a mount cannot go"
    run(["umount", leaf]).check()
    shunt("export", union.root).check()
    assert_plain(union.root)
    assert {path.name: path.read_bytes()[:1] * path.stat().st_size for path in (union.root / "out").iterdir()} == {
        "a": b"a" * (1 << 20), "b": b"b" * (8 << 20)}


@pytest.fixture
def projects(area):
    """A file system where directories may belong to projects."""
    image, place = area / "image", area / "xfs"
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    run(["mkfs.xfs", "-q", image]).check()
    place.mkdir()
    run(["mount", "-o", "loop", image, place]).check()
    yield place
    run(["umount", place]).check()


def test_export_into_another_project(shunt, projects):
    """A directory became a part of a project (of whatever quota) after its files had been made."""
    union = make(projects / "root")
    run(["chattr", "+P", "-p", "77", union.root / "out"]).check()
    result = shunt("export", union.root)
    result.check(1)
    assert "export --copy" in result.err and not (union.root / "out" / "a").exists()
    assert "of them copied" in shunt("export", "--copy", union.root).check()
    assert_plain(union.root)
    assert run(["lsattr", "-p", union.root / "out" / "a"]).check().split()[0] == "77"
    assert (union.root / "out" / "sub" / "special").stat().st_blocks < 1000, "the hole was filled"


def test_a_root_in_another_one_is_left_alone(shunt, area):
    """A session of the outer one, and its export at the end, take away nothing that the inner one needs."""
    outer, inner = area / "outer", area / "outer/project/inner"
    (inner / "out").mkdir(parents=True)
    make = "for i in 1 2 3; do echo $i >out/f$i; done"
    shunt.run(inner, ["sh", "-c", make], "branch", keep=True, cwd=inner).check()
    copied = area / "outer/copied"
    run(["cp", "-a", inner, copied]).check()  # is none: its stamp is another directory's
    ended = shunt.run(outer, ["sh", "-c", make.replace("out/", "")], "branch", cwd=outer)
    assert ended.status != 0 and "project/inner: a root inside another root" in ended.err and "copied" not in ended.err
    assert "project/inner: root: a root inside this root (run" in shunt("fsck", outer).out
    assert shunt("ls", inner / "out").check().split() == ["f1", "f2", "f3"]
    shunt("export", inner).check()
    assert_plain(inner)
    shutil.rmtree(copied / ".shunt")
    shunt("export", outer).check()
    assert_plain(outer)
    assert sorted(path.name for path in outer.iterdir()) == ["copied", "f1", "f2", "f3", "project"]


MAKES = """
import os, sys
directory, made = sys.argv[1], 0
names = sorted(os.listdir(directory), key=lambda name: hash(name))
print('ready', flush=True)
for name in sys.stdin.read().split():
    try:
        with open(f'{directory}/{name}', 'x') as file:
            file.write('native')
        print(name)
    except FileExistsError:
        pass
"""
MANY = int(os.environ.get("SHUNT_EXPORTED_FILES", "2000"))


@pytest.mark.parametrize("careful", [False, True])
def test_nothing_is_replaced_that_is_made_meanwhile(shunt, area, careful):
    """A program without shunt makes the very names that the export is about to use, from the last to the first: the one that comes
    first has it, and no contents are lost; what was made before the export lists the directory has won a conflict. The two meet at one
    name: that one may be made between the look and the rename, and only with --careful never is (tests/hooked/test_export.py). (SHUNT_EXPORTED_FILES=100000 for the whole of it.)"""
    union = Union(area / "root")
    mirror = union.mark("out", 1)
    names = [f"file.{i:06}" for i in range(MANY)]
    for name in names:
        union.put("n1.1", mirror, name, "redirected")
    native = subprocess.Popen([PYTHON, "-c", MAKES, union.root / "out"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert native.stdout.readline() == "ready\n"
    native.stdin.write("\n".join(reversed(names)))
    native.stdin.close()
    result = run([*WITHOUT_NOREPLACE, shunt.path, "export", *(["--careful"] if careful else []), union.root])
    made = set(native.stdout.read().split())
    native.wait()
    assert result.status == (1 if "appeared in the trunk" in result.err else 0)
    print(f"{len(made)} of {MANY} were made meanwhile")
    shunt("export", union.root).check()
    assert_plain(union.root)
    words = [path.read_text() for path in (union.root / "out").iterdir()]
    replaced = len(made) - words.count("native")
    assert words.count("redirected") == MANY and replaced in ([0] if careful else [0, 1]), (replaced, len(made))


@pytest.mark.parametrize("how", [["ls"], ["ls", "-l"]])
def test_who_reads_meanwhile_sees_all_names(shunt, area, how):
    """A file is in a branch or in the trunk at any moment; no reader comes too late to the one, and too early to the other."""
    union = Union(area / "root")
    mirror, count = union.mark("out", 1), 3000
    for i in range(count):
        (union.leaf("n1.1", mirror) / f"file.{i:04}").touch()
    export = subprocess.Popen([shunt.path, "export", union.root], stdout=subprocess.DEVNULL)
    while (listed := shunt(*how, union.root / "out")).status == 0:
        missing = {f"file.{i:04}" for i in range(count)} - {word.rpartition("/")[2] for word in listed.out.split()}
        assert not missing, f"{len(missing)} of {count} are missing"
    assert "in no root of shunt" in listed.err and export.wait() == 0


# At the end of `shunt stop --export`.


def stopped(shunt, root, *words, **settings):
    return shunt("stop", "--root", root, *words, "--export", **settings)


def test_stop_exports_if_asked(shunt, root):
    shunt("start", "--root", root, "--placement", "branch").check()
    shunt("exec", "--root", root, "--", "sh", "-c", f"mkdir {root}/d; echo data >{root}/d/f; echo more >{root}/d/g").check()
    assert redirected_files(root)
    assert stopped(shunt, root).check() == f"exported 2 files in 1 directory: {root} is a plain directory\n"
    assert_plain(root)
    assert (root / "d" / "f").read_text() == "data\n"
    for words in [], ["--all"]:
        result = stopped(shunt, root, *words)
        assert result.status == 1 and "nothing serves it" in result.err, result


def test_stop_exports_what_a_session_has_left(shunt, root):
    shunt("start", "--root", root, "--placement", "branch").check()
    shunt("exec", "--root", root, "--", "sh", "-c", f"mkdir {root}/d; echo data >{root}/d/f").check()
    shunt("stop", "--root", root).check()
    assert redirected_files(root)
    assert stopped(shunt, root).check().startswith("exported 1 file in 1 directory")
    assert_plain(root)


def test_stop_leaves_the_export_to_the_last_one(shunt, root):
    settings = {"SHUNT_FABRIC": "tcp:lo"}
    for node in "one", "two":
        shunt("start", "--root", root, "--placement", "branch", "--node", node, **settings).check()
        shunt("exec", "--root", root, "--node", node, "--", "sh", "-c", f"mkdir -p {root}/d; echo data >{root}/d/{node}", **settings).check()
    first = stopped(shunt, root, "--node", "one", **settings)
    assert first.check() == "" and "not exported yet, others of your jobs use it" in first.err
    assert len(redirected_files(root)) == 2
    last = stopped(shunt, root, "--node", "two", **settings)
    assert last.check().startswith("exported 2 files in 1 directory") and last.err == ""
    assert_plain(root)


def test_a_file_that_is_called_nearly_as_shunts_own_stays(shunt, root):
    """What it writes is called .shunt-dir, a dot and 16 hexadecimal digits until it is whole, and swept after a crash."""
    copy = root / "d" / ".shunt-dir.before-the-crash"
    copy.parent.mkdir()
    copy.write_text("a user's\n")
    listed = shunt.run(root, ["sh", "-c", f"echo data >{root}/d/f; ls -A {root}/d; cat {copy}"], keep=True).check()
    assert listed == f"{copy.name}\nf\na user's\n"
    assert shunt("fsck", root).check().endswith(": clean (2 directories)\n")
    shunt("export", root).check()
    assert os.listdir(root) == ["d"] and sorted(os.listdir(root / "d")) == [copy.name, "f"]
    assert copy.read_text() == "a user's\n"


@pytest.mark.parametrize("holds_marker", [False, True])
def test_a_directory_by_a_name_of_shunts_own(shunt, area, holds_marker):
    """A program without shunt can make one. It stays, and stops nothing; what it hides is no orphan."""
    root = area / "root"
    union = Union(root)
    for number, directory in enumerate(("a", "b/moved", "c"), 1):
        union.put("n1.1", union.mark(directory, number), "f", directory)
    kept = root / "a" / ".shunt-dir.0123456789abcdef"
    (root / "b" / "moved").rename(root / "b" / kept.name) if holds_marker else kept.mkdir()
    hidden = root / "b" / kept.name if holds_marker else kept
    (root / "a" / ".shunt-dir.00000000000000ab").write_text("cut short")
    left = shunt("fsck", "--restore", "--repair", root)
    assert f"{hidden.relative_to(root)}: unreadable: " in left.check(2) and not (root / "shunt-restored").exists(), left
    export = shunt("export", root)
    assert [(root / name / "f").read_text() for name in "ac"] == ["a", "c"] and hidden.is_dir(), export
    if holds_marker:
        assert export.status == 1 and f"as {hidden} may be (make" in export.err and "orphan" not in export.err, export
        hidden.rename(root / "b" / "moved")
        export = shunt("export", root)
        assert (root / "b" / "moved" / "f").read_text() == "b/moved"
    else:
        kept.rmdir()
    export.check()
    assert_plain(root)


@pytest.mark.parametrize("what", ["", "out/.shunt-dir", ".shunt", ".shunt/README", ".shunt/session", ".shunt/b", ".shunt/b/n1.1",
                                  ".shunt/b/n1.1/catalogue", ".shunt/b/n1.1/out-000000000001", ".shunt/b/n1.1/out-000000000001/0",
                                  ".shunt/b/n1.1/out-000000000001/1"])
def test_what_is_immutable_is_named(shunt, area, what):
    """Something of shunt's own, or the root: not the file that is to leave it, and not its owner, is in the way."""
    root = area / "root"
    make_one(root)
    (root / ".shunt" / "b" / "n1.1" / "catalogue").write_text("")
    next(root.glob(".shunt/b/n1.1/out-*")).joinpath("1").mkdir()
    with immutable(root / what):
        result = shunt("export", root)
    result.check(1)
    assert result.err == f"shunt: {root / what}: immutable or append-only (run 'chattr -i -a' on it, then run this again)\n"
    shunt("export", root).check()
    assert_plain(root)
    assert (root / "out" / "a").read_text() == "words"


def test_nothing_is_copied_into_an_append_only_directory(shunt, area, private):
    """Where what was made could not be taken back."""
    scene = Scene(shunt, area, private, ["--copy"])
    out = scene.root / "out"
    with immutable(out, "a"):
        result = scene.export()
    result.check(1)
    assert f"{out}: immutable or append-only" in result.err and result.err.count("\n") == 1
    assert sorted(os.listdir(out)) == [".shunt-dir", "sub", "trunk"]
    scene.export().check()
    scene.assert_exported()
    scene.umount()


def test_an_export_says_at_what_rate(shunt, root):
    shunt.run(root, ["sh", "-c", f"mkdir {root}/d; echo data >{root}/d/f"], keep=True).check()
    made = json.loads(shunt("export", "--json", root).check())
    assert made["files"] == 1 and made["files_per_second"] == pytest.approx(1 / made["seconds"], rel=1e-3)
