# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The program `same` prints what became of thousands of file-system calls; natively and under shunt it is the same.

SHUNT_BUILD names the build directory (default: build/ of this repository), SHUNT_TEST_DIR a directory on the file
system that is tested first. Of all cases each twenty-fifth is run in a place, by a user, with a placement, another one in
each; SHUNT_SAME_EVERY=1 runs all of them everywhere. The superuser has xfs, ext4, and an ext4 without times of birth mounted
for it, too."""

import contextlib
import functools
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import pytest
import compare

BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()
SHUNT = BUILD / "tools" / "shunt"
PROGRAM = BUILD / "tests" / "same" / "same"
PLUGIN = BUILD / "tests" / "same" / "same_plugin.so"

NOBODY = 65534
FOREIGN_ENVIRONMENT = re.compile(r"^(SHUNT_|LD_PRELOAD$)")
SEEN = {"branch": ["--placement", "branch"], "auto": ["--placement", "auto"],
        "leaves": ["--placement", "branch", "--leaf-full", "3"]}

# Small inodes have no room for a time of birth, nor for parts of a second: whether a time has changed is not told there.
MKFS = {"xfs": ["mkfs.xfs"], "ext4": ["mkfs.ext4"], "small": ["mkfs.ext4", "-I", "128"]}
ALIKE = {"xfs": "xfs", "ext4": "ext"}  # the type that stat tells of the first place, where a kind is tested with it


def works(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def mounted(kind):
    """A directory on a file system of its own, in a file."""
    with tempfile.TemporaryDirectory() as above:
        image, point = pathlib.Path(above, "image"), pathlib.Path(above, "mounted")
        point.mkdir()
        os.chmod(above, 0o755)
        with open(image, "wb") as file:
            file.truncate(320 << 20)
        subprocess.run([*MKFS[kind], "-q", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, point], check=True, capture_output=True)
        try:
            yield point
        finally:
            subprocess.run(["umount", point], check=True)


def can_mount(kind):
    if os.geteuid() != 0 or not shutil.which(MKFS[kind][0]):
        return False
    try:
        with mounted(kind):
            return True
    except subprocess.CalledProcessError:
        return False


def type_of(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip()


def places():
    """The file systems there are to test on, by name: a directory, or the kind of one to mount."""
    first = os.environ.get("SHUNT_TEST_DIR", tempfile.gettempdir())
    found = {"default": first}
    if type_of(first) != "tmpfs" and os.access("/dev/shm", os.W_OK) and type_of("/dev/shm") == "tmpfs":
        found["tmpfs"] = "/dev/shm"
    for kind in MKFS:
        if not type_of(first).startswith(ALIKE.get(kind, "none")) and can_mount(kind):
            found[kind] = None
    return found


def as_nobody(command):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--", *command]


def users():
    """Who can run it here: the one who does, and nobody, if that one can be nobody and nobody can read the build."""
    reads = as_nobody(["test", "-x", SHUNT, "-a", "-x", PROGRAM, "-a", "-r", PLUGIN])
    return ["self", "nobody"] if os.geteuid() == 0 and works(*reads) else ["self"]


PLACES = places()
CASES = list(itertools.product(PLACES, users(), SEEN))


def every():
    return int(os.environ.get("SHUNT_SAME_EVERY", "25"))


@pytest.fixture(scope="session")
def directory_of():
    """Gives the directory of a place, mounting it once if it must be."""
    with contextlib.ExitStack() as stack:
        @functools.cache
        def directory(place):
            return PLACES[place] or stack.enter_context(mounted(place))
        yield directory


@dataclass(frozen=True)
class Run:
    """How many of the cases are run, by whom, and how."""

    every: int
    phase: int
    user: str
    options: tuple = ()

    def __call__(self, above, prefix):
        """What the program prints, run beneath a new directory; the prefix is put before its words."""
        above = pathlib.Path(above)
        root = above / "root"
        root.mkdir()
        for path in (above, root):
            path.chmod(0o755)
            if self.user == "nobody":
                os.chown(path, NOBODY, NOBODY)
        words = [PROGRAM, f"--every={self.every}", f"--phase={self.phase}", *self.options, root, PLUGIN]
        command = [str(word) for word in [*prefix(root), *words]]
        command = as_nobody(command) if self.user == "nobody" else command
        kept = {key: value for key, value in os.environ.items() if not FOREIGN_ENVIRONMENT.match(key)}
        done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
                              env={**kept, "LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
        assert done.returncode == 0, (f"status {done.returncode} of {' '.join(command)}\n"
                                      f"{done.stdout[-2000:].decode(errors='replace')}\n"
                                      f"{done.stderr[-2000:].decode(errors='replace')}")
        return done.stdout.replace(os.fsencode(above), b"ABOVE").decode(errors="replace")


def differences(run, directory, placement):
    """What it prints natively and under shunt; and that nothing is left."""
    # Both directories have names of one length, since some cases depend on how long a path is.
    with tempfile.TemporaryDirectory(prefix="same-", dir=directory) as above:
        os.chmod(above, 0o755)
        native, seen = pathlib.Path(above, "native"), pathlib.Path(above, "shunt.")
        native.mkdir()
        seen.mkdir()
        expected = run(native, lambda root: [])
        got = run(seen, lambda root: [SHUNT, "run", "--root", root, *SEEN[placement], "--"])
        left = subprocess.run(["find", seen / "root", "-mindepth", "1"], capture_output=True, text=True, check=True)
        return compare.differences(expected, got) or left.stdout


@pytest.mark.parametrize("place, user, placement", CASES)
def test_same(directory_of, place, user, placement, monkeypatch):
    if place == "small":
        monkeypatch.setattr(compare, "EXCEPTED", re.compile(f"times after |{compare.EXCEPTED.pattern}"))
    run = Run(every(), CASES.index((place, user, placement)), user)
    different = differences(run, directory_of(place), placement)
    assert not different, different


def does_natively(run, directory):
    with tempfile.TemporaryDirectory(prefix="same-", dir=directory) as above:
        try:
            run(above, lambda root: [])
        except AssertionError:
            return False
    return True


def test_same_on_the_smallest_stack(directory_of):
    """Each call is made by a thread that has as little as PTHREAD_STACK_MIN says; of an older glibc, with whose functions that is
    too little natively, as little more as will do."""
    more = [0, *(4096 << doubled for doubled in range(8))]
    runs = [Run(2 * every(), len(CASES), "self", (f"--stack={size}",)) for size in more]
    run = next(run for run in runs if does_natively(run, directory_of("default")))
    different = differences(run, directory_of("default"), "branch")
    assert not different, f"{run.options}: {different}"
