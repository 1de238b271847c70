# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The shunt command on unions made by hand, with no daemon: what it shows, what it changes, what it refuses."""

import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time

import pytest

import manual
from conftest import REPOSITORY, assert_plain, environment, run
from immutable import immutable
from union_on_disk import Union, beating_elsewhere, session_of, snapshot

LIVES_LONG = 10**9 * 1_500_000_000


@pytest.fixture
def union(root):
    """out/ with two files in the trunk, three in two branches; plain/ as it is; a link, and a hidden name."""
    made = Union(root)
    mirror = made.mark("out", 0x0123456789AB)
    (root / "out" / "a").write_text("in the trunk")
    (root / "out" / "sub").mkdir()
    (root / "out" / "sub" / "deep").write_text("deep")
    made.put("n1.1", mirror, "b", "first branch")
    made.put("n1.1", mirror, "c", "other leaf", leaf=3)
    made.put("n2.4", mirror, ".hidden", "second branch")
    (root / "out" / "link").symlink_to("b")
    (root / "plain").mkdir()
    (root / "plain" / "x").write_text("x")
    (root / "to-out").symlink_to("out")
    made.mirror = mirror
    return made


def branch_path(union, branch, name, leaf=0):
    return union.root / ".shunt" / "b" / branch / union.mirror / str(leaf) / name


# What ls and its like show


def test_ls_lists_the_union(shunt, union):
    assert shunt("ls", union.root / "out").check() == "a\nb\nc\nlink\nsub\n"
    assert shunt("ls", "-a", "out", cwd=union.root).check() == ".\n..\n.hidden\na\nb\nc\nlink\nsub\n"


def test_ls_lists_the_root_without_what_is_shunts_own(shunt, union):
    assert shunt("ls", union.root).check() == "out\nplain\nto-out\n"
    assert ".shunt" not in shunt("ls", "-a", "-R", union.root).check()


@pytest.mark.parametrize("spelling", ["out", "./out/", "to-out", "plain/../out", "out/sub/.."])
def test_ls_takes_any_spelling(shunt, union, spelling):
    assert "b\nc\n" in shunt("ls", spelling, cwd=union.root).check()


def test_ls_from_within_and_through_a_link_from_outside(shunt, union, area):
    assert "b\nc\n" in shunt("ls", cwd=union.root / "out").check()
    (area / "outside").symlink_to(union.root / "out")
    (area / "file").symlink_to(union.root / "out" / "b")
    assert "b\nc\n" in shunt("ls", area / "outside").check()
    assert shunt("where", area / "file").check() == f"{branch_path(union, 'n1.1', 'b')}\n"


def test_ls_long_is_as_that_of_ls(shunt, union):
    native = run(["ls", "-l", "plain"], cwd=union.root).check()
    assert shunt("ls", "-l", "plain", cwd=union.root).check() == native
    os.chmod(branch_path(union, "n1.1", "b"), 0o4751)
    os.utime(branch_path(union, "n1.1", "b"), ns=(LIVES_LONG, LIVES_LONG))
    line = next(line for line in shunt("ls", "-l", union.root / "out").check().splitlines() if line.endswith(" b"))
    user = pwd.getpwuid(os.getuid()).pw_name
    assert line.split()[:3] == ["-rwsr-x--x", "1", user]
    assert line.split()[4:] == ["12", "Jul", "14", "2017", "b"]


def test_ls_long_of_every_type_is_as_that_of_ls(shunt, union):
    odd = union.root / "odd"
    odd.mkdir()
    os.mkfifo(odd / "fifo")
    (odd / "dangling").symlink_to("nowhere")
    (odd / "sticky").mkdir(mode=0o755)
    os.chmod(odd / "sticky", 0o3777)
    if os.geteuid() == 0:
        try:
            os.mknod(odd / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pass
    for words in (["-l", "odd"], ["-ld", "odd", "odd/dangling"], ["-la", "odd"], ["-1", "odd/dangling"]):
        native = [line.split() for line in run(["ls", *words], cwd=union.root).check().splitlines()]
        assert [line.split() for line in shunt("ls", *words, cwd=union.root).check().splitlines()] == native


def test_ls_recursive_is_as_that_of_ls(shunt, union):
    native = run(["ls", "-R", "plain"], cwd=union.root).check()
    assert shunt("ls", "-R", "plain", cwd=union.root).check() == native
    assert shunt("ls", "-R", "out", cwd=union.root).check() == "out:\na\nb\nc\nlink\nsub\n\nout/sub:\ndeep\n"


def test_ls_of_several_puts_files_first(shunt, union):
    assert shunt("ls", "out/sub", "out/b", "plain", cwd=union.root).check() == "out/b\n\nout/sub:\ndeep\n\nplain:\nx\n"
    assert shunt("ls", "-d", "out", "plain/", cwd=union.root).check() == "out\nplain/\n"


def test_ls_follows_a_link_at_the_end_as_ls_does(shunt, union):
    assert shunt("ls", "-l", "to-out", cwd=union.root).check().endswith("to-out -> out\n")
    assert shunt("ls", "-l", "to-out/", cwd=union.root).check().count("\n") == 6


def test_ls_prints_columns_on_a_terminal(shunt, union):
    terminal, end = os.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    subprocess.run([shunt.path, "ls", union.root / "out"], stdout=end, check=True, env=environment())
    said = b""
    while said.count(b"\n") < 2: # a terminal gives a line at a time
        said += os.read(terminal, 1000)
    os.close(end)
    assert said == b"a     c     sub\r\nb     link\r\n"
    os.close(terminal)


CONTROL = "c\x1b[2J\n\x07\x7f\x9b1m"


def on_terminal(cwd, *command):
    """All that it says there."""
    terminal, end = os.openpty()
    process = subprocess.Popen(command, cwd=cwd, stdout=end, stderr=end, env=environment())
    os.close(end)
    said = b""
    with contextlib.suppress(OSError):  # EIO: nothing has it open any more
        while more := os.read(terminal, 4096):
            said += more
    os.close(terminal)
    process.wait()
    return said.decode()


@pytest.mark.parametrize("words", [
    ["ls", CONTROL], ["ls", "-laR"], ["ls", "gone" + CONTROL], ["where", CONTROL, CONTROL + "/file"], ["stat", CONTROL + "/link"],
    ["tree"], ["tree", CONTROL], ["find"], ["find", "gone" + CONTROL], ["names", "."], ["names", CONTROL], ["fsck", "."],
    ["export", "--dry-run", "."], ["status", "--root", "."], ["doctor", "--root", "."], ["export", "--live", "."], ["gone" + CONTROL], ["ls", "--" + CONTROL],
], ids=lambda words: ascii(" ".join(words)))
def test_no_control_character_of_a_name_comes_to_a_terminal(shunt, area, words):
    union = Union(area / f"root{CONTROL}")
    mirror = "m-0123456789ab"
    (union.root / CONTROL).mkdir()
    union.write_marker(CONTROL, mirror, path="m")
    union.put("n1.1", mirror, "file")
    union.put("n1.1", mirror, CONTROL)
    union.leaf("n1.1", "gone-0000000000ff")
    (union.root / CONTROL / "link").symlink_to(CONTROL)
    said = on_terminal(union.root, shunt.path, *words)
    assert "c?[2J????1m" in said or words[0] == "export"
    assert not re.search("[\x00-\x1f\x7f-\x9f]", said.replace("\r\n", "")), ascii(said)


def test_ls_json(shunt, union):
    entries = {entry["path"]: entry for entry in json.loads(shunt("ls", "--json", "-a", "out", cwd=union.root).check())}
    assert list(entries) == ["out/.hidden", "out/a", "out/b", "out/c", "out/link", "out/sub"]
    assert entries["out/c"]["branch"] == "n1.1" and entries["out/c"]["leaf"] == 3
    assert entries["out/c"]["where"] == str(branch_path(union, "n1.1", "c", 3))
    assert entries["out/c"]["size"] == len("other leaf") and entries["out/c"]["type"] == "file"
    assert entries["out/a"]["branch"] is None and entries["out/a"]["where"] == str(union.root / "out" / "a")
    assert entries["out/link"]["target"] == "b"
    real = branch_path(union, "n1.1", "b").stat()
    assert entries["out/b"]["mtime_ns"] == real.st_mtime_ns and entries["out/b"]["ino"] == real.st_ino


def test_json_of_names_that_are_no_utf8(shunt, union):
    for name in (b"\xff\"\\\n", b"\xc3\xa9", b"\xed\xa0\x80", b"a\xc3"):
        with open(os.fsencode(union.root / "plain") + b"/" + name, "w"):
            pass
    text = shunt("ls", "--json", "plain", cwd=union.root).check()
    assert '\\u00ff\\"\\\\\\u000a' in text
    names = {entry["path"] for entry in json.loads(text)}
    assert names == {"plain/x", 'plain/\xff"\\\n', "plain/\u00e9", "plain/\xed\xa0\x80", "plain/a\xc3"}


def test_stat(shunt, union):
    out = shunt("stat", "out/b", "out/link", "out", cwd=union.root).check()
    assert f" Where: {branch_path(union, 'n1.1', 'b')}\nBranch: n1.1  Leaf: 0\n" in out
    assert "  File: out/link -> b\n" in out and "Branch: the trunk\n" in out
    native = run(["stat", branch_path(union, "n1.1", "b")]).check().splitlines()
    ours = shunt("stat", "out/b", cwd=union.root).check().splitlines()
    assert [line.split() for line in ours[3:8]] == [line.split() for line in native[3:8]]
    [entry] = json.loads(shunt("stat", "--json", "out/b", cwd=union.root).check())
    assert entry["path"] == "out/b" and entry["branch"] == "n1.1"


def test_where(shunt, union):
    out = shunt("where", "out/a", "out/b", "out/sub/deep", ".", "out", cwd=union.root).check().splitlines()
    root = union.root
    assert out == [f"{root}/out/a", str(branch_path(union, "n1.1", "b")), f"{root}/out/sub/deep", str(root),
                   f"{root}/out"]


def test_tree(shunt, union):
    assert shunt("tree", "out", cwd=union.root).check() == (
        "out\n|-- a\n|-- b  [n1.1]\n|-- c  [n1.1]\n|-- link -> b\n`-- sub\n    `-- deep\n"
        "\n1 directory, 5 files, 2 of them redirected\n")
    made = json.loads(shunt("tree", "-a", "--json", cwd=union.root).check())
    out = next(entry for entry in made["entries"] if entry["name"] == "out")
    assert {entry["name"]: entry["branch"] for entry in out["entries"]} == {
        ".hidden": "n2.4", "a": None, "b": "n1.1", "c": "n1.1", "link": None, "sub": None}
    assert out["entries"][-1]["entries"][0]["name"] == "deep"


@pytest.mark.parametrize("words, expected", [
    (["-name", "?"], {"", "out/a", "out/b", "out/c", "plain/x"}),
    (["-type", "d"], {"", "out", "out/sub", "plain"}),
    (["-type", "l"], {"out/link", "to-out"}),
    (["-branch", "n1.1"], {"out/b", "out/c"}),
    (["-branch", "n2"], {"out/.hidden"}),
    (["-trunk", "-type", "f"], {"out/a", "out/sub/deep", "plain/x"}),
])
def test_find(shunt, union, words, expected):
    out = shunt("find", ".", *words, cwd=union.root).check().splitlines()
    assert {line[2:] for line in out} == expected
    zeroes = shunt("find", *words, "-print0", cwd=union.root).check()
    assert sorted(zeroes.split("\0")[:-1]) == sorted(out)


def test_find_finds_what_native_find_does_in_a_plain_tree(shunt, union):
    for spelling in ("plain", "plain/", union.root / "plain", "plain/x"):
        native = run(["find", spelling], cwd=union.root).check()
        assert shunt("find", spelling, cwd=union.root).check() == native


@pytest.fixture
def deep(union):
    """A path with more directories than a process may have descriptors. Python's own rmtree is not up to it."""
    path = "plain"
    for _ in range(1200):
        path += "/d"
        os.mkdir(union.root / path)
    (union.root / path / "end").write_text("")
    yield path
    run(["rm", "-r", union.root / "plain"]).check()


def test_deep_trees(shunt, union, deep):
    limited = ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", shunt.path]
    assert f"{deep}/end\n" in run([*limited, "find", "plain"], cwd=union.root).check()
    assert run([*limited, "ls", "-R", "plain"], cwd=union.root).check().endswith("end\n")
    assert run([*limited, "where", f"{deep}/end"], cwd=union.root).check() == f"{union.root}/{deep}/end\n"
    run([*limited, "export", union.root]).check()
    assert not (union.root / ".shunt").exists()


def test_a_copied_directory_shows_its_own_files_alone(shunt, union):
    (union.root / "copy").mkdir()
    union.write_marker("copy", union.mirror, written_for="out")
    (union.root / "copy" / "mine").write_text("")
    assert shunt("ls", union.root / "copy").check() == "mine\n"


def test_a_conflict_is_shown_under_two_names(shunt, union):
    (union.root / "out" / "b").write_text("")
    assert shunt("ls", "out", cwd=union.root).check() == "a\nb\nb.shunt-conflict-trunk\nc\nlink\nsub\n"
    assert shunt("where", "out/b", "out/b.shunt-conflict-trunk", cwd=union.root).check().splitlines() == [
        str(branch_path(union, "n1.1", "b")), str(union.root / "out" / "b")]


# What is wrong


@pytest.mark.parametrize("words, status, sentence", [
    ([], 2, "no subcommand is given"),
    (["frobnicate"], 2, "unknown subcommand 'frobnicate'"),
    (["--frobnicate"], 2, "unknown option '--frobnicate'"),
    (["ls", "--frobnicate"], 2, "unknown option '--frobnicate'"),
    (["ls", "-lx"], 2, "unknown option '-x'"),
    (["tree", "--json=yes"], 2, "unknown option"),
    (["find", "-frobnicate"], 2, "unknown option '-frobnicate'"),
    (["find", "-name"], 2, "an argument is missing after '-name'"),
    (["find", "-type", "x"], 2, "-type 'x': not one of"),
    (["find", "-trunk", "-branch", "n1"], 2, "exclude each other"),
    (["stat"], 2, "no path is given"),
    (["where"], 2, "no path is given"),
    (["tree", "a", "b"], 2, "unexpected argument 'b'"),
    (["export"], 2, "exactly one root is required"),
    (["export", "--live", "--copy", "."], 2, "--live goes with none of"),
    (["export", "--quiet", "5", "."], 2, "go with --live alone"),
    (["export", "--live", "--quiet", "0", "."], 2, "--quiet '0': not a number"),
    (["export", "--live", "--node", "n1", "."], 1, "no daemon of node 'n1' serves it here"),
    (["fsck", "--restore", "--delete", "."], 2, "exclude each other"),
    (["help", "frobnicate"], 2, "unknown subcommand 'frobnicate'"),
    (["run", "--", "true"], 2, "no root is given"),
    (["start"], 2, "no root is given"),
    (["start", "--root", "missing"], 2, "missing: does not exist"),
    (["run", "--root", "", "--", "true"], 2, "a root is given as an empty word"),
    (["ls", ""], 1, "'': no such file"),
    (["export", ""], 1, "'': no such file"),
    (["umount", ""], 1, "'': cannot be unmounted"),
    (["mount", ".", ""], 2, "'': cannot be mounted on"),
    (["bench", ""], 1, "'': cannot be measured"),
    (["stop", "--root", "plain/x"], 2, "not a directory"),
    (["exec", "--root", "."], 2, "no command is given"),
    (["start", "--root", ".", "--node", "a/b"], 2, "node name 'a/b': invalid"),
    (["start", "--root", ".", "--placement", "x"], 2, "--placement 'x': neither auto nor branch"),
    (["run", "--root", ".", "--leaf-full", "0", "true"], 2, "--leaf-full '0': not a number"),
    (["export", "a", "b"], 2, "exactly one root is required"),
    (["ls", "missing"], 1, "missing: no such file"),
    (["ls", "plain/x/y"], 1, "plain/x/y: "),
    (["ls", ".shunt"], 1, "belongs to shunt"),
    (["ls", "/"], 1, "in no root"),
    (["where", "out/.shunt-dir"], 1, "belongs to shunt"),
    (["stat", "plain/x/"], 1, "Not a directory"),
    (["ls", "x" * 300], 1, "no such file"),
    (["ls", "x/" * 3000], 1, "too long"),
    (["export", "missing"], 1, "no such file"),
    (["export", "out"], 1, "only a whole root can be exported"),
    (["fsck", "plain"], 2, "not a root"),
])
def test_every_mistake_is_one_sentence(shunt, union, words, status, sentence):
    result = shunt(*words, cwd=union.root)
    result.check(status)
    assert result.out == "" and result.err.startswith("shunt: ") and sentence in result.err
    assert result.err.count("\n") == 1


def test_ls_goes_on_after_an_error(shunt, union):
    result = shunt("ls", "missing", "plain", cwd=union.root)
    assert result.check(1) == "plain:\nx\n" and result.err.count("\n") == 1


def test_links_in_a_circle(shunt, union):
    (union.root / "plain" / "one").symlink_to("two")
    (union.root / "plain" / "two").symlink_to("one")
    assert "symbolic links" in shunt("ls", "plain/one/", cwd=union.root).err


def test_a_marker_that_is_none(shunt, union):
    (union.root / "plain" / ".shunt-dir").write_text("nonsense")
    result = shunt("ls", "plain", cwd=union.root)
    result.check(1)
    assert "its .shunt-dir is damaged" in result.err and "fsck" in result.err


def test_standard_output_that_is_full(shunt, union):
    result = run(["bash", "-c", '"$0" ls "$1" >/dev/full', shunt.path, union.root])
    result.check(1)
    assert "standard output: cannot be written" in result.err


@pytest.mark.parametrize("words", [["ls", "-R"], ["ls", "-lR"], ["ls", "-R", "--json"], ["tree"], ["tree", "--json"], ["find"], ["names"]],
                         ids=" ".join)
def test_nothing_more_is_listed_once_the_output_is_full(shunt, union, area, words):
    for number in range(1500):
        (union.root / "plain" / f"{'many' * 20}{number}").mkdir()
    log = area / "calls"
    result = run(["strace", "-f", "-qq", "-o", log, "-e", "trace=openat", "bash", "-c", '"$@" >/dev/full', "sh", shunt.path, *words,
                  union.root])
    assert "No space left on device" in result.err and result.check(1) == ""
    opened = log.read_text().count("many" * 20)
    assert opened < 1000


SUBCOMMANDS = ["run", "start", "exec", "env", "mount", "umount", "stop", "status", "cleanup", "config", "doctor", "ls", "stat", "tree", "where", "find", "names", "export", "fsck", "bench"]


def test_help_is_one_table(shunt):
    overview = shunt("--help").check()
    assert overview == shunt("help").check() and "prove" not in overview
    for subcommand in SUBCOMMANDS:
        assert f"\n  {subcommand}" in overview
        text = shunt(subcommand, "--help").check()
        assert text == shunt("help", subcommand).check() and text.startswith(f"usage: shunt {subcommand}")
        lines = text.splitlines()[4:]
        for line, after in zip(lines, [*lines[1:], ""]):  # what an option is for begins in one column
            words = after if after.startswith(" " * 25) else line
            assert words[24] == " " and words[25] != " ", line
    assert shunt("--version").check().startswith("shunt ")


def test_every_option_is_in_the_man_page(shunt):
    for subcommand in SUBCOMMANDS:
        text = manual.page_of(subcommand).read_text().split("\n.SH DESCRIPTION\n")[1]
        words_of_page = re.findall(r"[\w-]+", re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-"))
        for line in shunt(subcommand, "--help").check().splitlines()[4:]:
            for word in line[:24].replace(",", " ").split():
                assert not word.startswith("-") or word in words_of_page, f"{subcommand} {word}"


def test_the_manual_of_the_library_names_all_that_it_has():
    header = (REPOSITORY / "include" / "shunt" / "shunt.h").read_text()
    functions, fields = set(re.findall(r"\b(shunt_\w+)\(", header)), re.findall(r"^    [\w ]+[ *](\w+);", header, re.M)
    page = (REPOSITORY / "lib" / "api" / "libshunt.3").read_text()
    synopsis = page.split(".SH SYNOPSIS\n")[1].split(".SH ")[0]
    assert len(functions) == 6 and set(re.findall(r"\b(shunt_\w+)\(", synopsis)) == functions
    assert len(fields) == 5 and set(fields) <= manual.italics(page)


def test_the_synopses_of_the_man_pages_have_every_subcommand_once_and_its_options(shunt):
    subcommands = re.findall(r"^  ([a-z]+) ", shunt("help").check(), re.M)
    assert subcommands == [*SUBCOMMANDS, "help"]
    synopses = [(page, *synopsis) for page in manual.PAGES for synopsis in manual.synopses(page)]
    names = [name for _, name, _ in synopses]
    assert sorted(names) == sorted(["shunt", *(f"shunt {subcommand}" for subcommand in subcommands)])
    for page, name, line in synopses:
        if name == "shunt":
            continue
        subcommand = name.split()[1]
        assert page == manual.page_of(subcommand), name
        text = shunt("help", subcommand).check()
        usage, options = text.splitlines()[0], manual.options_of(text)
        assert manual.names_all(line, options), f"{subcommand} {line}"
        assert "[OPTION]" in usage or manual.names_all(usage, options), usage


def test_completion(shunt):
    script = pathlib.Path(__file__).resolve().parents[2] / "tools" / "shunt.bash"
    ask = ('source "$1"; COMP_WORDS=("$2" "${@:3}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
           '_shunt "$2"; printf "%s\\n" "${COMPREPLY[@]}"')

    def complete(*words):
        return run(["bash", "-c", ask, "-", script, shunt.path, *words]).check().split()

    assert complete("st") == ["start", "stop", "status", "stat"]
    assert complete("fsck", "--re") == ["--repair", "--restore"]
    assert complete("find", "-na") == ["-name"]
    assert complete("find", "-ne") == ["-newer"] and complete("find", "-type", "b") == ["b"]
    assert complete("run", "--placement", "b") == ["branch"]
    assert complete("cleanup", "--user", "roo") == ["root"]
    assert complete("env", "--container", "b") == ["bwrap"]
    assert complete("run", "--export", "n") == ["now", "never"] and complete("stop", "--export", "--n") == ["--node"]
    for subcommand in [*SUBCOMMANDS, "help"]:
        options = {spelling for pair in manual.options_of(shunt("help", subcommand).check()) for spelling in pair} | {"--help"}
        named = {spelling for spelling in options if len(spelling) > 2}
        assert named <= set(complete(subcommand, "-")) <= options, subcommand
    for subcommand, *words in (("run", "-p"), ("run", "--placement"), ("bench", "-p"), ("start", "-p")):
        assert complete(subcommand, *words, "b") == ["branch"]
    for subcommand, word in (("run", "-r"), ("run", "--root"), ("status", "-r"), ("doctor", "-r")):
        assert complete(subcommand, word, "/etc/ssl/c") == ["/etc/ssl/certs"]
    assert complete("cleanup", "-u", "roo") == ["root"]
    assert "/etc/passwd" in complete("export", "--hosts", "/etc/passw") and "/etc/passwd" in complete("stop", "--hosts", "/etc/passw")


# Export


NATIVE = {"out": None, "out/a": "in the trunk", "out/b": "first branch", "out/c": "other leaf",
          "out/.hidden": "second branch", "out/link": "b", "out/sub": None, "out/sub/deep": "deep",
          "plain": None, "plain/x": "x", "to-out": "out"}


def test_export_gives_the_plain_directory(shunt, union):
    inode = branch_path(union, "n1.1", "b").stat().st_ino
    for name, when in (("out", 1_600_000_000), (".", 1_600_000_001)):
        os.utime(union.root / name, ns=(when * 10**9 + 5, when * 10**9 + 7))
    out = shunt("export", union.root).check()
    assert out == f"exported 3 files in 1 directory: {union.root} is a plain directory\n"
    after = (union.root / "out").stat()
    assert (after.st_atime_ns, after.st_mtime_ns) == (1_600_000_000 * 10**9 + 5, 1_600_000_000 * 10**9 + 7)
    assert union.root.stat().st_mtime_ns == 1_600_000_001 * 10**9 + 7
    assert snapshot(union.root) == NATIVE
    assert (union.root / "out" / "b").stat().st_ino == inode
    assert shunt("export", union.root).check() == f"{union.root} is a plain directory already\n"


def test_export_dry_run_changes_nothing(shunt, union):
    before = snapshot(union.root)
    out = shunt("export", "--dry-run", union.root).check()
    assert out == "would export 3 files into out\nwould export 3 files in 1 directory\n"
    made = json.loads(shunt("export", "--dry-run", "--json", union.root).check())
    assert made.pop("seconds") >= 0
    made.pop("requests")  # null where the file system does not tell
    assert made == {"root": str(union.root), "dry_run": True, "files_per_second": None, "files": 3, "by_owners": 0, "copied": 0, "looked": 0,
                    "directories": 1, "conflicts": 0, "orphans": 0, "complete": True}
    assert snapshot(union.root) == before
    assert json.loads(shunt("export", "--json", union.root).check())["complete"] is True
    assert_plain(union.root)


def test_export_keeps_the_loser_of_a_conflict(shunt, union):
    (union.root / "out" / "b").write_text("")
    out = shunt("export", union.root).check()
    assert "conflict" in out
    assert snapshot(union.root) == {**NATIVE, "out/b.shunt-conflict-trunk": ""}


def test_export_of_a_file_with_two_links_to_one_name(shunt, union):
    """What a rename by link and unlink leaves when it is cut short."""
    os.link(branch_path(union, "n1.1", "b"), union.root / "out" / "b")
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE
    assert (union.root / "out" / "b").stat().st_nlink == 1


def test_export_of_unfinished_leaves_and_a_copied_marker(shunt, union):
    (union.leaf("n1.1", union.mirror).parent / ".new-12-9").mkdir()
    (union.root / "copy").mkdir()
    union.write_marker("copy", union.mirror, written_for="out")
    os.utime(union.root / "copy", ns=(LIVES_LONG, LIVES_LONG))
    shunt("export", union.root).check()
    assert snapshot(union.root) == {**NATIVE, "copy": None}
    assert (union.root / "copy").stat().st_mtime_ns == LIVES_LONG


def test_export_leaves_orphans_alone(shunt, union):
    union.put("n1.1", "gone-aaaaaaaaaaaa", "lost", "precious")
    union.leaf("n2.4", "empty-bbbbbbbbbbbb")
    result = shunt("export", union.root)
    result.check(1)
    assert "fsck --restore" in result.err and "fsck --delete" in result.err and "gone-aaaaaaaaaaaa" in result.err
    assert "empty-bbbbbbbbbbbb" not in result.err
    left = snapshot(union.root)
    assert left[".shunt/b/n1.1/gone-aaaaaaaaaaaa/0/lost"] == "precious"
    assert {name: left[name] for name in left if not name.startswith(".shunt")} == NATIVE
    shunt("fsck", "--restore", union.root).check(1)
    shunt("export", union.root).check()
    assert snapshot(union.root) == {**NATIVE, "shunt-restored": None, "shunt-restored/gone-aaaaaaaaaaaa": None,
                                    "shunt-restored/gone-aaaaaaaaaaaa/lost": "precious"}


def test_export_with_a_marker_that_is_none(shunt, union):
    (union.root / "plain" / ".shunt-dir").write_text("nonsense")
    union.put("n1.1", "plain-aaaaaaaaaaaa", "y", "precious")
    (union.root / "plain" / "below").mkdir()
    below = union.mark("plain/below", 0xCC)
    union.put("n1.1", below, "z", "below")
    result = shunt("export", union.root)
    result.check(1)
    assert "its .shunt-dir is damaged" in result.err and "of a directory that is gone" not in result.err
    left = snapshot(union.root)
    assert left["plain/below/z"] == "below" and left["out/b"] == "first branch"
    assert left[".shunt/b/n1.1/plain-aaaaaaaaaaaa/0/y"] == "precious"


def test_export_with_something_foreign(shunt, union):
    (union.root / ".shunt" / "b" / "n1.1" / "note").write_text("mine")
    result = shunt("export", union.root)
    result.check(1)
    assert "not belong to shunt" in result.err
    assert (union.root / ".shunt" / "b" / "n1.1" / "note").read_text() == "mine"
    os.unlink(union.root / ".shunt" / "b" / "n1.1" / "note")
    (union.root / ".shunt" / "note").write_text("mine")
    assert "not belong to shunt" in shunt("export", union.root).err
    os.unlink(union.root / ".shunt" / "note")
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


def test_export_with_something_foreign_in_a_mirror(shunt, union):
    """It is where leaves are: nothing says what it is, and the marker stays."""
    mirror = branch_path(union, "n1.1", "b").parents[1]
    (mirror / "note").write_text("mine")
    result = shunt("export", union.root)
    result.check(1)
    assert result.err == (f"shunt: {mirror}: something in it is not a leaf (move it back to its place if it was one, else "
                          "elsewhere, and run this again)\n")
    assert os.listdir(mirror) == ["note"] and (union.root / "out" / ".shunt-dir").exists()
    (mirror / "note").unlink()
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


@pytest.mark.parametrize("moved", ["b/n1.1", "b/n1.1/MIRROR"])
def test_it_is_said_before_a_session_that_a_part_of_a_branch_is_elsewhere(shunt, union, moved):
    """Its names are not shown."""
    place = union.root / ".shunt" / moved.replace("MIRROR", next(union.root.glob(".shunt/b/n1.1/out-*")).name)
    aside = place.rename(f"{place}.aside")
    result = shunt("run", "--root", union.root, "--export", "never", "--", "true")
    result.check()
    assert f"{aside}: warning: is not a " in result.err and result.err.count("\n") == 1, result.err


@pytest.mark.parametrize("moved", ["b/n1.1", "b/n1.1/MIRROR"])
@pytest.mark.parametrize("link", [True, False])
def test_export_changes_nothing_while_a_part_of_a_branch_is_elsewhere(shunt, union, moved, link):
    """It was moved, or moved and replaced by a link: without the markers its files would be those of no directory."""
    place = union.root / ".shunt" / moved.replace("MIRROR", next(union.root.glob(".shunt/b/n1.1/out-*")).name)
    aside = place.parent / f"{place.name}.aside"
    before = snapshot(union.root)
    place.rename(aside)
    if link:
        aside.rename(union.root.parent / "elsewhere")
        place.symlink_to(union.root.parent / "elsewhere")
    there = place if link else aside
    for words in [[], ["--dry-run"]]:
        result = shunt("export", *words, union.root)
        result.check(1)
        assert f"{there}: is not a " in result.err and result.err.count("\n") == 1, result.err
    checked = shunt("fsck", "--json", union.root)
    checked.check(2)
    assert [path for kind, path in findings(checked) if kind == "foreign"] == [str(there.relative_to(union.root))]
    if link:
        place.unlink()
    (union.root.parent / "elsewhere" if link else aside).rename(place)
    assert snapshot(union.root) == before
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


@pytest.mark.parametrize("words", [["export"], ["export", "--dry-run"], ["fsck", "--repair"]])
def test_a_live_session_is_in_the_way(shunt, union, words):
    union.hold()
    before = snapshot(union.root)
    result = shunt(*words, union.root)
    assert result.status != 0 and "shunt stop" in result.err and "somebody" in result.err
    assert snapshot(union.root) == before
    shunt("fsck", union.root).check()
    [state] = json.loads(shunt("status", "--json", "--root", union.root).check())
    assert state["state"] == "alive" and state["pid"] == os.getpid() and state["branches"] == 2


def test_a_session_of_another_host_is_in_the_way(shunt, union):
    union.hold(pid=4194000, host="elsewhere")
    with beating_elsewhere(union.root):
        result = shunt("export", union.root)
    result.check(1)
    assert "on host elsewhere" in result.err and "wait for its end" in result.err
    assert "on that host" in shunt("stop", "--root", union.root).err


def test_a_dead_session_is_not(shunt, union):
    union.hold(pid=4194000)
    assert json.loads(shunt("status", "--json", "--root", union.root).check(1))[0]["state"] == "dead"
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


def test_stop_takes_a_dead_session_away(shunt, union):
    union.hold(pid=4194000)
    shunt("stop", SHUNT_ROOT=union.root).check()
    assert "no session" in shunt("status", SHUNT_ROOT=f"{union.root}:").check(1)


def test_status_says_what_is_left_to_export(shunt, union):
    left = len([path for path in (union.root / ".shunt" / "b").rglob("*") if path.is_file()])
    told, = json.loads(shunt("status", "--json", "--root", union.root).check(1))
    assert told["left_files"] == left > 0 and told["export_seconds"] > 0
    assert f"{left} files in branches; export takes about 1 s from here" in shunt("status", "--root", union.root).out
    union.hold()
    assert "left_files" not in shunt("status", "--json", "--root", union.root).out, "leaves that are in use are not looked into"


def test_stop_says_that_it_knows_no_node_of_that_name(shunt, union):
    union.hold(pid=4194000)
    result = shunt("stop", "--root", union.root, "--node", "nobody")
    assert result.status == 1 and "is named 'nobody'" in result.err
    assert json.loads(shunt("status", "--json", "--root", union.root).check(1))[0]["state"] == "dead"


def many(union, count):
    for number in range(count):
        union.put("n1.1", union.mirror, f"f{number:05}", str(number), leaf=number % 3)


def test_export_shows_progress(shunt, union):
    many(union, 2000)
    result = shunt("export", "--progress", union.root)
    assert result.check().startswith("exported 2003 files")
    assert result.err.startswith("\rexported 0 of about 2003 files") and "\033" not in result.err


def read_until(stream, wanted, deadline=60):
    seen, end = b"", time.monotonic() + deadline
    while wanted not in seen and time.monotonic() < end:
        if select.select([stream], [], [], 1)[0]:
            more = os.read(stream.fileno(), 4096)
            if not more:
                break
            seen += more
    return seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_export_interrupted_and_run_again(shunt, union, number):
    many(union, 20000)
    process = subprocess.Popen([shunt.path, "export", "--progress", union.root], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment())
    assert b"of about" in read_until(process.stderr, b"of about")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    if process.returncode != 0:
        assert process.returncode == 128 + number and b"to go on" in err
        assert (union.root / ".shunt").exists() and session_of(union.root) == {}
        assert shunt("ls", union.root / "out").check().count("\n") == 20005
    result = shunt("export", union.root)
    result.check()
    assert_plain(union.root)
    assert len(os.listdir(union.root / "out")) == 20006


@pytest.mark.parametrize("words", [["export", "--progress"], ["fsck", "--repair"]], ids=" ".join)
def test_a_reader_that_has_ended_leaves_no_claim(shunt, union, words):
    """Another host would wait for the heartbeats of a process that SIGPIPE has killed."""
    many(union, 500)
    for number in range(100):
        union.leaf("n1.1", f"gone-{number + 1:012x}")  # more than fsck keeps before it writes
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run([shunt.path, *words, union.root], stdout=writer, stderr=writer, env=environment())
    os.close(writer)
    assert process.returncode in (-signal.SIGPIPE, 128 + signal.SIGPIPE)
    assert session_of(union.root) == {}
    shunt("export", union.root).check()
    assert_plain(union.root)
    assert len(os.listdir(union.root / "out")) == 506


def test_export_interrupted_while_it_waits_for_another_host(shunt, union):
    """Its session may have ended; that is seen by its silence."""
    union.hold(pid=1, host="elsewhere", lease=60)
    process = subprocess.Popen([shunt.path, "export", union.root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert b"is taken over after" in read_until(process.stderr, b"is taken over after")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT and out == b"" and b"to go on" in err, (process.returncode, err)


def test_export_killed_and_run_again(shunt, union):
    many(union, 20000)
    process = subprocess.Popen([shunt.path, "export", "--progress", union.root], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment())
    read_until(process.stderr, b"of about")
    process.kill()
    process.communicate(timeout=60)
    shunt("export", union.root).check()
    assert_plain(union.root)
    assert len(os.listdir(union.root / "out")) == 20006


@pytest.fixture
def user():
    """Somebody whom permissions stop."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def give(root, user):
    for path in [root, *root.rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)


def as_user(user, shunt, area, words, within=()):
    """Runs a copy of the tool as a user, where that user can reach it; `within` are the words of what runs it."""
    tool = area / "shunt"
    tool.write_bytes(shunt.path.read_bytes())
    tool.chmod(0o755)
    for path in tool.parents:
        if not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o11)
    become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return run([*(become if os.geteuid() != user.pw_uid else []), *within, tool, *words])


KILL = ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]


@pytest.mark.unsanitized
@pytest.mark.parametrize("call", ["symlinkat", "fchmodat", "renameat2", "unlinkat"])
def test_a_directory_that_a_killed_export_had_open_is_closed_by_the_next(shunt, user, area, call):
    """Killed at the first, the second ... of these calls: the next export, or fsck, gives each directory its mode back."""
    modes, stopped = {"d": 0o555, "d/e": 0o2500, "d/f": 0o751}, 0
    for step in itertools.count(1):
        union = Union(area / f"root{step}")
        for number, name in enumerate(modes, 1):
            union.put("n1.1", union.mark(name, number), "x", "words")
        give(union.root, user)
        for name, mode in reversed(modes.items()):
            (union.root / name).chmod(mode)
        as_user(user, shunt, area, ["export", union.root], [*KILL, f"inject={call}:signal=KILL:when={step}"])
        has_own = (union.root / ".shunt").exists()
        if has_own and step % 2 == 0:
            open_ones = [name for name, mode in modes.items() if stat.S_IMODE((union.root / name).stat().st_mode) != mode]
            found = as_user(user, shunt, area, ["fsck", "--json", "--repair", union.root])
            told = [one for one in json.loads(found.out)["findings"] if one["kind"] == "opened"]
            assert [one["path"] for one in told] == open_ones and all(one["repaired"] for one in told), found
        elif has_own:
            as_user(user, shunt, area, ["export", union.root]).check()
        found = {name: stat.S_IMODE((union.root / name).stat().st_mode) for name in modes}
        assert found == modes, (call, step)
        as_user(user, shunt, area, ["export", union.root]).check()
        assert {name: stat.S_IMODE((union.root / name).stat().st_mode) for name in modes} == modes
        assert_plain(union.root)
        stopped += has_own
        if not has_own:
            break
    assert stopped >= 2


def close(union, mirror, mode):
    for path in (union.leaf("n1.1", mirror), union.leaf("n1.1", mirror).parent):
        path.chmod(mode)


@pytest.mark.parametrize("option", ["--restore", "--delete"])
@pytest.mark.parametrize("mode", [0o555, 0o500, 0])
def test_fsck_of_orphans_that_are_closed(shunt, user, area, mode, option):
    """To their owner: their directory was, as long as it was served; it was opened and removed natively."""
    union = Union(area / "root")
    mirror = union.mark("out", 1)
    union.put("n1.1", mirror, "b", "first branch")
    shutil.rmtree(union.root / "out")
    give(union.root, user)
    close(union, mirror, mode)
    as_user(user, shunt, area, ["fsck", option, union.root]).check(1)
    assert not (union.root / ".shunt" / "b" / "n1.1" / mirror).exists()
    restored = union.root / "shunt-restored" / mirror
    if option == "--restore":
        assert (restored / "b").read_text() == "first branch" and stat.S_IMODE(restored.stat().st_mode) == mode | 0o700
    as_user(user, shunt, area, ["export", union.root]).check()
    assert_plain(union.root)


@pytest.mark.parametrize("mode", [0o555, 0o500])
def test_fsck_removes_an_empty_mirror_that_is_closed(shunt, user, area, mode):
    union = Union(area / "root")
    mirror = union.mark("out", 1)
    union.leaf("n1.1", mirror)
    give(union.root, user)
    close(union, mirror, mode)
    assert "empty-mirror: empty (repaired)" in as_user(user, shunt, area, ["fsck", "--repair", union.root]).check()
    assert not (union.root / ".shunt" / "b" / "n1.1" / mirror).exists()


def test_a_mode_that_was_given_since_stays(shunt, user, area):
    union = Union(area / "root")
    union.put("n1.1", union.mark("d", 1), "x", "words")
    (union.root / "d").chmod(0o555)
    give(union.root, user)
    as_user(user, shunt, area, ["export", union.root], [*KILL, "inject=renameat2:signal=KILL:when=1"]).check(-signal.SIGKILL)
    assert stat.S_IMODE((union.root / "d").stat().st_mode) == 0o755
    (union.root / "d").chmod(0o775)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert stat.S_IMODE((union.root / "d").stat().st_mode) == 0o775
    assert_plain(union.root)


@pytest.mark.parametrize("mode", [0o555, 0o500, 0o700])
def test_export_into_a_directory_that_is_read_only(shunt, user, area, mode):
    """As its owner, who is not root: a tree that was unpacked read-only."""
    union = Union(area / "root")
    mirror = union.mark("out", 1)
    union.put("n1.1", mirror, "b", "first branch")
    give(union.root, user)
    for path in (union.leaf("n1.1", mirror), union.leaf("n1.1", mirror).parent, union.root / "out"):
        path.chmod(mode)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert stat.S_IMODE((union.root / "out").stat().st_mode) == mode
    (union.root / "out").chmod(0o755)
    assert snapshot(union.root) == {"out": None, "out/b": "first branch"}


@pytest.mark.parametrize("mode", [0o555, 0o500, 0o300, 0])
def test_export_from_mirrors_that_are_read_only(shunt, user, area, mode):
    """The directory was read-only as long as it was served, which its mirrors still are; its owner has opened it since."""
    union = Union(area / "root")
    mirror = union.mark("out", 1)
    union.put("n1.1", mirror, "b", "first branch")
    give(union.root, user)
    for path in (union.leaf("n1.1", mirror), union.leaf("n1.1", mirror).parent):
        path.chmod(mode)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert stat.S_IMODE((union.root / "out").stat().st_mode) == 0o755
    assert snapshot(union.root) == {"out": None, "out/b": "first branch"}


def test_export_with_a_directory_that_another_user_keeps_closed(shunt, user, area):
    """As the lost+found of a file system: what it holds is not known, but nothing of shunt's is left."""
    if os.geteuid() != 0:
        pytest.skip("only the superuser can make directories of two users")
    union = Union(area / "root")
    union.put("n1.1", union.mark("out", 1), "b", "first branch")
    give(union.root, user)
    (union.root / "lost+found").mkdir(mode=0o700)
    result = as_user(user, shunt, area, ["export", union.root])
    assert result.check().startswith("exported 1 file in 1 directory") and result.err == ""
    assert snapshot(union.root) == {"lost+found": None, "out": None, "out/b": "first branch"}


@pytest.mark.parametrize("mode", [0o600, 0o400, 0])
def test_export_of_files_of_a_directory_that_is_closed(shunt, user, area, mode):
    """To its owner, too: they stay until it is open again, and those of other directories leave."""
    union = Union(area / "root")
    for number, name in enumerate(("closed", "out"), 1):
        union.put("n1.1", union.mark(name, number), "b", name)
    give(union.root, user)
    closed = [union.root / "closed", *union.root.glob(".shunt/b/n1.1/closed-*/0"), *union.root.glob(".shunt/b/n1.1/closed-*")]
    for path in closed:
        path.chmod(mode)
    result = as_user(user, shunt, area, ["export", union.root])
    result.check(1)
    assert f"as {union.root}/closed may be" in result.err and result.err.count("\n") == 1, result.err
    assert (union.root / "out" / "b").read_text() == "out" and not any(union.root.glob(".shunt/b/n1.1/out-*"))
    assert stat.S_IMODE(closed[0].stat().st_mode) == mode
    closed[0].chmod(0o755)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert snapshot(union.root) == {"closed": None, "closed/b": "closed", "out": None, "out/b": "out"}


@pytest.mark.parametrize("mode", [0o311, 0])
def test_export_leaves_no_marker_in_a_directory_that_is_closed(shunt, user, area, mode):
    """All files of the redirected directory in it were removed; its marker is there, and that cannot be seen."""
    union = Union(area / "root")
    union.leaf("n1.1", union.mark("closed/out", 1))
    union.put("n1.1", union.mark("other", 2), "b", "other")
    give(union.root, user)
    (union.root / "closed").chmod(mode)
    result = as_user(user, shunt, area, ["export", union.root])
    result.check(1)
    assert f"as {union.root}/closed may be" in result.err and result.err.count("\n") == 1, result.err
    (union.root / "closed").chmod(0o755)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert snapshot(union.root) == {"closed": None, "closed/out": None, "other": None, "other/b": "other"}


@pytest.fixture
def too_deep(union):
    """A directory with files in a branch, as are those of the directories in it: but one, to which no path leads."""
    place = "/".join(["d" * 250] * 15 + ["e" * 60] * 2)
    for number, name in enumerate((place, f"{place}/after", f"{place}/z"), 1):
        union.put("n1.1", union.mark(name, number), "f", name[-5:])
    above = os.getcwd()
    os.chdir(union.root / place)
    (pathlib.Path("m" * 250) / "below").mkdir(parents=True)
    os.chdir(above)
    yield place
    run(["rm", "-rf", union.root / ("d" * 250)]).check()


def test_export_with_a_directory_deeper_than_a_path_can_say(shunt, union, too_deep):
    """Nothing in it is redirected, and it keeps none of those above it and beside it from being exported."""
    result = shunt("export", union.root)
    assert result.check().startswith("exported 6 files in 4 directories") and result.err == ""
    assert [(union.root / too_deep / name).read_text() for name in ("f", "after/f", "z/f")] == ["eeeee", "after", "eee/z"]
    assert sorted(os.listdir(union.root / too_deep)) == ["after", "f", "m" * 250, "z"]
    assert not (union.root / ".shunt").exists()


def test_find_names_what_is_beside_a_directory_deeper_than_a_path_can_say(shunt, union, too_deep):
    result = shunt("find", union.root)
    result.check(1)
    assert result.err.count("the path is too long") == 1
    assert {line.rpartition("/")[2] for line in result.out.splitlines()} >= {"after", "z"}
    assert result.out.count("/f\n") == 3


def with_mount(shunt, union, script):
    """Runs a script with a tmpfs over out/; $1 is the tool, $2 the root, $3 out's marker."""
    command = ["bash", "-c", f'marker=$(cat "$2/out/.shunt-dir"); mount -t tmpfs none "$2/out" && {script}', "-",
               shunt.path, union.root]
    private = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return run([*private, *command])


def test_a_directory_covered_by_a_mount_is_not_taken_for_gone(shunt, union):
    before = snapshot(union.root)
    result = with_mount(shunt, union, '"$1" export "$2"')
    result.check(1)
    assert "or a mount" in result.err and "--delete" not in result.err
    with_mount(shunt, union, '"$1" fsck --delete "$2"').check(2)
    assert snapshot(union.root) == before
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


def test_a_mirror_that_may_not_be_read_is_not_taken_for_an_orphan(shunt, user, area):
    """Its directory cannot be listed either, so nobody knows."""
    union = Union(area / "root")
    mirror = union.mark("secret", 1)
    union.put("n1.1", mirror, "a", "first branch")
    give(union.root, user)
    hidden = union.root / "secret", union.root / ".shunt" / "b" / "n1.1" / mirror
    for directory in hidden:
        directory.chmod(0)
    result = as_user(user, shunt, area, ["fsck", union.root])
    for directory in hidden:
        directory.chmod(0o755)
    assert f".shunt/b/n1.1/{mirror}: unreadable: cannot be read" in result.check(2) and "orphan" not in result.out


def test_what_is_after_a_mirror_that_may_not_be_read_is_looked_at(shunt, user, area):
    union = Union(area / "root")
    for number in range(8):
        union.put("n1.1", f"gone-{number:012x}", "lost")
    give(union.root, user)
    hidden = [union.root / ".shunt" / "b" / "n1.1" / f"gone-{number:012x}" for number in (2, 5)]
    for directory in hidden:
        directory.chmod(0)
    result = as_user(user, shunt, area, ["fsck", "--json", union.root])
    for directory in hidden:
        directory.chmod(0o755)
    assert len([kind for kind, _ in findings(result) if kind == "orphan"]) == 6
    [(_, path)] = [one for one in findings(result) if one[0] == "unreadable"]
    assert path in {str(directory.relative_to(union.root)) for directory in hidden}


def test_export_goes_on_after_a_file_that_is_immutable(shunt, union):
    fixed = branch_path(union, "n1.1", "b")
    with immutable(fixed):
        result = shunt("export", union.root)
    result.check(1)
    assert f"{fixed}: immutable or append-only" in result.err and result.err.count("\n") == 1
    assert (union.root / "out" / "c").exists() and (union.root / "out" / ".hidden").exists()
    shunt("export", union.root).check()
    assert snapshot(union.root) == NATIVE


@pytest.mark.parametrize("flag, left", [("i", ["b", "c"]), ("a", [])])
def test_export_goes_on_after_a_directory_that_is_fixed(shunt, union, flag, left):
    """What an immutable one refuses is each file, an append-only one that its marker is removed."""
    out = union.root / "out"
    union.put("n1.1", union.mark("plain", 2), "y", "of plain")
    with immutable(out, flag):
        told = shunt("export", "--dry-run", union.root)
        result = shunt("export", union.root)
    told.check(1)
    result.check(1)
    assert told.err == result.err == (f"shunt: {out}: immutable or append-only, so it cannot become a plain directory "
                          "(run 'chattr -i -a' on it, then run this again)\n")
    assert sorted(path.name for path in union.root.glob(".shunt/b/n1.1/out-*/*/*")) == left
    assert (union.root / "plain" / "y").read_text() == "of plain"
    shunt("export", union.root).check()
    assert snapshot(union.root) == {**NATIVE, "plain/y": "of plain"}


def test_export_dry_run_says_what_a_user_may_not_do(shunt, user, area):
    if os.geteuid() != 0:
        pytest.skip("only the superuser can run a tool as somebody who does not own the root")
    union = Union(area / "root")
    union.put("n1.1", union.mark("out", 1), "b", "first branch")
    before = snapshot(union.root)
    for path in (union.root, *union.root.rglob("*")):
        path.chmod(0o755)
    really = as_user(user, shunt, area, ["export", union.root])
    told = as_user(user, shunt, area, ["export", "--dry-run", "--json", union.root])
    assert really.status == 1 and told.status == 1
    assert "permission denied" in told.err and json.loads(told.out)["complete"] is False
    assert snapshot(union.root) == before


def test_a_root_that_may_not_be_looked_into_is_not_taken_for_none(shunt, user, area):
    union = Union(area / "root")
    give(union.root, user)
    (union.root / "plain").mkdir()
    union.root.chmod(0o600)
    result = as_user(user, shunt, area, ["ls", union.root])
    union.root.chmod(0o755)
    result.check(1)
    assert "permission denied" in result.err and "no root" not in result.err


def test_a_directory_that_may_not_be_listed_is_not_taken_for_gone(shunt, user, area):
    union = Union(area / "root")
    mirror = union.mark("hidden/out", 1)
    union.put("n1.1", mirror, "b", "first branch")
    give(union.root, user)
    (union.root / "hidden").chmod(0o311)
    result = as_user(user, shunt, area, ["fsck", "--delete", union.root])
    assert "hidden: unreadable" in result.check(2) and "hidden by its permissions" in result.out
    result = as_user(user, shunt, area, ["export", union.root])
    result.check(1)
    assert "hidden by its permissions" in result.err
    (union.root / "hidden").chmod(0o755)
    as_user(user, shunt, area, ["export", union.root]).check()
    assert snapshot(union.root) == {"hidden": None, "hidden/out": None, "hidden/out/b": "first branch"}


@pytest.mark.parametrize("mode, below", [(0o311, ["hidden/b"]), (0o100, ["hidden/b"]), (0o400, []), (0, [])])
def test_find_says_which_directory_it_may_not_list(shunt, user, area, mode, below):
    union = Union(area / "root")
    mirror = union.mark("hidden", 1)
    union.put("n1.1", mirror, "b", "first branch")
    (union.root / "hidden" / "unseen").write_text("")
    (union.root / "other").mkdir()
    give(union.root, user)
    (union.root / "hidden").chmod(mode)
    result = as_user(user, shunt, area, ["find", union.root])
    (union.root / "hidden").chmod(0o755)
    assert result.check(1).splitlines() == [str(union.root / path) for path in (".", "hidden", *below, "other")]
    assert result.err == f"shunt: {union.root}/hidden: permission denied (ask its owner, or run this as its owner)\n"


@pytest.mark.parametrize("words, name", [(("ls",), "hidden"), (("ls", "-l"), "hidden"), (("ls", "--json"), "hidden"), (("ls", "-R"), ""),
                                         (("tree",), "hidden"), (("tree",), ""), (("tree", "--json"), "")])
def test_ls_and_tree_say_which_directory_they_may_not_list(shunt, user, area, words, name):
    union = Union(area / "root")
    union.put("n1.1", union.mark("hidden", 1), "b", "first branch")
    (union.root / "hidden" / "unseen").write_text("")
    give(union.root, user)
    (union.root / "hidden").chmod(0o311)
    result = as_user(user, shunt, area, [*words, union.root / name])
    (union.root / "hidden").chmod(0o755)
    assert re.search(r"\bb\b", result.check(1)) and "unseen" not in result.out
    shown = "hidden" if words[0] == "tree" and name == "" else f"{union.root}/hidden"
    assert result.err == f"shunt: {shown}: permission denied (ask its owner, or run this as its owner)\n"


def test_names_in_a_directory_that_may_only_be_searched(shunt, user, area):
    """As natively: who knows a name finds it."""
    union = Union(area / "root")
    union.put("n1.1", union.mark("hidden", 1), "b", "first branch")
    hidden = union.root / "hidden"
    (hidden / "plain").write_text("in the trunk")
    (hidden / "sub").mkdir()
    (hidden / "sub" / "below").write_text("")
    (hidden / "link").symlink_to("plain")
    give(union.root, user)
    hidden.chmod(0o311)
    tool = lambda *words: as_user(user, shunt, area, words)
    assert tool("where", *(hidden / name for name in ("plain", "sub", "sub/below", "link"))).check().splitlines() == \
        [str(hidden / name) for name in ("plain", "sub", "sub/below", "link")]
    assert json.loads(tool("stat", "--json", hidden / "plain").check())[0]["size"] == len("in the trunk")
    assert json.loads(tool("stat", "--json", hidden / "link").check())[0]["target"] == "plain"
    assert tool("ls", hidden / "plain").check() == f"{hidden}/plain\n"
    assert tool("ls", hidden / "sub").check() == "below\n"
    assert tool("find", hidden / "plain", hidden / "sub").check().splitlines() == [str(hidden / name) for name in
                                                                                    ("plain", "sub", "sub/below")]
    gone, none = tool("where", hidden / "gone"), tool("where", f"{hidden}/plain/")
    hidden.chmod(0o200)
    shut = tool("where", hidden / "plain")
    hidden.chmod(0o755)
    gone.check(1), none.check(1), shut.check(1)
    assert "no such file or directory" in gone.err and "permission denied" in shut.err
    assert "Not a directory" in none.err


@pytest.mark.parametrize("words", [("ls", "-R"), ("find",), ("names",), ("tree", "-a"), ("tree", "--json")])
def test_a_root_inside_another_root_is_not_read_as_a_part_of_it(shunt, area, words):
    outer, inner = area / "root", area / "root" / "inner"
    inner.mkdir(parents=True)
    shunt.run(inner, ["sh", "-c", "mkdir out; touch out/f"], keep=True, cwd=inner).check()
    shunt.run(outer, ["touch", "f"], keep=True, cwd=outer).check()
    told = shunt(*words, outer)
    told.check(1)
    where = "inner" if words[0] == "tree" else f"{outer}/inner"
    assert told.err == (f"shunt: {where}: a root inside another root (name it by itself, and give only one of the two to "
                        "'shunt start')\n")
    assert "out" not in told.out and "epoch" not in told.out
    assert "f" in shunt(*words, inner).check()


# fsck


def findings(result):
    return {(one["kind"], one["path"]): one for one in json.loads(result.out)["findings"]}


@pytest.mark.parametrize("subcommand", ["ls", "stat", "tree", "export", "fsck"])
def test_the_manual_names_every_field_of_json(shunt, union, subcommand):
    union.put("n1.1", "gone-aaaaaaaaaaaa", "lost", "an orphan")
    out = union.root / "out"
    where = {"ls": [out], "stat": [out / "b", out / "link"], "tree": [out]}.get(subcommand, [union.root])
    made = json.loads(shunt(subcommand, "--json", *where).out)
    assert manual.keys_of(made) == manual.fields_of_json(manual.page_of(subcommand), subcommand)


def test_the_manual_names_every_kind_of_finding():
    kinds = {kind for source in (REPOSITORY / "tools" / "repair").glob("*.c")
             for kind in re.findall(r'\bfsck_tell\([^"]*"([a-z-]+)"', source.read_text())}
    section = manual.page_of("fsck").read_text().split("\n.SH FINDINGS\n")[1].split("\n.SH ")[0]
    named = [kind.replace("\\-", "-") for kind in re.findall(r"^\.TP\n\.B (.*)$", section, re.M)]
    assert len(kinds) == 13 and sorted(named) == sorted(kinds)


def test_fsck_of_a_clean_root(shunt, union):
    assert shunt("fsck", union.root).check() == f"{union.root}: clean (4 directories)\n"
    made = json.loads(shunt("fsck", "--json", union.root).check())
    assert made["findings"] == [] and made["directories"] == 4


def test_fsck_settles(shunt, union):
    (union.root / "out" / "b").write_text("")
    (union.root / "copy").mkdir()
    union.write_marker("copy", union.mirror, written_for="out")
    (union.root / "restored").mkdir()
    (union.root / "restored" / ".shunt-dir").write_text(
        "shunt-dir 1\nmirror was-dddddddddddd\ndirectory 1 1\npath was\n\n")
    union.put("n1.1", "was-dddddddddddd", "r", "r")
    (union.leaf("n1.1", union.mirror).parent / ".new-12-9").mkdir()
    union.leaf("n1.1", "empty-bbbbbbbbbbbb")
    empty = union.mark("plain", 0xEE)
    union.leaf("n1.1", empty)
    before = snapshot(union.root)
    kinds = {("conflict", "out/b"), ("copied-marker", "copy"), ("restored-marker", "restored"),
             ("unfinished-leaf", f".shunt/b/n1.1/{union.mirror}"), ("empty-orphan", ".shunt/b/n1.1/empty-bbbbbbbbbbbb"),
             ("empty-mirror", f".shunt/b/n1.1/{empty}")}
    only_told = shunt("fsck", "--json", union.root)
    only_told.check(1)
    assert findings(only_told).keys() == kinds and snapshot(union.root) == before
    assert not any(one["repaired"] for one in findings(only_told).values())
    repaired = shunt("fsck", "--repair", "--json", union.root)
    repaired.check(1)
    assert findings(repaired).keys() == kinds and all(one["repaired"] for one in findings(repaired).values())
    shunt("fsck", union.root).check()
    assert shunt("ls", "restored", cwd=union.root).check() == "r\n"
    assert (union.root / "out" / "b.shunt-conflict-trunk").exists()
    assert not (union.root / "copy" / ".shunt-dir").exists()
    shunt("export", union.root).check()
    assert_plain(union.root)


def test_an_empty_mirror_is_no_fault(shunt, union):
    mirror = union.mark("plain", 0xEE)
    union.leaf("n1.1", mirror)
    assert "empty-mirror" in shunt("fsck", union.root).check()


def orphans(union):
    for branch, content in (("n1.1", "one"), ("n2.4", "two")):
        union.put(branch, "gone-aaaaaaaaaaaa", "lost", content)
    union.put("n2.4", "gone-aaaaaaaaaaaa", "lost", "three", leaf=1)
    for branch in ("n1.1", "n2.4"):
        union.leaf(branch, "gone-aaaaaaaaaaaa").parent.chmod(0o750)


def test_fsck_restores_orphans(shunt, union):
    orphans(union)
    before = snapshot(union.root)
    assert "--restore" in shunt("fsck", union.root).check(2)
    assert "gone" in shunt("fsck", "--repair", union.root).check(2)
    assert snapshot(union.root) == before
    shunt("fsck", "--restore", union.root).check(1)
    restored = union.root / "shunt-restored" / "gone-aaaaaaaaaaaa"
    assert stat.S_IMODE(restored.stat().st_mode) == 0o750
    assert sorted(snapshot(restored).values()) == ["one", "three", "two"]
    assert snapshot(restored).keys() == {"lost", "lost.shunt-conflict-n2", "lost.shunt-conflict-n2.2"}
    shunt("fsck", union.root).check()


def test_fsck_restores_orphans_of_long_names(shunt, union):
    """What would make them too long takes the place of their end, also in the middle of a character."""
    for name in ("x" * 255, "\u00e9" * 127):
        for branch in ("n1.1", "n2.4", "n3.1"):
            union.put(branch, "gone-aaaaaaaaaaaa", name, branch)
    shunt("fsck", "--restore", union.root).check(1)
    restored = snapshot(union.root / "shunt-restored" / "gone-aaaaaaaaaaaa")
    assert sorted(restored.values()) == ["n1.1", "n1.1", "n2.4", "n2.4", "n3.1", "n3.1"]
    assert restored["x" * 237 + ".shunt-conflict-n2"] == "n2.4" and restored["\u00e9" * 118 + ".shunt-conflict-n3"] == "n3.1"
    assert not list(union.root.glob(".shunt/b/*/gone-*"))


@pytest.mark.parametrize("option, done", [("--restore", "restored"), ("--delete", "deleted")])
def test_fsck_goes_on_after_a_file_that_is_immutable(shunt, union, option, done):
    for name in "abcdef":
        fixed = union.put("n1.1", "gone-aaaaaaaaaaaa", name, name)
    fixed = fixed.parent / "c"
    with immutable(fixed):
        result = shunt("fsck", option, union.root)
    assert (f".shunt/b/n1.1/gone-aaaaaaaaaaaa: orphan: 5 files {done}, c cannot be {done}: Operation not permitted (run "
            "'chattr -i -a' on it, or this as its owner)") in result.check(2), result.out
    assert os.listdir(fixed.parent) == ["c"]
    shunt("fsck", option, union.root).check(1)
    restored = union.root / "shunt-restored" / "gone-aaaaaaaaaaaa"
    assert not fixed.exists() and (option == "--delete" or sorted(os.listdir(restored)) == list("abcdef"))


def test_fsck_deletes_orphans_only_when_told(shunt, union):
    orphans(union)
    shunt("fsck", "--delete", union.root).check(1)
    assert not list(union.root.rglob("gone-*"))
    assert shunt("ls", union.root / "out").check() == "a\nb\nc\nlink\nsub\n"


def test_fsck_deletes_nothing_next_to_a_marker_that_is_none(shunt, union):
    orphans(union)
    (union.root / "plain" / ".shunt-dir").write_text("nonsense")
    before = snapshot(union.root)
    result = shunt("fsck", "--delete", "--json", union.root)
    result.check(2)
    assert ("bad-marker", "plain") in findings(result)
    assert snapshot(union.root) == before
    shunt("fsck", "--restore", union.root).check(1)
    assert (union.root / "shunt-restored" / "gone-aaaaaaaaaaaa" / "lost").exists()
    assert (union.root / "plain" / "shunt-dir.damaged").read_text() == "nonsense"
    shunt("fsck", union.root).check()


def test_a_damaged_marker_whose_new_name_is_taken_stays(shunt, union):
    (union.root / "plain" / ".shunt-dir").write_text("nonsense")
    (union.root / "plain" / "shunt-dir.damaged").write_text("mine")
    result = shunt("fsck", "--restore", union.root)
    result.check(2)
    assert "rename" in result.out and (union.root / "plain" / ".shunt-dir").exists()
    assert (union.root / "plain" / "shunt-dir.damaged").read_text() == "mine"


# start, exec and their like, as far as they go without a daemon


@pytest.fixture
def installed(shunt, area):
    """A copy of the tool that is not next to a build: no daemon, no shim."""
    (area / "bin").mkdir()
    tool = area / "bin" / "shunt"
    tool.write_bytes(shunt.path.read_bytes())
    tool.chmod(0o755)
    return tool


@pytest.mark.parametrize("words, status", [(["start"], 1), (["run", "--", "true"], 1), (["exec", "--", "true"], 125)])
def test_parts_that_are_missing(installed, root, words, status):
    result = run([installed, *words], SHUNT_ROOT=root)
    result.check(status)
    assert "build or install shunt as a whole" in result.err and result.err.count("\n") == 1


def test_a_shim_that_is_not_loaded_is_noticed(installed, root, area):
    (area / "lib" / "shim").mkdir(parents=True)
    (area / "lib" / "shim" / "libshunt_preload.so").write_text("no library")
    result = run([installed, "exec", "--root", root, "--", "touch", area / "made"])
    result.check(125)
    assert "not loaded by" in result.err and not (area / "made").exists()


@pytest.fixture
def with_stand_ins(installed, area):
    """A library that does nothing under the shim's name, and a daemon that is a script."""
    (area / "lib" / "shim").mkdir(parents=True)
    library = area / "lib" / "shim" / "libshunt_preload.so"
    run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "/dev/null"]).check()
    (area / "daemon").mkdir()
    daemon = area / "daemon" / "shuntd"
    daemon.write_text('#!/bin/sh\necho "$LD_PRELOAD|$*" >>"$LOG"\ncase $2 in *bad) echo "shuntd: bad root" >&2; exit 1; esac\n')
    daemon.chmod(0o755)
    return installed, library


@pytest.fixture
def serve(shunt, root):
    """Starts real daemons: exec goes to none that is not there."""
    roots = []

    def start(root, node):
        roots.append(root)
        shunt("start", "--root", root, "--node", node, SHUNT_FABRIC="tcp:lo").check()

    yield start
    for one in roots:
        shunt("stop", "--root", one)


def test_exec_gives_the_command_its_environment(with_stand_ins, root, area, serve):
    tool, library = with_stand_ins
    (area / "second").mkdir()
    for one, node in ((root, "n7"), (area / "second", "n7"), (root, "n8")):
        serve(one, node)
    show = ["sh", "-c", 'echo "$LD_PRELOAD $SHUNT_ROOT $SHUNT_NODE"']
    out = run([tool, "exec", "--root", root, "--root", area / "second", "--root", f"{root}/.", "--node", "n7", "--",
               *show]).check()
    assert out == f"{library} {root}:{area}/second n7\n"
    out = run([tool, "exec", "--", *show], SHUNT_ROOT=root, SHUNT_NODE="n8",
              LD_PRELOAD=f"{library}:libm.so.6 /elsewhere/libshunt_preload.so").check()
    assert out == f"libm.so.6:{library} {root} n8\n"


def test_exec_answers_as_the_command_does(with_stand_ins, root, area, serve):
    tool, _ = with_stand_ins
    serve(root, "n1")
    command = [tool, "exec", "--root", root, "--"]
    assert run([*command, "sh", "-c", "exit 7"]).status == 7
    assert run([*command, "no-such-command"]).status == 127
    (area / "text").write_text("text")
    assert run([*command, area / "text"]).status == 126
    assert run([*command, "sh", "-c", "kill -9 $$"]).status == -signal.SIGKILL


def test_start_gives_the_daemon_its_words_and_no_shim(with_stand_ins, root, area):
    tool, library = with_stand_ins
    log = area / "log"
    run([tool, "start", "--root", root, "--node", "n1", "--placement", "branch", "--leaf-full", "5"], LOG=log,
        LD_PRELOAD=library).check()
    assert log.read_text() == f"|--root {root} --node n1 --placement branch --leaf-full 5 --again\n"
    (area / "bad").mkdir()
    result = run([tool, "start", "--root", root, "--root", area / "bad"], LOG=log)
    result.check(1)
    assert result.err == "shuntd: bad root\n"


def test_run_answers_as_the_command_does_and_exports(with_stand_ins, union, area):
    tool, _ = with_stand_ins
    command = [tool, "run", "--root", union.root]
    assert run([*command, "--keep", "--", "sh", "-c", "exit 7"], LOG=area / "log").status == 7
    assert (union.root / ".shunt").exists()
    assert run([*command, "--", "sh", "-c", "kill -9 $$"], LOG=area / "log").status == 128 + signal.SIGKILL
    assert snapshot(union.root) == NATIVE
    assert run([*command, "--", "no-such-command"], LOG=area / "log").status == 127


def test_run_says_if_the_export_fails(with_stand_ins, union, area):
    tool, _ = with_stand_ins
    union.put("n1.1", "gone-aaaaaaaaaaaa", "lost", "precious")
    result = run([tool, "run", "--root", union.root, "--", "true"], LOG=area / "log")
    result.check(1)
    assert "fsck --restore" in result.err
    assert run([tool, "run", "--root", union.root, "--", "sh", "-c", "exit 7"], LOG=area / "log").status == 7


def test_run_passes_signals_on(with_stand_ins, union, area):
    tool, _ = with_stand_ins
    script = 'trap "echo got; exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    process = subprocess.Popen([tool, "run", "--root", union.root, "--", "bash", "-c", script],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(LOG=area / "log"))
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    assert process.communicate(timeout=30)[0] == b"got\n" and process.returncode == 9
    assert_plain(union.root)


def test_run_leaves_an_interrupt_to_the_command(with_stand_ins, union, area):
    tool, _ = with_stand_ins
    script = 'trap "echo got; exit 9" INT; echo ready; while :; do sleep 0.05; done'
    process = subprocess.Popen([tool, "run", "--root", union.root, "--", "bash", "-c", script], start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(LOG=area / "log"))
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30)[0] == b"got\n" and process.returncode == 9
    assert_plain(union.root)


# libshunt


PROGRAM = r"""
#include <shunt/shunt.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char where[4096];
    struct shunt_list *list;
    struct shunt_entry entry;
    int error = shunt_where(argv[1], where, sizeof where);
    printf("%s\n", error < 0 ? strerror(-error) : where);
    error = shunt_list_open(&list, argv[1]);
    printf("%s\n", error < 0 ? strerror(-error) : "open");
    while (list && shunt_list_next(list, &entry) == 1)
        printf("%s %d %s %u\n", entry.name, entry.type, entry.branch ? entry.branch : "-", entry.leaf);
    shunt_list_close(list);
    printf("%d %d %s\n", shunt_sync(argv[1]), shunt_where(argv[1], where, 1), shunt_version());
    return 0;
}
"""


@pytest.fixture(scope="session")
def program(build, tmp_path_factory):
    directory = tmp_path_factory.mktemp("api")
    (directory / "program.c").write_text(PROGRAM)
    include = pathlib.Path(__file__).resolve().parents[2] / "include"
    library = build / "lib" / "api"
    run(["cc", "-Wall", "-Werror", f"-I{include}", "-o", directory / "program", directory / "program.c", f"-L{library}",
         "-lshunt", f"-Wl,-rpath,{library}"]).check()
    return directory / "program"


def test_library(program, shunt, union):
    version = shunt("--version").check().split()[1]
    assert run([program, "out"], cwd=union.root).check().splitlines() == [
        f"{union.root}/out", "open", ".hidden 8 n2.4 0", "a 8 - 0", "b 8 n1.1 0", "c 8 n1.1 3", "link 10 - 0",
        "sub 4 - 0", f"0 -36 {version}"]
    assert run([program, "out/link"], cwd=union.root).check().splitlines() == [
        str(branch_path(union, "n1.1", "b")), "Not a directory", f"0 -36 {version}"]
    assert run([program, "/"]).check().splitlines()[:2] == ["Name not unique on network"] * 2


def test_library_exports_its_own_names_only(build):
    names = run(["nm", "-D", "--defined-only", build / "lib" / "api" / "libshunt.so"]).check().split()[2::3]
    assert sorted(names) == ["shunt_list_close", "shunt_list_next", "shunt_list_open", "shunt_sync", "shunt_version",
                             "shunt_where"]
