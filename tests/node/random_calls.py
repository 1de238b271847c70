# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""random_calls.py [--ring=NUMBER/PROCESSES:PIPES] DIRECTORY COUNT SEED...: for each seed a directory, and in it that many calls on few
names, of every kind that takes a path, spelled in all ways; says what each came to, and in the end what is there. The same seed
makes the same calls, as long as they come to the same.

Several processes in a ring make one call each by turns: the ends of their pipes are listed as for tests/same's program."""

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import shutil
import stat
import sys
import tempfile

AT_FDCWD, AT_SYMLINK_FOLLOW, AT_REMOVEDIR, AT_EMPTY_PATH = -100, 0x400, 0x200, 0x1000
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
NAMES = ["a", "b", "c", "d"]
ODD_NAMES = ["x" * 200, "ä", "-", "d1", "d2", "d3"]
DIRECTORIES = ["", "d1", "d1/d2", "d3", "ln", "d3/up", "d1/abs"]
OPENED_MOST = 20

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    """A function of libc: (what it answers, the name of its error or "")."""
    ctypes.set_errno(0)
    answer = getattr(libc, name)(*arguments)
    return answer, errno.errorcode[ctypes.get_errno()] if answer == -1 else ""


def outcome(function, *arguments, **keywords):
    try:
        return function(*arguments, **keywords)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def told(status):
    """Of what stat says what does not depend on the file system; a directory's links and size do."""
    if isinstance(status, str):
        return status
    is_directory = stat.S_ISDIR(status.st_mode)
    return oct(status.st_mode), "" if is_directory else (status.st_nlink, status.st_size)


class Ring:
    """Processes that take turns; the first one begins."""

    def __init__(self, text="0/1:"):
        place, _, ends = text.partition(":")
        self.number, self.count = map(int, place.split("/"))
        self.ends = [int(end) for end in ends.split(",") if end]  # of each process's pipe: to read from, to write to
        self.is_first = self.number == 0

    @contextlib.contextmanager
    def turn(self):
        if self.ends and not self.is_first:
            os.read(self.ends[2 * self.number], 1)
        self.is_first = False
        yield
        sys.stdout.flush()
        if self.ends:
            os.write(self.ends[2 * ((self.number + 1) % self.count) + 1], b".")


def make_directories(top):
    os.makedirs(top)
    os.chdir(top)
    for name in ("d1", "d1/d2", "d3"):
        os.mkdir(name)
    os.symlink("d1", "ln")
    os.symlink("..", "d3/up")
    os.symlink(f"{top}/d3", "d1/abs")


class Caller:
    def __init__(self, top):
        self.chance, self.top = None, top
        self.files, self.directories = [], []  # descriptors
        self.names = [name for name in dir(self) if name.startswith("call_")] + list(self.OFTEN)

    def say(self, *words):
        text = " ".join(map(str, words))
        print(text.replace(self.top, "TOP").replace(os.path.dirname(self.top), "ABOVE"))

    # What to call with

    def likely(self, share):
        return self.chance.random() < share

    def name(self):
        return self.chance.choice(NAMES if self.likely(0.8) else NAMES + ODD_NAMES)

    def path(self):
        directory, name = self.chance.choice(DIRECTORIES), self.name()
        path = os.path.join(directory, name)
        ways = [f"./{path}", path.replace("/", "//"), f"{directory or 'd1'}/../{path}", f"../{os.path.basename(self.top)}/{path}",
                f"{self.top}/{path}", f"{path}/", f"{path}/.", f"{path}/..", f"{path}/zz", ""]
        return self.chance.choice(ways) if self.likely(0.35) else path

    def place(self):
        """A descriptor, or AT_FDCWD, and a path."""
        if not self.directories or self.likely(0.6):
            return AT_FDCWD, self.path()
        name = self.name()
        return self.chance.choice(self.directories), self.chance.choice([name, name, f"./{name}", f"../{name}", f"d2/{name}", f"{name}/"])

    def at(self, directory):
        return {} if directory == AT_FDCWD else {"dir_fd": directory}

    # Calls

    def call_open(self):
        at, path = self.place()
        flags = self.chance.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR]) | os.O_NONBLOCK
        for flag, share in ((os.O_CREAT, 0.6), (os.O_EXCL, 0.25), (os.O_TRUNC, 0.2), (os.O_APPEND, 0.1), (os.O_NOFOLLOW, 0.15),
                            (os.O_DIRECTORY, 0.1), (os.O_PATH, 0.07)):
            flags |= flag if self.likely(share) else 0
        fd, error = call("openat", at, path.encode(), flags, self.chance.choice([0o600, 0o644, 0, 0o7777]))
        self.say("open", path, oct(flags), error)
        if fd >= 0:
            written = outcome(os.write, fd, b"w" * self.chance.randrange(50)) if flags & os.O_ACCMODE else ""
            self.say(written, told(os.fstat(fd)))
            if len(self.files) < OPENED_MOST and self.likely(0.3):
                self.files.append(fd)
            else:
                os.close(fd)

    def call_openat2(self):
        at, path = self.place()
        flags = self.chance.choice([os.O_NONBLOCK, os.O_PATH, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK])
        how = (ctypes.c_uint64 * 3)(flags, 0o600 if flags & os.O_CREAT else 0, 0)
        fd, error = call("syscall", 437, at, path.encode(), how, ctypes.sizeof(how))
        self.say("openat2", path, oct(flags), error)
        if fd >= 0:
            os.close(fd)

    def call_unlink(self):
        at, path = self.place()
        flags = self.chance.choice([0, 0, 0, AT_REMOVEDIR])
        self.say("unlink", path, flags, call("unlinkat", at, path.encode(), flags)[1])

    def call_mkdir(self):
        at, path = self.place()
        self.say("mkdir", path, call("mkdirat", at, path.encode(), 0o755)[1])

    def call_rename(self):
        (at, path), (to, new) = self.place(), self.place()
        flags = self.chance.choice([0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE | RENAME_NOREPLACE, 8])
        self.say("rename", path, new, flags, call("renameat2", at, path.encode(), to, new.encode(), flags)[1])

    def call_link(self):
        (at, path), (to, new) = self.place(), self.place()
        flags = self.chance.choice([0, 0, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH])
        self.say("link", path, new, flags, call("linkat", at, path.encode(), to, new.encode(), flags)[1])

    def call_symlink(self):
        at, path = self.place()
        text = self.path()
        self.say("symlink", text, path, call("symlinkat", text.encode(), at, path.encode())[1])

    def call_mknod(self):
        at, path = self.place()
        kind = self.chance.choice([stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK])
        self.say("mknod", path, kind, outcome(os.mknod, path, kind | 0o600, **self.at(at)))

    def call_stat(self):
        at, path = self.place()
        self.say("stat", path, told(outcome(os.stat, path, follow_symlinks=self.likely(0.5), **self.at(at))))

    def call_statx(self):
        at, path = self.place()
        flags, mask = self.chance.choice([0, 0x100, AT_EMPTY_PATH, 0x2000]), self.chance.choice([0x7ff, 1, 0x800])
        self.say("statx", path, flags, call("statx", at, path.encode(), flags, mask, ctypes.create_string_buffer(256))[1])

    def call_access(self):
        at, path = self.place()
        self.say("access", path, call("faccessat", at, path.encode(), self.chance.randrange(5), self.chance.choice([0, 0x100, 0x200]))[1])

    def call_chmod(self):
        at, path = self.place()
        self.say("chmod", path, outcome(os.chmod, path, self.chance.choice([0o600, 0o444, 0o755, 0o4755]), **self.at(at)))

    def call_truncate(self):
        path = self.path()
        self.say("truncate", path, outcome(os.truncate, path, self.chance.randrange(100)))

    def call_utime(self):
        at, path = self.place()
        self.say("utime", path, outcome(os.utime, path, (1, self.chance.randrange(9)), follow_symlinks=self.likely(0.5), **self.at(at)))

    def call_readlink(self):
        at, path = self.place()
        self.say("readlink", path, outcome(os.readlink, path, **self.at(at)))

    def call_realpath(self):
        path = self.path()
        self.say("realpath", path, outcome(lambda: os.path.realpath(path, strict=True)))

    def call_list(self):
        path = self.path() or "."
        self.say("list", path, outcome(lambda: sorted(os.listdir(path))))

    def call_scandir(self):
        path = self.path() or "."
        self.say("scandir", path, outcome(lambda: sorted((e.name, e.is_dir(), e.is_file(), e.is_symlink()) for e in os.scandir(path))))

    def call_read(self):
        at, path = self.place()

        def read():
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK, **self.at(at))
            try:
                return os.read(fd, 200)
            finally:
                os.close(fd)

        self.say("read", path, outcome(read))

    def call_xattr(self):
        path = self.path()
        calls = [lambda: os.setxattr(path, "user.a", b"1"), lambda: os.getxattr(path, "user.a"), lambda: os.removexattr(path, "user.a"),
                 lambda: os.listxattr(path, follow_symlinks=False)]
        self.say("xattr", path, outcome(self.chance.choice(calls)))

    def call_tmpfile(self):
        path = self.path()
        fd = outcome(os.open, self.chance.choice([".", "d1", "d3", "a"]), os.O_TMPFILE | os.O_RDWR, 0o600)
        linked = ""
        if isinstance(fd, int):
            os.write(fd, b"t")
            linked = call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, path.encode(), AT_SYMLINK_FOLLOW)[1]
            os.close(fd)
        self.say("tmpfile", path, linked if isinstance(fd, int) else fd)

    def call_mkdtemp(self):
        self.say("mkdtemp", outcome(lambda: os.rmdir(tempfile.mkdtemp(dir=self.chance.choice([".", "d1"])))))

    def call_copy(self):
        path, new = self.path(), self.path()
        if os.path.isfile(path) and not stat.S_ISFIFO(getattr(outcome(os.stat, new), "st_mode", 0)):
            follows = self.likely(0.5)
            try:
                self.say("copy", path, new, outcome(shutil.copy2, path, new, follow_symlinks=follows))
            except shutil.Error as error:
                self.say("copy", path, new, error)

    def call_chdir(self):
        path = self.chance.choice(["d1", "..", "d3", "ln", ".", "d1/d2", "a", self.top])
        self.say("chdir", path, outcome(os.chdir, path), outcome(os.getcwd))
        if not str(outcome(os.getcwd)).startswith(self.top):
            os.chdir(self.top)

    def call_open_directory(self):
        if len(self.directories) > 5:
            os.close(self.directories.pop(self.chance.randrange(5)))
        fd = outcome(os.open, self.chance.choice(["d1", "d1/d2", "d3", ".", "ln", self.top]), self.chance.choice([0, os.O_PATH]) | os.O_DIRECTORY)
        if isinstance(fd, int):
            self.directories.append(fd)
        self.say("open directory", isinstance(fd, int) or fd)

    def call_descriptor(self):
        if not self.files:
            return
        fd = self.chance.choice(self.files)
        calls = {"fstat": lambda: told(os.fstat(fd)), "lseek": lambda: os.lseek(fd, 0, os.SEEK_CUR), "fchmod": lambda: os.fchmod(fd, 0o600),
                 "ftruncate": lambda: os.ftruncate(fd, 7), "futimes": lambda: os.utime(fd, (5, 5)), "fsync": lambda: os.fsync(fd),
                 "flags": lambda: oct(fcntl.fcntl(fd, fcntl.F_GETFL))}
        name = self.chance.choice(list(calls))
        self.say(name, outcome(calls[name]))

    def call_by_proc(self):
        if not self.files:
            return
        path, link = self.path(), f"/proc/self/fd/{self.chance.choice(self.files)}"
        calls = {"stat": lambda: told(os.stat(link)), "open": lambda: os.close(os.open(link, os.O_RDWR | os.O_NONBLOCK)),
                 "chmod": lambda: os.chmod(link, 0o640), "truncate": lambda: os.truncate(link, 3), "readlink": lambda: os.readlink(link),
                 "link": lambda: call("linkat", AT_FDCWD, link.encode(), AT_FDCWD, path.encode(), AT_SYMLINK_FOLLOW)[1]}
        name = self.chance.choice(list(calls))
        self.say("by /proc", name, path, outcome(calls[name]))

    def call_close(self):
        if self.files:
            os.close(self.files.pop(self.chance.randrange(len(self.files))))

    OFTEN = ("call_open", "call_open", "call_unlink", "call_rename", "call_rename")

    def call(self, chance):
        self.chance = chance
        getattr(self, chance.choice(self.names))()

    def sum_up(self):
        os.chdir(self.top)
        for directory, below, names in os.walk("."):
            below.sort()
            self.say(directory, below, [(name, told(os.lstat(os.path.join(directory, name)))) for name in sorted(names)])


def make_calls(parent, seed, count, ring):
    caller = Caller(f"{parent}/{seed}/top")  # `..` leads to nothing that another seed sees
    with ring.turn():
        if ring.number == 0:
            print(f"seed {seed}")
            make_directories(caller.top)
        os.chdir(caller.top)
    for step in range(ring.number, count, ring.count):
        with ring.turn():
            caller.call(random.Random(f"{seed}/{step}"))
    with ring.turn():
        caller.sum_up()
        for fd in caller.files + caller.directories:
            os.close(fd)


def main():
    words = sys.argv[1:]
    ring = Ring(words.pop(0).partition("=")[2]) if words[0].startswith("--ring=") else Ring()
    os.umask(0o022)
    count = int(words[1]) // ring.count * ring.count  # as many for each
    for seed in map(int, words[2:]):
        make_calls(os.path.realpath(words[0]), seed, count, ring)


if __name__ == "__main__":
    main()
