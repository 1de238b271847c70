# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt env --container`: what it prints works as printed; what is missing in a container is an error and a sentence."""

import shlex

import pytest

from conftest import redirected_files, run
from test_failures import as_nobody, everybodys  # noqa: F401: a fixture
from test_namespaces import NEEDS_BWRAP, NEEDS_SUPERUSER

# Programs and their libraries, and nothing else of the host's.
IMAGE = "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/sbin /sbin --dev /dev"
REFUSED = "--shunt-env-failed"

pytestmark = pytest.mark.unsanitized  # AddressSanitizer would be first in LD_PRELOAD, and is not in there


@pytest.fixture
def served(shunt, root):
    """A root whose directory d holds f, which is in a branch."""
    (root / "d").mkdir()
    shunt("start", "--root", root, "--placement", "branch").check()
    shunt("exec", "--root", root, "--", "sh", "-c", f"echo data >{root}/d/f").check()
    assert redirected_files(root)
    yield root
    shunt("stop", "--root", root).check()
    shunt("export", root).check()


def in_bwrap(shunt, words, script, **settings):
    return run(["sh", "-c", f"exec bwrap {IMAGE} {words} sh -c {shlex.quote(script)}"], SHUNT=shunt.path, **settings)


def words_of(root):
    return f'$("$SHUNT" env --root {root} --container bwrap)'


@NEEDS_BWRAP
def test_what_is_printed_works_as_printed(shunt, served):
    script = f"cat {served}/d/f && echo made >{served}/d/new && mv {served}/d/new {served}/d/moved && ls {served}/d"
    assert in_bwrap(shunt, words_of(served), script).check() == "data\nf\nmoved\n"
    assert sorted(path.rsplit("/", 1)[1] for path in redirected_files(served)) == ["f", "moved"]
    assert shunt("exec", "--root", served, "--", "cat", served / "d" / "moved").check() == "made\n"


@NEEDS_BWRAP
def test_it_is_the_same_under_shunt(shunt, served):
    script = f'exec bwrap {IMAGE} $("$SHUNT" env --container bwrap) ls {served}/d'
    assert shunt("exec", "--root", served, "--", "sh", "-c", script, SHUNT=shunt.path).check() == "f\n"


@NEEDS_SUPERUSER
@NEEDS_BWRAP
def test_a_run_directory_and_a_user_of_its_own(everybodys):  # noqa: F811
    """A user without privileges, whose container has a user namespace."""
    session = as_nobody(everybodys)
    session.start().check()
    root = session.root
    words = session.tool("env", "--root", root, "--container", "bwrap").check()
    assert f"--bind {everybodys}/run {everybodys}/run" in words
    script = f"mkdir {root}/d && echo data >{root}/d/f && cat {root}/d/f && ls {root}/d"
    made = run([*session.prefix, *f"bwrap {IMAGE} --unshare-user {words}".split(), "sh", "-c", script], cwd="/")
    assert made.check() == "data\nf\n"
    assert redirected_files(root)
    session.stop().check()


# What is left out of the words, and what is said inside.
MISSING = {
    "the run directory": ("--bind /dev/shm /dev/shm", "bind the host's run directory, by default /dev/shm"),
    "/proc": ("--proc /proc", "mount /proc"),
}


@NEEDS_BWRAP
@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_an_error(what, shunt, served):
    left_out, remedy = MISSING[what]
    words = shunt("env", "--root", served, "--container", "bwrap").check()
    assert left_out in words
    made = in_bwrap(shunt, words.replace(left_out, "").strip(), f"cat {served}/d/f; echo x >{served}/d/x; ls {served}/d")
    assert made.out == "" and "Input/output error" in made.err and remedy in made.err, made.err
    assert not (served / "d" / "x").exists()


@NEEDS_BWRAP
def test_a_daemon_that_is_gone_is_an_error(shunt, served):
    words = shunt("env", "--root", served, "--container", "bwrap").check().strip()
    shunt("stop", "--root", served).check()
    made = in_bwrap(shunt, words, f"cat {served}/d/f; ls {served}/d")
    assert made.out == "" and f"run 'shunt start --root {served}'" in made.err, made.err


@NEEDS_BWRAP
def test_a_library_that_is_missing_is_named_by_the_loader(shunt, served):
    """No code of shunt's is in the container then; shunt(7) says so."""
    words = shunt("env", "--root", served, "--container", "bwrap").check().strip()
    option = words[words.index("--ro-bind"):].split(" --bind")[0]
    made = in_bwrap(shunt, words.replace(option, ""), f"cat {served}/d/f")
    assert "cannot be preloaded" in made.err and "No such file or directory" in made.err, made.err


@NEEDS_BWRAP
@pytest.mark.parametrize("how", ["no daemon", "no root", "no such program"])
def test_what_cannot_be_said_starts_no_container(how, shunt, root):
    words = {"no daemon": f"--root {root} --container bwrap", "no root": f"--root {root}/x --container bwrap",
             "no such program": f"--root {root} --container lxc"}[how]
    made = in_bwrap(shunt, f'--bind {root} {root} $("$SHUNT" env {words})', "echo begun")
    assert made.status != 0 and made.out == "" and made.err.startswith("shunt: ") and REFUSED in made.err, made.err


@pytest.mark.parametrize("name", ["with a space", "stars*", "com,ma"])
def test_a_root_that_is_no_word_is_refused(name, shunt, root):
    place = root / name
    place.mkdir()
    shunt("start", "--root", place).check()
    done = shunt("env", "--root", place, "--container", "apptainer")
    assert (done.status, done.out) == (1, REFUSED + "\n") and "cannot be a word of a command line" in done.err
    shunt("stop", "--root", place).check()


def test_the_words_of_each_program(shunt, served):
    library = f"{shunt.path.parent.parent}/lib/shim/libshunt_preload.so"
    binds = [library, "/dev/shm", str(served)]
    for program, first, bind, last in (("podman", ["--pid=host"], "--volume=", ":ro"), ("apptainer", [], "--bind=", ":ro")):
        words = shunt("env", "--root", served, "--container", program).check().split()
        assert words[:len(first)] == first
        assert [word for word in words if word.startswith(bind)] == [f"{bind}{path}:{path}{last if path == library else ''}" for path in binds]
        set_there = dict(word[len("--env="):].split("=", 1) for word in words if word.startswith("--env="))
        assert set_there["LD_PRELOAD"] == library and set_there["SHUNT_ROOT"] == str(served) and set_there["SHUNT_RUN_DIR"] == "/dev/shm"
        assert set_there.keys() >= {"SHUNT_ROOT_ID", "SHUNT_NODE"}


def test_where_shunt_is_off_a_plain_root_is_bound(shunt, root):
    done = shunt("env", "--root", root, "--container", "bwrap", SHUNT_ENABLED="no")
    assert done.check().split() == ["--bind", str(root), str(root)] and "the container runs without it" in done.err
