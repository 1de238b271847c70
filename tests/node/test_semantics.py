# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a directory asks of its mirrors, and what tools make of it: syncs, permissions, access control lists, paths that
the kernel tells, mounts, and users."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

from conftest import redirected_files, run
from test_failures import (IS_SUPERUSER, NOBODY, PYTHON, Session, session, started,  # noqa: F401: fixtures
                           wait_until)

AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--"]


# fsync of a directory

SYNC = "import os, sys; fd = os.open(sys.argv[2], os.O_RDONLY); getattr(os, sys.argv[1])(fd)"


class Trace:
    """What the daemon syncs while a command runs: the paths, below the root."""

    def __init__(self, started, area):  # noqa: F811
        self.started, self.log = started, area / "trace"

    def __call__(self, *command):
        self.log.write_text("")
        with tempfile.TemporaryFile() as said:
            trace = subprocess.Popen(["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,syncfs", "-o", self.log,
                                      "-p", str(self.started.daemon())], stderr=said)
            wait_until(lambda: b"attached" in os.pread(said.fileno(), 4096, 0) or trace.poll() is not None)
            assert trace.poll() is None, os.pread(said.fileno(), 4096, 0)
            self.started.exec(*command).check()
            trace.send_signal(signal.SIGINT)
            trace.wait()
        paths = re.findall(r"sync\(\d+<([^>]*)>", self.log.read_text())
        return sorted(os.path.relpath(path, self.started.root) for path in paths)


@pytest.fixture
def trace(started, area):  # noqa: F811
    return Trace(started, area)


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_fsync_of_a_directory_reaches_its_mirrors(started, trace, call):  # noqa: F811
    started.exec("sh", "-c", "mkdir out/sub; touch out/a out/sub/b", cwd=started.root).check()
    leaf, = (os.path.dirname(file) for file in redirected_files(started.root) if file.endswith("/a"))
    leaf = os.path.relpath(leaf, started.root)
    assert trace(PYTHON, "-c", SYNC, call, started.root / "out") == [os.path.dirname(leaf), leaf]
    assert trace(PYTHON, "-c", SYNC, call, started.root) == []
    assert trace(PYTHON, "-c", SYNC, call, started.root / "out" / "a") == []


@pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced
@pytest.mark.parametrize("inside", [True, False])
def test_how_often_is_asked_where_a_program_works(started, area, inside):  # noqa: F811
    """In a root not for each relative path, since there the kernel says which directory it leads to; else once for each."""
    look = "import os\nfor _ in range(2000): os.stat('out/file') if os.path.isdir('out') else os.stat('file')"
    (area / "beside" / "out").mkdir(parents=True)
    for place in (started.root, area / "beside"):
        (place / "out" / "file").touch()
    for place in ("", "out") if inside else ("../beside",):
        log = area / "trace"
        started.exec("strace", "-e", "trace=getcwd", "-o", log, PYTHON, "-c", look, cwd=started.root / place).check()
        assert log.read_text().count("getcwd(") < (1000 if inside else 4500), place


# Directories that a mirror cannot equal

PREPARE = """
mkdir others group own read-only listed sticky
chmod 0777 others
chmod 02755 own
mkdir read-only/inner; touch read-only/file; chmod 0555 read-only
setfacl -d -m u:42:rwx,g::r-x,o::--- listed; setfacl -m u:42:rx listed
chmod 01777 sticky
touch others/theirs sticky/theirs group/theirs
chmod 0666 */theirs
"""

# Of root, of the user, and of a group that the user is not in.
OWN = f"""
chown {NOBODY}:{NOBODY} . own read-only read-only/* listed; chmod 02755 own
chown {NOBODY}:4321 group
"""

# stderr of a shell names the line; only the reason is compared
USE = r"""
attempt() { "$@" >/dev/null 2>said && echo "done: $*" || echo "$(sed 's/.*: //' said): $*"; }
look() { LC_ALL=C stat -c "%n %A %U %G %h %F" "$@" 2>/dev/null; }
for mask in 022 077 002; do
    umask $mask
    for in in others group own read-only listed sticky; do
        attempt sh -c "echo text >$in/made-$mask"
        attempt touch $in/touched-$mask
        attempt mkdir $in/dir-$mask
        attempt touch $in/dir-$mask/inner
        attempt mknod $in/node-$mask p
        look $in $in/made-$mask $in/touched-$mask $in/dir-$mask $in/dir-$mask/inner $in/node-$mask
    done
done
for in in others group own read-only listed sticky; do
    attempt mv own/touched-022 $in/moved
    attempt ln own/made-022 $in/linked
    attempt sh -c "cat $in/theirs"
    attempt sh -c "echo >>$in/theirs"
    attempt mv $in/theirs $in/renamed
    attempt mv $in/renamed own/renamed-$in
    attempt rm $in/theirs
    attempt chmod 600 $in/made-077
    attempt chmod 700 $in
    attempt chgrp 4321 $in
    attempt touch $in/late
    look $in $in/*
    attempt mv $in/moved own/touched-022
done
find listed | sort | xargs getfacl 2>/dev/null
rm said
"""


@pytest.fixture
def open_area():
    """A directory that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="shunt-test.", dir=os.environ.get("SHUNT_TEST_DIR")) as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


@pytest.fixture
def user(shunt):
    """The words that make a command one of somebody whom permissions stop: none, if that is the one who tests."""
    readable = run([*AS_NOBODY, "test", "-x", shunt.path]).status == 0
    return AS_NOBODY if IS_SUPERUSER and readable else []


def prepare(directory, user):
    directory.mkdir()
    run(["sh", "-euc", PREPARE + (OWN if user else "") + "chmod 02775 group"], cwd=directory).check()
    return directory


CLOSE_AND_REMOVE = r"""
for mode in 0755 0555 0500 0; do
    mkdir d; touch d/a d/b; rm d/a d/b; chmod $mode d; rmdir d && echo "$mode: gone"
    mkdir d; touch d/a; chmod $mode d; rmdir d 2>/dev/null || stat -c "$mode: stays %a" d
    chmod 0755 d; ls d; rm -r d
done
"""


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_a_directory_that_its_owner_may_not_write_to_is_removed(shunt, user, run_base, open_area, placement):  # noqa: F811
    native, root = open_area / "plain", open_area / "shunt"
    for directory in (native, root):
        directory.mkdir()
        directory.chmod(0o777)
    expected = run([*user, "bash", "-c", CLOSE_AND_REMOVE], cwd=native).check()
    if user:
        os.chown(run_base, NOBODY, NOBODY)
        os.chown(root, NOBODY, NOBODY)
    session = Session(shunt, root, run_base, prefix=user)  # noqa: F811
    session.start(f"--placement={placement}").check()
    assert session.exec("bash", "-c", CLOSE_AND_REMOVE, cwd=root).check() == expected
    session.stop().check()
    run([shunt.path, "fsck", root]).check()


def test_what_no_mirror_can_equal_stays_in_the_trunk(shunt, user, run_base, open_area):  # noqa: F811
    native, root = (prepare(open_area / name, user) for name in ("plain", "shunt"))
    expected = run([*user, "bash", "-c", USE], cwd=native).check()
    if user:
        os.chown(run_base, NOBODY, NOBODY)
    session = Session(shunt, root, run_base, prefix=user)  # noqa: F811
    session.start().check()
    seen = session.exec("bash", "-c", USE, cwd=root).check()
    told = session.tool("status", "--json", "--root", root).check()
    redirected = {pathlib.Path(file).parts[-3].rpartition("-")[0] for file in redirected_files(root)}
    session.stop().check()
    assert seen == expected
    theirs = {"others", "group", "sticky"} if user else set()
    assert {"own", "listed"} <= redirected and not redirected & {"read-only", *theirs}
    assert all(f'"{name}"' in json.dumps(json.loads(told)) for name in theirs), told


# Edges of single calls

EDGES = r"""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
OPENAT2, UTIMENSAT = 437, {"x86_64": 280, "aarch64": 88}[os.uname().machine]
BENEATH = 8
def told(what, answer):
    failed = answer < 0
    print(what, errno.errorcode[ctypes.get_errno()] if failed else "done")
    return answer
def outcome(what, call, *arguments):
    try:
        print(what, call(*arguments))
    except OSError as error:
        print(what, errno.errorcode[error.errno])
def openat2(path, flags, mode=0, resolve=0):
    how = struct.pack("QQQ", flags, mode, resolve)
    fd = told(f"openat2 {path} {flags:o} {mode:o} {resolve}", libc.syscall(OPENAT2, -100, path.encode(), how, len(how)))
    if fd >= 0:
        os.close(fd)
for name in ("file", "gone", "gone/file"):
    os.mkdir(name) if name == "gone" else open(name, "x").close()
for flags, mode in ((0, 0o644), (1 << 40, 0), (1 << 30, 0), (os.O_CREAT | os.O_WRONLY, 0o100644),
                    (os.O_PATH | os.O_RDWR, 0), (0, 0)):
    openat2("file", flags, mode)
openat2("new", os.O_CREAT | os.O_WRONLY, 0o100644)
for path in ("gone", ".", "absent", "gone/absent"):
    openat2(path, os.O_RDONLY, 0, BENEATH)
openat2("file", os.O_RDONLY, 0, 1 << 20)
told("openat2 nowhere", libc.syscall(OPENAT2, -100, b"file", ctypes.c_void_p(8), 24))
with open("file") as file:
    told("futimens", libc.syscall(UTIMENSAT, file.fileno(), None, struct.pack("qqqq", 1, 2, 3, 4), 0))
    told("futimens with a flag", libc.syscall(UTIMENSAT, file.fileno(), None, None, 0x100))
print(os.stat("file").st_mtime_ns)
os.symlink("file/a", "through")
for call, *arguments in ((os.stat, "through/x"), (os.mkdir, "through/x"), (os.unlink, "through/../file"), (os.stat, "through"),
                         (os.rename, "file", "through/x"), (os.stat, "through/."), (open, "through/x", "x")):
    outcome(f"{call.__name__} {arguments}", call, *arguments)
os.symlink("slash/", "slash")
outcome("create slash", os.open, "slash", os.O_CREAT | os.O_RDWR)
os.unlink("gone/file")
fds = os.open("gone", os.O_RDONLY), os.open("gone", os.O_PATH)
os.chdir("gone")
os.rmdir("../gone")
for fd in (*fds, "."):
    outcome("list what was removed", os.listdir, fd)
outcome("make there", os.open, "x", os.O_CREAT | os.O_WRONLY)
os.chdir("..")
print(sorted(os.listdir()))
"""


def test_edges_of_single_calls(native_and_shunt, area):
    program = area / "edges.py"
    program.write_text(EDGES)
    native, shunt = native_and_shunt(f"/usr/bin/python3 {program}")
    assert shunt == native


REFUSED = r"""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def told(answer):
    print(errno.errorcode[ctypes.get_errno()] if answer < 0 else "done")
os.mkdir("out")
open("out/file", "x").close()
os.symlink("file", "out/link")
for path, flags in ((b"out/file", 0), (b"out/link", 0), (b"out/link", os.O_PATH | os.O_NOFOLLOW),
                    (b"out/new", os.O_CREAT | os.O_WRONLY)):
    told(libc.syscall(437, -100, path, struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, 8), 24))
told(libc.renameat2(-100, b"out/file", -100, b"out/other", 4))  # RENAME_WHITEOUT
print(sorted(os.listdir("out")))
"""


def test_what_cannot_be_done_in_a_branch_is_refused(pair, area):
    """openat2 with RESOLVE_BENEATH as by a kernel that has no openat2, a whiteout as by a file system that has none."""
    program = area / "refused.py"
    program.write_text(REFUSED)
    _, shunt = pair.both(f"/usr/bin/python3 {program}")
    assert shunt.split("\n")[:6] == ["ENOSYS", "ENOSYS", "done", "ENOSYS", "EINVAL", "['file', 'link']"]


# Access control lists by the tools for them

LISTS = r"""
lists() { find "$1" | sort | xargs getfacl; }
umask 027
mkdir out; setfacl -d -m u:42:rwx,g:43:r-x,m::rwx,o::--- out
touch out/first; mkdir out/sub; touch out/sub/second; echo text >out/sub/third
setfacl -m u:44:rw,g:45:r out/first
setfacl -x u:42 out/sub/second
setfacl -b out/sub/third
getfacl out out/first out/sub out/sub/*
cp -a out copy; lists copy
cp -p out/first plain; getfacl plain
cp out/first out/sub/copied; getfacl out/sub/copied
setfacl -k out; touch out/late; getfacl out/late
setfacl -R -m u:46:rX copy; touch copy/late; lists copy
setfacl -d -m u:47:rx copy; mv out/first copy/moved; ln copy/late copy/sub/linked; lists copy
lists copy >saved; setfacl -R -b copy; setfacl --restore=saved; lists copy
setfattr -n user.color -v blue out/late; cp -a out/late copy/late-too; getfattr -d out/late copy/late-too
tar --acls --xattrs -cf - copy | tar --acls --xattrs -xf - --transform s/copy/again/; lists again
"""


def test_access_control_lists(native_and_shunt):
    native, shunt = native_and_shunt(LISTS)
    assert native == shunt and "user:46:r" in native and "color" in native


# Paths that the kernel tells

PATHS = r"""
mkdir -p out/sub; echo text >out/file; ln -s out/sub link
exec 3<out/file 4>link/other
readlink /proc/self/fd/3 /dev/fd/4; realpath /proc/self/fd/3 /dev/fd/4; readlink -f /proc/$$/fd/3
[ /dev/fd/3 -ef out/file ] && echo the same
mv out moved; readlink /proc/self/fd/3 /proc/self/fd/4
rm moved/file; readlink /proc/self/fd/3; readlink -f /proc/self/fd/3 || echo none
cat /proc/self/fd/3; echo more >&4; cat moved/sub/other
cp /bin/readlink moved/program; moved/program /proc/self/exe; (cd moved/sub; ../program -f /proc/self/exe)
python3 -c 'import os; print(os.readlink("/proc/self/fd/4"), os.path.realpath("/proc/self/fd/4"), os.readlink(b"/proc/self/cwd"))'
perl -e 'print readlink("/proc/self/fd/4"), "\n"'
find /proc/self/fd/ -lname "*other" -printf "%l\n"; ls -l /proc/self/fd | grep -o "/[^ ]*other"
stat -c %N /proc/self/fd/4
"""


def test_the_place_of_an_open_file_is_not_told(native_and_shunt):
    native, shunt = native_and_shunt(PATHS)
    assert native == shunt and ".shunt" not in shunt and "ROOT/moved/sub/other" in shunt


# A directory by the name of a mount

MADE = r"""
mkdir -p out/sub in other below; echo one >out/one; echo two >out/sub/two; cp /bin/echo out/program; echo six >below/six
"""

MOUNTED = r"""
mkdir ../twin "../a b" ../all; mount --bind out/sub "../a b"; ls "../a b"; cat "../a b/two"; mount --bind . ../all
ls ../all ../all/below; cat ../all/below/six; echo seven >../all/below/seven; ls below; umount ../all "../a b"
mount --bind out ../twin; mount --bind out in; mount -t tmpfs none other
../twin/program executed; touch ../twin/new; mv ../twin/program ../twin/new; ../twin/new renamed; ls out
touch in/another; mv in/another in/new; ln in/new in/second; stat -c "%n %h" out/new out/second; rm in/new in/second
cat ../twin/one in/sub/two; echo three >../twin/three; echo four >in/four; echo five >other/five
set -C; (echo again >out/three) 2>/dev/null || echo once; set +C
ls out ../twin in other; rm ../twin/one; mv in/four in/sub/renamed; mkdir ../twin/dir; rmdir in/dir
mv ../twin/three other/three; ln out/sub/two in/linked || cp out/sub/two in/linked
chmod 2711 ../twin; touch in/late; stat -c "%n %A %h" out/* in/sub/*
rmdir out 2>/dev/null || echo full; rmdir in 2>/dev/null || echo busy; mv out moved; ls moved ../twin in
readlink -f ../twin/late in/late; find . -type f | sort
umount in other ../twin; ls in other; find . -type f | sort; rmdir ../twin "../a b" ../all
"""


def test_a_directory_that_is_mounted_elsewhere(shunt, run_base, mounts, area):  # noqa: F811
    outputs = []
    for name in ("plain", "shunt"):
        root = area / name / "root"
        root.mkdir(parents=True)
        session = Session(shunt, root, run_base, prefix=mounts.prefix)  # noqa: F811
        make, command = (["sh", "-c", f"cd {root} && exec sh -euc '{script}'"] for script in (MADE, MOUNTED))
        if name == "shunt":
            shunt.run(root, make, keep=True).check()
            session.start().check()
            result = session.exec(*command)
            redirected = redirected_files(mounts.seen(root))
            session.stop().check()
            assert redirected
        else:
            mounts(*make).check()
            result = mounts(*command)
        errors = [line for line in result.err.splitlines() if ": warning: " not in line]  # of mount itself
        outputs.append((result.check().replace(str(root.parent), "ABOVE"), errors))
    assert outputs[0] == outputs[1]


# Users

@pytest.mark.parametrize("words", [[], ["fork"]])
def test_a_vfork_child_asks_first(build, started, words):  # noqa: F811
    for i in range(8):
        said = started.exec(build / "tests" / "node" / "vfork_first", f"name{i}", *words,
                            cwd=started.root / "out", SHUNT_DEADLINE=5)
        assert said.check() == "" and said.err == ""


REPLACED = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    assert libc.renameat2(-100, one.encode(), -100, other.encode(), 2) == 0
for name in ("link", "gone", "new"):
    os.makedirs(name + "/sub")
    open(name + "/file", "w").write(name)
    open(name + "/target", "w").write("target")
    os.symlink("target", name + "/chain")
os.rename("link/chain", "link/file")
print(open("link/file").read())
exchange("gone/file", "gone/sub")
os.unlink("gone/sub")
exchange("new/file", "new/sub")
os.close(os.open("new/sub", os.O_CREAT | os.O_RDONLY))
exchange("new/chain", "new/file")
os.rmdir("new/chain")
for name in ("link", "gone", "new"):
    print(sorted(os.listdir(name)))
"""


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_a_name_is_at_once_what_it_has_become(native_and_shunt, placement):
    """The daemon may not have heard yet that a link took the place of a file, or a file that of a directory."""
    native, seen = native_and_shunt(f"{PYTHON} - <<'END'\n{REPLACED}END\nls *", placement)
    assert native == seen and native.startswith("target\n")


NUMBERS = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("sub")
numbers = []
for i in range(12):
    for flags in (os.O_CREAT | os.O_EXCL | os.O_RDWR, os.O_CREAT | os.O_RDWR, os.O_RDONLY):
        os.close(0)
        numbers.append(os.open(f"sub/{i}", flags))
    os.rename(f"sub/{i}", f"sub/{i}.old")
print(set(numbers))
"""


@pytest.mark.parametrize("placement", ["auto", "branch"])
def test_a_descriptor_has_the_lowest_number_that_is_free(shunt, root, placement):
    """Programs close 0 to open another standard input."""
    assert shunt.run(root, [PYTHON, "-c", NUMBERS, root], placement=placement).check() == "{0}\n"


LAST = """
import os, resource, sys
os.chdir(sys.argv[1])
os.mkdir("sub")
for i in range(8):
    os.close(os.open(f"sub/{i}", os.O_CREAT | os.O_EXCL | os.O_RDWR))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken, numbers = [], []
for _ in range(64):
    try:
        taken.append(os.dup(2))
    except OSError:
        break
for free in range(4):
    for flags in (os.O_CREAT | os.O_EXCL | os.O_RDWR, os.O_CREAT | os.O_RDWR, os.O_RDONLY):
        try:
            number = os.open(f"sub/n{free}" if flags else "sub/1", flags)
            os.close(number)
        except OSError as error:
            number = -error.errno
        numbers.append(number)
    os.close(taken.pop())
os.closerange(3, 64)
print(numbers)
"""


@pytest.mark.parametrize("placement", ["auto", "branch"])
def test_the_last_descriptors_are_the_programs(shunt, root, area, placement):
    (area / "native").mkdir()
    native = run([PYTHON, "-c", LAST, area / "native"]).check()
    assert native == str([-24] * 3 + [63] * 3 + [62] * 3 + [61] * 3) + "\n"
    assert shunt.run(root, [PYTHON, "-c", LAST, root], placement=placement).check() == native
