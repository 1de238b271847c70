# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Statically linked programs, and those of Go: a filter asks a helper about their paths."""

import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess

import pytest

from conftest import IS_SUPERUSER, PYTHON, assert_equal_text, environment, redirected_files, run, stand_still, standing_still, wait_until
from test_namespaces import NEEDS_BWRAP

HERE = pathlib.Path(__file__).resolve().parent
BUSYBOX = shutil.which("busybox") or "busybox"
EIO, ENOSYS = "Input/output error", "Function not implemented"

# The helper makes its calls through the library, and is no place for another one.
pytestmark = pytest.mark.unsanitized


def linked(directory, name, *flags, compiler="gcc"):
    program = directory / "program"
    run([compiler, "-D_GNU_SOURCE", "-pthread", "-O1", "-w", "-o", program, HERE / "processes" / name, *flags]).check()
    return program


LINKED = {"glibc": ("gcc", ["-static-pie"]), "musl": ("musl-gcc", ["-static"]), "musl, dynamic": ("musl-gcc", [])}


@pytest.mark.parametrize("kind", LINKED)
def test_a_static_program_sees_the_union(native_and_shunt, area, kind):
    compiler, flags = LINKED[kind]
    program = linked(area, "statics.c", *flags, compiler=compiler)
    native, shunt = native_and_shunt(f"{program} $ROOT 2>&1")
    assert_equal_text(native, shunt)
    assert "made 4, failed 0" in shunt


def test_a_program_of_go_that_is_linked_with_libc(native_and_shunt, area):
    """The library is loaded into it, and sees the calls of libc alone."""
    program = linked(area, "go_like.c", "-I", HERE.parents[1] / "lib")
    native, shunt = native_and_shunt(f"echo hot >hot; {program} $ROOT; {BUSYBOX} sh -c '{program} $ROOT'")
    assert_equal_text(native, shunt)


def test_a_program_of_go_that_is_linked_with_nothing(native_and_shunt, go_program):
    native, shunt = native_and_shunt(f"{go_program} $ROOT 400")
    assert_equal_text(native, shunt)
    assert "made: 400 files" in shunt


BUSYBOX_SCRIPT = f"""
b={BUSYBOX}
mkdir -p out && for i in 1 2 3; do echo hot$i >out/file$i; done
$b ls $ROOT/out; $b cat $ROOT/out/file1; $b mv $ROOT/out/file1 $ROOT/out/moved; $b rm $ROOT/out/file2
cd out
$b sh -c 'for f in *; do echo "$f $(cat $f)"; done; echo new >new; mkdir deep; cd deep; echo ../*; echo far >../far'
# What is open has the name that the program knows.
$b sh -c 'exec 5>>new; '$b' readlink /proc/self/fd/5; '$b' readlink /proc/$$/fd/5; '$b' readlink -f /proc/self/fd/5'
# From static to dynamic and back; the environment may be lost on the way.
$b sh -c "/bin/cat $ROOT/out/new; /bin/sh -c 'cat far; $b cat far; /bin/mv far further'; $b env -i /bin/ls $ROOT/out"
$b env -i /bin/sh -c "echo lost >$ROOT/out/lost; /bin/cat $ROOT/out/moved"
$b find $ROOT -name '.shunt*' -prune -o -type f -print | sort
printf '#!%s sh\\necho script; cat lost\\n' $b >script; chmod +x script; ./script
mkdir bin; cp $b bin/busybox; bin/busybox cat lost; $b sh -c "bin/busybox cat new; ./script"
$b tar cf ../all.tar . ; $b tar tf ../all.tar | sort; $b rm -r deep bin script; $b du -a . | wc -l; rm ../all.tar
"""


def test_busybox(native_and_shunt):
    native, shunt = native_and_shunt(BUSYBOX_SCRIPT)
    assert_equal_text(native, shunt)


def test_paths_that_lead_to_a_root_from_outside(native_and_shunt):
    script = f"""
outside=$(mktemp -d); ln -s $ROOT $outside/in; echo hot >file; ln -s $ROOT/file $outside/file; ln -s in/new $outside/new
b={BUSYBOX}
cd $outside
$b sh -c "cat in/file; cat file; echo made >new; cat $outside/in/new; cat $ROOT/new; ls -L $outside/in | sort" . $ROOT
rm -r $outside
"""
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)


def test_what_is_handed_a_root_by_another_path(native_and_shunt):
    """Whose words do not say so: a link from outside, as of a home directory, or another mount."""
    script = f"""
outside=$(mktemp -d); ln -s $ROOT $outside/in; echo hot >file; mkdir sub; echo far >sub/far; ln -s $ROOT/file $outside/file
b={BUSYBOX}
cd $outside
$b cat $outside/in/file; $b cat in/sub/far; $b cat file; $b ls in; $b sh -c 'ls in/sub; cat file' in; $b cp file in/copy
$b dd if=in/file of=in/sub/made 2>&1 | grep -c records; $b find in/ -type f | sort | grep -v shunt
cd in/sub; $b ls; cd /; $b ls $outside/in/
rm -r $outside
"""
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)


@NEEDS_BWRAP
def test_a_root_that_is_seen_at_another_path(native_and_shunt, area):
    """All of it, a part of it, and where it is hidden at its own."""
    script = f"""
at={area}/at; mkdir -p $at sub; echo hot >file; echo far >sub/far
b={BUSYBOX}
everything="bwrap --dev-bind / / --bind"
$everything $ROOT $at --chdir / $b cat $at/file
$everything $ROOT $at --chdir / $b sh -c "ls $at $at/sub; echo made >$at/made; mv $at/made $at/sub/moved; cd $at; ls; cat sub/moved" $at
$everything $ROOT/sub $at --chdir $at $b sh -c "ls; cat far; ls $ROOT; mv far further; cat $ROOT/sub/further; ln -s $at back; cat back/moved; rm back"
$everything $ROOT $at --tmpfs $ROOT --chdir $at $b sh -c "ls; cat sub/moved; echo new >new; rm file; ls $ROOT"
$everything $ROOT $at --chdir / /bin/sh -c "cd $at/sub; $b ls; $b cat ../new"
rmdir $at; ls . sub
"""
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)


@pytest.mark.skipif(not IS_SUPERUSER, reason="to mount takes the superuser")
def test_a_root_that_is_mounted_at_another_path_later(native_and_shunt):
    """By the program that is served, where it has seen another directory before."""
    script = f"""
outside=$(mktemp -d); mkdir $outside/in; echo hot >file; ln -s in $outside/link
b={BUSYBOX}
unshare --mount $b sh -c "cd $outside; cat in/file $outside/link/file 2>&1; ls in; $b mount --bind $ROOT $outside/in
    cat $outside/in/file $outside/link/file; echo made >$outside/in/made; mv $outside/in/file $outside/link/moved; ls $outside/in" . $ROOT | sed s:$outside::
rm -r $outside
"""
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)
    assert native.count("hot") == 2


EXECUTED_BY_DESCRIPTOR = """
mkdir out; cd out; cp {busybox} busybox; echo hot >file
printf '#!/bin/sh\\necho "script $1: $(cat file) $(echo *)"\\n' >script
printf 'int main(void) {{ return 7; }}' >program.c; gcc -o linked program.c; gcc -static -o static program.c; rm program.c
printf '#include <stdio.h>\\nint main(void) {{ return fopen("file", "r") ? 5 : 6; }}' >reads.c; gcc -static -o reads reads.c; rm reads.c
printf '#!%s sh\\necho "busy $1: $(cat file)"; ls; cat file\\n' {busybox} >busy; chmod 755 *; chmod 644 file
{handed} $ROOT/out script busy linked static reads file none 2>&1
ls
"""


@pytest.mark.parametrize("kind", ["glibc", "musl", "dynamic"])
def test_programs_that_are_executed_by_a_descriptor(native_and_shunt, area, kind):
    """With O_PATH, too, and after another file has taken the name."""
    compiler, flags = LINKED.get(kind, ("gcc", []))
    handed = linked(area, "handed.c", *flags, compiler=compiler)
    native, shunt = native_and_shunt(EXECUTED_BY_DESCRIPTOR.format(busybox=BUSYBOX, handed=handed))
    assert_equal_text(native, shunt)
    assert "script word: hot busy" in shunt and "static, flags 0, with it: status 7" in shunt and "reads, flags 0, with it: status 5" in shunt


EXECUTES = """
import errno, os, sys
def ended(child):
    return "status %d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def forked(execute):
    child = os.fork()
    if child == 0:
        try:
            execute()
        except OSError as error:
            print(errno.errorcode[error.errno], end=" ", flush=True)
        os._exit(3)
    return ended(child)
def spawned(path):
    try:
        return ended(os.posix_spawn(path, [path, "file"], os.environ))
    except OSError as error:
        return errno.errorcode[error.errno]
for path in sys.argv[1:]:
    print(path, forked(lambda: os.execv(path, [path, "file"])), spawned(path),
          forked(lambda: os.execve(os.open(path, os.O_RDONLY), [path, "file"], os.environ)), flush=True)
"""

CANNOT_BE_EXECUTED = """
mkdir first second; echo hot >file
printf 'int main(void) {{ return 7; }}' >program.c; gcc -static -o static program.c; rm program.c
cp static plain; chmod 644 plain; cp static first/found; chmod 644 first/found; cp static second/found; cp static written
printf '#!./static\n' >script; printf '#!./plain\n' >of-plain; printf '#!./script\n' >of-script; chmod 755 script of-plain of-script
printf '#!./static\n' >plain-script
{busy}
{python} -c '{executes}' ./static ./plain ./script ./of-plain ./of-script ./plain-script ./written 2>&1
PATH=$PWD/first:$PWD/second:$PATH; found file || echo $?; exec 7>&-
"""


@pytest.mark.parametrize("is_busy", [False, True], ids=["permissions", "is written to"])
def test_what_cannot_be_executed_is_the_callers_to_hear(native_and_shunt, is_busy):
    """And not that of the helper, which would execute it. That somebody may write to a file the kernel tells since 6.14."""
    if is_busy and tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups())) < (6, 14):
        pytest.skip("before Linux 6.14 the kernel says ETXTBSY only when it executes (shunt(7))")
    script = CANNOT_BE_EXECUTED.format(python=PYTHON, executes=EXECUTES, busy="exec 7>>written" if is_busy else "")
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)
    assert "./plain status 3 EACCES status 3" in shunt and ("./written status 3 ETXTBSY status 3" in shunt) == is_busy


BLOCKS = f"""{PYTHON} -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTRAP}})
os.execvp(sys.argv[1], sys.argv[1:])' """
SAYS_BLOCKED = f"{BUSYBOX} grep SigBlk /proc/self/status file"


@pytest.mark.parametrize("blocks", ["", BLOCKS], ids=["not blocked", "blocked"])
def test_a_debugger_that_counts_what_is_executed(native_and_shunt, area, blocks):
    """As gdb does, which sets its breakpoints after the shell and the program. What is blocked is inherited."""
    traced = linked(area, "traced.c")
    script = f"echo hot >file; {traced} {BUSYBOX} cat $ROOT/file; {blocks}{SAYS_BLOCKED}; {blocks}{BUSYBOX} sh -c '{SAYS_BLOCKED}'"
    native, shunt = native_and_shunt(script)
    assert_equal_text(native, shunt)
    assert "executes /busybox\nhot\nstatus 0\n" in shunt


# What shunt(7) says of such programs: it is refused as by an older kernel, and what these calls are given is looked for in the trunk.
NOT_OF_STATIC_PROGRAMS = ("NUMBER_OPEN_TREE_ATTR", "NUMBER_FSCONFIG", "chroot", "pivot_root")


@pytest.mark.skipif(not IS_SUPERUSER, reason="to mount takes the superuser")
def test_calls_of_the_superuser_with_the_path_of_a_redirected_file(shunt, area):
    program = linked(area, "mounts.c", "-static", "-I", HERE.parents[1] / "lib")

    def under(name, *words):
        root = area / name
        root.mkdir()
        words = [root if word == "ROOT" else word for word in words]
        said = run(["unshare", "--mount", *words, "sh", "-c", 'exec "$0" here', program], cwd=root).check()
        return "\n".join(line for line in said.splitlines() if not any(name in line for name in NOT_OF_STATIC_PROGRAMS))

    native = under("native")
    assert_equal_text(native, under("shunt", shunt.path, "run", "--root", "ROOT", "--placement", "branch", "--keep", "--"))
    assert "point: source\n" in native and redirected_files(area / "shunt")


@pytest.fixture
def edges(area):
    """Calls at the edge of what a program may do."""
    return linked(area, "edges.c", "-static")


# Scripts, in which `$e` is that program.
EDGES = {
    "no descriptor is left": "$e descriptors $ROOT; cat file",
    "a thread with descriptors of its own": "$e threads $ROOT",
    "the first thread has ended": "mkdir out; cd out; $e leader $ROOT",
    "links to what is open in the process, or where it is": "$e itself $ROOT; ls",
    "links on the way to what is open in the process, or where it is":
        "cp file usr; $e on-the-way $ROOT.to $ROOT.to/usr; rm $ROOT.to; ls -R",
    "what it has opened is open nowhere else": "$e alone $ROOT",
    "files may not be large": "$e sizes $ROOT; ulimit -f 100; $e sizes $ROOT; $e children 3 1 file $ROOT",
    "the code of children lies below the stack": "ulimit -S -s 8192; cp /bin/cat program; $e stack 300 ./program file | tail -n 1",
    "few descriptors": "ulimit -n 200; $e children 300 1 file $ROOT; ulimit -n 40; $e children 100 1 file $ROOT; ls",
    "few descriptors, from outside":
        "ln -s $ROOT $ROOT.to; ulimit -n 40; $e children 100 1 $ROOT.to/file $ROOT; rm $ROOT.to; ls",
    "little processor time, which the helper needs for many": "ulimit -t 1; $e children 8 20000 file $ROOT",
    "a program that takes in what its children leave waits for all": "$e takes-in $e waits",
}


@pytest.mark.parametrize("what", EDGES)
def test_at_the_edge_of_what_a_program_may_do(native_and_shunt, edges, what):
    native, shunt = native_and_shunt(f"exec 2>&1; e={edges}; echo hot >file; {EDGES[what]}")
    assert_equal_text(native, shunt)


@pytest.fixture
def said(shunt, root):
    """said(words): the lines of both outputs of a command that is started in the root; nothing it did was in the trunk alone."""

    def say(*words):
        result = shunt.run(root, ["sh", "-c", f"mkdir sub; echo hot >file; echo secret >secret; exec {' '.join(map(str, words))}"], cwd=root)
        assert sorted(name.name for name in root.iterdir() if name.name != ".shunt") == ["file", "secret", "sub"]
        return result.check().splitlines(), result.err.splitlines()

    return say


def test_one_that_forbids_others_to_look_into_it_fails(said, edges):
    """Its paths cannot be read, so that it is not known which are those of a root."""
    fewer = ["setpriv", "--bounding-set=-sys_ptrace"] if IS_SUPERUSER else []
    lines, errors = said(*fewer, edges, "hidden")
    assert lines == ["hides: done", f"open: {EIO}", f"make: {EIO}", f"open elsewhere: {EIO}"]
    assert len(errors) == 1 and "forbids that others look into it" in errors[0]


@pytest.mark.skipif(not IS_SUPERUSER, reason="gives up what only a superuser has")
@pytest.mark.parametrize("how, gives_up", [("capabilities", "gives them up: done"), ("users", "users of its own: done")])
def test_one_that_gives_up_capabilities_fails(said, edges, how, gives_up):
    lines, errors = said(edges, how, "$PWD")
    assert lines == [gives_up, f"open: {EIO}"]
    assert len(errors) == 1 and "changed its user, groups or capabilities" in errors[0]


def test_a_sandbox_that_would_not_bind_the_helper_is_not_there(said, edges):
    assert said(edges, "sandbox", "$PWD") == (["sandbox: " + ENOSYS, "open: done"], [])


@pytest.mark.parametrize("flags", [["-static"], []], ids=["static", "dynamic"])
def test_paths_within_a_root_that_begin_at_a_descriptor(said, area, root, flags):
    """RESOLVE_IN_ROOT: what would lead into a root is refused as by a kernel without openat2."""
    lines, errors = said(linked(area, "edges.c", *flags), "within", "$PWD")
    refused = ["/file", "/file", "../../file", "sub/../../file", "/", f"{root}/file"]
    assert lines == [*(f"{path}: {ENOSYS}" for path in refused), "/etc/passwd: done", "/etc/../../etc/passwd: done"]
    assert errors == []


def helpers(root):
    """(the guard, the one that answers) of the programs of a root."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve().name == "shunt-static" and f"SHUNT_ROOT={root}\0".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return [(parent, child) for child, parent in found.items() if parent in found]


@pytest.fixture
def shell(shunt, root):
    """A statically linked shell under shunt, in the root; shell(command) gives the first line that it prints."""
    command = [shunt.path, "run", "--root", root, "--placement", "branch", "--", BUSYBOX, "sh", "-s", root]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=root, text=True,
                               env=environment())

    def ask(words, answers=True):
        process.stdin.write(words + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip() if answers else None

    ask.process = process
    yield ask
    if process.poll() is None:
        process.stdin.close()
        process.wait(60)


READ = "read line <file && echo $line"


def test_without_its_helper_a_call_fails(shell, root):
    """Never is the trunk alone what it sees; what has nothing to do with the root fails as well."""
    assert shell(f"echo hot >file; {READ}") == "hot"
    assert redirected_files(root)
    [(_, server)] = helpers(root)
    stand_still(server)
    shell(READ, answers=False)
    os.kill(server, signal.SIGKILL)
    assert "the helper of statically linked programs has ended" in shell.process.stdout.readline()
    assert EIO in shell.process.stdout.readline()
    for words in (READ, "echo new >new", "cd /", "read line </etc/passwd"):
        assert EIO in shell(words)
    assert shell("echo lives on") == "lives on"


def calls_of_the_helper(shunt, area, root, script, path):
    """What each of its threads asks the kernel, at the last call that names this path, from when it is received until the listener is
    asked or answered."""
    words = ["strace", "-ff", "-qq", "-o", area / "trace", shunt.path, "run", "--root", root, "--placement", "branch", "--"]
    assert run([*words, BUSYBOX, "sh", "-c", f"{script}; echo done", root], cwd=root).check().endswith("done\n")
    found = []
    for trace in area.glob("trace.*"):
        received = re.split(r"SECCOMP_IOCTL_NOTIF_RECV.* = 0\n", trace.read_text(errors="replace"))[1:]
        for one in [one for one in received if f'"{path}' in one][-1:]:
            calls = re.findall(r"^(\w+)\(", one, re.MULTILINE)
            found.append([call for call in calls[:calls.index("ioctl")] if call != "epoll_ctl"])
    return found


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/none-of-that-name"])
def test_what_a_call_that_has_nothing_to_do_with_the_root_costs(shunt, area, run_base, path):
    """It is read and looked at, and the kernel goes on."""
    if len({os.stat("/").st_dev, os.stat("/etc").st_dev}) > 1 or os.stat("/").st_dev == run_base.stat().st_dev:
        pytest.skip("/etc is on a mount of its own, or the root on that of /")
    root = run_base / "root"
    root.mkdir()
    assert calls_of_the_helper(shunt, area, root, f"test -e {path}", path) == [["process_vm_readv", "openat2"]]


def test_what_it_costs_to_look_at_an_open_that_makes_nothing(shunt, area, root):
    script = f"echo hot >file; for i in 1 2 3 4 5 6; do read line <{root}/file; done"
    found = calls_of_the_helper(shunt, area, root, script, f"{root}/file")
    assert found and all(calls == ["process_vm_readv", "openat2", "pread64"] for calls in found), found


def test_one_that_waits_holds_up_no_other(shell, shunt, root):
    """Three wait for the daemon, by turns with calls that need not."""
    assert shell("echo started") == "started"
    daemon = json.loads(run([shunt.path, "status", "--json", "--root", root]).check())[0]["pid"]
    with standing_still(daemon):
        for number in range(3):
            shell(f"mkdir made{number} &", answers=False)
            assert shell("test -e /etc/passwd && echo quick") == "quick"
    assert shell("wait; ls -d made*; echo") == "made0"
    assert [shell.process.stdout.readline() for _ in range(3)] == ["made1\n", "made2\n", "\n"]


ENDING = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]
OF_A_TERMINAL = [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU]


def test_signals_for_programs_leave_the_helper_alone(shell, root):
    """As a batch system sends them to all processes of a job: a program may end it by writing a last file."""
    assert shell(f"echo hot >file; {READ}") == "hot"
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM, *ENDING, *OF_A_TERMINAL):
        for pid in itertools.chain(*helpers(root)):
            os.kill(pid, number)
        assert shell(READ) == "hot"


@pytest.mark.skipif(not IS_SUPERUSER, reason="changes the user")
def test_another_user_is_told_why(shunt, root):
    script = f"echo hot >file; {BUSYBOX} sh -c '/usr/bin/setpriv --reuid=65534 --clear-groups {BUSYBOX} cat {root}/file'"
    result = shunt.run(root, ["sh", "-c", script], cwd=root)
    assert (result.status, result.out) != (0, "hot\n") and EIO in result.err
    assert "shunt: a statically linked program changed its user, groups or capabilities" in result.err


def test_the_helper_ends_with_its_programs(shell, root):
    assert shell("echo hot >file; echo made") == "made"
    assert helpers(root)
    shell.process.stdin.close()
    shell.process.wait(60)
    wait_until(lambda: not helpers(root))


DENY_FILTERS = """
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None)
number = {"x86_64": 317, "aarch64": 277}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_where_the_kernel_takes_no_filter(shunt, root):
    """As in a container whose own filter denies seccomp(2): it runs, and a line says why it is not served."""
    script = f"echo hot >file; exec {PYTHON} -c \"$1\" {BUSYBOX} ls {root}"
    result = shunt.run(root, ["sh", "-c", script, "sh", DENY_FILTERS], cwd=root)
    assert result.check() == ""
    about = "so shunt does not see what it does with files under"
    assert result.err == (f"shunt: {BUSYBOX}: warning: statically linked, and not served, since the kernel takes no filter, "
                          f"{about} {root}\n")


LISTEN = """
import ctypes, errno, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 317, "aarch64": 277}[platform.machine()]
code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
listener = libc.syscall(number, 1, 8, program)
"""
LISTENER = LISTEN + """
assert listener >= 0, ctypes.get_errno()
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_where_another_filter_has_a_listener(shunt, root):
    """As in a container whose runtime answers calls itself: the kernel takes one alone. It runs, and a line says why it is not
    served; a dynamic program that it executes is."""
    script = f"echo hot >file; exec {PYTHON} -c \"$1\" {BUSYBOX} sh -c '{BUSYBOX} ls {root}; /bin/cat {root}/file; echo done'"
    result = shunt.run(root, ["sh", "-c", script, "sh", LISTENER], cwd=root)
    assert result.check() == "hot\ndone\n"
    assert result.err == (f"shunt: {BUSYBOX}: warning: statically linked, and not served, since another filter has a listener, "
                          f"so shunt does not see what it does with files under {root}\n")


def test_what_is_served_has_no_listener_of_its_own(shunt, root):
    """Nor has a program that it executes, which is told so and goes on."""
    code = LISTEN + 'print(listener, errno.errorcode[ctypes.get_errno()], open(sys.argv[1]).read(), end="")'
    script = f"echo hot >file; exec {BUSYBOX} sh -c '{PYTHON} -c \"$1\" {root}/file; cat {root}/file' sh \"$1\""
    assert shunt.run(root, ["sh", "-c", script, "sh", code], cwd=root).check() == "-1 EBUSY hot\nhot\n"


def test_no_helper(shunt, root):
    """What it does is said once, and the program runs; or it is not executed."""
    script = f"echo hot >file; for i in 1 2; do {BUSYBOX} cat {root}/file; done; echo done"

    def under(setting):
        result = shunt.run(root, ["sh", "-c", script], cwd=root, SHUNT_STATIC=setting)
        return result.check(), [line for line in result.err.splitlines() if line.startswith("shunt: ")]

    about = "so shunt does not see what it does with files under"
    assert under("warn") == ("done\n", [f"shunt: {BUSYBOX}: warning: statically linked, {about} {root}"])
    said, lines = under("refuse")
    assert (said, len(lines)) == ("done\n", 2) and all("is not executed" in line for line in lines)
    assert under("serve") == ("hot\nhot\ndone\n", [])
