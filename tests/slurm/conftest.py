# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""One Slurm of four nodes for all tests, and a root for each."""

import os
import pathlib
import shutil
import tempfile

import pytest
import slurm_cluster

PARTS = ("tools/spank/spank_shunt.so", "tools/shunt", "tools/shunt-launch", "daemon/shuntd", "lib/shim/libshunt_preload.so")
NOBODY = 65534
BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()


def skip(reason):
    """tests/run.sh says that nothing of this is to be skipped where it has all that it takes."""
    if os.environ.get("SHUNT_TEST_SLURM") == "required":
        pytest.fail(f"SHUNT_TEST_SLURM=required, and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def place():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shunt-slurm.", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(place):
    if slurm_cluster.what_is_missing():
        skip(slurm_cluster.what_is_missing())
    slurm = slurm_cluster.Cluster(place)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture(scope="session")
def for_all(cluster):
    """What is of this build in a place that every user reaches: its directory of tools."""
    cluster.place.chmod(0o711)
    for part in filter(lambda part: (BUILD / part).exists(), PARTS):
        (cluster.place / "build" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / part, cluster.place / "build" / part)
    return cluster.place / "build" / "tools"


@pytest.fixture
def become(root):
    """A root that is an ordinary user's, and the words by which a command is that user's."""
    for path in (root, root / "out"):
        os.chown(path, NOBODY, NOBODY)
    return "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"


@pytest.fixture
def root(place, request):
    directory = place / f"root-{request.node.name}"
    (directory / "out").mkdir(parents=True)
    return directory


@pytest.fixture
def launch():
    return BUILD / "tools" / "shunt-launch"


@pytest.fixture
def shunt():
    return BUILD / "tools" / "shunt"
