# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Processes contend for names: exactly one wins each, natively and under shunt."""

import json
import sys

import pytest
from conftest import run


@pytest.mark.parametrize("placement,leaf_full", [("branch", 50000), ("branch", 7), ("auto", 50000)])
def test_exactly_one_wins_each_name(build, shunt, root, placement, leaf_full):
    result = shunt("run", "--root", root, "--placement", placement, "--leaf-full", str(leaf_full), "--",
                   build / "tests" / "node" / "race", root, "4", "200")
    result.check()
    assert result.out.count("200 of 200 won, 0 wrong") == 8, result.out
    assert not (root / ".shunt").exists()


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_directories_come_go_and_are_exchanged(build, shunt, root, area, placement):
    for place in ("outside", "native", "native-outside"):
        (area / place).mkdir()
    program = build / "tests" / "node" / "moving"
    right = "come 0, go 0, exchange 0, out 0\n"
    assert run([program, area / "native", area / "native-outside"]).check() == right
    assert shunt.run(root, [program, root, area / "outside"], placement=placement).check() == right
    assert not (root / ".shunt").exists()


# One removes a directory that the other makes and uses: prints which errors each of its calls met.
COMES_AND_GOES = """
import errno, json, os, sys, time
end, met = time.monotonic() + 3, {}
def call(what, *rest):
    try:
        answer = getattr(os, what)(*rest)
    except OSError as error:
        met.setdefault(what, set()).add(errno.errorcode[error.errno])
        return None
    return answer
os.chdir(sys.argv[1])
if os.fork() == 0:
    while time.monotonic() < end:
        call("rmdir", "d")
    os._exit(len(met.get("rmdir", set()) - {"ENOENT", "ENOTEMPTY"}))
while time.monotonic() < end:
    call("mkdir", "d")
    made = call("open", "d/n", os.O_CREAT | os.O_EXCL)
    if made is not None:
        os.close(made)
    call("symlink", "n", "d/s")
    call("rename", "d/n", "d/m")
    call("link", "d/m", "d/l")
    for name in "nsml":
        call("unlink", f"d/{name}")
wrong = os.wait()[1]
print(json.dumps({"rmdir": wrong, **{what: sorted(errors) for what, errors in met.items()}}))
"""


def test_a_directory_that_comes_and_goes_is_there_or_not(shunt, root, area):
    """What is made in one that was removed and made again meanwhile finds the one that is there."""
    (area / "native").mkdir()
    program = [sys.executable, "-c", COMES_AND_GOES]
    for met in (run([*program, area / "native"]).check(), shunt.run(root, [*program, root]).check()):
        met = json.loads(met)
        assert met.pop("rmdir") == 0 and set(met.pop("mkdir", [])) <= {"EEXIST"}, met
        assert set().union(*met.values()) <= {"ENOENT"}, met
