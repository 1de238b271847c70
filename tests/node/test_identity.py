# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory that is made where another one was, with its inode number, is another directory: by its time of birth, and on file
systems that keep none by its handle. ext4 with inodes of 128 bytes stands for OCFS2, GFS2 and NFS."""

import os
import shutil

import pytest

from conftest import mounted, run

BYTES = {"births": 256, "handles": 128}  # of an inode


@pytest.fixture(params=BYTES)
def disk(request, area):
    """A root on an ext4 that keeps times of birth, or none."""
    (area / "disk").mkdir()
    with mounted(area / "disk", "mkfs.ext4", "-q", "-I", str(BYTES[request.param])) as at:
        birth = run(["stat", "-c", "%w", at]).check().strip()
        assert (birth == "-") == (request.param == "handles")
        yield at


class Served:
    def __init__(self, shunt, root, run_base):
        self.shunt, self.root, self.run_base = shunt, root, run_base

    def __call__(self, *words, **options):
        return self.shunt(*words, SHUNT_RUN_DIR=self.run_base, **options).check()

    def start(self):
        self("start", "--root", self.root, "--placement", "branch")

    def stop(self):
        self("stop", "--root", self.root)

    def sh(self, script):
        return self("exec", "--root", self.root, "--", "bash", "-c", script, cwd=self.root)

    def leave(self):
        """Without the files of directories that are gone."""
        self.shunt("fsck", "--delete", self.root, SHUNT_RUN_DIR=self.run_base).check(1)
        self("export", self.root)

    def orphans(self):
        """How many files fsck finds of directories that are gone."""
        words = self.shunt("fsck", self.root, SHUNT_RUN_DIR=self.run_base).out.split("orphan: ")[1:]
        return [int(word.split()[0]) for word in words]


@pytest.fixture
def served(shunt, disk, run_base):
    root = disk / "root"
    root.mkdir()
    made = Served(shunt, root, run_base)
    made.start()
    made.sh("mkdir d d/below; for i in 1 2 3; do echo old >d/f$i; echo old >d/below/f$i; done")
    yield made
    shunt("stop", "--root", root, SHUNT_RUN_DIR=run_base)


def replace(directory):
    """By a program without the library: another directory, with the number of the one that was there."""
    before = directory.stat().st_ino
    shutil.rmtree(directory)
    held = []  # numbers that are free too, and smaller
    while True:
        directory.mkdir()
        if directory.stat().st_ino == before:
            break
        assert len(held) < 100
        held.append(directory.rename(directory.with_name(f"held{len(held)}")))
    for other in held:
        other.rmdir()


def test_within_a_session(served):
    directory = served.root / "d"
    replace(directory)
    assert served.sh("ls -A d") == ""
    assert served.sh("echo new >d/f1; mkdir d/below; echo new >d/below/f1; cat d/f1 d/below/f1; find d | sort") == (
        "new\nnew\nd\nd/below\nd/below/f1\nd/f1\n")
    served.stop()
    served.start()
    assert served.sh("cat d/f1 d/below/f1; find d | sort") == "new\nnew\nd\nd/below\nd/below/f1\nd/f1\n"
    served.stop()
    served.leave()
    assert (directory / "f1").read_text() == (directory / "below/f1").read_text() == "new\n"
    assert sorted(os.listdir(directory)) == ["below", "f1"]


def test_a_program_that_is_in_it(served):
    """Its working directory is the one that is gone."""
    assert served.sh(f"cd d; ls; env -u LD_PRELOAD rm -rf {served.root}/d; env -u LD_PRELOAD mkdir {served.root}/d; "
                     "echo new >f1; echo $?; ls; ls ../d; echo $?") == "below\nf1\nf2\nf3\n1\n0\n"


def test_between_sessions(served):
    served.stop()
    directory = served.root / "d"
    replace(directory)
    served.start()
    assert served.sh("ls -A d; echo new >d/f1; ls d; cat d/f1") == "f1\nnew\n"
    served.stop()
    assert sorted(served.orphans()) == [3, 3]
    served.leave()
    assert (directory / "f1").read_text() == "new\n" and os.listdir(directory) == ["f1"]


def test_a_root_that_is_kept(served):
    """What names a directory outlives daemon and mount."""
    served.stop()
    disk = served.root.parent
    device = run(["findmnt", "-n", "-o", "SOURCE", disk]).check().strip()
    copy = disk.with_name("again")
    copy.mkdir()
    run(["mount", device, copy]).check()
    run(["umount", disk]).check()
    run(["mount", "--move", copy, disk]).check()
    served.start()
    assert served.sh("find d | sort") == "d\nd/below\nd/below/f1\nd/below/f2\nd/below/f3\nd/f1\nd/f2\nd/f3\n"
    served.stop()
    assert served.orphans() == []
    served("export", served.root)
    assert sorted(os.listdir(served.root / "d")) == ["below", "f1", "f2", "f3"]
