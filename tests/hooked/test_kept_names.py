# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes whose kernels keep names that another node has changed since, as NFS clients do (keeping_file_system.py): what one
kernel does not find is known to that node alone, and all nodes see what there is."""

import json
import pathlib
import subprocess
import sys

import conftest
import pytest
from test_interleavings import expect, guarded

HERE = pathlib.Path(__file__).resolve().parent
NODES = ("a", "b")
CALL = """
import errno, os, sys
try:
    print(eval(sys.argv[1]))
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Kernels:
    """For each node a mount of its own, in a mount namespace where it stands at the path that all nodes have."""

    is_slow = False

    def __init__(self, area, root, taken_away):
        self.root, self.taken_away = root, taken_away
        self.mounts = {node: area / f"mount-{node}" for node in NODES}
        for mount in self.mounts.values():
            mount.mkdir()
        self.server = subprocess.Popen([sys.executable, HERE / "keeping_file_system.py", *self.mounts.values()],
                                       stdout=subprocess.PIPE, text=True)
        assert [self.server.stdout.readline() for _ in NODES] == ["serving\n"] * len(NODES)

    def into(self, node):
        script = f'mount --make-rprivate / && mount --bind "{self.mounts[node]}" "{self.root}" && exec "$@"'
        return ["unshare", "-m", "sh", "-c", script, "sh"]

    def settings(self, _node):
        return {"SHUNT_FABRIC": "tcp", "SHUNT_BREAK": ",".join(self.taken_away)}

    def end(self):
        for mount in self.mounts.values():
            subprocess.run(["umount", "-l", mount], check=False)
        self.server.kill()
        self.server.wait()


@pytest.fixture
def are_known():
    """As kernels that keep names: shunt looks past what they keep."""
    return True


@pytest.fixture
def guard_of_daemons():
    """That is taken away."""
    return None


@pytest.fixture
def blocked(tmp_path):
    """Where a daemon tells that a process waits for the end of another's operation."""
    return conftest.Meeting(tmp_path / "blocked")


@pytest.fixture
def nodes(build, tmp_path, blocked, are_known, guard_of_daemons):
    root, run = tmp_path / "root", tmp_path / "run"
    root.mkdir()
    run.mkdir()
    taken_away = ["names-kept"] * are_known + [guard_of_daemons] * (guard_of_daemons is not None)
    kernels = Kernels(tmp_path, root, taken_away)
    session = conftest.several_nodes.Session(conftest.one_node.Shunt(build), root, run, kernels)
    try:
        session.start(*NODES, placement="auto", SHUNT_HOOKS=blocked.seen_at("request-blocked"))
        yield session
        for node in NODES:
            session.at("stop", node)
    finally:
        kernels.end()


def does(nodes, node, line):
    return nodes.on(node, "/usr/bin/python3", "-c", CALL, line, cwd="/", ROOT=str(nodes.root)).check().strip()


def everywhere(nodes, line):
    return {does(nodes, node, f"os.chdir({str(nodes.root)!r}) or {line}") for node in NODES}


def on(nodes, node, line):
    return does(nodes, node, f"os.chdir({str(nodes.root)!r}) or {line}")


def begins(nodes, node, line, *hooks, **more):
    """The same, not waited for."""
    words = nodes.words("exec", node, "--", "/usr/bin/python3", "-c", CALL, f"os.chdir({str(nodes.root)!r}) or {line}")
    settings = {**nodes.settings, **nodes.net.settings(node), "SHUNT_HOOKS": ",".join(hooks), **more}
    return subprocess.Popen(list(map(str, words)), cwd="/", env=conftest.one_node.environment(**settings),
                            stdout=subprocess.PIPE, text=True)


def answered(process):
    return process.communicate(timeout=60)[0].strip()


# First what is looked up, since a listing has the kernel forget names.
LISTED = "[[n for n in ('a/x', 'a/y', 'b/x', 'b/y') if os.path.lexists(n)]] + [sorted(os.listdir(d)) for d in 'ab']"


def test_directories_that_nodes_rename_by_turns(nodes):
    on(nodes, "a", "[os.mkdir('a'), os.mkdir('b')]")
    steps = [("a", "os.mkdir('b/x')", [["b/x"], [], ["x"]]), ("a", "os.rename('b/x', 'a/y')", [["a/y"], ["y"], []]),
             ("b", "os.rename('a/y', 'b/x')", [["b/x"], [], ["x"]]), ("a", "os.rmdir('b/x')", [[], [], []]),
             ("b", "os.mkdir('b/x')", [["b/x"], [], ["x"]]), ("b", "os.rmdir('b/x')", [[], [], []]),
             ("a", "os.mkdir('a/y')", [["a/y"], ["y"], []]), ("b", "os.rmdir('a/y')", [[], [], []])]
    assert everywhere(nodes, LISTED) == {"[[], [], []]"}
    for node, line, seen in steps:
        assert on(nodes, node, line) == "None", line
        assert everywhere(nodes, LISTED) == {str(seen)}, line


def test_what_one_node_missed_is_removed_by_it(nodes):
    on(nodes, "a", "os.mkdir('d')")
    assert everywhere(nodes, "os.path.exists('d/n')") == {"False"}
    assert on(nodes, "a", "open('d/n', 'x').close()") == "None"
    assert on(nodes, "b", "os.unlink('d/n')") == "None"
    assert everywhere(nodes, "os.listdir('d'), os.path.exists('d/n')") == {"([], False)"}
    assert on(nodes, "a", "open('d/n', 'x').close()") == "None"


def test_a_way_that_leads_elsewhere(nodes):
    on(nodes, "a", "[os.makedirs('m/in'), open('m/in/f', 'w').close()]")
    assert everywhere(nodes, "os.path.exists('m/in/f'), os.path.exists('n/in/f')") == {"(True, False)"}
    assert on(nodes, "b", "os.rename('m', 'n')") == "None"
    assert everywhere(nodes, "os.path.exists('m/in/f'), os.path.exists('n/in/f')") == {"(False, True)"}
    assert on(nodes, "a", "[os.unlink('n/in/f'), os.rmdir('n/in'), os.rmdir('n')]") == "[None, None, None]"
    assert everywhere(nodes, "os.path.exists('n/in'), os.listdir()") == {"(False, [])"}
    assert on(nodes, "b", "os.rmdir('n/in')") == "ENOENT"


SCANS = "__import__('ctypes').CDLL(None).scandir(b'd', __import__('ctypes').byref(__import__('ctypes').c_void_p()), None, None)"


each_use = pytest.mark.parametrize("line, seen", [
    ("os.listdir('d')", "['in']"), (SCANS, "3"), ("os.chdir('d') or os.listdir()", "['in']"),
    ("os.listdir(os.open('d', os.O_DIRECTORY))", "['in']"), ("os.listdir('d/in')", "[]"), ("os.access('d', os.R_OK)", "True"),
    ("os.statvfs('d').f_bsize > 0", "True"), ("os.stat('d/in').st_nlink > 0", "True"), ("os.mkdir('d/in/x')", "None"),
    ("os.rename('d/in', 'd/out')", "None"), ("open('d/in/x', 'x').close()", "None"), ("os.chdir('d/in')", "None"),
    ("os.rmdir('d/in')", "None"), ("list(os.walk('d'))", "[('d', ['in'], []), ('d/in', [], [])]")])


@each_use
def test_a_directory_is_there_once_another_node_has_made_it(nodes, line, seen):
    """However it is used first."""
    assert everywhere(nodes, "[os.path.exists(path) for path in ('d', 'd/in')]") == {"[False, False]"}
    on(nodes, "a", "os.makedirs('d/in')")
    assert on(nodes, "b", line) == seen


def make_again(nodes):
    """All know d and d/in, which another node removes, and makes again."""
    on(nodes, "a", "os.makedirs('d/in')")
    assert everywhere(nodes, "[os.listdir('d'), os.listdir('d/in')]") == {"[['in'], []]"}
    on(nodes, "a", "[os.rmdir('d/in'), os.rmdir('d'), os.makedirs('d/in')]")


@each_use
def test_a_directory_is_the_one_that_another_node_has_made_again(nodes, line, seen):
    make_again(nodes)
    assert on(nodes, "b", line) == seen


@each_use
def test_a_directory_that_is_made_again_before_its_place_is_known(nodes, tmp_path, line, seen):
    """The kernel of b hears of it, by a look of another process, once it has led this one to the directory that was there."""
    make_again(nodes)
    sought = conftest.Meeting(tmp_path / "sought")
    use = begins(nodes, "b", line, sought.at("place-sought"))
    conftest.wait_until(lambda: sought.is_reached() or use.poll() is not None, "b's process")
    looks = "stat --cached=never . d d/in; ls d/in"
    subprocess.run([*nodes.net.into("b"), "sh", "-c", f"cd {nodes.net.root} && {looks}"], check=True, stdout=subprocess.DEVNULL)
    sought.go()
    assert answered(use) == seen


def are_homes(nodes):
    """Both nodes: of one that has just joined they are not yet."""
    members = json.loads(nodes.at("status", "b", "--json").check())[0]["members"]
    return all(member["home"] == "yes" for member in members)


def at_home_on_b(nodes, build, directory):
    """A name whose home is the node b: there processes look at a name that is being replaced, and wait for nobody."""
    conftest.wait_until(lambda: are_homes(nodes), "both nodes to be homes")
    texts = [f"n{number}" for number in range(100)]
    command = [build / "tests" / "cluster" / "home_of", nodes.net.mounts["a"] / directory, str(len(NODES)), *texts]
    homes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return texts[homes.index("2")]


SEEN = {"opened": ("open('d/NAME').read()", "new"), "found": ("os.path.exists('d/NAME')", "True"),
        "linked": ("os.link('d/NAME', 'd/linked')", "None"), "listed": ("sorted(os.listdir('d'))", "['NAME']")}


@guarded("missed-is-gone")
@pytest.mark.parametrize("are_known", [True, False])
@pytest.mark.parametrize("call", SEEN)
def test_what_is_replaced_is_there_all_the_time(nodes, build, blocked, tmp_path, call, guard, are_known):
    """The kernel of b misses it, and the daemons do not know yet how the rename went. NFS misses it even where it keeps no names."""
    on(nodes, "a", "os.mkdir('d')")
    name = at_home_on_b(nodes, build, "d")
    line, seen = [text.replace("NAME", name) for text in SEEN[call]]
    on(nodes, "a", f"[open('d/{name}', 'w').close(), open('d/t', 'w').write('new')]")
    assert everywhere(nodes, "sorted(os.listdir('d'))") == {f"['{name}', 't']"}
    done = conftest.Meeting(tmp_path / "done")
    rename = begins(nodes, "a", f"os.rename('d/t', 'd/{name}')", done.at("rename-done"))
    done.reached()
    blocked.again()
    look = begins(nodes, "b", line, SHUNT_BREAK=guard or "")
    conftest.wait_until(lambda: blocked.is_reached() or look.poll() is not None, "b's look")
    done.go()
    assert answered(rename) == "None"
    expect(guard, answered(look) == seen)


@pytest.mark.parametrize("guard_of_daemons", [None, "trunk-as-known"])
def test_a_directory_that_a_program_without_shunt_replaced(nodes, guard_of_daemons):
    """The coordinator's kernel, which is that of a for some of them and of b for others, still goes by the one that was there."""
    names = [f"d{number}" for number in range(24)]
    on(nodes, "a", f"[os.mkdir(name) for name in {names}]")
    assert everywhere(nodes, f"[os.path.exists(name + '/n') for name in {names}]") == {str([False] * len(names))}
    replace = f"for name in {' '.join(names)}; do rmdir $name && mkdir $name; done"
    subprocess.run([*nodes.net.into("b"), "sh", "-c", f"cd {nodes.net.root} && {replace}"], check=True)
    listed = f"[os.listdir(name) for name in {names}]"
    expect(guard_of_daemons, on(nodes, "b", listed) == str([[] for _ in names]))
    if guard_of_daemons is None:
        assert on(nodes, "b", f"[os.mkdir(name + '/n') for name in {names}]") == str([None] * len(names))
        assert everywhere(nodes, listed) == {str([["n"] for _ in names])}


def test_a_directory_that_is_made_anew_after_another_nodes_removal(nodes):
    """The kernel of each node has gone by the one that was there."""
    names = [f"d{number}" for number in range(24)]
    tree = f"[(os.makedirs(name + '/in'), open(name + '/in/f', 'w').close(), open(name + '/f', 'w').close()) for name in {names}]"
    on(nodes, "a", tree)
    assert everywhere(nodes, f"[sorted(os.listdir(name)) + os.listdir(name + '/in') for name in {names}]") == {str([["f", "in", "f"]] * 24)}
    assert on(nodes, "b", f"[__import__('shutil').rmtree(name) for name in {names}]") == str([None] * 24)
    for node in NODES:
        line = f"[(os.makedirs(name, exist_ok=True), open(name + '/{node}', 'x').close()) for name in {names}]"
        assert on(nodes, node, line) == str([(None, None)] * 24)
    assert everywhere(nodes, f"[sorted(os.listdir(name)) for name in {names}]") == {str([["a", "b"]] * 24)}


def test_mirrors_that_another_node_has_made_are_removed(nodes):
    """The kernel of a, which is that of the coordinators of some, has looked for them before they were there."""
    names = [f"d{number}" for number in range(24)]

    def files(node):
        return f"[f'{{name}}/{node}{{i}}' for name in {names} for i in range(20)]"

    def mirrors(node):
        return list((nodes.net.mounts[node] / ".shunt" / "b").glob("*/d*-*"))

    on(nodes, "a", f"[os.mkdir(name) for name in {names}]")
    assert everywhere(nodes, f"[os.listdir(name) for name in {names}]") == {str([[]] * 24)}
    on(nodes, "a", f"[open(path, 'x').close() for path in {files('a')}]")
    assert [(mirror.parents[1] / "b.1" / mirror.name).exists() for mirror in mirrors("a")] == [False] * 24
    on(nodes, "b", f"[open(path, 'x').close() for path in {files('b')}]")
    assert len(mirrors("b")) == 48
    for node in NODES:
        on(nodes, node, f"[os.unlink(path) for path in {files(node)}]")
    assert on(nodes, "b", f"[os.rmdir(name) for name in {names}]") == str([None] * 24)
    assert mirrors("a") == mirrors("b") == []


def test_a_mode_that_another_node_has_set_is_that_of_mirrors(nodes):
    """The kernel of a mirror's node has the directory's attributes of before; and that of a node which looks after a mirror, since its
    own is no member any more, has the mirror's."""
    def set_to(node, mode):
        assert on(nodes, node, f"os.chmod('d', 0o{mode})") == "None"
        mirrors = list((nodes.net.mounts["a"] / ".shunt" / "b").glob("*/d-*"))
        modes = subprocess.run(["stat", "--cached=never", "--format=%a", *mirrors], capture_output=True, text=True, check=True)
        assert modes.stdout.split() == [mode] * 2

    on(nodes, "a", "os.mkdir('d')")
    assert everywhere(nodes, "os.listdir('d')") == {"[]"}
    for node in NODES:
        on(nodes, node, f"[open(f'd/{node}{{i}}', 'x').close() for i in range(20)]")
        assert on(nodes, node, "oct(os.stat('d').st_mode)") == "0o40755"
    set_to("a", "700")
    set_to("b", "755")
    nodes.at("stop", "b").check()
    set_to("a", "700")
    nodes.start("b", placement="auto")
    set_to("b", "755")
    set_to("a", "700")


def look_before_a_rename_is_told(nodes, blocked, rename, done):
    """What b finds by the old name of a directory, once a has seen the new one, and before the daemons know how the rename went."""
    done.reached()
    assert on(nodes, "a", "os.path.exists('n/in/f')") == "True"
    blocked.again()
    look = begins(nodes, "b", "os.path.exists('m/in/f')")
    conftest.wait_until(lambda: blocked.is_reached() or look.poll() is not None, "b's look")
    done.go()
    assert answered(rename) == "None"
    return answered(look)


@pytest.mark.parametrize("guard_of_daemons", [None, "fence-unknown"])
def test_a_directory_that_is_being_renamed_as_a_node_joins(nodes, blocked, tmp_path, guard_of_daemons):
    """The others are told that it is, before b is one of them. Then the kernel of b goes by the old way, which is still the right one."""
    nodes.at("stop", "b").check()
    on(nodes, "a", "[os.makedirs('m/in'), open('m/in/f', 'w').close()]")
    held, done = conftest.Meeting(tmp_path / "held"), conftest.Meeting(tmp_path / "done")
    rename = begins(nodes, "a", "os.rename('m', 'n')", held.at("rename-held"), done.at("rename-done"))
    held.reached()
    nodes.start("b", placement="auto", SHUNT_HOOKS=blocked.seen_at("request-blocked"))
    assert on(nodes, "b", "os.path.exists('m/in/f')") == "True"
    held.go()
    expect(guard_of_daemons, look_before_a_rename_is_told(nodes, blocked, rename, done) == "False")
    assert everywhere(nodes, "os.path.exists('m/in/f'), os.path.exists('n/in/f')") == {"(False, True)"}


def test_the_first_call_of_a_process_while_a_directory_is_renamed(nodes, blocked, tmp_path):
    """Until it has found the root by the way that the kernel goes, it does not know that directories are being renamed."""
    on(nodes, "a", "[os.makedirs('m/in'), open('m/in/f', 'w').close()]")
    assert everywhere(nodes, "os.path.exists('m/in/f')") == {"True"}
    done = conftest.Meeting(tmp_path / "done")
    rename = begins(nodes, "a", "os.rename('m', 'n')", done.at("rename-done"))
    assert look_before_a_rename_is_told(nodes, blocked, rename, done) == "False"
