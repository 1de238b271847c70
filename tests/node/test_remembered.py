# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Which directory words lead to is remembered for a moment, and so is the file that was looked at last: nobody can tell,
whatever becomes of them."""

import os

import pytest

from conftest import run
from test_failures import IS_SUPERUSER, NOBODY, PYTHON, Session, session, started  # noqa: F401: fixtures
from test_semantics import open_area, user  # noqa: F401: fixtures

# `seen` uses words so often that where they lead is remembered, and says what is there.
SEE = """
import ctypes, os, subprocess
def seen(path):
    for _ in range(40):
        try:
            result = os.stat(path).st_size
            attribute_of(path), readable(path)
        except OSError as error:
            result = error.strerror
    return result
def attribute_of(path):
    try:
        return os.getxattr(path, 'user.text')
    except OSError as error:
        return error.strerror
def readable(path):
    return os.access(path, os.R_OK)
def made(path):
    try:
        return os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        return error.strerror
def moved(path):
    try:
        return os.rename(root + '/spare', path)
    except OSError as error:
        return error.strerror
def fill(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.setxattr(path, 'user.text', text.encode())
ACL = "02000000 01000600ffffffff 04000500ffffffff 20000500ffffffff"  # rw-r-xr-x
# Another process, which does what it is told as quickly as this one.
told, tell = os.pipe()
hear, said = os.pipe()
if os.fork() == 0:
    os.close(tell)
    while line := os.read(told, 1000).decode():
        here, line = line.split("\\n")
        os.chdir(here)
        exec(line)
        os.write(said, b"done")
    os._exit(0)
os.close(told), os.close(said)
def elsewhere(line):
    os.write(tell, f"{os.getcwd()}\\n{line}".encode())
    os.read(hear, 4)
root = os.getcwd()
"""

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
    """What the library does not see, a tick of the clock later would be too late for a file."""
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


@pytest.mark.unsanitized  # LeakSanitizer cannot work in a process that is traced
@pytest.mark.parametrize("words", ["{}/out/f", "f"])
def test_the_kernel_is_asked_once_in_a_while(started, area, words):  # noqa: F811
    """Only the calls that are counted stop for the tracer: the others are as quick as ever."""
    started.exec("sh", "-c", "mkdir out; echo >out/f", cwd=started.root).check()
    log = area / "trace"
    started.exec("strace", "--seccomp-bpf", "-f", "-e", "trace=statx", "-o", log, PYTHON, "-c",
                 f"import os\nfor _ in range(20000): os.stat('{words.format(started.root)}')",
                 cwd=started.root / "out").check()
    assert log.read_text().count("statx(") < 10000
