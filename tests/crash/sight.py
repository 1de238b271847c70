# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What is in a directory, as [(path, Entry)]: by a program's eyes, and by walking over a union's plain directories
without any of shunt's code."""

import os
import pathlib
import stat

from oracle import Entry

LINE = 32  # of worker.c
MARKER = ".shunt-dir"


def read_lines(text):
    """[(path, Entry)] of what `worker look` printed."""
    found = []
    for line in text.splitlines():
        kind, inode, links, size, token, is_good, path = line.split(" ", 6)
        found.append((path, Entry(kind, int(inode), int(links), int(size), int(token, 16), is_good == "1")))
    return found


def content_of(path):
    """The token of a file, and whether all of it is what belongs to that."""
    content = pathlib.Path(path).read_bytes()
    if not content:
        return 0, True
    token = int(content[:16], 16)
    lines = (f"{token:016x} {number:014d}\n" for number in range(len(content) // LINE))
    return token, content == "".join(lines).encode()


def entry_of(path):
    found = os.lstat(path)
    if stat.S_ISDIR(found.st_mode):
        return Entry("d", found.st_ino, found.st_nlink, 0, 0, True)
    if not stat.S_ISREG(found.st_mode):
        return Entry("?", found.st_ino, found.st_nlink, 0, 0, True)
    token, is_good = content_of(path)
    return Entry("f", found.st_ino, found.st_nlink, found.st_size, token, is_good)


def mirror_of(directory):
    """The name of a directory's mirrors, as its marker says; None without one."""
    try:
        lines = (directory / MARKER).read_text().splitlines()
    except FileNotFoundError:
        return None
    return dict(line.split(" ", 1) for line in lines[:4])["mirror"]


def leaves_of(root, directory):
    """Its numbered leaves in all branches."""
    mirror = mirror_of(directory)
    branches = sorted((root / ".shunt" / "b").glob("*")) if mirror else []
    return [leaf for branch in branches for leaf in sorted((branch / mirror).glob("*")) if leaf.name.isdigit()]


def walk_union(root, top):
    """All that the union of `top`, a directory of the root, holds; a name in two places is there twice."""
    found = []
    todo = [pathlib.Path(top)]
    while todo:
        directory = todo.pop()
        for place in [directory, *leaves_of(root, directory)]:
            for path in sorted(place.iterdir()):
                if not path.name.startswith(MARKER):
                    found.append((str((directory / path.name).relative_to(top)), entry_of(path)))
                if path.is_dir():
                    todo.append(path)
    return found


def walk_plain(top):
    return [(str(path.relative_to(top)), entry_of(path)) for path in pathlib.Path(top).rglob("*")]
