# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What becomes of a directory in which a process makes and removes files, also where each part of a path is a message to a server,
and the process keeps descriptors (lib/shim/fdcache.h). It asks for a new name where it guesses that the words lead
(lib/shim/parent_guess.h)."""

import ctypes
import os
import shutil

import conftest
import pytest

ROUNDS = 3
EXCHANGE = 2

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="chroot and mount are for the superuser, and who becomes him in a "
                             "namespace is another user to the daemon")
ERROR_OF = """
def error_of(call, name):
    try:
        call(name)
    except OSError as error:
        return errno.errorcode[error.errno]
"""
MAKES = ERROR_OF + """
place = "{place}"
for turn in range({rounds}):
    count = 0
    while not os.path.exists(place):
        pass
    while not os.path.exists(f"{area}/changed-{{turn}}"):
        error_of(make, f"{{place}}/file-{{turn}}-{{count}}")
        if count > 0:
            error_of(os.unlink, f"{{place}}/file-{{turn}}-{{count}}")
        count += 1
        if count == 50:
            open(f"{area}/begun-{{turn}}", "w").close()
    print(error_of(os.unlink, f"{{place}}/file-{{turn}}-0"), error_of(make, f"{{place}}/after-{{turn}}"), end=" ")
    open(f"{area}/seen-{{turn}}", "w").close()
"""


@pytest.fixture(params=["{root}/out/at", "at"])
def place(request, stage):
    """By the words of its path, and from the working directory."""
    (stage.out / "at").mkdir()
    (stage.out / "beside").mkdir()
    return request.param.format(root=stage.session.root)


def made_while(stage, place, change, rounds, again=lambda: None):
    """What a process is told that makes files there, removes one and makes one more when `change` has been made; `again` makes
    it ready for another round."""
    program = MAKES.format(rounds=rounds, area=stage.area, place=place)
    call = stage.call("c", f"exec({program!r}, globals())")
    for turn in range(rounds):
        conftest.wait_until((stage.area / f"begun-{turn}").exists, "files")
        change()
        (stage.area / f"changed-{turn}").touch()
        conftest.wait_until(lambda: (stage.area / f"seen-{turn}").exists() or call.has_ended(), "what was made then")
        again()
    return call.answer().split()[:-1]


def exchange(stage):
    at, beside = (str(stage.out / name).encode() for name in ("at", "beside"))
    assert ctypes.CDLL(None).renameat2(-100, at, -100, beside, EXCHANGE) == 0


def makes_in_both(stage, place, change):
    """What it is told where two directories trade places each time; and what is seen of that."""
    told = made_while(stage, place, change, ROUNDS)
    listed = "[sorted(name for name in os.listdir(at) if name[:5] == 'after') for at in ('at', 'beside')]"
    return told == ["ENOENT", "None"] * ROUNDS and eval(stage.does("b", listed)) == [["after-0", "after-2"], ["after-1"]]


@pytest.mark.parametrize("where", ["near", None])
def test_a_program_without_the_library_puts_another_directory_there(stage, where, place):
    """Its files are others, and what is made is made there."""
    stage.begin(where)
    assert makes_in_both(stage, place, lambda: exchange(stage))


def test_another_node_puts_another_directory_there(stage, place):
    stage.begin("near")
    renames = "[os.rename(*pair) for pair in (('at', 'away'), ('beside', 'at'), ('away', 'beside'))]"
    assert makes_in_both(stage, place, lambda: stage.does("b", renames))


@pytest.mark.parametrize("where", ["near", None])
def test_a_program_without_the_library_removes_it(stage, where, place):
    stage.begin(where)
    at = stage.out / "at"
    assert made_while(stage, place, lambda: shutil.rmtree(at), ROUNDS, at.mkdir) == ["ENOENT"] * 2 * ROUNDS


REMOVES = """
import shutil
while os.path.exists("at"):
    shutil.rmtree("at", ignore_errors=True)
"""


def test_another_node_removes_it(stage, place):
    stage.begin("near")
    assert made_while(stage, place, lambda: stage.does("b", f"exec({REMOVES!r})"), 1) == ["ENOENT", "ENOENT"]


KEEPS = ERROR_OF + """
import ctypes
def kept():
    return [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) >= 950]
def use(directory):
    for number in range(50):
        make(f"{{directory}}/{{number}}")
        os.unlink(f"{{directory}}/{{number}}")
def mount(what, where):
    assert ctypes.CDLL(None).mount(what.encode(), where.encode(), None, 4096, None) == 0  # MS_BIND
at, away = "{root}/out/at", "{area}/away"
"""
CHROOT = """
os.makedirs(away + at)
os.mkdir(away + "/proc")
mount("/proc", away + "/proc")
use(at)
make(at + "/old")
os.chroot(away)
print("behind it", error_of(make, at + "/new") is None, error_of(os.unlink, at + "/old") is None)
"""


@AS_ROOT
def test_who_has_gone_behind_a_chroot_makes_and_removes_nothing_outside(stage):
    (stage.out / "at").mkdir()
    stage.begin("near")
    program = (KEEPS + CHROOT).format(root=stage.session.root, area=stage.area)
    assert stage.does("c", f"exec({unshared(program)!r}, globals())") == "behind it False False\nNone"
    assert stage.does("b", "os.listdir('at')") == "['old']"


def unshared(program):
    """In a mount namespace of its own."""
    return "import ctypes\nassert ctypes.CDLL(None).unshare(0x20000) == 0\n" + program


BUSY = """
os.mkdir(away)
mount("{root}/out", away)
use(away + "/at")
print(ctypes.CDLL(None).umount2(away.encode(), 0))
"""


@AS_ROOT
def test_what_was_mounted_elsewhere_can_be_unmounted(stage):
    (stage.out / "at").mkdir()
    stage.begin("near")
    program = (KEEPS + BUSY).format(root=stage.session.root, area=stage.area)
    assert stage.does("c", f"exec({unshared(program)!r}, globals())") == "0\nNone"


OWN = """
use(at)
os.stat(f"{root}/out/file")
number, = (one for one in kept() if "/out-" in os.readlink(f"/proc/self/fd/{{one}}"))
fd = os.open(at, os.O_RDONLY)
os.dup2(fd, number)
for name in range(40):
    os.mkdir(f"{root}/out/{{name}}")
    make(f"{root}/out/{{name}}/file")
    os.stat(f"{root}/out/{{name}}/file")
    os.stat(f"{root}/out/file")
print(os.readlink(f"/proc/self/fd/{{number}}") == at, len(kept()))
"""


def test_a_programs_own_descriptor_stays(stage):
    """There are at most 33 others of this root: of the branches and of 32 leaves."""
    (stage.out / "at").mkdir()
    stage.begin("near")
    stage.does("c", "make('file')")
    program = (KEEPS + OWN).format(root=stage.session.root, area=stage.area)
    assert stage.does("c", f"exec({program!r}, globals())") == "True 33\nNone"
