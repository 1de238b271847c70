# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""mkdir, and open with O_CREAT, of a directory that came by a native rename: it is there, and so is what its mirrors hold."""

import pytest
from conftest import PYTHON, redirected_files

LOOKS = r"""
import errno, os, sys
path, call = sys.argv[1:]
try:
    {"mkdir": os.mkdir, "mkfifo": os.mkfifo, "open": lambda path: os.open(path, os.O_CREAT | os.O_WRONLY),
     "exclusive": lambda path: os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY),
     "symlink": lambda path: os.symlink("to", path)}[call](path)
except OSError as error:
    print(errno.errorcode[error.errno])
print(os.path.exists(path + "/file"), os.listdir(path), open(path + "/file").read())
"""


@pytest.mark.parametrize("call, error", [("mkdir", "EEXIST"), ("mkfifo", "EEXIST"), ("symlink", "EEXIST"), ("open", "EISDIR"),
                                         ("exclusive", "EEXIST")])
def test_a_directory_that_was_renamed_to_it(shunt, root, call, error):
    (root / "below" / "away").mkdir(parents=True)
    shunt.run(root, ["sh", "-c", f"echo words >{root}/below/away/file"], keep=True).check()
    assert len(redirected_files(root)) == 1
    shunt("start", "--root", root, "--placement", "auto").check()  # in the trunk the kernel says so
    try:
        shunt("exec", "--root", root, "--", "sh", "-c", f"touch {root}/made; ls {root}").check()  # it is loaded
        (root / "below" / "away").rename(root / "here")
        out = shunt("exec", "--root", root, "--", PYTHON, "-c", LOOKS, root / "here", call).check()
    finally:
        shunt("stop", "--root", root).check()
    assert out == f"{error}\nTrue ['file'] words\n\n"
