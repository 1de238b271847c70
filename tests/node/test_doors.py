# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Calls that concern more than one process, or a state of the session: sockets, events, names that libc makes up."""

import errno
import json
import os
import subprocess
import time

import pytest

from conftest import redirected_files
from test_failures import PYTHON, session, started, wait_until  # noqa: F401: fixtures

SOCKETS = r"""
import errno, os, socket, subprocess, sys

def attempt(call, *words):
    try:
        return call(*words) or "done"
    except OSError as error:
        return errno.errorcode[error.errno]

os.mkdir("out")
open("out/file", "w").close()
listener, second = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
print("where a file is:", attempt(listener.bind, "out/file"))
print("first:", attempt(listener.bind, "out/door"), listener.getsockname())
print("second:", attempt(second.bind, "out/door"))
listener.listen()
print("listed:", sorted(os.listdir("out")))
call = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('out/door'); print('by another:', s.recv(9))"
caller = subprocess.Popen([sys.executable, "-c", call])
listener.accept()[0].sendall(b"welcome")
print("called:", caller.wait())
os.rename("out/door", "out/gate")
print("renamed:", attempt(second.connect, "out/door"), attempt(second.connect, "out/gate"))
os.unlink("out/gate")
print("left:", sorted(os.listdir("out")))
print("again:", attempt(socket.socket(socket.AF_UNIX).bind, "out/gate"))
print("a file instead:", attempt(os.open, "out/gate", os.O_CREAT | os.O_EXCL))
print("abstract:", attempt(socket.socket(socket.AF_UNIX).bind, b"\0shunt-test-%d" % os.getpid()))
"""


def test_sockets_between_processes(native_and_shunt):
    native, shunt = native_and_shunt(f'{PYTHON} -c "$SOCKETS"', timeout=60, SOCKETS=SOCKETS)
    assert native == shunt
    assert "by another: b'welcome'" in native and "listed: ['door', 'file']" in native


# Events

WATCH = r"""
import ctypes, os, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
if libc.inotify_add_watch(fd, os.fsencode(sys.argv[1]), 0x3C6) < 0:
    sys.exit(ctypes.get_errno())
if len(sys.argv) > 2:
    subprocess.run(sys.argv[2:], check=True)
try:
    events = os.read(fd, 65536)
except BlockingIOError:
    events = b""
while events:
    _, mask, _, length = struct.unpack_from("iIII", events)
    print(hex(mask), events[16:16 + length].rstrip(b"\0").decode())
    events = events[16 + length:]
"""


MTIME = "import os, sys; print(os.stat(sys.argv[1]).st_mtime_ns)"
CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE


def watch(started, directory, *command, status=0):  # noqa: F811
    return started.exec(PYTHON, "-c", WATCH, started.root / directory, *command).check(status)


def test_creates_of_another_process_are_reported(started):  # noqa: F811
    out = started.root / "out"
    started.exec("touch", out / "before").check()
    assert len(redirected_files(started.root)) == 1
    seen = watch(started, "out", "sh", "-c", f"echo hello >{out}/born; mv {out}/born {out}/moved; rm {out}/moved")
    assert seen.splitlines() == ["0x100 born", "0x2 born", "0x40 born", "0x80 moved", "0x200 moved"]
    started.exec("touch", out / "after").check()
    assert (out / "after").exists() and (out / "before").exists() and not redirected_files(started.root)


def test_files_that_are_there_already_are_reported(started):  # noqa: F811
    """They move to the trunk when the watch begins, all of them and not those of other directories."""
    out, other = started.root / "out", started.root / "other"
    names = [f"file-{number}" for number in range(300)]
    started.exec("mkdir", other).check()
    started.exec("touch", *(directory / name for directory in (out, other) for name in names)).check()
    assert len(redirected_files(started.root)) == 600
    seen = watch(started, "out", "sh", "-c", f"for i in {' '.join(names)}; do echo >>{out}/$i; done")
    assert seen.splitlines() == [f"0x2 {name}" for name in names]
    assert len(redirected_files(started.root)) == 300
    assert started.names("out") == sorted(names)


def test_status_says_that_a_directory_is_watched(started):  # noqa: F811
    watch(started, "out")
    watch(started, ".")
    said = started.tool("status", "--root", started.root).check()
    assert "out: new files stay in the trunk, a program watches the directory" in said
    told = json.loads(started.tool("status", "--json", "--root", started.root).check())
    assert "watched" in json.dumps(told)


def test_a_directory_made_later_is_another_one(started):  # noqa: F811
    watch(started, "out", "mkdir", started.root / "out" / "sub")
    started.exec("touch", started.root / "out" / "sub" / "file").check()
    assert len(redirected_files(started.root)) == 1


def test_a_new_name_of_an_older_file_is_reported(started):  # noqa: F811
    out = started.root / "out"
    started.exec("touch", out / "before", out / "other").check()
    seen = watch(started, "out", "mv", out / "before", out / "renamed")
    assert "0x80 renamed" in seen.splitlines()
    assert (out / "renamed").exists()
    assert started.names("out") == ["other", "renamed"]


def test_a_directory_is_settled_before_it_is_watched(started):  # noqa: F811
    """What happened in its mirrors before is in its times then: to write it later would be an event."""
    out = started.root / "out"
    started.exec("touch", out / "marks-it").check()
    wait_until(lambda: time.clock_gettime_ns(CLOCK_OF_FILES) > out.stat().st_mtime_ns)
    started.exec("touch", out / "before").check()
    assert len(redirected_files(started.root)) == 2
    watch(started, "out")
    assert int(started.exec(PYTHON, "-c", MTIME, out).check()) == out.stat().st_mtime_ns


def test_a_redirected_file_is_watched_itself(started):  # noqa: F811
    file = started.root / "out" / "file"
    started.exec("touch", file).check()
    assert len(redirected_files(started.root)) == 1
    seen = watch(started, "out/file", "sh", "-c", f"echo hello >>{file}; rm {file}")
    assert [line.strip() for line in seen.splitlines()] == ["0x2", "0x4", "0x8000"][:len(seen.splitlines())]
    assert seen.startswith("0x2 ")


# Without a daemon


def test_without_a_daemon(started):  # noqa: F811
    """What would make a name, or must be known to the daemon, fails; what only the trunk can hold goes on."""
    out = started.root / "out"
    bind = f"import os, socket; os.chdir('{out}'); socket.socket(socket.AF_UNIX).bind('door')"
    started.exec("touch", out / "file").check()
    script = f"echo ready; read word; {PYTHON} -c '{WATCH}' {started.root}; echo $?; {PYTHON} -c \"{bind}\" 2>&1 | tail -1"
    program = started.popen("sh", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    assert program.stdout.readline() == "ready\n"
    started.kill_daemon()
    said, _ = program.communicate("go\n", timeout=60)
    assert said.splitlines() == [str(errno.EIO), f"OSError: [Errno {errno.EIO}] {os.strerror(errno.EIO)}"]
    assert not (out / "door").exists()


# Where libc is not what it is elsewhere


@pytest.fixture
def with_stand_in(build, started):  # noqa: F811
    """Runs a Python program with stand_in.c between the shim and libc."""
    behind = f'LD_PRELOAD="$LD_PRELOAD:{build}/tests/node/stand_in.so" exec {PYTHON} -c "$@"'

    def run_it(*words, **settings):
        return started.exec("sh", "-c", behind, "sh", *words, **settings).check()

    return run_it


TEMPNAM = "import ctypes; f = ctypes.CDLL(None).tempnam; f.restype = ctypes.c_char_p; print(f(None, None))"


def test_tempnam_proposes_no_name_that_is_taken(started, with_stand_in):  # noqa: F811
    out = started.root / "out"
    started.exec("touch", out / "taken", out / "taken-too").check()
    started.exec("mkdir", out / "directory").check()
    assert len(redirected_files(started.root)) == 2

    def proposed(*names):
        return with_stand_in(TEMPNAM, STAND_IN_NAMES=":".join(str(out / name) for name in names))

    assert proposed("taken", "directory", "taken-too", "free") == f"b'{out}/free'\n"
    assert proposed("free") == f"b'{out}/free'\n"
    assert proposed("taken") == "None\n"


SPAWN = r"""
import errno, os, sys
try:
    actions = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
    print(os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=actions), 0)[1])
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_actions_that_cannot_be_read_are_refused(started, with_stand_in):  # noqa: F811
    """They would open the trunk's file, or none."""
    file = started.root / "out" / "file"
    started.exec("touch", file).check()
    assert with_stand_in(SPAWN, file) == "ENOTSUP\n"
    assert with_stand_in(SPAWN, "/etc/passwd") == "0\n"
    assert started.exec(PYTHON, "-c", SPAWN, file).check() == "0\n"
