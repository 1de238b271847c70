# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What files inherit from their directory, changed when that has redirected files already: flags, project, extent sizes, default
ACLs. As natively: files that are made after it have it, and what it forbids is forbidden."""

import shutil

import pytest

from conftest import assert_equal_text, mounted, redirected_files, run

MKFS = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"]}


@pytest.fixture(params=MKFS)
def disk(request, area):
    (area / "disk").mkdir()
    with mounted(area / "disk", *MKFS[request.param]) as at:
        for kind in "plain", "shunt":
            (at / kind).mkdir()
        yield at


# What is told of each name; and each name's directory is not asked, as its own size may differ.
TELL = """
told() { lsattr -p "$@" 2>&1 | sed 's/^ *//'; for file; do getfacl -cEn "$file"; done; }
made() { for i in 1 2 3; do echo x >"$1$i" || echo "$1$i: status $?"; done; }
"""
CHANGES = {
    "flags": "chattr +A +d d; made d/f; told d/f*; chattr -A d; made d/g; told d/g*",
    "more flags": "chattr +S d; made d/f; told d/f*; chattr +D d || echo no; made d/g; told d/g*; chattr -S -d d; made d/h; told d/h*",
    "a project": "chattr -p 42 +P d; made d/f; told d/f*; chattr -p 43 d; made d/g; told d/g*; mv d/before d/f1; mv d/g2 d/f3; told d/f*",
    "an ACL": "setfacl -d -m u:42:rx,m::rwx d; made d/f; told d/f*; setfacl -k d; made d/g; told d/g*",
    "an attribute": "setfattr -n user.x -v y d; made d/f; told d/f*; getfattr -d d/f1",
    "append only": "chattr +a d; made d/f; rm d/f1; mv d/f1 d/f2; ls d; chattr -a d; made d/g; rm d/f1; mv d/g1 d/g2; ls d; told d/g*",
    "immutable": "chattr +i d; made d/f; mv other d/; mkdir d/s; ln other d/l; rmdir d; ls d; chattr -i d; made d/g; mv d/g1 d/g2; ls d",
    "extent sizes": "xfs_io -c 'extsize 64k' d; made d/f; for i in 1 2 3; do xfs_io -r -c extsize d/f$i; done",
}
BEFORE = TELL + "exec 2>&1; mkdir d; for i in $(seq 30); do echo x >d/e$i; done; rm d/e*; echo x >d/before; echo x >other; "


def both(shunt, disk, placement, script, **settings):
    native = run(["bash", "-c", script], cwd=disk / "plain", **settings)
    seen = shunt.run(disk / "shunt", ["bash", "-c", script], placement, keep=True, cwd=disk / "shunt", **settings)
    return native.check(), seen.check()


@pytest.mark.parametrize("placement", ["branch", "auto"])
@pytest.mark.parametrize("change", CHANGES)
def test_files_that_are_made_after_a_change_have_it(shunt, disk, change, placement):
    assert all(map(shutil.which, ("chattr", "setfacl", "xfs_io")))
    native, seen = both(shunt, disk, placement, BEFORE + CHANGES[change])
    assert_equal_text(native, seen)
    if placement == "branch":
        assert redirected_files(disk / "shunt") or change in ("immutable", "append only")
    shunt("export", "--copy", disk / "shunt").check()  # XFS renames nothing into another project


def test_a_directory_that_is_append_only_gets_no_marker(shunt, disk):
    """Nothing that is made there can be given another name, or be removed."""
    names = "mkdir d; chattr +a d; made d/f; rm d/f1; ls -A d; ls -A d | wc -l"
    try:
        assert_equal_text(*both(shunt, disk, "branch", TELL + "exec 2>&1; " + names))
        shunt("export", disk / "shunt").check()
        assert sorted(path.name for path in (disk / "shunt" / "d").iterdir()) == ["f1", "f2", "f3"]
    finally:
        run(["chattr", "-a", disk / "plain" / "d", disk / "shunt" / "d"]).check()


@pytest.mark.parametrize("change, told", [("chattr +A +d d", "dA"), ("chattr -p 42 +P d", "42"), ("setfacl -d -m u:42:rx d", "user:42")])
@pytest.mark.parametrize("when", ["while it runs", "between two sessions"])
def test_a_program_without_shunt_changes_it(shunt, disk, change, told, when, run_base):
    """It is noticed with the next listing, and when the directory is loaded."""
    root, settings = disk / "shunt", {"SHUNT_RUN_DIR": run_base}
    start = ["start", "--root", root, "--placement", "branch"]

    def sh(script):
        return shunt("exec", "--root", root, "--", "bash", "-c", TELL + script, cwd=root, **settings).check()

    shunt(*start, **settings).check()
    sh("mkdir d; made d/f; ls d")
    if when != "while it runs":
        shunt("stop", "--root", root, **settings).check()
    changed = run(["bash", "-c", change], cwd=root)
    if "not supported" in changed.err:
        pytest.skip("the file system has no projects")
    changed.check()
    if when != "while it runs":
        shunt(*start, **settings).check()
    assert told in sh("ls d >/dev/null; made d/g; told d/g*")
    assert redirected_files(root)
    shunt("stop", "--root", root, **settings).check()
    shunt("export", "--copy", root).check()
