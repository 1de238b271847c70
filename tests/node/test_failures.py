# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Bad input and failure: each is a clear error, nothing crashes, nothing is lost, and nothing is created natively in
the wrong place."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import (IS_SUPERUSER, PYTHON, Shunt, assert_plain, environment, is_running, kill_daemon,
                      redirected_files, run, standing_still, supervisor_of, wait_until)
from immutable import immutable
from union_on_disk import Union, beating_elsewhere, scontrol, session_of

NOBODY = 65534


def one_sentence(result, *words):
    """A failure that says what is wrong, in one line, with these words in it."""
    assert result.status not in (0, None) and result.status != -signal.SIGSEGV, result
    assert result.err.count("\n") == 1 and "shunt" in result.err, result.err
    for word in words:
        assert str(word) in result.err, result.err
    return result.err


class Session:
    """A session in pieces: start, exec, stop, with a run directory of its own."""

    def __init__(self, shunt, root, run_base, placement="branch", prefix=()):
        self.shunt, self.root, self.run_base, self.placement = shunt, root, run_base, placement
        self.prefix = list(prefix)

    def tool(self, *words, **options):
        return run([*self.prefix, self.shunt.path, *words], SHUNT_RUN_DIR=self.run_base, SHUNT_NODE="n1", **options)

    def start(self, *words, **options):
        return self.tool("start", "--root", self.root, "--placement", self.placement, *words, **options)

    def stop(self):
        return self.tool("stop", "--root", self.root)

    def exec(self, *command, **options):
        return self.tool("exec", "--root", self.root, "--", *command, timeout=60, **options)

    def popen(self, *command, **options):
        words = [*self.prefix, self.shunt.path, "exec", "--root", self.root, "--", *command]
        return subprocess.Popen(list(map(str, words)), env=environment(SHUNT_RUN_DIR=self.run_base, SHUNT_NODE="n1"),
                                text=True, **options)

    def names(self, directory):
        """The names of a directory as the shim lists them, and as the tool reads them from disk: they agree."""
        live = sorted(self.exec("ls", "-A", self.root / directory).check().split("\n")[:-1])
        assert live == self.shunt("ls", "-a", "-1", self.root / directory).check().split("\n")[2:-1]
        return live

    def daemon(self):
        return int(session_of(self.root)["pid"])

    def run_dir(self):
        return pathlib.Path(session_of(self.root)["run"])

    def kill_daemon(self):
        kill_daemon(self.daemon())

    def crash_daemon(self, number=signal.SIGKILL):
        """Until its supervisor has started another one."""
        pid = self.daemon()
        os.kill(pid, number)
        wait_until(lambda: self.daemon() != pid)


def is_untouched(root):
    return not list(pathlib.Path(root).iterdir())


@pytest.fixture
def session(shunt, root, run_base):
    """A session that is not started yet; stopped after the test, whatever became of it."""
    made = Session(shunt, root, run_base)
    (root / "out").mkdir()
    yield made
    made.stop()


@pytest.fixture
def started(session):
    session.start().check()
    return session


# Roots that are none


@pytest.mark.parametrize("command", [["start"], ["run"], ["exec"]])
@pytest.mark.parametrize("name, sentence", [("none", "does not exist"), ("file", "not a directory"),
                                            ("none/below", "does not exist"), ("dangling", "does not exist")])
def test_a_root_that_is_none(shunt, area, command, name, sentence):
    (area / "file").write_text("precious")
    (area / "dangling").symlink_to("nowhere")
    more = [] if command == ["start"] else ["--", "touch", area / "made"]
    one_sentence(shunt(*command, "--root", area / name, *more), name)
    assert sorted(path.name for path in area.iterdir()) == ["dangling", "file"]
    assert (area / "file").read_text() == "precious"


@pytest.mark.parametrize("name, sentence", [("none", "does not exist"), ("file", "not a directory"),
                                            ("x" * 300, "cannot be opened"), ("y/" * 2500, "too long")])
def test_the_daemon_itself_refuses_a_root_that_is_none(build, area, name, sentence):
    (area / "file").write_text("")
    one_sentence(run([build / "daemon" / "shuntd", "--root", area / name]), sentence)


def test_a_file_that_has_the_name_of_shunts_own_directory(build, area):
    (area / ".shunt").write_text("precious")
    one_sentence(run([build / "daemon" / "shuntd", "--root", area]), f"{area}/.shunt: not a directory")
    assert (area / ".shunt").read_text() == "precious"


def test_a_root_inside_another_root(session, shunt):
    session.start().check()
    inner = Session(shunt, session.root / "out", session.run_base)
    one_sentence(inner.start(), "inside another root")
    one_sentence(shunt.run(session.root / "out", ["touch", session.root / "out" / "made"]), "inside another root")
    assert is_untouched(session.root / "out")


# File systems that will not do


@pytest.mark.parametrize("oddity, sentence", [("nolinks", "no hard links"), ("unstable", "not stable")])
def test_a_file_system_that_will_not_do(shunt, root, run_base, mounts, odd_file_system, oddity, sentence):
    odd_file_system(oddity)
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    one_sentence(session.start(), sentence)
    assert mounts("ls", "-A", root).check() == "", "the refused start left something behind"


def test_a_file_system_that_will_do(shunt, root, run_base, mounts, odd_file_system):
    """The same server without its oddity: it is the oddity that is refused."""
    odd_file_system("none")
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    session.stop().check()


def test_a_program_where_no_rename_is_conditional(shunt, root, run_base, mounts, odd_file_system):
    """FUSE file systems, CephFS's among them, may know no RENAME_NOREPLACE: a program is moved to the trunk without."""
    odd_file_system("none")
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    session.exec("cp", "/bin/echo", root / "program").check()
    assert mounts("ls", root).check() == "", "the program was not redirected"
    assert session.exec("bash", "-c", f"cd {root}; exec ./program it ran").check() == "it ran\n"
    assert mounts("ls", root).check() == "program\n"
    session.stop().check()


def test_what_others_read_of_a_node_that_is_lost(shunt, root, run_base, mounts, odd_file_system):
    """Its kernel has told the server how large a file is if that was synced whole (CephFS): epochs and markers are read as written."""
    odd_file_system("unsynced")
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    session.exec("sh", "-c", f"mkdir {root}/d && : >{root}/d/made").check()
    session.stop().check()
    session.start().check()
    assert session.exec("sh", "-c", f"cd {root}/d && : >too && ls").check() == "made\ntoo\n"
    session.stop().check()


def tmpfs(mounts, path, size):
    path.mkdir(exist_ok=True)
    mounts("mount", "-t", "tmpfs", "-o", f"size={size}", "none", path).check()


def test_a_read_only_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "4m")
    mounts("mkdir", root / "out").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    mounts("mount", "-o", "remount,ro", root).check()
    one_sentence(session.start(), "read-only")
    mounts("mount", "-o", "remount,rw", root).check()
    assert mounts("ls", "-A", root).check() == "out\n"
    session.start().check()
    session.exec("touch", root / "out" / "before").check()
    mounts("mount", "-o", "remount,ro", root).check()
    for command in ("touch", "rm", "mkdir"):
        name = "before" if command == "rm" else "new"
        result = session.exec(command, root / "out" / name)
        assert result.status == 1 and "Read-only file system" in result.err
    assert session.exec("ls", root / "out").check() == "before\n"
    mounts("mount", "-o", "remount,rw", root).check()
    session.exec("touch", root / "out" / "new").check()
    assert session.exec("ls", root / "out").check() == "before\nnew\n"
    session.stop().check()


FILL = r"""
import contextlib
import errno, os, sys
made, directory = [], sys.argv[1]
try:
    for i in range(100000):
        with open(f"{directory}/f{i}", "xb", buffering=0) as file:
            made.append(f"f{i}")
            file.write(b"x" * 4096)
except OSError as error:
    print(errno.errorcode[error.errno])
listed = sorted(os.listdir(directory))
assert listed == sorted(made), (len(listed), len(made))
os.unlink(f"{directory}/f0")
open(f"{directory}/again", "x").close()
print(len(made))
"""


def test_a_full_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "2m")
    mounts("mkdir", root / "out").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    said = session.exec(PYTHON, "-c", FILL, root / "out").check().split()
    assert said[0] == "ENOSPC" and int(said[1]) > 100
    session.stop().check()
    mounts("sh", "-c", f"rm {root}/.shunt/b/n1.1/*/*/f1 && dd if=/dev/zero of={root}/fill bs=4k; true").check()
    session.start()
    assert len(session.exec("ls", root / "out").out.split()) in (0, int(said[1]) - 1)
    session.stop()
    mounts("rm", "-f", root / "fill").check()
    run([*mounts.prefix, shunt.path, "export", root]).check()
    assert len(mounts("ls", root / "out").check().split()) == int(said[1]) - 1


def test_an_end_on_a_full_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "2m")
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    session.start().check()
    mounts("sh", "-c", f"dd if=/dev/zero of={root}/fill bs=4k; true").check()
    session.stop().check()
    assert mounts("sh", "-c", f"cd {root}/.shunt/session && ls && wc -c <epoch.2").check() == "epoch.1\nepoch.2\n0\n"
    mounts("rm", root / "fill").check()
    session.start().check()
    session.stop().check()


def test_a_start_on_a_full_file_system(shunt, root, run_base, mounts):
    tmpfs(mounts, root, "1m")
    mounts("sh", "-c", f"dd if=/dev/zero of={root}/fill bs=4k; true").check()
    session = Session(shunt, root, run_base, prefix=mounts.prefix)
    one_sentence(session.start(), "No space left")
    assert mounts("ls", "-A", root).check() == "fill\n"


def test_a_run_directory_that_is_too_small(shunt, root, area, mounts):
    tmpfs(mounts, area / "small", "1m")
    session = Session(shunt, root, area / "small", prefix=mounts.prefix)
    one_sentence(session.start(), "the run directory is full (make room there, 'shunt cleanup' removes", area / "small")
    assert redirected_files(root) == [] and session_of(root) == {}


def test_a_run_directory_that_others_may_use(session, run_base):
    own = run_base / f"shunt-{os.geteuid()}"
    own.mkdir(mode=0o755)
    one_sentence(session.start(), f"you alone may use (run 'chmod 700 {own}', or set SHUNT_RUN_DIR")
    own.chmod(0o700)
    session.start().check()
    session.stop().check()


# Sessions of somebody else


def test_a_session_of_another_host(session, area):
    Union(session.root).hold(host="login7", job="slurm:c:7:0:2:n1")
    before = (session.root / ".shunt" / "session" / "epoch.1").read_text()
    words = ("held by a session of somebody on host login7 (node n1, process ", ", Slurm job 7) since 2023-11-14 22:13:20 UTC",
             f"(run 'shunt stop --root {session.root}' on that host, or wait for its end)")
    with beating_elsewhere(session.root):
        # One that could join does: here none can.
        runs = scontrol(area / "bin", "RUNNING")
        one_sentence(session.start(SHUNT_FABRIC="none", **runs), *words)
        one_sentence(session.tool("run", "--root", session.root, "--", "touch", session.root / "out" / "x", **runs), *words)
        one_sentence(session.tool("export", session.root, **runs), *words)
        one_sentence(session.stop(), *words[:2], f"(run 'shunt stop --root {session.root}' on that host)")
        one_sentence(session.exec("touch", session.root / "out" / "x"), "no daemon is running for this root")
    assert is_untouched(session.root / "out")
    assert (session.root / ".shunt" / "session" / "epoch.1").read_text() == before


@pytest.mark.parametrize("fabric", ["carrier-pigeon", "tcp:ib17"])
def test_a_network_that_is_not_there(session, fabric):
    """One that is named; without, a session is served by this node alone, and its log says so."""
    one_sentence(session.start(SHUNT_FABRIC=fabric), f"SHUNT_FABRIC '{fabric}': the network cannot be opened",
                 "(run 'shunt doctor', which names the interfaces of this host)")
    assert "no session" in session.tool("status", "--root", session.root).out
    session.start(SHUNT_FABRIC="tcp:lo").check()
    session.stop().check()


def test_a_session_whose_daemon_does_not_answer(session, build):
    """A daemon that would join asks the home of the names, which stands still."""
    session.start(SHUNT_FABRIC="tcp:lo", PBS_JOBID="12").check()
    wait_until(lambda: session_of(session.root)["address"], seconds=60)
    with standing_still(session.daemon()):
        joins = run([build / "daemon" / "shuntd", "--root", session.root, "--node", "n2"], SHUNT_RUN_DIR=session.run_base,
                    SHUNT_FABRIC="tcp:lo")
    one_sentence(joins, f"in use by a session whose daemon on host {socket.gethostname()} for PBS job 12 does not answer at 127.0.0.1 ",
                 f"(if that job has ended, run 'shunt start --takeover --root {session.root}'",
                 f"else 'shunt doctor --host {socket.gethostname()}'")
    assert session_of(session.root)["members"] == "1"
    session.stop().check()


def session_files(root):
    return sorted(path.name.partition("-")[0] for path in (root / ".shunt" / "session").iterdir())


def test_a_silent_session_of_another_host_is_taken_over(session):
    """It was alone there."""
    Union(session.root).hold(host="login7", lease=4)
    kept = session.root / ".shunt" / "b" / "n1.1" / "kept"
    kept.mkdir(parents=True)
    began = time.monotonic()
    done = session.start(SHUNT_STALE="1")
    done.check()
    assert done.err.count("taken over") == 2 and "taken over, since no heartbeat came for 4 s (it was held" in done.err
    assert time.monotonic() - began >= 8, "silent for a lease, and then none of them has one any more"
    assert not kept.exists() and (session.root / ".shunt" / "b" / "n1.2" / "kept").exists(), "fenced"
    assert session_of(session.root)["epoch"] == "4" and session_of(session.root)["node"] == "n1"
    assert session_files(session.root) == ["beat.4", "epoch.3", "epoch.4", "key.4", "probe.4"]


def test_the_session_of_a_job_that_has_ended_is_taken_over_at_once(session, area):
    Union(session.root).hold(host="login7", job="slurm:c:7:0:2:n1")
    held = (session.root / ".shunt" / "session" / "epoch.1").read_text()
    one_sentence(session.tool("export", session.root, **scontrol(area / "bin", "SUSPENDED")), "login7", "Slurm job 7 is suspended")
    done = session.start(**scontrol(area / "bin", "CANCELLED"))
    done.check()
    assert done.err.count("\n") == 1 and "taken over, since Slurm job 7 has ended (it was held by" in done.err
    assert "login7" in done.err
    session.stop().check()
    (session.root / ".shunt" / "session" / "epoch.9").write_text(held.replace("epoch 1", "epoch 9"))
    done = session.tool("export", session.root, **scontrol(area / "bin", "COMPLETED"))
    done.check()
    assert "since Slurm job 7 has ended" in done.err and not (session.root / ".shunt").exists()


def test_the_session_of_a_job_that_is_suspended_is_taken_over_if_asked_for(session, area):
    """Not if it heartbeats."""
    Union(session.root).hold(host="login7", job="slurm:c:7:0:2:n1", lease=1)
    suspended = scontrol(area / "bin", "SUSPENDED")
    one_sentence(session.start(**suspended), "login7", "Slurm job 7 is suspended", "--takeover")
    with beating_elsewhere(session.root):
        one_sentence(session.start("--takeover", **suspended), "held by a session", "login7")
    assert session_of(session.root)["epoch"] == "1"
    done = session.start("--takeover", SHUNT_STALE=1, **suspended)
    done.check()
    assert done.err.count("\n") == 1 and "taken over, since no heartbeat came for 1 s (it was held by" in done.err
    assert session_of(session.root)["node"] == "n1"


def test_a_daemon_says_of_which_job_it_is_a_part(session):
    session.start(PBS_JOBID="12[3].server").check()
    assert session_of(session.root)["job"] == "pbs::12[3].server:::"


def test_the_members_of_a_session(started, shunt):
    said = json.loads(started.tool("status", "--json", "--root", started.root).check())[0]
    assert said["epoch"] == 1 and [member.pop("pid") for member in said["members"]] == [started.daemon()]
    [member] = said["members"]
    assert member.pop("since_ns") > 0 and member.pop("host") == socket.gethostname()
    assert member == {"number": 1, "node": "n1", "branch": "n1.1", "state": "alive", "home": "yes",
                      "run_dir": str(started.run_dir())}
    words = started.tool("status", "--root", started.root).check()
    assert "epoch    1, 1 member\n" in words and "member   1: node n1 on host" in words


def test_a_session_that_lives_on_this_host(started):
    words = ("held by a session", f"process {started.daemon()}", "since 20", "shunt exec")
    one_sentence(started.start(), *words)
    one_sentence(started.tool("run", "--root", started.root, "--", "touch", started.root / "out" / "x"), *words)
    assert is_untouched(started.root / "out")
    started.exec("touch", started.root / "out" / "x").check()


@pytest.fixture
def everybodys(build):
    """A place that every user reaches, with the parts of shunt and a root that every user may write to."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shunt-test.", dir="/dev/shm"))
    directory.chmod(0o755)
    for part in ("tools/shunt", "daemon/shuntd", "lib/shim/libshunt_preload.so"):
        (directory / "build" / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / part, directory / "build" / part)
    for name in ("root", "root/out", "run"):
        (directory / name).mkdir()
        (directory / name).chmod(0o1777)
    yield directory
    shutil.rmtree(directory)


def as_nobody(directory):
    return Session(Shunt(directory / "build"), directory / "root", directory / "run",
                   prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"])


# Calls of a process of root's that has become another user, before and after a line on standard input.
BECOMES_ANOTHER = """
import errno, os, sys
os.chdir(sys.argv[1])
open("before", "w").close()
os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
def tried(call):
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
for number in 1, 2:
    print(tried(lambda: os.listdir()), tried(lambda: os.stat("before")), tried(lambda: open(f"new-{number}", "x").close()),
          tried(lambda: os.mkdir("d") or os.rmdir("d")), flush=True)
    sys.stdin.readline()
"""


if IS_SUPERUSER:

    def test_a_session_of_another_user(everybodys):
        mine = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run")
        theirs = as_nobody(everybodys)
        mine.start().check()
        mine.exec("sh", "-c", f"echo words >{mine.root}/out/file").check()
        assert redirected_files(mine.root)
        words = ("held by a session of root on host", socket.gethostname(), "since 20")
        one_sentence(theirs.start(), *words)
        one_sentence(theirs.tool("run", "--root", theirs.root, "--", "touch", theirs.root / "out" / "x"), *words)
        one_sentence(theirs.exec("touch", theirs.root / "out" / "x"), "or read with 'shunt ls ")
        assert theirs.tool("stop", "--root", theirs.root).status == 1 and is_running(mine.daemon())
        # Reading is for everyone.
        assert theirs.tool("ls", theirs.root / "out").check() == "file\n"
        where = theirs.tool("where", theirs.root / "out" / "file").check().strip()
        assert run([*theirs.prefix, "cat", where]).check() == "words\n"
        assert mine.names("out") == ["file"]
        mine.stop().check()

    def test_a_daemon_that_crashes_after_a_process_has_become_another_user(everybodys):
        """It goes on with the one that it knows, and cannot reach the next one, whose channel is another user's."""
        mine = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run")
        mine.start().check()
        process = mine.popen(PYTHON, "-c", BECOMES_ANOTHER, mine.root / "out", NOBODY, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == "ok ok ok ok\n"
        mine.crash_daemon()
        answers, said = process.communicate("\n", timeout=60)
        assert answers == "EIO EIO EIO EIO\n"
        (line,) = said.splitlines()
        assert line.startswith(f"shunt: {mine.root}: served for another user, number 0 (")
        assert mine.names("out") == ["before", "new-1"], "nothing was made in the trunk"
        mine.stop().check()

    def test_a_program_in_a_directory_that_has_been_closed(everybodys):
        """It cannot be moved to the trunk, where programs are executed: the shell says why, and where it is open again it can."""
        session = as_nobody(everybodys)
        closed = session.root / "closed"
        script = f"""mkdir {closed}; cp /bin/true {closed}/program; chmod 555 {closed}; {closed}/program; echo $?
            chmod 755 {closed}; {closed}/program; chmod 555 {closed}; {closed}/program; echo $?"""
        session.start().check()
        result = session.exec("sh", "-c", script)
        assert result.check() == "126\n0\n" and "Permission denied" in result.err, result
        session.stop().check()

    def test_a_session_directory_that_cannot_be_read(everybodys):
        mine = Session(Shunt(everybodys / "build"), everybodys / "root", everybodys / "run")
        theirs = as_nobody(everybodys)
        mine.start().check()
        mine.stop().check()
        (mine.root / ".shunt" / "session").chmod(0)
        one_sentence(theirs.start(), mine.root, "Permission denied")
        one_sentence(theirs.exec("touch", theirs.root / "out" / "x"), "no daemon is running for this root")
        assert is_untouched(mine.root / "out")


def test_an_epoch_that_is_none(session):
    Union(session.root)
    (session.root / ".shunt" / "session" / "epoch.1").write_text("shunt-session 5\nid 12")
    remedies = [f"shunt stop --root {session.root}' of that version", f"shunt export {session.root}' of it if its job was killed"]
    one_sentence(session.start(), session.root, *remedies)
    one_sentence(session.tool("export", session.root), session.root, *remedies)
    assert is_untouched(session.root / "out")
    (session.root / ".shunt" / "session" / "epoch.1").unlink()
    session.start().check()


# Daemons that are not there


def test_no_daemon(session, build):
    (session.root / "out" / "there").write_text("words")
    for command in (["touch", "new"], ["cat", "there"], ["rm", "there"], ["mv", "there", "moved"], ["mkdir", "new"],
                    ["ln", "-s", "there", "new"], ["ls"]):
        one_sentence(session.exec(*command, cwd=session.root / "out"), "no daemon is running for this root")
        # What loads the library by itself.
        result = run(command, cwd=session.root / "out", LD_PRELOAD=build / "lib" / "shim" / "libshunt_preload.so",
                     SHUNT_ROOT=session.root, SHUNT_RUN_DIR=session.run_base)
        assert result.status != 0 and "Input/output error" in result.err
        assert result.err.count("no daemon is running for this root") == 1, result.err
    assert [path.name for path in (session.root / "out").iterdir()] == ["there"]
    assert [path.name for path in session.root.iterdir()] == ["out"], "exec left something behind"


CREATES = r"""
import errno, os, sys
directory = sys.argv[1]
for i in range(10**9):
    while True:
        try:
            os.close(os.open(f"{directory}/f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError as error:
            if error.errno == errno.EEXIST:
                break
            print(errno.errorcode[error.errno], flush=True)
            if not sys.stdin.readline():
                sys.exit(0)
            continue
        break
    print(f"f{i}", flush=True)
"""


def read_lines(stream, stop):
    """The lines up to the one that `stop` accepts, that one included."""
    lines = []
    while not lines or not stop(lines):
        line = stream.readline()
        assert line, f"it ended after {lines[-3:]}"
        lines.append(line.strip())
    return lines


def test_a_daemon_that_crashes(started):
    """Its supervisor starts another one, and a process that is at work notices nothing."""
    process = started.popen(PYTHON, "-c", CREATES, started.root / "out", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    made = []
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
        made += read_lines(process.stdout, lambda lines: len(lines) == 200)
        started.crash_daemon(number)
    made += read_lines(process.stdout, lambda lines: len(lines) == 200)
    process.kill()
    process.wait()
    made += re.findall(r"f\d+(?=\n)", process.stdout.read())
    assert "EIO" not in made and process.stderr.read() == ""
    listed = started.names("out")
    assert set(made) <= set(listed) and len(listed) <= len(made) + 1
    log = (started.run_dir() / "log").read_text()
    assert log.count("shuntd is started again") == 3 and log.count("shuntd crashed: signal") == 2
    started.stop().check()
    started.shunt("export", started.root).check()
    assert_plain(started.root)
    assert {path.name for path in (started.root / "out").iterdir()} == set(listed)


def test_a_daemon_that_crashes_over_and_over(session, area):
    """There is an end to it: an error that says so, and a start by hand mends it. The log is kept."""
    started = session
    started.start(SHUNT_LOG_DIR=area / "kept").check()
    started.exec("touch", started.root / "out" / "before").check()
    supervisor, = supervisor_of(started.daemon())
    log = started.run_dir() / "log"

    def crash():
        with contextlib.suppress(ProcessLookupError):
            os.kill(started.daemon(), signal.SIGKILL)
        return not is_running(supervisor)

    wait_until(crash, 60)
    assert "8 times in a row" in log.read_text()
    (kept,) = (area / "kept").iterdir()
    assert "8 times in a row" in kept.read_text() and f"{kept}: this log is kept there" in log.read_text()
    one_sentence(started.exec("touch", started.root / "out" / "new"), "shunt start")
    started.start().check()
    assert started.names("out") == ["before"]


def test_a_daemon_that_crashes_while_it_is_stopped(started):
    """`shunt stop` ends the supervisor, too, whatever it is about."""
    supervisor, = supervisor_of(started.daemon())
    os.kill(started.daemon(), signal.SIGKILL)
    started.stop().check()
    assert not is_running(supervisor) and not started.shunt("status", "--root", started.root).status == 0
    started.start().check()


def test_a_daemon_that_is_gone_with_its_supervisor(started):
    """It fails closed at once; after another start the same process goes on, and nothing is lost."""
    process = started.popen(PYTHON, "-c", CREATES, started.root / "out", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    made = read_lines(process.stdout, lambda lines: len(lines) == 200)
    began = time.monotonic()
    started.kill_daemon()
    made += read_lines(process.stdout, lambda lines: not lines[-1].startswith("f"))
    assert made.pop() == "EIO" and time.monotonic() - began < 5
    on_disk = {os.path.basename(path) for path in redirected_files(started.root)}
    assert set(made) <= on_disk and len(on_disk) <= len(made) + 1
    assert [path.name for path in (started.root / "out").iterdir()] == [".shunt-dir"], "created in the trunk"
    started.start().check()
    process.stdin.write("\n")
    process.stdin.flush()
    made += read_lines(process.stdout, lambda lines: len(lines) == 200)
    process.kill()
    process.wait()
    made += re.findall(r"f\d+(?=\n)", process.stdout.read())  # what it told before it was killed
    assert process.stderr.read().count("the daemon of this node has ended") == 1
    listed = started.names("out")
    assert set(made) <= set(listed) and len(listed) <= len(made) + 2, "one more by each end at most"
    started.stop().check()
    started.shunt("export", started.root).check()
    assert_plain(started.root)
    assert {path.name for path in (started.root / "out").iterdir()} == set(listed)


def test_a_dead_session_is_taken_over_by_run(started):
    started.exec("touch", started.root / "out" / "before").check()
    started.kill_daemon()
    started.tool("run", "--root", started.root, "--placement", "branch", "--", "touch", started.root / "out" / "after").check()
    assert_plain(started.root)
    assert sorted(path.name for path in (started.root / "out").iterdir()) == ["after", "before"]


@pytest.mark.parametrize("crashes", [True, False])
def test_a_daemon_that_is_killed_under_run(session, crashes):
    """The command goes on: the supervisor starts another daemon, or `run`, if that was killed, too. It ends with the status of
    its command, and what was made is exported."""
    words = ["run", "--root", session.root, "--placement", "branch", "--", "sh", "-c",
             f"echo 1 >{session.root}/a; echo made; read line; echo 2 >{session.root}/b"]
    process = subprocess.Popen([session.shunt.path, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               env=environment(SHUNT_RUN_DIR=session.run_base, SHUNT_NODE="n1"))
    assert process.stdout.readline() == "made\n"
    if crashes:
        session.crash_daemon()
    else:
        session.kill_daemon()
    _, err = process.communicate("go\n", timeout=60)
    assert (process.returncode, err) == (0, ""), err
    assert_plain(session.root)
    assert (session.root / "a").read_text() == "1\n" and (session.root / "b").read_text() == "2\n"


# Indexes that are none


def test_an_index_that_is_overwritten(started):
    """The daemon stands still meanwhile: what it writes next would tell it, and another one make a new index."""
    started.exec("touch", started.root / "out" / "before").check()
    data = started.run_dir() / "index"
    with standing_still(started.daemon()):
        data.write_bytes(os.urandom(data.stat().st_size))
        result = started.exec("touch", started.root / "out" / "new")
    assert result.status == 1 and "(run 'shunt " in result.err and "Input/output error" in result.err
    assert [path.name for path in (started.root / "out").iterdir()] == [".shunt-dir"]
    started.stop()
    started.start().check()
    assert started.names("out") == ["before"]


@pytest.mark.parametrize("kept", [0, 256], ids=["whole", "behind its head"])
def test_a_daemon_whose_index_is_overwritten_says_so(started, kept):
    """With bytes that are no index; the next one makes a new one."""
    started.exec("touch", started.root / "out" / "before").check()
    pid, run_dir, data = started.daemon(), started.run_dir(), started.run_dir() / "index"
    wait_until(lambda: "futex" in pathlib.Path(f"/proc/{pid}/wchan").read_text())  # not amid a change
    with standing_still(pid), data.open("r+b") as file:
        file.seek(kept)
        file.write(b"\xf0" * (data.stat().st_size - file.tell()))
    started.tool("status", "--root", started.root)
    started.exec("touch", started.root / "out" / "new")
    wait_until(lambda: started.daemon() != pid)
    assert f"stopped: {run_dir}: the index is damaged" in (run_dir / "log").read_text()
    assert started.exec("touch", started.root / "out" / "new").check() == ""
    assert started.names("out") == ["before", "new"]


def test_an_index_of_another_session(started, shunt, area):
    """A daemon's index is put in the place of another's: its stamp gives it away."""
    (area / "other" / "out").mkdir(parents=True)
    other = Session(shunt, area / "other", started.run_base)
    other.start().check()
    other.exec("touch", other.root / "out" / "foreign").check()
    shutil.copy(other.run_dir() / "index", started.run_dir() / "index.new")
    os.rename(started.run_dir() / "index.new", started.run_dir() / "index")
    for command in (["touch", started.root / "out" / "new"], ["ls", started.root / "out"]):
        result = started.exec(*command)
        assert result.status != 0 and "of another session" in result.err and "foreign" not in result.out
    other.stop().check()
    assert not list((started.root / "out").glob("new"))
    started.stop()
    started.start().check()
    assert started.names("out") == []


def test_an_index_that_is_gone(started):
    started.exec("touch", started.root / "out" / "before").check()
    for file in started.run_dir().iterdir():
        file.unlink()
    one_sentence(started.exec("touch", started.root / "out" / "new"), "no daemon is running for this root")
    started.stop().check()
    started.start().check()
    assert started.names("out") == ["before"]


def test_leftovers_in_the_run_directory(started):
    """What a daemon that was killed left there is in nobody's way, whatever it is."""
    started.exec("touch", started.root / "out" / "before").check()
    run_dir = started.run_dir()
    started.kill_daemon()
    for file in run_dir.iterdir():
        file.write_bytes(b"junk" * 4096)
    started.start().check()
    assert started.names("out") == ["before"]


def test_a_marker_that_a_daemon_did_not_write_to_its_end(started):
    """It keeps nobody from removing the directory."""
    started.stop().check()
    (started.root / "out" / ".shunt-dir.0123456789abcdef").write_text("shunt-dir 1\nmir")
    assert "unfinished" in started.shunt("fsck", started.root).out
    started.start().check()
    started.exec("rmdir", started.root / "out").check()
    (started.root / "out").mkdir()
    started.stop().check()
    (started.root / "out" / ".shunt-dir.0123456789abcdef").write_text("shunt-dir 1\nmir")
    assert started.shunt("fsck", "--repair", started.root).status == 1
    assert started.shunt("fsck", started.root).status == 0 and not list((started.root / "out").iterdir())


# Names and paths that are too long


LONG = r"""
import errno, os, sys
os.chdir(sys.argv[1])
def say(call, *words):
    try:
        call(*words)
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
say(create, "x" * 255)
say(create, "x" * 256)
say(create, sys.argv[1] + "/" + "x" * 256)
say(create, "./" * 2040 + "short")
say(create, "./" * 2048 + "short")
say(create, "./" * 2046 + "abc")
say(create, "./" * 2046 + "abcd")
say(os.stat, "y" * 256)
say(os.stat, "/" * 4096)
say(os.mkdir, "x" * 256)
say(os.rename, "x" * 255, "x" * 256)
say(os.unlink, "x" * 256)
say(os.symlink, "y" * 4095, "link")
say(os.symlink, "y" * 4096, "link2")
say(os.stat, "link")
os.unlink("link")
print(sorted(os.listdir(".")))
"""


def test_names_and_paths_that_are_too_long(pair):
    native, under_shunt = pair.both(f"mkdir out; {PYTHON} -c '{LONG}' $ROOT/out")
    assert native == under_shunt
    assert native.count("ENAMETOOLONG") >= 6
    pair.assert_equal()


DEEP = r"""
import errno, os, sys
os.chdir(sys.argv[1])
for i in range(25):
    try:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    except OSError as error:
        print(i, errno.errorcode[error.errno])
        break
try:
    os.close(os.open("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    print(os.listdir("."), os.stat("file").st_size)
    os.rename("file", "moved")
    os.unlink("moved")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_a_directory_deeper_than_a_path_can_say(started):
    """Either all goes well there, or nothing is made and the error says why."""
    result = started.exec(PYTHON, "-c", DEEP, started.root / "out")
    result.check()
    assert result.out in ("['file'] 0\n",) or "ENAMETOOLONG" in result.out, result.out
    run(["sh", "-c", f"find {started.root}/out -name file -o -name moved"]).check()
    assert run(["find", started.root / "out", "-type", "f", "!", "-name", ".shunt-dir"]).check() == ""
    started.exec("rm", "-r", started.root / "out").check()


# Clients that are killed


KILLED_AT = r"""
import ctypes, os, struct, sys
directory, operation, number, argument, flag = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
LOAD, EQUAL, SET, ANSWER, ALLOW, KILL = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x80000000
program = [(LOAD, 0, 0, 0), (EQUAL, 0, 3, number), (LOAD, 0, 0, 16 + 8 * argument), (SET, 0, 1, flag),
           (ANSWER, 0, 0, KILL), (ANSWER, 0, 0, ALLOW)]
if flag == 0:
    program[3] = (EQUAL, 0, 0, 0)
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
libc = ctypes.CDLL(None)
os.chdir(directory)
os.listdir(".")
text = compile(operation, "operation", "exec")
filter = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
exec(text)
print("it was not killed")
"""

O_CREAT, AT_EMPTY_PATH = os.O_CREAT, 0x1000
X86 = os.uname().machine == "x86_64"
NUMBERS = {"openat": 257 if X86 else 56, "unlinkat": 263 if X86 else 35, "renameat2": 316 if X86 else 276,
           "linkat": 265 if X86 else 37, "mkdirat": 258 if X86 else 34, "symlinkat": 266 if X86 else 36,
           "statx": 332 if X86 else 291}
CREATE = "os.open('new', os.O_CREAT | os.O_EXCL | os.O_WRONLY)"


@pytest.mark.parametrize("operation, call, argument, flag, left", [
    (CREATE, "openat", 2, O_CREAT, ["old"]),
    (CREATE, "statx", 2, AT_EMPTY_PATH, ["new", "old"]),
    ("os.unlink('old')", "unlinkat", 0, 0, ["old"]),
    ("os.rename('old', 'new')", "renameat2", 0, 0, ["old"]),
    ("os.link('old', 'new')", "linkat", 0, 0, ["old"]),
    ("os.mkdir('new')", "mkdirat", 0, 0, ["old"]),
    ("os.symlink('x', 'new')", "symlinkat", 0, 0, ["old"]),
])
def test_a_client_that_is_killed_within_a_call(started, operation, call, argument, flag, left):
    """Killed at the entry of a system call, i.e. between what the daemon promised and what the disk shows."""
    out = started.root / "out"
    started.exec("sh", "-c", f"echo words >{out}/old").check()
    result = started.exec(PYTHON, "-c", KILLED_AT, out, operation, NUMBERS[call], argument, flag)
    assert result.status == -signal.SIGSYS and result.out == "", result
    began = time.monotonic()
    assert started.names("out") == left
    # No name is blocked: the next one may use both.
    started.exec("sh", "-c", f"rm -rf {out}/new && mv {out}/old {out}/new && echo again >{out}/old").check()
    assert time.monotonic() - began < 20
    assert started.names("out") == ["new", "old"]
    assert started.exec("cat", out / "new").check() == "words\n"


def test_clients_that_are_killed_among_many_creates(started):
    out = started.root / "out"
    for number in range(5):
        process = started.popen(PYTHON, "-c", CREATES, out, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        made = read_lines(process.stdout, lambda lines: len(lines) == 50 + 37 * number)
        process.kill()
        made += process.stdout.read().split("\n")[:-1]
        process.wait()
        listed = started.names("out")
        assert set(made) <= set(listed) and len(listed) <= len(made) + 1, number
        assert sorted(map(os.path.basename, redirected_files(started.root))) == listed
        following = out / f"f{len(made)}"
        started.exec("sh", "-c", f"echo again >{following} && test -s {following} && rm -r {out}/*").check()
    assert started.names("out") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_is_interrupted(session, number):
    """Ctrl-C reaches the command and run alike, SIGTERM run alone: the session ends, and what is there is exported."""
    words = ["run", "--root", session.root, "--placement", "branch", "--", PYTHON, "-c", CREATES, session.root / "out"]
    process = subprocess.Popen([session.shunt.path, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                               env=environment(SHUNT_RUN_DIR=session.run_base, SHUNT_NODE="n1"))
    made = read_lines(process.stdout, lambda lines: len(lines) == 100)
    daemon = session.daemon()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    made += process.stdout.read().split("\n")[:-1]  # not communicate, which passes over what was read ahead
    assert process.wait(60) == 128 + number
    wait_until(lambda: not is_running(daemon))
    assert_plain(session.root)
    listed = {path.name for path in (session.root / "out").iterdir()}
    assert set(made) <= listed and len(listed) <= len(made) + 1
    assert list(session.run_base.rglob("index")) == []


# What happens to a root between two sessions


@pytest.fixture
def between(started):
    """Two files in the branch, one in a plain directory; the session has ended."""
    out = started.root / "out"
    started.exec("sh", "-c", f"echo 1 >{out}/a; echo 2 >{out}/b").check()
    started.stop().check()
    assert len(redirected_files(started.root)) == 2
    return started


def test_a_copied_root(started, shunt, area):
    """A copy made while the session lives, its `.shunt` included: two roots, neither in the way of the other."""
    out = started.root / "out"
    started.exec("sh", "-c", f"echo 1 >{out}/a; echo 2 >{out}/b").check()
    run(["cp", "-a", started.root, area / "copy"]).check()
    copy = Session(shunt, area / "copy", started.run_base)
    copy.start().check()
    assert copy.names("out") == started.names("out") == ["a", "b"]
    copy.exec("sh", "-c", f"echo 3 >{copy.root}/out/c; rm {copy.root}/out/a").check()
    started.exec("sh", "-c", f"echo 4 >{out}/d; cat {out}/a").check()
    assert copy.names("out") == ["b", "c"] and started.names("out") == ["a", "b", "d"]
    for one in (copy, started):
        one.stop().check()
        shunt("export", one.root).check()
        assert_plain(one.root)
    assert sorted(path.name for path in (copy.root / "out").iterdir()) == ["b", "c"]


def test_a_redirected_directory_is_moved_natively(between):
    os.rename(between.root / "out", between.root / "moved")
    between.start().check()
    assert between.names("moved") == ["a", "b"]
    assert between.exec("cat", between.root / "moved" / "b").check() == "2\n"
    between.exec("touch", between.root / "moved" / "c").check()
    assert between.names("moved") == ["a", "b", "c"] and not (between.root / "out").exists()


def test_a_listing_leaves_a_directory_the_time_of_its_last_change(between):
    """A marker is rewritten where its directory has moved to, or was copied to with its root, and removed from a copy of it."""
    when = 10**18 + 7
    os.rename(between.root / "out", between.root / "moved")
    os.utime(between.root / "moved", ns=(when, when))
    run(["cp", "-a", between.root / "moved", between.root / "copy"]).check()
    other = Session(between.shunt, between.root.parent / "other", between.run_base)
    for session in between, other:
        session.start().check()
        assert session.names("moved") == ["a", "b"] and session.names("copy") == []
        for name in "moved", "copy":
            assert session.exec("stat", "-c", "%.9Y", session.root / name).check() == "1000000000.000000007\n", name
        session.stop().check()
        assert [(session.root / name).stat().st_mtime_ns for name in ("moved", "copy")] == [when, when]
        assert not (session.root / "copy" / ".shunt-dir").exists()
        if session is between:
            run(["cp", "-a", between.root, other.root]).check()


def test_a_removal_that_is_refused_leaves_a_directory_its_time(started):
    """Its marker has gone by then."""
    above = started.root / "above"
    script = "mkdir -p above/d; echo 1 >above/d/a; echo 2 >above/d/b; rm above/d/*; touch -d 2001-01-01 above/d; stat -c %Y above/d"
    told = "stat -c %Y above/d; ls -A above/d"
    before = started.exec("sh", "-c", script, cwd=started.root).check()
    assert (above / "d" / ".shunt-dir").exists()
    with immutable(above):
        refused = started.exec("sh", "-c", f"rmdir above/d; {told}", cwd=started.root)
    assert "not permitted" in refused.err and refused.check() == before
    started.exec("rmdir", above / "d").check()


def test_a_redirected_directory_is_removed_natively(between):
    run(["rm", "-rf", between.root / "out"]).check()
    (between.root / "out").mkdir()
    between.start().check()
    assert between.names("out") == []
    between.exec("sh", "-c", f"echo new >{between.root}/out/a").check()
    assert between.names("out") == ["a"]
    between.stop().check()
    result = between.shunt("fsck", between.root)
    assert result.status != 0 and "--restore" in result.out + result.err, result
    result = between.shunt("export", between.root)
    assert result.status != 0 and "fsck" in result.err
    between.shunt("fsck", "--restore", between.root).check(1)  # 1: all is repaired
    found = sorted(path.read_text() for path in (between.root / "shunt-restored").rglob("*") if path.is_file())
    assert found == ["1\n", "2\n"], "the orphan's files are lost"


def test_an_orphan_is_reported_at_the_start(between):
    run(["rm", "-rf", between.root / "out"]).check()
    result = between.start()
    result.check()
    assert "fsck" in result.err, "the start does not report the orphan"


def test_a_name_in_two_places(between):
    """A program without the shim made a file of the same name: both are there, one of them as a conflict."""
    out = between.root / "out"
    (out / "a").write_text("native\n")
    (out / "c").write_text("only native\n")
    between.start().check()
    listed = between.names("out")
    assert [name for name in listed if "conflict" not in name] == ["a", "b", "c"]
    conflict, = [name for name in listed if "conflict" in name]
    assert conflict.startswith("a.shunt-conflict-")
    texts = sorted(between.exec("cat", out / "a", out / conflict).check().split())
    assert texts == ["1", "native"]
    between.stop().check()
    between.shunt("export", between.root).check()
    assert sorted(path.name for path in out.iterdir()) == sorted(listed)
