# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes with several networks, of which they share one: they find it without being told which."""

import network
import pytest


@pytest.mark.parametrize("net", network.SEVERAL_NETWORKS, indirect=True)
def test_nodes_find_the_network_that_they_share(session):
    session.start("a", "b", "c")
    session.sh("a", "mkdir out; echo a > out/of-a")
    session.sh("b", "echo b > out/of-b; mv out/of-a out/moved")
    assert session.sh("c", "ls out; cat out/moved").split() == ["moved", "of-b", "a"]
    session.wait_for(session.is_settled)
    session.stop("a")
    assert session.sh("c", "cat out/*").split() == ["a", "b"]
    session.stop("b", "c")


@pytest.mark.parametrize("net", ["same"], indirect=True)
def test_what_was_tried_is_said(session, net):
    session.start("a")
    net.into("b")
    network.ip("-n", net.namespace("b"), "link", "set", network.DEVICE, "down")
    result = session.at("start", "b", SHUNT_DEADLINE=3)
    assert result.status != 0
    for word in ["172.17.0.1", "10.99.1.5", net.address("a"), "SHUNT_FABRIC=tcp:"]:
        assert word in result.err, result.err
