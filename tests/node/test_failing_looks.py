# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The file system fails once to say what is where: each look of a command in turn. The command fails, and all is as before, or
it has done what it is for; nothing goes to another place than it would have."""

import json

import pytest

from conftest import PYTHON, assert_plain, run
from test_failures import session, started  # noqa: F401: fixtures

pytestmark = pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced

TRIES = 60
PREPARE = """for i; do (mkdir $i $i/sub $i/empty && cd $i && printf A >a && printf B >b && printf X >sub/x && ln -s a link &&
touch empty/none && rm empty/none) || exit 1; done"""

# What directories hold, by listings and by names.
SEE = r"""
import json, os, stat, sys
def look(path):
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode):
        return [mode, {name: look(os.path.join(path, name)) for name in os.listdir(path)}]
    return [mode, open(path).read() if stat.S_ISREG(mode) else os.readlink(path) if stat.S_ISLNK(mode) else ""]
def there(path):
    return [name for name in ("a", "b", "new", "sub/x", "sub/new") if os.path.lexists(os.path.join(path, name))]
print(json.dumps({name: [look(name), there(name)] for name in os.listdir(".")}))
"""

COMMANDS = {
    "create": ["touch", "new"],
    "append": ["dd", "status=none", "if=b", "of=a", "oflag=append", "conv=notrunc"],
    "write through a link": ["cp", "b", "link"],
    "unlink": ["unlink", "a"],
    "rename onto a file": ["mv", "-f", "a", "b"],
    "rename across": ["mv", "-f", "a", "sub/x"],
    "rename of a directory": ["mv", "sub", "new"],
    "link": ["link", "a", "new"],
    "mkdir": ["mkdir", "new"],
    "rmdir": ["rmdir", "empty"],
    "list": ["ls", "-A"],
}

# By statx it is seen where a path leads, and what has been made; by the others, what directory that is, and where a link leads.
# ESHUTDOWN is what Lustre says to a client that its server has shut out.
LOOKS = [*((what, "statx", "EIO") for what in COMMANDS), ("rename across", "openat", "EIO"), ("write through a link", "readlinkat", "EIO"),
         ("append", "statx", "ESHUTDOWN"), ("list", "statx", "ESHUTDOWN"), ("list", "openat2", "ESHUTDOWN")]


@pytest.mark.parametrize("what, call, error", LOOKS)
def test_a_look_that_fails(started, shunt, area, what, call, error):
    out, log, results = started.root / "out", area / "calls", {}
    started.exec("sh", "-c", PREPARE, "sh", "before", "after", *range(1, TRIES), cwd=out).check()
    whole = started.exec(*COMMANDS[what], cwd=out / "after").check()
    for number in range(1, TRIES):
        words = ["strace", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}", *COMMANDS[what]]
        result = started.exec(*words, cwd=out / str(number))
        if "(INJECTED)" not in log.read_text():
            break
        results[str(number)] = result
        assert result.status != 0 or sorted(result.out.split()) == sorted(whole.split()), result
    assert results != {} and number < TRIES - 1, "or this does not show all"
    union = json.loads(started.exec(PYTHON, "-c", SEE, cwd=out).check())
    for number, result in results.items():
        assert union[number] == union["after" if result.status == 0 else "before"], (number, result)
    assert "clean" in shunt("fsck", started.root).check()
    started.stop().check()
    shunt("export", started.root).check()
    assert_plain(started.root)
    assert json.loads(run([PYTHON, "-c", SEE], cwd=out).check()) == union
