# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Two nodes and one namespace: what one does, the other sees when the call has returned."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from daemons import stand_still


BOTH_WAYS = pytest.mark.parametrize("one, other", [("a", "b"), ("b", "a")])


@BOTH_WAYS
def test_a_file_is_there_for_the_other(pair, one, other):
    pair.sh(one, "echo hello >out/file")
    assert pair.branch_of("out/file") == one
    assert pair.sh(other, "cat out/file; stat -c %s out/file; ls out") == "hello\n6\nfile\n"


@BOTH_WAYS
def test_a_file_is_gone_for_the_other(pair, one, other):
    pair.sh(one, "echo hello >out/file")
    pair.sh(other, "rm out/file")
    pair.sh(one, "cat out/file", status=1)
    assert pair.names(one, "out") == []


@BOTH_WAYS
def test_who_writes_to_the_others_file_writes_where_it_is(pair, one, other):
    pair.sh(one, "echo one >out/file")
    pair.sh(other, "echo two >>out/file; truncate -s 6 out/file; chmod 600 out/file")
    assert pair.sh(one, "cat out/file; stat -c %a out/file") == "one\ntw600\n"
    assert pair.branch_of("out/file") == one


@BOTH_WAYS
def test_a_rename_is_seen(pair, one, other):
    pair.sh(one, "echo hello >out/file")
    pair.sh(other, "mv out/file out/moved")
    assert pair.sh(one, "cat out/moved; ls out") == "hello\nmoved\n"
    pair.sh(one, "echo new >out/file; mv out/file out/moved")
    assert pair.sh(other, "cat out/moved; ls out") == "new\nmoved\n"
    assert len(list(pair.root.glob(".shunt/b/*/*/*/*"))) == 1, "one place"


@pytest.fixture
def small(session):
    """A root that is a file system of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=200", "none", session.root], check=True)
    yield session
    for path in session.root.glob("fill-*"):
        path.unlink()
    session.tool("stop", "--all", "--root", session.root)
    subprocess.run(["umount", "-l", session.root], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="to mount takes the superuser")
@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("fill", ["dd if=/dev/zero of=fill-1 bs=4k", "seq -f fill-%g 300 | xargs touch"], ids=["room", "inodes"])
@pytest.mark.parametrize("nodes, fabric", [("a", "none"), ("a", "tcp"), ("ab", "tcp")])
def test_a_session_ends_on_a_full_file_system(small, fill, nodes, fabric):
    """Each daemon leaves by epochs of its own, and the last one writes the end."""
    small.settings["SHUNT_FABRIC"] = fabric
    small.start(*nodes)
    assert small.homes() == list(nodes)
    for node in nodes:
        small.sh(node, f"mkdir -p out; echo {node} >out/{node}")
    subprocess.run(["sh", "-c", fill], cwd=small.root, stderr=subprocess.DEVNULL, check=False)
    small.tool("stop", "--all", "--root", small.root).check()
    assert small.members() == []
    for path in small.root.glob("fill-*"):
        path.unlink()
    small.tool("export", small.root).check()
    assert sorted(path.read_text() for path in (small.root / "out").iterdir()) == [f"{node}\n" for node in nodes]


# For each line renames a directory, or says where the file is that it has open.
MOVES = """
import os, sys
for line in sys.stdin:
    os.rename(*line.split())
    print("done", flush=True)
"""
HAS_IT_OPEN = """
import os, sys
file = open("out/first/file")
for line in sys.stdin:
    print(os.path.relpath(os.readlink(f"/proc/self/fd/{file.fileno()}")), flush=True)
"""


@BOTH_WAYS
@pytest.mark.parametrize("which", ["itself", "one above it"])
def test_a_directory_is_where_the_other_has_moved_it(pair, one, other, which):
    """To a process that has a file open there, which is in a branch."""
    def lines(node, program):
        return pair.begin("exec", node, "--", sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)

    def answer(process, line):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    pair.sh(one, "mkdir out/first; echo x >out/first/file")
    looks, moves = lines(one, HAS_IT_OPEN), lines(other, MOVES)
    assert answer(looks, "") == "out/first/file"
    before = "out/first"
    for i in range(10):
        after = f"out/moved{i}" if which == "itself" else f"moved{i}/first"
        moved = (before, after) if which == "itself" else map(os.path.dirname, (before, after))
        assert answer(moves, " ".join(moved)) == "done"
        assert answer(looks, "") == f"{after}/file"
        before = after
    for process in (looks, moves):
        process.stdin.close()
        assert process.wait(60) == 0


# Renames a file, and for `-` a directory, onto what the other node has made under eight names of each kind; with NOREPLACE first.
ONTO = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def renamed(i, kind, old, flags):
    (os.mkdir if old == "-" else lambda path: open(path, "x").close())(f"out/{old}")
    code = libc.renameat2(-100, f"out/{old}".encode(), -100, f"out/{kind}{i}".encode(), flags)
    said = "0" if code == 0 else errno.errorcode[ctypes.get_errno()]
    if code != 0:
        (os.rmdir if old == "-" else os.unlink)(f"out/{old}")
    return said
for kind in "defln":
    print(kind, *sorted({" ".join(renamed(i, kind, old, flags) for flags in (1, 0) for old in "-x") for i in range(8)}))
"""


def test_a_file_is_renamed_onto_whatever_is_there(pair):
    """Which its home says, be that the other node or its own: an empty directory, one that is not, a file, a link, nothing."""
    pair.sh("b", "cd out; for i in $(seq 0 7); do mkdir d$i e$i; echo text >f$i; : >e$i/x; ln -s . l$i; done")
    said = pair.on("a", sys.executable, "-c", ONTO, cwd=pair.root).check().splitlines()
    assert said == ["d EEXIST EEXIST 0 EISDIR", "e EEXIST EEXIST ENOTEMPTY EISDIR", "f EEXIST EEXIST ENOTDIR 0",
                    "l EEXIST EEXIST ENOTDIR 0", "n 0 EEXIST 0 EISDIR"]
    assert pair.sh("b", "cd out; ls -d f0 l7 n3; cat f0 f7 l0 l7") == "f0\nl7\nn3\n"


# A file is renamed onto each name but once: what is there is not known before.
WITH_SLASHES = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
open("out/x", "x").close()
def said(old, new, flags):
    code = libc.renameat2(-100, f"out/{old}".encode(), -100, f"out/{new}".encode(), flags)
    return errno.errorcode[ctypes.get_errno()] if code else "0"
for kind in "dfln":
    ways = [("x/", "", 1), ("x/", "", 0), ("x", "/", 1), ("x", "/", 0)]
    print(kind, *("/".join(sorted({said(old, f"{kind}{i + at}{slash}", flags) for i in range(0, 32, 4)}))
                  for at, (old, slash, flags) in enumerate(ways)))
"""


def test_a_file_with_a_slash_after_it_is_renamed_nowhere(pair):
    """Nor onto a name with a slash after it: with NOREPLACE what is there comes first."""
    pair.sh("b", "cd out; for i in $(seq 0 31); do mkdir d$i; : >f$i; ln -s . l$i; done")
    said = pair.on("a", sys.executable, "-c", WITH_SLASHES, cwd=pair.root).check().splitlines()
    assert said == [*(f"{kind} EEXIST ENOTDIR EEXIST ENOTDIR" for kind in "dfl"), "n ENOTDIR ENOTDIR ENOTDIR ENOTDIR"]


LOOK = "import os\nfor i in range(100): os.stat(f'out/{i}'); open(f'out/{i}').close(); os.access(f'out/{i}', 4)"


@pytest.mark.parametrize("where", ["branch", "trunk"])
def test_who_has_seen_a_name_finds_it_without_asking_again(pair, where):
    """Whichever process of the node has seen it. Half of the names are at home with the other; each process looks at so few
    that none is predicted, and says that it looked into the other's branch."""
    make = "for i in $(seq 0 125); do ln -s . $i; done" if where == "trunk" else "touch $(seq 0 125)"
    pair.sh("b", f"cd out; {make}")
    asked = []
    for _ in range(3):
        before = requests(pair)
        pair.sh("a", "cd out; for i in $(seq 0 7 119); do stat $(seq $i $((i + 6))) >/dev/null; done")
        asked.append(requests(pair) - before)
    assert asked[0] >= 40 and asked[1] < 30 and asked[2] < 30, asked


@pytest.mark.parametrize("count, most", [(400, 30), (4000, 250)])
def test_who_looks_at_many_names_in_any_order_is_told_of_many_at_once(pair, count, most):
    """Half of the names are at home with the other. How many are asked for one by one depends on how their hashes fall: 96
    to 128 of 4,000 in 12 runs."""
    pair.sh("b", f"""{sys.executable} -c "for i in range({count}): open(f'out/{{i}}', 'x').close()" """)
    before = requests(pair)
    pair.sh("a", f"""{sys.executable} -c "import os\nfor i in range({count}): os.stat(f'out/{{i}}')" """)
    assert requests(pair) - before < most


@pytest.mark.parametrize("where", ["branch", "trunk"])
def test_who_looks_at_names_in_the_order_of_a_listing_is_told_of_many_at_once(pair, where):
    """A thousand, half of them at home with the other."""
    make = "os.mkfifo(f'out/{i}')" if where == "trunk" else "open(f'out/{i}', 'x').close()"
    pair.sh("b", f'/usr/bin/python3 -c "import os\nfor i in range(1000): {make}"')
    before = requests(pair)
    assert len(pair.sh("a", "ls -l out").splitlines()) == 1001
    asked = requests(pair) - before
    assert asked < 100, asked
    pair.sh("b", """/usr/bin/python3 -c "import os\nfor i in range(1000): os.rename(f'out/{i}', f'out/to{i}')" """)
    look = "import os\nfor name in os.listdir('out'): os.lstat(f'out/{name}'), print(name)\nassert not os.path.lexists('out/1')"
    assert sorted(pair.sh("a", f'/usr/bin/python3 -c "{look}"').split()) == sorted(f"to{i}" for i in range(1000))
    pair.sh("b", "rm -r out; mkdir out")
    assert pair.sh("a", "ls -l out; test ! -e out/to1") == "total 0\n"


def start_with_leaves(session, full):
    for node in "ab":
        session.at("start", node, "--placement", "branch", "--leaf-full", full).check()
    session.homes()


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_who_goes_to_and_fro_between_leaves_says_so_once_of_each(session):
    """As a listing does, whose order is that of hashes: half of the names are found in this node's index."""
    start_with_leaves(session, 50)
    session.sh("a", "mkdir out; ls out")
    session.sh("b", f"""{sys.executable} -c "for i in range(1000): open(f'out/{{i}}', 'x').close()" """)
    before = requests(session)
    assert len(session.sh("a", "ls -l out").splitlines()) == 1001
    assert requests(session) - before < 100


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_leaf_is_left_also_if_what_is_looked_at_there_was_predicted(session):
    """The node that looks into it has asked for other names only, and it is home of none of them."""
    start_with_leaves(session, 40)
    session.sh("a", "mkdir out")

    def make(name):
        before = json.loads(session.at("status", "a", "--json").check())[0]["counters"]["remote_requests"]
        session.sh("b", f"touch out/{name}")
        return json.loads(session.at("status", "a", "--json").check())[0]["counters"]["remote_requests"] == before

    def leaf_of(name):
        return session.tool("where", session.root / "out" / str(name)).check().split("/")[-2]

    others = {name for name in range(60) if make(name)}
    first, second = ([name for name in others if leaf_of(name) == leaf] for leaf in (leaf_of(0), leaf_of(59)))
    assert leaf_of(0) != leaf_of(59) and len(first) > 8 and second, "there are two, and enough to be told of all"
    look = f"import os\nfor name in {first + second[:1]}: os.stat(f'out/{{name}}')"
    session.sh("a", f'{sys.executable} -c "{look}"')
    make(60)
    assert leaf_of(60) not in (leaf_of(0), leaf_of(59))


CHANGES = """
import os, sys
told, tell = open(sys.argv[1], "rb", 0), open(sys.argv[2], "wb", 0)
for number in range(100):
    told.read(1)
    if number % 2:
        os.rename(f"out/new{number}", f"out/{number}")
    else:
        os.unlink(f"out/{number}")
    tell.write(b".")
"""
LOOKS = """
import os, sys
tell, told = open(sys.argv[1], "wb", 0), open(sys.argv[2], "rb", 0)
for number in range(100):
    for _ in range(40):
        os.stat(f"out/{number}"), os.getxattr(f"out/{number}", "user.text")
    tell.write(b".")
    told.read(1)
    try:
        print(os.getxattr(f"out/{number}", "user.text"))
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.parametrize("changer", ["a", "b"])
def test_what_is_asked_after_a_look_is_of_what_is_there_by_then(pair, tmp_path, changer):
    """The files are the other's, half of the names at home with each; one after the other is removed or replaced."""
    make = """for number in range(100):
    for name, text in ((f"{number}", b"old"), (f"new{number}", b"new")):
        with open(f"out/{name}", "wb") as file:
            file.write(text)
        os.setxattr(f"out/{name}", "user.text", text)"""
    pair.on("b", sys.executable, "-c", f"import os\n{make}", cwd=pair.root).check()
    ways = [tmp_path / "go", tmp_path / "done"]
    for way in ways:
        os.mkfifo(way)
    looker = "b" if changer == "a" else "a"
    changes = pair.begin("exec", changer, "--", sys.executable, "-c", CHANGES, *ways)
    seen = pair.on(looker, sys.executable, "-c", LOOKS, *ways, cwd=pair.root).check()
    assert changes.wait(60) == 0
    assert seen.splitlines() == ["No such file or directory", "b'new'"] * 50


def test_who_has_made_a_name_finds_it_without_asking(pair):
    make = "for i in range(100): open(f'out/{i}', 'x').close()"
    before = requests(pair)
    pair.sh("a", f'/usr/bin/python3 -c "{make}"')
    asked = requests(pair) - before
    pair.sh("a", f'/usr/bin/python3 -c "{LOOK}"')
    assert requests(pair) - before - asked < 30, (asked, requests(pair) - before)


def test_what_was_seen_is_not_believed_when_it_has_gone(pair):
    """The same name is somewhere else, is another file, is another name's file, is nowhere."""
    names = range(40)
    see = "for i in $(seq 0 39); do cat out/$i; done"
    pair.sh("b", "for i in $(seq 0 39); do echo b$i >out/$i; done")
    assert pair.sh("a", see) == pair.sh("a", see) == "".join(f"b{i}\n" for i in names)
    pair.sh("b", "for i in $(seq 0 39); do echo new$i >out/x; mv out/x out/$i; done")
    assert pair.sh("a", see) == "".join(f"new{i}\n" for i in names)
    pair.sh("b", "for i in $(seq 0 39); do rm out/$i; done")
    assert pair.sh("a", "for i in $(seq 0 39); do test -e out/$i && echo $i; done; ls out") == ""
    pair.sh("a", "for i in $(seq 0 39); do echo a$i >out/$i; done")
    assert pair.sh("b", see) == "".join(f"a{i}\n" for i in names)
    pair.sh("b", "for i in $(seq 0 39); do mv out/$i out/to$i; done")
    assert pair.sh("a", "for i in $(seq 0 39); do test -e out/$i && echo $i; cat out/to$i; done") == \
        "".join(f"a{i}\n" for i in names)
    pair.sh("b", "rm -r out; mkdir out; for i in $(seq 0 39); do ln -s link$i out/$i; done")
    assert pair.sh("a", "for i in $(seq 0 39); do readlink out/$i; done") == "".join(f"link{i}\n" for i in names)


BECOMES = {"nothing": "rm $f", "another": "echo another >x; mv x $f", "made again": "rm $f; echo again >$f",
           "a link": "ln -sf aim $f", "a link to nothing": "ln -sf nothing $f", "a link to itself": "rm $f; ln -s $f $f",
           "a link out": "ln -sf OUTSIDE $f", "a directory": "rm $f; mkdir $f; touch $f/in", "a fifo": "rm $f; mkfifo $f"}
SEES = """
import os, sys
def told(call, *words, **more):
    try:
        return call(*words, **more)
    except OSError as error:
        return error.errno
def opened(name, flags):
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    try:
        return told(os.read, descriptor, 20)
    finally:
        os.close(descriptor)
def looked_at(stat):
    return stat if isinstance(stat, int) else (stat.st_mode, stat.st_size if stat.st_mode & 0o100000 else 0, int(stat.st_mtime) == 5)
CALLS = {
    "stat": lambda name: looked_at(told(os.stat, name)),
    "lstat": lambda name: looked_at(told(os.lstat, name)),
    "open": lambda name: told(opened, name, os.O_RDONLY),
    "nofollow": lambda name: told(opened, name, os.O_RDONLY | os.O_NOFOLLOW),
    "directory": lambda name: told(opened, name, os.O_RDONLY | os.O_DIRECTORY),
    "slash": lambda name: looked_at(told(os.stat, name + "/")),
    "access": lambda name: (os.access(name, os.R_OK), os.access(name, os.X_OK)),
    "utime": lambda name: (told(os.utime, name, (5, 5)), looked_at(told(os.stat, name))),
    "chmod": lambda name: (told(os.chmod, name, 0o750), looked_at(told(os.lstat, name))),
    "truncate": lambda name: (told(os.truncate, name, 3), told(opened, name, os.O_RDONLY)),
    "xattr": lambda name: (told(os.getxattr, name, "user.no"), told(os.listxattr, name, follow_symlinks=False)),
}
call = CALLS[sys.argv[1]]
for name in map(str, range(16)): # by turns with its parent known and not
    if int(name) % 2:
        for _ in range(12):
            os.access("aim", 0)
    print(name, call(name))
"""


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("change", BECOMES)
def test_what_a_remembered_name_has_become(pair, tmp_path, change):
    """Whichever call finds out, its answer is the one that it gives natively. Half of the names are at home with the other."""
    native, outside = tmp_path / "native", tmp_path / "outside"
    native.mkdir()
    calls = SEES[SEES.index("CALLS"):].split('    "')[1:]
    for call in (text.split('"')[0] for text in calls):
        make, become = (f'for f in $(seq 0 15); do {text.replace("OUTSIDE", str(outside))}; done'
                        for text in ("echo file >$f; chmod 666 $f", BECOMES[change]))
        start = f"cd $0; rm -rf *; echo outside >{outside}; echo aim >aim; chmod 666 aim {outside}; {make}"
        look = [sys.executable, "-c", SEES, call]
        expected = subprocess.run(["sh", "-ec", f'{start}; {become}; "$@"', native, *look], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
        pair.sh("b", start.replace("cd $0", "cd out"))
        pair.on("a", sys.executable, "-c", "import os\nfor i in range(16): os.stat(str(i))", cwd=pair.root / "out").check()
        pair.sh("b", f"cd out; {become}")
        got = pair.on("a", *look, cwd=pair.root / "out").check()
        assert got == expected, call


def test_who_makes_or_removes_a_name_asks_its_home_once(pair):
    """Half of the names are at home with the other, which hears of one when it is asked for, and when it is done. They do not
    come in a row, or more would be asked for."""
    for call in ("open(f'out/{i * i}', 'x').close()", "os.unlink(f'out/{i * i}')"):
        before = pair.status("--all")["all"]["remote_requests"]
        pair.on("a", sys.executable, "-c", f"import os\nfor i in range(400): {call}", cwd=pair.root).check()
        assert 300 < pair.status("--all")["all"]["remote_requests"] - before < 500, call


SEE_MOVE = """
import os
hear, tell = open('../b', 'rb', 0), open('../a', 'wb', 0)
for _ in range(20):
    for _ in range(40): # so often that where words lead is remembered
        assert os.path.exists(os.getcwd() + '/out/f')
    tell.write(b'?'), hear.read(1)
    assert not os.path.exists(os.getcwd() + '/out/f')
    tell.write(b'?'), hear.read(1)
"""
MOVE = """
import os
tell, hear = open('../b', 'wb', 0), open('../a', 'rb', 0)
for _ in range(20):
    hear.read(1), os.rename('out', 'gone'), tell.write(b'!')
    hear.read(1), os.rename('gone', 'out'), tell.write(b'!')
"""


@BOTH_WAYS
def test_where_a_directory_was_is_believed_by_nobody_when_it_was_renamed(pair, one, other):
    pair.sh(one, "echo >out/f")
    for name in "ab":
        os.mkfifo(pair.root.parent / name)
    sees, moves = (pair.begin("exec", node, "--", sys.executable, "-c", script)
                   for node, script in ((one, SEE_MOVE), (other, MOVE)))
    assert (sees.wait(60), moves.wait(60)) == (0, 0)


@BOTH_WAYS
def test_what_is_opened_to_be_made_is_looked_for_after_links(pair, one, other):
    """Whatever the home of a link is."""
    numbers = "$(seq 16)"
    pair.sh(one, f"cd out; for i in {numbers}; do ln -s file$i link$i; ln -s ../../beside$i out$i; echo $i >file$i; done")
    pair.sh(other, f"cd out; for i in {numbers}; do echo more >>link$i; echo beside >out$i; done")
    pair.sh(other, f"set -C; for i in {numbers}; do (: >out/file$i) 2>/dev/null && exit 1; done; true")
    assert pair.sh(one, f"cd out; for i in {numbers}; do [ -L link$i ] && [ -L out$i ] && cat file$i; done") == "".join(
        f"{i}\nmore\n" for i in range(1, 17))
    assert all((pair.root.parent / f"beside{i}").read_text() == "beside\n" for i in range(1, 17))
    pair.sh(one, f"cd out; for i in {numbers}; do ln -s new$i to$i; done")
    pair.sh(other, f"cd out; for i in {numbers}; do echo new >to$i; done")
    assert pair.sh(one, f"cd out; for i in {numbers}; do [ -L to$i ] && cat new$i; done") == "new\n" * 16


@BOTH_WAYS
def test_directories_links_and_the_rest_of_the_trunk(pair, one, other):
    pair.sh(one, "mkdir out/sub; ln -s sub/file out/link; mkfifo out/fifo; echo deep >out/sub/file; ln out/sub/file out/hard")
    assert pair.sh(other, "cat out/link; stat -c %h out/hard; ls out") == "deep\n2\nfifo\nhard\nlink\nsub\n"
    pair.sh(other, "rmdir out/sub", status=1)
    pair.sh(other, "rm out/sub/file out/link; rmdir out/sub")
    assert pair.names(one, "out") == ["fifo", "hard"]
    pair.sh(one, "mkdir out/sub; mv out/sub out/subway")
    pair.sh(other, "touch out/subway/file")
    assert pair.names(one, "out/subway") == ["file"]


@BOTH_WAYS
def test_a_file_of_a_program_without_shunt_is_adopted(pair, one, other):
    (pair.root / "out" / "native").write_text("native\n")
    assert pair.sh(one, "cat out/native") == "native\n"
    assert pair.names(other, "out") == ["native"]


def test_many_names_are_listed_once(pair):
    count = 150 if pair.net.is_slow else 700
    pair.sh("a", f"cd out; for i in $(seq {count}); do echo $i >a-$i; done")
    pair.sh("b", f"cd out; for i in $(seq {count}); do echo $i >b-$i; done")
    expected = sorted(f"{node}-{i}" for node in "ab" for i in range(1, count + 1))
    for node in "ab":
        assert sorted(pair.names(node, "out")) == expected
        assert pair.sh(node, "find out -type f | xargs cat | wc -l") == f"{2 * count}\n"
    assert {pair.branch_of(f"out/{node}-1") for node in "ab"} == {"a", "b"}


def requests(pair):
    return json.loads(pair.at("status", "a", "--json").check())[0]["counters"]["requests"]


def list_until_trunk_is_proven(pair):
    """A listing compares what is in the trunk with what is known until the times of that, which a daemon sets once the directory
    is quiet, have stood for 50 ms: outsiders."""
    pair.wait_for(pair.trunk_has_its_times())
    pair.on("a", sys.executable, "-c", "import os, time\nfor _ in range(3): os.listdir('out'); time.sleep(0.1)",
            cwd=pair.root).check()


def test_a_listing_of_few_names_is_one_question(pair):
    pair.homes()
    pair.sh("b", "touch out/1; sleep 0.05; touch out/2 out/3")  # the trunk, which was changed with the first, has times of an earlier tick
    list_until_trunk_is_proven(pair)
    before = requests(pair)
    listings = "import os\nfor _ in range(100): assert sorted(os.listdir('out')) == ['1', '2', '3']"
    pair.on("a", sys.executable, "-c", listings, cwd=pair.root).check()
    assert 100 <= requests(pair) - before < 150


def frames(pair):
    return json.loads(pair.at("status", "a", "--json").check())[0]["counters"]["frames_sent"]


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_listing_of_many_names_is_few_questions(pair):
    """Of 200 names for the first buffer, of 4,000 for each of the next; each question is one frame for the other."""
    count, times = 3000, 10
    pair.homes()
    for node in "ab":
        pair.on(node, sys.executable, "-c", f"for i in range({count}): open(f'out/{node}-{{i}}', 'x').close()",
                cwd=pair.root).check()
    list_until_trunk_is_proven(pair)
    requests_before, frames_before = requests(pair), frames(pair)
    listings = f"import os\nfor _ in range({times}): assert len(set(os.listdir('out'))) == {2 * count}"
    pair.on("a", sys.executable, "-c", listings, cwd=pair.root).check()
    assert times * 2 <= requests(pair) - requests_before < times * 5 + 20
    assert times * 2 <= frames(pair) - frames_before < times * 6 + 20


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_names_of_three_nodes_are_listed_once_while_a_fourth_comes_and_goes(session):
    count = 2000
    names = sorted(str(number) for number in range(3 * count))
    session.start("a", "b", "c")
    session.sh("a", "mkdir out")
    for at, node in enumerate("abc"):
        made = f"for i in range({at * count}, {(at + 1) * count}): open(f'out/{{i}}', 'x').close()"
        session.on(node, sys.executable, "-c", made, cwd=session.root).check()
    session.homes()
    asked = requests(session)
    assert sorted(session.names("a", "out")) == names
    assert requests(session) - asked < 30
    lister = ("import os, sys\nnames = sorted(str(number) for number in range(%d))\nprint('begun', flush=True)\n"
              "while not os.path.exists('end'): assert sorted(os.listdir('out')) == names" % (3 * count))
    listers = [session.begin("exec", node, "--", sys.executable, "-c", lister, stdout=subprocess.PIPE)
               for node in "ab"]
    for process in listers:
        process.stdout.readline()
    for _ in range(3):
        session.start("d")
        assert session.homes() == ["a", "b", "c", "d"]
        session.stop("d")
        session.wait_for(lambda: session.homes() == ["a", "b", "c"])
    session.sh("a", "touch end")
    assert [process.wait(60) for process in listers] == [0, 0]


def test_status_of_a_node(pair):
    for node in "ab":
        assert json.loads(pair.at("status", node, "--json").check())[0]["node"] == node
    nobody = pair.at("status", "c")
    assert nobody.status == 1 and "is named 'c'" in nobody.err
    pair.kill(pair.member("b")["pid"])
    dead = pair.at("status", "b", "--json")
    told, = json.loads(dead.out)
    assert (dead.status, told["node"], told["state"]) == (1, "b", "dead") and "counters" not in told


def test_what_died_with_its_process_is_settled(pair):
    """A create that was reserved and never made: a request for the name is answered all the same."""
    loop = "i=0; while :; do echo x >out/b-$i; mv out/b-$i out/c-$i; rm -f out/c-$((i - 3)); i=$((i + 1)); done"
    for _ in range(15):
        process = pair.begin("exec", "b", "--", "sh", "-c", loop)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        listed = set(pair.names("a", "out"))
        assert listed == set(pair.names("b", "out"))
        pair.sh("a", "rm -rf out/*")
    assert pair.names("b", "out") == []


# A hundred thousand is what has been asked for.
RACE_NAMES = int(os.environ.get("SHUNT_RACE_NAMES", "200"))


@pytest.mark.parametrize("placement, leaf_full", [("branch", 50000), ("branch", 7), ("auto", 50000)])
def test_exactly_one_wins_each_name(build, session, placement, leaf_full):
    for node in ("a", "b", "c", "d"):
        session.at("start", node, "--placement", placement, "--leaf-full", leaf_full).check()
    names = min(40, RACE_NAMES) if session.net.is_slow else RACE_NAMES
    result = session.on("a", build / "tests" / "node" / "race", session.root, "8", names, "a", "b", "c", "d",
                        timeout=300 + names / 20)
    result.check()
    assert result.out.count(f"{names} of {names} won, 0 wrong") == 8, result.out


def test_one_leaves_and_its_files_stay(pair):
    pair.sh("b", "echo hello >out/file")
    pair.stop("b")
    assert pair.sh("a", "cat out/file") == "hello\n"
    pair.start("b")
    assert pair.sh("b", "cat out/file; echo more >out/file2; ls out") == "hello\nfile\nfile2\n"


def test_all_is_exported_at_the_end(pair):
    pair.sh("a", "echo a >out/a")
    pair.sh("b", "echo b >out/b")
    pair.stop("b", "a")
    pair.tool("export", pair.root).check()
    assert sorted(path.name for path in (pair.root / "out").iterdir()) == ["a", "b"]
    assert not (pair.root / ".shunt").exists()


def test_what_a_daemon_that_died_has_left_is_settled_when_it_is_back(pair):
    """Its clients' creates were reserved at the home, which is told by nobody how they went."""
    member = pair.members()[1]
    loop = "i=0; while :; do i=$((i + 1)); echo $i >out/b-$i; mv out/b-$i out/c-$i; done 2>/dev/null"
    busy = pair.begin("exec", "b", "--", "sh", "-c", loop)
    while len(pair.names("a", "out")) < 20:
        assert busy.poll() is None
    pair.kill(member["pid"])
    os.killpg(busy.pid, signal.SIGKILL)
    busy.wait()
    pair.start("b")
    listed = pair.names("a", "out")
    assert len(listed) >= 20 and sorted(listed) == sorted(pair.names("b", "out"))
    pair.sh("a", "for i in $(seq 400); do echo >out/b-$i; mv out/b-$i out/c-$i; done; rm out/*")
    assert pair.names("b", "out") == []


def test_many_start_at_once(session):
    session.start_at_once(*"abcdef")
    for node in "abcdef":
        session.sh(node, f"echo {node} >{node}")
    for node in "abcdef":
        assert session.names(node) == list("abcdef")


def test_a_home_that_ends_hands_over_its_names(pair):
    """While files are made, renamed and removed: nothing is lost, nobody notices."""
    loop = "i=0; while [ ! -e stop ]; do i=$((i + 1)); echo $i >out/b-$i; mv out/b-$i out/c-$i; done; echo $i"
    busy = pair.begin("exec", "b", "--", "sh", "-c", loop, stdout=subprocess.PIPE, text=True)
    pair.sh("b", "for i in $(seq 100); do echo $i >out/$i; done")
    for _ in range(3):
        pair.stop("a")
        assert pair.homes() == ["b"]
        pair.start("a")
        assert pair.homes() == ["a", "b"]
        assert set(map(str, range(1, 101))) <= set(pair.names("a", "out"))
    pair.sh("a", "touch stop")
    made = int(busy.communicate(timeout=60)[0])
    assert busy.returncode == 0 and made > 0
    expected = sorted([str(i) for i in range(1, 101)] + [f"c-{i}" for i in range(1, made + 1)])
    for node in "ab":
        assert sorted(pair.names(node, "out")) == expected
        assert pair.sh(node, "cat out/* | wc -l") == f"{100 + made}\n"


def test_all_end_at_once(session):
    """No process waits for one that waits for it."""
    session.start("a", "b", "c", "d")
    for node in "abcd":
        session.sh(node, f"mkdir -p out; for i in $(seq 30); do echo >out/{node}-$i; done")
    stopping = [session.begin("stop", node) for node in "abcd"]
    assert [process.wait(60) for process in stopping] == [0] * 4
    session.start("e")
    assert len(session.names("e", "out")) == 120


def part_of(session, node):
    return session.member(node)["home"]


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_who_is_told_twice_to_end_is_not_waited_for(session):
    """It ends at once, and what it was to hand over is read again."""
    session.start("a", "b", "c")
    session.sh("a", "mkdir out; for i in $(seq 50); do echo >out/$i; done")
    session.homes()
    assert len(session.names("b", "out")) == 50
    leaving = session.member("c")["pid"]
    with session.stopped("a"):  # which sees changes through
        os.kill(leaving, signal.SIGTERM)
        session.wait_for(lambda: part_of(session, "c") == "leaving")
        stand_still(leaving)
    session.wait_for(lambda: part_of(session, "c") == "going")
    listing = session.begin("exec", "b", "--", "ls", session.root / "out", stdout=subprocess.PIPE, text=True)
    session.wait_for(lambda: "futex" in pathlib.Path(f"/proc/{listing.pid}/wchan").read_text())
    with session.stopped("b"):  # it hears that c has gone when all begins again already
        os.kill(leaving, signal.SIGTERM)
        os.kill(leaving, signal.SIGCONT)
        session.wait_for(lambda: part_of(session, "a") == "coming")
    assert len(listing.communicate(timeout=60)[0].split()) == 50
    assert session.homes() == ["a", "b"]


def silent_nodes(session):
    return session.status()["silent"]


@pytest.mark.parametrize("net", ["host", "network"], indirect=True)
def test_a_silent_home_is_waited_for_and_then_an_error(pair):
    """Nothing goes to the wrong place meanwhile; when it is back, work goes on. Of the names some have their home on
    the node that still answers: these are made."""
    pair.homes()
    pair.sh("b", "echo before >out/before")
    with pair.stopped("a"):
        pair.settings["SHUNT_DEADLINE"] = "1"
        begun = {name: pair.begin("exec", "b", "--", "touch", pair.root / "out" / name, stderr=subprocess.PIPE, text=True)
                 for name in map(str, range(16))}
        tried = {name: process.communicate(timeout=60)[1] for name, process in begun.items()}
        failed = {name for name, process in begun.items() if process.returncode != 0}
        assert 0 < len(failed) < 16
        for name in failed:
            assert "Input/output error" in tried[name]
            assert tried[name].count("the daemon did not answer within SHUNT_DEADLINE") == 1
        pair.wait_for(lambda: silent_nodes(pair) == ["a"])
    pair.settings["SHUNT_DEADLINE"] = "20"
    made = set(tried) - failed
    assert set(pair.names("b", "out")) == made | {"before"} == set(pair.names("a", "out"))
    for name in failed:
        assert pair.sh("b", f"echo after >out/{name}; cat out/{name}") == "after\n"
    assert pair.sh("a", "cat out/before") == "before\n"
    assert silent_nodes(pair) == []


def test_a_home_that_is_back_in_time_is_not_missed(pair):
    """A request that waits for it when it stops is answered when it goes on."""
    pair.sh("b", "echo before >out/before")
    with pair.stopped("a"):
        waiting = pair.begin("exec", "b", "--", "sh", "-c", "for i in $(seq 20); do echo >out/$i; done; mv out/before out/after")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
    assert waiting.wait(20) == 0
    for node in "ab":
        assert set(pair.names(node, "out")) == {"after"} | set(map(str, range(1, 21)))


def test_placement_auto_redirects_what_two_nodes_make(session):
    """A node that is alone in a directory stays in the trunk; once another has touched it, both move to their branches."""
    session.start("a", "b", placement="auto")
    session.sh("a", "mkdir own shared; for i in $(seq 40); do echo >own/$i; echo >shared/a$i; done")
    assert session.branch_of("own/40") is None and session.branch_of("shared/a40") is None
    session.sh("b", "for i in $(seq 40); do echo >shared/b$i; done")
    session.sh("a", "for i in $(seq 41 80); do echo >shared/a$i; done")
    assert session.branch_of("shared/b40") == "b" and session.branch_of("shared/a80") == "a"
    assert len(session.names("b", "shared")) == 120


def test_another_node_of_the_same_name_is_refused(pair):
    refused = pair.at("start", "b")
    assert refused.status == 1 and "shunt exec" in refused.err


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_session_that_is_alone_is_not_joined(session):
    session.start("a", SHUNT_FABRIC="none")
    refused = session.at("start", "b")
    assert refused.status == 1 and "by a session that no other host can join" in refused.err


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("fabric", ["carrier-pigeon", "tcp:no-such-if"])
def test_a_network_that_is_not_there_is_one_sentence(session, fabric):
    session.start("a")
    refused = session.at("start", "b", SHUNT_FABRIC=fabric)
    assert refused.status == 1
    assert len(refused.err.splitlines()) == 1 and f"SHUNT_FABRIC '{fabric}'" in refused.err


def test_its_files_are_the_users_alone(pair):
    for path in pair.root.glob(".shunt/session/key.*"):
        assert path.stat().st_mode & 0o777 == 0o600
        break
    else:
        raise AssertionError("the session has no key")


def beats(session):
    """{the file of a member's heartbeats: when the last was}"""
    return {path.name: path.stat().st_mtime_ns for path in session.root.glob(".shunt/session/beat.*")}


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_members_beat(session):
    """So that another host sees whether they live, also one that is alone."""
    session.start("a")
    alone = beats(session)
    session.wait_for(lambda: len(alone) == 1 and beats(session) != alone)
    session.start("b")
    session.wait_for(lambda: len(beats(session)) == 2)
    first = beats(session)
    session.wait_for(lambda: all(beats(session)[name] > time for name, time in first.items()))
    session.stop("b")
    session.wait_for(lambda: list(beats(session)) == list(alone))


def main_switches(session, node):
    """How often the main thread of a node's daemon has gone to sleep."""
    status = pathlib.Path(f"/proc/{session.member(node)['pid']}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\t(\d+)", status, re.MULTILINE).group(1))


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_what_comes_from_another_node_is_served_by_the_thread_that_hears_it(pair):
    """About 500 questions come to b, which has nothing else to do. Its main thread wakes each half second, and wherever it is
    to do so sooner."""
    before = main_switches(pair, "b")
    pair.sh("a", f"""{sys.executable} -c "for i in range(1000): open(f'out/{{i}}', 'x').close()" """)
    assert main_switches(pair, "b") - before < 100


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_directory_that_a_silent_home_has_to_know_first(session):
    """Of some of these directories the daemon that is stopped is the one that is asked; of others it is who has them, or one
    that has to be told, or to say what their names are. The rest are the other's affair: one of four, as chance will have it,
    and so many that there are some (of 16 there were none in one run of a hundred)."""
    names = [f"new-{number}" for number in range(56)]
    for name in names:
        (session.root / name).mkdir()
        (session.root / name / "file").touch()
    session.settings["SHUNT_DEADLINE"] = "5"  # all is over before the one that is silent is lost
    session.start("a", "b", SHUNT_DEADLINE="1")
    session.homes()
    session.sh("a", f"ls {' '.join(names[:8])}")
    session.sh("b", "ls")

    def looking():
        return [session.begin("exec", "b", "--", "ls", session.root / name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) for name in names]

    with session.stopped("a"):
        told = [process.communicate(timeout=30) for process in looking()]
    needless = [out for out, error in told[8:] if error == ""]
    assert needless == ["file\n"] * len(needless) and 0 < len(needless) < len(told) - 8
    for out, error in [*told[:8], *(one for one in told[8:] if one[1])]:
        assert out == ""
        assert "Input/output error" in error and error.count("did not answer within SHUNT_DEADLINE") == 1
    for process in looking():
        assert process.communicate(timeout=30) == ("file\n", "")


MAKES_ANEW = """
import errno, os, time
end = time.monotonic() + 4
while time.monotonic() < end:
    try:
        os.rmdir("out/at")
        os.mkdir("out/at")
    except OSError as error:
        assert error.errno == errno.ENOTEMPTY, error
"""
MAKES_IN_IT = """
import os, time
made, end = 0, time.monotonic() + 4
while time.monotonic() < end:
    for call in (lambda: os.close(os.open("out/at/file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)), lambda: os.unlink("out/at/file")):
        try:
            call()
            made += 1
        except FileNotFoundError:
            pass
print(made > 0)
"""


def test_a_directory_is_made_again_all_the_time(pair, tmp_path):
    """A process that makes and removes files in it is told that it is not there, or makes them in the new one; nothing else."""
    pair.sh("a", "mkdir out/at; ls out/at")
    pair.sh("b", "ls out/at")
    programs = [(tmp_path / "anew.py", MAKES_ANEW, "a"), (tmp_path / "in.py", MAKES_IN_IT, "b")]
    for path, text, _ in programs:
        path.write_text(text)
    running = [pair.begin("exec", node, "--", sys.executable, path, stdout=subprocess.PIPE, text=True)
               for path, _, node in programs]
    assert [(one.communicate()[0], one.returncode) for one in running] == [("", 0), ("True\n", 0)]


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("number, again", [(signal.SIGUSR1, True), (signal.SIGRTMIN, False)])
def test_a_supervisor_is_told_by_its_daemon_alone_that_it_is_the_last(pair, number, again):
    """By SIGRTMIN, and then starts no other one. A signal for programs, which a batch system sends to all of a job, says nothing."""
    daemon = pair.member("a")["pid"]
    supervisor = int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(supervisor, number)
    pair.sh("a", "touch out/file")
    os.readlink(f"/proc/{supervisor}/exe")  # it is there still
    os.kill(daemon, signal.SIGKILL)
    pair.wait_for(lambda: os.path.exists(f"/proc/{supervisor}") == again)
    pair.wait_for(lambda: (pair.member("a") or {}).get("pid", daemon) != daemon or not again)


@BOTH_WAYS
def test_a_directory_whose_mirror_was_kept_from_removal(pair, one, other):
    """By what the index does not know, as NFS has a file that is removed while it is open. Mirrors that were removed before are made
    again."""
    for node in (one, other):
        pair.sh(node, f"touch out/{node}; rm out/{node}")
    leaf, = pair.root.glob(f".shunt/b/{one}.*/out-*/0")
    held = leaf / ".nfs0123"
    held.write_text("")
    pair.sh(other, "rmdir out 2>&1 | grep -q 'not empty'; test -d out")
    for node in (one, other):
        pair.sh(node, f"echo {node} >out/{node}")
    assert pair.names(one, "out") == pair.names(other, "out") == sorted([one, other])
    assert pair.sh(one, f"cat out/{other}; rm out/{other}; cat out/{one}") == f"{other}\n{one}\n"
    held.unlink()
    pair.sh(other, f"rm out/{one}; rmdir out")
    assert not pair.root.joinpath("out").exists() and list(pair.root.glob(".shunt/b/*/out-*")) == []


@BOTH_WAYS
def test_a_name_that_goes_without_a_call(pair, one, other):
    """On NFS that of a file which was removed while it was open goes when it is closed. The other node has read the directory before."""
    pair.sh(one, "touch out/in")
    leaf, = pair.root.glob(f".shunt/b/{one}.*/out-*/0")
    held = leaf / ".nfs0000000000000042000abcde"
    held.write_text("")
    pair.stop(one, other)
    pair.start(one, other)
    for node in (one, other):
        assert pair.names(node, "out") == [held.name, "in"]
    held.unlink()
    assert pair.names(other, "out") == pair.names(one, "out") == ["in"]
    pair.sh(other, "rm -r out")
    assert not pair.root.joinpath("out").exists()
