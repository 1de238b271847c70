# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory tree as lines, as far as two runs of a program must leave the same."""

import hashlib
import os
import re
import stat

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket", stat.S_IFBLK: "block", stat.S_IFCHR: "character"}


def content(path, kind, root):
    """What a file holds, or a link points to, with the root's own path replaced by ROOT."""
    if kind == "link":
        return "-> " + os.readlink(path).replace(root, "ROOT")
    if kind != "file":
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read().replace(os.fsencode(root), b"ROOT")).hexdigest()[:16]


def extended_attributes(path):
    names = sorted(os.listxattr(path, follow_symlinks=False))
    values = (f"{name}={os.getxattr(path, name, follow_symlinks=False)!r}" for name in names)
    return " ".join(values)


def first_name(status, relative, inodes):
    """The first of the names of a file that has several."""
    if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode):
        return ""
    first = inodes.setdefault(status.st_ino, relative)
    return f"links {status.st_nlink} of {first}"


def describe(path, root, relative, inodes, any_content):
    status = os.lstat(path)
    kind = TYPES[stat.S_IFMT(status.st_mode)]
    # A directory's size and number of links are the file system's own business.
    size = status.st_size if kind == "file" and not any_content else ""
    words = [f"left {relative!r}:", kind, f"{stat.S_IMODE(status.st_mode):04o}", f"{status.st_uid}:{status.st_gid}",
             size, first_name(status, relative, inodes), "" if any_content else content(path, kind, root),
             extended_attributes(path)]
    return " ".join(str(word) for word in words if word != "")


def described(root, any_content=()):
    """A line for each name below a directory. The content of what matches a pattern in any_content does not count."""
    root, found, inodes = str(root), [], {}
    for directory, directories, files in os.walk(root):
        directories.sort()
        for name in sorted(directories + files):
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            free = any(re.fullmatch(pattern, relative) for pattern in any_content)
            found.append(describe(path, root, relative, inodes, free))
    return found
