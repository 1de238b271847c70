# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs that restrict themselves to directories of a root with Landlock."""

import ctypes

import pytest

from conftest import PYTHON, assert_equal_text



def version():
    """Of Landlock in this kernel; -1: there is none."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


pytestmark = pytest.mark.skipif(version() < 1, reason="this kernel has no Landlock")

# Restricts itself: which of its arguments it may use, for all that is handled (or reading alone, `r:`), then what it does.
PROGRAM = r"""
import ctypes, errno, os, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
HANDLED, READS = 0x1fff, 0x000c | 0x1
def do(what, call):
    try:
        print(what, call())
    except OSError as error:
        print(what, errno.errorcode[error.errno])
def must(answer):
    assert answer >= 0, os.strerror(ctypes.get_errno())
    return answer
def write(path):
    with open(path, "w") as file:
        return file.write("x")
def read(path):
    with open(path) as file:
        return file.read()
attribute = ctypes.create_string_buffer(struct.pack("=Q", HANDLED))
ruleset = must(libc.syscall(444, attribute, ctypes.c_size_t(8), 0))
for word in sys.argv[1:]:
    rights, path = (READS, word[2:]) if word.startswith("r:") else (HANDLED, word)
    beneath = ctypes.create_string_buffer(struct.pack("=Qi", rights, os.open(path, os.O_PATH)))
    must(libc.syscall(445, ruleset, 1, beneath, 0))
must(libc.prctl(38, 1, 0, 0, 0))
must(libc.syscall(446, ruleset, 0))
do("mkdir d/later", lambda: os.mkdir("d/later"))
for d in "d", "d/sub", "e", "empty", "d/later":
    do(f"{d} list", lambda: sorted(os.listdir(d)))
    do(f"{d} read", lambda: read(f"{d}/f"))
    do(f"{d} write", lambda: write(f"{d}/f"))
    do(f"{d} new", lambda: write(f"{d}/new"))
    do(f"{d} rename", lambda: os.rename(f"{d}/new", f"{d}/newer"))
    do(f"{d} size", lambda: os.stat(f"{d}/f").st_size)
    do(f"{d} unlink", lambda: os.unlink(f"{d}/f"))
    do(f"{d} mkdir", lambda: os.mkdir(f"{d}/made"))
    do(f"{d} missing", lambda: read(f"{d}/missing"))
    for i in range(40):
        do(f"{d} number {i}", lambda: write(f"{d}/n.{i:04}"))
    for i in range(40):
        do(f"{d} remove {i}", lambda: os.unlink(f"{d}/n.{i:04}"))
"""

BEFORE = "mkdir -p d/sub e empty; for d in d d/sub e; do echo data >$d/f; done"


@pytest.mark.parametrize("words", ["d", "d e", ".", "r:d", "r:d d/sub", "r:. d", "/", "r:/ d", "d/sub r:e", "empty", "d empty", "d r:e"])
def test_directories_that_are_named(pair, area, words):
    (area / "program.py").write_text(PROGRAM)
    native, shunt = pair.both(f"{BEFORE}; {PYTHON} {area}/program.py {words}")
    assert "EACCES" in native or words in (".", "/")
    assert_equal_text(native, shunt)


def test_a_root_that_is_not_named(pair, area):
    """It may be looked at all the same."""
    (area / "program.py").write_text(PROGRAM)
    native, shunt = pair.both(f"{BEFORE}; {PYTHON} {area}/program.py /usr")
    assert "d size 5" in native
    assert_equal_text(native, shunt)


def test_children_reach_the_daemon(pair, area):
    """Each replaces the restricted process, and the library is loaded again."""
    (area / "program.py").write_text(PROGRAM + 'print(subprocess.run(["/bin/cat", "d/sub/newer"], stdout=subprocess.PIPE).stdout)\n')
    native, shunt = pair.both(f"{BEFORE}; {PYTHON} {area}/program.py r:/ d r:/usr")
    assert native.splitlines()[-1] == "b'x'"
    assert_equal_text(native, shunt)
