# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""odd_file_system.py ODDITY DIRECTORY: mounts a small file system in memory there, and serves it through /dev/fuse.

ODDITY: nolinks has no hard links, as FAT has none; unstable makes up an inode number from a file's name, as file
systems on top of a service do; coarse has times in whole seconds, and fine in nanoseconds, of a clock that is set to second N by
making a file .clock-N, from which on the seconds stand still; unsynced has a file empty under another name than its first one unless
fsync has said how large it is, as others find one on CephFS that a lost node wrote; none has no times, and none of these oddities."""

import ctypes
import errno
import os
import stat
import struct
import sys
import time
import zlib

LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK = 1, 2, 3, 4, 8, 9, 10, 11, 12, 13
OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, INIT, OPENDIR, READDIR, RELEASEDIR, CREATE = 14, 15, 16, 17, 18, 20, 26, 27, 28, 29, 35
INTERRUPT, BATCH_FORGET = 36, 42
WITHOUT_ANSWER = (FORGET, BATCH_FORGET, INTERRUPT)
SET_MODE, SET_SIZE, SET_MTIME, SET_MTIME_NOW = 1, 8, 32, 256
DATA_ALONE = 1
SECOND = 10**9


class Node:
    kept = 0  # seconds for which the kernel may keep what it was told

    def __init__(self, number, mode):
        self.number = self.ino = number
        self.mode = mode
        self.links = 1
        self.children = {}
        self.data = b""
        self.known = 0  # how much of it fsync has told
        self.mtime = self.ctime = 0

    def attributes(self):
        times = [at // SECOND for at in (0, self.mtime, self.ctime)], [at % SECOND for at in (0, self.mtime, self.ctime)]
        return struct.pack("<6Q10I", self.ino, len(self.data), 0, *times[0], *times[1], self.mode, self.links,
                           os.getuid(), os.getgid(), 0, 4096, 0)

    def entry(self):
        return struct.pack("<4Q2I", self.number, 0, self.kept, self.kept, 0, 0) + self.attributes()


class FileSystem:
    def __init__(self, oddity, node=Node):
        self.oddity = oddity
        self.new_node = node
        self.nodes = {1: node(1, stat.S_IFDIR | 0o777)}
        self.stands_at = None

    def now(self):
        now = time.time_ns()
        if self.stands_at is not None:
            now = self.stands_at * SECOND + now % SECOND
        return {"coarse": now // SECOND * SECOND, "fine": now}.get(self.oddity, 0)

    def changed(self, *directories):
        for directory in directories:
            directory.mtime = directory.ctime = self.now()

    def add(self, parent, name, mode):
        if name in parent.children:
            raise OSError(errno.EEXIST, "")
        if name.startswith(b".clock-"):
            self.stands_at = int(name[7:])
        node = self.new_node(len(self.nodes) + 1, mode)
        self.nodes[node.number] = parent.children[name] = node
        self.changed(parent, node)
        return self.named(node, name)

    def named(self, node, name):
        if self.oddity == "unstable":
            node.ino = zlib.crc32(name) + 2
        return node

    def told(self, node):
        if self.oddity == "unsynced":
            node.data = node.data[:node.known]
        return node

    def child(self, parent, name):
        if name not in parent.children:
            raise OSError(errno.ENOENT, "")
        return self.named(parent.children[name], name)

    def lookup(self, node, body):
        return self.child(node, body.rstrip(b"\0")).entry()

    def getattr(self, node, body):
        return struct.pack("<QII", node.kept, 0, 0) + node.attributes()

    def setattr(self, node, body):
        valid, size, mode = *struct.unpack_from("<I", body), *struct.unpack_from("<Q", body, 16), \
            *struct.unpack_from("<I", body, 68)
        if valid & SET_MODE:
            node.mode = mode
        if valid & SET_SIZE:
            node.data = node.data[:size].ljust(size, b"\0")
        node.ctime = self.now()
        if valid & SET_MTIME and self.oddity in ("coarse", "fine"):
            seconds, part = *struct.unpack_from("<Q", body, 40), *struct.unpack_from("<I", body, 60)
            node.mtime = node.ctime if valid & SET_MTIME_NOW else seconds * SECOND + (part if self.oddity == "fine" else 0)
        return self.getattr(node, body)

    def mknod(self, node, body):
        return self.add(node, body[16:].rstrip(b"\0"), struct.unpack_from("<I", body)[0]).entry()

    def mkdir(self, node, body):
        return self.add(node, body[8:].rstrip(b"\0"), stat.S_IFDIR | struct.unpack_from("<I", body)[0]).entry()

    def create(self, node, body):
        made = self.add(node, body[16:].rstrip(b"\0"), stat.S_IFREG | struct.unpack_from("<I", body, 4)[0])
        return made.entry() + self.open(made, body)

    def unlink(self, node, body):
        self.child(node, body.rstrip(b"\0")).links -= 1
        del node.children[body.rstrip(b"\0")]
        self.changed(node)
        return b""

    def rmdir(self, node, body):
        if self.child(node, body.rstrip(b"\0")).children:
            raise OSError(errno.ENOTEMPTY, "")
        return self.unlink(node, body)

    def rename(self, node, body):
        old, new = body[8:].split(b"\0")[:2]
        parent = self.nodes[struct.unpack_from("<Q", body)[0]]
        parent.children[new] = self.told(self.child(node, old))
        del node.children[old]
        self.changed(node, parent)
        return b""

    def link(self, node, body):
        if self.oddity == "nolinks":
            raise OSError(errno.EPERM, "")
        name, linked = body[8:].rstrip(b"\0"), self.nodes[struct.unpack_from("<Q", body)[0]]
        node.children[name] = self.told(linked)
        linked.links += 1
        self.changed(node)
        return self.named(linked, name).entry()

    def open(self, node, body):
        return struct.pack("<QII", 0, 0, 0)

    def read(self, node, body):
        offset, size = struct.unpack_from("<QI", body, 8)
        return node.data[offset:offset + size]

    def write(self, node, body):
        offset, size = struct.unpack_from("<QI", body, 8)
        node.data = node.data[:offset].ljust(offset, b"\0") + body[40:40 + size] + node.data[offset + size:]
        return struct.pack("<II", size, 0)

    def fsync(self, node, body):
        if not struct.unpack_from("<I", body, 8)[0] & DATA_ALONE:
            node.known = len(node.data)
        return b""

    def statfs(self, node, body):
        return struct.pack("<5Q4I", 1000, 1000, 1000, 1000, 1000, 4096, 255, 4096, 0) + bytes(24)

    def readdir(self, node, body):
        offset, size = struct.unpack_from("<QI", body, 8)
        names = [(b".", node), (b"..", node), *sorted(node.children.items())]
        answer = b""
        for i, (name, child) in enumerate(names[offset:], offset + 1):
            ino = child.ino if name.startswith(b".") else self.named(child, name).ino
            one = struct.pack("<QQII", ino, i, len(name), child.mode >> 12) + name
            one += bytes(-len(one) % 8)
            if len(answer) + len(one) > size:
                break
            answer += one
        return answer

    def init(self, node, body):
        return struct.pack("<IIIIHHI", 7, 22, 0, 0, 0, 0, 65536)

    def nothing(self, node, body):
        return b""

    OPERATIONS = {LOOKUP: lookup, GETATTR: getattr, SETATTR: setattr, MKNOD: mknod, MKDIR: mkdir, UNLINK: unlink,
                  RMDIR: rmdir, RENAME: rename, LINK: link, OPEN: open, READ: read, WRITE: write, STATFS: statfs,
                  FSYNC: fsync, RELEASE: nothing, INIT: init, OPENDIR: open, READDIR: readdir, RELEASEDIR: nothing, CREATE: create}

    def serve(self, request):
        """The answer to one request of the kernel, or None."""
        _, operation, unique, number = struct.unpack_from("<IIQQ", request)
        if operation in WITHOUT_ANSWER:
            return None
        error, body = -errno.ENOSYS, b""
        if operation in self.OPERATIONS:
            try:
                serve = getattr(self, self.OPERATIONS[operation].__name__)  # that of a class that is derived, if it has one
                error, body = 0, serve(self.nodes.get(number), request[40:])
            except OSError as failure:
                error, body = -failure.errno, b""
        return struct.pack("<IiQ", 16 + len(body), error, unique) + body


def mounted(directory):
    """The device through which the kernel asks."""
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"shunt-test", os.fsencode(directory), b"fuse", 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("serving", flush=True)
    return device


def main():
    oddity, directory = sys.argv[1:]
    device = mounted(directory)
    file_system = FileSystem(oddity)
    while True:
        answer = file_system.serve(os.read(device, 1 << 20))
        if answer:
            os.write(device, answer)


if __name__ == "__main__":
    main()
