# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The benchmarks of tests/bench, with few of everything: each still measures what it is for, and says so. How fast anything
is, is not looked at; what is counted, and is the same on every machine, is."""

import json
import os
import sys
import types

import pytest
from conftest import REPOSITORY, run

sys.path.append(str(REPOSITORY / "tests" / "bench"))
import pass_through  # noqa: E402: of the directory above

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
COUNTED = ("files redirected", "functions that move data", "shared memory for a thread")
EXT4, BINDFS = ("an ext4 on a loop device", "/dev/loop-control"), ("bindfs", "/dev/fuse")
MOUNTS = {"pass_through": BINDFS, "through_mount": BINDFS, "listing": EXT4, "moving": EXT4, "catalogue": EXT4,
          "remote": ("a slow file system", "/dev/fuse")}


def what_is_missing(script):
    """Why a script cannot mount here what it measures, or None."""
    if script not in MOUNTS:
        return None
    what, device = MOUNTS[script]
    if os.geteuid() != 0:
        return f"{script} mounts {what}, which only the superuser can"
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError as error:
        return f"{script} mounts {what}: {device}: {error.strerror}"
    return None


def skip_where_something_is_missing(script):
    """bindfs, an image or a slow file system is mounted by a superuser who has that device; there is nothing to measure without."""
    why = what_is_missing(script)
    if why is not None:
        pytest.skip(why)


def measured(build, area, script, *words):
    """The findings that a script has written down."""
    results = area / "results"
    done = run([PYTHON, REPOSITORY / "tests" / "bench" / f"{script}.py", "--quick", "--build", build, "--results", results,
                *words])
    assert "| figure | what |" in done.check()
    return json.loads(results.read_text())


@pytest.mark.parametrize("script, figure", [("calls", 2), ("rates", 2), ("pass_through", 3), ("listing", 4), ("daemon_cost", 5),
                                            ("remote", 6), ("memory", 7), ("data", 8), ("solo", 9), ("catalogue", 10), ("limit", 11),
                                            ("through_mount", 14), ("moving", 16), ("static_calls", 17)])
def test_a_benchmark(build, area, script, figure):
    skip_where_something_is_missing(script)
    if script == "static_calls" and not (build / "tests" / "bench" / "bench_worker_static").exists():
        pytest.skip("libc's archive (libc.a) is not installed, so there is no statically linked program to measure")
    whole = measured(build, area, script)
    findings = whole["findings"]
    assert {one["figure"] for one in findings} == {figure}
    assert any(one["held"] is not None for one in findings)
    assert {"processor", "cores", "kernel", "file system"} <= whole["machine"].keys()
    for one in findings:
        assert one["lowest"] <= one["median"] <= one["highest"]
        if one["what"].startswith(COUNTED):
            assert one["held"], one


def test_a_mount_name_space_that_is_made_meanwhile_does_not_keep_a_benchmark(area, request):
    """It has a copy of what is mounted."""
    skip_where_something_is_missing("pass_through")
    with pass_through.mounted(types.SimpleNamespace(top=area)) as mount:
        (mount / "file").touch()
        elsewhere = request.getfixturevalue("mounts")
        assert elsewhere("ls", mount).check() == "file\n"
    assert not os.path.ismount(mount)


def test_all_of_them_take_the_same_options(build, area):
    found = measured(build, area, "all", "--figures", "7,9", "--index-names", 500)
    assert [one["figure"] for one in found["findings"]] == [7] * 4 + [9] * 4
    assert "500 made" in found["findings"][0]["what"]
    assert found["failures"] == []


def test_a_directory_that_is_not_there(build, area):
    done = run([PYTHON, REPOSITORY / "tests" / "bench" / "all.py", "--quick", "--build", build, "--figures", "9", "--dir",
                area / "absent"])
    assert "solo.py: " in done.check(1)
