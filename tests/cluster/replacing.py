#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""replacing.py STEP TOP CASES: names of each kind, in whose place come things of each kind, and what calls on them do then.

CASES: `one` name and calls on it, or two of which the `new` or the `old` one is replaced. Each case has a directory of its own
below TOP. Steps: `make` it; `look` at the names; `replace` the one; `call`, which prints the outcomes as JSON; `after`, which
prints what is there then."""

import ctypes
import errno
import json
import os
import stat
import sys

NOREPLACE, EXCHANGE = 1, 2
NONBLOCK = os.O_NONBLOCK  # of a FIFO
PUTS = {
    "file": lambda path: write(path, "text of " + os.path.basename(path)),
    "full": lambda path: (os.mkdir(path), write(f"{path}/in", "in")),
    "empty": os.mkdir,
    "link": lambda path: os.symlink("file", path),
    "name": lambda path: os.link(os.path.dirname(path) + "/file", path),  # another one of that file
    "dangling": lambda path: os.symlink("nowhere", path),
    "fifo": os.mkfifo,
    "nothing": lambda path: None,
}
LIBC = ctypes.CDLL(None, use_errno=True)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            os.unlink(f"{path}/{name}")
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def kind(mode):
    return oct(stat.S_IFMT(mode))


def opened(name, flags):
    fd = os.open(name, flags | NONBLOCK, 0o644)
    try:
        return kind(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def entry(name):
    with os.scandir(os.path.dirname(name)) as entries:
        return [(found.is_file(follow_symlinks=False), found.is_dir(follow_symlinks=False), found.is_symlink(),
                 found.inode() == os.lstat(name).st_ino) for found in entries if found.name == os.path.basename(name)]


def renamed(old, new, flags):
    if LIBC.renameat2(-100, old.encode(), -100, new.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def put_and_renamed(name, put):
    PUTS[put](f"{name}.put")
    os.rename(f"{name}.put", name)


CALLS_OF_ONE = {
    "stat": lambda name: kind(os.stat(name).st_mode), "lstat": lambda name: kind(os.lstat(name).st_mode),
    "stat/": lambda name: kind(os.stat(f"{name}/").st_mode), "stat/.": lambda name: kind(os.stat(f"{name}/.").st_mode),
    "read": lambda name: opened(name, os.O_RDONLY), "path": lambda name: opened(name, os.O_PATH),
    "nofollow": lambda name: opened(name, os.O_RDONLY | os.O_NOFOLLOW),
    "directory": lambda name: opened(name, os.O_RDONLY | os.O_DIRECTORY),
    "creat": lambda name: opened(name, os.O_CREAT | os.O_RDWR), "creat/": lambda name: opened(f"{name}/", os.O_CREAT | os.O_RDWR),
    "creat, read": lambda name: opened(name, os.O_CREAT | os.O_RDONLY),
    "creat, truncate": lambda name: opened(name, os.O_CREAT | os.O_RDWR | os.O_TRUNC),
    "creat, nofollow": lambda name: opened(name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW),
    "exclusive": lambda name: opened(name, os.O_CREAT | os.O_EXCL | os.O_RDWR),
    "unlink": os.unlink, "unlink/": lambda name: os.unlink(f"{name}/"), "rmdir": os.rmdir, "mkdir": os.mkdir,
    "mkdir/": lambda name: os.mkdir(f"{name}/"), "mkfifo": os.mkfifo, "symlink": lambda name: os.symlink("x", name),
    "link from": lambda name: os.link(name, f"{name}.link", follow_symlinks=False),
    "link to": lambda name: os.link(f"{os.path.dirname(name)}/file", name),
    "rename": lambda name: os.rename(name, f"{name}.renamed"), "rename/": lambda name: os.rename(f"{name}/", f"{name}.renamed"),
    "rename a file to": lambda name: put_and_renamed(name, "file"), "rename a directory to": lambda name: put_and_renamed(name, "empty"),
    "rename to itself": lambda name: os.rename(name, name),
    "rename its file to": lambda name: os.rename(f"{os.path.dirname(name)}/file", name),
    "rename to its file": lambda name: os.rename(name, f"{os.path.dirname(name)}/file"),
    "readlink": os.readlink, "list": lambda name: sorted(os.listdir(name)), "entry": entry, "chdir": os.chdir,
    "chmod": lambda name: os.chmod(name, 0o600), "utime": lambda name: os.utime(name, (1, 1)),
    "lutime": lambda name: os.utime(name, (1, 1), follow_symlinks=False), "truncate": lambda name: os.truncate(name, 0),
    "access": lambda name: os.access(name, os.W_OK), "xattrs": os.listxattr, "statvfs": lambda name: os.statvfs(name).f_namemax,
    "make beneath": lambda name: opened(f"{name}/x", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "stat beneath": lambda name: os.stat(f"{name}/in").st_size,
    "replace again": lambda name: (remove(name), opened(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))[1],
}
CALLS_OF_TWO = {
    "rename": os.rename, "rename/": lambda old, new: os.rename(f"{old}/", new), "rename to/": lambda old, new: os.rename(old, f"{new}/"),
    "back": lambda old, new: os.rename(new, old), "link": lambda old, new: os.link(old, new, follow_symlinks=False),
    "exchange": lambda old, new: renamed(old, new, EXCHANGE), "exchange/": lambda old, new: renamed(old, f"{new}/", EXCHANGE),
    "keep": lambda old, new: renamed(old, new, NOREPLACE),
}


def outcome(call, *names):
    try:
        return repr(call(*names))
    except OSError as error:
        return errno.errorcode[error.errno]


def there(path):
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        return errno.errorcode[error.errno]
    if stat.S_ISDIR(mode):
        return f"{kind(mode)} {sorted(os.listdir(path))}"
    if stat.S_ISREG(mode):
        with open(path, encoding="utf-8") as file:
            return f"{kind(mode)} {file.read()}"
    return f"{kind(mode)} {os.readlink(path)}" if stat.S_ISLNK(mode) else kind(mode)


def cases(which):
    """(its name, the call, {name: what it is at first}, {a name: what comes in its place})"""
    known = [put for put in PUTS if put != "nothing"]  # of names that the index has not
    for first in known:
        if which == "one":
            yield from ((f"{first}, {then}: {call}", CALLS_OF_ONE[call], {"name": first}, {"name": then})
                        for then in PUTS for call in CALLS_OF_ONE)
        else:
            yield from ((f"{first} and {second}, {then}: {call}", CALLS_OF_TWO[call], {"old": first, "new": second}, {which: then})
                        for second in known for then in PUTS for call in CALLS_OF_TWO)


def step_in(step, directory, call, names, then):
    """What is to be said of it."""
    if step == "make":
        os.mkdir(directory)
        write(f"{directory}/file", "file")
        for name, put in names.items():
            PUTS[put](f"{directory}/{name}")
    elif step == "look":
        return [there(f"{directory}/{name}") for name in names] and os.listdir(directory) and None
    elif step == "replace":
        for name, put in then.items():
            remove(f"{directory}/{name}")
            PUTS[put](f"{directory}/{name}")
    elif step == "call":
        return outcome(call, *(f"{directory}/{name}" for name in names))
    else:
        return [sorted(os.listdir(directory)), *(there(f"{directory}/{name}") for name in names)]
    return None


def main(step, top, which):
    said = {}
    os.umask(0o022)
    if step == "make":
        os.mkdir(top)
    for number, (name, *case) in enumerate(cases(which)):
        said[name] = step_in(step, f"{top}/{number}", *case)
        os.chdir("/")
    if step in ("call", "after"):
        json.dump(said, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
