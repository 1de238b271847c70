# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A session ends by SIGKILL of all, its index is lost, and then programs without shunt work on what it has left: they
remove, move, copy and restore redirected directories, and the whole root. What a later session shows is then what was
there, each file once; what cannot be shown `shunt fsck` finds, and gets back."""

import json
import os
import shutil
import subprocess

import pytest

from conftest import assert_plain, redirected_files, run, wait_until
from test_failures import Session, session, started  # noqa: F401: fixtures

FILES = {"out/a": "1\n", "out/b": "2\n", "out/deep/c": "3\n", "other/a": "4\n"}
TRUNK = {"out/plain": "5\n"}  # made natively, before all


def killed(session):
    """The daemon, its supervisor and a process that makes files all the while; the index is gone with them."""
    out = session.root / "under-way"
    worker = session.popen("sh", "-c", f"mkdir {out}; i=0; while :; do i=$((i + 1)); echo $i >{out}/$i; done 2>/dev/null",
                           stderr=subprocess.DEVNULL)
    wait_until(lambda: list(session.root.glob(".shunt/b/*/under-way-*/*/3")))
    session.kill_daemon()
    worker.kill()
    worker.wait()
    shutil.rmtree(session.run_base)
    session.run_base.mkdir()


@pytest.fixture
def cold(session):
    """A root in which there was a session, and the files that were in it."""
    (session.root / "out" / "plain").write_text(TRUNK["out/plain"])
    session.start().check()
    script = "; ".join(f"mkdir -p $(dirname {path}); printf '{text[:-1]}\\n' >{path}" for path, text in FILES.items())
    session.exec("sh", "-ec", script, cwd=session.root).check()
    killed(session)
    assert len(redirected_files(session.root)) >= len(FILES)
    return session


def natively(session, script):
    run(["sh", "-euc", script], cwd=session.root).check()


def named(files, **moved):
    """The files, with the first component of some paths another one; without those whose is None."""
    found = {}
    for path, text in files.items():
        top, _, rest = path.partition("/")
        if moved.get(top, top) is not None:
            found[f"{moved.get(top, top)}/{rest}"] = text
    return found


ALL = {**FILES, **TRUNK}


def shown(session):
    """{path: content} of all files that a program sees in a new session; each file is there once. Not of the directory
    in which files were made when all was killed."""
    script = "find . -type f -printf '%P\\0%i\\0' -exec cat {} \\; -printf '\\0'"
    words = session.exec("sh", "-c", script, cwd=session.root).check().split("\0")[:-1]
    found = {path: (inode, text) for path, inode, text in zip(words[::3], words[1::3], words[2::3])}
    assert len({inode for inode, _ in found.values()}) == len(found), f"a file is shown twice: {found}"
    return {path: text for path, (_, text) in found.items() if not path.startswith("under-way/")}


def listed_cold(session):
    """The same without a daemon, but for the contents."""
    result = session.tool("find", session.root, "-type", "f", "-print0")
    paths = [os.path.relpath(path, session.root) for path in result.check().split("\0")[:-1]]
    assert len(paths) == len(set(paths)), paths
    return {path for path in paths if not path.startswith("under-way/")}


def use(session, directory):
    """Names come, go and are replaced in it, and no other directory is used."""
    script = "ls; echo 1 >1st; test -f 1st; mv 1st 2nd; echo 2 >1st; mv 2nd 1st; ln 1st 3rd; rm 1st 3rd; ! test -e 1st"
    session.exec("sh", "-euc", script, cwd=session.root / directory).check()


def use_first(session, *directories):
    """In a session of its own, in which no other is used."""
    session.start().check()
    for directory in directories:
        use(session, directory)
    session.stop().check()


def works(session, directory):
    """What was there before stays."""
    before = shown(session)
    use(session, directory)
    assert shown(session) == before


def shows(session, files, *directories):
    """What a cold look and a new session show; its directories work."""
    assert listed_cold(session) == set(files)
    session.start().check()
    assert shown(session) == files
    for directory in directories:
        works(session, directory)
    assert listed_cold(session) == set(files)


def fsck(session, *words, status=0):
    """The kinds of what it finds, each with its path."""
    found = json.loads(session.tool("fsck", "--json", *words, session.root).check(status))["findings"]
    return {(one["kind"], one["path"]) for one in found if not one["kind"].startswith("empty-mirror")}


def kinds(found):
    return {kind for kind, _ in found}


def is_left_plainly(session, files):
    """The end of all: a plain directory that holds them all."""
    session.stop().check()
    fsck(session)
    session.shunt("export", session.root).check()
    assert_plain(session.root)
    paths = [path for path in session.root.rglob("*") if path.is_file() and "under-way" not in path.parts]
    assert {str(path.relative_to(session.root)): path.read_text() for path in paths} == files


def is_kept(session, files, *directories):
    """A new session shows them all, and so does the plain directory that it leaves."""
    shows(session, files, *directories)
    is_left_plainly(session, files)


def test_nothing_else_happened(cold):
    is_kept(cold, ALL, "out", "out/deep", "other")


@pytest.mark.parametrize("script, moved", [("mv out moved", "moved"), ("mv out other/moved", "other/moved"),
                                           ("mv out moved; mkdir out", "moved")])
def test_a_directory_was_moved(cold, script, moved):
    natively(cold, script)
    expected = named(ALL, out=moved)
    fsck(cold)
    is_kept(cold, expected, moved, "other")


@pytest.mark.parametrize("script", ["rm -rf out", "rm -rf out; mkdir out"])
def test_a_directory_was_removed(cold, script):
    """It is gone, also if there is another one of its name; of its files none was removed."""
    natively(cold, script)
    result = cold.start()
    assert "2 files" not in result.check() and "3 files of a directory that is gone" in result.err
    cold.stop().check()
    expected = named(ALL, out=None)
    shows(cold, expected, "other", *(["out"] if "mkdir" in script else []))
    cold.stop().check()
    assert kinds(fsck(cold, status=2)) == kinds(fsck(cold, "--repair", status=2)) == {"orphan"}
    assert cold.shunt("export", cold.root).status == 1
    assert kinds(fsck(cold, "--restore", status=1)) == {"orphan"}
    restored = {str(path.relative_to(cold.root)): path.read_text() for path in (cold.root / "shunt-restored").rglob("*/*")}
    assert sorted(restored.values()) == ["1\n", "2\n", "3\n"]
    fsck(cold)
    is_kept(cold, {**expected, **restored})


def test_only_what_is_told_to_go_goes(cold):
    natively(cold, "rm -rf out")
    for word in ("--repair", "--restore", "--delete"):
        before = len(redirected_files(cold.root))
        fsck(cold, word, status=2 if word == "--repair" else 1)
        left = redirected_files(cold.root)
        assert len(left) == before - {"--repair": 0, "--restore": 3, "--delete": 1}[word]
        natively(cold, "rm -rf other" if word == "--restore" else ":")
    assert not [path for path in redirected_files(cold.root) if "/under-way-" not in path]
    fsck(cold)


COPIES = {"cp": "cp -a {0} {1}", "rsync": "rsync -a {0}/ {1}"}


@pytest.mark.parametrize("copy", COPIES)
def test_a_directory_was_copied(cold, copy):
    """A native copy is of what it saw: the files of the trunk. It is a directory of its own."""
    natively(cold, COPIES[copy].format("out", "copy"))
    expected = {**ALL, "copy/plain": TRUNK["out/plain"]}
    assert fsck(cold, status=1) == {("copied-marker", "copy"), ("copied-marker", "copy/deep")}
    is_kept(cold, expected, "copy", "out", "copy/deep", "out/deep")


@pytest.mark.parametrize("first", ["copy", "out"])
@pytest.mark.parametrize("copy", COPIES)
def test_the_copy_has_the_name_of_the_original(cold, copy, first):
    """... which was moved before; whichever is used first."""
    natively(cold, "mv out copy; " + COPIES[copy].format("copy", "out"))
    expected = {**named(ALL, out="copy"), "out/plain": TRUNK["out/plain"]}
    use_first(cold, first)
    is_kept(cold, expected, "copy", "out")


def test_fsck_removes_the_markers_of_copies(cold):
    natively(cold, "cp -a out copy")
    found = fsck(cold, status=1)
    assert fsck(cold, "--repair", status=1) == found and kinds(found) == {"copied-marker"}
    fsck(cold)
    shows(cold, {**ALL, "copy/plain": TRUNK["out/plain"]}, "copy", "out")


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_took_the_place_of_the_original(cold, copy):
    """A restore from a backup: its inode is another, and the redirected files are its own."""
    natively(cold, COPIES[copy].format("out", "copy") + "; rm -rf out; mv copy out")
    assert fsck(cold, status=1) == {("restored-marker", "out"), ("restored-marker", "out/deep")}
    is_kept(cold, ALL, "out", "out/deep")


@pytest.mark.parametrize("first", ["one", "two"])
def test_of_two_copies_one_has_what_the_original_had(cold, first):
    """Whichever is used first."""
    natively(cold, "cp -a out one; cp -a out two; rm -rf out")
    expected = {**named(ALL, out="one"), "two/plain": TRUNK["out/plain"]}
    assert listed_cold(cold) == set(expected)
    use_first(cold, f"{first}/deep", first)
    is_kept(cold, expected, "one", "two")


def test_fsck_gives_what_the_original_had_to_one_copy(cold):
    natively(cold, "cp -a out one; cp -a out two; rm -rf out")
    assert kinds(fsck(cold, "--repair", status=1)) == {"restored-marker", "copied-marker"}
    fsck(cold)
    shows(cold, {**named(ALL, out="one"), "two/plain": TRUNK["out/plain"]}, "one", "two")


@pytest.mark.parametrize("original", ["pinned", "goes"])
@pytest.mark.parametrize("copy", COPIES)
def test_the_whole_root_was_copied(cold, area, copy, original):
    """It is a root of its own, with files of its own; neither is in the way of the other."""
    natively(cold, COPIES[copy].format(cold.root, area / "copy"))
    if original == "goes":
        shutil.rmtree(cold.root)
    other = Session(cold.shunt, area / "copy", cold.run_base)
    try:
        shows(other, ALL, "out", "out/deep", "other")
        if original == "pinned":
            shows(cold, ALL, "out", "out/deep", "other")
            other.exec("rm", "-r", other.root / "out").check()
            assert shown(cold) == ALL
            is_left_plainly(cold, ALL)
            is_left_plainly(other, named(ALL, out=None))
    finally:
        other.stop()


def test_the_whole_root_was_moved(cold, area):
    os.rename(cold.root, area / "moved")
    cold.root.mkdir()  # the fixture stops what is there
    moved = Session(cold.shunt, area / "moved", cold.run_base)
    try:
        fsck(moved)
        is_kept(moved, ALL, "out", "other")
    finally:
        moved.stop()


def test_files_were_made_next_to(cold):
    """Of a name that is redirected, too. Files that hold something win, then the newer one; the other one has a name of its
    own, and is told."""
    natively(cold, "echo native >out/a; : >out/b; echo beside >out/new; echo native >other/x")
    expected = {**ALL, "out/a": "native\n", "out/a.shunt-conflict-n1": "1\n", "out/b.shunt-conflict-trunk": "",
                "out/new": "beside\n", "other/x": "native\n"}
    assert fsck(cold, status=1) == {("conflict", "out/a"), ("conflict", "out/b")}
    is_kept(cold, expected, "out", "other")


def test_fsck_renames_who_lost(cold):
    natively(cold, "echo native >out/a")
    assert fsck(cold, "--repair", status=1) == {("conflict", "out/a")}
    fsck(cold)
    assert {path.name for path in cold.root.glob(".shunt/b/*/out-*/*/*")} == {"a.shunt-conflict-n1", "b"}
    shows(cold, {**ALL, "out/a": "native\n", "out/a.shunt-conflict-n1": "1\n"}, "out")


@pytest.mark.parametrize("what", ["mkdir", "ln -s /nowhere", "mkfifo"])
def test_something_else_was_made_of_the_name_of_a_file(cold, what):
    natively(cold, f"{what} out/a")
    cold.start().check()
    listed = cold.names("out")
    assert listed == ["a", "a.shunt-conflict-n1", "b", "deep", "plain"]
    assert cold.exec("cat", cold.root / "out" / "a.shunt-conflict-n1").check() == "1\n"


LEFTOVERS = ["out/.shunt-dir.0123456789abcdef", "other/.shunt-dir.00000000000000ff", ".shunt/session/.epoch-0123456789abcdef",
             ".shunt/session/.probe-0123456789abcdef", ".shunt/b/n1.1/{out}/.new-12-9/", ".shunt/b/n7.3/", ".shunt/b/n1.1/{out}/7/"]


def test_leftovers_of_all_kinds(cold):
    """Of what was being written when all was killed: a marker or a copy, an epoch, a probe, leaves, a branch."""
    mirror, = (path.name for path in cold.root.glob(".shunt/b/n1.1/out-*"))
    for path in LEFTOVERS:
        left = cold.root / path.format(out=mirror)
        left.mkdir() if path.endswith("/") else left.write_text("half a li")
    assert kinds(fsck(cold, status=1)) == {"unfinished", "unfinished-leaf"}
    cold.start().check()
    use(cold, "out")
    assert not (cold.root / LEFTOVERS[0]).exists() and (cold.root / LEFTOVERS[1]).exists(), "it is settled on first use"
    cold.stop().check()
    assert kinds(fsck(cold, "--repair", status=1)) == {"unfinished", "unfinished-leaf"}
    fsck(cold)
    is_kept(cold, ALL, "out", "other")


# What is settled on first use is settled there alone: other directories, of which there may be millions, are not looked at.

ELSEWHERE = 20


@pytest.fixture
def wide(session):
    """A root with redirected directories that nobody uses afterwards."""
    (session.root / "out" / "plain").write_text(TRUNK["out/plain"])
    session.start().check()
    session.exec("sh", "-ec", f"echo 1 >out/a; mkdir elsewhere; for i in $(seq {ELSEWHERE}); do mkdir elsewhere/$i; "
                 "echo $i >elsewhere/$i/file; done", cwd=session.root).check()
    killed(session)
    return session


def looks(session, area, directory):
    """The calls of the daemon while this directory is used; each with the paths of its descriptors."""
    trace = area / "trace"
    words = ["strace", "-f", "-y", "-e", "trace=%file,%desc", "-o", trace, "-p", str(session.daemon())]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert "attached" in tracer.stderr.readline()
    use(session, directory)
    tracer.terminate()
    tracer.communicate()
    return trace.read_text().splitlines()


@pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced
@pytest.mark.parametrize("script, used", [
    (":", "out"), ("rm -rf out; mkdir out", "out"), ("mv out moved", "moved"), ("cp -a out copy", "copy"), ("cp -a out copy", "out"),
    ("rsync -a out/ copy", "copy"), ("echo native >out/a", "out"), ("mv out moved; rsync -a moved/ copy", "moved"),
    ("rm .shunt/session/*", "out")])
def test_no_other_directory_is_looked_at(wide, area, script, used):
    natively(wide, script)
    wide.start().check()
    calls = looks(wide, area, used)
    assert [call for call in calls if str(wide.root / used) in call], "nothing was traced"
    assert [call for call in calls if "elsewhere" in call] == []


@pytest.mark.unsanitized
@pytest.mark.parametrize("copy", COPIES)
def test_no_other_directory_of_a_copied_root_is_looked_at(wide, area, copy):
    natively(wide, COPIES[copy].format(wide.root, area / "copy"))
    other = Session(wide.shunt, area / "copy", wide.run_base)
    other.start().check()
    try:
        calls = looks(other, area, "out")
    finally:
        other.stop()
    assert [call for call in calls if str(other.root / "out") in call], "nothing was traced"
    assert [call for call in calls if "elsewhere" in call] == []
    assert wide.shunt("ls", other.root / "out").check() == "a\nplain\n"


@pytest.mark.unsanitized
def test_what_became_of_a_directory_may_have_to_be_looked_for(wide, area):
    """This shows that the tests above would see it."""
    natively(wide, "cp -a out copy; rm -rf out; mv copy out")
    wide.start().check()
    assert [call for call in looks(wide, area, "out") if "elsewhere/" in call]
