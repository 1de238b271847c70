# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory is renamed, on disk, and no daemon has heard of it: what they know of the places of all below it is out of date.
Calls on other nodes reach it by its new name and have the kernel's results."""

import os
import signal

import conftest
import pytest
from test_interleavings import NODES, expect, guarded

# A call, in a directory of its own with a redirected file `f` and a file `t` in the trunk, and its result.
CALLS = [("os.stat('{}/f').st_size", "4"), ("read('{}/f')", "text"), ("os.unlink('{}/f')", "None"), ("os.unlink('{}/t')", "None"),
         ("os.stat('{}/t').st_size", "0"), ("make('{}/f')", "EEXIST"), ("make('{}/new')", "None"), ("os.mkdir('{}/new')", "None"),
         ("os.path.exists('{}/new')", "False"), ("os.unlink('{}/new')", "ENOENT"), ("os.rename('{}/f', '{}/new')", "None"),
         ("os.rename('{}/f', '{}/t')", "None"), ("os.link('{}/f', '{}/new')", "None"), ("sorted(os.listdir('{}'))", "['f', 't']"),
         ("os.rmdir('{}')", "ENOTEMPTY"), ("os.chmod('{}/f', 0o600)", "None"), ("os.chmod('{}', 0o700)", "None"),
         ("os.utime('{}/f', (1, 1))", "None"), ("os.rename('{}', 'e/elsewhere')", "None"),
         ("(os.unlink('{}/f'), os.unlink('{}/t'), os.rmdir('{}'))[2]", "None"), ("(os.mkdir('{}/d'), make('{}/d/f'))[1]", "None")]
TREE = "sorted((d, sorted(f)) for d, _, f in os.walk('e'))"


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("again", [False, True])
def test_calls_below_a_directory_that_is_being_renamed(stage, node, again):
    """`again`: at the old place there are other directories by then."""
    stage.begin()
    numbers = range(len(CALLS))
    stage.does("a", f"[(os.makedirs(f'd/x{{i}}'), make(f'd/x{{i}}/f', 'text')) for i in {numbers}]")
    for number in numbers:
        (stage.out / "d" / f"x{number}" / "t").touch()
    stage.does("a", f"[os.listdir(f'd/x{{i}}') for i in {numbers}]")
    renamed = stage.meeting()
    mover = stage.call("a", "os.rename('d', 'e')", renamed.at("rename-done"))
    renamed.reached()
    for number in numbers if again else []:
        (stage.out / "d" / f"x{number}").mkdir(parents=True)
    lines = [line.replace("{}", f"e/x{number}") for number, (line, _) in enumerate(CALLS)]
    results = stage.does(node, f"[result(line) for line in {lines!r}]")
    assert results == str([result for _, result in CALLS])
    renamed.go()
    assert mover.answer() == "None"
    assert stage.does("a", TREE) == stage.does("b", TREE) == stage.does("c", TREE)


@guarded("times-dropped")
def test_the_times_of_one_below_are_written_where_it_is_by_then(stage, guard):
    """Its daemon has looked for it at its old place when they were due."""
    misplaced, changed = stage.meeting(), stage.area / "changed"
    stage.begin(guard, hooks=[misplaced.seen_at("times-misplaced")])
    stage.does("a", "os.makedirs('d/x')")
    first = "make('d/x/first'), time.sleep(0.05), make('d/x/second')"  # not in the tick in which its marker was made
    last = "os.open('f', os.O_CREAT | os.O_WRONLY, dir_fd=fd)"
    maker = stage.call("c", f"(fd := os.open('d/x', os.O_RDONLY), {first}, until('{changed}'), {last})[4]")
    conftest.wait_until(lambda: (stage.area / "changed.asked").exists(), "the directory to be in use")
    conftest.wait_until(stage.session.trunk_has_its_times("out/d/x"), "the trunk to be given its times")
    renamed = stage.meeting()
    mover = stage.call("a", "os.rename('d', 'e')", renamed.at("rename-done"))
    renamed.reached()
    before = (stage.out / "e" / "x").stat().st_mtime_ns
    changed.touch()
    assert maker.answer() == "None"
    misplaced.reached()
    renamed.go()
    assert mover.answer() == "None"
    stage.session.stop(*NODES)
    expect(guard, (stage.out / "e" / "x").stat().st_mtime_ns > before)


USE = """
def use(at):
    fd = os.open(at, os.O_RDONLY)
    os.fsync(fd), make(f"{at}/{os.getpid()}"), os.fsync(fd), os.fchmod(fd, 0o755), os.chmod(at, 0o700), os.utime(at)
"""


@pytest.mark.parametrize("first", NODES)
def test_calls_in_one_whose_two_places_do_not_fit_in_one_message(stage, build, first):
    """The daemon of the node that renames it knows where it is now, and no other does. That one is its coordinator."""
    above = "/".join(["d" * 200] * 10)
    before, at = (f"{above}/{name * 150}" for name in ("1", "2"))
    stage.begin()
    stage.does("a", f"os.makedirs('{before}')")
    coordinator, = stage.homes_of(build, "", of=stage.out / before)
    for node in NODES:
        stage.does(node, f"os.listdir('{before}')")
    assert stage.does(coordinator, f"os.rename('{before}', '{at}')") == "None"
    for node in [first, *NODES]:
        line = f"exec({USE!r}, globals()) or use('{at}')"
        assert stage.does(node, line) == "None", node
    assert [len(stage.does(node, f"os.listdir('{at}')").split()) for node in NODES] == [4, 4, 4]


def another_in_its_place(stage, what="directory"):
    """A program without the library has renamed `d` to `e`, and put something else in its place."""
    stage.begin()
    stage.does("a", "(os.mkdir('d'), make('d/f'))[1]")
    for name in "tu":
        (stage.out / "d" / name).touch()
    for node in [*NODES, *NODES]:
        stage.does(node, "os.listdir('d')")
    (stage.out / "d").rename(stage.out / "e")
    {"directory": (stage.out / "d").mkdir, "file": (stage.out / "d").touch, "link": lambda: (stage.out / "d").symlink_to("e"),
     "nothing": lambda: None}[what]()


@pytest.mark.parametrize("line, names", [("os.mkdir('e/t')", "ftu"), ("open('e/t', 'w').close()", "ftu"),
                                         ("os.link('e/f', 'e/t')", "ftu"), ("os.unlink('e/t')", "fu"), ("os.listdir('e/t')", "fu")])
def test_a_file_at_the_old_place_is_not_taken_for_that_of_its_name(stage, line, names):
    """Which another program has removed."""
    another_in_its_place(stage)
    (stage.out / "d" / "t").write_text("other")
    (stage.out / "e" / "t").unlink()
    assert stage.does("a", line) == ("None" if "t" in names else "ENOENT")
    for node in NODES:
        assert stage.does(node, "''.join(sorted(os.listdir('e')))") == names


@pytest.mark.parametrize("what", ["directory", "nothing"])
def test_what_replaces_a_file_there_is_found(stage, what):
    """A directory, into which a program goes then; and a file where there is a directory of that name at the old place."""
    another_in_its_place(stage, what)
    (stage.out / "e" / "g").touch()
    if what == "directory":
        (stage.out / "d" / "g").mkdir()
    (stage.out / "e" / "u").unlink()
    (stage.out / "e" / "u").mkdir()
    (stage.out / "e" / "u" / "inside").touch()
    expected = [("e", ["u"], ["f", "g", "t"]), ("e/u", [], ["inside"])]
    for node in NODES:
        assert stage.does(node, "[(d, sorted(n), sorted(f)) for d, n, f in os.walk('e')]") == str(expected), node


@pytest.mark.parametrize("what", ["directory", "file", "link", "nothing"])
def test_the_mirrors_of_one_follow_it(stage, what):
    another_in_its_place(stage, what)
    for node in NODES:
        assert stage.does(node, f"exec({USE!r}, globals()) or use('e')") == "None", node
    mirrors = [mirror for mirror in stage.session.root.glob(".shunt/b/*/*") if mirror.name.startswith("e-") or mirror.name.startswith("d-")]
    assert len(mirrors) == 3 and {mirror.stat().st_mode & 0o777 for mirror in mirrors} == {0o700}


LATE = [("os.close(os.open('f', os.O_RDONLY, dir_fd=fd))", "None"), ("os.mkdir('q', dir_fd=fd)", "None"), ("os.fsync(fd)", "None"),
        ("os.listdir(fd)", "['f']"), ("os.unlink('f', dir_fd=fd)", "None"), ("(os.fchdir(fd), os.listdir('.'))[1]", "['f']")]


@pytest.mark.parametrize("how", ["by this session", "natively", "and another one is there"])
@pytest.mark.parametrize("line, result", LATE)
def test_one_that_is_renamed_while_it_is_loaded(stage, how, line, result):
    """Its coordinator has not looked yet."""
    (stage.out / "d" / "x").mkdir(parents=True)
    (stage.out / "d" / "x" / "f").touch()
    begun = stage.meeting()
    stage.begin(hooks=[begun.seen_before_at("load-begun")])
    for node in NODES:
        stage.does(node, "os.listdir('d')")
    call = stage.call("b", f"(fd := os.open('d/x', os.O_RDONLY), until('{stage.area}/go'), {line})[2]")
    conftest.wait_until(lambda: (stage.area / "go.asked").exists(), "a descriptor")
    begun.again()
    (stage.area / "go").touch()
    begun.reached()
    if how == "by this session":
        assert stage.does("a", "os.rename('d', 'e')") == "None"
    else:
        (stage.out / "d").rename(stage.out / "e")
    if how == "and another one is there":
        (stage.out / "d" / "x").mkdir(parents=True)
    begun.go()
    assert call.answer() == result


def test_the_times_of_one_that_is_renamed_while_it_is_listed(stage):
    """Its homes do not hear of its old place after they have heard of the new one."""
    listed = stage.meeting()
    stage.begin(hooks=[listed.seen_before_at("load-listed")])
    for node in NODES:
        stage.does(node, "os.listdir('.')")
    stage.does("a", "(os.makedirs('d/x'), make('d/x/f'), time.sleep(0.05), make('d/x/g'))[1]")
    uses = f"until('{stage.area}/use'), os.stat('f', dir_fd=fd), until('{stage.area}/remove'), os.unlink('f', dir_fd=fd)"
    call = stage.call("b", f"(fd := os.open('d/x', os.O_RDONLY), {uses})[4]")
    conftest.wait_until(lambda: (stage.area / "use.asked").exists(), "a descriptor")
    conftest.wait_until(stage.session.trunk_has_its_times("out/d/x"), "the trunk to be given its times")
    listed.again()
    (stage.area / "use").touch()
    listed.reached()
    assert stage.does("c", "os.rename('d', 'e')") == "None"
    listed.go()
    conftest.wait_until(lambda: (stage.area / "remove.asked").exists(), "a look")
    before = (stage.out / "e" / "x").stat().st_mtime_ns
    (stage.area / "remove").touch()
    assert call.answer() == "None"
    conftest.wait_until(lambda: (stage.out / "e" / "x").stat().st_mtime_ns > before, "its times")


@pytest.mark.parametrize("line, hook, names", [("os.mkdir('e/v')", "make-made", "ftuv"), ("os.symlink('nowhere', 'e/v')", "make-made", "ftuv"),
                                               ("os.rename('e/t', 'e/v')", "rename-done", "fuv")])
def test_what_one_that_is_killed_has_made_there_is_known(stage, line, hook, names):
    another_in_its_place(stage, "nothing")
    made = stage.meeting()
    call = stage.call("b", line, made.at(hook))
    made.reached()
    call.process.kill()
    call.process.wait()
    assert stage.does("c", "make('e/v')") == "EEXIST"
    assert stage.does("a", "''.join(sorted(os.listdir('e')))") == names


FD_CALLS = [("sorted(os.listdir(fd))", "['f', 't']"), ("os.stat('f', dir_fd=fd).st_size", "4"), ("os.stat('new', dir_fd=fd)", "ENOENT"),
            ("os.open('f', os.O_WRONLY, dir_fd=fd) > 0", "True"), ("os.open('new', os.O_CREAT | os.O_EXCL, dir_fd=fd) > 0", "True"),
            ("os.open('f', os.O_CREAT | os.O_EXCL, dir_fd=fd)", "EEXIST"), ("os.unlink('f', dir_fd=fd)", "None"),
            ("os.mkdir('new', dir_fd=fd)", "None"), ("os.rename('f', 'new', src_dir_fd=fd, dst_dir_fd=fd)", "None"),
            ("os.link('f', 'new', src_dir_fd=fd, dst_dir_fd=fd)", "None"), ("os.fchmod(fd, 0o700)", "None"), ("os.fsync(fd)", "None")]


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("line, result", FD_CALLS)
def test_one_that_is_elsewhere_for_a_moment_as_it_is_loaded(stage, line, result, another):
    """Its coordinator has looked for it while it was at another place, and it is back when that is told. `another`: there was one
    in its place."""
    opens, opened = stage.meeting(), stage.meeting()
    here, elsewhere, other = (stage.out / name for name in ("d", "e", "o"))
    stage.begin()
    assert stage.does("a", "(os.mkdir('d'), make('d/f', 'text'))[1]") == "None"
    (here / "t").touch()
    other.mkdir()
    stage.session.stop(*NODES)
    stage.begin(hooks=[opens.seen_before_at("load-begun"), opened.seen_at("load-opened")])
    call = stage.call("b", f"(fd := os.open('d', os.O_RDONLY), until({str(stage.area / 'go')!r}), {line})[2]")
    conftest.wait_until((stage.area / "go.asked").exists, "the directory to be open")
    opens.again()
    (stage.area / "go").touch()
    opens.reached()
    opened.again()
    here.rename(elsewhere)
    if another:
        other.rename(here)
    os.killpg(call.process.pid, signal.SIGSTOP)
    opens.go()
    opened.reached()
    for node in NODES:
        stage.session.status("--node", node)  # the answer is there
    if another:
        here.rename(other)
    elsewhere.rename(here)
    os.killpg(call.process.pid, signal.SIGCONT)
    assert call.answer() == result


REMOVED = [("os.listdir('d')", "[]"), ("os.listdir(fd)", "[]"), ("(os.fchdir(fd), os.listdir('.'))[1]", "[]"),
           ("call('scandir', b'd', ctypes.byref(ctypes.c_void_p()), None, None) in (0, 2)", "True or ENOENT"),
           ("call('getdents64', fd, bytes(99), 99)", "ENOENT"), ("os.stat('f', dir_fd=fd)", "ENOENT"), ("os.mkdir('f', dir_fd=fd)", "ENOENT"),
           ("os.open('f', os.O_CREAT, dir_fd=fd)", "ENOENT"), ("os.fchmod(fd, 0o700)", "None"), ("os.fsync(fd)", "None")]


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("line, result", REMOVED)
def test_one_that_is_removed_while_it_is_loaded(stage, line, result, another):
    """Its coordinator has not looked yet. `another`: there is one in its place when it does."""
    (stage.out / "d").mkdir()
    begun = stage.meeting()
    stage.begin(hooks=[begun.seen_before_at("load-begun")])
    opens = "load_libc(), fd := os.open('d', os.O_RDONLY)"
    call = stage.call("b", f"({opens}, until({str(stage.area / 'go')!r}), {line})[3]")
    conftest.wait_until((stage.area / "go.asked").exists, "a descriptor")
    begun.again()
    (stage.area / "go").touch()
    begun.reached()
    (stage.out / "d").rmdir()
    if another:
        (stage.out / "d").mkdir()
    begun.go()
    assert call.answer() in result.split(" or ")


GONE = [("os.open('f', os.O_CREAT, dir_fd=fd)", "ENOENT"), ("os.open('f', os.O_CREAT | os.O_EXCL, dir_fd=fd)", "ENOENT"),
        ("(os.fchdir(fd), os.open('f', os.O_CREAT))", "ENOENT"), ("os.mknod('f', dir_fd=fd)", "ENOENT"), ("os.mkdir('f', dir_fd=fd)", "ENOENT"),
        ("os.rename('t', 'f', dst_dir_fd=fd)", "ENOENT"), ("os.link('t', 'f', dst_dir_fd=fd)", "ENOENT"), ("os.listdir(fd)", "[]"),
        ("os.fsync(fd)", "None")]


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("line, result", GONE)
def test_one_that_was_removed_by_another_program(stage, line, result, another):
    """No daemon has heard of it. `another`: there is one in its place."""
    stage.begin()
    stage.does("a", "(os.mkdir('d'), make('t'))")
    for node in "ab":
        stage.does(node, "os.listdir('d')")
    call = stage.call("b", f"(fd := os.open('d', os.O_RDONLY), until({str(stage.area / 'go')!r}), {line})[2]")
    conftest.wait_until((stage.area / "go.asked").exists, "a descriptor")
    (stage.out / "d").rmdir()
    if another:
        (stage.out / "d").mkdir()
    (stage.area / "go").touch()
    assert call.answer() == result
