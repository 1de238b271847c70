# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""two_roots.py prepare|run FROM TO: renames and links each kind of file in FROM/d onto each in TO/e, and tells what came of it.
What is called "old" was made by prepare, and is in the trunk."""

import ctypes
import errno
import itertools
import os
import stat
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
AT = -100


def made(path, text):
    with open(path, "w") as file:
        file.write(text)


KINDS = {
    "none": lambda path: None,
    "file": lambda path: made(path, "/".join(path.split("/")[-2:])),
    "old": lambda path: None,
    "link": lambda path: os.symlink("../leads-nowhere", path),
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "full": lambda path: (os.mkdir(path), made(path + "/in", "in")),
}


def by(function, *flags):
    def call(one, other):
        if function(AT, one.encode(), AT, other.encode(), *flags) == 0:
            return "0"
        return errno.errorcode[ctypes.get_errno()]
    return call


CALLS = {
    "rename": by(LIBC.renameat),
    "noreplace": by(LIBC.renameat2, NOREPLACE),
    "exchange": by(LIBC.renameat2, EXCHANGE),
    "link": by(LIBC.linkat, 0),
}


def seen(path):
    try:
        found = os.lstat(path)
    except OSError as error:
        return errno.errorcode[error.errno]
    text = open(path).read() if stat.S_ISREG(found.st_mode) else ""
    links = "" if stat.S_ISDIR(found.st_mode) else f" x{found.st_nlink}"  # a directory has those that were not renamed
    return f"{stat.S_IFMT(found.st_mode):o}{links} {text}".strip()


def tell(call, one, other):
    result = CALLS[call](one, other)
    print(call, *("/".join(path.split("/")[-2:]) for path in (one, other)), "=", result, "|", seen(one.rstrip("/")), "|",
          seen(other.rstrip("/")))


def cases():
    for call, old, new in itertools.product(CALLS, KINDS, KINDS):
        yield call, old, new, f"{call}-{old}-onto-{new}"


def prepare(one, other):
    for top, sub in (one, "d"), (other, "e"):
        os.mkdir(f"{top}/{sub}")
    for _, old, new, name in cases():
        if old == "old":
            KINDS["file"](f"{one}/d/{name}")
        if new == "old":
            KINDS["file"](f"{other}/e/{name}")


def run(one, other):
    for call, old, new, name in cases():
        KINDS[old](f"{one}/d/{name}")
        KINDS[new](f"{other}/e/{name}")
        tell(call, f"{one}/d/{name}", f"{other}/e/{name}")
    odd(one, other)
    for directory in f"{one}/d", f"{other}/e":
        print(directory[-1], *sorted(os.listdir(directory)), sep="\n")


def odd(one, other):
    """Slashes, dots, missing parents, names of one inode, relative paths, a name that a loader looks for, back again."""
    made(f"{one}/d/x", "x")
    made(f"{other}/e/y", "y")
    os.symlink("y", f"{other}/e/to-y")
    ends = "x", "x/", "x/.", "x/..", ".", "none", "none/", "none/x", "x/x"
    for call, old, new in itertools.product(CALLS, ends, ("y/", "y/.", ".", "none/", "none/y", "y/y", "to-y/")):
        tell(call, f"{one}/d/{old}", f"{other}/e/{new}")
    tell("link", f"{one}/d/x", f"{other}/e/same")
    for call in CALLS:
        tell(call, f"{one}/d/x", f"{other}/e/same")
    tell("rename", f"{one}/d/x", f"{other}/e/libx.so")
    tell("rename", f"{other}/e/libx.so", f"{one}/d/x")
    os.chdir(f"{other}/e")
    back = os.path.relpath(f"{one}/d", os.getcwd())
    tell("rename", f"{back}/x", "./here")
    tell("exchange", "here", "y")
    tell("rename", "here", f"{back}/again")
    tell("link", f"{back}/again", "second")
    fd = os.open(f"{one}/d", os.O_RDONLY)
    LIBC.renameat(fd, b"again", AT, b"by-descriptor")
    print("by-descriptor", seen(f"{other}/e/by-descriptor"), seen(f"{one}/d/again"))
    made("kept-open", "open")
    with open("kept-open", "a") as file:
        tell("rename", "./kept-open", f"{one}/d/kept-open")
        file.write(" and written")
    print("kept-open", seen(f"{one}/d/kept-open"))


os.umask(0o22)
(prepare if sys.argv[1] == "prepare" else run)(*sys.argv[2:])
