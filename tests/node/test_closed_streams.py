# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Standard streams that are closed, as some daemons and cron wrappers have them: a descriptor that a tool or a daemon opens does not
become one of them, and the command has them closed, as natively."""

import itertools
import json

import pytest
from conftest import assert_plain, redirected_files, run

STREAMS = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}
CLOSED = [closed for count in (1, 2, 3) for closed in itertools.combinations(STREAMS, count)]

pytestmark = pytest.mark.parametrize("closed", CLOSED, ids="-".join)


@pytest.fixture
def without(closed):
    """without(WORDS): the status of a command without these streams."""
    redirections = " ".join(STREAMS[name] for name in closed)
    return lambda *words: run(["sh", "-c", f'exec "$@" {redirections}', "sh", *words], timeout=20).status


def test_start_and_stop(shunt, root, without, closed):
    assert without(shunt.path, "start", "--root", root, "--placement", "branch") == 0
    assert json.loads(shunt("status", "--json", "--root", root).check())[0]["state"] == "alive"
    assert without(shunt.path, "exec", "--root", root, "--", "touch", root / "file") == 0
    assert redirected_files(root)
    assert without(shunt.path, "stop", "--root", root) == 0
    assert json.loads(shunt("status", "--json", "--root", root).out)[0]["state"] == "none"
    assert without(shunt.path, "export", root) == int("stdout" in closed)
    assert_plain(root)


@pytest.mark.parametrize("tool", [("shunt", "run"), ("shunt-launch",), ("shunt-launch", "--fake-nodes", "2")], ids=" ".join)
def test_the_command_has_them_closed(build, root, without, closed, tool):
    look = f"exec 9>{root}/closed; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] || echo $fd >&9; done"
    words = [build / "tools" / tool[0], *tool[1:], "--root", root, "--", "bash", "-c", look]
    assert without("env", "SHUNT_FABRIC=tcp:lo", *words) == 0
    assert_plain(root)
    assert (root / "closed").read_text().split() == [str(number) for number, name in enumerate(STREAMS) if name in closed]
