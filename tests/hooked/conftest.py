# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""For a build with the option `hooks`: what the tests of several nodes have, and hooks (lib/base/hook.h)."""

import importlib.util
import pathlib
import subprocess
import sys
import time

import pytest

CLUSTER = pathlib.Path(__file__).resolve().parents[1] / "cluster"
sys.path.insert(0, str(CLUSTER))

# Not as `conftest`, which is this file.
SPEC = importlib.util.spec_from_file_location("several_nodes", CLUSTER / "conftest.py")
several_nodes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(several_nodes)

build = several_nodes.build
session = several_nodes.session


@pytest.fixture(scope="session", autouse=True)
def has_hooks(build):
    symbols = subprocess.run(["nm", build / "daemon" / "shuntd"], capture_output=True, text=True, check=True).stdout
    assert "hook_reach" in symbols, f"{build} was not set up with -Dhooks=true"
