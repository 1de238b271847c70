# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""keeping_file_system.py DIRECTORY...: one small file system in memory, mounted there once for each of some pretended nodes.

Each mount keeps names, and that there are none, as an NFS client does: until it is asked for the attributes of their directory
(AT_STATX_FORCE_SYNC) after another mount has changed it. A name on which a file was replaced is missed by the next two looks of
each other mount, which an NFS client does now and then even where it keeps no names. What is removed is ESTALE for a mount that still goes by it. Below
.shunt/session nothing is kept."""

import errno
import os
import pathlib
import select
import stat
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "node"))

from odd_file_system import (CREATE, GETATTR, LINK, MKDIR, MKNOD, RENAME, RMDIR, UNLINK, FileSystem,  # noqa: E402
                             Node, mounted)

LONG = 1_000_000
INVALIDATE_ENTRY = 3
DIRECT = 1
CHANGES = (CREATE, LINK, MKDIR, MKNOD, RENAME, RMDIR, UNLINK)


class KeptNode(Node):
    session = False

    def __init__(self, number, mode):
        super().__init__(number, mode)
        self.changes = []  # (mount, name), of a directory
        self.missed = {}  # likewise: how many looks of the mount do not find the name

    @property
    def kept(self):
        return 0 if self.session else LONG

    def entry(self):
        directory = stat.S_ISDIR(self.mode)
        return struct.pack("<4Q2I", self.number, 0, self.kept, self.kept if directory else 0, 0, 0) + self.attributes()


class Mount:
    def __init__(self, number, device):
        self.number, self.device = number, device
        self.seen = {}  # how many changes of a directory, by its number


class KeepingFileSystem(FileSystem):
    def __init__(self, mounts):
        super().__init__("fine", KeptNode)
        self.mounts = range(mounts)
        self.mount = 0  # whose request is served

    def add(self, parent, name, mode):
        node = super().add(parent, name, mode)
        node.session = parent.session or name == b"session"
        return node

    def lookup(self, node, body):
        if node.links == 0:
            raise OSError(errno.ESTALE, "")
        name = body.rstrip(b"\0")
        is_missed = node.missed.get((self.mount, name), 0) > 0
        if is_missed:
            node.missed[self.mount, name] -= 1
        elif name in node.children or node.session:
            return super().lookup(node, body)
        return struct.pack("<4Q2I", 0, 0, 0 if is_missed else LONG, 0, 0, 0) + bytes(88)

    def getattr(self, node, body):
        if node.links == 0 and stat.S_ISDIR(node.mode):
            raise OSError(errno.ESTALE, "")
        directory = stat.S_ISDIR(node.mode)
        return struct.pack("<QII", node.kept if directory else 0, 0, 0) + node.attributes()

    def open(self, node, body):
        if node.links == 0 and stat.S_ISDIR(node.mode):
            raise OSError(errno.ESTALE, "")
        return struct.pack("<QII", 0, 0 if stat.S_ISDIR(node.mode) else DIRECT, 0)

    def noted(self, operation, number, body):
        """Which names an operation changes: (directory, name)."""
        if operation == RENAME:
            old, new = body[8:].split(b"\0")[:2]
            return [(number, old), (struct.unpack_from("<Q", body)[0], new)]
        if operation not in CHANGES:
            return []
        start = {CREATE: 16, MKNOD: 16, MKDIR: 8, LINK: 8}.get(operation, 0)
        return [(number, body[start:].rstrip(b"\0"))]

    def rename(self, node, body):
        old, new = body[8:].split(b"\0")[:2]
        parent = self.nodes[struct.unpack_from("<Q", body)[0]]
        replaced = parent.children.get(new)
        if replaced is not None:
            replaced.links -= 1
            if not parent.session:
                parent.missed |= {(mount, new): 2 for mount in self.mounts if mount != self.mount}
        return super().rename(node, body)

    def forgotten_by(self, mount, number):
        """The names in a directory that other mounts have changed since this one asked for its attributes."""
        directory = self.nodes[number]
        since = mount.seen.get(number, 0)
        mount.seen[number] = len(directory.changes)
        return {name for by, name in directory.changes[since:] if by != mount.number}


def invalidate(mount, number, name):
    body = struct.pack("<QII", number, len(name), 0) + name + b"\0"
    try:
        os.write(mount.device, struct.pack("<IiQ", 16 + len(body), INVALIDATE_ENTRY, 0) + body)
    except FileNotFoundError:
        pass  # it keeps no such one


def answer_late(mount, number, names, answer):
    """The kernel takes the directory's lock for it, which may be held for another request."""
    for name in names:
        invalidate(mount, number, name)
    os.write(mount.device, answer)


def serve_one(file_system, mount, request):
    _, operation, _, number = struct.unpack_from("<IIQQ", request)
    noted = file_system.noted(operation, number, request[40:])
    file_system.mount = mount.number
    answer = file_system.serve(request)
    if answer is None:
        return
    if struct.unpack_from("<i", answer, 4)[0] == 0:
        for directory, name in noted:
            file_system.nodes[directory].changes.append((mount.number, name))
    names = file_system.forgotten_by(mount, number) if operation == GETATTR and number in file_system.nodes else ()
    if names:
        threading.Thread(target=answer_late, args=(mount, number, names, answer), daemon=True).start()
    else:
        os.write(mount.device, answer)


def main():
    """Until they are unmounted."""
    mounts = {}
    for number, directory in enumerate(sys.argv[1:]):
        device = mounted(directory)
        mounts[device] = Mount(number, device)
    file_system = KeepingFileSystem(len(mounts))
    while mounts:
        for device in select.select(list(mounts), [], [])[0]:
            try:
                serve_one(file_system, mounts[device], os.read(device, 1 << 20))
            except OSError:
                del mounts[device]


if __name__ == "__main__":
    main()
