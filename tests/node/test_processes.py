# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs that treat their process roughly: signals, children, threads, descriptors, exec, other preloaded libraries,
and programs that no library can be preloaded into. The sources are in processes/."""

import ctypes
import errno
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import assert_equal_text, redirected_files, run, stand_still
from test_failures import (IS_SUPERUSER, as_nobody, everybodys, session, started,  # noqa: F401: fixtures
                           wait_until)

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# A process that waits for itself is to be found out soon.
DEADLINE = {"SHUNT_DEADLINE": 20}

unsanitized = pytest.mark.unsanitized


@pytest.fixture
def programs(build):
    return build / "tests" / "node" / "processes"


@pytest.fixture
def same(pair, programs):
    """same(program, *words, before=""): runs a program of processes/ in both roots, after a shell command; what it
    prints and what it leaves must be the same. Gives its output."""

    def compare(program, *words, before="", timeout=240, **settings):
        arguments = " ".join(f"'{word}'" for word in words)
        script = f"echo kept >kept; {before}\n{programs}/rough_{program} \"$ROOT\" {arguments}"
        native, shunt = pair.both(script, timeout, **DEADLINE, **settings)
        assert_equal_text(native, shunt)
        pair.assert_equal()
        return shunt

    return compare


# Signals


@unsanitized
@pytest.mark.parametrize("mode", ["first", "storm", "threads"])
def test_a_handler_works_on_files_while_the_program_does(same, mode):
    assert same("signals", mode) == "handled enough: 1\nwrong in handler: 0, in program: 0\n"


@unsanitized
def test_a_handler_leaves_what_it_came_into(same):
    said = same("signals", "left")
    assert said == "descriptors left open: 0\nhandled enough: 1\nwrong in handler: 0, in program: 0\n"


# What others see of an exec


@unsanitized
def test_a_program_is_looked_into_once(shunt, programs, tmp_path):
    program = programs / "rough_opens"
    # Of a file that has just changed nothing is remembered.
    wait_until(lambda: time.time() - os.stat(program).st_ctime > 4)
    (tmp_path / "root").mkdir()
    assert run([program], cwd=tmp_path / "root").check() == "1 0\n" * 3
    under = shunt.run(".", [program], cwd=tmp_path / "root").check().split("\n")[:3]
    assert under == ["2 0", "1 0", "1 0"]


@pytest.fixture
def permissions(programs, tmp_path):
    """(a program of processes/, one that it is to execute)."""
    if not IS_SUPERUSER:
        pytest.skip("asks for permission events")
    shutil.copy("/bin/true", tmp_path / "program")
    watcher = programs / "rough_permissions"
    if run([watcher, tmp_path / "program", tmp_path / "program"]).status == 3:
        pytest.skip("may not ask for permission events")
    return watcher, tmp_path / "program"


@unsanitized
def test_a_watcher_is_asked_for_permission_to_look_into_a_program(shunt, permissions, tmp_path):
    """Twice more where it is not known, to open and to read it. A shell does not know what the one that started it does."""
    (tmp_path / "root").mkdir()
    watcher, program = permissions
    wait_until(lambda: time.time() - os.stat(program).st_ctime > 4)
    native = run([watcher, program, program]).check()
    times = int(native.split("asked ")[1].split()[0])
    assert native == (f"execve: 0, asked {times} times\nposix_spawn: 0, asked {times} times\nsystem: 0, asked {times} times\n" * 2)
    known = native.replace(f"system: 0, asked {times} ", f"system: 0, asked {times + 2} ")
    assert shunt.run(".", [watcher, program, program, "known"], cwd=tmp_path / "root").check().startswith(known)
    unknown = known.replace(f"asked {times} ", f"asked {times + 2} ", 1)
    assert shunt.run(".", [watcher, program, program], cwd=tmp_path / "root").check().startswith(unknown)


@unsanitized
def test_a_watcher_that_is_asked_has_programs_of_that_directory_executed(pair, permissions):
    native, shunt = pair.both(f"mkdir d; cp /bin/true d/program; touch d/one d/two; mkdir e; touch e/stays; {permissions[0]} d d/program")
    assert native == "execve: 0\nposix_spawn: 0\nsystem: 0\nlisting: 5\n" * 2
    assert_equal_text(native, shunt)


@unsanitized
def test_a_program_that_became_another_is_looked_into_again(shunt, tmp_path):
    """A script that is executed again and again gets another interpreter, which is in a branch."""
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    script = """set -e
cp /bin/sh bin/one
printf '#!%s/bin/one\\necho one\\n' "$PWD" >"$0"
chmod +x "$0" bin/one
for i in 1 2; do "$0"; done
sleep 3.5
for i in 1 2; do "$0"; done
cp /bin/sh bin/two
chmod +x bin/two
printf '#!%s/bin/two\\necho two\\n' "$PWD" >"$0"
for i in 1 2; do "$0"; done
"""
    assert shunt.run(".", ["sh", "-c", script, tmp_path / "script"], cwd=root).check() == "one\n" * 4 + "two\n" * 2


# Programs that restrict themselves


@unsanitized
def test_a_program_that_may_only_look_at_files(shunt, programs, tmp_path):
    """The root is attached under its filter: nothing was done there before."""
    script = 'echo one >one; echo three >"$1/outside"; exec "$2/rough_restricted" "$PWD/one" "$PWD/absent" "$1/outside"'
    out = {}
    for place in "native", "shunt":
        (tmp_path / place).mkdir()
        command = ["sh", "-c", script, "sh", tmp_path, programs]
        result = run(command, cwd=tmp_path / place) if place == "native" else shunt.run(".", command, cwd=tmp_path / place)
        out[place] = result.check()
    assert out["native"] == out["shunt"] == "0 4\n-1 -1\n0 6\n"


@unsanitized
@pytest.mark.parametrize("way", ["allowing", "refusing"])
def test_a_program_that_is_executed_with_a_filter(shunt, programs, tmp_path, way):
    """It calls what shunt(7) lists, and openat2 may be refused."""
    script = 'echo one >one; echo three >"$1/outside"; exec "$2/rough_restricted" "$PWD/one" one absent "$1/outside" "$1/none" ../none'
    for place in "native", "shunt":
        (tmp_path / place).mkdir()
        command = ["env", f"EXECUTES={way}", "sh", "-c", script, "sh", tmp_path, programs]
        result = run(command, cwd=tmp_path / place) if place == "native" else shunt.run(".", command, cwd=tmp_path / place)
        assert result.check() == "0 4\n0 4\n-1 -1\n0 6\n-1 -1\n-1 -1\n", place


@unsanitized
@pytest.mark.parametrize("by_call", [False, True])
@pytest.mark.parametrize("where, names, expected", [
    ("$0", "one d/two ../{place}/one absent .//d/two", "0 4\n0 4\n0 4\n-1 -1\n0 4\n"),
    ("$1", "outside ./outside {place}/one absent none/none", "0 6\n0 6\n0 4\n-1 -1\n-1 -1\n"),
    ("$0/d", "two ../one ../../outside absent", "0 4\n0 4\n0 6\n-1 -1\n")])
def test_relative_paths_of_a_program_that_may_only_look_at_files(shunt, programs, tmp_path, where, names, expected, by_call):
    script = 'mkdir d; echo one >one; echo two >d/two; echo three >"$1/outside"; cd "' + where + '"; shift; exec "$@"'
    for place in "native", "shunt":
        (tmp_path / place).mkdir()
        command = ["sh", "-c", script, tmp_path / place, tmp_path, *(["env", "BY_CALL=1"] if by_call else []),
                   programs / "rough_restricted", *names.format(place=place).split()]
        result = run(command, cwd=tmp_path / place) if place == "native" else shunt.run(".", command, cwd=tmp_path / place)
        assert result.check() == expected, place


EVERY_RESULT = re.compile(": .*")


@unsanitized
@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS, errno.EACCES])
@pytest.mark.parametrize("call, when", [("statx", "first"), ("statx", "later"), ("openat", "first"), ("openat", "later")])
def test_a_program_that_is_refused_a_call_of_the_library(shunt, programs, area, call, error, when):
    """What cannot be served fails, and is never looked for or made in the trunk alone; what lies outside is as natively. One that
    has used the root before, and opens nothing, needs no openat."""
    (area / "kept").write_text("kept")
    script = 'mkdir "$1/out"; echo kept >"$1/out/kept"; cd "$1/out"; exec "$3/rough_refused" "$2" "$4" "$5" "$6"'
    out, root = {}, area / "shunt"
    for place in "native", "shunt":
        (area / place).mkdir()
        command = ["sh", "-c", script, "sh", area / place, area, programs, call, error, when]
        out[place] = (run(command, 60) if place == "native" else shunt.run(root, command, keep=True, timeout=60))
    outside, inside = out["native"].check().split("-- inside\n")
    fails = call == "statx" or when == "first"
    assert out["shunt"].check().split("-- inside\n") == [outside, EVERY_RESULT.sub(": EIO", inside) if fails else inside]
    assert out["shunt"].err.count("this process is not allowed the system calls") == out["shunt"].err.count("\n") == fails
    assert [path.name for path in (root / "out").iterdir()] == [".shunt-dir"] and redirected_files(root)


# Memory that cannot be read any more


TAKEN_AWAY = ["munmap", "munmap by its number", "mprotect", "mprotect by its number", "pkey_mprotect", "mmap over it", "mremap",
              "munmap by a thread", "munmap by a vfork child", "not for children", "free", "sbrk", "brk", "shmdt",
              "another page of a file", "a file that is truncated", "the stack of a thread", "its end"]
# Of memory that lasts as long as the process does
TAKEN_AWAY += ["mprotect on the stack", "mprotect on the heap", "mprotect by its number on the heap", "munmap on the heap by a thread",
               "not for children, on the heap", "mprotect in the program", "munmap in the program by its number",
               "pkey_mprotect in the program", "not for children, in the program"]
COMES_AGAIN = ["munmap on the stack", "mremap on the stack", "not for children, on the stack"]  # the kernel lets a stack grow


@unsanitized  # its allocator keeps what is freed
@pytest.mark.parametrize("way", [*TAKEN_AWAY, *COMES_AGAIN])
def test_a_path_in_memory_that_was_readable_once(same, way):
    said = same("unreadable", way)
    assert said.count(f"-1 {errno.EFAULT if way in TAKEN_AWAY else errno.ENOENT}\n") > 100 and "stat 0 0\n" in said or way == "its end", said


# Small stacks


@unsanitized
def test_a_thread_with_the_smallest_stack(same):
    assert "execve -1 2\nstatus 0 0\n" in same("small")


# Programs under an analyser of memory


MEMCHECK = ["valgrind", "-q", "--error-exitcode=9"]
WORK = """import os
for i in range(20):
    open(f"f{i}", "w").close()
for i in range(20):
    os.rename(f"f{i}", f"g{i}")
    os.link(f"g{i}", f"h{i}")
    os.unlink(f"g{i}")
os.mkdir("d")
os.rename("d", "e")
os.system("true")
print(len(os.listdir()))
"""


@unsanitized
@pytest.mark.parametrize("words", [["{programs}/rough_blocks", "."], [PYTHON, "-c", WORK]], ids=["blocks", "python"])
def test_memcheck_finds_nothing_that_it_does_not_find_natively(shunt, programs, tmp_path, words):
    words = [word.replace("{programs}", str(programs)) for word in words]
    out = {}
    for place in "native", "shunt":
        (tmp_path / place).mkdir()
        command = ["env", "PYTHONMALLOC=malloc", *MEMCHECK, *words]
        result = (run(command, cwd=tmp_path / place, timeout=240) if place == "native"
                  else shunt.run(".", command, cwd=tmp_path / place, timeout=240))
        out[place] = (result.check(), result.err)
    assert out["native"] == out["shunt"] and out["native"][1] == ""


# What is preloaded next to the shim


def library(name):
    """The path of an installed library."""
    known = run(["/sbin/ldconfig", "-p"]).check()
    found = re.search(rf"\t{re.escape(name)} .*x86-64.* => (.+)|\t{re.escape(name)} .*AArch64.* => (.+)", known)
    assert found, f"{name} is not installed"
    return found[1] or found[2]


# How a shell under shunt puts another library before the shim, and after it.
ORDERS = {"before": 'LD_PRELOAD="{}${{LD_PRELOAD:+:$LD_PRELOAD}}"',
          "behind": 'LD_PRELOAD="${{LD_PRELOAD:+$LD_PRELOAD:}}{}"'}


def with_library(order, path):
    return f"export {ORDERS[order].format(path)}"


@unsanitized
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_another_allocator(same, order, allocator):
    before = with_library(order, library(allocator)) + f"; grep -c -m 1 {allocator} /proc/self/maps"
    assert same("children", "fork", before=before) == "1\ndone\n"


@unsanitized
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_another_allocator_and_many_threads(same, order, allocator):
    assert same("threads", before=with_library(order, library(allocator))).count(": 1 won\n") == 5


EARLY = "early reads: kept\n\nearly has allocated: 1\nchosen: 1, early: 42\nkept: 0, early.1: 0\n"


@unsanitized
def test_a_library_that_comes_before_main(same):
    assert same("ifunc", before="export EARLY=$ROOT") == EARLY


@unsanitized
@pytest.mark.parametrize("order", ORDERS)
def test_a_preloaded_library_that_comes_before_main(same, programs, order):
    before = "export EARLY=$ROOT\n" + with_library(order, programs / "libearly.so")
    # The shell's own commands load it, too.
    assert same("ifunc", before=before).endswith(EARLY)


@unsanitized
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["interposer", "interposer_sysv"])
def test_a_profiler(same, programs, area, order, name):
    """Before the shim it sees the calls, and the paths that the program used; after it those that are handed on."""
    log = area / "log"
    before = f"export INTERPOSER_LOG={log}; {with_library(order, programs / f'lib{name}.so')}"
    assert same("threads", before=before).count(": 1 won\n") == 5
    assert log.read_text() == "seen 1 inside 0\n"


@unsanitized
@pytest.mark.parametrize("plugin", ["{}/libplugin.so", "{}/libplugin_now.so", "libplugin.so"], ids=["lazy", "now", "by its name"])
def test_a_plugin_that_finds_libc_first(same, programs, plugin):
    """As PHP loads its extensions."""
    said = same("deep", plugin.format(programs), LD_LIBRARY_PATH=programs)
    assert said == 2 * "an error is left: 0\nmade 20\nmade again 0\nseen 0 -1, by the program 0\nseen -1\n"


@unsanitized
def test_a_plugin_that_finds_libc_first_and_is_not_seen(shunt, root, programs):
    """Whose call it is says where it is looked for, and the library is not to come between."""
    command = ["sh", "-c", f"echo kept >{root}/kept; {programs}/rough_deep_searching {root} libplugin.so"]
    result = shunt.run(root, command, keep=True, LD_LIBRARY_PATH=programs)
    assert "seen -1 -1" in result.check()
    assert result.err == ("shunt: libplugin.so: warning: loaded with RTLD_DEEPBIND by a library with a search path of its own, so shunt does "
                          f"not see what it does with files under {root}\n")


def compiled(area, source, *flags, compiler="gcc"):
    program = area / f"program{len(list(area.iterdir()))}"
    run([compiler, "-D_GNU_SOURCE", "-pthread", "-g", "-O1", "-w", "-o", program, HERE / "processes" / source,
         *flags]).check()
    return program


def runtime(name):
    return run(["gcc", f"-print-file-name={name}"]).check().strip()


SANITIZED = {
    "address, before the shim": ("address", [], {"LD_PRELOAD": "libasan.so"}),
    "address, behind the shim": ("address", [], {"ASAN_OPTIONS": "verify_asan_link_order=0"}),
    "address, linked in": ("address", ["-static-libasan"], {}),
    # An uninstrumented library's order of things is none of a race detector's business.
    "thread": ("thread", [], {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}),
    "thread, before the shim": ("thread", [], {"LD_PRELOAD": "libtsan.so",
                                              "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}),
}


@unsanitized
@pytest.mark.parametrize("source", ["threads.c", "children.c"])
@pytest.mark.parametrize("how", SANITIZED)
def test_a_sanitized_program(shunt, root, area, source, how):
    kind, flags, settings = SANITIZED[how]
    program = compiled(area, source, f"-fsanitize={kind}", *flags)
    settings = {key: runtime(value) if key == "LD_PRELOAD" else value for key, value in settings.items()}
    words = ["fork"] if source == "children.c" else []
    result = shunt.run(root, ["env", *(f"{key}={value}" for key, value in settings.items() if key != "LD_PRELOAD"),
                              program, root, *words],
                       keep=True, **DEADLINE, **{key: value for key, value in settings.items() if key == "LD_PRELOAD"})
    out = result.check()
    assert result.err == ""
    assert out == "done\n" if words else out.count(": 1 won\n") == 5
    assert redirected_files(root)


# Children


@pytest.mark.parametrize("kind", ["fork", "_Fork", "syscall(fork)", "syscall(clone)", "clone", "fork of fork"])
def test_children_look_up_and_make_names(same, kind):
    assert same("children", kind) == "done\n"


CHILD_ELSEWHERE = """
import ctypes, os
CLONE_NEWPID = 0x20000000
open("of the parent", "x").close()
assert ctypes.CDLL(None).unshare(CLONE_NEWPID) == 0
if os.fork() == 0:
    try:
        open("of the child", "x").close()
        print(os.getpid(), "made it")
    except OSError as error:
        print(os.getpid(), os.strerror(error.errno))
    os._exit(0)
os.wait()
print(sorted(os.listdir(".")))
"""


@pytest.mark.skipif(not IS_SUPERUSER, reason="only the superuser can make a PID namespace")
def test_a_child_in_another_pid_namespace_is_refused(shunt, root):
    """Its number, 1, is another process's to the daemon, which would not see it end."""
    done = shunt.run(root, ["/usr/bin/python3", "-c", CHILD_ELSEWHERE], "branch", cwd=root)
    assert done.check().splitlines() == ["1 Input/output error", "['of the parent']"]
    assert "container" in done.err or "namespace" in done.err


@unsanitized
def test_children_that_share_memory_but_not_descriptors(same):
    assert same("vforks", before="rm kept").endswith("here\ndone\n")


@unsanitized
def test_a_working_directory_that_changes(same, area):
    """Next to the root there is a file of one name that the root has, too, and not of the other."""
    (area / "beside").mkdir()
    before = f"touch here both; cd {area}/beside; touch both"
    assert same("whereabouts", before=before) == "done\n"


SUBPROCESSES = """
import os, subprocess, sys, threading
os.chdir(sys.argv[1])
os.mkdir("sub")
for name in ("kept2", "sub/here"):
    with open(name, "w") as file:
        file.write(name)
def start(number):
    for turn in range(25):
        name = f"made.{number}.{turn}"
        open(name, "w").close()
        out = subprocess.run(["cat", "here"], cwd="sub", close_fds=True, capture_output=True, text=True,
                             env=[None, {}][turn % 2], preexec_fn=[None, os.setsid][turn % 5 == 0])
        assert (out.stdout, out.stderr) == ("sub/here", ""), out
        os.rename(name, name + ".done")
        try:
            subprocess.run(["cat"], cwd="absent")
            print("a child was in an absent directory")
        except FileNotFoundError as error:
            assert error.filename == "absent", error
threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(os.listdir("."))[:3], len(os.listdir(".")), open("kept2").read())
"""


@unsanitized
def test_subprocesses_of_python(pair):
    native, shunt = pair.both(f"{PYTHON} -c '{SUBPROCESSES}' \"$ROOT\"", **DEADLINE)
    assert native == shunt and "'made.0.0.done'" in native
    pair.assert_equal()


# Threads


def test_threads_by_the_hundred(same):
    assert same("threads").count(": 1 won\n") == 5


def in_a_system_call(pid, number):
    """How many threads of a process are in this system call."""
    count = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            count += (task / "syscall").read_text().split()[0] == str(number)
        except OSError:
            pass
    return count


FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())


def test_more_threads_than_may_ask_at_once(started, programs):
    """300 threads are made to wait for the daemon at the same moment."""
    directory = started.root / "out"
    command = started.popen(programs / "rough_threads", directory, "wait", stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: in_a_system_call(command.pid, FUTEX) == 300)
    stand_still(started.daemon())
    try:
        command.stdin.write("\n")
        command.stdin.flush()
        assert command.stderr.readline() == "begun\n"
        wait_until(lambda: in_a_system_call(command.pid, FUTEX) == 301)
    finally:
        os.kill(started.daemon(), signal.SIGCONT)
    out, err = command.communicate(timeout=120)
    assert (command.returncode, err) == (0, "")
    assert out.count("\n") == out.count(": 1 won\n") == 5, out


# Descriptors


@pytest.mark.parametrize("mode", ["close each", "closefrom", "close_range", "close all", "dup high", "dup every",
                                  "limit lowered", "limit lowered first"])
def test_descriptors(same, mode):
    assert "stat = done" in same("descriptors", mode)


LOOKS = """
import ctypes, os
libc = ctypes.CDLL(None)
DUP3, CLOSE, CLOSE_RANGE = {calls}
os.makedirs("../beside", exist_ok=True)
for name, text in (("here", b"four"), ("../beside/here", b"another")):
    with open(name, "wb") as file:
        file.write(text)
    os.setxattr(name, "user.text", text)
other = os.open("../beside", os.O_RDONLY)
def look():
    return [os.stat("here").st_size, os.getxattr("here", "user.text"), os.listxattr("here", follow_symlinks=False)]
def high():
    return [fd for fd in map(int, os.listdir("/proc/self/fd")) if 950 <= fd < 1024]
ways = dict(
    close=libc.close, dup2=lambda fd: libc.dup2(other, fd), dup3=lambda fd: libc.dup3(other, fd, os.O_CLOEXEC),
    close_range=lambda fd: libc.close_range(fd, fd, 0), closefrom=lambda fd: libc.closefrom(950),
    call_of_dup3=lambda fd: libc.syscall(DUP3, other, fd, 0), call_of_close=lambda fd: libc.syscall(CLOSE, fd),
    call_of_close_range=lambda fd: libc.syscall(CLOSE_RANGE, fd, fd, 0))
kept = 0
for way, change in ways.items():
    [look() for _ in range(40)]
    fds = high()
    kept += len(fds) > 1
    look()
    [change(fd) for fd in fds]
    print(way, *look(), *look(), flush=True)
    libc.closefrom(950)
if os.fork() == 0:
    print(*look(), flush=True)
    os._exit(0)
os.wait()
print(kept == len(ways))
"""


@unsanitized
def test_a_program_that_takes_the_descriptors_of_leaves_that_it_looked_into(pair):
    """It looks at files often, closes or replaces the descriptors that the library might keep, and looks at once again: not at the
    file of that name in the other directory. Here none is kept (lib/shim/fdcache.h)."""
    machine = {"x86_64": (292, 3, 436), "aarch64": (24, 57, 436)}[platform.machine()]
    script = f"{PYTHON} -c '{LOOKS.format(calls=machine)}'"
    native, shunt = pair.both(script, 60, **DEADLINE)
    assert native == shunt and len(native.splitlines()) == 10 and native.splitlines()[-1] == "False"


# Programs


@unsanitized
def test_programs_with_nothing_in_their_environment_and_programs_that_cannot_be_executed(same):
    out = same("execs", before="rm kept")
    assert out.count("kept is seen") == 10 and "E2BIG" in out


@unsanitized
def test_a_program_that_writes_its_title_over_its_environment(same, area):
    # What it was given for its children is still known: the library, the root, and the helper of static programs.
    programs = "/bin/cat", compiled(area, "unseen.c", "-static"), "/bin/cat"
    assert same("titled", *programs) == "kept\n0\nthere\n0\nkept\n0\n"


IN_THE_ROOT = """
mkdir bin lib pack; cp /bin/cat bin/cat; cp /bin/sh bin/sh; cp {answer} lib/libanswer.so; echo content >file
printf '#!%s/bin/sh\\necho first $0 "$@"; cat file\\n' "$ROOT" >bin/first
printf '#!%s/bin/first -a  b \\nignored\\n' "$ROOT" >bin/second
printf '#!bin/second\\n' >bin/third
printf '#!/usr/bin/env -S sh -e\\necho env $0; false; echo not reached\\n' >bin/env
printf '#!/bin/sh\\nexec cat "$0"\\n' >bin/self
printf '#!{python}\\nimport sys, os; print(sys.argv, os.path.exists("file"), __file__)\\n' >bin/python
printf 'echo no line $0 "$@"\\n' >bin/bare
chmod +x bin/*
bin/cat file
"$ROOT/bin/first" 1 2
bin/second 3
bin/third 4
bin/env || echo failed
bin/self
bin/python x 'y z'
bin/bare 5
PATH=$ROOT/bin:$PATH first 6
PATH=bin:$PATH second 7
(cd bin; ./first 8 || echo no file; PATH= ./cat ../file)
echo '#include <stdio.h>' >main.c; echo 'int answer(void); int main(void) {{ return printf("%d\\n", answer()) < 0; }}' >>main.c
gcc -o bin/origin main.c -Llib -lanswer -Wl,-rpath,'$ORIGIN/../lib'
gcc -o bin/absolute main.c -Llib -lanswer -Wl,-rpath,"$ROOT/lib"
gcc -o bin/relative main.c lib/libanswer.so
bin/origin; bin/absolute; bin/relative; (cd bin; ./origin); PATH=$ROOT/bin:$PATH origin
LD_LIBRARY_PATH=$ROOT/lib bin/relative
LD_PRELOAD=${{LD_PRELOAD-}}:$ROOT/lib/libanswer.so sh -c 'grep -c -m 1 libanswer /proc/self/maps'
echo 'value = 7' >pack/__init__.py; echo 'from pack import value; print("module", value, __file__)' >pack/inner.py
cp "$({python} -c 'import _ctypes; print(_ctypes.__file__)')" pack/
{python} -c '
import ctypes, os, sys
root = os.environ["ROOT"]
for path in (root + "/lib/libanswer.so", "./lib/libanswer.so", "lib/../lib/libanswer.so"):
    print(ctypes.CDLL(path).answer())
import pack.inner
sys.path.insert(0, root + "/pack")
del sys.modules["_ctypes"]
import _ctypes
print(_ctypes.__file__)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.access(b"file", os.R_OK), libc.open(b"file", os.O_RDONLY) > 2, libc.open(b"absent", os.O_RDONLY))
print(os.strerror(ctypes.get_errno()))
'
rm bin/cat; ! bin/cat file 2>/dev/null
"""


@unsanitized
def test_scripts_programs_and_shared_objects_in_the_root(pair, programs):
    script = IN_THE_ROOT.format(answer=programs / "libanswer.so", python=PYTHON)
    native, shunt = pair.both(script, **DEADLINE)
    assert_equal_text(native, shunt)
    assert native.count("42\n") == 9
    pair.assert_equal(any_content=[r".*\.pyc", "bin/(origin|absolute|relative|first|second|third)"])


SPAWN = """
import os, sys
os.chdir(sys.argv[1])
open("in", "w").write("from in\\n")
W = os.O_WRONLY
def spawn(actions, *words):
    child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    print(words, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
read = (os.POSIX_SPAWN_OPEN, 0, "in", os.O_RDONLY, 0)
spawn([read, (os.POSIX_SPAWN_OPEN, 1, "out", W | os.O_CREAT | os.O_EXCL, 0o640)], "cat")
spawn([read, (os.POSIX_SPAWN_OPEN, 1, os.path.abspath("out"), W | os.O_APPEND, 0)], "cat")
spawn([read, (os.POSIX_SPAWN_OPEN, 9, "both", W | os.O_CREAT, 0o600), (os.POSIX_SPAWN_DUP2, 9, 1),
       (os.POSIX_SPAWN_DUP2, 9, 2), (os.POSIX_SPAWN_CLOSE, 9)], "sh", "-c", "cat; echo to stderr >&2; cat absent")
spawn([(os.POSIX_SPAWN_CLOSE, 0), (os.POSIX_SPAWN_OPEN, 0, "out", os.O_RDONLY, 0)], "cat")
spawn([(os.POSIX_SPAWN_OPEN, 1, "made", W | os.O_CREAT | os.O_TRUNC, 0o600)], "sh", "-c", "echo made; ls; test -s out")
for actions in ([(os.POSIX_SPAWN_OPEN, 0, "absent", os.O_RDONLY, 0)],
                [(os.POSIX_SPAWN_OPEN, 0, "in/below", os.O_RDONLY, 0)],
                [(os.POSIX_SPAWN_OPEN, 1, "in", W | os.O_CREAT | os.O_EXCL, 0o600)],
                [(os.POSIX_SPAWN_OPEN, 0, "in", os.O_DIRECTORY, 0)]):
    try:
        spawn(actions, "cat")
    except OSError as error:
        print(actions[0][2], error.errno)
for name in ("in", "out", "both", "made"):
    print(name, oct(os.stat(name).st_mode), repr(open(name).read()))
"""


def test_file_actions_of_posix_spawn(pair, area):
    (area / "spawn.py").write_text(SPAWN)
    native, shunt = pair.both(f"exec {PYTHON} {area}/spawn.py \"$ROOT\"", **DEADLINE)
    assert_equal_text(native, shunt)
    pair.assert_equal()


# System calls by number


@unsanitized
def test_system_calls_by_number(pair, programs):
    """All that take paths do what they do natively, but there are no rings, in which paths would not be seen."""
    native, shunt = pair.both(f'{programs}/rough_raw "$ROOT" "$([ -n "$SHUNT_ROOT" ] && echo no ring)"', **DEADLINE)
    assert_equal_text(native, shunt)
    pair.assert_equal(any_content=["program"])


def newest_system_call():
    """Of the running kernel: what is not there fails with ENOSYS before it looks at any argument."""
    libc = ctypes.CDLL(None, use_errno=True)
    known = (number for number in range(1023, 0, -1) if libc.syscall(number, *[-1] * 6) != -1 or
             ctypes.get_errno() != errno.ENOSYS)
    return next(known)


FIRST_OF_SIX = 463  # newer calls are made with all that was given; older ones by functions, which take as much as they need
UNKNOWN = 471  # is newer than the library


@unsanitized
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("path", ["/etc/passwd", "outside", "/no/such/file"])
def test_every_number_goes_to_the_kernel_outside_all_roots(started, programs, area, path, inside):  # noqa: F811
    """Known to the library or not, there or not in the kernel; beside a root, and from within it."""
    (area / "outside").touch()
    path = os.path.relpath(area / path, started.root) if inside else path
    last = max(newest_system_call(), UNKNOWN) + 40
    said = started.exec(programs / "rough_numbers", path, 0, last, cwd=started.root if inside else area).check()
    short = [line for line in said.splitlines() if not line.endswith(": path")]
    assert not short, "calls that the kernel was not given"
    numbers = [int(line.split(":")[0]) for line in said.splitlines()]
    assert not [number for number in numbers if number >= FIRST_OF_SIX], "with the arguments as they were"


@unsanitized
def test_a_number_that_is_not_known_is_refused_for_a_redirected_file_alone(started, programs, area):  # noqa: F811
    out = started.root / "out"
    started.exec("sh", "-c", f"touch {out}/file; ln -s file {out}/link; mkdir {out}/sub").check()
    (area / "alias").symlink_to(out / "file")
    assert redirected_files(started.root)
    last = max(newest_system_call(), UNKNOWN) + 40
    numbers = range(UNKNOWN, last + 1)

    def answers(path, cwd="/"):
        said = started.exec(programs / "rough_numbers", path, UNKNOWN, last, cwd=cwd).check()
        return dict(line.split(": ") for line in said.splitlines())

    for path, cwd in ((out / "file", "/"), ("file", out), (out / "link", "/"), (area / "alias", "/"), ("out/new", started.root)):
        assert answers(path, cwd) == {str(number): "ENOSYS" for number in numbers}, path
    for path, cwd in ((out, "/"), (out / "sub", "/"), ("sub", out), (".", out), (started.root, "/")):
        assert not answers(path, cwd), path


# Programs that no library can be preloaded into


def setuid_copy(area):
    program = compiled(area, "unseen.c")
    os.chown(program, 1, 1)
    program.chmod(0o4755)
    return program


def capable_copy(area):
    program = compiled(area, "unseen.c")
    run(["setcap", "cap_chown=ep", program]).check()
    return program


UNSEEN = {
    "static": (lambda area: compiled(area, "unseen.c", "-static"), "statically linked"),
    "static-pie": (lambda area: compiled(area, "unseen.c", "-static-pie"), "statically linked"),
    "musl": (lambda area: compiled(area, "unseen.c", compiler="musl-gcc"), "linked with another C library"),
    "setuid": (setuid_copy, "changes its user or group"),
}
if platform.machine() == "x86_64":
    UNSEEN["32-bit"] = (lambda area: compiled(area, "unseen.c", "-m32"), "built for another kind of machine")


def own_lines(result):
    """Standard error without what a loader says of a library that it does not take."""
    return [line for line in result.err.splitlines() if not line.startswith("ERROR: ld.so: object")]


def warning(program, why, root):
    return [f"shunt: {program}: warning: {why}, so shunt does not see what it does with files under {root}"]


@unsanitized
@pytest.mark.parametrize("kind", UNSEEN)
def test_a_program_that_is_not_seen(shunt, root, area, kind):
    make, why = UNSEEN[kind]
    program = make(area)
    if kind == "32-bit":
        why += " than shunt"

    def under_shunt(script):
        result = shunt.run(root, ["bash", "-c", script], keep=True, cwd=area, SHUNT_STATIC="warn")
        return result.check(), own_lines(result)

    # In a pipeline it works as ever, and nothing is said.
    assert under_shunt(f"echo hot >{root}/file; cat {root}/file | {program} /etc/passwd | cat") == ("there\nHOT\n", [])
    assert redirected_files(root)
    # Handed a path under the root it does not find the file, and that is said, once for each program.
    expected = warning(program, why, root)
    assert under_shunt(f"{program} {root}/file </dev/null") == ("not there\n", expected)
    assert under_shunt(f"for i in 1 2 3; do {program} {root}/file </dev/null; done") == ("not there\n" * 3, expected)
    assert under_shunt(f"{program} root/file </dev/null") == ("not there\n", expected)
    assert under_shunt(f"{program} --output={root}/file </dev/null")[1] == expected
    assert under_shunt(f"cd {root}; {program} </dev/null") == ("", expected)
    assert under_shunt(f"env -i {program} {root}/file </dev/null") == ("not there\n", expected)
    assert under_shunt(f"find {root} -name file -exec {program} '{{}}' ';' </dev/null") == ("not there\n", expected)
    spawn = f"import os; os.waitpid(os.posix_spawnp(\"{program}\", [\"it\", \"{root}/file\"], {{}}), 0)"
    assert under_shunt(f"exec {PYTHON} -c '{spawn}' </dev/null") == ("not there\n", expected)
    # As the interpreter of a script, too.
    (area / "script").write_text(f"#!{program}\n")
    (area / "script").chmod(0o755)
    assert under_shunt(f"./script {root}/file </dev/null") == ("there\nnot there\n", expected)


if IS_SUPERUSER:

    @pytest.fixture
    def reachable():
        """A directory that everybody reaches, on a file system where programs may have rights."""
        with tempfile.TemporaryDirectory(prefix="shunt-test.", dir="/var/tmp") as directory:
            os.chmod(directory, 0o755)
            yield pathlib.Path(directory)

    @unsanitized
    def test_a_program_with_more_rights(everybodys, reachable):
        """As nobody: what makes the loader ignore what is preloaded is warned about, what does not is not."""
        root, session = everybodys / "root", as_nobody(everybodys)
        makers = (setuid_copy, capable_copy, lambda area: compiled(area, "unseen.c"))
        program, capable, plain = (make(reachable) for make in makers)
        # Files of a directory that is not one's own stay in the trunk, where everybody sees them.
        script = (f"mkdir -p {root}/own; echo hot >{root}/own/file; "
                  f"for p in {program} {capable} {plain}; do $p {root}/own/file </dev/null; done; rm {root}/own/file")

        def as_one_who(*more):
            session.prefix += more
            return session.tool("run", "--root", root, "--placement", "branch", "--", "sh", "-c", script)

        result = as_one_who()
        assert result.check() == "not there\nnot there\nthere\n"
        assert result.err.splitlines() == [*warning(program, "changes its user or group", root),
                                           *warning(capable, "has capabilities of its own", root)]
        # With this the kernel changes no user, so the loader does its work; but it still distrusts capabilities.
        result = as_one_who("--no-new-privs")
        assert result.check() == "there\nnot there\nthere\n"
        assert result.err.splitlines() == warning(capable, "has capabilities of its own", root)


def test_nothing_is_said_of_programs_that_are_seen(shunt, root):
    loader = re.search(r"interpreter: ([^]]+)", run(["readelf", "-l", "/bin/cat"]).check())[1]
    script = f"cd {root}; echo hot >file; cat file; sh -c 'cat {root}/file'; {loader} /bin/cat {root}/file; ls"
    result = shunt.run(root, ["sh", "-c", script], keep=True)
    assert (result.check(), result.err) == ("hot\nhot\nhot\nfile\n", "")


@pytest.fixture(params=["same device", "other device"])
def outside(request, area):
    """A directory beside the root, on its device or on another one."""
    if request.param == "same device":
        yield area / "outside"
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if area.stat().st_dev != os.stat("/dev/shm").st_dev else "/tmp") as top:
        yield pathlib.Path(top) / "outside"


@unsanitized
def test_a_cold_path_takes_little_stack(shunt, root, programs, outside):
    """A signal handler's stack may be small: 512 bytes are taken next to what the call itself takes, also for what is seen from
    a descriptor."""
    outside.mkdir()
    shutil.copy("/bin/true", outside)
    command = [programs / "rough_stack", "/etc/passwd", outside]

    def used(text):
        return {name: int(size) for name, size in (line.split() for line in text.splitlines())}

    # What execvp and getcwd take natively grows with PATH and the directory.
    native = used(run(command, PATH="/usr/bin:/bin").check())
    shimmed = used(shunt("run", "--root", root, "--", *command, PATH="/usr/bin:/bin").check())
    added = {name: shimmed[name] - native[name] for name in native}
    print(native, shimmed)
    assert {name: size for name, size in added.items() if size > 512} == {}
    assert added["stat"] > 0, "the calls did not go through the library"
