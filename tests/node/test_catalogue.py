# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The catalogue: listings are taken from it where it proves a directory, and only there. Each kind of native change, between
sessions and within one, is seen in the next listing."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import IS_SUPERUSER, PYTHON, REPOSITORY, kill_daemon, run, wait_until

NAMES = 300  # more than what is read before a catalogue is asked
MAKE = "import os, sys\nfor i in range(int(sys.argv[2])): open(f'{sys.argv[1]}/n{i}', 'x').close()"
LIST = "import json, os, sys\nprint(json.dumps(sorted(os.listdir(sys.argv[1]))))"


class Root:
    """A root whose directory `d` has NAMES names, in this node's branch or in the trunk."""

    def __init__(self, shunt, path, placement, prefix=()):
        self.shunt, self.path, self.placement, self.prefix = shunt, path, placement, list(prefix)

    def tool(self, *words, **options):
        return run([*self.prefix, self.shunt.path, *words], **{"SHUNT_NODE": "n1", "SHUNT_CATALOGUE_QUIET": 1, **options})

    def start(self, **options):
        self.tool("start", "--root", self.path, "--placement", self.placement, "--leaf-full", "100000", **options).check()

    def stop(self):
        return self.tool("stop", "--root", self.path)

    def python(self, script, *words):
        return self.tool("exec", "--root", self.path, "--", PYTHON, "-c", script, *words).check()

    def names(self):
        """As a process of the session lists them."""
        return json.loads(self.python(LIST, self.path / "d"))

    def counters(self):
        return json.loads(self.tool("status", "--json", "--root", self.path).out)[0]["counters"]

    def fill(self):
        self.start()
        self.python("import os, sys; os.mkdir(sys.argv[1])", self.path / "d")
        self.python(MAKE, self.path / "d", NAMES)

    def seen(self, path):
        return path

    def physical(self):
        """The directory that has the names: d's leaf, or d itself."""
        leaves = sorted(self.seen(self.path).glob(".shunt/b/n1.*/d-*/0"))
        return leaves[0] if leaves else self.seen(self.path / "d")

    def on_disk(self):
        names = [name for place in (*self.seen(self.path).glob(".shunt/b/*/d-*/*"), self.seen(self.path / "d"))
                 for name in os.listdir(place)]
        return sorted(name for name in names if name != ".shunt-dir")


@pytest.fixture(params=["branch", "auto"])
def filled(request, shunt, root):
    """... after its first session."""
    made = Root(shunt, root, request.param)
    made.fill()
    # The trunk's names are in the catalogue of a branch only if the branch is kept, for which something is redirected.
    made.python("import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/x', 'x').close()", root / "e")
    made.stop().check()
    yield made
    made.stop()


def outside(directory):
    return next(path for path in directory.parents if path.name == "root").parent / "n1"


def exchange(one, other):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


def keeping_times(path, change):
    """As tar and touch restore them."""
    before = os.stat(path)
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def restore(path):
    """What was packed before two names changed is unpacked over it, with its times."""
    subprocess.run(["tar", "-C", path.parent, "-cf", path.parent / "kept.tar", path.name], check=True)
    (path / "n1").unlink()
    (path / "new").touch()
    subprocess.run(["tar", "-C", path.parent, "-xf", path.parent / "kept.tar"], check=True)
    (path.parent / "kept.tar").unlink()


CHANGES = {
    "nothing": lambda at: None,
    "create": lambda at: (at / "new").touch(),
    "unlink": lambda at: (at / "n1").unlink(),
    "rename within": lambda at: (at / "n1").rename(at / "new"),
    "rename over": lambda at: (at / "n1").rename(at / "n2"),
    "rename away": lambda at: (at / "n1").rename(outside(at)),
    "exchange": lambda at: exchange(at / "n1", at / "n2"),
    "unlink and create": lambda at: ((at / "n1").unlink(), (at / "n1").mkdir()),
    "chmod": lambda at: at.chmod(0o711),
    "create, times restored": lambda at: keeping_times(at, (at / "new").touch),
    "unlink, times restored": lambda at: keeping_times(at, (at / "n1").unlink),
    "tar": restore,
}


def is_taken(root):
    return root.counters()["catalogue_taken"]


@pytest.mark.parametrize("change", CHANGES)
def test_native_changes_between_sessions_are_seen(filled, change):
    CHANGES[change](filled.physical())
    expected = filled.on_disk()
    filled.start()
    assert filled.names() == expected
    assert len(expected) == NAMES + {"create": 1, "unlink": -1, "rename over": -1, "rename away": -1, "create, times restored": 1,
                                     "unlink, times restored": -1, "tar": 1}.get(change, 0)
    if filled.placement == "branch":
        assert (is_taken(filled) > 0) == (change == "nothing")


@pytest.mark.parametrize("change", CHANGES)
def test_native_changes_before_a_daemon_that_crashed_starts_again_are_seen(shunt, root, change):
    """The live catalogue is still there then."""
    filled = Root(shunt, root, "branch")
    filled.fill()
    wait_until(lambda: filled.counters()["catalogue_names"] >= NAMES and filled.counters()["catalogue_behind_seconds"] == 0)
    CHANGES[change](filled.physical())
    expected = filled.on_disk()
    kill_daemon(json.loads(filled.tool("status", "--json", "--root", root).out)[0]["pid"])
    filled.start()
    assert filled.names() == expected
    assert (is_taken(filled) > 0) == (change == "nothing")
    filled.stop().check()


def test_a_restored_copy_of_a_root(filled, area):
    """Its directories are other ones, whatever their times are."""
    subprocess.run(["cp", "-a", filled.path, area / "copy"], check=True)
    shutil.rmtree(filled.path)
    (area / "copy").rename(filled.path)
    (filled.physical() / "n1").unlink()
    expected = filled.on_disk()
    filled.start()
    assert filled.names() == expected and len(expected) == NAMES - 1
    assert is_taken(filled) == 0


def copy_of(root):
    [copy] = root.path.glob(".shunt/b/n1.*/catalogue")
    return copy


def test_a_session_leaves_a_copy_that_only_its_branch_has(shunt, root):
    filled = Root(shunt, root, "branch")
    filled.fill()
    run_dir = pathlib.Path(json.loads(filled.tool("status", "--json", "--root", root).out)[0]["run_dir"])
    assert (run_dir / "catalogue").exists()
    filled.stop().check()
    assert not run_dir.exists()
    assert [path.name for path in copy_of(filled).parent.glob("catalogue*")] == ["catalogue"]
    assert copy_of(filled).stat().st_mode & 0o777 == 0o644
    filled.tool("export", root).check()
    assert not (root / ".shunt").exists() and len(list((root / "d").iterdir())) == NAMES


def test_names_of_a_private_directory_are_its_owners(shunt, root):
    """Others may not list it, so they may not read the copy either."""
    filled = Root(shunt, root, "branch")
    filled.fill()
    filled.python("import os, sys; os.chmod(sys.argv[1], 0o711)", root / "d")
    filled.stop().check()
    assert copy_of(filled).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("where", [0, 5000, 0.5, -1, -50])
def test_a_damaged_copy_is_as_if_there_were_none(shunt, root, where):
    filled = Root(shunt, root, "branch")
    filled.fill()
    filled.stop().check()
    data = bytearray(copy_of(filled).read_bytes())
    at = int(where * len(data)) if isinstance(where, float) else where
    data[at] ^= 0x40
    copy_of(filled).write_bytes(data)
    expected = filled.on_disk()
    filled.start()
    assert filled.names() == expected and is_taken(filled) == 0
    filled.stop().check()


def test_tools_take_names_from_copies(shunt, root):
    """`find` opens the directory and its leaf, but reads neither."""
    filled = Root(shunt, root, "branch")
    filled.fill()
    filled.stop().check()
    expected = filled.on_disk()
    trace = root.parent / "trace"
    run(["strace", "-f", "-y", "-e", "trace=getdents64", "-o", trace, shunt.path, "find", root]).check()
    assert "/d-" in str(filled.physical()) and not [line for line in trace.read_text().splitlines()
                                                    if f"<{filled.physical()}>" in line]
    found = filled.tool("find", root / "d", "-type", "f").check().splitlines()
    assert sorted(os.path.basename(path) for path in found) == expected
    (filled.physical() / "new").touch()
    assert f"{root / 'd' / 'new'}" in filled.tool("find", root / "d", "-type", "f").check().splitlines()


def test_copies_of_more_branches_than_descriptors(shunt, root):
    """What the copies leave is enough for all else: for the threads that list directories, and for a way down."""
    filled = Root(shunt, root, "branch", ["prlimit", "--nofile=128:128"])
    filled.fill()
    filled.python("import os, sys\nfor i in range(100):\n os.makedirs(f'{sys.argv[1]}/all/d{i}/a/b/c')\n"
                  " open(f'{sys.argv[1]}/all/d{i}/a/b/c/n', 'x').close()", root)
    filled.stop().check()
    expected = sorted(run([shunt.path, "names", root]).check().splitlines())
    assert len(expected) == NAMES + 502
    for number in range(150):
        branch = root / ".shunt" / "b" / f"m{number}.1"
        branch.mkdir()
        shutil.copy2(copy_of(filled), branch)
    assert sorted(filled.tool("names", root).check().splitlines()) == expected
    assert len(filled.tool("find", root).check().splitlines()) == len(expected) + 1
    assert len(filled.tool("ls", "-R", root).check().splitlines()) > len(expected)
    assert filled.tool("tree", root).check().endswith(f"402 directories, {NAMES + 100} files, {NAMES + 100} of them redirected\n")
    filled.start()
    assert filled.names() == filled.on_disk() and is_taken(filled) > 0
    daemon = json.loads(filled.tool("status", "--json", "--root", root).out)[0]["pid"]
    assert len(os.listdir(f"/proc/{daemon}/fd")) < 100
    filled.stop().check()


@pytest.mark.parametrize("has_server", [False, True])
def test_directories_are_read_ahead_where_a_server_is_asked(shunt, root, mounts, odd_file_system, has_server):
    """Only those in which many are looked up next: the one of the directories, and the branch, once some mirrors were looked up. Not
    where the node itself reads the disk."""
    prefix = ()
    if has_server:
        odd_file_system("fine")
        prefix = mounts.prefix
    filled = Root(shunt, root, "branch", prefix)
    filled.start()
    filled.python("import os, sys\nfor i in range(40):\n os.makedirs(f'{sys.argv[1]}/all/d{i}')\n"
                  " open(f'{sys.argv[1]}/all/d{i}/n', 'x').close()", root)
    filled.stop().check()
    trace = root.parent / "trace"
    found = run([*prefix, "strace", "-f", "-y", "-e", "trace=getdents64", "-o", trace, shunt.path, "find", root / "all", "-type", "f"])
    assert len(found.check().splitlines()) == 40
    read = {line.split("<")[1].split(">")[0] for line in trace.read_text().splitlines() if "getdents64(" in line}
    ahead = {f"{root}/all", f"{root}/.shunt/b/n1.1"}
    assert {path for path in read if path.startswith((f"{root}/all", f"{root}/.shunt/b/"))} == (ahead if has_server else set())


def test_what_is_gone_is_dropped(shunt, root):
    filled = Root(shunt, root, "branch")
    filled.fill()
    wait_until(lambda: filled.counters()["catalogue_names"] >= NAMES)
    filled.python("import shutil, sys; shutil.rmtree(sys.argv[1])", root / "d")
    wait_until(lambda: filled.counters()["catalogue_names"] < NAMES)
    filled.stop().check()


def test_the_manuals_python_reads_a_copy(shunt, root):
    filled = Root(shunt, root, "branch")
    filled.fill()
    filled.stop().check()
    page = (REPOSITORY / "lib" / "catalogue" / "shunt-catalogue.5").read_text()
    script = page.split(".nf\nimport lmdb")[1].split(".fi\n")[0]
    printed = run([PYTHON, "-c", "import lmdb" + script, copy_of(filled)]).check()
    inode = filled.physical().stat().st_ino
    lines = [line.split(" ", 3) for line in printed.splitlines()]
    assert sorted(name for directory, _, _, name in lines if int(directory) == inode) == filled.on_disk()
    assert {(os.stat(filled.physical() / name).st_ino, "8") for name in filled.on_disk()} == \
        {(int(ino), kind) for directory, ino, kind, _ in lines if int(directory) == inode}
    assert "names\n" in run(["mdb_stat", "-n", "-a", copy_of(filled)]).check()
    assert "n17" in run(["mdb_dump", "-n", "-p", "-s", "names", copy_of(filled)]).check()


def test_what_lmdbs_tools_leave_beside_a_copy_is_in_nobodys_way(shunt, root):
    filled = Root(shunt, root, "branch")
    filled.fill()
    filled.stop().check()
    run(["mdb_stat", "-n", "-a", copy_of(filled)]).check()
    assert copy_of(filled).with_name("catalogue-lock").exists()
    filled.tool("fsck", root).check()
    filled.start()
    assert len(filled.names()) == NAMES
    filled.stop().check()
    filled.tool("export", root).check()
    assert not (root / ".shunt").exists() and len(os.listdir(root / "d")) == NAMES


# Times that prove nothing


@pytest.mark.parametrize("kind", ["coarse", "fine"])
def test_a_clock_that_is_set_back(shunt, root, mounts, odd_file_system, kind):
    """To the very second of the last change: with whole seconds the same time comes again."""
    odd_file_system(kind)
    filled = Root(shunt, root, "branch", mounts.prefix)
    filled.seen = lambda path: mounts.seen(path)
    filled.fill()
    filled.stop().check()
    physical = filled.physical()
    before = os.stat(physical).st_mtime_ns
    pathlib.Path(f"{mounts.seen(root)}/.clock-{before // 10**9}").touch()  # from now on it is that second again
    (physical / "new").touch()
    assert (os.stat(physical).st_mtime_ns == before) == (kind == "coarse")
    filled.start()
    assert "new" in filled.names() and len(filled.names()) == NAMES + 1
    filled.stop().check()


def test_a_disk_that_is_nine_tenths_full_takes_a_catalogue(shunt, root, mounts, area):
    """The quarter that is left to others is one of memory."""
    if not IS_SUPERUSER:
        pytest.skip("loop devices are root's")
    image, disk = area / "image", area / "disk"
    disk.mkdir()
    run(["truncate", "-s", "300M", image]).check()
    run(["mkfs.ext4", "-q", "-m", "0", image]).check()
    mounts("mount", "-o", "loop", image, disk).check()
    left = int(mounts("stat", "-f", "-c", "%a", disk).check()) * int(mounts("stat", "-f", "-c", "%S", disk).check()) >> 20
    mounts("fallocate", "-l", f"{left - 30}M", disk / "filler").check()
    filled = Root(shunt, root, "branch", mounts.prefix)
    filled.start(SHUNT_CATALOGUE_DIR=disk)
    filled.python("import os, sys; os.mkdir(sys.argv[1])", root / "d")
    filled.python(MAKE, root / "d", NAMES)
    filled.stop().check()
    assert list(filled.path.glob(".shunt/b/*/catalogue"))


def test_a_full_file_system_stops_the_catalogue_alone(shunt, root, mounts, area):
    """A quarter of it is left to all others."""
    (area / "small").mkdir()
    mounts("mount", "-t", "tmpfs", "-o", "size=48m", "none", area / "small").check()
    mounts("dd", "if=/dev/zero", f"of={area}/small/filler", "bs=1M", "count=38").check()
    words = dict(SHUNT_CATALOGUE_DIR=area / "small")
    filled = Root(shunt, root, "branch", mounts.prefix)
    filled.start(**words)
    filled.python("import os, sys; os.mkdir(sys.argv[1])", root / "d")
    filled.python(MAKE, root / "d", NAMES)

    def status():
        return json.loads(filled.tool("status", "--json", "--root", root).out)[0]

    wait_until(lambda: status()["catalogue"]["error"] is not None)
    assert status()["catalogue"] == {"path": str(next(mounts.seen(area / "small").glob("shunt-*/*/catalogue"))).split("/root", 1)[1],
                                     "error": "No space left on device"}
    filled.python("import sys; open(sys.argv[1], 'x').close()", root / "d" / "more")
    assert len(filled.names()) == NAMES + 1
    filled.stop().check()
    assert not list(filled.path.glob(".shunt/b/*/catalogue*"))
