# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the libraries show to the world, and what `meson install` leaves after.

SHUNT_BUILD names the build directory (default: build/ of this repository)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import derive_symbols  # noqa: E402 pylint: disable=wrong-import-position

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = r"""
#include <shunt/shunt.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
    char real[4096];
    int code = shunt_where(argv[1], real, sizeof real);
    printf("%s %d %s\n", shunt_version(), code, code == 0 ? real : "");
    return argc != 2;
}
"""


def output(*command, **settings):
    """The standard output of a command that must succeed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SHUNT_", "LD_"))}
    done = subprocess.run([str(word) for word in command], env={**kept, "LC_ALL": "C", **settings}, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def exports(library):
    lines = output("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def imports(library):
    lines = output("nm", "--dynamic", "--undefined-only", "--format=posix", library).splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", library)))


@pytest.fixture(scope="module")
def build():
    directory = pathlib.Path(os.environ.get("SHUNT_BUILD", REPOSITORY / "build")).resolve()
    assert (directory / "tools" / "shunt").exists(), f"build first: there is no {directory}/tools/shunt"
    return directory


@pytest.fixture(scope="module")
def preload(build):
    return build / "lib" / "shim" / "libshunt_preload.so"


@pytest.fixture(scope="module")
def libshunt(build):
    return build / "lib" / "api" / "libshunt.so"


def table():
    text = (REPOSITORY / "lib" / "shim" / "table.h").read_text()
    return re.findall(r"^SYMBOL\(\w+, (\w+),", text, re.MULTILINE)


def test_table_names_each_symbol_once():
    names = table()
    assert len(names) > 100
    assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}


def test_preload_exports_every_symbol_of_the_table(preload):
    assert not set(table()) - exports(preload)


def test_preload_exports_nothing_else(preload):
    assert not exports(preload) - set(table())


def test_preload_exports_what_was_decided_and_nothing_else(preload):
    wanted = {name for name, (decision, _) in derive_symbols.decided().items() if decision == "yes"}
    assert len(wanted) > 170
    assert not wanted - exports(preload), "missing"
    assert not exports(preload) - wanted, "not wanted"


def test_table_and_decisions_have_the_same_groups():
    groups = dict((name, group) for group, name in
                  re.findall(r"^SYMBOL\((\w+), (\w+),", (REPOSITORY / "lib/shim/table.h").read_text(), re.MULTILINE))
    decided = {name: group for name, (decision, group) in derive_symbols.decided().items() if decision == "yes"}
    assert groups == decided


def test_every_function_of_this_libc_that_reaches_a_path_is_decided():
    """Of another glibc than the list's the script tells; here it must find what is known of this one."""
    found = derive_symbols.derive(derive_symbols.own_libc())
    decided = derive_symbols.decided()
    assert found["open"] >= {"openat"} and found["getpid"] == set()
    assert found["mkstemp"] and found["realpath"], "by an address that is taken, and through another function"
    new = sorted(name for name, calls in found.items() if calls and name not in decided)
    if output("ldd", "--version").split("\n")[0].endswith("2.36"):
        assert not new
    assert len(new) < len(found) / 10, new


def test_a_symbol_without_a_decision_is_shown(tmp_path):
    known = derive_symbols.LIST.read_text()
    shorter = tmp_path / "symbols.txt"
    shorter.write_text("".join(line + "\n" for line in known.splitlines() if not line.startswith("renameat2 ")) +
                       "vanished_function yes open\n")
    done = subprocess.run([sys.executable, derive_symbols.HERE / "derive_symbols.py", "--list", shorter],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "new\trenameat2\trenameat,renameat2\n" in done.stdout
    assert "gone\tvanished_function\t\n" in done.stdout


# What no program asks for that an older glibc can run.
NEWER = {"pidfd_spawn": "2.39", "pidfd_spawnp": "2.39", "openat2": "2.43"}


def test_exported_symbols_are_libcs(preload):
    """A name that no libc has would be in an application's way. Those that only old binaries ask for are there
    under old versions, which --defined-only shows, too."""
    libc = re.search(r"libc\.so\.6 => (\S+)", output("ldd", preload)).group(1)
    assert not exports(preload) - exports(libc) - NEWER.keys()


def test_preload_needs_libc_only(preload):
    others = {name for name in needed(preload) if not name.startswith(("libc.so.", "ld-linux"))}
    assert "libc.so.6" in needed(preload)
    assert not others


def test_preload_is_initialised_first(preload):
    flags = re.search(r"\(FLAGS_1\)(.*)", output("readelf", "--dynamic", "--wide", preload))
    assert flags and "INITFIRST" in flags.group(1).split()


def test_preload_is_bound_at_once(preload):
    """Lazy binding would resolve symbols in signal handlers and vfork children."""
    assert "NOW" in re.search(r"\(FLAGS_1\)(.*)", output("readelf", "--dynamic", "--wide", preload)).group(1).split()


def test_preload_has_no_dynamic_tls(preload):
    """__tls_get_addr may call malloc: its buffers would not be async-signal-safe."""
    assert "__tls_get_addr" not in imports(preload)
    dynamic = re.findall(r"\S*(?:DTPMOD|DTPREL|DTPOFF|TLSDESC)\S*", output("readelf", "--relocs", "--wide", preload))
    assert not dynamic


def test_preload_has_no_executable_stack(preload):
    stack = re.search(r"GNU_STACK.*", output("readelf", "--program-headers", "--wide", preload)).group(0)
    assert "RWE" not in stack


def test_libshunt_exports_what_its_header_declares(libshunt):
    header = (REPOSITORY / "include" / "shunt" / "shunt.h").read_text()
    declared = set(re.findall(r"^SHUNT_API [^;]*?(\w+)\(", header, re.MULTILINE))
    assert declared and all(name.startswith("shunt_") for name in declared)
    assert exports(libshunt) == declared


def test_libshunt_has_a_soname_of_its_own(libshunt):
    assert "[libshunt.so.0]" in output("readelf", "--dynamic", "--wide", libshunt)


# The installed tree.


@pytest.fixture(scope="module")
def installed(build, tmp_path_factory):
    directory = tmp_path_factory.mktemp("installed").resolve()
    output("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", directory)
    return directory


def one(installed, name):
    """The one installed file of this name."""
    found = [path for path in installed.rglob(name) if not path.is_dir()]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


def test_installed_files(installed):
    pages = [f"shunt-{of}.1" for of in ("bench", "export", "fsck", "launch", "ls", "run", "status")]
    for name in ("shunt.h", "shunt.1", *pages, "shunt.pc", "libshunt.so", "libshunt.so.0", "libshunt_preload.so"):
        assert one(installed, name).stat().st_size > 0
    for program in (installed.glob("**/bin/shunt"), installed.glob("**/bin/shunt-launch"), installed.glob("**/shunt/shuntd")):
        assert os.access(next(program), os.X_OK)


def installed_tool(installed):
    return next(installed.glob("**/bin/shunt"))


def test_installed_tool_finds_its_parts(installed, root):
    """Not those of a build directory, nor of another installation: the tree was moved as a whole."""
    preload, daemon = one(installed, "libshunt_preload.so"), one(installed, "shuntd")
    script = ('echo hello > file && cat file && grep -o "/.*libshunt_preload.so" /proc/self/maps | sort -u'
              ' && readlink /proc/[0-9]*/exe || true')
    said = output(installed_tool(installed), "run", "--root", root, "--placement", "branch", "--keep", "--",
                  "sh", "-c", f'cd "{root}" && {script}').splitlines()
    assert said[0] == "hello"
    assert str(preload) in said
    assert str(daemon) in said
    assert len(list((root / ".shunt" / "b").glob("*/*/*/file"))) == 1, "it was redirected"


def test_installed_tool_knows_its_version(installed):
    assert re.search(r"\d+\.\d+\.\d+", output(installed_tool(installed), "--version"))


def pkg_config(installed, *words):
    program = shutil.which("pkg-config") or shutil.which("pkgconf")
    return output(program, *words, "shunt", PKG_CONFIG_PATH=str(one(installed, "shunt.pc").parent),
                  PKG_CONFIG_SYSROOT_DIR=str(installed), PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
                  PKG_CONFIG_ALLOW_SYSTEM_LIBS="1").split()


def test_a_program_is_built_with_pkg_config(installed, root, tmp_path):
    source, program, file = tmp_path / "program.c", tmp_path / "program", root / "file"
    source.write_text(PROGRAM)
    output("cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", source, "-o", program,
           *pkg_config(installed, "--cflags", "--libs"))
    output(installed_tool(installed), "run", "--root", root, "--placement", "branch", "--keep", "--",
           "sh", "-c", f'echo hello > "{file}"')
    said = output(program, file, LD_LIBRARY_PATH=str(one(installed, "libshunt.so.0").parent)).split()
    assert said[0] == pkg_config(installed, "--modversion")[0]
    assert said[1] == "0"
    assert pathlib.Path(said[2]).read_text() == "hello\n"
    assert ".shunt/b/" in said[2]
