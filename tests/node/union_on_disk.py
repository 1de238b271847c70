# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Unions made by hand: what a session leaves on disk, without a session."""

import contextlib
import ctypes
import os
import pathlib
import socket
import struct
import threading

from daemons import epoch_lines

AT_FDCWD = -100
STATX_BTIME = 0x800


def birth(path):
    """Nanoseconds since 1970; 0 where the file system has no birth times."""
    buffer = ctypes.create_string_buffer(256)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.statx(AT_FDCWD, os.fsencode(path), 0, STATX_BTIME, buffer) == 0, os.strerror(ctypes.get_errno())
    mask, = struct.unpack_from("I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("qI", buffer, 80)
    return seconds * 10**9 + nanoseconds if mask & STATX_BTIME else 0


class Union:
    """A root with branches, mirrors and leaves."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.root.mkdir(exist_ok=True)
        (self.root / ".shunt" / "b").mkdir(parents=True)
        (self.root / ".shunt" / "session").mkdir(mode=0o700)
        (self.root / ".shunt" / "README").write_text("words\n")

    def write_marker(self, directory, mirror, written_for=None, path=None):
        """The marker of `directory`, written for it unless another is named."""
        owner = self.root / (written_for or directory)
        text = (f"shunt-dir 1\nmirror {mirror}\ndirectory {owner.stat().st_ino} {birth(owner)}\n"
                f"path {path or written_for or directory}\n\nwords\n")
        (self.root / directory / ".shunt-dir").write_text(text)

    def mark(self, directory, number):
        """Makes a directory (relative to the root) a redirected one; the name of its mirrors."""
        (self.root / directory).mkdir(parents=True, exist_ok=True)
        mirror = f"{pathlib.Path(directory).name or 'root'}-{number:012x}"
        self.write_marker(directory, mirror)
        return mirror

    def leaf(self, branch, mirror, number=0):
        directory = self.root / ".shunt" / "b" / branch / mirror / str(number)
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def put(self, branch, mirror, name, content="", leaf=0):
        """A redirected file."""
        file = self.leaf(branch, mirror, leaf) / name
        file.write_text(content)
        return file

    def hold(self, pid=None, host=None, job="", run="/dev/shm/nowhere", lease=6):
        """A session of this process, or of one that never was; with the run directory / that of a tool. Seconds of lease."""
        started = pathlib.Path(f"/proc/{pid or os.getpid()}/stat").read_text().rpartition(")")[2].split()[19] \
            if pid is None else 1
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip() if host is None \
            else "00000000-0000-0000-0000-000000000000"
        (self.root / ".shunt" / "session" / "epoch.1").write_text(
            f"shunt-session 5\nid abc\nepoch 1\nfounded 1\nuid {os.getuid()}\nuser somebody\nmoved 1\nroot 1 0\nprobe 2 0\n"
            f"system ef53\nsince 1700000000000000000\nlease {lease}000000000\nnext 2\nmembers 1\n"
            f"member 1\nnode n1\nbranch n1.1\nhost {host or socket.gethostname()}\nboot {boot}\njob {job}\n"
            f"pid {pid or os.getpid()}\nstarted {started}\nsince 1700000000000000000\nrun {run}\n"
            f"address \nhome yes\n")


@contextlib.contextmanager
def beating_elsewhere(root):
    """The other host of Union.hold heartbeats."""
    beat = root / ".shunt" / "session" / "beat.1-0000000000000abc.1"
    ends = threading.Event()

    def beats():
        while not ends.wait(0.05):
            beat.touch()
    thread = threading.Thread(target=beats)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def scontrol(directory, state, node="IDLE"):
    """A stand-in: what Slurm says of job 7, and of the node of its member. Settings that have it found."""
    path = directory / "scontrol"
    directory.mkdir(exist_ok=True)
    path.write_text(f"""#!/bin/sh
case "$*" in
"show config") printf 'ClusterName             = c\\nProctrackType           = proctrack/cgroup\\n' ;;
"-o show job 7") echo "JobId=7 JobName=x UserId=u(1) JobState={state} Reason=None Requeue=1 Restarts=0 BatchFlag=1" ;;
"-o show node n1") echo "NodeName=n1 Arch=x86_64 CoresPerSocket=1 State={node} ThreadsPerCore=1" ;;
*) exit 1 ;;
esac
""")
    path.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def session_of(root):
    """The session in force, {key: value} with those of its first member; {} without one."""
    lines = epoch_lines(root)
    said = dict(reversed([line.split(" ", 1) for line in lines]))
    return said if said.get("members", "0") != "0" else {}


def snapshot(root):
    """{relative path: content} of all below a plain directory; None for a directory. Without the numbers of sessions
    that have ended, which only grow."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(".shunt/session/epoch."):
            continue
        found[name] = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else None
    return found
