# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Names that a daemon asks for before its process does: as if nobody had, but for the frames."""

import os
import signal
import subprocess
import sys

import pytest

# Makes, removes or renames so many names, says so, and does what it is told then, a line each: None or the errno's name.
WORKER = """
import errno, os, sys
def make(name):
    os.close(os.open(f"out/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
def remove(name):
    os.unlink(f"out/{name}")
def rename(name):
    os.rename(f"out/{name}", f"out/{name}.new")
def checkpoint(name):
    make(name)
    rename(name)
work = {"make": make, "remove": remove, "rename": rename, "checkpoint": checkpoint}
for i in range(int(sys.argv[2])):
    work[sys.argv[1]](f"f{i}")
print("done", flush=True)
for line in sys.stdin:
    what, name = ([sys.argv[1]] + line.split())[-2:]
    try:
        print(work[what](name), flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""
MADE = 40  # so many that some of them have been predicted


class Worker:
    """A process of a node that has done that with so many names in a row, and is still there."""

    def __init__(self, session, node, what="make"):
        self.process = session.begin("exec", node, "--", sys.executable, "-c", WORKER, what, str(MADE),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "done\n"

    def does(self, *words):
        """A name, perhaps after what is to be done with it instead."""
        self.process.stdin.write(" ".join(words) + "\n")
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
    return counters(session)["in_flight"]


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("pattern, foreseen, least, most", [("f%d", 900, 0, 100), ("rank7.%05d.h5", 900, 0, 100),
                                                            ("%d-of-1000", 900, 0, 100), ("f%d-%s", 0, 350, 1200)])
def test_names_in_a_row_are_few_frames(pair, pattern, foreseen, least, most):
    """Half of 1,000 names are at home with the other: a frame for each, and two messages, as long as they cannot be
    predicted. The others are granted."""
    before = counters(pair)
    name = "pattern % (i, hash(str(i)))" if pattern.count("%") == 2 else "pattern % i"
    pair.on("a", sys.executable, "-c",
            f"pattern = {pattern!r}\nfor i in range(1000): open('out/' + {name}, 'x').close()", cwd=pair.root).check()
    after = counters(pair)
    assert least <= after["frames_sent"] - before["frames_sent"] <= most
    assert foreseen <= after["prefetched"] - before["prefetched"] <= min(1000, 2 * foreseen)
    if foreseen:
        assert after["requests"] - before["requests"] <= 100
    assert len(pair.names("b", "out")) == 1000


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_names_in_a_row_are_few_bytes(pair):
    """Each is told by what it has other than the one before: some 23, 35 and 22 bytes, of both daemons, and with the headers of
    frames; 176, 333 and 161 if all were told."""
    work = {"open(f'out/rank-{i:04d}.ckpt', 'x').close()": 40,
            "os.rename(f'out/rank-{i:04d}.ckpt', f'out/done-{i:04d}.ckpt')": 70,
            "os.unlink(f'out/done-{i:04d}.ckpt')": 40}
    for does, most in work.items():
        before = pair.status("--all")["all"]["frames_sent_bytes"]
        pair.on("a", sys.executable, "-c", f"import os\nfor i in range(300): {does}", cwd=pair.root).check()
        assert pair.status("--all")["all"]["frames_sent_bytes"] - before <= 300 * most, does


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_who_looks_before_it_makes_or_removes_a_name_asks_nobody_either(pair):
    make = "if not os.path.exists(name): open(name, 'x').close()"
    remove = "if os.path.exists(name): os.unlink(name)"
    for work, left in ((make, 1000), (remove, 0)):
        before = counters(pair)
        lines = f"import os\nfor i in range(1000):\n name = f'out/f{{i}}'\n {work}"
        pair.on("a", sys.executable, "-c", lines, cwd=pair.root).check()
        after = counters(pair)
        assert after["frames_sent"] - before["frames_sent"] <= 100
        assert after["requests"] - before["requests"] <= 100
        assert 900 <= after["prefetched"] - before["prefetched"] <= 1000
        assert len(pair.names("b", "out")) == left


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_names_that_are_removed_in_a_row_are_few_frames(pair):
    pair.sh("b", "touch $(seq 1000 | sed s,^,out/,)")
    before = counters(pair)
    pair.on("a", sys.executable, "-c", "import os\nfor i in range(1, 1001): os.unlink(f'out/{i}')", cwd=pair.root).check()
    after = counters(pair)
    assert after["frames_sent"] - before["frames_sent"] <= 100
    assert after["requests"] - before["requests"] <= 100
    assert 900 <= after["prefetched"] - before["prefetched"] <= 1000
    assert pair.names("b", "out") == []


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_frames_of_names_that_are_removed_in_any_order_carry_how_others_went(pair):
    """What nobody waits for has no frame of its own: half of the names have a home here, and ask nobody."""
    pair.sh("a", "touch $(seq 1000 | sed s,^,out/,)")
    before = counters(pair)["frames_sent"]
    pair.on("a", sys.executable, "-c", "import os\nfor name in os.listdir('out'): os.unlink(f'out/{name}')", cwd=pair.root).check()
    assert counters(pair)["frames_sent"] - before < 650
    assert pair.names("b", "out") == []


RENAMES = {
    "no order": "os.rename(f'out/{mixed(i)}', f'out/{mixed(-i)}.new')",
    "a row": "os.rename(f'out/f{i}', f'out/g{i}')",
    "made before": "open(f'out/c{i}.tmp', 'x').close(); os.rename(f'out/c{i}.tmp', f'out/c{i}')",
    "made in no order": "open(f'out/{mixed(~i)}.tmp', 'x').close(); os.rename(f'out/{mixed(~i)}.tmp', f'out/c{i}')",
}


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("which, most, messages", [("no order", 450, 1100), ("a row", 60, 100), ("made before", 60, 400),
                                                   ("made in no order", 400, 2100)])
def test_renames_are_few_frames(pair, which, most, messages):
    """In no order both homes are asked at once, of which one is the other for three of four. What is in a row is asked for ahead,
    and what a thread has just made, and renames each time, stays claimed. Renames in a row of what is there are granted, and so are creates in a row with the rename that follows each."""
    begin = "import os, zlib\ndef mixed(i): return zlib.crc32(str(i).encode())\nfor i in range(500): "
    pair.on("a", sys.executable, "-c", begin + "open(f'out/{mixed(i)}', 'x').close(); open(f'out/f{i}', 'x').close()",
            cwd=pair.root).check()
    before = counters(pair)
    pair.on("a", sys.executable, "-c", begin + RENAMES[which], cwd=pair.root).check()
    after = counters(pair)
    assert after["frames_sent"] - before["frames_sent"] <= most
    assert after["requests"] - before["requests"] <= messages
    assert after["renames"] - before["renames"] == 500
    assert len(pair.names("b", "out")) == 1000 + 500 * ("made" in which)


def test_what_nobody_has_made_is_nowhere(pair):
    maker = Worker(pair, "a")
    assert counters(pair)["prefetched"] > 0
    assert sorted(pair.names("b", "out")) == sorted(f"f{i}" for i in range(MADE))
    look = f"import os\nfor i in range({MADE}, {MADE + 40}): assert not os.path.exists(f'out/f{{i}}')"
    pair.on("b", sys.executable, "-c", look, cwd=pair.root).check()
    pair.on("a", sys.executable, "-c", look, cwd=pair.root).check()
    pair.sh("b", f"rm out/f{MADE}", status=1)
    assert maker.does(f"f{MADE}") == "None"
    assert pair.sh("b", f"ls out/f{MADE}") == f"out/f{MADE}\n"
    maker.end()


@pytest.mark.parametrize("node", ["a", "b"])
def test_who_asks_first_has_the_name(pair, node):
    """On any node, and whatever it does with it: no process waits until the maker has changed its mind."""
    maker, names = Worker(pair, "a"), [f"f{i}" for i in range(MADE, MADE + 12)]
    assert counters(pair)["prefetched"] > 0
    how = ["echo new >out/{}", "mkdir out/{}", "ln -s . out/{}", "echo old >out/x; mv out/x out/{}", "mkfifo out/{}",
           "echo old >out/y; ln out/y out/{}"]
    for i, name in enumerate(names):
        pair.sh(node, how[i % len(how)].format(name))
    assert [maker.does(name) for name in names] == ["EEXIST"] * len(names)
    assert maker.does(f"f{MADE + 20}") == "None"
    assert set(names) < set(pair.names("b", "out"))
    maker.end()


@pytest.mark.parametrize("node", ["a", "b"])
def test_what_nobody_has_removed_is_there(pair, node):
    """For the first process that asks, on any node, and whatever it does with it."""
    pair.sh("b", f"cd out; for i in $(seq 0 {MADE + 39}); do echo $i >f$i; done")
    remover = Worker(pair, "a", "remove")
    assert counters(pair)["prefetched"] > 0
    left = [f"f{i}" for i in range(MADE, MADE + 40)]
    assert sorted(pair.names(node, "out")) == sorted(left)
    assert pair.sh(node, f"cat out/f{MADE} out/f{MADE + 1}; stat -c %s out/f{MADE + 2}") == f"{MADE}\n{MADE + 1}\n3\n"
    pair.sh(node, f"mkdir out/f{MADE + 3}", status=1)
    pair.sh(node, f"cd out; mv f{MADE + 4} f{MADE + 5}; rm f{MADE + 6}; ln f{MADE + 7} x; mv x f{MADE + 8}; echo new >>f{MADE + 9}")
    assert [remover.does(f"f{MADE + i}") for i in range(4, 10)] == ["ENOENT", "None", "ENOENT"] + ["None"] * 3
    pair.sh(node, "rmdir out", status=1)
    assert remover.does(f"f{MADE}") == "None"
    assert sorted(pair.names(node, "out")) == sorted(left[1:4] + left[10:])
    remover.end()


@pytest.mark.parametrize("node", ["a", "b"])
def test_what_is_about_to_be_renamed_is_there(pair, node):
    """On any node, and whatever it does with it: a thread has made it, and has renamed all that it made before."""
    maker = Worker(pair, "a", "checkpoint")
    how = {"cat out/{}": "None", "echo new >>out/{}": "None", "rm out/{}": "ENOENT", "mv out/{} out/{}.mine": "ENOENT",
           "ln out/{} out/{}.mine": "None", "mv out/{} out/x; echo mine >out/{}": "None", "ls out | grep -x {}": "None",
           "mkdir out/{}.new": "EISDIR", "echo new >out/{}.new": "None", "stat out/{}": "None"}
    for i, (script, result) in enumerate(list(how.items()) * 2):
        name = f"f{MADE + i}"
        assert maker.does("make", name) == "None"
        pair.sh(node, script.replace("{}", name))
        assert maker.does("rename", name) == result, script
    assert sorted(pair.names("a", "out")) == sorted(pair.names("b", "out"))
    maker.end()


@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize("maker", ["a", "b"])
def test_what_nobody_has_renamed_is_as_it_was(pair, node, maker):
    """Old names and new ones were asked for ahead, and those of files in its own branch granted."""
    pair.sh(maker, f"cd out; for i in $(seq 0 {MADE + 39}); do echo $i >f$i; done")
    renamer = Worker(pair, "a", "rename")
    assert counters(pair)["prefetched"] > 0
    assert sorted(pair.names(node, "out")) == sorted([f"f{i}.new" for i in range(MADE)] + [f"f{i}" for i in range(MADE, MADE + 40)])
    first = MADE + 1
    pair.sh(node, f"cd out; rm f{first}; echo mine >f{first + 1}.new; mkdir f{first + 2}.new; mv f{first + 3} f{first + 4}; cat f{first + 5}")
    pair.sh(node, f"cat out/f{first + 6}.new", status=1)
    assert [renamer.does(f"f{first + i}") for i in range(7)] == ["ENOENT", "None", "EISDIR", "ENOENT", "None", "None", "None"]
    assert pair.sh(node, f"cat out/f{first + 1}.new out/f{first + 4}.new") == f"{first + 1}\n{first + 3}\n"
    assert renamer.does(f"f{MADE}") == "None"
    renamer.end()


@pytest.mark.parametrize("how", ["process", "daemon", "node"])
def test_what_was_about_to_be_renamed_outlives_its_maker(pair, how):
    names = []
    for i in range(6):  # half of them are claimed at the other
        maker = Worker(pair, "a", "checkpoint") if i == 0 or how == "process" else maker
        names.append(f"g{i}")
        assert maker.does("make", names[-1]) == "None"
        if how == "process":
            maker.end()
            pair.sh("b", "rm -f out/f*")
    if how == "daemon":
        os.kill(pair.member("a")["pid"], signal.SIGKILL)
    if how != "process":
        maker.end()
    if how == "node":
        pair.stop("a")
    assert set(names) <= set(pair.names("b", "out"))
    pair.sh("b", f"cd out; cat {' '.join(names)}; rm {' '.join(names)}")


def test_a_directory_in_which_names_are_reserved_is_removed(pair):
    maker = Worker(pair, "a")
    pair.sh("b", "rm out/*; rmdir out; mkdir out; ls out")
    assert maker.does(f"f{MADE}") == "None"
    assert pair.names("b", "out") == [f"f{MADE}"]
    maker.end()


def test_what_nobody_asks_for_is_given_back(pair):
    maker = Worker(pair, "a")
    assert counters(pair)["prefetched"] > 0
    pair.wait_for(lambda: flights(pair) == 0)
    pair.status("--node", "a", "--all")  # with what is asked the other, it hears of that
    pair.sh("b", "touch out/first")  # for which a leaf has to be made
    before = counters(pair, "b")["blocked"]
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert counters(pair, "b")["blocked"] == before, "nobody was waited for"
    maker.end()


def test_whose_node_ends_holds_nothing(pair):
    Worker(pair, "a").end()
    pair.stop("a")
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert len(pair.names("b", "out")) == MADE + 41


def test_whose_daemon_dies_holds_nothing(pair):
    maker = Worker(pair, "a")
    os.kill(pair.member("a")["pid"], signal.SIGKILL)
    pair.sh("b", f"touch $(seq {MADE} {MADE + 40} | sed s,^,out/f,)")
    assert maker.does(f"f{MADE}") == "EEXIST"
    assert maker.does(f"f{MADE + 41}") == "None"
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
