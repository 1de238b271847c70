# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A process is killed in the middle of a rename from one root into another: both daemons find what the disk has."""

import signal
import sys

import pytest

CARRY = "import sys, ctypes; ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3]))"
# Kept open by a process that was in both roots before, so that both daemons have heard how it ended.
SCRIPT = f"""
echo old >"$1/x"; [ "$4" = none ] || echo replaced >"$2/y"
SHUNT_HOOKS=$3:kill {sys.executable} -c '{CARRY}' "$1/x" "$2/y" $5
echo $?
for file in "$1/x" "$2/y"; do cat "$file" 2>&- || echo none; ls "$(dirname "$file")"; done
"""
EXCHANGE = 2


@pytest.mark.parametrize("placement", ["branch", "auto"])
@pytest.mark.parametrize("hook, is_done", [("rename-held", False), ("rename-done", True)])
@pytest.mark.parametrize("new, flags", [("none", 0), ("file", 0), ("file", EXCHANGE)])
@pytest.mark.parametrize("one, other", ["ab", "ba"])
def test_a_process_is_killed_in_the_middle(shunt, tmp_path, one, other, hook, is_done, new, flags, placement):
    for name in "ab":
        (tmp_path / name).mkdir()
    before = ["old", "x", "replaced" if new == "file" else "none", *(["y"] if new == "file" else [])]
    after = ["replaced", "x", "old", "y"] if flags else ["none", "old", "y"]
    words = [tmp_path / one, tmp_path / other, hook, new, flags]
    result = shunt("run", "--root", tmp_path / "a", "--root", tmp_path / "b", "--placement", placement, "--", "bash", "-c", SCRIPT,
                   "-", *words, timeout=60, SHUNT_DEADLINE=20)
    assert result.check().split() == [str(128 + signal.SIGKILL), *(after if is_done else before)], result.err
