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


# Done to plain names in NAME.p, where `at` leads (None: the working directory), which is NAME.q for another thread from then on.
PLAIN = {
    "create": ("os.close(os.open('new', os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=at))", {"f", "x", "d", "new"}),
    "mkdir": ("os.mkdir('new', dir_fd=at)", {"f", "x", "d", "new"}),
    "symlink": ("os.symlink('nowhere', 'new', dir_fd=at)", {"f", "x", "d", "new"}),
    "mknod": ("os.mkfifo('new', dir_fd=at)", {"f", "x", "d", "new"}),
    "unlink": ("os.unlink('f', dir_fd=at)", {"x", "d"}),
    "rmdir": ("os.rmdir('d', dir_fd=at)", {"f", "x"}),
    "rename": ("os.rename('f', 'new', src_dir_fd=at, dst_dir_fd=at)", {"x", "d", "new"}),
    "link": ("os.link('f', 'new', src_dir_fd=at, dst_dir_fd=at)", {"f", "x", "d", "new"}),
    "link here": ("os.link(f'{root}/other', 'new', dst_dir_fd=at)", {"f", "x", "d", "new"}),
    "rename away": ("os.rename('f', f'{root}/away', src_dir_fd=at)", {"x", "d"}),
    "rename here": ("os.rename(f'{root}/spare', 'new', dst_dir_fd=at)", {"f", "x", "d", "new"}),
}
WAYS = {
    "chdir": ("os.chdir(here), None", "os.chdir(there)"),
    "dup2": ("None, os.open(here, os.O_RDONLY)", "os.dup2(os.open(there, os.O_RDONLY), at)"),
}
MEANWHILE = """
import os, sys, threading, time
root, meeting = os.getcwd(), sys.argv[1]
def leads_elsewhere():
    while not os.path.exists(meeting + ".reached"):
        if is_over.wait(0.001):
            return print(call, "came to no hook")
    {change}
    open(meeting + ".go", "x").close()
for call, line in {calls!r}:
    here, there = f"{{root}}/{{call}}.p", f"{{root}}/{{call}}.q"
    _, at = {begin}
    is_over = threading.Event()
    thread = threading.Thread(target=leads_elsewhere)
    thread.start()
    exec(line)
    is_over.set()
    thread.join()
    os.remove(meeting + ".reached"), os.remove(meeting + ".go")
"""


class Pairs:
    """For each call two directories, each of which is known."""

    def __init__(self, shunt, root, guard):
        self.shunt, self.root, self.settings = shunt, root, {"SHUNT_BREAK": guard or "", "SHUNT_DEADLINE": 20}
        root.mkdir()
        for name in ("other", "spare", *(f"{call}.{side}/{name}" for call in (*PLAIN, "bind") for side in "pq" for name in "fx")):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(name)
        for call in (*PLAIN, "bind"):
            (root / f"{call}.p/d").mkdir(), (root / f"{call}.q/d").mkdir()
        shunt("start", "--root", root, "--placement", "auto", **self.settings).check()
        self.shown()

    def does(self, *words, **more):
        return one_node.run([self.shunt.path, "exec", "--root", self.root, "--", sys.executable, "-c", *words],
                            cwd=self.root, **self.settings, **more).check()

    def shown(self):
        seen = json.loads(self.does("import json, os; print(json.dumps({at[2:]: dirs + files for at, dirs, files in os.walk('.')}))"))
        return {name: set(names) for name, names in seen.items()}

    def real(self):
        return {at[len(str(self.root)) + 1:]: {*dirs, *files} - {".shunt", ".shunt-dir"} for at, dirs, files in os.walk(self.root)
                if ".shunt" not in at.removeprefix(str(self.root))}

    def meanwhile(self, meeting, way, calls):
        begin, change = WAYS[way]
        hooks = ("create-reserved", "make-reserved", "remove-held", "rmdir-held", "rename-held", "link-reserved")
        program = MEANWHILE.format(begin=begin, change=change, calls=list(calls.items()))
        assert self.does(program, meeting, SHUNT_HOOKS=",".join(f"{hook}:meet={meeting}" for hook in hooks)) == ""


@pytest.fixture(params=[None, "unpinned"])
def pairs(request, shunt, tmp_path):
    made = Pairs(shunt, tmp_path / "root", request.param)
    yield made
    shunt("stop", "--root", made.root).check()


@pytest.mark.parametrize("way", WAYS)
def test_a_plain_name_begins_elsewhere_after_it_was_claimed(pairs, tmp_path, way):
    """In another thread the working directory changes, or what the number of the descriptor is."""
    pairs.meanwhile(tmp_path / "meeting", way, {call: line for call, (line, _) in PLAIN.items()})
    real = pairs.real()
    elsewhere = {call for call, (_, after) in PLAIN.items() if (real[f"{call}.p"], real[f"{call}.q"]) != (after, BEFORE)}
    if pairs.settings["SHUNT_BREAK"]:  # a process that has changed a few names opens the directory anyway
        assert "create" in elsewhere
    else:
        assert (elsewhere, pairs.shown()) == (set(), real)


@pytest.mark.parametrize("pairs", [None], indirect=True)
def test_a_socket_is_where_its_address_leads(pairs, tmp_path):
    """That is the path which everybody connects to."""
    pairs.meanwhile(tmp_path / "meeting", "chdir", {"bind": "import socket; socket.socket(socket.AF_UNIX).bind('new')"})
    real = pairs.real()
    assert (real["bind.p"], real["bind.q"]) == (BEFORE, BEFORE | {"new"})
    assert pairs.shown() == real
