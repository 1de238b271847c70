# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""races.py DIRECTORY RANK COUNT ADDRESS PORT [ROUNDS]: one of several nodes that make the same call at the same time, of which one
must succeed, and the others fail as the call does; after each round all list the same. They meet at the address (meeting.py).
Prints what is not so; status 1 if there was any."""

import errno
import os
import sys

from meeting import Place


def touch(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def answer(call, *words):
    try:
        call(*words)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]


# What one makes first; the call, of a path and of a node's own one; what the losers are told; what is left, WON: of the winner.
RACES = {
    "O_EXCL": (None, lambda path, own: touch(path), "EEXIST", ["it"]),
    "mkdir": (None, lambda path, own: os.mkdir(path), "EEXIST", ["it"]),
    "symlink": (None, lambda path, own: os.symlink(own, path), "EEXIST", ["it"]),
    "link": (touch, lambda path, own: os.link(path, f"{path}-linked"), "EEXIST", ["it", "it-linked"]),
    "unlink": (touch, lambda path, own: os.unlink(path), "ENOENT", []),
    "rmdir": (os.mkdir, lambda path, own: os.rmdir(path), "ENOENT", []),
    "rename": (touch, lambda path, own: os.rename(path, own), "ENOENT", ["WON"]),
    "rename of a directory": (os.mkdir, lambda path, own: os.rename(path, own), "ENOENT", ["WON"]),
}


def run(place, top, rank, rounds):
    wrong = 0
    for number in range(rounds):
        for name, (make, call, loses, left) in RACES.items():
            directory = f"{top}/{name.replace(' ', '-')}{number}"
            path = f"{directory}/it"
            if rank == 0:
                os.makedirs(directory)
                if make:
                    make(path)
            place.exchange()
            answers = place.exchange(answer(call, path, f"{path}-{rank}"))
            listed = place.exchange(sorted(os.listdir(directory)))
            won = answers.index("ok") if "ok" in answers else None
            must = [f"it-{won}" if entry == "WON" else entry for entry in left]
            if sorted(answers) != sorted(["ok"] + [loses] * (len(answers) - 1)) or listed != [must] * len(answers):
                wrong += 1
                if rank == 0:
                    print(f"{name}: {answers}, and they list {listed}", flush=True)
    return wrong


def main():
    top, rank, count, address, port, *rounds = sys.argv[1:]
    place = Place(rank, address, port)
    wrong = run(place, top, int(rank), int(rounds[0]) if rounds else 10)
    place.exchange()
    sys.exit(wrong != 0)


main()
