# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the tests of one node share: running a program natively and under shunt, and comparing what is left.

SHUNT_BUILD names the build directory (default: build/ of this repository). SHUNT_TEST_DIR names a directory on
the file system under test (default: pytest's temporary directory)."""

import contextlib
import difflib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))  # of who loads this file by its path

from daemons import is_running, stand_still, standing_still, supervisor_of, wait_until

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
IS_SUPERUSER = os.geteuid() == 0

# Settings of the one who runs the tests that would change what the programs under test do.
FOREIGN_ENVIRONMENT = re.compile(
    r"^(SHUNT_|LD_PRELOAD$|GIT_|MAKE|MFLAGS$|LS_COLORS$|BLOCK_SIZE$|DU_BLOCK_SIZE$|PYTEST_)")

# Daemons that a test crashes leave no logs in the home directory.
NOWHERE = "/proc/nowhere"

# A job in the background is started with SIGINT ignored, one of nohup's with SIGHUP, and would give that on to every
# program of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def environment(**settings):
    """The environment of every program that a test starts."""
    kept = {key: value for key, value in os.environ.items() if not FOREIGN_ENVIRONMENT.match(key)}
    # Nobody joins a session of one node; a daemon that may be joined loads libraries for a third of a second.
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SHUNT_FABRIC": "none", "SHUNT_LOG_DIR": NOWHERE,
            **{key: str(value) for key, value in settings.items()}}


@dataclass
class Result:
    """How a command ended; check() gives its output, or shows all of it."""

    command: list
    status: int
    out: str
    err: str

    def check(self, status=0):
        assert self.status == status, (
            f"status {self.status}, not {status}, of: {' '.join(map(str, self.command))}\n"
            f"--- standard output\n{self.out[-6000:]}\n--- standard error\n{self.err[-6000:]}"
        )
        return self.out


def run(command, timeout=120, cwd=None, **settings):
    """Runs a command to its end. After `timeout` seconds it is killed with its children; check() then fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=err, cwd=cwd, env=environment(**settings), start_new_session=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            status = f"none after {timeout} s (killed)"
            process.wait()
        texts = [stream.seek(0) or stream.read().decode(errors="replace") for stream in (out, err)]
    return Result(list(command), status, *texts)


class Shunt:
    """The shunt command of the build under test."""

    def __init__(self, build):
        self.path = build / "tools" / "shunt"

    def __call__(self, *words, timeout=120, cwd=None, **settings):
        return run([self.path, *words], timeout=timeout, cwd=cwd, **settings)

    def run(self, root, command, placement="branch", keep=False, **options):
        flags = ["--placement", placement, *(["--keep"] if keep else [])]
        return self("run", "--root", root, *flags, "--", *command, **options)


@contextlib.contextmanager
def mounted(at, *mkfs):
    """A new file system at the existing directory `at`, made by the command `mkfs`; its image is in memory."""
    if not IS_SUPERUSER:
        pytest.skip("file systems are mounted by root")
    image = pathlib.Path("/dev/shm") / f"shunt-test.{os.getpid()}.image"
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    run([*mkfs, image]).check()
    run(["mount", "-o", "loop", image, at]).check()
    image.unlink()
    yield at
    run(["umount", "-l", at]).check()


@dataclass(frozen=True)
class Entry:
    """One name in a directory tree, as far as two runs of a program must agree on it."""

    type: str
    mode: int
    links: int
    size: int
    content: str
    mtime: int

    def __str__(self):
        mtime = "" if self.mtime is None else f" mtime {self.mtime / 1e9:.9f}"
        return f"{self.type} {self.mode:04o} links {self.links} size {self.size}{mtime} {self.content}".rstrip()


TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket", stat.S_IFBLK: "block", stat.S_IFCHR: "character"}


def kill_daemon(pid):
    """Nobody starts another one."""
    ends = [*supervisor_of(pid), pid]
    for process in ends:
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, ends)))


def content_of(path, kind, root):
    """What a file holds, or a link points to, with the root's own path replaced by ROOT."""
    if kind == "link":
        return "-> " + os.readlink(path).replace(str(root), "ROOT")
    if kind != "file":
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read().replace(os.fsencode(root), b"ROOT")).hexdigest()


def describe(path, root, times, content):
    st = os.lstat(path)
    kind = TYPES[stat.S_IFMT(st.st_mode)]
    # A directory's size and number of links are the file system's own business.
    is_directory = kind == "directory"
    return Entry(
        type=kind,
        mode=stat.S_IMODE(st.st_mode),
        links=0 if is_directory else st.st_nlink,
        size=0 if is_directory or not content else st.st_size,
        content=content_of(path, kind, root) if content else "",
        mtime=st.st_mtime_ns if times else None,
    )


def snapshot(root, times=False, any_content=()):
    """{relative path: Entry} of all below a plain directory. With times, modification times too, also of
    directories. Files whose relative path matches a pattern in any_content may differ in size and content."""
    found = {}
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            free = any(re.fullmatch(pattern, relative) for pattern in any_content)
            found[relative] = describe(path, root, times, content=not free)
    return found


def assert_equal_snapshots(native, shunt):
    """Fails with the entries that differ: - as the native run left them, + as the run under shunt left them."""
    different = sorted(name for name in native.keys() | shunt.keys() if native.get(name) != shunt.get(name))
    trees = (("-", native), ("+", shunt))
    lines = [f"{sign} {name}: {tree[name]}" for name in different[:40] for sign, tree in trees if name in tree]
    assert not different, f"{len(different)} names differ (- native, + shunt):\n" + "\n".join(lines)


def assert_equal_text(native, shunt):
    lines = native.splitlines(), shunt.splitlines()
    diff = list(difflib.unified_diff(*lines, "native", "shunt", lineterm="", n=1))
    assert not diff, "outputs differ:\n" + "\n".join(diff[:80])


def redirected_files(root):
    """The paths of the files that lie in some branch of a root: the proof that shunt did something."""
    return [os.path.join(directory, name)
            for directory, _, names in os.walk(pathlib.Path(root) / ".shunt" / "b") for name in names if name != "catalogue"]


class BranchWatch:
    """Looks whether a file was ever in a branch of this root, for programs that remove all they made."""

    def __init__(self, root):
        self.root = root
        self.seen = False
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.seen and not self.done.wait(0.01):
            self.seen = bool(redirected_files(self.root))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def assert_plain(root):
    """Nothing of shunt is left in a directory."""
    left = [str(path) for path in pathlib.Path(root).rglob(".shunt*")]
    assert not left, f"left behind by the export: {left[:10]}"


@dataclass
class Pair:
    """The same commands in two plain directories, natively in one and under shunt in the other. The paths have
    the same length, since some programs leave traces of it."""

    shunt_command: Shunt
    native: pathlib.Path
    shunt: pathlib.Path
    placement: str = "branch"

    def settings(self, root, settings):
        return {"cwd": root, "ROOT": root, **settings}

    def both(self, script, timeout=240, redirects=True, **settings):
        """Runs a shell script in both, $ROOT and the working directory being the root, and keeps the files
        redirected. Gives the two standard outputs, each with its root's path replaced by ROOT. `redirects` asks
        for proof that files of this root are or were in a branch."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        native = run(command, timeout, **self.settings(self.native, settings)).check()
        with BranchWatch(self.shunt) as watch:
            shunt = self.shunt_command.run(self.shunt, command, self.placement, keep=True, timeout=timeout,
                                           **self.settings(self.shunt, settings)).check()
        if redirects and not watch.seen:
            assert redirected_files(self.shunt), "no file was redirected: the test shows nothing"
        return native.replace(str(self.native), "ROOT"), shunt.replace(str(self.shunt), "ROOT")

    def export(self):
        self.shunt_command("export", self.shunt, timeout=240).check()
        assert_plain(self.shunt)

    def assert_equal(self, times=False, any_content=()):
        """Exports, then compares the two directories."""
        self.export()
        assert_equal_snapshots(*(snapshot(root, times, any_content) for root in (self.native, self.shunt)))


def make_pair(shunt, parent, placement="branch"):
    pair = Pair(shunt, parent / "plain", parent / "shunt", placement)
    pair.native.mkdir()
    pair.shunt.mkdir()
    return pair


@pytest.fixture(scope="session")
def go_program(tmp_path_factory):
    """What makes, walks, renames and removes files by Go's own system calls: statically linked."""
    program = tmp_path_factory.mktemp("go") / "files"
    cache = {} if "HOME" in os.environ else {"GOCACHE": str(program.parent / "cache")}
    subprocess.run(["go", "build", "-o", program, pathlib.Path(__file__).with_name("go") / "files.go"],
                   env={**os.environ, "CGO_ENABLED": "0", **cache}, check=True)
    return program


def pytest_addoption(parser):
    parser.addoption("--moments", type=int, default=25, help="at how many moments a command is interrupted (test_interrupted.py)")


def pytest_configure(config):
    config.addinivalue_line("markers", "unsanitized: runs what cannot bear a preloaded ASan library: gcc 12 crashes; other "
                            "allocators, emptied environments, small stacks")
    config.addinivalue_line("markers", "large: works on a source tree of more than 10,000 files")
    config.addinivalue_line("markers", "xdist_group(name): share something that is made once")


def pytest_collection_modifyitems(items):
    """Where tests are shared out among several processes: those that need the source tree follow each other in one of them,
    from the beginning, since they last."""
    for item in items:
        if item.get_closest_marker("large"):
            item.add_marker(pytest.mark.xdist_group("source"))
    items.sort(key=lambda item: item.get_closest_marker("large") is None)


@pytest.fixture(scope="session")
def build():
    directory = pathlib.Path(os.environ.get("SHUNT_BUILD", REPOSITORY / "build")).resolve()
    assert (directory / "tools" / "shunt").exists(), f"build first: there is no {directory}/tools/shunt"
    return directory


@pytest.fixture(scope="session")
def shunt(build):
    return Shunt(build)


@pytest.fixture(scope="session")
def test_directory(tmp_path_factory):
    """A fresh directory on the file system under test."""
    if "SHUNT_TEST_DIR" not in os.environ:
        yield tmp_path_factory.mktemp("shunt")
        return
    directory = tempfile.mkdtemp(prefix="shunt-test.", dir=os.environ["SHUNT_TEST_DIR"])
    yield pathlib.Path(directory).resolve()
    shutil.rmtree(directory)


@pytest.fixture
def area(test_directory):
    """A directory of this test's own, removed after it."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=test_directory))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def root(area):
    """A fresh directory to be a root."""
    directory = area / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def pair(shunt, area):
    """Two fresh directories: for a native run, and for one under shunt with placement branch."""
    return make_pair(shunt, area)


@pytest.fixture
def native_and_shunt(shunt, area):
    """native_and_shunt(script, placement="branch", times=False, any_content=(), **settings): runs a script
    natively and under shunt, demands equal directories after the export, and returns both standard outputs."""

    def compare(script, placement="branch", times=False, any_content=(), **settings):
        pair = make_pair(shunt, area, placement)
        outputs = pair.both(script, redirects=placement == "branch", **settings)
        pair.assert_equal(times, any_content)
        return outputs

    return compare


@pytest.fixture
def run_base():
    """Where the node-local files of this test's daemons go."""
    directory = tempfile.mkdtemp(prefix="shunt-test.", dir="/dev/shm")
    yield pathlib.Path(directory)
    shutil.rmtree(directory)


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
