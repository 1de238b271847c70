# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory is exchanged with another one while a name in it is made, removed or renamed in the trunk. As natively, it is
done in one of the two; and in the one where it was claimed, so that the index is right."""

import json
import os
import subprocess
import sys

import pytest
from conftest import Meeting, one_node, wait_until

# What is done in p; which hook it stops at with its claim; and what is in the directory after that.
CALLS = {
    "create": ("open('p/new', 'x').close()", "create-reserved", {"f", "x", "d", "new"}),
    "mkdir": ("os.mkdir('p/new')", "make-reserved", {"f", "x", "d", "new"}),
    "mkdir/": ("os.mkdir('p/new/')", "make-reserved", {"f", "x", "d", "new"}),
    "symlink": ("os.symlink('nowhere', 'p/new')", "make-reserved", {"f", "x", "d", "new"}),
    "mknod": ("os.mkfifo('p/new')", "make-reserved", {"f", "x", "d", "new"}),
    "unlink": ("os.unlink('p/f')", "remove-held", {"x", "d"}),
    "rmdir": ("os.rmdir('p/d')", "rmdir-held", {"f", "x"}),
    "rename": ("os.rename('p/f', 'p/new')", "rename-held", {"x", "d", "new"}),
    "replace": ("os.rename('p/f', 'p/x')", "rename-held", {"x", "d"}),
    "rename a directory": ("os.rename('p/d', 'p/new')", "rename-held", {"f", "x", "new"}),
    "rename away": ("os.rename('p/f', 'new')", "rename-held", {"x", "d"}),
    "rename here": ("os.rename('other', 'p/new')", "rename-held", {"f", "x", "d", "new"}),
    "link": ("os.link('p/f', 'p/new')", "link-reserved", {"f", "x", "d", "new"}),
    "link here": ("os.link('other', 'p/new')", "link-reserved", {"f", "x", "d", "new"}),
    "by descriptor": ("os.unlink('f', dir_fd=os.open('p', os.O_RDONLY))", "remove-held", {"x", "d"}),
    "from there": ("(os.chdir('p'), os.unlink('f'))", "remove-held", {"x", "d"}),
}
BEFORE = {"f", "x", "d"}
EXCHANGE = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'p', -100, b'q', 2)"


class Ground:
    def __init__(self, shunt, root, guard):
        self.shunt, self.root, self.settings = shunt, root, {"SHUNT_BREAK": guard or "", "SHUNT_DEADLINE": 20}
        for name in ("p/d", "q/d"):
            (root / name).mkdir(parents=True)
        for name in ("p/f", "p/x", "q/f", "q/x", "other"):
            (root / name).write_text(name)
        shunt("start", "--root", root, "--placement", "auto", **self.settings).check()
        self.does("import os; [os.listdir(name) for name in ('.', 'p', 'q')]")

    def call(self, line, **settings):
        command = [self.shunt.path, "exec", "--root", self.root, "--", sys.executable, "-c", line]
        return subprocess.Popen(command, cwd=self.root, env=one_node.environment(**self.settings, **settings))

    def does(self, line):
        assert self.call(line).wait(40) == 0

    def keys(self):
        return json.loads(self.shunt("status", "--root", self.root, "--json").check())[0]["counters"]["index_keys"]

    def names(self, name):
        return set(os.listdir(self.root / name)) - {".shunt-dir"}


@pytest.fixture(params=[None, "unpinned"])
def ground(request, shunt, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    made = Ground(shunt, root, request.param)
    yield made
    shunt("stop", "--root", root).check()


def carry_out(ground, tmp_path, call, hook):
    """With the directories exchanged in the middle."""
    before, meeting = ground.keys(), Meeting(tmp_path / "meeting")
    process = ground.call(f"import os; {call}", SHUNT_HOOKS=meeting.at(hook))
    wait_until(lambda: meeting.is_reached() or process.poll() is not None, call)
    assert meeting.is_reached()
    one_node.run([sys.executable, "-c", EXCHANGE], cwd=ground.root).check()
    meeting.go()
    return process.wait(40), before


@pytest.mark.parametrize("call", CALLS)
def test_it_is_exchanged_after_the_name_was_claimed(ground, tmp_path, call):
    line, hook, after = CALLS[call]
    status, _ = carry_out(ground, tmp_path, line, hook)
    done = (status, ground.names("q"), ground.names("p"))
    is_plain = call in ("by descriptor", "from there")
    assert (done == (0, after, BEFORE)) == (ground.settings["SHUNT_BREAK"] == "" or is_plain), done


@pytest.mark.parametrize("call", CALLS)
def test_it_is_exchanged_before_the_name_is_claimed(ground, tmp_path, call):
    """In either; what counts is the index."""
    line, _, after = CALLS[call]
    if ground.settings["SHUNT_BREAK"]:
        pytest.skip("shown by the other test")
    status, before = carry_out(ground, tmp_path, line, "hold")
    assert status == 0
    assert sorted(map(sorted, (ground.names("p"), ground.names("q")))) == sorted(map(sorted, (after, BEFORE)))
    others = {"rename here": -1, "rename away": 1, "mkdir": 1, "mkdir/": 1}.get(call, 0)  # names elsewhere, and directories
    wait_until(lambda: ground.keys() - before == len(after) - len(BEFORE) + others, "the index to be right")
    for name in "pq":
        ground.does(f"import os; assert set(os.listdir({name!r})) == {ground.names(name)!r}")
