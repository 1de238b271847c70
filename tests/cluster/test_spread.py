# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The calls of tests/same, by turns from three nodes, print what they print natively by turns from three processes.

Each call is made on one node, and what it changed is looked at, and repaired, on another. Of the stories each tenth is
run, others each time, of all other cases each two hundredth; SHUNT_SPREAD_EVERY=1 runs all of them everywhere."""

import os
import pathlib
import select
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "same"))

from compare import differences  # noqa: E402

NODES = ["a", "b", "c"]
# Those that consist of cases alone, each of which is one process's own affair.
PARTS = ["open", "stdio", "stat", "names", "pairs", "meta", "xattr", "inherit", "canon", "temp", "raw", "doors", "locks",
         "semantics", "kinds", "aliases"]
EVERY = int(os.environ.get("SHUNT_SPREAD_EVERY", "0"))
KEPT = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}


def wait_for_all(processes):
    """Till they have ended, or one of them badly: the others would wait for their turn. True: nothing happens any more."""
    running = {os.pidfd_open(process.pid): process for process in processes}
    end = time.monotonic() + 300
    while running:
        ended = select.select(list(running), [], [], max(0, end - time.monotonic()))[0]
        for descriptor in ended:
            os.close(descriptor)
        if not ended or any([running.pop(descriptor).wait() for descriptor in ended]):
            for descriptor, process in running.items():
                process.kill()
                os.close(descriptor)
            return not ended
    return False


def by_turns(program, above, words, into, settings):
    """What the processes print together, run beneath a new directory; into(node) is put before a node's words."""
    pipes = [os.pipe() for _ in NODES]
    ends = ",".join(str(end) for pipe in pipes for end in pipe)
    with open(above / "printed", "ab") as out:
        processes = [subprocess.Popen([*into(node), program, f"--ring={number}/{len(NODES)}:{ends}", *words], cwd="/",
                                      stdin=subprocess.DEVNULL, stdout=out, env={**KEPT, **settings(node), "LC_ALL": "C"},
                                      pass_fds=[end for pipe in pipes for end in pipe])
                     for number, node in enumerate(NODES)]
    for pipe in pipes:
        for end in pipe:
            os.close(end)
    is_stuck = wait_for_all(processes)
    text = (above / "printed").read_bytes().replace(os.fsencode(above), b"ABOVE").decode(errors="replace")
    assert not is_stuck, f"in the call after {text[-500:]}"
    assert [process.wait() for process in processes] == [0] * len(NODES), text[-2000:]
    return text


@pytest.mark.parametrize("net, placement, leaf_full, parts, every, phase",
                         [("host", "branch", 50000, ["stories"], 10, 0), ("host", "auto", 50000, ["stories"], 10, 1),
                          ("host", "branch", 3, ["stories"], 10, 2), ("slow", "branch", 50000, ["stories"], 250, 3),
                          ("host", "branch", 50000, PARTS, 200, 4), ("host", "auto", 50000, PARTS, 200, 5)], indirect=["net"],
                         ids=["stories", "stories-auto", "stories-leaves", "stories-slow", "calls", "calls-auto"])
def test_the_same_by_turns(build, session, tmp_path, placement, leaf_full, parts, every, phase):
    program, plugin = (build / "tests" / "same" / name for name in ("same", "same_plugin.so"))
    native, seen = tmp_path / "native", tmp_path / "shunt."  # paths are of one length: some cases depend on that
    for above in (native, seen):
        above.mkdir()
        (above / "root").mkdir()
    options = [f"--every={EVERY or every}", f"--phase={phase}"]
    expected = by_turns(program, native, [*options, native / "root", plugin, *parts], lambda _: [], lambda _: {})
    session.root = seen / "root"
    for node in NODES:
        session.at("start", node, "--placement", placement, "--leaf-full", leaf_full).check()
    got = by_turns(program, seen, [*options, seen / "root", plugin, *parts], lambda node: session.words("exec", node, "--"),
                   lambda node: {**session.settings, **session.net.settings(node)})
    session.stop(*reversed(NODES))
    different = differences(expected, got)
    assert not different, different
    session.tool("export", session.root).check()
    assert list(session.root.iterdir()) == []
