# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""fs.protected_regular, _fifos, _symlinks and _hardlinks (proc_sys_fs(5)) hold in a root as they are set."""

import pathlib
import tempfile

import pytest

from conftest import IS_SUPERUSER, PYTHON, assert_equal_text, redirected_files, run

PROGRAM = r"""
import errno, itertools, os, sys
USERS = {"root": 0, "one": 4711, "other": 4712}
os.umask(0)
os.mkdir("to", 0o777)
open("to/file", "w").close()
for mode, owner in itertools.product((0o1777, 0o777, 0o1770, 0o1775, 0o755), USERS):
    top = f"d{mode:o}-{owner}"
    os.mkdir(top)
    for user, uid in USERS.items():
        os.mkfifo(f"{top}/fifo-{user}")
        open(f"{top}/file-{user}", "w").close()
        os.symlink("../to/file", f"{top}/link-{user}")
        os.symlink("../to/new", f"{top}/dangling-{user}")
        for kind in "fifo", "file", "link", "dangling":
            os.lchown(f"{top}/{kind}-{user}", uid, 4713)
    os.chown(top, USERS[owner], 4713)
    os.chmod(top, mode)
def tried(*words, call):
    try:
        result = call()
        if isinstance(result, int) and result > 2: os.close(result)
        print(*words, 0)
    except OSError as error:
        print(*words, errno.errorcode[error.errno])
tops = sorted(name for name in os.listdir(".") if name != "to")
sys.stdout.flush()
for user, uid in USERS.items():
    if os.fork() == 0:
        os.setgroups([4713])
        os.setresgid(4713, 4713, 4713)
        os.setresuid(uid, uid, uid)
        for top, of in itertools.product(tops, USERS):
            for kind in "fifo", "file":
                for flags in os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_RDONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL:
                    tried(user, top, kind, of, flags, call=lambda: os.open(f"{top}/{kind}-{of}", flags | os.O_NONBLOCK, 0o600))
            tried(user, top, "hard", of, call=lambda: (os.link(f"{top}/file-{of}", f"to/{user}-{top}-{of}")))
            for kind in "link", "dangling":
                path = f"{top}/{kind}-{of}"
                tried(user, path, "stat", call=lambda: os.stat(path) and 0)
                tried(user, path, "open", call=lambda: os.open(path, os.O_RDONLY))
                tried(user, path, "chmod", call=lambda: os.utime(path))
                tried(user, path, "creat", call=lambda: os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
                if kind == "dangling": tried("gone", call=lambda: os.unlink("to/new"))
                tried(user, path, "lstat", call=lambda: os.lstat(path) and 0)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


SETTINGS = ["protected_regular", "protected_fifos", "protected_symlinks", "protected_hardlinks"]


@pytest.fixture(params=[None, 1, 2])
def level(request):
    """As they are; all at 1; those that have a level 2 at that. The whole system's, for the time of the test."""
    if not IS_SUPERUSER:
        pytest.skip("it becomes several users")
    paths = [pathlib.Path("/proc/sys/fs") / name for name in SETTINGS]
    before = [path.read_text() for path in paths]
    try:
        for path in paths if request.param else []:
            path.write_text(str(min(request.param, 1 if "links" in path.name else 2)))
        yield
    except PermissionError:
        pytest.skip("they may not be set here")
    finally:
        for path, text in zip(paths, before):
            if path.read_text() != text:
                path.write_text(text)


@pytest.fixture
def place():
    """Everybody comes there."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        at = pathlib.Path(name)
        at.chmod(0o755)
        for kind in "plain", "shunt":
            (at / kind).mkdir(mode=0o755)
        yield at


@pytest.mark.xdist_group("protected")
@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_files_of_others_in_sticky_directories(shunt, level, place, placement):
    native = run([PYTHON, "-c", PROGRAM], cwd=place / "plain").check()
    seen = shunt.run(place / "shunt", [PYTHON, "-c", PROGRAM], placement, keep=True, cwd=place / "shunt").check()
    if placement == "branch":
        assert redirected_files(place / "shunt")
    assert_equal_text(native, seen)
