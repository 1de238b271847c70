# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the benchmarks on a CephFS share: where it comes from."""

import contextlib
import pathlib
import sys
import tempfile

import measuring

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

import cephfs  # noqa: E402


@contextlib.contextmanager
def some_nodes(options, count):
    """Nodes with a CephFS of their own, in memory, for as long as the block lasts."""
    if cephfs.what_is_missing():
        raise measuring.Failed(cephfs.what_is_missing())
    with tempfile.TemporaryDirectory(prefix="shunt-cephfs.", dir=measuring.MEMORY, ignore_cleanup_errors=True) as top:
        try:
            with cephfs.some_nodes(top, options.build, count) as nodes:
                yield nodes
        except cephfs.Failed as failure:
            raise measuring.Failed(str(failure)) from failure
