# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""One Slurm of four nodes for all tests, and a root for each."""

import os
import pathlib
import shutil
import tempfile

import pytest
import slurm_cluster

BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()


@pytest.fixture(scope="session")
def place():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shunt-slurm.", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(place):
    missing = [name for name in slurm_cluster.NEEDED if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or slurm_cluster.cgroup_mount()[0] is None:
        pytest.skip(f"needs root, cgroups, and {', '.join(slurm_cluster.NEEDED)}")
    slurm = slurm_cluster.Cluster(place)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


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
