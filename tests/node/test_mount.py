# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt mount`: what programs without the library see of a root through FUSE is what those under shunt see, at once, and
what calls answer there is what they answer on a plain directory."""

import concurrent.futures
import ctypes
import errno
import fcntl
import json
import mmap
import os
import pathlib
import platform
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import pytest

from conftest import (IS_SUPERUSER, PYTHON, REPOSITORY, Shunt, assert_equal_snapshots, assert_equal_text, environment, is_running, run,
                      snapshot, wait_until)
from daemons import end_mount_server, pending_signals, standing_still, supervisor_of
from test_failures import NOBODY, Session, as_nobody, everybodys, one_sentence, session, started  # noqa: F401: fixtures

sys.path.append(str(REPOSITORY / "tests" / "same"))
import compare  # noqa: E402: of the directory above

BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", REPOSITORY / "build")).resolve()
SERVER = BUILD / "tools" / "mount" / "shunt-mount"

AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)

pytestmark = pytest.mark.skipif(not SERVER.exists() or not os.access("/dev/fuse", os.R_OK | os.W_OK) or
                                not shutil.which("fusermount3"), reason="needs FUSE, and a build with libfuse3")

# Where one mount differs from another by what FUSE is, or by whom it lets in: no files without a name, no birth time, no
# file attributes; its own type, limits and handles; it is for the one who mounted it and those credentials alone.
OF_FUSE = re.compile(r".*\(TMPFILE|(SYS_)?(f?statv?fs|name_to_handle_at|f?pathconf)|file_[gs]etattr|users ")


def server_links(library):
    libraries = subprocess.run(["ldd", SERVER], capture_output=True, text=True, check=False)
    return library in libraries.stdout


# The kernel reads and writes files itself.
PASSES = IS_SUPERUSER and server_links("libfuse3.so.4") and tuple(map(int, platform.release().split(".")[:2])) >= (6, 9)


def is_mounted(path):
    return f" {path} fuse.shunt " in pathlib.Path("/proc/self/mounts").read_text()


class Mount:
    """A root that is mounted, and a session that serves it."""

    def __init__(self, of, at, log):
        self.session, self.root, self.at, self.log, self.server = of, of.root, at, log, None

    def mount(self, *options, **settings):
        done = self.session.tool("mount", "--log", self.log, *options, self.root, self.at, timeout=240, **settings)
        self.server = self.find_server()
        return done

    def umount(self):
        return self.session.tool("umount", self.at, timeout=240)

    def find_server(self):
        words = f"\0--\0{self.root}\0{self.at}\0"
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if words in (process / "cmdline").read_text() and (process / "comm").read_text() == "shunt-mount\n":
                    return int(process.name)
            except OSError:
                continue
        return None

    def end(self):
        """Whatever the test left."""
        while is_mounted(self.at):
            if self.umount().status != 0:
                run(["umount", "--lazy", self.at] if os.geteuid() == 0 else ["fusermount3", "-u", "-z", self.at])
        if self.server:
            end_mount_server(self.server)


@pytest.fixture
def unmounted(started, area):  # noqa: F811: the fixture
    at = area / "mount"
    at.mkdir()
    made = Mount(started, at, area / "log")
    yield made
    made.end()


@pytest.fixture
def from_disk(session, area):  # noqa: F811: the fixture
    """Of a root without a session, with a file in a branch; not mounted yet."""
    session.tool("run", "--root", session.root, "--placement", "branch", "--keep", "--", "touch", "out/x", cwd=session.root).check()
    at = area / "mount"
    at.mkdir()
    made = Mount(session, at, area / "log")
    yield made
    made.end()


@pytest.fixture
def mount(unmounted):
    unmounted.mount().check()
    return unmounted


# Answers


# Those that take their time in any case are left out of the quick run.
PARTS = ["open", "stat", "names", "pairs", "meta", "times", "xattr", "inherit", "directory", "temp", "locks", "kinds"]


def same(root, *words):
    program, plugin = (BUILD / "tests" / "same" / name for name in ("same", "same_plugin.so"))
    every = os.environ.get("SHUNT_SAME_EVERY")
    words = [program, f"--every={every or 500}", "--phase=3", root, plugin, *([] if every else PARTS)]
    done = subprocess.run(words, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=1200,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    text = done.stdout.decode(errors="replace").replace(str(root.parent), "ABOVE")
    return re.sub(r"mask 1fff", "mask 17ff", text)


@pytest.mark.unsanitized  # for its time; the programs below make the same calls
def test_calls_answer_as_on_a_plain_directory(mount, area, monkeypatch):
    roots = area / "plain" / "above" / "root", mount.at / "above" / "root"
    for root in roots:
        root.mkdir(parents=True)
    monkeypatch.setattr(compare, "EXCEPTED", OF_FUSE)
    native, seen = map(same, roots)
    assert not (unlike := compare.differences(native, seen)), unlike
    assert len(compare.blocks(native)) > 150


PROGRAMS = r"""
umask 027
mkdir src src/a src/b; for i in $(seq 40); do echo "text $i" >src/a/f$i; done
cp src/a/f1 src/b/g; ln src/b/g src/b/h; ln -s ../a/f2 src/b/s; chmod 751 src/a; chmod 400 src/a/f3
touch -d 2001-02-03T04:05:06.789 src/a/f4; setfattr -n user.colour -v blue src/a/f5; mkfifo src/b/p; truncate -s 3M src/b/hole
export GIT_CONFIG_GLOBAL=/dev/null HOME=/nowhere GIT_AUTHOR_DATE='@1000000000 +0000' GIT_COMMITTER_DATE='@1000000000 +0000'
git init -q repo; cd repo; git config user.name n; git config user.email e@x; cp ../src/a/f* .
git add .; git commit -qm one; git mv f1 moved; echo more >>f2; rm -f f3; git status --porcelain; git commit -qam two
git checkout -q HEAD~1; ls; git checkout -q -; git gc -q; git fsck; git log --format=%T; cd ..; rm -rf repo/.git/index repo/.git/logs
tar cf all.tar --xattrs src; mkdir from-tar; tar xf all.tar --xattrs -C from-tar; rm all.tar; tar cf - from-tar | tar tf - | sort
rsync -aHX src/ synced/; rsync -aHXi src/ synced/; rm src/a/f9; rsync -aHXOi --delete src/ synced/
getfattr --only-values -n user.colour synced/a/f5; stat -c %h synced/b/h; stat -c %y synced/a/f4
sqlite3 data.db 'create table t(x); insert into t values(1); begin; insert into t values(2); rollback; select * from t'
sqlite3 data.db 'pragma journal_mode=wal; insert into t values(3); select count(*) from t'; rm data.db
B=busybox
$B cp -a src by-busybox; $B find by-busybox -type f | $B sort | $B head -5; $B sed -i s/text/word/ by-busybox/a/f1
$B mv by-busybox/a by-busybox/z; $B rm -r by-busybox/z/f10 by-busybox/b; $B grep -c word by-busybox/z/f1; $B du -s by-busybox >/dev/null
$B sh -c 'set -o noclobber; echo once >excl; { echo twice >excl; } 2>/dev/null || echo exclusive'; $B tar cf - synced | $B tar tf - | $B wc -l
"""


def test_real_programs(mount, area):
    if not shutil.which("busybox"):
        pytest.skip("needs busybox, linked statically")
    plain, seen = area / "plain", mount.at / "plain"
    plain.mkdir()
    seen.mkdir()
    outputs = [run(["bash", "-euo", "pipefail", "-c", PROGRAMS], cwd=root, timeout=600).check() for root in (plain, seen)]
    assert outputs[0] == outputs[1]
    assert_equal_snapshots(snapshot(plain), snapshot(seen))


def test_a_program_of_go(mount, area, go_program):
    plain, seen = area / "plain", mount.at / "plain"
    plain.mkdir()
    seen.mkdir()
    outputs = [run([go_program, root, 400], timeout=600).check() for root in (plain, seen)]
    assert outputs[0] == outputs[1] and "made: 400 files" in outputs[1]
    assert_equal_snapshots(snapshot(plain), snapshot(seen))


LISTING = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
for f in (libc.readdir, libc.telldir): f.argtypes = [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
stream = libc.opendir(sys.argv[1].encode())
places, names = [], []
while True:
    places.append(libc.telldir(stream))
    entry = libc.readdir(stream)
    if not entry: break
    names.append(ctypes.string_at(entry + 19))
for i in range(0, len(names), 97):
    libc.seekdir(stream, places[i])
    assert ctypes.string_at(libc.readdir(stream) + 19) == names[i], i
assert len(set(names)) == len(names) == 3002, len(names)
"""


def test_a_long_listing_and_its_places(mount):
    directory = mount.at / "many"
    directory.mkdir()
    for i in range(3000):
        (directory / f"name{i}").touch()
    run([PYTHON, "-c", LISTING, directory]).check()


# What others see

AGENT = r"""
import errno, fcntl, json, os, sys
files = {}
def exclusive(path): os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
def write(path, text):
    with open(path, "w") as file: file.write(text)
def read(path):
    with open(path) as file: return file.read()
def keep(path): files[path] = os.open(path, os.O_RDWR)
def kept(path): return os.pread(files[path], 100, 0).decode()
def size(path): return os.fstat(files[path]).st_size
def drop(path): os.close(files.pop(path))
def lock(path): fcntl.lockf(files[path], fcntl.LOCK_EX | fcntl.LOCK_NB)
def unflock(path): fcntl.flock(files[path], fcntl.LOCK_UN)
def flock(path): fcntl.flock(files[path], fcntl.LOCK_EX | fcntl.LOCK_NB)
def names(path): return sorted(os.listdir(path))
def link(path, target): os.symlink(target, path)
def relink(path, target): os.symlink(target, path + "-"); os.rename(path + "-", path)
def dated(path, ns): os.utime(path, ns=(ns, ns))
def stat(path):
    it = os.stat(path)
    return [it.st_ino, it.st_size, it.st_mode, it.st_nlink]
for line in sys.stdin:
    verb, *words = json.loads(line)
    try:
        answer = {**globals(), **vars(os)}[verb](*words) if verb not in globals() else globals()[verb](*words)
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(json.dumps(answer), flush=True)
"""


class Agent:
    """A process that does what it is told, below one directory."""

    def __init__(self, command, top, env):
        self.top = str(top)
        self.process = subprocess.Popen([*map(str, command), PYTHON, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd="/", env=env)

    def __call__(self, verb, path, *words):
        self.process.stdin.write(json.dumps([verb, f"{self.top}/{path}", *words]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture
def agents(mount):
    """One below the mount, without the library, and one under shunt below the root."""
    settings = environment(SHUNT_RUN_DIR=mount.session.run_base, SHUNT_NODE="n1")
    made = [Agent([], mount.at / "out", settings),
            Agent([mount.session.shunt.path, "exec", "--root", mount.root, "--"], mount.root / "out", settings)]
    yield made
    for agent in made:
        agent.end()


def test_each_change_is_seen_on_the_other_side_at_once(agents):
    for one, other in (agents, agents[::-1]):
        for i in range(30):
            name = f"f{i}"
            assert other("stat", name) == "ENOENT"
            one("write", name, "x" * i)
            assert other("stat", name) == one("stat", name) and other("read", name) == "x" * i
            assert other("exclusive", name) == "EEXIST" and name in other("names", ".")
            other("keep", name)
            one("write", name, "again")
            assert other("size", name) == 5
            one("unlink", name)
            assert other("stat", name) == "ENOENT" and other("names", ".") == [] and other("size", name) == 5
            other("drop", name)
        one("mkdir", "d")
        assert other("names", "d") == [] and other("exclusive", "d/in") is None and one("rmdir", "d") == "ENOTEMPTY"
        assert one("unlink", "d/in") is None and other("rmdir", "d") is None and one("stat", "d") == "ENOENT"


def test_a_link_is_the_one_that_is_there(agents, mount):
    """The kernel keeps the target of a link, which never changes; it may be another link."""
    there = mount.root / "out" / "l"
    for one, other in (agents, agents[::-1]):
        for i in range(20):
            one("link", "l", f"made{i}")
            assert [agent("readlink", "l") for agent in (other, one, other)] == [f"made{i}"] * 3
            other("relink", "l", f"moved{i}")
            assert [agent("readlink", "l") for agent in (one, other, one)] == [f"moved{i}"] * 3
            there.unlink()
            there.symlink_to(f"outside{i}")
            assert [agent("readlink", "l") for agent in (one, other, one)] == [f"outside{i}"] * 3
            one("unlink", "l")
            assert other("readlink", "l") == "ENOENT"


def test_what_the_kernel_keeps_is_not_asked_for_again(unmounted):
    """Of requests: the target of a link once, a name and its attributes each time."""
    (unmounted.root / "out" / "l").symlink_to("target")
    tool = unmounted.session
    words = [tool.shunt.path, "mount", "--foreground", "-o", "debug", unmounted.root, unmounted.at]
    with open(unmounted.log, "w") as log:
        server = subprocess.Popen(words, env=environment(SHUNT_RUN_DIR=tool.run_base, SHUNT_NODE="n1"), stderr=log)
    wait_until(lambda: is_mounted(unmounted.at))
    for _ in range(10):
        assert os.readlink(unmounted.at / "out" / "l") == "target" and os.lstat(unmounted.at / "out").st_nlink == 2
    server.terminate()
    assert server.wait(30) == 0
    asked = re.findall(r"opcode: (\w+)", unmounted.log.read_text(errors="replace"))
    assert asked.count("READLINK") == 1 and asked.count("LOOKUP") >= 30 and asked.count("GETATTR") >= 10


def test_contents_that_change_under_an_open_file(agents):
    for one, other in (agents, agents[::-1]):
        one("write", "f", "first")
        other("keep", "f")
        assert other("kept", "f") == "first"
        one("write", "f", "the second, longer")
        assert other("kept", "f") == "the second, longer"
        other("drop", "f")


def test_contents_that_change_and_have_the_same_time(agents, mount):
    """The kernel knows by size and time of modification which pages are old, and that time may be set back."""
    agents[1]("write", "f", "first")
    time_of_first = (mount.at / "out" / "f").stat().st_mtime_ns
    agents[0]("keep", "f")
    for text in ("again", "third", "fifth"):
        assert len(agents[0]("kept", "f")) == 5
        agents[1]("write", "f", text)
        agents[1]("dated", "f", time_of_first)
        assert agents[0]("kept", "f") == text
    agents[0]("drop", "f")


@pytest.fixture
def ticking(shunt, area, run_base):
    """A mount of a root on a file system whose times are those of the clock's ticks, as of most before Linux 6.13."""
    file_system, at = area / "ramfs", area / "mount"
    for directory in (file_system, at):
        directory.mkdir()
    run(["mount", "-t", "ramfs", "none", file_system]).check()
    made = Mount(Session(shunt, file_system / "root", run_base), at, area / "log")
    (made.root / "out").mkdir(parents=True)
    try:
        made.session.start().check()
        made.mount().check()
        yield made
    finally:
        made.end()
        made.session.stop()
        run(["umount", file_system]).check()


@pytest.mark.skipif(not IS_SUPERUSER, reason="needs to mount a ramfs")
def test_contents_that_change_within_a_tick_of_the_clock(ticking):
    seen, real = ticking.at / "out" / "f", ticking.root / "out" / "f"
    real.write_text("text 0000")
    with open(real, "r+b") as writer, open(seen, "rb", buffering=0) as reader, open(seen, "r+b", buffering=0) as both:
        for i in range(0, 1000, 2):
            os.pwrite(writer.fileno(), b"text %04d" % i, 0)
            assert os.pread(reader.fileno(), 9, 0) == b"text %04d" % i
            os.pwrite(both.fileno(), b"more %04d" % i, 0)
            os.pwrite(writer.fileno(), b"text %04d" % (i + 1), 0)
            assert [os.pread(file.fileno(), 9, 0) for file in (reader, both)] == [b"text %04d" % (i + 1)] * 2


def test_what_is_read_and_written_directly(agents, mount):
    fd = os.open(mount.at / "out" / "f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    block = mmap.mmap(-1, 4096)
    block[:] = b"." * 4096
    assert os.pwrite(fd, block, 0) == 4096
    agents[0]("keep", "f")
    agents[1]("keep", "f")
    with mmap.mmap(fd, 4096) as mapped:
        assert mapped[:5] == b"....."
        mapped[:5] = b"words"
        assert os.preadv(fd, [block], 0) == 4096 and block[:6] == b"words."
        block[:5] = b"other"
        assert os.pwrite(fd, block, 0) == 4096 and mapped[:6] == b"other."
    for agent in agents:
        assert agent("kept", "f").startswith("other.") and agent("drop", "f") is None
    if PASSES:  # as natively
        with pytest.raises(OSError, match="Invalid argument"):
            os.pread(fd, 3, 1)
    else:  # FUSE does not ask for whole blocks
        assert os.pread(fd, 3, 1) == b"the"
    os.close(fd)


@pytest.mark.skipif(not PASSES, reason="needs libfuse 3.17, Linux 6.9 and the superuser")
def test_data_that_the_kernel_reads_and_writes_itself(mount):
    """Also while the server stands still, but that a write asks it whether the file has capabilities; and it is what other processes
    see, of a file that is open more than once."""
    path = mount.at / "out" / "f"
    path.write_text("before")
    with open(path, "r+b", buffering=0) as one, open(path, "rb", buffering=0) as two:
        with standing_still(mount.server):
            assert os.pread(one.fileno(), 9, 0) == b"before"
        assert os.pwrite(one.fileno(), b", after", 6) == 7
        with mmap.mmap(two.fileno(), 13, prot=mmap.PROT_READ) as mapped, standing_still(mount.server):
            assert os.pread(two.fileno(), 99, 0) == mapped[:] == b"before, after"
    assert mount.session.exec("cat", mount.root / "out" / "f").check() == "before, after"


def test_what_is_mapped_is_the_file(agents, mount):
    agents[1]("write", "f", "." * 8192)
    with open(mount.at / "out" / "f", "r+b") as file, mmap.mmap(file.fileno(), 8192) as mapped:
        assert mapped[8191:] == b"."
        mapped[4096:4101] = b"words"
        mapped.flush()
        assert agents[1]("read", "f")[4095:4102] == ".words."
        agents[1]("keep", "f")
        agents[0]("unlink", "f")
        mapped[0:5] = b"after"
        mapped.flush()
        assert agents[1]("kept", "f").startswith("after")
        agents[1]("drop", "f")


def test_what_appends_is_what_says_so_at_that_time(agents, mount):
    """F_SETFL changes it after the open, and what is mapped is written to its place."""
    fd = os.open(mount.at / "out" / "f", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    agents[1]("keep", "f")
    os.write(fd, b"." * 4096)
    with mmap.mmap(fd, 4096) as mapped:
        mapped[:5] = b"first"
        mapped.flush()
    assert agents[1]("kept", "f").startswith("first.") and agents[1]("size", "f") == 4096
    assert os.pwrite(fd, b"at the end", 0) == 10 and agents[1]("read", "f").endswith(".at the end")
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    assert os.pwrite(fd, b"again", 0) == 5 and agents[1]("kept", "f").startswith("again.")
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    assert os.pwrite(fd, b"!", 0) == 1 and agents[1]("read", "f").endswith(".at the end!") and agents[1]("size", "f") == 4107
    os.close(fd)
    agents[1]("drop", "f")


def test_a_lock_of_an_open_file_goes_with_it(agents, mount):
    agents[0]("write", "f", "")
    agents[1]("keep", "f")
    fd = os.open(mount.at / "out" / "f", os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    os.close(os.dup(fd))
    assert agents[1]("lock", "f") == "EAGAIN"
    os.close(fd)
    wait_until(lambda: agents[1]("lock", "f") is None)
    agents[1]("drop", "f")


def test_locks_exclude_on_both_sides(agents, mount):
    agents[0]("write", "f", "")
    for lock in ("lock", "flock"):
        for agent in agents:
            agent("keep", "f")
        for one, other in (agents, agents[::-1]):
            assert one(lock, "f") is None and other(lock, "f") == "EAGAIN"
            if lock == "flock":  # FUSE tells of the last close later
                one("unflock", "f")
            one("drop", "f")
            assert other(lock, "f") is None
            other("drop", "f")
            one("keep", "f")
            other("keep", "f")
        for agent in agents:
            agent("drop", "f")


def test_processes_of_the_mount_exclude_each_other_and_a_wait_is_interrupted(mount):
    path = mount.at / "out" / "f"
    with open(path, "w") as file, open(path, "w") as another:
        for call in (fcntl.lockf, fcntl.flock):
            call(file, fcntl.LOCK_EX)
            code = f"""
import fcntl, signal, sys
class Woken(Exception): pass
def wake(*_): raise Woken
signal.signal(signal.SIGALRM, wake)
with open({str(path)!r}, "r+") as file:
    try:
        fcntl.{call.__name__}(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sys.exit("not excluded")
    except BlockingIOError: pass
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        fcntl.{call.__name__}(file, fcntl.LOCK_EX)
        sys.exit("not excluded, having waited")
    except Woken: pass
    print("woken", flush=True)
    fcntl.{call.__name__}(file, fcntl.LOCK_EX)
    print("locked", flush=True)
"""
            process = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "woken\n"
            call(file, fcntl.LOCK_UN)
            assert process.stdout.readline() == "locked\n" and process.wait(30) == 0
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.lockf(another, fcntl.LOCK_EX)  # of one process: no other's


EXCLUSIVE = r"""
import os, sys
made = 0
for i in range(400):
    try:
        os.close(os.open(f"{sys.argv[1]}/n{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)); made += 1
    except FileExistsError: pass
print(made)
"""


def test_a_name_is_made_exclusively_once(mount):
    command = [PYTHON, "-c", EXCLUSIVE]
    outside = mount.session.popen(*command, mount.root / "out", stdout=subprocess.PIPE)
    inside = [subprocess.Popen([*command, mount.at / "out"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(process.communicate(timeout=60)[0]) for process in (outside, *inside)) == 400


MAKES = r"""
import errno, os, sys
def tell(call, *words):
    try: call(*words)
    except FileExistsError: pass
    except OSError as error: print(call.__name__, errno.errorcode[error.errno], flush=True)
os.chdir(sys.argv[1])
open("source", "w").close()
for i in range(800):
    tell(os.mkdir, "name")
    tell(os.mknod, "name")
    tell(os.symlink, "target", "name")
    tell(os.link, "source", "name")
    tell(os.close, os.open("other", os.O_CREAT | os.O_RDWR))
print("done", os.stat("source").st_nlink <= 2)
"""
TAKES = r"""
import contextlib, os, sys
os.chdir(sys.argv[1])
while not os.path.exists("end"):
    for call, name in ((os.rmdir, "name"), (os.unlink, "name"), (os.unlink, "other")):
        with contextlib.suppress(OSError): call(name)
"""


def test_what_is_made_may_be_gone_when_the_kernel_is_told(mount):
    """The call made it, whatever another process did with it since."""
    taker = mount.session.popen(PYTHON, "-c", TAKES, mount.root / "out")
    said = run([PYTHON, "-c", MAKES, mount.at / "out"], timeout=240).check()
    (mount.at / "out" / "end").touch()
    assert taker.wait(60) == 0
    assert_equal_text(said, "done True\n")


def test_as_many_files_as_the_kernel_likes_with_few_descriptors(unmounted):
    unmounted.session.prefix = ["prlimit", "--nofile=500:500"]
    unmounted.mount().check()
    unmounted.session.prefix = []
    for i in range(1500):
        (unmounted.at / "out" / f"f{i}").write_text(str(i))
    assert sum(int((unmounted.at / "out" / f"f{i}").read_text()) for i in range(1500)) == sum(range(1500))
    assert len(os.listdir(f"/proc/{unmounted.server}/fd")) < 500


def test_a_file_is_closed_when_no_descriptor_is_left(unmounted):
    for i in range(500):
        (unmounted.root / "out" / f"d{i}").mkdir()
    unmounted.session.prefix = ["prlimit", "--nofile=400:400"]
    unmounted.mount().check()
    unmounted.session.prefix = []
    fd = os.open(unmounted.at / "out" / "f", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"words")
    with pytest.raises(OSError) as caught:
        for i in range(500):
            os.lstat(unmounted.at / "out" / f"d{i}")
    assert caught.value.errno == errno.EMFILE
    os.close(fd)


def handle_of(path):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 8 + 128)
    assert LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(ctypes.c_int()), 0) == 0, ctypes.get_errno()
    return handle


@pytest.mark.skipif(not IS_SUPERUSER, reason="needs to open by handle")
def test_the_handle_of_a_removed_file_is_no_other_files(mount):
    """The kernel's number of a file is used again, with another generation."""
    out, answers = mount.at / "out", set()
    directory = os.open(out, os.O_RDONLY)
    for i in range(20):
        (out / "first").write_text("first")
        handle = handle_of(out / "first")
        fd = LIBC.open_by_handle_at(directory, handle, os.O_RDONLY)
        assert os.read(fd, 10) == b"first"
        os.close(fd)
        (out / "first").unlink()
        for j in range(40):
            (out / f"other{j}").write_text("other")
        fd = LIBC.open_by_handle_at(directory, handle, os.O_RDONLY)
        answers.add(os.read(fd, 10) if fd >= 0 else errno.errorcode[ctypes.get_errno()])
        for j in range(40):
            (out / f"other{j}").unlink()
    os.close(directory)
    assert answers == {"ESTALE"}


# Ends


def test_a_server_that_is_killed(mount):
    (mount.at / "out" / "f").write_text("kept")
    fd = os.open(mount.at / "out" / "f", os.O_RDWR)
    os.kill(mount.server, signal.SIGKILL)
    wait_until(lambda: not is_running(mount.server))
    writes = [] if PASSES else [lambda: os.write(fd, b"lost")]
    for call in (lambda: os.stat(mount.at / "out"), lambda: os.listdir(mount.at), *writes, lambda: os.fsync(fd), lambda: os.close(fd)):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    one_sentence(mount.mount(), mount.at, "shunt umount")
    mount.umount().check()
    mount.mount().check()
    assert (mount.at / "out" / "f").read_text() == "kept"


def test_a_mount_in_use_stays_until_it_is_free(mount):
    with open(mount.at / "f", "w") as file:
        one_sentence(mount.umount(), mount.at, "in use")
        file.write("still")
    mount.umount().check()
    assert not is_mounted(mount.at) and os.listdir(mount.at) == []
    assert mount.session.exec("cat", mount.root / "f").check() == "still"
    one_sentence(mount.umount(), mount.at, "not a mount")


def test_a_mount_is_reached_by_a_link_to_it(unmounted, area):
    (area / "link").symlink_to("mount")
    (area / "other").symlink_to(area / "link")
    (area / "round").symlink_to("round")
    at, tool = unmounted.at, unmounted.session.tool
    tool("mount", "--log", unmounted.log, unmounted.root, area / "other").check()
    unmounted.server = unmounted.find_server()
    os.kill(unmounted.server, signal.SIGKILL)
    tool("umount", area / "other").check()
    assert not is_mounted(at)
    one_sentence(tool("umount", area / "link"), area / "link", "not a mount")
    one_sentence(tool("umount", area / "round"), area / "round", "Too many levels")


@pytest.mark.parametrize("is_told", [False, True], ids=["by itself", "told to"])
def test_a_server_ends_with_the_last_mount_name_space_or_when_it_is_told_to(mount, request, is_told):
    (mount.at / "f").write_text("seen")
    elsewhere = request.getfixturevalue("mounts")  # has a copy of the mount
    mount.umount().check()
    assert not is_mounted(mount.at) and os.listdir(mount.at) == []
    assert elsewhere("cat", mount.at / "f").check() == "seen" and is_running(mount.server)
    os.kill(mount.server if is_told else elsewhere.pid, signal.SIGTERM)
    wait_until(lambda: not is_running(mount.server))


def test_a_server_that_is_told_to_end(unmounted):
    tool = unmounted.session
    words = [tool.shunt.path, "mount", "--foreground", unmounted.root, unmounted.at]
    server = subprocess.Popen(words, env=environment(SHUNT_RUN_DIR=tool.run_base, SHUNT_NODE="n1"), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: is_mounted(unmounted.at))
    (unmounted.at / "f").write_text("1")
    server.terminate()
    assert server.wait(30) == 0 and server.stderr.read() == ""
    assert not is_mounted(unmounted.at)


def test_a_server_that_is_told_to_end_as_it_begins_to_wait(unmounted, area):
    late = area / "late"
    unmounted.mount(LD_PRELOAD=BUILD / "tests" / "node" / "processes" / "liblate_wait.so", LATE_WAIT=late).check()
    wait_until(late.exists)
    os.kill(unmounted.server, signal.SIGTERM)
    wait_until(lambda: pending_signals(unmounted.server) == {0})
    late.unlink()
    wait_until(lambda: not is_running(unmounted.server))
    assert not is_mounted(unmounted.at)


def test_a_daemon_that_crashes_beneath(mount):
    (mount.at / "out" / "before").write_text("1")
    mount.session.crash_daemon()
    (mount.at / "out" / "after").write_text("2")
    assert sorted(os.listdir(mount.at / "out")) == ["after", "before"]
    mount.umount().check()
    assert mount.session.names("out") == ["after", "before"]


OPENAT = {"x86_64": 257, "aarch64": 56}


def threads_in(call):
    """How many of this process are in that system call."""
    lines = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/syscall")]
    return sum(line.split()[0] == str(call) for line in lines)


@pytest.mark.skipif(os.uname().machine not in OPENAT, reason="the number of openat(2) is known for x86_64 and aarch64 alone")
def test_calls_that_wait_for_the_daemon_hold_up_no_others(mount):
    out, count = mount.at / "out", 40
    for i in range(count):  # in one directory the kernel makes files one by one
        (out / f"d{i}").mkdir()
        (out / f"d{i}" / "f").write_text("text")
    with open(out / "d0" / "f") as file, concurrent.futures.ThreadPoolExecutor(count) as pool:
        with standing_still(mount.session.daemon()):
            making = [pool.submit(os.open, out / f"d{i}" / "new", os.O_CREAT | os.O_WRONLY) for i in range(count)]
            wait_until(lambda: threads_in(OPENAT[os.uname().machine]) == count)
            started = time.monotonic()
            assert os.pread(file.fileno(), 4, 0) == b"text"
            assert time.monotonic() - started < 10 and not [call for call in making if call.done()]
        for call in making:
            os.close(call.result())


def test_a_daemon_that_is_started_again_just_then(unmounted):
    """Between its crash and the start of another one, the root is mounted to be written, too."""
    daemon = unmounted.session.daemon()
    supervisor, = supervisor_of(daemon)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with standing_still(supervisor):
            os.kill(daemon, signal.SIGKILL)
            wait_until(lambda: not is_running(daemon))
            mounting = pool.submit(unmounted.mount)
            wait_until(lambda: unmounted.find_server() is not None or mounting.done())
        done = mounting.result()
    assert done.check() == "" and done.err == ""
    (unmounted.at / "out" / "f").write_text("1")
    assert unmounted.session.names("out") == ["f"]


def test_a_session_that_ends_beneath(mount):
    (mount.at / "out" / "f").write_text("1")
    mount.session.stop().check()
    with pytest.raises(OSError) as caught:
        (mount.at / "out" / "g").write_text("2")
    assert caught.value.errno == errno.EIO
    assert str(mount.root) in mount.log.read_text()
    assert not list(mount.root.rglob("g"))
    mount.session.start().check()
    (mount.at / "out" / "h").write_text("3")
    assert sorted(os.listdir(mount.at / "out")) == ["f", "h"]
    mount.session.stop().check()
    mount.session.shunt("export", mount.root).check()
    (mount.at / "out" / "i").write_text("4")  # of a plain directory
    assert sorted(os.listdir(mount.root / "out")) == ["f", "h", "i"]
    mount.umount().check()


def test_a_mount_is_known_whatever_the_options_call_it(unmounted):
    unmounted.mount("-o", "subtype=other,fsname=name").check()
    assert is_mounted(unmounted.at)
    unmounted.umount().check()


def test_what_the_kernel_refuses_when_it_is_mounted(unmounted):
    """libfuse sees only by its first request that it cannot have this."""
    done = unmounted.mount("-o", "max_read=4096")
    assert done.status == 2 and "these options cannot be used: max_read=4096" in done.err and not is_mounted(unmounted.at)
    wait_until(lambda: unmounted.find_server() is None)


def test_where_nothing_can_be_mounted(unmounted, area):
    root, tool = unmounted.root, unmounted.session.tool
    for at in (root, root / "out", area):
        one_sentence(tool("mount", root, at), at, "apart from the root")
    one_sentence(tool("mount", root, area / "none"), "none", "No such file")
    (area / "file").touch()
    one_sentence(tool("mount", root, area / "file"), "file", "Not a directory")
    if not IS_SUPERUSER:
        one_sentence(tool("mount", "-o", "ro,allow_other", root, unmounted.at), "allow_other", "root")
    one_sentence(tool("mount", root), "a root and a directory")
    one_sentence(tool("mount", root, unmounted.session.run_base), "run directory")
    one_sentence(tool("mount", "--log", area / "none" / "log", root, unmounted.at), "none/log", "--log")
    one_sentence(tool("umount", area), "not a mount")
    assert not is_mounted(unmounted.at)
    unmounted.mount("--log", unmounted.at / "log").check()  # below the mount from then on
    one_sentence(tool("mount", root, unmounted.at), "already")
    assert os.listdir(unmounted.at) == ["out"]


# Without a session of one's own


def test_a_kept_root_is_read_from_disk_and_followed(session, area):  # noqa: F811: the fixture
    def under_shunt(script):
        session.tool("run", "--root", session.root, "--placement", "branch", "--keep", "--", "bash", "-euc", script,
                     cwd=session.root).check()

    under_shunt("for i in $(seq 300); do echo $i >out/f$i; done; mkdir out/d; ln -s ../f1 out/d/link; chmod 640 out/f2; echo x >top")
    at = area / "mount"
    at.mkdir()
    mount = Mount(session, at, area / "log")
    try:
        assert "to be read only" in mount.mount().err
        listed = sorted(os.listdir(at / "out"))
        assert listed == sorted(["d", *(f"f{i}" for i in range(1, 301))]) and sorted(os.listdir(at)) == ["out", "top"]
        assert [(at / "out" / f"f{i}").read_text() for i in (1, 2, 300)] == ["1\n", "2\n", "300\n"]
        assert (at / "out" / "d" / "link").read_text() == "1\n" and stat.S_IMODE((at / "out" / "f2").stat().st_mode) == 0o640
        for own in (".shunt", "out/.shunt-dir", "out/none"):
            assert not os.path.lexists(at / own)
        for call in (lambda: (at / "out" / "f1").write_text(""), lambda: (at / "new").mkdir(), lambda: (at / "top").unlink(),
                     lambda: os.chmod(at / "top", 0o600)):
            with pytest.raises(OSError) as caught:
                call()
            assert caught.value.errno == errno.EROFS
        under_shunt("rm out/f1; mv out/f2 out/moved; echo new >out/d/new; echo longer >out/f300")
        assert (at / "out" / "moved").exists() and not (at / "out" / "f1").exists()
        assert (at / "out" / "d" / "new").exists() and (at / "out" / "f300").read_text() == "longer\n"
        assert "moved" in os.listdir(at / "out") and "f1" not in os.listdir(at / "out")
        session.shunt("export", session.root).check()
        assert len(os.listdir(at / "out")) == 300 and (at / "out" / "f9").read_text() == "9\n"
    finally:
        mount.end()


@pytest.mark.parametrize("pause", [0, 0.005, 0.06], ids=["young", "in a tick", "proven"])
def test_what_comes_and_goes_on_disk_is_seen_at_once(from_disk, pause):
    """What is known of a directory holds as long as its times do, which a change within a tick of the clock leaves as they are."""
    leaf, = from_disk.root.glob(".shunt/b/*/out-*/0")
    from_disk.mount()
    for place in (leaf, from_disk.root / "out") * 20:
        assert not (from_disk.at / "out" / "new").exists()
        time.sleep(pause)
        assert not (from_disk.at / "out" / "new").exists()
        (place / "new").touch()
        assert (from_disk.at / "out" / "new").exists()
        (place / "new").unlink()


def test_what_is_read_from_disk_is_not_written_whatever_the_options_say(from_disk):
    at = from_disk.at
    assert "to be read only" in from_disk.mount("-o", "rw").err
    for call in (lambda: (at / "out" / "x").write_text("changed"), lambda: (at / "new").touch(), lambda: (at / "out" / "x").unlink()):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EROFS
    assert os.listdir(at) == ["out"] and (at / "out" / "x").read_text() == ""


REWINDS = r"""
import ctypes, pathlib, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
for f in (libc.readdir, libc.rewinddir): f.argtypes = [ctypes.c_void_p]
stream = libc.opendir(sys.argv[1].encode())
for name in ("before", "between"):
    pathlib.Path(sys.argv[2], name).touch()
    libc.rewinddir(stream)
    names = []
    while entry := libc.readdir(stream): names.append(ctypes.string_at(entry + 19).decode())
    print(*sorted(names))
"""


def test_a_directory_that_is_read_again_from_disk(from_disk):
    """Also where nothing of it has been read yet."""
    from_disk.mount()
    said = run([PYTHON, "-c", REWINDS, from_disk.at / "out", from_disk.root / "out"]).check()
    assert_equal_text(said, ". .. before x\n. .. before between x\n")


@pytest.mark.skipif(not IS_SUPERUSER, reason="needs to be another user")
def test_another_user_reads_what_the_permissions_allow_and_writes_what_is_its_own(everybodys, mounts):  # noqa: F811: the fixture
    # A device that is everybody's, as udev makes it.
    device = everybodys / "dev"
    device.mkdir()
    mounts("mount", "-t", "tmpfs", "-o", "mode=755,dev", "none", device).check()
    mounts("sh", "-c", f"mknod -m 666 {device}/fuse c 10 229; mount --bind {device}/fuse /dev/fuse").check()
    (everybodys / "build" / "tools" / "mount").mkdir()
    shutil.copy(SERVER, everybodys / "build" / "tools" / "mount")
    at = everybodys / "mount"
    at.mkdir()
    os.chown(at, NOBODY, NOBODY)
    mine, theirs = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run"), as_nobody(everybodys)
    theirs.prefix = [*mounts.prefix, *theirs.prefix]
    mount = Mount(theirs, at, everybodys / "run" / "log")

    def nobody(*command):
        return run([*theirs.prefix, *command])

    try:
        mine.start().check()
        mine.exec("sh", "-c", "cd $SHUNT_ROOT/out; echo all >all; echo own >own; chmod 600 own").check()
        done = mount.mount()
        assert done.status == 0 and "to be read only" in done.err, done.err
        assert nobody("cat", at / "out" / "all").check() == "all\n" and nobody("ls", at / "out").check() == "all\nown\n"
        assert "Permission denied" in nobody("cat", at / "out" / "own").err
        assert "Read-only" in nobody("touch", at / "out" / "new").err
        assert "Permission denied" in mounts("ls", at).err  # FUSE lets only nobody in
        mount.umount().check()
        mine.exec("rm", mine.root / "out" / "own", mine.root / "out" / "all").check()
        mine.stop().check()
        mine.shunt("export", mine.root).check()
        os.chown(theirs.root, NOBODY, NOBODY)
        theirs.start().check()
        mount.mount().check()
        nobody("sh", "-c", f"cd {at}; umask 027; echo words >out/file; ln out/file out/linked; mkdir d").check()
        assert nobody("stat", "-c", "%u %a %h", at / "out" / "file").check() == f"{NOBODY} 640 2\n"
        assert theirs.exec("cat", theirs.root / "out" / "linked").check() == "words\n"
        mount.umount().check()
    finally:
        if mount.server:
            end_mount_server(mount.server)
        mine.stop()
        theirs.stop()


def test_a_mount_to_read(unmounted):
    unmounted.mount("-o", "ro").check()
    with pytest.raises(OSError) as caught:
        (unmounted.at / "f").write_text("")
    assert caught.value.errno == errno.EROFS and os.listdir(unmounted.at) == ["out"]


# For others

SEVERAL = pytest.mark.skipif(not IS_SUPERUSER, reason="needs to be several users")

OTHERS = r"""
exec 2>&1; umask 022; one="setpriv --reuid=65534 --regid=65534 --clear-groups"; two="setpriv --reuid=65533 --regid=65533 --groups=1234"
told() { local out status; out=$("$@" 2>&1); status=$?; echo "$*: ${out##*: } $status"; }
show() { stat -c '%n %u %g %a %s' "$@"; }
mkdir -m 1777 open; mkdir -m 2775 team; chgrp 1234 team; mkdir -m 700 own; mkdir -m 711 way; echo in >way/known
$one sh -c 'umask 027; echo one >open/one; mkdir open/d; ln -s one open/link; ln open/one open/second; mkfifo -m 600 open/pipe'
$two sh -c 'echo two >open/two; echo team >team/file; mkdir team/d'; show open/* team/*
told $two rm -f open/one; told $two mv open/one open/mine; told $two cat open/one; told $one cat open/one; told $one touch way/new
told $two ln open/one open/third; told $one ls way; told $one cat way/known; told $one ls own; told $one touch own/f; told $one touch f
told $two sh -c 'echo to >open/pipe'; told $one chmod 4755 open/two; told $two chmod 2755 open/two; show open/two
told $one chown 65533 open/one; told $two chgrp 1234 open/two; told $one chgrp 1234 open/one; show open/*
echo shared >g; chgrp 1234 g; chmod 640 g; told $two cat g; told $one cat g; setfacl -m u:65534:rw g; told $one cat g; told $one sh -c 'echo more >>g'
chmod 705 g; setfacl -b g; chmod 705 g; told $two cat g; told $one cat g; told $two test -r g; told $one test -r g; told $one test -w g
setfacl -d -m u:65533:rwx open; $one sh -c 'umask 0; echo x >open/inherits'; getfacl -pcn open/inherits
for mode in 4777 2777 6755; do echo set >bits; chmod $mode bits; show bits; told $one sh -c 'echo w >>bits'; echo by root >>bits; show bits; done
chmod 6777 bits; told $one truncate -s 1 bits; show bits; told $one chmod 777 bits; told $one chown 65534 bits; rm bits
cp /bin/true run; chmod 711 run; told $one sh -c ./run; chmod 750 run; told $one sh -c ./run; chgrp 1234 run; told $two sh -c ./run; chmod 640 run; told $two sh -c ./run
mkdir -m 777 in; (cd in; chmod 700 .; told $one stat -c %F ..); told $one setfattr -n user.a -v b g; told $one setfattr -n user.a -v b open/one
told $one getfattr -h --only-values -n user.a open/one; told $two getfattr -h --only-values -n user.a open/one
told $one touch -d 2001-02-03 open/two; told $one touch open/two; chmod 666 open/two; told $one touch open/two; told $one touch -a open/two
told $two rmdir open/d; told $two touch open/d/x; told $one rm -r open/d open/pipe open/link open/second; told $two mv open/two team/; show open/* team/*
"""


@pytest.fixture
def others(everybodys):  # noqa: F811: the fixture
    """A mount of root's that is for all."""
    session = Session(Shunt(BUILD), everybodys / "root", everybodys / "run")
    at = everybodys / "mount"
    at.mkdir()
    made = Mount(session, at, everybodys / "log")
    session.start().check()
    yield made
    made.end()
    session.stop()


@pytest.mark.unsanitized  # what looks for leaks traces its process, which may not be traced once it was another user
@SEVERAL
def test_others_have_their_own_rights_and_no_more(others):
    others.mount("-o", "allow_other,suid").check()
    plain, seen = others.at.parent / "plain", others.at / "out" / "plain"
    plain.mkdir()
    seen.mkdir()
    native, got = (run(["bash", "-uc", OTHERS], cwd=root, timeout=240).check() for root in (plain, seen))
    assert_equal_text(native, got)
    assert "Permission denied" in got and "Operation not permitted" in got
    assert_equal_snapshots(snapshot(plain), snapshot(seen))


@pytest.mark.unsanitized  # as above
@SEVERAL
def test_others_outlive_a_crash_of_the_daemon(others):
    """A thread that acts for another user may not open what is the daemon's."""
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c"]
    others.mount("-o", "allow_other").check()
    assert run([*nobody, "echo 1 >one; ls"], cwd=others.at / "out").check() == "one\n"
    others.session.crash_daemon()
    assert run([*nobody, "echo 2 >two; cat one two; mkdir d; ls"], cwd=others.at / "out").check() == "1\n2\nd\none\ntwo\n"
    assert others.session.names("out") == ["d", "one", "two"]


@SEVERAL
def test_others_need_a_session_of_roots(others):
    others.session.stop().check()
    one_sentence(others.mount("-o", "allow_other"), "session of root's")
    assert not is_mounted(others.at)
