# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Calls that hand a path to the kernel or to libc's own code, where no wrapper of open or stat is: mounts, swap, tables and
catalogues that libc reads by itself. The programs are in processes/."""

import platform
import shutil

import pytest

from conftest import IS_SUPERUSER, PYTHON, Shunt, assert_equal_text, run
from test_failures import as_nobody, everybodys  # noqa: F401: a fixture

unsanitized = pytest.mark.unsanitized


@pytest.fixture
def programs(build):
    return build / "tests" / "node" / "processes"


@unsanitized
@pytest.mark.skipif(not IS_SUPERUSER, reason="to mount takes the superuser")
def test_calls_of_the_superuser_with_the_path_of_a_redirected_file(pair, programs):
    native, shunt = pair.both(f"{programs}/rough_mounts")
    assert "point: source\n" in native and "open_tree: done\n" in native and "  onto: tree\n" in native
    assert_equal_text(native, shunt)
    pair.assert_equal()


LOCALES = r"""
mkdir locale
zcat /usr/share/i18n/charmaps/ISO-8859-1.gz | sed 's/^<code_set_name>.*/<code_set_name> XX-LATIN/; /^% alias/d' >charmap
make() { localedef -c -i en_US -f $2 $PWD/locale/$1 >/dev/null 2>&1 || test -d locale/$1; }
make zz_ZZ UTF-8; make cc_CC $PWD/charmap; cp -r locale/zz_ZZ locale/yy_YY
"""


@unsanitized
def test_files_that_libc_opens_by_itself(pair, programs):
    assert shutil.which("localedef") and shutil.which("gencat")
    native, shunt = pair.both(f"{LOCALES}{programs}/rough_libcs_files")
    assert "wrong" not in native
    assert_equal_text(native, shunt)
    pair.assert_equal()


# Programs by other ways than their path

LOADER = "$(readelf -l /bin/true | sed -n 's/.*interpreter: \\(.*\\)]/\\1/p')"

LOADED = f"""
mkdir -p d; cp /bin/true d/model; cp /bin/echo d/other; cp /bin/echo d/third
ldd d/model | grep -c libc.so
cd d; {LOADER} --argv0 name ./other by the loader; cd ..
{LOADER} --library-path /none --inhibit-cache d/third by the loader || echo "not found: $?"
{LOADER} d/none 2>/dev/null || echo "none: $?"
"""


def test_a_program_is_given_to_the_dynamic_loader(native_and_shunt):
    native, shunt = native_and_shunt(LOADED)
    assert native.splitlines()[:2] == ["1", "by the loader"]
    assert_equal_text(native, shunt)


INTERPRETED = """
mkdir -p d; echo data >d/f
printf '#include <stdio.h>\nint main(void) { puts(fopen("d/f", "r") != NULL ? "sees it" : "does not"); return 0; }\n' >m.c
for name in my.so loader; do
    cp $(readelf -l /bin/true | sed -n 's/.*interpreter: \\(.*\\)]/\\1/p') d/$name
    cc -o p-$name m.c -Wl,--dynamic-linker=$ROOT/d/$name; ./p-$name 2>&1
done
"""


@unsanitized
def test_a_loader_that_lies_in_the_root(pair):
    native, shunt = pair.both(INTERPRETED)
    assert native == "sees it\n" * 2
    assert_equal_text(native, shunt)


EXECUTED = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
words = (ctypes.c_char_p * 2)(b"it", None)
environment = (ctypes.c_char_p * (len(os.environ) + 1))(*(f"{name}={os.environ[name]}".encode() for name in os.environ), None)
fd = os.open(sys.argv[2], os.O_RDONLY)
os.set_inheritable(fd, True)
if sys.argv[1] == "fexecve":
    os.execve(fd, ["it"], os.environ)
elif sys.argv[1] == "execveat":
    libc.execveat(fd, b"", words, environment, 0x1000)
elif sys.argv[1] == "number":
    libc.syscall(int(sys.argv[3]), fd, b"", words, environment, 0x1000)
else:
    os.execv(f"{sys.argv[1]}{fd}", ["it"])
print(os.strerror(ctypes.get_errno()))
"""

WITH_NEIGHBOURS = """
mkdir -p d/bin d/lib; cd d
echo 'int neighbour(void) { return 42; }' >n.c; cc -shared -fPIC -o lib/libneighbour.so n.c
echo 'int neighbour(void); int printf(const char *, ...); int main(void) { printf("%d\\n", neighbour()); return 0; }' >m.c
cc -w -o made m.c -Llib -lneighbour -Wl,-rpath,'$ORIGIN/../lib'
for way in fexecve execveat number /proc/self/fd/ /dev/fd/; do cp made bin/it; PYTHON EXECUTED $way bin/it NUMBER; rm bin/it; done
"""


@unsanitized
def test_a_program_is_executed_by_its_descriptor(pair, area):
    """Its neighbours are found by $ORIGIN, as natively."""
    (area / "executed.py").write_text(EXECUTED)
    number = {"x86_64": "322", "aarch64": "281"}[platform.machine()]
    script = WITH_NEIGHBOURS.replace("PYTHON", PYTHON).replace("EXECUTED", str(area / "executed.py")).replace("NUMBER", number)
    native, shunt = pair.both(script)
    assert native == "42\n" * 5
    assert_equal_text(native, shunt)


# Streams


REOPENED = r"""
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
def reopened(path, mode, text, again=b"/dev/null"):
    stream = libc.fopen(again, b"r")
    fd = libc.fileno(ctypes.c_void_p(stream))
    stream = libc.freopen(path, mode, ctypes.c_void_p(stream))
    if stream is None:
        print(path, mode, os.strerror(ctypes.get_errno()))
        return
    here = libc.fileno(ctypes.c_void_p(stream))
    print(path, mode, here == fd, os.get_inheritable(here), libc.fputs(text, ctypes.c_void_p(stream)) > 0,
          libc.ftell(ctypes.c_void_p(stream)), libc.fclose(ctypes.c_void_p(stream)))
os.mkdir("work")
os.chdir("work")
open("appended", "w").write("before ")
before = os.umask(0o777)
reopened(b"new", b"w", b"one")
reopened(b"new-append", b"a", b"two")
reopened(b"new-both", b"w+e", b"three")
reopened(b"new-exclusive", b"wx", b"four")
reopened(b"appended", b"wx", b"not")
reopened(b"none/below", b"w", b"not")
os.umask(before)
reopened(b"appended", b"a", b"after")
reopened(b"appended", b"a+", b" that")
os.mkfifo("pipe")
writer = subprocess.Popen(["sh", "-c", "echo by one writer >pipe"])
stream = libc.freopen(b"pipe", b"r", ctypes.c_void_p(libc.fopen(b"/dev/null", b"r")))
line = ctypes.create_string_buffer(64)
libc.fgets(line, 64, ctypes.c_void_p(stream))
print(line.value, writer.wait())
for name in sorted(os.listdir(".")):
    st = os.stat(name)
    print(name, oct(st.st_mode), st.st_size)
"""


@pytest.mark.skipif(not IS_SUPERUSER, reason="runs as another user")
def test_a_stream_is_reopened_with_a_file_that_its_mode_forbids(everybodys):  # noqa: F811
    session = as_nobody(everybodys)
    (everybodys / "plain").mkdir()
    (everybodys / "plain").chmod(0o777)
    (everybodys / "reopened.py").write_text(REOPENED)
    program = [PYTHON, everybodys / "reopened.py"]
    native = run([*session.prefix, *program], cwd=everybodys / "plain", timeout=60).check()
    seen = session.tool("run", "--root", everybodys / "root", "--placement", "branch", "--", *program,
                        cwd=everybodys / "root").check()
    assert "b'new' b'w' True True True 3 0" in native and "by one writer" in native
    assert_equal_text(native, seen)


# Namespaces of the dynamic loader


@unsanitized
def test_code_with_a_c_library_of_its_own(pair, programs):
    """In several namespaces and in the program itself, at the same time, and after many that came to nothing."""
    native, shunt = pair.both(f"{programs}/rough_spaces {programs}/libplugin.so 2>&1")
    assert native.splitlines()[:2] == ["failed 40: not there", "made 300"] and "names 1201\n" in native
    assert_equal_text(native, shunt)


@unsanitized
def test_code_with_a_c_library_that_cannot_be_served_is_warned_of(shunt, root, programs):
    done = shunt.run(root, [programs / "rough_spaces", programs / "libplugin.so", "alone"], cwd=root)
    assert done.status == 0
    assert "libplugin.so: warning: loaded with a C library of its own, so shunt does not see what it does" in done.err


@unsanitized
@pytest.mark.parametrize("story, expected", [
    ("go", "gone to and fro\n"), ("restrict", "0 -1 -1 0 -1 -1\n"), ("be restricted", "0 -1 -1 0 -1 -1\n")])
def test_what_the_process_becomes_is_seen_by_code_with_a_c_library_of_its_own(pair, programs, story, expected):
    """The working directory; a filter of system calls."""
    native, shunt = pair.both(f"{programs}/rough_spaces {programs}/libplugin.so '{story}' 2>&1")
    assert native == expected
    assert_equal_text(native, shunt)


@unsanitized
@pytest.mark.skipif(not IS_SUPERUSER, reason="to become another user takes the superuser")
@pytest.mark.parametrize("story, expected", [("become", "0 0 0 0\n"), ("become at once", "0 0 -1 0\n")])
def test_another_user_by_code_with_a_c_library_of_its_own(everybodys, programs, story, expected):  # noqa: F811
    """An instance of the library that has not used the root before is refused, as a program is that is executed then."""
    for name in "rough_spaces", "libplugin.so":
        shutil.copy(programs / name, everybodys)
    done = Shunt(everybodys / "build").run(everybodys / "root", ["../rough_spaces", everybodys / "libplugin.so", story],
                                           cwd=everybodys / "root", SHUNT_RUN_DIR=everybodys / "run")
    assert done.check() == expected
    assert ("served for another user" in done.err) == (story == "become at once")


NEWER = r"""
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
actions = ctypes.create_string_buffer(256)
libc.posix_spawn_file_actions_init(actions)
libc.posix_spawn_file_actions_addopen(actions, 0, b"input", os.O_RDONLY, 0)
words = (ctypes.c_char_p * 4)(b"sh", b"-c", b"read line; echo $line", None)
environment = (ctypes.c_char_p * (len(os.environ) + 1))(*(f"{name}={os.environ[name]}".encode() for name in os.environ), None)
for function, path in ((libc.pidfd_spawn, b"./program"), (libc.pidfd_spawnp, b"other"), (libc.pidfd_spawn, b"input/program")):
    child = ctypes.c_int(-1)
    error = function(ctypes.byref(child), path, actions, None, words, environment)
    print(os.strerror(error), os.waitid(os.P_PIDFD, child.value, os.WEXITED).si_status if error == 0 else "", flush=True)
fd = libc.openat2(-100, b"input", struct.pack("QQQ", os.O_RDONLY, 0, 0), 24)
print(os.read(fd, 99) if fd >= 0 else os.strerror(ctypes.get_errno()))
"""


@unsanitized
def test_functions_of_a_newer_libc(build, pair, area):
    """pidfd_spawn, pidfd_spawnp, openat2: where libc has them they serve a program and files in a branch."""
    (area / "newer.py").write_text(NEWER)
    behind = f'export LD_PRELOAD="${{LD_PRELOAD:+$LD_PRELOAD:}}{build}/tests/node/newer_libc.so" PATH="$ROOT:$PATH"'
    native, shunt = pair.both(f"echo given >input; cp /bin/sh program; cp /bin/sh other; {behind}; exec {PYTHON} {area}/newer.py")
    assert native == "given\nSuccess 0\ngiven\nSuccess 0\nNot a directory \nb'given\\n'\n"
    assert_equal_text(native, shunt)


ABSENT = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(errno.errorcode[libc.pidfd_spawn(None, b"/bin/true", None, None, None, None)])
print(libc.openat2(-100, b"/", bytes(24), 24) >= 0)
"""


@unsanitized
def test_functions_that_libc_does_not_have(shunt, root):
    """The library has them all the same, for programs that look for one by its name."""
    said = shunt.run(root, [PYTHON, "-c", ABSENT]).check()
    assert said in ("ENOSYS\nTrue\n", "EFAULT\nTrue\n")
