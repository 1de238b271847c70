# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A system call of the helper of a statically linked program fails once: each of a kind in turn. The program's call does what it is
for, or fails and has no effect; it does not go on in the trunk alone, and nothing waits for good."""

import errno
import json
import os
import pathlib
import platform
import resource
import select
import signal
import stat
import subprocess

import pytest

from conftest import PYTHON, environment, redirected_files, run, wait_until
from daemons import standing_still
from test_static import BUSYBOX, EIO, helpers, linked

# The helper makes its calls through the library, and is no place for another one.
pytestmark = pytest.mark.unsanitized

PATIENCE = 60  # seconds, for an answer
TRIES = 40


class Asked:
    """A program under shunt that is told its calls."""

    def __init__(self, program, shunt, root, within):
        command = [*within, shunt.path, "run", "--root", root, "--placement", "branch", "--keep", "--", program]
        self.root, self.out = root, root / "out"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root,
                                        env=environment())

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "it waits for good"
        return self.process.stdout.readline().decode().strip()

    def __call__(self, *words):
        self.tell(*words)
        return self.hear()

    def end(self):
        """What it said."""
        self.process.stdin.close()
        said = self.process.stderr.read().decode()
        assert self.process.wait(60) == 0, said
        return said


@pytest.fixture
def asked(shunt, root, area):
    program = linked(area, "asked.c", "-static")
    running = []

    def begin(*within):
        running.append(Asked(program, shunt, root, within))
        assert running[0]("mkdir", running[0].out) == "done"
        assert running[0]("make", running[0].out / "first") == "done"
        (area / "to").symlink_to(running[0].out)
        return running[0]

    yield begin
    for one in running:
        one.process.stdin.close()
        one.process.wait(60)
    wait_until(lambda: not helpers(root))


def children_of(pid):
    """And theirs."""
    children = list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return children + [further for child in children for further in children_of(child)]


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


class Injected:
    """One process, with all of its threads; or it is looked at alone."""

    def __init__(self, pid, log, *words):
        self.log = log
        log.unlink(missing_ok=True)
        self.strace = subprocess.Popen(["strace", "-f", "-o", log, "-p", str(pid), *words], stderr=subprocess.PIPE)
        wait_until(lambda: self.has_all(pid))

    def has_all(self, pid):
        return all(f"TracerPid:\t{self.strace.pid}\n" in open(f"/proc/{pid}/task/{tid}/status").read() for tid in os.listdir(f"/proc/{pid}/task"))

    def end(self):
        """Did one fail?"""
        self.strace.send_signal(signal.SIGINT)
        self.strace.wait(30)
        self.strace.stderr.close()
        return "(INJECTED)" in self.log.read_text(errors="replace")


def seen_by(asked):
    """Names of the union; of files, those that are in the trunk."""
    names = {os.path.basename(path) for path in redirected_files(asked.root)}
    in_trunk = {path.name for path in asked.out.iterdir() if path.name != ".shunt-dir" and path.is_file()}
    return names | {path.name for path in asked.out.iterdir()}, in_trunk


WORDS = ["make", "exclusive", "read", "stat", "list", "mkdir", "unlink", "rename"]
NOTHING = {"read", "stat", "list"}


def each(asked, area, kind, call, error):
    """(what was called, its answer before, its answer with a failure, whether it had an effect) until none fails."""
    directory = {"absolute": asked.out, "relative": ".", "by a link": area / "to"}[kind]
    assert asked("go", asked.out if kind == "relative" else "/") == "done"
    for word in WORDS:
        for number in range(1, TRIES):
            name, other = f"{word}-{call}-{error}-{number}", f"other-{word}-{call}-{error}-{number}"
            if word in ("unlink", "rename", "read", "stat"):
                assert asked("make", asked.out / name) == "done"
            [(_, server)] = helpers(asked.root)
            injected = Injected(server, area / "log", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}")
            path = directory if word == "list" else f"{directory}/{name}"
            answer = asked(word, path, *([f"{directory}/{other}"] if word == "rename" else []))
            if not injected.end():
                break
            names, in_trunk = seen_by(asked)
            assert in_trunk == set(), (word, number, answer)
            yield word, number, answer, {"unlink": name not in names, "rename": other in names and name not in names}.get(word, name in names)
        assert number < TRIES - 1, "or this does not show all"


ALL = ["absolute", "relative", "by a link"]
CALLS = {"process_vm_readv": ALL, "process_vm_writev": ALL, "openat": ALL, "openat2": ALL, "readlink,readlinkat": ["relative", "by a link"],
         "statx": ALL, "pread64": ["absolute"], "pidfd_open": ["absolute"], "pidfd_getfd": ["relative"], "prlimit64": ["absolute"],
         "statfs,fstatfs": ["by a link"], "epoll_ctl": ["absolute"]}


@pytest.mark.parametrize("call, kind", [(call, kind) for call, kinds in CALLS.items() for kind in kinds])
def test_a_call_of_the_helper_that_fails(asked, area, call, kind):
    program, count = asked(), 0
    for word, number, answer, has_effect in each(program, area, kind, call, "EIO"):
        count += 1
        if answer.endswith("done"):
            assert has_effect or word in NOTHING, (word, number)
        else:
            assert answer == EIO, (word, number, answer)
            assert not has_effect or word in NOTHING, (word, number)
    assert count > 0
    program.end()


def test_the_listener_breaks_off(asked, area):
    """With EINTR, while the helper is stopped or frozen: nothing is lost of the question or of the answer."""
    program, count = asked(), 0
    for _, number, answer, has_effect in each(program, area, "absolute", "ioctl", "EINTR"):
        count += 1
        assert answer.endswith("done"), (number, answer)
    assert count > len(WORDS)
    assert program.end() == ""


@pytest.mark.parametrize("word", ["exclusive", "make"])
def test_no_descriptor_is_free_any_more(asked, area, word):
    """There was one when the helper looked. Natively the file is not made: of one that was to be the program's alone, as a lock,
    nothing is left."""
    program = asked()
    [(_, server)] = helpers(program.root)
    [asking] = [pid for pid in children_of(program.process.pid) if name_of(pid) == "program"]
    injected = Injected(server, area / "log", "-e", "trace=prlimit64", "-e", "inject=prlimit64:signal=SIGSTOP:when=1")
    program.tell(word, program.out / "late")
    wait_until(lambda: "stopped by SIGSTOP" in (area / "log").read_text())
    limits = resource.prlimit(asking, resource.RLIMIT_NOFILE)
    resource.prlimit(asking, resource.RLIMIT_NOFILE, (3, limits[1]))
    os.kill(server, signal.SIGCONT)
    assert program.hear() == "Too many open files"
    injected.end()
    resource.prlimit(asking, resource.RLIMIT_NOFILE, limits)
    assert ("late" in seen_by(program)[0]) == (word == "make")
    assert program(word, program.out / "late") == "done" and program("unlink", program.out / "late") == "done"
    assert program.end() == ""


def is_decided(log):
    """A further thread has gone, or does a call itself."""
    return "(INJECTED)" in log and ("+++ exited" in log or log.count("umask(") == 3)


def test_threads_that_would_share_a_umask(asked, area, shunt):
    """As in a container that denies unshare(2): what one call sets is not another's."""
    program = asked()
    [(_, server)] = helpers(program.root)
    daemon = json.loads(run([shunt.path, "status", "--json", "--root", program.root]).check())[0]["pid"]
    injected = Injected(server, area / "log", "-e", "trace=unshare,umask", "-e", "inject=unshare:error=EPERM")
    with standing_still(daemon):
        program.tell("umasks", program.out)
        wait_until(lambda: [name_of(pid) for pid in children_of(program.process.pid) if state_of(pid) == "S"].count("program") == 4)
        wait_until(lambda: is_decided((area / "log").read_text()))
    assert program.hear() == "done"
    injected.end()
    assert {mask: stat.S_IMODE((program.out / mask).stat().st_mode) for mask in ("022", "027", "077")} == {"022": 0o755, "027": 0o750, "077": 0o700}
    program.end()


DENY = """
import ctypes, os, struct, sys
libc, number, error = ctypes.CDLL(None), int(sys.argv[1]), int(sys.argv[2])
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
NO_PROCESS, HAS_ENDED = "not served, since no process can be started for it", "cannot be executed: its helper has ended"
NUMBERS = {"x86_64": 0, "aarch64": 1}
DENIED = {"clone": ((56, 220), NO_PROCESS), "socketpair": ((53, 199), NO_PROCESS), "close_range": ((436, 436), NO_PROCESS),
          "dup3": ((292, 24), NO_PROCESS), "sendmsg": ((46, 211), HAS_ENDED), "recvmsg": ((47, 212), HAS_ENDED),
          "pipe2": ((293, 59), HAS_ENDED), "epoll_create1": ((291, 20), HAS_ENDED), "unshare": ((272, 97), ""),
          "process_vm_readv": ((310, 270), f"cannot be executed: {EIO}"), "pidfd_open": ((434, 434), "")}


@pytest.mark.skipif(platform.machine() not in NUMBERS, reason="numbers of calls")
@pytest.mark.parametrize("call", DENIED)
def test_a_helper_that_cannot_begin(shunt, root, call):
    """Each call of that name fails, as in a container that denies it: it is said before the program begins, and no call ends with
    ENOSYS."""
    numbers, words = DENIED[call]
    number = numbers[NUMBERS[platform.machine()]]
    script = f"echo hot >file; exec {PYTHON} -c \"$1\" {number} {errno.ENOMEM} {BUSYBOX} cat {root}/file"
    result = shunt.run(root, ["sh", "-c", script, "sh", DENY], cwd=root)
    lines = [line for line in result.err.splitlines() if line.startswith("shunt: ")]
    assert "not implemented" not in result.err
    if words == "":
        assert (result.check(), lines) == ("hot\n", [])
    else:
        assert result.status != 0 and result.out == "" and [line for line in lines if words in line], result
    wait_until(lambda: not helpers(root))


def test_a_helper_that_cannot_be_followed(asked, area):
    """It has used half of the processor time that it may, and no process can be started: calls fail, and it is said why."""
    program = asked("prlimit", "--cpu=2:2")
    [(guard, server)] = helpers(program.root)
    injected = Injected(guard, area / "log", "-e", "trace=clone,clone3", "-e", "inject=clone,clone3:error=EAGAIN")
    answers = [program("many", program.out)]
    while answers[-1] == "done" and len(answers) < 1000:
        answers.append(program("many", program.out))
    assert answers[-1] == EIO and program("stat", program.out) == EIO
    assert injected.end()
    assert "the helper of statically linked programs has ended, so that their calls on paths fail with EIO (" in program.end()
