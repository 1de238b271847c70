# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The export at the end of shunt-launch, by the nodes that made the files (tools/owner.h). What happens when one of them, or the
launch, ends on the way: tests/hooked/test_owners.py."""

import json
import os

import pytest
from conftest import assert_plain, run

COUNT = 40
# Of each of two pretended nodes.
MAKE = """
for node in fake0 fake1; do
    "$1" exec --root "$0" --node $node -- sh -c 'for i in $(seq '$2'); do echo '$node' >"$0/'$node'.$i"; done' "$0/$3" || exit
done
"""


@pytest.fixture
def launched(build, root):
    """launched(COUNT, DIRECTORY): what the launch says that made so many files of each node there."""

    def launch(count=COUNT, directory="out", script=MAKE, options=()):
        (root / directory).mkdir(parents=True, exist_ok=True)
        words = [build / "tools" / "shunt-launch", "--root", root, "--fake-nodes", 2, "--placement", "branch", "--json", *options, "--",
                 "sh", "-c", script, root, build / "tools" / "shunt", count, directory]
        result = run(words, SHUNT_FABRIC="tcp:lo")
        return result, json.loads(result.err.splitlines()[-1])

    return launch


def assert_all(directory, count=COUNT):
    assert sorted(os.listdir(directory)) == sorted(f"{node}.{i}" for node in ("fake0", "fake1") for i in range(1, count + 1))
    for path in directory.iterdir():
        assert path.read_text() == path.name.split(".")[0] + "\n"


@pytest.mark.parametrize("directory", ["out", "a directory/of 'some' %s"])
def test_the_nodes_export_what_they_made(launched, root, directory):
    result, said = launched(directory=directory)
    result.check()
    assert_plain(root)
    assert said["exported"] and said["exported_files"] == said["exported_by_owners"] == 2 * COUNT
    assert_all(root / directory)


def test_what_is_not_worth_an_order_is_exported_by_one(launched, root):
    result, said = launched(5)
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 10 and said["exported_by_owners"] == 0


def test_a_path_that_no_order_holds_is_exported_by_one(launched, root):
    result, said = launched(directory="two\nlines")
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 2 * COUNT and said["exported_by_owners"] == 0
    assert_all(root / "two\nlines")


def test_what_an_earlier_launch_kept_is_exported_by_its_nodes(launched, root):
    launched(options=["--keep"])[0].check()
    result, said = launched(script="true")
    result.check()
    assert_plain(root)
    assert said["exported_by_owners"] == 2 * COUNT
    assert_all(root / "out")


def test_what_lost_a_conflict_is_kept(launched, root):
    """A program without shunt made a name that a node has made, in the meantime."""
    launched(options=["--keep"])[0].check()
    (root / "out" / "fake0.3").touch()
    result, said = launched(script="true")
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 2 * COUNT
    assert (root / "out" / "fake0.3.shunt-conflict-trunk").read_text() == ""
    (root / "out" / "fake0.3.shunt-conflict-trunk").unlink()
    assert_all(root / "out")


def test_nothing_is_replaced(launched, root):
    """What has the name of a file of a node, and no part of the union, stays: a directory."""
    launched(options=["--keep"])[0].check()
    (root / "out" / "fake0.3").mkdir()
    launched(script="true")[0].check()
    assert_plain(root)
    assert (root / "out" / "fake0.3").is_dir() and len(os.listdir(root / "out")) == 2 * COUNT + 1


def test_an_owner_that_cannot_leaves_it_to_the_export(launched, root):
    """What is immutable is said, once, and stays, and all else leaves."""
    script = MAKE + 'chattr +i "$("$1" where "$0/out/fake1.7")"'
    result, said = launched(script=script)
    if "Operation not supported" in result.err or "Inappropriate ioctl" in result.err:
        pytest.skip("no chattr here")
    stays = next(root.glob(".shunt/b/*/*/*/fake1.7"))
    try:
        assert result.status != 0 and result.err.count("immutable or append-only") == 1, result.err
        assert said["exported_files"] == 2 * COUNT - 1 and len(os.listdir(root / "out")) == 2 * COUNT  # and the marker
    finally:
        run(["chattr", "-i", stays]).check()
