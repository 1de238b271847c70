# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Two nodes on a real CephFS: what their calls cost its metadata server, by its own count."""

import cephfs
import pytest

FILES = 200

# One file system for all of them, also where tests are shared out among several processes.
pytestmark = [pytest.mark.skipif(cephfs.what_is_missing() is not None, reason=str(cephfs.what_is_missing())),
              pytest.mark.xdist_group("cephfs")]


@pytest.fixture(scope="module")
def nodes(build, tmp_path_factory):
    with cephfs.two_nodes(tmp_path_factory.mktemp("cephfs"), build) as two:
        yield two


def test_a_shared_directory_costs_what_private_ones_do(nodes):
    with nodes.session("branch"):
        directories = [nodes.shared("out")] * 2
        assert nodes.measure("create", directories, FILES, under_shunt=True) <= 1.05
        assert nodes.measure("unlink", directories, FILES, under_shunt=True) <= 1.05


def test_natively_it_costs_more(nodes):
    """What the test above compares with: else it would show nothing."""
    nodes.run(0, "mkdir", nodes.place / "shared")
    directories = [nodes.place / "shared"] * 2
    assert nodes.measure("create", directories, FILES) > 3.5
    assert nodes.measure("unlink", directories, FILES) > 1.5


def test_files_that_the_other_node_opens(nodes):
    with nodes.session("auto"):
        nodes.under_shunt(0, "mkdir", nodes.root / "looked-into")
        assert nodes.measure_followed(nodes.root / "looked-into", 1000, under_shunt=True) <= 1.4


def test_files_that_the_other_node_opens_natively(nodes):
    nodes.run(0, "mkdir", nodes.place / "looked-into")
    assert nodes.measure_followed(nodes.place / "looked-into", 1000) > 3
