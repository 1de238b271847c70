# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Users whom the file system takes for others."""

import contextlib

import kernel_nodes
import pytest


@contextlib.contextmanager
def squashed(cluster):
    """What root makes in the block is nobody's."""
    exports = "sed -i s/{}/{}/ /etc/exports; exportfs -ra"
    cluster.must(kernel_nodes.SERVER, exports.format("no_root_squash", "root_squash"))
    try:
        yield
    finally:
        cluster.must(kernel_nodes.SERVER, exports.format("root_squash", "no_root_squash"))


def test_root_that_is_nobody_to_the_server(idle):
    """Daemons join, and each node's files are there for all, during the session and after it."""
    if idle.cluster.kind != "nfs":
        pytest.skip("of these file systems NFS alone has a server that takes a user for another (root_squash)")
    first, last = idle.nodes[0], idle.nodes[-1]
    idle.cluster.must(first, f"chmod 1777 {idle.root}")
    with squashed(idle.cluster):
        idle.start()
        assert idle.members(last) == [f"node{node}" for node in idle.nodes]
        for node in idle.nodes:
            idle.sh(node, f"mkdir -p d; echo {node} >d/{node}; chmod 600 d/{node}")
        for node in idle.nodes:
            assert idle.sh(node, "cat d/*").split() == list(map(str, idle.nodes))
        assert idle.cluster.must(first, f"cd {idle.root}; ls -A d") == ".shunt-dir\n"
        idle.stop()
        idle.cluster.must(last, idle.words(idle.shunt, "export", idle.root))
        assert idle.cluster.must(first, f"cd {idle.root}; ls -A; stat -c %u d/*").split() == ["d", *["65534"] * len(idle.nodes)]
