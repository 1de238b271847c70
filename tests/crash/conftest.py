# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What crashes are tested with: SHUNT_BUILD names the build directory."""

import functools
import os
import pathlib
import subprocess
import tempfile

import pytest

import ground


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()


@pytest.fixture
def area():
    """In memory, where a crash comes more often between two calls than within one. Stays if the test fails."""
    return pathlib.Path(tempfile.mkdtemp(prefix="shunt-crash.", dir="/dev/shm"))


@pytest.fixture
def plain(build, area):
    place = ground.Ground(build, area)
    yield place
    place.finish()


@pytest.fixture
def served(build, area):
    """served(number of nodes, **settings) is a root that is not served yet."""
    places = []

    def make(nodes, made=ground.Served, **settings):
        places.append(made(build, area, [f"n{number}" for number in range(1, nodes + 1)], **settings))
        return places[0]

    yield make
    for place in places:
        place.end_all()
        place.finish()


@pytest.fixture
def served_on_cephfs(served):
    reason = ground.cephfs.what_is_missing()
    if reason:
        pytest.skip(reason)
    return functools.partial(served, base=ground.OnCephFS)


@pytest.fixture
def has_hooks(build):
    symbols = subprocess.run(["nm", build / "daemon" / "shuntd"], capture_output=True, text=True, check=True).stdout
    if "hook_reach" not in symbols:
        pytest.skip(f"{build} was not set up with -Dhooks=true")
