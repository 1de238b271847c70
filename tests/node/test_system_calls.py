# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The system calls that a program makes under shunt and not natively are those that shunt(7) lists, for programs that restrict
themselves."""

import collections
import re

import pytest

from conftest import REPOSITORY, run
from test_failures import session, started  # noqa: F401: fixtures

pytestmark = pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced

# A call may come in its form with a directory's descriptor.
FORMS = {"open": "openat", "creat": "openat", "access": "faccessat", "stat": "newfstatat", "lstat": "newfstatat", "mkdir": "mkdirat",
         "mknod": "mknodat", "unlink": "unlinkat", "rmdir": "unlinkat", "rename": "renameat2", "renameat": "renameat2",
         "link": "linkat", "symlink": "symlinkat", "chmod": "fchmodat", "chown": "fchownat", "lchown": "fchownat",
         "utime": "utimensat", "utimes": "utimensat", "futimesat": "utimensat", "readlink": "readlinkat", "getdents": "getdents64"}

# Without names in an older strace.
NEWER = {"syscall_0x1d0": "getxattrat", "syscall_0x1d1": "listxattrat"}

# Each process is looked at by itself: what one does natively says nothing of another one.
WORK = """
mkdir d; touch d/made; echo text >d/file; cat d/file; stat d/file; stat d/none; ln d/file d/hard; ln -s file d/soft; cat d/soft
stat -L d/soft; readlink -f d/soft; mv d/made d/moved; mv -n d/moved d/hard; mv d/moved d/hard; test -w d/file; ls d; ls -l d; find .
chmod 640 d/file; touch -d 2001-01-01 d/file; truncate -s 2 d/file; cp -p d/file d/copy; cp -p d/file ../beside; stat -f d/file
setfattr -n user.text -v words d/file; getfattr -d d/file; mkdir d/sub; touch d/sub/inner; mv d/sub d/below; rmdir d/below
rm d/below/inner; rmdir d/below; mv d/copy ../beside/moved; mv ../beside/moved d/copy; cp /bin/true d/program; d/program
printf '#!/bin/sh\\n' >d/script; chmod +x d/script; d/script; stat ../beside/none; stat "$PWD/../beside/none"; stat "$PWD/d/none"
touch ../beside/made; ln -s none ../beside/soft; cat ../beside/soft; mv ../beside/made ../beside/other; rm ../beside/*; stat /proc/self/fd/0
stat /proc/self/none; mktemp d/XXXXXX; mkfifo d/fifo; env pwd; rm d/fifo; sync d d/file; touch none/none; touch d/file/none
sh -c 'cd d; exec cat file'; sh -c 'cd ../beside; test -e none; cat none'; rm -r d
"""


def listed():
    """What shunt(7) lists."""
    page = (REPOSITORY / "docs" / "shunt.7").read_text()
    text = page.split(".SS Programs that restrict themselves\n")[1].split("\n.P\nA program that is executed")[0]
    return set(re.findall(r"\b([a-z][a-z0-9_]*) ?\"?\(2\)", text)) - {"seccomp"}


def calls_of(traces):
    """{command line: the calls} of all processes that strace -ff has written about."""
    found = collections.defaultdict(set)
    for trace in traces:
        command = "a child"
        for line in trace.read_text(errors="replace").splitlines():
            call = re.match(r"(\w+)\(", line)
            begun = re.match(r"execve(?:at)?\(.*?, (\[.*\]), .* = 0$", line)
            if begun:
                command = re.sub(r"/[\w./-]*/", "", begun[1])
            if call:
                found[command].add(NEWER.get(call[1], call[1]))
    return found


def test_the_manual_lists_what_a_program_would_not_call(started, area):  # noqa: F811
    found = {}
    (area / "beside").mkdir()
    (area / "plain").mkdir()
    for place, where in ("native", area / "plain"), ("shunt", started.root):
        (area / place).mkdir()
        words = ["strace", "-ff", "-qq", "-s", "300", "-o", area / place / "trace", "sh", "-c", WORK]
        done = run(words, cwd=where) if place == "native" else started.exec(*words, cwd=where)
        assert "text\n" in done.check(status=done.status), done
        found[place] = calls_of((area / place).iterdir())
    assert set(found["native"]) == set(found["shunt"]) and len(found["native"]) > 50
    more = collections.defaultdict(list)
    for command, calls in found["shunt"].items():
        native = found["native"][command]
        for call in calls - native - {FORMS.get(call) for call in native} - listed():
            more[call].append(command)
    assert not more, dict(more)


# Sources of the library that ask the kernel for what the program did not.
SOURCES = [*(f"lib/{room}/*.[ch]" for room in ("base", "names", "request", "index")), "lib/union/identity.c", "lib/shim/[!w]*.[ch]",
           "lib/shim/walk*.[ch]"]
OTHERWISE = {
    "kernel_abi.h": "numbers alone", "real_missing.c": "the program's own calls, of functions that this libc does not have",
    "hook.c": "tests", "users.c": "tools and the daemon", "helper_process.h": "tools"}
OWN = {"bind", "fchmod", "fchownat", "mkdirat", "mknodat", "symlinkat", "utimensat", "write"}  # the calls themselves
VALGRIND = {"process_vm_readv"}


def test_the_manual_lists_what_the_library_asks():
    """Also what the test above does not come to: where a daemon is silent, of another user, on another file system."""
    asked = set()
    for path in (path for pattern in SOURCES for path in REPOSITORY.glob(pattern) if path.name not in OTHERWISE):
        asked |= set(re.findall(r"\bSYS_([a-z][a-z0-9_]*)\b", path.read_text()))
    assert len(asked) > 40 and asked - listed() - OWN - VALGRIND == set()
