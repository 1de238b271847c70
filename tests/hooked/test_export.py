# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Export where no rename is known that replaces nothing: the one moment in which a file of a program without shunt can be lost."""

import subprocess
import sys

from conftest import NODE, Meeting, one_node

sys.path.append(str(NODE))
from union_on_disk import Union

WITHOUT_NOREPLACE = [one_node.PYTHON, NODE / "without_noreplace.py"]


def export_beside_a_native_program(shunt, tmp_path, hook, *options):
    """The native program makes the name while the export stands at the hook. (result, the root)."""
    union, meeting = Union(tmp_path / "root"), Meeting(tmp_path / "there")
    union.put("n1.1", union.mark("out", 1), "a", "redirected")
    export = subprocess.Popen([*WITHOUT_NOREPLACE, shunt.path, "export", *options, union.root], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=one_node.environment(SHUNT_HOOKS=meeting.at(hook)))
    meeting.reached()
    (union.root / "out" / "a").write_text("native")
    meeting.go()
    out, err = export.communicate()
    return one_node.Result(export.args, export.returncode, out, err), union.root


def assert_kept(result, root):
    result.check(1)
    assert "appeared in the trunk" in result.err and (root / "out" / "a").read_text() == "native"


def test_between_the_look_and_the_rename_it_is_replaced(shunt, tmp_path):
    """What shunt-export(1) names."""
    result, root = export_beside_a_native_program(shunt, tmp_path, "rename-looked")
    assert "renamed after a look at each name (--careful links" in result.check()
    one_node.assert_plain(root)
    assert (root / "out" / "a").read_text() == "redirected"


def test_before_the_look_it_is_not(shunt, tmp_path):
    assert_kept(*export_beside_a_native_program(shunt, tmp_path, "rename-refused"))


def test_careful_replaces_nothing_at_any_moment(shunt, tmp_path):
    assert_kept(*export_beside_a_native_program(shunt, tmp_path, "rename-refused", "--careful"))
