# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A root that is mounted on one node shows at once what another node, or a program without the library, does."""

import os
import shutil

import pytest

pytestmark = pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3"), reason="needs FUSE")


@pytest.fixture
def mounted(pair, build, tmp_path):
    if not (build / "tools" / "mount" / "shunt-mount").exists():
        pytest.skip("needs a build with libfuse3")
    at = tmp_path / "mount"
    at.mkdir()
    pair.tool("mount", "--node", "a", pair.root, at).check()
    yield at / "out"
    pair.tool("umount", at).check()


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_mount_keeps_nothing_that_another_node_changes(pair, mounted):
    for i in range(8):
        assert not os.path.lexists(mounted / "file") and not os.path.lexists(mounted / "link")
        pair.sh("b", f"cd out; echo {i} >file; ln -s made{i} link; mkdir d; echo in >d/in")
        assert (mounted / "file").read_text() == f"{i}\n" and os.readlink(mounted / "link") == f"made{i}"
        assert os.listdir(mounted / "d") == ["in"] and sorted(os.listdir(mounted)) == ["d", "file", "link"]
        with pytest.raises(FileExistsError):
            os.mkdir(mounted / "file")
        pair.sh("b", f"cd out; echo longer {i} >file; chmod 640 file; ln -sf moved{i} link; mv d e; rm e/in")
        assert (mounted / "file").read_text() == f"longer {i}\n" and (mounted / "file").stat().st_mode & 0o777 == 0o640
        assert os.readlink(mounted / "link") == f"moved{i}" and not (mounted / "d").exists() and os.listdir(mounted / "e") == []
        (pair.root / "out" / "link").unlink()
        (pair.root / "out" / "link").symlink_to(f"outside{i}")
        (pair.root / "out" / "new").write_text("outside")
        assert os.readlink(mounted / "link") == f"outside{i}" and (mounted / "new").read_text() == "outside"
        (mounted / "file").unlink()
        pair.sh("b", "cd out; test ! -e file; rm link new; rmdir e; ls")
        assert os.listdir(mounted) == []
