# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nothing that a process has seen makes it answer wrongly later: not where words led, that nothing was there, where it
works, or what a descriptor was; whatever other processes, threads, tables of descriptors and mounts make of that."""

import os

import pytest

from conftest import run
from descriptor_tables import FOREIGN_NUMBERS, IN_AN_OWN_TABLE, OWN_TABLES, SEE, UNSEEN
from test_failures import IS_SUPERUSER, NOBODY, PYTHON, Session, session, started  # noqa: F401: fixtures
from test_semantics import open_area, user  # noqa: F401: fixtures

HERE = {
    "working directory": "os.chdir('other')",
    "working directory by descriptor": "os.fchdir(os.open('other', os.O_RDONLY))",
    "working directory of a child": "subprocess.run(['true'], cwd='other')",
    "nothing": "None",
}

# What becomes of ROOT/out, in which there is a file of 3 bytes; of ROOT/other's the file has 5.
CHANGES = {
    "rename": "os.rename('out', 'gone')",
    "rename above": "os.rename('a', 'c')",
    "rename over": "os.rename('other/f', 'kept'), os.rename('out', 'other'), os.mkdir('out'), os.rename('kept', 'out/f')",
    "exchange": "ctypes.CDLL(None).renameat2(-100, b'out', -100, b'other', 2)",
    "remove": "os.remove('out/f'), os.rmdir('out')",
    "remove and make": "os.remove('out/f'), os.rmdir('out'), os.mkdir('out'), fill('out/f', '1234567')",
    "remove on the way": "os.remove('other/f'), os.rmdir('other')",
    "another link": "os.symlink('other', 'new'), os.rename('new', 'link')",
    "no link": "os.remove('link')",
    "closed": "os.chmod('out', 0)",
    "closed above": "os.chmod('a', 0o600)",
    "closed by descriptor": "os.fchmod(os.open('a', os.O_RDONLY), 0)",
    "closed by a list": "os.setxattr('a', 'system.posix_acl_access', bytes.fromhex(ACL))",
}
USE = """
words = ['{}/out/f', 'out/f', '{}/link/f', '{}/other/f', '{}/a/b/out/f', '{}/other/../out/f', 'f', '../out/f']
for word in words:
    here = os.path.join(root, str(words.index(word)))
    for path, text in (('out/f', '123'), ('other/f', '12345'), ('a/b/out/f', '1')):
        fill(os.path.join(here, path), text)
    fill(root + '/spare', '1234')
    os.symlink('out', here + '/link')
    os.chdir(here + '/other' if word in words[-2:] else here)
    print(word, seen(word.format(here)))
    if word in words[-2:]:
        os.chdir(here + '/out')
        print(word, seen(word.format(here)))
        os.chdir(here)
        print(word, seen(word.format(here)))
    {change}
    print(word, {first}(word.format(here) + {more!r}))
    print(word, os.path.exists(word.format(here)), seen(word.format(here)))
    print(word, sorted(os.path.join(os.path.relpath(at, here), name) for at, _, names in os.walk(here) for name in names))
    print(word, [seen(word.format(here)) for word in words])
"""


@pytest.fixture
def twice(shunt, user, run_base, open_area):  # noqa: F811
    """Runs a script natively and under shunt, as somebody whom permissions stop: what it printed."""
    roots = [open_area / name / "above" / "root" for name in ("native", "shunt")]
    for root in roots:
        root.mkdir(parents=True)
    if user:
        run(["chown", "-R", f"{NOBODY}:{NOBODY}", open_area, run_base]).check()
    session = Session(shunt, roots[1], run_base, prefix=user)  # noqa: F811
    session.start().check()
    yield lambda script: (run([*user, PYTHON, "-c", script], cwd=roots[0]).check(),
                          session.exec(PYTHON, "-c", script, cwd=roots[1]).check())
    session.stop().check()


EVERYBODYS = {change: f"elsewhere({words!r})" for change, words in CHANGES.items()}


@pytest.mark.parametrize("first, more", [("seen", ""), ("attribute_of", ""), ("readable", ""), ("made", ".new"), ("made", ""), ("moved", ".new")])
@pytest.mark.parametrize("change", [*CHANGES.values(), *EVERYBODYS.values(), *HERE.values()],
                         ids=[*CHANGES, *(f"{change} elsewhere" for change in EVERYBODYS), *HERE])
def test_what_becomes_of_a_directory_is_seen_at_once(twice, change, first, more):
    use = USE.replace("{change}", change).replace("{first}", first).replace("{more!r}", repr(more))
    expected, got = twice(SEE + use)
    assert got == expected


# What becomes of HERE/out/f, which has been looked at.
OF_A_FILE = {
    "remove": "os.remove('out/f')",
    "rename": "os.rename('out/f', 'out/g')",
    "rename over": "os.rename('other/f', 'out/f')",
    "exchange": "ctypes.CDLL(None).renameat2(-100, b'out/f', -100, b'other/f', 2)",
    "remove and make": "os.remove('out/f'), fill('out/f', '1234567')",
    "a link there": "os.remove('out/f'), os.symlink('../other/f', 'out/f')",
    "a link over": "os.symlink('../other/f', 'new'), os.rename('new', 'out/f')",
    "a directory there": "os.remove('out/f'), os.mkdir('out/f')",
    "another attribute": "os.setxattr('out/f', 'user.text', b'new')",
    "no attribute": "os.removexattr('out/f', 'user.text')",
    "closed": "os.chmod('out/f', 0)",
    "linked": "os.link('out/f', 'out/g'), os.remove('out/f')",
}
OF_FILES = """
for turn in range(3):
    for word in ['{{}}/out/f', 'out/f', 'f']:
        here = f'{{root}}/{{turn}}{{word[0]}}'
        os.makedirs(here + '/out')
        os.chdir(here + '/out' if word == 'f' else here)
        fill(here + '/out/f', '123'), fill(here + '/other/f', '12345')
        path = word.format(here)
        print(word, seen(path), attribute_of(path))
        os.chdir(here)
        {change}
        os.chdir(here + '/out' if word == 'f' else here)
        print(word, readable(path), attribute_of(path), seen(path), seen(here + '/out/f'), seen(here + '/out/g'), sorted(os.listdir(here + '/out')))
"""


@pytest.mark.parametrize("change", [*OF_A_FILE.values(), *(f"elsewhere({words!r})" for words in OF_A_FILE.values())],
                         ids=[*OF_A_FILE, *(f"{change} elsewhere" for change in OF_A_FILE)])
def test_what_becomes_of_a_file_that_was_looked_at_is_seen_at_once(twice, change):
    expected, got = twice(SEE + OF_FILES.format(change=change))
    assert got == expected


def test_nothing_is_made_where_a_directory_was_before_the_kernel_was_asked(twice):
    """The words are guessed to lead there, and the library does not see what becomes of them."""
    expected, got = twice(SEE + """
libc = ctypes.CDLL("libc.so.6")
for i in range(20):
    fill('out/f', '123')
    seen(root + '/out/f'), seen('out/f')
    libc.rename(b'out', b'gone%d' % i)
    fill(root + '/spare', '12'), fill(root + '/more', '123')
    print(made(root + '/out/new'), made('out/new'), moved(root + '/out/more'), moved('out/more'))
    fill('out/f', '12')
    seen(root + '/out/f'), seen('out/f')
    libc.rename(b'out', b'left%d' % i), os.mkdir('out')
    print(made(root + '/out/new'), made('out/newer'), moved(root + '/out/more'))
    os.remove('out/more')
    print(sorted(os.listdir('out')), os.listdir(f'left{i}'))
    os.remove('out/new'), os.remove('out/newer'), os.rmdir('out')
""")
    assert got == expected


def test_what_follows_files_that_were_made_from_memory(twice):
    """Calls that hold a name, too, with the same memory for their question and its answer."""
    expected, got = twice(SEE + """
for i in range(100):
    fill(f'out/{i}', ''), os.rename(f'out/{i}', f'out/new{i}')
    os.mkdir('sub'), os.rmdir('sub'), os.rename(f'out/new{i}', f'{i}'), os.mkdir('out/sub')
    fill(f'out/{i}', ''), os.rmdir('out/sub'), os.link(f'out/{i}', f'out/link{i}'), os.symlink('.', f'out/to{i}')
    fill(f'out/again{i}', ''), os.unlink(f'out/{i}'), os.chmod(f'out/link{i}', 0o700)
print(sorted(os.listdir('out')), sorted(os.listdir()))
""")
    assert got == expected


def test_what_becomes_of_a_directory_above_the_root_is_seen(twice):
    expected, got = twice(SEE + """
fill('out/f', '123')
above, path = os.path.dirname(root), root + '/out/f'
os.chdir('/')
for change, back in ((f"os.rename({above!r}, {above + '.moved'!r})", f"os.rename({above + '.moved'!r}, {above!r})"),
                     (f"os.chmod({above!r}, 0)", f"os.chmod({above!r}, 0o755)")):
    for does in (exec, elsewhere):
        print(seen(path))
        does(change)
        print(attribute_of(path), os.path.exists(path), os.access(path, os.R_OK))
        does(back)
        print(seen(path), attribute_of(path))
""")
    assert got == expected


@pytest.mark.skipif(not IS_SUPERUSER, reason="only root can become somebody else, and be root again")
def test_who_becomes_somebody_else_is_stopped_by_other_directories(shunt, run_base, open_area):  # noqa: F811
    session = Session(shunt, open_area, run_base)  # noqa: F811
    session.start().check()
    assert session.exec(PYTHON, "-c", SEE + f"""
fill('a/out/f', '123')
os.chmod('a', 0o700)
print(seen(root + '/a/out/f'))
for _ in range(3):
    os.seteuid({NOBODY})
    print(os.path.exists(root + '/a/out/f'))
    os.seteuid(0)
    print(seen(root + '/a/out/f'))
""", cwd=open_area).check() == "3\n" + "False\n3\n" * 3
    session.stop().check()


@pytest.mark.skipif(not IS_SUPERUSER, reason="only root can go behind a chroot")
def test_who_goes_behind_a_chroot_is_not_led_out_of_it(started, area):  # noqa: F811
    (area / "jail").mkdir()
    assert started.exec(PYTHON, "-c", SEE + f"""
fill('out/f', '123')
print(seen(root + '/out/f'))
os.chroot('{area}/jail')
print(attribute_of(root + '/out/f'), os.path.exists(root + '/out/f'))
""", cwd=started.root).check() == "3\nNo such file or directory False\n"


LATER = {
    "a link on the way": "os.symlink(root + '/out', beside)",
    "a link to a link": "os.symlink(root + '/out', beside + '.to'), os.symlink(beside + '.to', beside)",
    "a link at the end": "os.mkdir(beside), os.symlink(root + '/out/f', beside + '/f')",
    "a directory with a link": "os.mkdir(beside + '.new'), os.symlink(root + '/out/f', beside + '.new/f'), os.rename(beside + '.new', beside)",
    "nothing at first": "None",
}


@pytest.mark.parametrize("how", ["elsewhere(f'root, beside = {{root!r}}, {{beside!r}}; ' + {!r})", "unseen_by({!r})"], ids=["another process", "unseen"])
@pytest.mark.parametrize("change", LATER.values(), ids=LATER)
def test_what_leads_into_the_root_later_is_seen_at_once(twice, change, how):
    unseen_by = """
def unseen_by(line):
    calls = {"symlink": unseen.symlink, "rename": unseen.rename, "mkdir": lambda at: unseen.mkdir(at, 0o777)}
    eval(line, {"os": type("os", (), {name: staticmethod(lambda *at, call=call: call(*map(os.fsencode, at)))
                                      for name, call in calls.items()}), "root": root, "beside": beside})
"""
    expected, got = twice(UNSEEN + unseen_by + f"""
fill('out/f', '123')
for turn in range(5):
    for word in (0, 1):
        beside = f"{{above}}/beside{{turn}}{{word}}"
        path = by_words(beside + '/f')[word]
        print(os.path.exists(path), seen(path), attribute_of(path), readable(path))
        {how.format(change)}
        print(os.path.exists(path), attribute_of(path), readable(path), seen(path))
""")
    assert got == expected


def test_a_directory_that_is_moved_over_the_edge_of_the_root_is_seen_at_once(twice):
    """From beside it and back, by somebody whom the library does not see, also by descriptors of it."""
    expected, got = twice(UNSEEN + """
for turn in range(10):
    outside, inside = f"{above}/d{turn}", f"{root}/d{turn}"
    os.mkdir(outside)
    fd = os.open(outside, os.O_RDONLY)
    print(made(outside + '/before'), os.path.exists(f'/proc/self/fd/{fd}/g'), os.access('g', os.R_OK, dir_fd=fd))
    unseen.rename(os.fsencode(outside), os.fsencode(inside))
    elsewhere(f"fill({inside + '/g'!r}, '12345')")
    print(os.stat('g', dir_fd=fd).st_size, seen(inside + '/g'), made(inside + '/h'))
    os.chdir(fd)
    print(seen('g'), made('i'), sorted(os.listdir('.')), sorted(os.listdir(inside)))
    os.chdir(root)
    os.close(fd)
""")
    assert got == expected


def test_a_working_directory_that_changes_unseen(twice):
    """By a system call that is no call of libc's, and by threads, one of which has a working directory of its own."""
    expected, got = twice(UNSEEN + """
import threading
CLONE_FS = 0x200
for place, text in (('out', '123'), ('other', '12345')):
    fill(f'{root}/{place}/f', text)
os.mkdir(above + '/plain')
fill(above + '/plain/f', '1234567')
places = [root + '/out', above + '/plain', root + '/other', '/']
for turn in range(20):
    for place in places:
        unseen.chdir(os.fsencode(place))
        print(seen('f'), os.path.exists('f'), os.path.exists('../out/f'), made('new'), os.access('new', os.R_OK))
        unseen.unlink(b'new')
steps = [threading.Barrier(2) for _ in range(4)]
def with_its_own():
    assert unseen.unshare(CLONE_FS) == 0
    os.chdir(root + '/out')
    said.append(seen('f'))
    for step in steps:
        step.wait()
        said.append(seen('f'))
        step.wait()
said = []
os.chdir(above + '/plain')
thread = threading.Thread(target=with_its_own)
thread.start()
for step, place in zip(steps, places):
    step.wait()
    os.chdir(place)
    said.append(seen('f'))
    step.wait()
thread.join()
print(sorted(map(str, said)))
""")
    assert got == expected


@pytest.mark.parametrize("own", OWN_TABLES.values(), ids=OWN_TABLES)
def test_a_number_that_is_another_directory_in_a_threads_own_table(twice, own):
    """Every one that the library might keep is a directory with a file of that name there."""
    expected, got = twice(IN_AN_OWN_TABLE.format(own=own))
    assert got == expected


@pytest.mark.skipif(not IS_SUPERUSER, reason="only root can mount")
def test_what_another_process_mounts_over_a_directory_is_seen_at_once(started, area):  # noqa: F811
    (area / "plain").mkdir()
    (area / "plain/f").write_text("1234567")
    assert started.exec(PYTHON, "-c", f"""
import ctypes
unseen = ctypes.CDLL('libc.so.6')
assert unseen.unshare(0x20000) == 0 and unseen.mount(None, b'/', None, 0x44000, None) == 0
""" + SEE + f"""
fill('out/f', '123')
for turn in range(5):
    print(seen(root + '/out/f'), seen('out/f'))
    elsewhere("ctypes.CDLL('libc.so.6').mount(b'{area}/plain', b'{started.root}/out', None, 4096, None)")
    print(os.stat(root + '/out/f').st_size, os.stat('out/f').st_size, made(root + '/out/new'), made('out/newer'))
    print(sorted(os.listdir('{area}/plain')))
    elsewhere("ctypes.CDLL('libc.so.6').umount(b'{started.root}/out')")
    print(os.stat(root + '/out/f').st_size, os.listdir('out'))
    os.unlink('{area}/plain/new'), os.unlink('{area}/plain/newer')
""", cwd=started.root).check() == "3 3\n7 7 None None\n['f', 'new', 'newer']\n3 ['f']\n" * 5


def test_a_number_that_is_another_directory_in_the_table_of_all_other_threads(twice):
    expected, got = twice(FOREIGN_NUMBERS)
    assert got == expected


# How many system calls one call is, natively and under shunt.
COUNTED = {
    "stat of a file in a branch": ("os.stat(root + '/out/file')", 1, 3),
    "open of a file in a branch": ("os.close(os.open(root + '/out/file', 0))", 2, 4),
    "stat beside the root": ("os.stat(beside + '/file')", 1, 1),
    "relative stat beside the root": ("os.stat('file')", 1, 3),
    "nothing on another file system": ("os.path.exists(f'/sys/none{i}')", 1, 3),
    "nothing in what is not there either, on another file system": ("os.path.exists(f'/sys/none/none{i}')", 1, 4),
    "nothing beside the root": ("os.path.exists(f'{beside}/none{i}')", 1, 4),
    "nothing beside the root by a relative path": ("os.path.exists(f'none{i}')", 1, 7),
    "nothing behind a link beside the root": ("os.path.exists(f'{beside}/link/none{i}')", 1, 8),
    "create beside the root": ("os.close(os.open(f'{beside}/new{i}', os.O_CREAT | os.O_WRONLY))", 2, 6),
    "unlink beside the root": ("os.unlink(f'{beside}/new{i}')", 1, 5),
    "mkdir beside the root": ("os.mkdir(f'{beside}/dir{i}')", 1, 5),
    "rename beside the root": ("os.rename(f'{beside}/dir{i}', f'{beside}/moved{i}')", 1, 6),
}
ROUNDS = 20
COUNTS = """
import os, sys
root, beside = sys.argv[1:]
os.chdir(beside)
code = [compile(line, 'line', 'exec') for line in {lines!r}]
for line in code:
    for i in range({rounds}):
        if i == {rounds} // 2:
            os.getppid()
        exec(line)
    os.getppid()
"""


def counts_in(log):
    """Of each call that was traced between two of getppid, the first of which comes in the middle of its rounds."""
    parts = log.read_text().split("getppid(")[1:]
    return [round((part.count("\n") - 1) / (ROUNDS // 2)) for part in parts[::2]]


@pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced
def test_how_many_system_calls_one_is(started, area):  # noqa: F811
    """Of those that are made a second time; what Python asks of memory now and then is rounded away."""
    log, plain = area / "trace", area / "plain"

    def counted(root, beside, runs):
        beside.mkdir()
        (beside / "file").touch()
        (beside / "link").symlink_to(".")
        runs(PYTHON, "-c", "import os; os.makedirs('out', exist_ok=True), open('out/file', 'x').close()", cwd=root).check()
        lines = [line for line, _, _ in COUNTED.values()]
        runs("strace", "-o", log, PYTHON, "-c", COUNTS.format(lines=lines, rounds=ROUNDS), root, beside).check()
        return dict(zip(COUNTED, counts_in(log)))

    plain.mkdir()
    got = counted(plain, area / "native", lambda *words, **options: run([*words], **options))
    assert got == {what: natively for what, (_, natively, _) in COUNTED.items()}
    got = counted(started.root, area / "counted", started.exec)
    assert got == {what: under_shunt for what, (_, _, under_shunt) in COUNTED.items()}


# The same of a compiled program, whose paths are in memory that lasts as long as it does, without the waking of daemons; and where
# a signal could do harm while a name is claimed, natively and under shunt.
COMPILED = {"create": (2, 4, 6), "stat": (1, 2, 2), "rename": (1, 2, 4), "unlink": (1, 2, 4)}
NATIVE, UNHARMED, HELD = ([counts[i] for counts in COMPILED.values()] * 2 for i in range(3))


@pytest.fixture
def compiled(build, area):  # noqa: F811
    """compiled(runs, root, *words, before=...): how many system calls each call of the program is, whose paths are on its stack and then
    on its heap."""
    def counted(runs, root, *words, before=("setsid", "-w")):
        (root / "made").mkdir()
        runs(*before, "strace", "-e", "trace=!futex", "-o", area / "trace", build / "tests/node/processes/rough_counted", *words, cwd=root).check()
        return counts_in(area / "trace")
    return counted


@pytest.mark.unsanitized
@pytest.mark.parametrize("is_absolute", [True, False])
def test_how_many_system_calls_one_of_a_compiled_program_is(started, area, compiled, is_absolute):  # noqa: F811
    """A relative path is not more in a root."""
    (area / "plain").mkdir()
    native, root = area / "plain", started.root
    assert compiled(lambda *words, **options: run([*words], **options), native, native / "made" if is_absolute else "made") == NATIVE
    assert compiled(started.exec, root, root / "made" if is_absolute else "made") == UNHARMED


HANDLERS = ["sigaction", "__sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigset", "its number",
            "a thread", "another libc"]
HARMLESS = ["a fault", "none"]  # which are not held back, or not set


@pytest.mark.unsanitized
@pytest.mark.parametrize("way", HANDLERS + HARMLESS)
def test_signals_are_held_back_from_a_program_that_handles_some(started, compiled, way):  # noqa: F811
    assert compiled(started.exec, started.root, "made", way) == (HELD if way in HANDLERS else UNHARMED)


@pytest.mark.unsanitized
def test_signals_are_held_back_from_a_program_with_a_terminal(started, compiled):  # noqa: F811
    """From which it could be stopped with a name that others wait for."""
    in_terminal = ("setsid", "-w", PYTHON, "-c", "import os, pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)")
    assert compiled(started.exec, started.root, "made", before=in_terminal) == HELD
