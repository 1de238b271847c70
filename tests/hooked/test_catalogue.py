# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A copy of a catalogue that a reader takes into memory, as it does on NFS."""

import conftest

NAMES = 200


def test_a_copy_that_is_read_in_memory(stage, tmp_path):
    stage.begin()
    stage.does("a", f"[make(str(number)) for number in range({NAMES})][0]")
    session, trace = stage.session, tmp_path / "trace"
    session.stop("c", "b", "a")
    for settings in ({}, {"SHUNT_BREAK": "as-on-nfs"}):
        words = ["strace", "-y", "-e", "trace=memfd_create,getdents64", "-o", trace, session.shunt.path, "find", session.root,
                 "-type", "f", "-count"]
        assert conftest.several_nodes.one_node.run(words, **settings).check() == f"{NAMES}\n"
        calls = trace.read_text()
        assert ("memfd_create" in calls) == bool(settings)
        assert not [line for line in calls.splitlines() if "getdents64" in line and line.split(">")[0].endswith("/0")], "read"
