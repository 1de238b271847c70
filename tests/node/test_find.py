# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt find` on a union made by hand, against the find of the system in a plain tree of the same names."""

import json
import os
import random
import socket
import stat
import subprocess

import pytest

from conftest import environment, run
from union_on_disk import Union

ODD = [b"a b", b"new\nline", b"\xff\xfe", b"star*", b"[x]", b"back\\slash", b".hidden", b"-dash", "caf\u00e9".encode(),
       b"x.shunt", b"tab\t"]
PLAIN = ["a.c", "b.c", "deep.c", "long name.txt"]
HOUR = 3600 * 10**9
NOW = 1_700_000_000 * 10**9


def make_odd_types(directory):
    """One of each type that is no file; devices only where that is permitted."""
    os.mkfifo(directory / "fifo")
    (directory / "link").symlink_to("a.c")
    (directory / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(directory)  # a socket's path is short
        made.bind("socket")
        os.chdir(here)
    for name, kind, device in (("character", stat.S_IFCHR, os.makedev(1, 3)), ("block", stat.S_IFBLK, os.makedev(7, 0))):
        try:
            os.mknod(directory / name, kind | 0o600, device)
        except PermissionError:
            pass


class Trees:
    """The same names twice: `native` is a plain directory, in `union` most files of `out` are redirected."""

    def __init__(self, shunt, area):
        self.tool, self.native, self.union = shunt.path, area / "native", Union(area / "union")
        (self.native / "out" / "sub").mkdir(parents=True)
        self.mirror = self.union.mark("out", 0x0123456789AB)
        (self.union.root / "out" / "sub").mkdir()
        for root in (self.native, self.union.root):
            (root / "other").mkdir()
            make_odd_types(root / "other")
            for name in ("sub/deep.c", "trunk.c"):
                (root / "out" / name).write_text("")
        for i, name in enumerate([*ODD, *map(os.fsencode, PLAIN)]):
            leaf = self.union.leaf(f"n{1 + i % 2}.1", self.mirror, i % 3)
            for directory in (self.native / "out", leaf):
                with open(os.fsencode(directory) + b"/" + name, "wb"):
                    pass

    def words(self, command, words, root):
        result = subprocess.run([*command, *words, "-print0"], cwd=root, capture_output=True, env=environment(), check=True)
        assert result.stderr == b""
        return sorted(result.stdout.split(b"\0")[:-1])

    def both(self, *words):
        """What both find, which is the same."""
        native = self.words(["find"], words, self.native)
        assert self.words([self.tool, "find"], words, self.union.root) == native
        return native


@pytest.fixture
def trees(shunt, area):
    return Trees(shunt, area)


@pytest.mark.parametrize("pattern, count", [
    ("*", 25), ("*.c", 5), ("?.c", 2), ("[ab].c", 2), ("[!a]*.c", 4), (".*", 2), ("out", 1), ("star\\*", 1), ("\\[x]", 1),
    ("back\\\\slash", 1), ("-*", 1), ("new*line", 1), ("caf?", 1), ("*\t", 1), ("*/*", 0), ("", 0), ("out/a.c", 0), ("[", 0),
])
def test_name(trees, pattern, count):
    found = trees.both(".", "-name", pattern)
    devices = len({"character", "block"} & set(os.listdir(trees.native / "other")))
    assert len(found) == (count + devices if pattern == "*" else count)


def test_name_that_is_no_text(trees):
    for pattern in (b"\xff*", b"\xff\xfe", b"*\xfe"):
        assert trees.both(".", "-name", pattern) == [b"./out/\xff\xfe"]


@pytest.mark.parametrize("path", ["out", "out/", "out//", "./out", "./out/.", "out/sub/..", "out/a.c", "other/link"])
@pytest.mark.parametrize("name", ["out", "sub", "*.c", ".", "..", "link"])
def test_name_of_what_is_asked_for(trees, path, name):
    trees.both(path, "-name", name)


@pytest.mark.parametrize("pattern, least", [
    ("*", 20), ("./out/*.c", 5), ("./out*", 19), ("*/sub/*", 1), ("./*/*/*", 1), ("out/*", 0), ("./o?t", 1), (".[/]out", 0),
    ("*hidden", 1), ("*line", 1), (".", 1),
])
def test_path_is_matched_as_it_is_printed(trees, pattern, least):
    assert len(trees.both(".", "-path", pattern)) >= least


def test_path_with_other_spellings(trees):
    assert trees.both("out/", "-path", "out/*.c") and trees.both("./out/sub/..", "-path", "*/../a.c")
    assert trees.both("out", "other", "-path", "out*") and trees.both("out/a.c", "-path", "out/a.c")


@pytest.mark.parametrize("letter", "fdlpsbc")
def test_type(trees, letter):
    found = trees.both(".", "-type", letter)
    assert found or (letter in "bc" and not (trees.native / "other" / "block").exists())


@pytest.mark.parametrize("words", [
    ["-name", "*.c", "-type", "f", "-path", "*sub*"], ["-name", "a*", "-name", "*c"], ["-type", "f", "-type", "d"],
    ["-path", "./out*", "-path", "*.c", "-name", "?.c"], ["-type", "d", "-name", "sub"],
])
def test_conditions_are_all_to_hold(trees, words):
    trees.both(".", *words)


def test_branches_are_all_to_hold(shunt, trees):
    def found(*words):
        return shunt("find", "out", *words, cwd=trees.union.root).check().splitlines()
    assert "out/a.c" in found("-branch", "n2", "-name", "?.c") and "out/a.c" in found("-branch", "n2", "-branch", "n2.1")
    assert found("-branch", "n1", "-branch", "n2") == []
    assert found("-trunk", "-type", "f") == ["out/trunk.c", "out/sub/deep.c"]


def test_print_is_what_is_done_anyway(shunt, trees):
    native = run(["find", "out", "-type", "f", "-print"], cwd=trees.native).check()
    for words in (["-print"], []):
        found = shunt("find", "out", "-type", "f", *words, cwd=trees.union.root).check()
        assert sorted(found.splitlines()) == sorted(native.splitlines())


# Questions that nobody thought of.

PIECES = [b"a", b"b", b"x", b".", b"-", b" ", b"\n", b"*", b"?", b"[", b"]", b"\\", b"!", b"^", b"\xc3\xa9", b"\xff", b"\xc3", b"\x01"]


def random_name(chance):
    return next(name for name in iter(lambda: b"".join(chance.choices(PIECES, k=chance.randint(1, 5))), None)
                if name not in (b".", b".."))


def random_pattern(chance, text):
    """One that may well match this text, or is no pattern at all."""
    forms = [lambda one: one] * 8 + [
        lambda one: b"*", lambda one: b"?", lambda one: b"[" + one + b"]", lambda one: b"[!" + chance.choice(PIECES) + b"]",
        lambda one: b"\\" + one, lambda one: b"[[:alpha:]]", lambda one: chance.choice(PIECES), lambda one: b"[a-z]"]
    return b"".join(chance.choice(forms)(text[i:i + 1]) for i in range(len(text)))


class RandomTrees:
    """The same names twice, as in Trees, at random."""

    def __init__(self, chance, area):
        self.native, self.union, self.directories, self.names = area / "native", Union(area / "union"), [b"."], []
        self.native.mkdir()
        mirrors = {}
        for number in range(1, chance.randint(2, 7)):
            path = self.make(chance, lambda root, at: os.mkdir(at))
            self.directories.append(path)
            if chance.random() < 0.6:
                mirrors[path] = f"m-{number:012x}"
                self.union.write_marker(os.fsdecode(path), mirrors[path], path="out")
        for _ in range(chance.randint(5, 30)):
            kind = chance.choice(["file"] * 8 + ["link", "fifo"])
            leaf = chance.choice(["n1.1", "n2.3"]), chance.randint(0, 3)
            target = chance.choice([b"a", b".", b"nowhere"])

            def put(root, at):
                mirror = mirrors.get(os.path.dirname(os.path.relpath(at, os.fsencode(self.union.root))))
                if kind == "link":
                    os.symlink(target, at)
                elif kind == "fifo":
                    os.mkfifo(at)
                elif root != self.union.root or mirror is None:
                    os.close(os.open(at, os.O_CREAT))
                else:
                    at = os.fsencode(self.union.leaf(leaf[0], mirror, leaf[1])) + b"/" + os.path.basename(at)
                    os.close(os.open(at, os.O_CREAT))
            self.names.append(self.make(chance, put))

    def make(self, chance, put):
        """A new name in both; its path below the roots."""
        while os.path.lexists(os.fsencode(self.native) + b"/" + (path := os.path.normpath(
                chance.choice(self.directories) + b"/" + random_name(chance)))):
            pass
        for root in (self.native, self.union.root):
            put(root, os.fsencode(root) + b"/" + path)
        return path

    def question(self, chance):
        paths, words = [], []
        for _ in range(chance.randint(0, 2)):
            path = b"./" * chance.randint(0, 1) + chance.choice(self.directories + self.names)
            slashes = chance.choice([b"", b"/", b"//", b"/./"]) if os.path.isdir(os.fsencode(self.native) + b"/" + path) else b""
            paths.append((b"./" if path[:1] in (b"-", b"!", b"(") else b"") + path + slashes)
        for _ in range(chance.randint(0, 3)):
            path = b"./" + chance.choice(self.directories + self.names)
            words += chance.choice([[b"-name", random_pattern(chance, os.path.basename(path))],
                                    [b"-path", random_pattern(chance, path) + b"*" * chance.randint(0, 1)],
                                    [b"-type", chance.choice([b"f", b"d", b"l", b"p"])]])
        return [*paths, *words, b"-print0"]


@pytest.mark.parametrize("seed", range(8))
def test_random_questions(shunt, area, seed):
    chance = random.Random(seed)
    trees = RandomTrees(chance, area)
    for _ in range(40):
        question, locale = trees.question(chance), chance.choice(["C", "C.UTF-8"])
        native, shunted = (subprocess.run([*command, *question], cwd=root, capture_output=True, env=environment(LC_ALL=locale))
                           for command, root in ((["find"], trees.native), ([shunt.path, "find"], trees.union.root)))
        assert sorted(shunted.stdout.split(b"\0")) == sorted(native.stdout.split(b"\0")), (question, locale)
        assert shunted.returncode == native.returncode, (question, locale, shunted.stderr)


def as_json_has_it(name):
    """shunt(1): a byte that is no part of valid UTF-8 is a character of its own value."""
    return "".join(chr(ord(one) - 0xdc00) if "\udc80" <= one <= "\udcff" else one for one in os.fsdecode(name))


def names_of(entries, before=""):
    """{path: type} of what tree --json prints, at every depth."""
    found = {}
    for entry in entries:
        found |= {before + entry["name"]: entry["type"], **names_of(entry.get("entries", []), before + entry["name"] + "/")}
    return found


@pytest.mark.parametrize("seed", range(100, 104))
def test_all_that_look_see_the_same(shunt, area, seed):
    """names, ls, tree, stat and where agree with each other, with find(1) and with ls(1)."""
    trees = RandomTrees(random.Random(seed), area)

    def said(*words, command=(shunt.path,), cwd=trees.union.root):
        return subprocess.run([*command, *words], cwd=cwd, capture_output=True, check=True, env=environment()).stdout
    native = said(".", "-mindepth", "1", "-printf", "%P\\0%y\\0", command=["find"], cwd=trees.native).split(b"\0")
    types = {"f": "file", "d": "directory", "l": "link", "p": "fifo"}
    kinds = {path: types[letter.decode()] for path, letter in zip(native[0:-1:2], native[1::2])}
    names = said("names", "-0", ".").split(b"\0")[:-1]
    shown = {as_json_has_it(path): kind for path, kind in kinds.items()}
    assert sorted(names) == sorted(kinds)
    assert names_of(json.loads(said("tree", "-a", "--json", "."))["entries"]) == shown
    assert {one["path"].removeprefix("./"): one["type"] for one in json.loads(said("ls", "-aR", "--json", "."))} == shown
    assert said("ls", "-R", ".") == said("-RN", ".", command=["ls"], cwd=trees.native)
    for name, line in zip(names, said("names", "--json", ".").splitlines(), strict=True):
        one, [stat_of] = json.loads(line), json.loads(said("stat", "--json", b"./" + name))
        where = said("where", b"./" + name).removesuffix(b"\n")
        assert (one["path"], one["type"], one["where"]) == (as_json_has_it(name), kinds[name], as_json_has_it(where))
        assert {key: stat_of[key] for key in ("ino", "type", "branch", "leaf", "where")} == \
            {key: one[key] for key in ("ino", "type", "branch", "leaf", "where")}
        real = os.lstat(where)
        assert (stat_of["ino"], stat_of["mtime_ns"], stat_of["nlink"]) == (real.st_ino, real.st_mtime_ns, real.st_nlink)


# -newer


def age(path, hours):
    os.utime(path, ns=(NOW, NOW - hours * HOUR))


def native_newer(trees, *references):
    """Of a plain tree: all that lies in directories that the find of the system says are newer."""
    tests = [word for reference in references for word in ("-newer", reference)]
    directories = run(["find", ".", "-type", "d", *tests], cwd=trees.native).check().splitlines()
    found = [b"."] if run(["find", "..", "-maxdepth", "0", *tests], cwd=trees.native).check() else []
    for directory in directories:
        found += subprocess.run(["find", directory, "-mindepth", "1", "-maxdepth", "1", "-print0"], cwd=trees.native,
                                capture_output=True, check=True).stdout.split(b"\0")[:-1]
    return sorted(found)


@pytest.mark.parametrize("hours", [0, 2, 4, 6, 8, 9, 10])
def test_newer_is_a_question_about_the_directory(trees, area, hours):
    (area / "stamp").write_text("")
    age(area / "stamp", hours)
    ages = {".": 1, "out": 3, "out/sub": 5, "other": 7}
    for root in (trees.native, trees.union.root):
        for name, since in ages.items():
            age(root / name, since)
        for name in ("out/trunk.c", "out/sub/deep.c"):  # of the names themselves it is not asked
            age(root / name, 0 if hours > 5 else 9)
    for number in range(3):
        for branch in ("n1.1", "n2.1"):
            age(trees.union.leaf(branch, trees.mirror, number), 3)
    age(area, 9)
    found = trees.words([trees.tool, "find"], [".", "-newer", area / "stamp"], trees.union.root)
    assert found == native_newer(trees, area / "stamp")


def test_newer_of_a_leaf(shunt, trees, area):
    (area / "stamp").write_text("")
    age(area / "stamp", 2)
    for path in (area, trees.union.root, *(trees.union.root / name for name in ("out", "other", "out/sub"))):
        age(path, 3)
    for number in range(3):
        for branch in ("n1.1", "n2.1"):
            age(trees.union.leaf(branch, trees.mirror, number), 1 if (branch, number) == ("n1.1", 2) else 3)
    leaf = trees.union.leaf("n1.1", trees.mirror, 2)
    found = trees.words([trees.tool, "find"], [".", "-newer", area / "stamp"], trees.union.root)
    assert found and found == sorted(b"./out/" + name for name in os.listdir(os.fsencode(leaf)))
    name = os.fsdecode(found[0])
    assert shunt("find", name, "-newer", area / "stamp", "-count", cwd=trees.union.root).check() == "1\n"
    assert shunt("find", "out/trunk.c", "-newer", area / "stamp", "-count", cwd=trees.union.root).check() == "0\n"


def test_newer_takes_a_file_of_a_branch_links_and_several(shunt, trees, area):
    (area / "old").write_text("")
    age(area / "old", 9)
    file = trees.union.put("n1.1", trees.mirror, "stamp")
    age(file, 4)
    (area / "to-stamp").symlink_to(trees.union.root / "out" / "stamp")
    age(trees.union.root, 3)
    age(trees.union.root / "other", 5)

    def found(*words):
        out = shunt("find", "other", *(word for one in words for word in ("-newer", one)), cwd=trees.union.root).check()
        return len(out.splitlines())
    assert found("out/stamp") == found(area / "to-stamp") == found(area / "old", "out/stamp") == 1
    assert found("out/stamp", area / "old") == 1 and found(area / "old") > 4
    age(file, 3)
    assert found("out/stamp") == 0  # of the same time is not newer


def test_newer_makes_no_stat_of_a_name(trees, area):
    for i in range(300):
        trees.union.put("n1.1", trees.mirror, f"many{i}")
    log = area / "log"
    run(["strace", "-f", "-o", log, "-e", "trace=statx,newfstatat,lstat,stat", trees.tool, "find", trees.union.root,
         "-newer", "/"]).check()
    assert "many" not in log.read_text() and len(log.read_text().splitlines()) < 200


# -count, and how it ends


def test_count(shunt, trees):
    for words in ([], ["-name", "*.c"], ["-type", "d"], ["-name", "nothing"]):
        assert shunt("find", ".", *words, "-count", cwd=trees.union.root).check() == f"{len(trees.both('.', *words))}\n"
    assert shunt("find", "out/a.c", "out/sub", "-count", cwd=trees.union.root).check() == "3\n"


def test_count_of_what_could_be_looked_at(shunt, trees):
    result = shunt("find", "missing", "out/sub", "-count", cwd=trees.union.root)
    assert result.check(1) == "2\n" and result.err.startswith("shunt: missing: no such file or directory")


@pytest.mark.parametrize("words, status, sentence", [
    (["-type", "x"], 2, "-type 'x': not one of f, d, l, p, s, b and c (see 'shunt find --help')"),
    (["-type", ""], 2, "-type '': not one of f, d, l, p, s, b and c (see 'shunt find --help')"),
    (["-type", "fd"], 2, "-type 'fd': not one of f, d, l, p, s, b and c (see 'shunt find --help')"),
    (["-count", "-print0"], 2, "-count, -print and -print0 exclude each other (see 'shunt find --help')"),
    (["-print", "-print0"], 2, "-count, -print and -print0 exclude each other (see 'shunt find --help')"),
    (["-print", "-count"], 2, "-count, -print and -print0 exclude each other (see 'shunt find --help')"),
    (["-trunk", "-branch", "n1"], 2, "-branch and -trunk exclude each other (see 'shunt find --help')"),
    (["-newer"], 2, "an argument is missing after '-newer' (see 'shunt find --help')"),
    (["-path"], 2, "an argument is missing after '-path' (see 'shunt find --help')"),
    (["-newer", "gone"], 1,
     "gone: has no time for -newer to compare with: No such file or directory (name a file that exists)"),
    (["-newer", "/nowhere/gone"], 1,
     "/nowhere/gone: has no time for -newer to compare with: No such file or directory (name a file that exists)"),
])
def test_mistakes(shunt, trees, words, status, sentence):
    result = shunt("find", *words, cwd=trees.union.root)
    assert (result.check(status), result.err) == ("", f"shunt: {sentence}\n")


def test_many_directories_are_told_in_order(shunt, trees):
    """They are listed by several threads: each directory, its files, and what is below, in the order of names."""
    expected = []
    for number in range(400):
        directory = trees.union.root / "tree" / f"{number // 100}" / f"{number // 10 % 10}" / f"{number % 10}"
        directory.mkdir(parents=True)
        (directory / "file").write_text("")
    for at, directories, files in os.walk(trees.union.root / "tree"):
        directories.sort()
        expected += [at, *(os.path.join(at, name) for name in files)]
    for _ in range(5):
        assert shunt("find", trees.union.root / "tree").check().splitlines() == expected
    for descriptors in (24, 64):
        few = run(["prlimit", f"--nofile={descriptors}:{descriptors}", trees.tool, "find", trees.union.root / "tree"])
        assert few.check().splitlines() == expected


def test_a_reader_that_has_enough(trees):
    for i in range(3000):
        trees.union.put("n1.1", trees.mirror, f"many{i}")
    script = 'set -o pipefail; trap "{}" PIPE; "$0" find "$1" | head -n 1; echo ${{PIPESTATUS[0]}}'
    killed = run(["bash", "-c", script.format("-"), trees.tool, trees.union.root])
    assert killed.check().splitlines() == [str(trees.union.root), "141"] and killed.err == ""
    told = run(["bash", "-c", script.format(""), trees.tool, trees.union.root])
    assert told.check().splitlines() == [str(trees.union.root), "1"]
    assert told.err == "shunt: standard output: cannot be written: Broken pipe (check the disk or the program that it goes to)\n"
