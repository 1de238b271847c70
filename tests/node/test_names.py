# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt names`: all names of a root, as a stream, with or without a daemon."""

import json
import os
import re
import signal
import subprocess

import pytest

import manual
from conftest import environment, run
from daemons import wait_until
from union_on_disk import Union

ODD = [b"new\nline", b"\xff\xfe", b"tab\t", b"caf\xc3\xa9", b"a b", b'"quoted"', b"back\\slash"]


@pytest.fixture
def union(root):
    """Names in the trunk and in two branches, odd ones among them, and one in two places."""
    made = Union(root)
    made.mirror = made.mark("out", 0x0123456789AB)
    (root / "out" / "sub").mkdir()
    (root / "out" / "sub" / "deep").write_text("deep")
    (root / "out" / "both").write_text("in the trunk, and longer")
    (root / "out" / "link").symlink_to("a")
    os.mkfifo(root / "out" / "fifo")
    (root / ".hidden").write_text("")
    made.put("n1.1", made.mirror, "a", "first branch")
    made.put("n2.4", made.mirror, "c", "other leaf", leaf=3)
    made.put("n2.4", made.mirror, "both", "")
    for name in ODD:
        with open(os.fsencode(made.leaf("n1.1", made.mirror)) + b"/" + name, "wb"):
            pass
    return made


def stream(shunt, *words, status=0):
    result = subprocess.run([shunt.path, "names", *words], capture_output=True, env=environment())
    assert (result.returncode, result.stderr) == (status, b"")
    return result.stdout


def found_by_find(shunt, root):
    """What `shunt find` prints of it, relative to the root."""
    out = subprocess.run([shunt.path, "find", ".", "-print0"], cwd=root, capture_output=True, env=environment(), check=True)
    return sorted(path.removeprefix(b"./") for path in out.stdout.split(b"\0")[:-1] if path != b".")


def test_each_name_once_and_a_directory_before_what_is_in_it(shunt, union):
    out = stream(shunt, union.root, "-0").split(b"\0")[:-1]
    assert sorted(out) == found_by_find(shunt, union.root) and len(out) == 10 + len(ODD)
    assert b"out/both.shunt-conflict-n2" in out and b"out/new\nline" in out and not any(b".shunt/" in name for name in out)
    for name in out:
        parent = os.path.dirname(name)
        assert not parent or out.index(parent) < out.index(name)


def test_text_is_as_ls_has_it(shunt, union):
    zeroes = stream(shunt, "--null", union.root)
    assert stream(shunt, union.root) == zeroes.replace(b"\0", b"\n")
    of_ls = subprocess.run([shunt.path, "ls", union.root / "out"], capture_output=True, env=environment(), check=True).stdout
    in_out = [name.removeprefix(b"out/") for name in zeroes.split(b"\0") if re.fullmatch(rb"out/[^/]+", name)]
    assert b"".join(name + b"\n" for name in in_out) == of_ls


def test_on_a_terminal_control_characters_are_shown_as_by_ls(shunt, union):
    terminal, end = os.openpty()
    subprocess.run([shunt.path, "names", union.root], stdout=end, env=environment(), check=True)
    os.close(end)
    said = b""
    while said.count(b"\n") < 10 + len(ODD):
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert b"out/new?line\r\n" in said and b"out/tab?\r\n" in said


def test_json_is_an_object_a_line(shunt, union):
    lines = stream(shunt, "--json", union.root).splitlines()
    made = [json.loads(line) for line in lines]
    assert len(made) == 10 + len(ODD) and manual.keys_of(made) == manual.fields_of_json(manual.page_of("names"), "names")
    by_path = {one["path"]: one for one in made}
    leaf = union.leaf("n2.4", union.mirror, 3)
    assert by_path["out/c"] == {"path": "out/c", "type": "file", "ino": (leaf / "c").stat().st_ino, "branch": "n2.4", "leaf": 3,
                                "where": str(leaf / "c")}
    assert by_path["out/both.shunt-conflict-n2"]["where"] == str(union.leaf("n2.4", union.mirror) / "both")
    assert by_path["out/sub"] == {"path": "out/sub", "type": "directory", "ino": (union.root / "out/sub").stat().st_ino,
                                  "branch": None, "leaf": 0, "where": str(union.root / "out/sub")}
    assert {by_path[path]["type"] for path in ("out/link", "out/fifo")} == {"link", "fifo"}
    assert {"out/new\nline", "out/\xff\xfe", "out/tab\t", "out/caf\u00e9", 'out/"quoted"', "out/back\\slash"} <= by_path.keys()
    for one in made:
        if one["path"] != "out/\xff\xfe":
            assert os.lstat(one["where"]).st_ino == one["ino"]


def test_any_spelling_of_a_root(shunt, union, area):
    (area / "to-root").symlink_to(union.root)
    expected = stream(shunt, union.root)
    for spelling in (f"{union.root}/", f"{union.root}/out/..", area / "to-root", f"{area}/to-root/"):
        assert stream(shunt, spelling) == expected
    assert run([shunt.path, "names", "."], cwd=union.root).check() == expected.decode(errors="replace")


def test_a_root_without_names(shunt, area):
    assert stream(shunt, Union(area / "empty").root) == b"" and stream(shunt, "--json", area / "empty") == b""


@pytest.mark.parametrize("words, status, sentence", [
    ([], 2, "exactly one root is required (see 'shunt names --help')"),
    ([".", "out"], 2, "exactly one root is required (see 'shunt names --help')"),
    (["-0", "--json", "."], 2, "--null and --json exclude each other (see 'shunt names --help')"),
    (["--all", "."], 2, "unknown option '--all' (see 'shunt names --help')"),
    (["missing"], 1, "missing: no such file or directory in the union"),
    (["out/a"], 1, "out/a: Not a directory"),
    (["out"], 1, "out: a part of the root {root} (run 'shunt names {root}', or 'shunt find out')"),
    (["/"], 1, "/: in no root of shunt, since no directory above it has a .shunt (list it with 'ls')"),
])
def test_mistakes(shunt, union, words, status, sentence):
    result = shunt("names", *words, cwd=union.root)
    assert (result.check(status), result.err) == ("", f"shunt: {sentence.format(root=union.root)}\n")


@pytest.fixture
def large(union):
    for i in range(1000):  # more than a pipe holds
        union.put("n1.1", union.mirror, f"{'many' * 50}{i}")
    return union


@pytest.mark.parametrize("option", ["-0", "--json"])
def test_a_reader_that_has_enough(shunt, large, option):
    script = 'set -o pipefail; trap "{}" PIPE; "$0" names "$2" "$1" | head -c 100 >/dev/null; echo ${{PIPESTATUS[0]}}'
    killed = run(["bash", "-c", script.format("-"), shunt.path, large.root, option])
    assert (killed.check(), killed.err) == ("141\n", "")
    told = run(["bash", "-c", script.format(""), shunt.path, large.root, option])
    assert (told.check(), told.err) == ("1\n", "shunt: standard output: cannot be written: Broken pipe (check the disk or the program that it goes to)\n")


def test_a_full_file_system(shunt, large):
    result = run(["bash", "-c", '"$0" names "$1" >/dev/full', shunt.path, large.root])
    result.check(1)
    assert result.err == "shunt: standard output: cannot be written: No space left on device (check the disk or the program that it goes to)\n"


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_between_two_names(shunt, large, number):
    process = subprocess.Popen([shunt.path, "names", "--json", large.root], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment())
    first = process.stdout.readline()
    wait_until(lambda: state_of(process.pid) == "S")  # the pipe is full
    process.send_signal(number)
    lines = [first, *process.stdout]
    err = process.stderr.read()
    process.wait(60)
    assert process.returncode == 128 + number and 1 < len(lines) < 1000 and lines[-1].endswith(b"\n")
    assert all(json.loads(line)["path"] for line in lines)
    assert err.decode() == f"shunt: {large.root}: the list was interrupted and is not complete (run this again)\n"


@pytest.mark.unsanitized  # the sanitizer keeps what was given back
def test_memory_is_that_of_a_directory(shunt, area):
    """Twenty directories take no more than one of them."""
    def peak(count):
        root = Union(area / f"with-{count}").root
        for i in range(count):
            (root / f"d{i}").mkdir()
            for j in range(400):
                (root / f"d{i}" / f"{'long' * 50}{j}").touch()
        result = run(["bash", "-c", '"$0" names -0 "$1" | tr -cd "\\0" | wc -c', shunt.path, root])
        assert int(result.check()) == count * 401
        used = run(["python3", "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
                    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", shunt.path, "names", root])
        return int(used.check())
    assert peak(20) < peak(1) + 1000  # KiB; all of them are 1.6 MiB of names


def test_it_is_the_same_while_a_daemon_serves(shunt, root):
    """And in a process that runs under shunt."""
    script = ('mkdir "$0/out"; touch "$0/out/a" "$0/out/b"; '
              f'{shunt.path} names --json "$0" >"$0.under"; env -u LD_PRELOAD {shunt.path} names --json "$0" >"$0.beside"')
    shunt.run(root, ["bash", "-euc", script, root], keep=True).check()
    after = stream(shunt, "--json", root).decode()
    texts = [open(f"{root}.{which}").read() for which in ("under", "beside")]
    assert texts == [after, after]
    assert [json.loads(line)["branch"] is None for line in after.splitlines()] == [True, False, False]
