# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Names that a daemon reserves before its process asks for them: as if nobody had, but for the frames."""

import os
import signal
import subprocess
import sys

import pytest

# Makes so many names, says so, and makes what it is told then, a line each: None or the errno's name.
MAKER = """
import errno, os, sys
def make(name):
    os.close(os.open(f"out/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
for i in range(int(sys.argv[2])):
    make(sys.argv[1] % i)
print("made", flush=True)
for line in sys.stdin:
    try:
        print(make(line.strip()), flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""
MADE = 40  # so many that some of them have been foreseen


class Maker:
    """A process of a node that has made so many names in a row, and is still there."""

    def __init__(self, session, node, pattern="f%d", count=MADE):
        self.process = session.begin("exec", node, "--", sys.executable, "-c", MAKER, pattern, str(count),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "made\n"

    def make(self, name):
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def pair(session):
    """Both use `out`, so that half of its names are at home with each."""
    session.start("a", "b")
    session.sh("a", "mkdir out; ls out")
    session.sh("b", "ls out")
    session.homes()
    return session


def counters(session, node="a"):
    return session.status("--node", node)["counters"]


def flights(session):
    return counters(session)["flights"]


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("pattern, foreseen, least, most", [("f%d", 400, 0, 200), ("rank7.%05d.h5", 400, 0, 200),
                                                            ("%d-of-1000", 400, 0, 200), ("f%d-%s", 0, 350, 1200)])
def test_names_in_a_row_are_few_frames(pair, pattern, foreseen, least, most):
    """Half of 1,000 names are at home with the other: a frame for each, as long as they cannot be foreseen."""
    before = counters(pair)
    name = "pattern % (i, hash(str(i)))" if pattern.count("%") == 2 else "pattern % i"
    pair.on("a", sys.executable, "-c",
            f"pattern = {pattern!r}\nfor i in range(1000): open('out/' + {name}, 'x').close()", cwd=pair.root).check()
    after = counters(pair)
    assert least <= after["frames-sent"] - before["frames-sent"] <= most
    assert foreseen <= after["foreseen"] - before["foreseen"] <= foreseen * 1.5
    assert len(pair.names("b", "out")) == 1000


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_frames_of_names_that_are_removed_in_any_order_carry_how_others_went(pair):
    """What nobody waits for has no frame of its own: half of the names have a home here, and ask nobody."""
    pair.sh("a", "touch $(seq 1000 | sed s,^,out/,)")
    before = counters(pair)["frames-sent"]
    pair.on("a", sys.executable, "-c", "import os\nfor name in os.listdir('out'): os.unlink(f'out/{name}')", cwd=pair.root).check()
    assert counters(pair)["frames-sent"] - before < 650
    assert pair.names("b", "out") == []


def test_what_nobody_has_made_is_nowhere(pair):
    maker = Maker(pair, "a")
    assert counters(pair)["foreseen"] > 0
    assert sorted(pair.names("b", "out")) == sorted(f"f{i}" for i in range(MADE))
    look = f"import os\nfor i in range({MADE}, {MADE + 40}): assert not os.path.exists(f'out/f{{i}}')"
    pair.on("b", sys.executable, "-c", look, cwd=pair.root).check()
    pair.on("a", sys.executable, "-c", look, cwd=pair.root).check()
    pair.sh("b", f"rm out/f{MADE}", status=1)
    assert maker.make(f"f{MADE}") == "None"
    assert pair.sh("b", f"ls out/f{MADE}") == f"out/f{MADE}\n"
    maker.end()


@pytest.mark.parametrize("node", ["a", "b"])
def test_who_asks_first_has_the_name(pair, node):
    """On whichever node, and whatever he does with it: nobody waits until the maker has changed his mind."""
    maker, names = Maker(pair, "a"), [f"f{i}" for i in range(MADE, MADE + 12)]
    assert counters(pair)["foreseen"] > 0
    how = ["echo new >out/{}", "mkdir out/{}", "ln -s . out/{}", "echo old >out/x; mv out/x out/{}", "mkfifo out/{}",
           "echo old >out/y; ln out/y out/{}"]
    for i, name in enumerate(names):
        pair.sh(node, how[i % len(how)].format(name))
    assert [maker.make(name) for name in names] == ["EEXIST"] * len(names)
    assert maker.make(f"f{MADE + 20}") == "None"
    assert set(names) < set(pair.names("b", "out"))
    maker.end()


def test_a_directory_in_which_names_are_reserved_is_removed(pair):
    maker = Maker(pair, "a")
    pair.sh("b", "rm out/*; rmdir out; mkdir out; ls out")
    assert maker.make(f"f{MADE}") == "None"
    assert pair.names("b", "out") == [f"f{MADE}"]
    maker.end()


def test_what_nobody_asks_for_is_given_back(pair):
    maker = Maker(pair, "a")
    assert counters(pair)["foreseen"] > 0
    pair.wait_for(lambda: flights(pair) == 0)
    pair.status("--node", "a", "--all")  # with what is asked the other, it hears of that
    pair.sh("b", "touch out/first")  # for which a leaf has to be made
    before = counters(pair, "b")["parked"]
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert counters(pair, "b")["parked"] == before, "nobody was waited for"
    maker.end()


def test_whose_node_ends_holds_nothing(pair):
    Maker(pair, "a").end()
    pair.stop("a")
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert len(pair.names("b", "out")) == MADE + 41


def test_whose_daemon_dies_holds_nothing(pair):
    maker = Maker(pair, "a")
    os.kill(pair.member("a")["pid"], signal.SIGKILL)
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert maker.make(f"f{MADE}") == "EEXIST"
    assert maker.make(f"f{MADE + 41}") == "None"
    assert len(pair.names("b", "out")) == MADE + 42
    maker.end()


def test_makers_whose_numbers_interlock(pair):
    """Each foresees the other's names, and is wrong."""
    count = 300
    make = "import sys\nfor i in range(int(sys.argv[1]), {}, int(sys.argv[2])): open(f'out/f{{i}}', 'x').close()"
    makers = [pair.begin("exec", node, "--", sys.executable, "-c", make.format(count), str(first), "2")
              for first, node in enumerate("ab")]
    assert [process.wait(120) for process in makers] == [0, 0]
    assert sorted(pair.names("a", "out")) == sorted(f"f{i}" for i in range(count))
    blocks = [pair.begin("exec", node, "--", sys.executable, "-c", make.format(end).replace("out/f", "out/g"), str(end - 50), "1")
              for node, end in (("a", 50), ("b", 100), ("a", 150), ("b", 200))]
    assert [process.wait(120) for process in blocks] == [0] * 4
    assert sorted(pair.names("b", "out")) == sorted([f"f{i}" for i in range(count)] + [f"g{i}" for i in range(200)])
