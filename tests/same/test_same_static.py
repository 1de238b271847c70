# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The program `same`, statically linked, prints natively what it prints under shunt. SHUNT_SAME_EVERY
says how many of the cases are run, in each placement; without it, each thousandth in one."""

import ctypes
import errno
import os
import pathlib
import platform
import re
import tempfile

import pytest
import test_same
from compare import differences

PROGRAM = test_same.BUILD / "tests" / "same" / "same_static"

EVERY = os.environ.get("SHUNT_SAME_EVERY")

# What shunt(7) says of such programs: calls that are refused as by an older kernel, and other users; and
# errors that the kernel finds in another order.
EXCEPTED = re.compile(r"\S*xattrat|file_[gs]etattr|users |fanotify|connect\(no socket\)|"
                      r"\S*bind\S* .*proc:|.*proc:\(filled|.*/(too-long|null)( |$)")


def compared(text):
    """The cases that are compared, each with the lines that belong to it, also where a name has a line feed and a tab in it."""
    kept, keeps = [], True
    for line in text.splitlines(keepends=True):
        keeps = keeps if line.startswith(("    ", "\t")) else not EXCEPTED.match(line)
        kept += [line] if keeps else []
    return "".join(kept)


def has_filters():
    """Does the kernel have seccomp filters that ask a helper? SECCOMP_GET_ACTION_AVAIL says so, and installs none. A static program
    that is not served sees the directories of the session, and this one would remove them."""
    libc, ask = ctypes.CDLL(None, use_errno=True), ctypes.c_uint32(0x7fc00000)  # SECCOMP_RET_USER_NOTIF
    number = {"x86_64": 317, "aarch64": 277}.get(platform.machine(), -1)
    return libc.syscall(number, 2, 0, ctypes.byref(ask)) == 0 or ctypes.get_errno() != errno.ENOSYS  # SECCOMP_GET_ACTION_AVAIL


@pytest.mark.skipif(not has_filters(), reason="no static program can be served: this kernel (or qemu-user) has no seccomp(2)")
@pytest.mark.skipif(not PROGRAM.exists(), reason="libc's archive is not there")
@pytest.mark.parametrize("placement", test_same.SEEN if EVERY else ["branch"])
def test_same_static(monkeypatch, placement):
    monkeypatch.setattr(test_same, "PROGRAM", PROGRAM)
    run = test_same.Run(int(EVERY or 1000), list(test_same.SEEN).index(placement), "self")
    with tempfile.TemporaryDirectory(prefix="same-", dir=test_same.PLACES["default"]) as above:
        os.chmod(above, 0o755)
        native, seen = pathlib.Path(above, "native"), pathlib.Path(above, "shunt.")
        native.mkdir()
        seen.mkdir()
        expected = run(native, lambda root: [])
        got = run(seen, lambda root: [test_same.SHUNT, "run", "--root", root,
                                      *test_same.SEEN[placement], "--"])
        different = differences(compared(expected), compared(got))
        assert not different, different
