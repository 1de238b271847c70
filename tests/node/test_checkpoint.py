# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The MPI example, natively and under shunt, and the way from a redirected directory back to a plain one."""

import os
import pathlib
import re

import pytest
from conftest import assert_equal_snapshots, assert_plain, redirected_files, run, snapshot

RANKS = 4
STEPS = 6
KEPT = 3


@pytest.fixture(scope="session")
def checkpoint(build):
    """The command that runs the example on RANKS ranks, without its directory."""
    program = build / "examples" / "checkpoint"
    assert program.exists(), f"there is no {program}: the build found no MPI"
    mpirun = ["mpirun", "-n", RANKS]
    if re.search("open.?mpi", run(["mpirun", "--version"]).out, re.IGNORECASE):
        mpirun += ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    return [*mpirun, program, "--steps", STEPS, "--keep", KEPT, "--bytes", 20000]


@pytest.fixture
def native(checkpoint, area):
    """What the example leaves without shunt, as a snapshot."""
    directory = area / "plain"
    directory.mkdir()
    run([*checkpoint, directory / "out"]).check()
    return snapshot(directory)


def words(command):
    return [str(word) for word in command]


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_leaves_what_it_leaves_natively(shunt, checkpoint, native, root, placement):
    out = shunt.run(root, words([*checkpoint, root / "out"]), placement).check()
    assert "0 mismatches" in out
    assert_plain(root)
    assert_equal_snapshots(native, snapshot(root))


@pytest.fixture
def kept(shunt, checkpoint, root):
    """A root that the example left redirected."""
    shunt.run(root, words([*checkpoint, root / "out"]), keep=True).check()
    return root


def expected_names():
    states = [f"ckpt.{step:06}.{rank:05}" for step in range(STEPS - KEPT, STEPS) for rank in range(RANKS)]
    return sorted([*states, "latest", "manifest"])


def test_every_file_is_redirected_under_its_own_name(kept):
    names = sorted(os.path.basename(path) for path in redirected_files(kept))
    assert names == [name for name in expected_names() if name != "latest"]
    assert sorted(os.listdir(kept / "out")) == [".shunt-dir", "latest"]


def test_ls_shows_the_union(shunt, kept):
    assert sorted(shunt("ls", "-1", kept / "out").check().split()) == expected_names()
    long = shunt("ls", "-l", kept / "out").check()
    assert f"latest -> ckpt.{STEPS - 1:06}.00000" in long
    assert long.count(" 20000 ") == RANKS * KEPT


def test_where_names_the_real_file(shunt, kept):
    name = f"ckpt.{STEPS - 1:06}.00002"
    real = pathlib.Path(shunt("where", kept / "out" / name).check().strip())
    assert real.name == name and kept / ".shunt" / "b" in real.parents
    assert real.stat().st_size == 20000


def test_export_gives_the_native_directory(shunt, kept, native):
    before = sorted(path.stat().st_ino for path in map(pathlib.Path, redirected_files(kept)))
    shunt("export", kept).check()
    assert_plain(kept)
    assert_equal_snapshots(native, snapshot(kept))
    after = [path.stat().st_ino for path in (kept / "out").iterdir() if not path.is_symlink()]
    assert sorted(after) == before, "export copied data instead of renaming files"


def test_a_second_run_goes_on_in_a_kept_root(shunt, checkpoint, kept, native):
    shunt.run(kept, words([*checkpoint, kept / "out"]), keep=True).check()
    assert sorted(shunt("ls", "-1", kept / "out").check().split()) == expected_names()
    shunt("export", kept).check()
    assert_equal_snapshots(native, snapshot(kept))


def test_sessions_in_pieces(shunt, checkpoint, root, native):
    shunt("start", "--root", root, "--placement", "branch").check()
    try:
        shunt("exec", "--root", root, "--", *words([*checkpoint, root / "out"])).check()
        assert len(redirected_files(root)) == RANKS * KEPT + 1
    finally:
        shunt("stop", "--root", root).check()
    shunt("export", root).check()
    assert_equal_snapshots(native, snapshot(root))
