# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What there is too little of: space, inodes, quota, room for the index, memory, descriptors, places on the channel. Each is
the error that a native program would get, or a clear one; and when the cause is gone, work goes on, and nothing is lost
or in the wrong place. (File systems that are read-only or full, and starts on them, are in test_failures.py, too.)"""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import redirected_files, run
from test_failures import (IS_SUPERUSER, PYTHON, Session, is_running, session, started,  # noqa: F401: fixtures
                           tmpfs, wait_until)

pytestmark = pytest.mark.skipif(not IS_SUPERUSER, reason="limits are set and lifted by root")

# Says how every call goes, in the directory that it is handed.
CALLS = r"""
import errno, os, sys
directory = sys.argv[1]
os.chdir(directory)
def write(name, flags, size):
    fd = os.open(name, flags)
    try:
        return os.write(fd, b"x" * size) + os.write(fd, b"x" * size)
    finally:
        os.close(fd)
calls = [
    ("create", lambda: os.close(os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))),
    ("create again", lambda: os.close(os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))),
    ("create within", lambda: os.close(os.open("sub/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))),
    ("mkdir", lambda: os.mkdir("made")),
    ("symlink", lambda: os.symlink("nowhere", "pointing")),
    ("link", lambda: os.link("a", "linked")),
    ("mkfifo", lambda: os.mkfifo("fifo")),
    ("rename onto none", lambda: os.rename("b", "renamed")),
    ("rename onto one", lambda: os.rename("c", "d")),
    ("open", lambda: os.close(os.open("a", os.O_RDWR))),
    ("read", lambda: len(open("a", "rb").read())),
    ("write", lambda: write("a", os.O_WRONLY | os.O_APPEND, 100000)),
    ("truncate", lambda: os.truncate("a", 3)),
    ("chmod", lambda: os.chmod("a", 0o640)),
    ("utime", lambda: os.utime("a", (1, 1))),
    ("setxattr", lambda: os.setxattr("a", "user.x", b"y")),
    ("list", lambda: sorted(os.listdir("."))),
    ("list within", lambda: sorted(os.listdir("sub"))),
    ("unlink", lambda: os.unlink("e")),
    ("unlink none", lambda: os.unlink("e")),
    ("rmdir", lambda: os.rmdir("empty")),
]
for name, call in calls:
    try:
        print(name, call())
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""

PREPARE = "mkdir -p sub empty; for i in a b c d e f g; do echo $i >$i; done; touch sub/there"
PUT_RIGHT = "rm -rf new sub/new made pointing linked fifo renamed; mkdir -p empty; for i in b c d e; do echo $i >$i; done"


class Twins:
    """A native directory and a root on file systems of the same kind, each limited in the same way."""

    def __init__(self, shunt, area, run_base, mounts, options):
        self.mounts, self.native, self.root = mounts, area / "native", area / "root"
        for path in (self.native, self.root):
            path.mkdir(exist_ok=True)
            mounts("mount", "-t", "tmpfs", "-o", options, "none", path).check()
            mounts("mkdir", path / "out").check()
        self.session = Session(shunt, self.root, run_base, prefix=mounts.prefix)
        self.session.start().check()

    def both(self, *command):
        native = self.mounts("sh", "-c", 'cd "$0" && exec "$@"', self.native / "out", *command)
        shunt = self.session.exec("sh", "-c", 'cd "$0" && exec "$@"', self.root / "out", *command)
        return native, shunt

    def same(self, *command):
        native, shunt = self.both(*command)
        assert shunt.out == native.out and shunt.status == native.status, (native, shunt)
        return native.out

    def outside(self, script):
        """In both, by no process that shunt would know."""
        for path in (self.native, self.root):
            self.mounts("sh", "-c", f"cd {path}; {script}").check()


@pytest.fixture
def quick(shunt, run_base):
    """A session that is not started yet, on a file system that is quick to make many files on."""
    root = run_base / "root"
    for name in ("root", "root/out", "root/large"):
        (run_base / name).mkdir()
    made = Session(shunt, root, run_base)
    yield made
    made.stop()


def make_large(session, count):
    for i in range(count):
        os.close(os.open(session.root / "large" / f"{i:0240}", os.O_CREAT | os.O_WRONLY))


@pytest.fixture
def twins(shunt, area, run_base, mounts):
    made = []

    def make(options):
        made.append(Twins(shunt, area, run_base, mounts, options))
        return made[0]

    yield make
    for one in made:
        one.session.stop()


def all_goes_well(said):
    """Calls that failed, but for those that are to."""
    failed = re.findall(r"^(.*) (E[A-Z]+)$", said, re.MULTILINE)
    return [one for one in failed if one not in [("create again", "EEXIST"), ("unlink none", "ENOENT")]]


@pytest.mark.parametrize("options, limit, lift, error", [
    ("size=1m", "dd if=/dev/zero of=fill bs=4k 2>/dev/null; true", "rm fill", "ENOSPC"),
    ("size=8m,nr_inodes=60", "mkdir fill; cd fill; seq 100 | xargs touch 2>/dev/null; true", "rm -r fill", "ENOSPC"),
    ("size=8m", "mount -o remount,ro .", "mount -o remount,rw .", "EROFS"),
], ids=["full", "no inodes", "read-only"])
def test_a_file_system_that_has_no_more(twins, options, limit, lift, error):
    pair = twins(options)
    pair.same("sh", "-c", PREPARE)
    assert redirected_files(pair.mounts.seen(pair.root)), "nothing was redirected"
    pair.outside(limit)
    said = pair.same(PYTHON, "-c", CALLS, ".")
    assert (("create", error) in all_goes_well(said) or ("write", error) in all_goes_well(said)), said
    pair.outside(lift)
    pair.same("sh", "-c", PUT_RIGHT)
    assert all_goes_well(pair.same(PYTHON, "-c", CALLS, ".")) == []
    pair.session.stop().check()
    run([*pair.mounts.prefix, pair.session.shunt.path, "export", pair.root]).check()
    listings = [pair.mounts("sh", "-c", f"cd {path}/out && find . -printf '%p %y %s\n' | grep -v ' d ' | sort").check()
                for path in (pair.native, pair.root)]
    assert listings[0] == listings[1]


# Refused by a filter, as by a quota, while CALLS runs.
QUOTA = r"""
import ctypes, struct, sys
LOAD, EQUAL, SET, ANSWER, ALLOW, REFUSE = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x50000 | 122
openat, O_CREAT, *making = map(int, sys.argv[2:])
lines = [(LOAD, 0, 0, 0)]
for number in making:
    lines += [(EQUAL, 0, 1, number), (ANSWER, 0, 0, REFUSE)]
lines += [(EQUAL, 0, 3, openat), (LOAD, 0, 0, 16 + 8 * 2), (SET, 0, 1, O_CREAT), (ANSWER, 0, 0, REFUSE),
          (ANSWER, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
libc = ctypes.CDLL(None)
text = compile(CALLS, "calls", "exec")
filter = struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
exec(text)
"""
X86 = os.uname().machine == "x86_64"
# mkdir, link, symlink, mknod, as libc calls them and as shunt does.
NUMBERS = (257, os.O_CREAT, 83, 86, 88, 133, 258, 265, 266, 259) if X86 else (56, os.O_CREAT, 34, 37, 36, 33)


def test_a_quota_that_is_used_up(twins):
    pair = twins("size=8m")
    pair.same("sh", "-c", PREPARE)
    said = pair.same(PYTHON, "-c", f"CALLS = {CALLS!r}\n{QUOTA}", ".", *NUMBERS)
    refused = [call for call, error in all_goes_well(said) if error == "EDQUOT"]
    assert set(refused) == {"create", "create again", "create within", "mkdir", "symlink", "link", "mkfifo"}, said
    pair.same("sh", "-c", PUT_RIGHT)
    assert all_goes_well(pair.same(PYTHON, "-c", CALLS, ".")) == []


def test_the_daemon_can_make_no_leaf(started):
    """Refused by a quota, say: files are made in the trunk meanwhile, as without shunt."""
    (started.root / "later").mkdir()
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=mkdirat", "-e",
                               "inject=mkdirat:error=EDQUOT", "-p", str(started.daemon())])
    status = pathlib.Path(f"/proc/{started.daemon()}/status")
    wait_until(lambda: f"TracerPid:\t{tracer.pid}\n" in status.read_text())
    wait_until(lambda: all(f"TracerPid:\t{tracer.pid}\n" in (task / "status").read_text()
                           for task in (status.parent / "task").iterdir()))
    started.exec("touch", started.root / "out" / "x").check()
    assert redirected_files(started.root) == [] and started.names("out") == ["x"]
    tracer.terminate()
    tracer.wait()
    started.exec("touch", started.root / "later" / "x").check()
    assert len(redirected_files(started.root)) == 1 and started.names("later") == ["x"]


# The index

# How a call went.
OUTCOME = r"""
def outcome(call):
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
"""

MANY = OUTCOME + r"""
import errno, os, sys
directory, count = sys.argv[1], int(sys.argv[2])
os.chdir(directory)
made = []
def create(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    made.append(name)
for i in range(count):
    said = outcome(lambda: create(f"name-{i}"))
    if said != "ok":
        break
print(said, len(made))
print("stat", outcome(lambda: os.stat("name-0")))
print("none", outcome(lambda: os.stat("nothing")))
print("rename onto one", outcome(lambda: os.rename(made.pop(), "name-0")))
print("list", sorted(os.listdir(".")) == sorted(made + ["first"]))
for name in made[len(made) // 2:]:
    os.unlink(name)
del made[len(made) // 2:]
for i in range(len(made) // 2):
    said = outcome(lambda: create(f"again-{i}"))
    if said != "ok":
        break
print("again", said)
print("\n".join(made))
"""


def fill(mounts, directory):
    mounts("sh", "-c", f"dd if=/dev/zero of={directory}/fill bs=4k; true").check()


def test_a_run_directory_that_gets_full(quick, area, mounts):
    """The index cannot grow: new names are refused, the others can be used and removed, and their room is used again."""
    small = area / "small"
    tmpfs(mounts, small, "64m")
    make_large(quick, 10000)
    session, root = Session(quick.shunt, quick.root, small, prefix=mounts.prefix), quick.root
    session.start().check()
    session.exec("touch", root / "out" / "first").check()
    daemon = session.daemon()
    fill(mounts, small)
    said = session.exec(PYTHON, "-c", MANY, root / "out", 100000).check().split("\n")[:-1]
    error, count = said[0].split()
    assert error == "ENOSPC" and int(count) > 300
    assert said[1:6] == ["stat ok", "none ENOENT", "rename onto one ok", "list True", "again ok"], said[:6]
    result = session.exec("ls", root / "large")
    assert result.status != 0 and "No space left" in result.err, "a directory of 10000 names found room"
    assert is_running(daemon)
    mounts("rm", small / "fill").check()
    assert len(session.exec("ls", root / "large").check().split()) == 10000
    session.exec("touch", root / "out" / "last").check()
    listed = sorted(session.exec("ls", root / "out").check().split())
    assert listed == sorted([*said[6:], "first", "last"])
    assert session.daemon() == daemon and is_running(daemon)
    session.stop().check()
    assert sorted(quick.shunt("ls", "-1", root / "out").check().split()) == listed


# Processes that use the root at once, and stay; those that could not try again when they are told.
PROCESSES = OUTCOME + r"""
import errno, os, sys
directory, count = sys.argv[1], int(sys.argv[2])
def create(name):
    os.close(os.open(f"{directory}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
said, say = os.pipe()
wait, go_on = os.pipe()
children = []
for i in range(count):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(go_on)
        os.write(say, f"{outcome(lambda: create(i))}\n".encode())
        os.read(wait, 1)
        again = outcome(lambda: os.stat(f"{directory}/{i}"))
        os._exit(0 if again == "ok" or outcome(lambda: create(i)) == "ok" else 1)
told = os.fdopen(said)
print(*(told.readline().strip() for i in range(count)), flush=True)
input()
os.close(go_on)
print(*{os.waitpid(child, 0)[1] for child in children})
"""


def test_a_run_directory_without_room_for_more_processes(quick, area, mounts):
    """The first ones are served, others fail with EIO until there is room; no process, nor the daemon, gets a SIGBUS."""
    small = area / "small"
    tmpfs(mounts, small, "3m")
    session, root = Session(quick.shunt, quick.root, small, prefix=mounts.prefix), quick.root
    session.start().check()
    daemon = session.daemon()
    fill(mounts, small)
    many = session.popen(PYTHON, "-c", PROCESSES, root / "out", 100, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    said = many.stdout.readline().split()
    assert set(said) == {"ok", "EIO"} and 20 <= said.count("ok") <= 32, said
    mounts("rm", small / "fill").check()
    out, err = many.communicate("\n", timeout=60)
    assert out == "0\n", out
    assert "the run directory is full" in err, err
    assert session.daemon() == daemon and is_running(daemon)
    assert len(session.names("out")) == 100
    session.stop().check()


def test_a_daemon_with_a_limit_of_file_size(quick):
    """For good, and not by a signal. What does not fit is refused, the rest goes on."""
    make_large(quick, 90000)
    quick.prefix = ["prlimit", f"--fsize={36 << 20}:{36 << 20}"]
    quick.start().check()
    quick.prefix = []
    quick.exec("touch", quick.root / "out" / "x").check()
    result = quick.exec("ls", quick.root / "large")
    assert result.status != 0 and "No space left" in result.err, result.err
    assert quick.names("out") == ["x"]
    for i in range(2000, 90000):
        os.unlink(quick.root / "large" / f"{i:0240}")
    assert len(quick.exec("ls", quick.root / "large").check().split()) == 2000


# Memory


@pytest.mark.unsanitized
def test_a_program_with_little_address_space(quick):
    """What it maps of the index is as much as is used, and grows with it."""
    make_large(quick, 60000)
    quick.start().check()
    look = ("import os,sys; os.chdir(sys.argv[1]); open('out/x', 'x').close(); print(len(os.listdir('large'))); "
            "os.stat('large/' + '0' * 240); os.stat('out/x'); pid = os.fork()\n"
            "if pid == 0: os._exit(len(os.listdir('out')))\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    said = quick.exec("prlimit", f"--as={300 << 20}:{300 << 20}", PYTHON, "-c", look, quick.root).check()
    assert said == "60000\n1\n"
    assert (quick.run_dir() / "index").stat().st_size > 16 << 20, "it did not outgrow what was mapped at first"


DIRECTORIES = r"""
import errno, os, sys
os.chdir(sys.argv[1])
made = 0
try:
    for i in range(20000):
        os.mkdir(f"{i:0200}")
        os.close(os.open(f"{i:0200}/file", os.O_CREAT | os.O_WRONLY))
        made += 1
    print("no limit")
except OSError as error:
    print(errno.errorcode[error.errno])
print(made)
"""


@pytest.mark.unsanitized
def test_a_daemon_without_memory(quick):
    """Each directory that is known takes some."""
    quick.start().check()
    daemon = quick.daemon()

    def limit(words):
        run(["prlimit", "--pid", daemon, f"--as={words}"]).check()

    size = int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{daemon}/status").read_text())[1])
    limit(f"{(size << 10) + (6 << 20)}:unlimited")
    error, made = quick.exec(PYTHON, "-c", DIRECTORIES, quick.root / "out").check().split()
    assert error == "ENOMEM" and is_running(daemon)
    limit("unlimited:unlimited")
    quick.exec("touch", quick.root / "out" / "after").check()
    listed = quick.names("out")
    assert int(made) < len(listed) <= int(made) + 2 and "after" in listed
    files = quick.exec("find", quick.root / "out", "-name", "file").check().split()
    assert len(files) == int(made)
    assert quick.daemon() == daemon and is_running(daemon)


# Descriptors

DESCRIPTORS = OUTCOME + r"""
import errno, os, resource, sys
os.chdir(sys.argv[1])
os.listdir(".")
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
opened = []
def hold(name, flags):
    opened.append(os.open(name, flags))
while outcome(lambda: hold("a", os.O_RDONLY)) == "ok":
    pass
def calls():
    print("create", outcome(lambda: hold("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)), os.path.exists("new"))
    print("stat", outcome(lambda: os.stat("a")), outcome(lambda: os.stat("none")), outcome(lambda: os.stat("sub/there")))
    print("mkdir", outcome(lambda: os.mkdir("made")), outcome(lambda: os.symlink("x", "link")))
    print("rename", outcome(lambda: os.rename("b", "moved")), outcome(lambda: os.rename("c", "sub/moved")))
    print("link", outcome(lambda: os.link("a", "same")), outcome(lambda: os.unlink("same")))
    print("unlink", outcome(lambda: os.unlink("d")), outcome(lambda: os.unlink("d")))
    print("list", outcome(lambda: os.listdir(".")))
    print("chmod", outcome(lambda: os.chmod("e", 0o600)), outcome(lambda: os.utime("e")))
    print("rmdir", outcome(lambda: os.rmdir("made")), outcome(lambda: os.truncate("e", 1)))
calls()
for fd in opened:
    os.close(fd)
opened.clear()
calls()
print(sorted(os.listdir(".")), sorted(os.listdir("sub")))
"""


@pytest.mark.unsanitized
def test_a_program_without_descriptors(twins):
    pair = twins("size=8m")
    pair.same("sh", "-c", PREPARE)
    said = pair.same(PYTHON, "-c", DESCRIPTORS, ".")
    assert "create EMFILE False\nstat ok ENOENT ok\n" in said and "create ok True\n" in said


CLIENTS = r"""
import os, sys, time
os.chdir(sys.argv[1])
for i in range(60):
    if os.fork() == 0:
        os.close(os.open(f"client-{i}", os.O_CREAT | os.O_WRONLY))
        os.write(1, b"%d\n" % i)
        time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.unsanitized
def test_a_daemon_with_few_descriptors(session):
    """More clients than descriptors: they are served, and the end of each is noticed."""
    (session.root / "late").mkdir()
    session.prefix = ["prlimit", "--nofile=18:18"]
    session.start().check()
    session.prefix = []
    out = session.root / "out"
    clients = session.popen(PYTHON, "-c", CLIENTS, out, stdout=subprocess.PIPE, start_new_session=True)
    assert sorted(int(clients.stdout.readline()) for _ in range(60)) == list(range(60))
    assert len(session.names("out")) == 60
    session.exec("touch", session.root / "late" / "x").check()
    # Killed while it has reserved a name: nobody is told of its end, and yet it is settled.
    killer = ("import os,sys; os.chdir(sys.argv[1]); os.listdir('.'); "
              "sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.readline(); "
              "os.open('half', os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.kill(os.getpid(), 9)")
    half = session.popen(PYTHON, "-c", killer, out, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert half.stdout.readline() == "ready\n"
    tracer = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e",
                               "inject=openat:signal=KILL", "-p", str(half.pid)])
    wait_until(lambda: f"TracerPid:\t{tracer.pid}\n" in pathlib.Path(f"/proc/{half.pid}/status").read_text())
    half.stdin.write("\n")
    half.stdin.flush()
    assert half.wait(30) == -signal.SIGKILL
    tracer.wait()
    began = time.monotonic()
    session.exec("touch", out / "half").check()
    assert time.monotonic() - began < 20, "the end of the client was not noticed, its deadline was"
    os.killpg(clients.pid, signal.SIGKILL)
    clients.wait()
    assert len(session.names("out")) == 61


# The channel

CROWD = r"""
import errno, os, select, sys, time
os.chdir(sys.argv[1])
count = int(sys.argv[2])
said, told = os.pipe()
hold, release = os.pipe()
devnull = os.open("/dev/null", os.O_WRONLY)
for i in range(count):
    if os.fork() == 0:
        os.close(release)
        os.dup2(devnull, 2)
        try:
            os.close(os.open(f"name-{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.write(told, b".")
        except OSError as error:
            os.write(told, b"!" if error.errno == errno.EIO else b"?")
        os.read(hold, 1)
        os._exit(0)
answers = b""
while len(answers) < count:
    answers += os.read(said, count)
os.close(release)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print(answers.count(b"."), answers.count(b"!"), answers.count(b"?"))
"""


@pytest.mark.unsanitized
def test_more_processes_than_the_channel_has_queue_pairs(quick):
    """They are told; those that come when others have ended are not."""
    quick.start().check()
    out = quick.root / "out"
    well, refused, otherwise = map(int, quick.exec(PYTHON, "-c", CROWD, out, 2100).check().split())
    assert well >= 2000 and refused == 2100 - well and refused > 0 and otherwise == 0
    assert len(quick.names("out")) == well
    quick.exec("sh", "-c", f"rm {out}/*; touch {out}/after").check()
    assert quick.names("out") == ["after"]
