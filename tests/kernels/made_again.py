# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""made_again.py DIRECTORY RANK COUNT ADDRESS PORT: one of several nodes, the first of which removes directories that all know, and
makes them again; then the others use them, each use in a process of its own. They meet at the address (meeting.py). Prints what is
not as it must be; status 1 if there was any."""

import ctypes
import os
import shutil
import subprocess
import sys

from meeting import Place


def scanned(path):
    """By libc's scandir(3); os.scandir is opendir."""
    return ctypes.CDLL(None).scandir(path.encode(), ctypes.byref(ctypes.c_void_p()), None, None)


def opened(path, flags):
    os.close(os.open(path, flags))


# What is done, and what it says.
USES = [
    ("os.listdir('d')", ["in"]), ("scanned('d')", 3), ("os.listdir(os.open('d', os.O_DIRECTORY))", ["in"]),
    ("os.listdir('d/in')", []), ("[path for path, _, _ in os.walk('d')]", ["d", "d/in"]),
    ("os.chdir('d') or os.listdir()", ["in"]), ("os.chdir('d') or os.mkdir('new')", None),
    ("os.chdir('d/in') or opened('new', os.O_CREAT)", None), ("os.chdir('d/in') or os.getcwd()[-5:]", "/d/in"),
    ("os.stat('d/in').st_nlink > 0", True), ("os.access('d/in', os.W_OK)", True), ("os.statvfs('d').f_bsize > 0", True),
    ("os.mkdir('d/in/new')", None), ("opened('d/in/new', os.O_CREAT | os.O_EXCL)", None), ("os.symlink('f', 'd/in/new')", None),
    ("os.link('f', 'd/in/new')", None), ("os.rename('f', 'd/in/new') or os.rename('d/in/new', 'f')", None),
    ("os.rename('d/in', 'd/out')", None), ("os.rmdir('d/in')", None),
    ("os.chmod('d', 0o700) or oct(os.stat('d').st_mode)", "0o40700"), ("os.utime('d', (7, 7)) or os.stat('d').st_mtime", 7.0),
    ("subprocess.run('ls', cwd='d', capture_output=True, text=True).stdout", "in\n")]


def does(use):
    """What it says, in a process of its own."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(eval(use))
        except OSError as error:
            said = str(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours) as said:
        return said.read()


def make_again(all_, rank, users):
    if rank == 0:
        for user in users:
            os.makedirs(f"of{user}/d/in")
    all_.exchange()
    if rank != 0:
        os.listdir("d"), os.listdir("d/in")
    all_.exchange()
    if rank == 0:
        for user in users:
            os.rmdir(f"of{user}/d/in")
            os.rmdir(f"of{user}/d")
            os.makedirs(f"of{user}/d/in")
    all_.exchange()


def run(all_, rank, users):
    wrong = 0
    for use, must in USES:
        make_again(all_, rank, users)
        if rank != 0 and (said := does(use)) != str(must):
            wrong += 1
            print(f"node {rank + 1}: {use} says {said}, and must say {must}", flush=True)
        all_.exchange()
        if rank == 0:
            for user in users:
                shutil.rmtree(f"of{user}/d")
    return wrong


def main():
    top, rank, count, address, port = sys.argv[1:]
    users = range(1, int(count))
    all_ = Place(rank, address, port)
    if rank == "0":
        for user in users:
            os.makedirs(f"{top}/of{user}")
            open(f"{top}/of{user}/f", "x").close()
    all_.exchange()
    os.chdir(top if rank == "0" else f"{top}/of{rank}")
    sys.exit(run(all_, int(rank), users) != 0)


main()
