# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The calls of tests/same, by turns from all nodes, print what they print natively from as many processes of one node, on the same
file system: what a node did is looked at, and repaired, from another. SHUNT_SPREAD_EVERY=1 runs all cases."""

import os
import pathlib
import subprocess
import sys

import meeting
import pytest
import ring

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "same"))

from compare import differences  # noqa: E402

# As tests/cluster/test_spread.py has them: those that consist of cases alone.
PARTS = ["open", "stdio", "stat", "names", "pairs", "meta", "xattr", "inherit", "canon", "temp", "raw", "doors", "locks",
         "semantics", "kinds", "aliases"]
EVERY = int(os.environ.get("SHUNT_SPREAD_EVERY", "0"))
PATIENCE = 900


def by_turns(session, above, nodes, options, under, out):
    """What the processes print together, run in a new directory."""
    root, count = f"{above}/root", len(nodes)
    with open(out, "wb", buffering=0) as printed, \
            meeting.held(session.cluster.listener(), count, lambda *words: ring.hold(*words, printed)) as (address, port):
        processes = []
        for me, node in enumerate(nodes):
            words = ["env", "LC_ALL=C", "PATH=/usr/bin:/bin", session.cluster.build / "tests/same/same", "RING", *options, root,
                     session.cluster.build / "tests/same/same_plugin.so", *PARTS]
            line = ["python3", "-B", ring.__file__, address, port, me, count, *(under if under else ()), *words]
            processes.append(session.cluster.popen(node, session.words(*line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        said = "".join(process.communicate(timeout=PATIENCE)[0] for process in processes)
    text = out.read_bytes().replace(above.encode(), b"ABOVE").decode(errors="replace")
    assert [process.returncode for process in processes] == [0] * count, said[-3000:] + text[-2000:]
    return text


@pytest.mark.parametrize("placement, every, phase", [("branch", 2000, 0), pytest.param("auto", 200, 1, marks=pytest.mark.long)])
def test_the_same_by_turns(idle, tmp_path, placement, every, phase):
    if idle.cluster.kind == "nfs":
        pytest.skip("NFS tells attributes of another node's files as they were seconds ago, natively as well")
    options = [f"--every={EVERY or every}", f"--phase={phase}"]
    native, seen = idle.native, idle.native.replace("-native", "-shunt.")  # of one length
    idle.cluster.must(1, f"mkdir -p {native}/root {seen}/root")
    expected = by_turns(idle, native, [idle.nodes[0]] * len(idle.nodes), options, None, tmp_path / "native")
    idle.root = f"{seen}/root"
    idle.start(placement=placement)
    got = by_turns(idle, seen, idle.nodes, options, [idle.cluster.build / "tools" / "shunt", "exec", "--root", idle.root, "--"],
                   tmp_path / "seen")
    idle.stop()
    different = differences(expected, got)
    assert not different, different
