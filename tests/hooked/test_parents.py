# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What becomes of a directory in which a process makes and removes files, where each part of a path is a message to a server:
there the process goes by what it remembers and by a descriptor of the directory (lib/shim/parents.h)."""

import ctypes
import os
import shutil

import conftest
import pytest
from test_interleavings import expect, guarded

ROUNDS = 3  # what is remembered may be looked at anew just when it does not hold any more
EXCHANGE = 2

MAKES = """
def error_of(call, name):
    try:
        call(name)
    except OSError as error:
        return errno.errorcode[error.errno]
for turn in range({rounds}):
    count = 0
    while not os.path.exists(f"{area}/changed-{{turn}}"):
        error_of(make, f"{place}/file-{{turn}}-{{count}}")
        if count > 0:
            error_of(os.unlink, f"{place}/file-{{turn}}-{{count}}")
        count += 1
        if count == 50:
            open(f"{area}/begun-{{turn}}", "w").close()
    print(error_of(os.unlink, f"{place}/file-{{turn}}-0"), error_of(make, f"{place}/after-{{turn}}"), end=" ")
    open(f"{area}/seen-{{turn}}", "w").close()
"""


@pytest.fixture(params=["{root}/out/at", "at"])
def place(request, stage):
    """By the words of its path, and from the working directory."""
    (stage.out / "at").mkdir()
    (stage.out / "beside").mkdir()
    return request.param.format(root=stage.session.root)


def made_while(stage, place, change, rounds):
    """What a process is told that makes files there, removes one and makes one more when `change` has been made."""
    program = MAKES.format(rounds=rounds, area=stage.area, place=place)
    call = stage.call("c", f"exec({program!r}, globals())")
    for turn in range(rounds):
        conftest.wait_until((stage.area / f"begun-{turn}").exists, "files")
        change()
        (stage.area / f"changed-{turn}").touch()
        conftest.wait_until(lambda: (stage.area / f"seen-{turn}").exists() or call.has_ended(), "what was made then")
    return call.answer().split()[:-1]


def exchange(stage):
    at, beside = (str(stage.out / name).encode() for name in ("at", "beside"))
    assert ctypes.CDLL(None).renameat2(-100, at, -100, beside, EXCHANGE) == 0


def makes_in_both(stage, place, change):
    """What it is told where two directories trade places each time; and what is seen of that."""
    told = made_while(stage, place, change, ROUNDS)
    listed = "[sorted(name for name in os.listdir(at) if name[:5] == 'after') for at in ('at', 'beside')]"
    return told == ["ENOENT", "None"] * ROUNDS and eval(stage.does("b", listed)) == [["after-0", "after-2"], ["after-1"]]


@guarded("place-unasked")
def test_a_program_without_the_library_puts_another_directory_there(stage, guard, place):
    """Its files are others, and what is made is made there."""
    stage.begin(",".join(filter(None, ("near", guard))))
    expect(guard, makes_in_both(stage, place, lambda: exchange(stage)))


def test_another_node_puts_another_directory_there(stage, place):
    stage.begin("near")
    renames = "[os.rename(*pair) for pair in (('at', 'away'), ('beside', 'at'), ('away', 'beside'))]"
    assert makes_in_both(stage, place, lambda: stage.does("b", renames))


@guarded("place-unasked")
def test_a_program_without_the_library_removes_it(stage, guard, place):
    stage.begin(",".join(filter(None, ("near", guard))))
    expect(guard, made_while(stage, place, lambda: shutil.rmtree(stage.out / "at"), 1) == ["ENOENT", "ENOENT"])


REMOVES = """
import shutil
while os.path.exists("at"):
    shutil.rmtree("at", ignore_errors=True)
"""


def test_another_node_removes_it(stage, place):
    stage.begin("near")
    assert made_while(stage, place, lambda: stage.does("b", f"exec({REMOVES!r})"), 1) == ["ENOENT", "ENOENT"]
