# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Files and directories that chattr(1) fixes."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def immutable(path, flag="i"):
    """It is that meanwhile, or append-only ("a")."""
    if subprocess.run(["chattr", f"+{flag}", path], check=False).returncode != 0:
        pytest.skip("chattr takes the superuser, and a file system that knows it")
    try:
        yield
    finally:
        subprocess.run(["chattr", f"-{flag}", path], check=True)
