# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What files inherit from their directory, changed on one node: the next file of another node, which has a mirror already, has it."""

import pytest

import conftest

CHANGES = {
    "flags": ("chattr +A d", "chattr -A d", "lsattr -d {0} | cut -d' ' -f1"),
    "an ACL": ("setfacl -d -m u:42:rx,m::rwx d", "setfacl -k d", "getfacl -cEn {0}"),
}


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("who", ["node", "outsider"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_one_node_changes_the_files_of_another_have(session, tmp_path, change, who):
    given, taken, told = CHANGES[change]
    plain = tmp_path / "plain" / "d"
    plain.mkdir(parents=True)
    if conftest.one_node.run(["sh", "-c", given], cwd=plain.parent).status != 0:
        pytest.skip("the file system has no such thing")
    session.start("a", "b")
    session.homes()
    session.sh("a", "mkdir d; for i in $(seq 20); do echo x >d/a$i; done")
    session.sh("b", "for i in $(seq 20); do echo x >d/b$i; done")
    for step, script in enumerate((given, taken)):
        conftest.one_node.run(["sh", "-c", script], cwd=plain.parent).check()
        if who == "node":
            session.sh("a", script)
        else:  # noticed with the next listing, on whichever node
            conftest.one_node.run(["sh", "-c", script], cwd=session.root).check()
            session.sh("a", "ls d")
        make = "echo x >{0} && " + told
        native = conftest.one_node.run(["sh", "-c", make.format(f"d/new{step}")], cwd=plain.parent).check()
        assert session.sh("b", make.format(f"d/new{step}")).replace(str(session.root), "") == native
    assert not list((session.root / "d").glob("new*"))
