# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Bad input and failure: each is a clear error, nothing crashes, nothing is lost, and nothing is created natively in
the wrong place."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import Shunt, assert_plain, environment, redirected_files, run
from union_on_disk import Union

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534
IS_SUPERUSER = os.geteuid() == 0


def one_sentence(result, *words):
    """A failure that says what is wrong, in one line, with these words in it."""
    assert result.status not in (0, None) and result.status != -signal.SIGSEGV, result
    assert result.err.count("\n") == 1 and "shunt" in result.err, result.err
    for word in words:
        assert str(word) in result.err, result.err
    return result.err


class Session:
    """A session in pieces: start, exec, stop, with a run directory of its own."""

    def __init__(self, shunt, root, run_base, placement="branch", prefix=()):
        self.shunt, self.root, self.run_base, self.placement = shunt, root, run_base, placement
        self.prefix = list(prefix)

    def tool(self, *words, **options):
        return run([*self.prefix, self.shunt.path, *words], SHUNT_RUN_DIR=self.run_base, SHUNT_NODE="n1", **options)

    def start(self, **options):
        return self.tool("start", "--root", self.root, "--placement", self.placement, **options)

    def stop(self):
        return self.tool("stop", "--root", self.root)

    def exec(self, *command, **options):
        return self.tool("exec", "--root", self.root, "--", *command, timeout=60, **options)

    def popen(self, *command, **options):
        words = [*self.prefix, self.shunt.path, "exec", "--root", self.root, "--", *command]
        return subprocess.Popen(list(map(str, words)), env=environment(SHUNT_RUN_DIR=self.run_base, SHUNT_NODE="n1"),
                                text=True, **options)

    def names(self, directory):
        """The names of a directory as the shim lists them, and as the tool reads them from disk: they agree."""
        live = sorted(self.exec("ls", "-A", self.root / directory).check().split("\n")[:-1])
        assert live == self.shunt("ls", "-a", "-1", self.root / directory).check().split("\n")[2:-1]
        return live

    def holder(self):
        lines = (self.root / ".shunt" / "session" / "holder").read_text().splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def daemon(self):
        return int(self.holder()["pid"])

    def run_dir(self):
        return pathlib.Path(self.holder()["run"])

    def kill_daemon(self):
        pid = self.daemon()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid))


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def is_untouched(root):
    return not list(pathlib.Path(root).iterdir())


@pytest.fixture
def run_base():
    """Where the node-local files of this test's daemons go."""
    directory = tempfile.mkdtemp(prefix="shunt-test.", dir="/dev/shm")
    yield pathlib.Path(directory)
    shutil.rmtree(directory)


@pytest.fixture
def session(shunt, root, run_base):
    """A session that is not started yet; stopped after the test, whatever became of it."""
    made = Session(shunt, root, run_base)
    (root / "out").mkdir()
    yield made
    made.stop()


@pytest.fixture
def started(session):
    session.start().check()
    return session


# Roots that are none


@pytest.mark.parametrize("command", [["start"], ["run"], ["exec"]])
@pytest.mark.parametrize("name, sentence", [("none", "does not exist"), ("file", "not a directory"),
                                            ("none/below", "does not exist"), ("dangling", "does not exist")])
def test_a_root_that_is_none(shunt, area, command, name, sentence):
    (area / "file").write_text("precious")
    (area / "dangling").symlink_to("nowhere")
    more = [] if command == ["start"] else ["--", "touch", area / "made"]
    one_sentence(shunt(*command, "--root", area / name, *more), name)
    assert sorted(path.name for path in area.iterdir()) == ["dangling", "file"]
    assert (area / "file").read_text() == "precious"


@pytest.mark.parametrize("name, sentence", [("none", "does not exist"), ("file", "is not a directory"),
                                            ("x" * 300, "cannot be opened"), ("y/" * 2500, "too long")])
def test_the_daemon_itself_refuses_a_root_that_is_none(build, area, name, sentence):
    (area / "file").write_text("")
    one_sentence(run([build / "daemon" / "shuntd", "--root", area / name]), sentence)


def test_a_root_inside_another_root(session, shunt):
    session.start().check()
    inner = Session(shunt, session.root / "out", session.run_base)
    one_sentence(inner.start(), "inside another root")
    one_sentence(shunt.run(session.root / "out", ["touch", session.root / "out" / "made"]), "inside another root")
    assert is_untouched(session.root / "out")


# File systems that will not do


@pytest.fixture
def mounts(area):
    """A mount name space in which to mount: gives a function that runs a command in it and shows it as a prefix."""
    own = [] if IS_SUPERUSER else ["--user", "--map-root-user"]
    keeper = subprocess.Popen(["unshare", *own, "--mount", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
    keeper.stdout.readline()
    enter = [] if IS_SUPERUSER else ["--user", "--preserve-credentials"]
    made = Mounts(["nsenter", "--target", str(keeper.pid), *enter, "--mount"], keeper.pid)
    yield made
    keeper.kill()
    keeper.wait()


class Mounts:
    def __init__(self, prefix, pid):
        self.prefix, self.pid = prefix, pid

    def __call__(self, *command, timeout=60):
        return run([*self.prefix, *command], timeout=timeout)

    def seen(self, path):
        """A path of the name space, for this process."""
        return pathlib.Path(f"/proc/{self.pid}/root{path}")


@pytest.fixture
def odd_file_system(mounts, root):
    """odd_file_system(oddity) mounts a FUSE file system of that kind over the root."""
    servers = []

    def mount(oddity):
        server = subprocess.Popen([*mounts.prefix, PYTHON, HERE / "odd_file_system.py", oddity, root],
                                  stdout=subprocess.PIPE)
        servers.append(server)
        assert server.stdout.readline() == b"serving\n"

    yield mount
    for server in servers:
        mounts("umount", "--lazy", root)
        server.kill()
        server.wait()


@pytest.mark.parametrize("oddity, sentence", [("nolinks", "without hard links"), ("unstable", "not stable")])
def test_a_file_system_that_will_not_do(shunt, root, run_base, mounts, odd_file_system, oddity, sentence):
    odd_file_system(oddity)
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    one_sentence(session.start(), sentence)
    assert mounts("ls", "-A", root).check() == "", "the refused start left something behind"


def test_a_file_system_that_will_do(shunt, root, run_base, mounts, odd_file_system):
    """The same server without its oddity: it is the oddity that is refused."""
    odd_file_system("none")
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    session.stop().check()


def tmpfs(mounts, path, size):
    path.mkdir(exist_ok=True)
    mounts("mount", "-t", "tmpfs", "-o", f"size={size}", "none", path).check()


def test_a_read_only_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "4m")
    mounts("mkdir", root / "out").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    mounts("mount", "-o", "remount,ro", root).check()
    one_sentence(session.start(), "read-only")
    mounts("mount", "-o", "remount,rw", root).check()
    assert mounts("ls", "-A", root).check() == "out\n"
    session.start().check()
    session.exec("touch", root / "out" / "before").check()
    mounts("mount", "-o", "remount,ro", root).check()
    for command in ("touch", "rm", "mkdir"):
        name = "before" if command == "rm" else "new"
        result = session.exec(command, root / "out" / name)
        assert result.status == 1 and "Read-only file system" in result.err
    assert session.exec("ls", root / "out").check() == "before\n"
    mounts("mount", "-o", "remount,rw", root).check()
    session.exec("touch", root / "out" / "new").check()
    assert session.exec("ls", root / "out").check() == "before\nnew\n"
    session.stop().check()


FILL = r"""
import errno, os, sys
made, directory = [], sys.argv[1]
try:
    for i in range(100000):
        with open(f"{directory}/f{i}", "xb", buffering=0) as file:
            made.append(f"f{i}")
            file.write(b"x" * 4096)
except OSError as error:
    print(errno.errorcode[error.errno])
listed = sorted(os.listdir(directory))
assert listed == sorted(made), (len(listed), len(made))
os.unlink(f"{directory}/f0")
open(f"{directory}/again", "x").close()
print(len(made))
"""


def test_a_full_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "2m")
    mounts("mkdir", root / "out").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    said = session.exec(PYTHON, "-c", FILL, root / "out").check().split()
    assert said[0] == "ENOSPC" and int(said[1]) > 100
    session.stop().check()
    mounts("sh", "-c", f"rm {root}/.shunt/b/n1.1/*/*/f1 && dd if=/dev/zero of={root}/fill bs=4k; true").check()
    session.start()
    assert len(session.exec("ls", root / "out").out.split()) in (0, int(said[1]) - 1)
    session.stop()
    mounts("rm", "-f", root / "fill").check()
    run([*mounts.prefix, shunt.path, "export", root]).check()
    assert len(mounts("ls", root / "out").check().split()) == int(said[1]) - 1


def test_a_start_on_a_full_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "1m")
    mounts("sh", "-c", f"dd if=/dev/zero of={root}/fill bs=4k; true").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    one_sentence(session.start(), "No space left")
    assert mounts("ls", "-A", root).check() == "fill\n"


def test_a_run_directory_that_is_too_small(shunt, root, area, mounts):
    tmpfs(mounts, area / "small", "1m")
    session = Session(shunt, root, area / "small", prefix=mounts.prefix)
    one_sentence(session.start(), "No space left", area / "small")
    assert redirected_files(root) == [] and not (root / ".shunt" / "session" / "holder").exists()


MANY = r"""
import sys
for i in range(int(sys.argv[2])):
    open(f"{sys.argv[1]}/name-{i}", "x").close()
    print(i, flush=True)
"""


def test_a_run_directory_that_gets_full(shunt, root, area, mounts):
    """The index cannot grow: the daemon ends, and whoever asks it is told; what was made is there."""
    tmpfs(mounts, area / "small", "256m")
    (root / "out").mkdir()
    session = Session(shunt, root, area / "small", prefix=mounts.prefix)
    session.start().check()
    session.exec("touch", root / "out" / "first").check()
    mounts("sh", "-c", f"dd if=/dev/zero of={area}/small/fill bs=64k; true").check()
    result = session.exec(PYTHON, "-c", MANY, root / "out", "20000")
    assert result.status == 1 and "Input/output error" in result.err and "cannot be used" in result.err
    made = {f"name-{i}" for i in result.out.split()}
    assert {path.name for path in (root / "out").iterdir()} == {".shunt-dir"}
    mounts("rm", area / "small" / "fill").check()
    session.stop()
    session.start().check()
    listed = set(session.exec("ls", root / "out").check().split())
    assert made | {"first"} <= listed and len(listed) <= len(made) + 2
    session.stop().check()


# Sessions of somebody else


def test_a_session_of_another_host(session, shunt):
    Union(session.root).hold(host="login7")
    before = (session.root / ".shunt" / "session" / "holder").read_text()
    words = ("somebody", "login7", "since 2023-11-14 22:13:20 UTC")
    one_sentence(session.start(), *words)
    one_sentence(session.tool("run", "--root", session.root, "--", "touch", session.root / "out" / "x"), *words)
    result = session.exec("touch", session.root / "out" / "x")
    assert result.status == 1 and "Input/output error" in result.err
    assert is_untouched(session.root / "out")
    assert (session.root / ".shunt" / "session" / "holder").read_text() == before
    (session.root / ".shunt" / "session" / "holder").unlink()


def test_a_session_that_lives_on_this_host(started):
    words = ("holds it on host", f"process {started.daemon()}", "since 20", "shunt exec")
    one_sentence(started.start(), *words)
    one_sentence(started.tool("run", "--root", started.root, "--", "touch", started.root / "out" / "x"), *words)
    assert is_untouched(started.root / "out")
    started.exec("touch", started.root / "out" / "x").check()


@pytest.fixture
def everybodys(build):
    """A place that every user reaches, with the parts of shunt and a root that every user may write to."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shunt-test.", dir="/dev/shm"))
    directory.chmod(0o755)
    for part in ("tools/shunt", "daemon/shuntd", "lib/shim/libshunt_preload.so"):
        (directory / "build" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / part, directory / "build" / part)
    for name in ("root", "root/out", "run"):
        (directory / name).mkdir()
        (directory / name).chmod(0o1777)
    yield directory
    shutil.rmtree(directory)


def as_nobody(directory):
    return Session(Shunt(directory / "build"), directory / "root", directory / "run",
                   prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"])


if IS_SUPERUSER:

    def test_a_session_of_another_user(everybodys):
        mine = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run")
        theirs = as_nobody(everybodys)
        mine.start().check()
        mine.exec("sh", "-c", f"echo words >{mine.root}/out/file").check()
        assert redirected_files(mine.root)
        words = ("a session of root holds it on host", socket.gethostname(), "since 20")
        one_sentence(theirs.start(), *words)
        one_sentence(theirs.tool("run", "--root", theirs.root, "--", "touch", theirs.root / "out" / "x"), *words)
        result = theirs.exec("touch", theirs.root / "out" / "x")
        assert result.status == 1 and "cannot be used" in result.err and "Input/output error" in result.err
        assert theirs.tool("stop", "--root", theirs.root).status == 1 and is_running(mine.daemon())
        # Reading is for everyone.
        assert theirs.tool("ls", theirs.root / "out").check() == "file\n"
        where = theirs.tool("where", theirs.root / "out" / "file").check().strip()
        assert run([*theirs.prefix, "cat", where]).check() == "words\n"
        assert mine.names("out") == ["file"]
        mine.stop().check()

    def test_a_session_directory_that_cannot_be_read(everybodys):
        mine = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run")
        theirs = as_nobody(everybodys)
        mine.start().check()
        mine.stop().check()
        (mine.root / ".shunt" / "session").chmod(0)
        one_sentence(theirs.start(), mine.root, "Permission denied")
        result = theirs.exec("touch", theirs.root / "out" / "x")
        assert result.status == 1 and "Input/output error" in result.err
        assert is_untouched(mine.root / "out")


def test_a_holder_that_is_none(session):
    Union(session.root)
    (session.root / ".shunt" / "session" / "holder").write_text("shunt-session 1\nid 12")
    one_sentence(session.start(), session.root)
    assert is_untouched(session.root / "out")
    (session.root / ".shunt" / "session" / "holder").unlink()
    session.start().check()


# Daemons that are not there


def test_no_daemon(session):
    (session.root / "out" / "there").write_text("words")
    for command in (["touch", "new"], ["cat", "there"], ["rm", "there"], ["mv", "there", "moved"], ["mkdir", "new"],
                    ["ln", "-s", "there", "new"], ["ls"]):
        result = session.exec(*command, cwd=session.root / "out")
        assert result.status != 0 and "Input/output error" in result.err
        assert result.err.count("cannot be used: no daemon serves it") == 1, result.err
    assert [path.name for path in (session.root / "out").iterdir()] == ["there"]
    assert [path.name for path in session.root.iterdir()] == ["out"], "exec left something behind"


CREATES = r"""
import errno, os, sys
directory = sys.argv[1]
for i in range(10**9):
    while True:
        try:
            os.close(os.open(f"{directory}/f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError as error:
            if error.errno == errno.EEXIST:
                break
            print(errno.errorcode[error.errno], flush=True)
            if not sys.stdin.readline():
                sys.exit(0)
            continue
        break
    print(f"f{i}", flush=True)
"""


def read_lines(stream, stop):
    """The lines up to the one that `stop` accepts, that one included."""
    lines = []
    while not lines or not stop(lines):
        line = stream.readline()
        assert line, f"it ended after {lines[-3:]}"
        lines.append(line.strip())
    return lines


def test_a_daemon_that_is_killed(started):
    """It fails closed at once; after another start the same process goes on, and nothing is lost."""
    process = started.popen(PYTHON, "-c", CREATES, started.root / "out", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    made = read_lines(process.stdout, lambda lines: len(lines) == 200)
    began = time.monotonic()
    started.kill_daemon()
    made += read_lines(process.stdout, lambda lines: not lines[-1].startswith("f"))
    assert made.pop() == "EIO" and time.monotonic() - began < 5
    on_disk = {os.path.basename(path) for path in redirected_files(started.root)}
    assert set(made) <= on_disk and len(on_disk) <= len(made) + 1
    assert [path.name for path in (started.root / "out").iterdir()] == [".shunt-dir"], "created in the trunk"
    started.start().check()
    process.stdin.write("\n")
    process.stdin.flush()
    made += read_lines(process.stdout, lambda lines: len(lines) == 200)
    process.kill()
    process.wait()
    assert process.stderr.read().count("its daemon on this node has ended") == 1
    listed = started.names("out")
    assert set(made) <= set(listed) and len(listed) <= len(made) + 1
    started.stop().check()
    started.shunt("export", started.root).check()
    assert_plain(started.root)
    assert {path.name for path in (started.root / "out").iterdir()} == set(listed)


def test_a_dead_session_is_taken_over_by_run(started):
    started.exec("touch", started.root / "out" / "before").check()
    started.kill_daemon()
    started.tool("run", "--root", started.root, "--placement", "branch", "--", "touch", started.root / "out" / "after").check()
    assert_plain(started.root)
    assert sorted(path.name for path in (started.root / "out").iterdir()) == ["after", "before"]


def test_a_daemon_that_is_killed_under_run(shunt, root, run_base):
    """run ends with the command's status, and exports what is there."""
    kill = f"echo 1 >{root}/a; kill -9 $(sed -n 's/^pid //p' {root}/.shunt/session/holder); echo 2 >{root}/b; exit 3"
    session = Session(shunt, root, run_base)
    helper = run_base / "kill"
    helper.write_text(f"#!/bin/sh\nkill -9 $(sed -n 's/^pid //p' {root}/.shunt/session/holder)\n")
    helper.chmod(0o755)
    script = f"echo 1 >{root}/a; env -u LD_PRELOAD -u SHUNT_ROOT {helper}; echo 2 >{root}/b; exit 3"
    pid_of = f"LD_PRELOAD= SHUNT_ROOT= {helper}"
    result = session.tool("run", "--root", root, "--placement", "branch", "--", "bash", "-c",
                          f"shuntd=$(cat {run_base}/pid); echo 1 >{root}/a; kill -9 $shuntd; sleep 0.2; "
                          f"echo 2 >{root}/b; exit 3") if (run_base / "pid").exists() else None
    del kill, script, pid_of, result
