# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Each command is interrupted at moments that are spread over the time that it takes (pytest --moments N; 200 are all, the default
is a sample): SIGINT comes to its whole group, as from a terminal, SIGTERM and SIGHUP to it alone, once, twice or three times; for
what starts daemons also to one of these. Whichever moment it is, nothing is left that was not there or wanted."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import time

import pytest
from conftest import assert_plain, environment, kill_daemon, redirected_files
from daemons import end_mount_server, epoch_lines, has_signal, is_running, stand_still, stat_of, wait_until

ALL = 200  # moments
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FOR_EVER = "exec sleep 1000"


def processes_of(name, path):
    """The processes of that program with that word in their command lines."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if (process / "comm").read_text() == f"{name}\n" else []
        except OSError:  # it has ended
            continue
        if os.fsencode(path) in words:
            found.append(int(process.name))
    return found


def daemons_of(root):
    """The processes that serve it, or are about to."""
    return processes_of("shuntd", root)


def members_of(root):
    return [line for line in epoch_lines(root) if line.startswith("member ")]


class Interrupted:
    """How a command ended."""

    def __init__(self, process, number, what=""):
        self.number, self.what = number, what
        try:
            self.out, self.err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        self.status = process.returncode

    def is_by_signal(self):
        return self.status in (-self.number, 128 + self.number)

    def __repr__(self):
        return f"status {self.status} after {self.number.name} {self.what}: {self.out}{self.err}"


class Scene:
    def __init__(self, build, area, root, run_base, count):
        self.tools, self.area, self.root, self.run_base, self.count = build / "tools", area, root, run_base, count
        self.settings, self.prefix = {}, []
        (root / "out").mkdir()

    def begin(self, *words, **settings):
        program = self.tools / ("shunt-launch" if words[0] == "shunt-launch" else "shunt")
        words = words[1:] if words[0] == "shunt-launch" else words
        return subprocess.Popen([*self.prefix, program, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env=environment(SHUNT_RUN_DIR=self.run_base, SHUNT_NODE="n1", **self.settings, **settings))

    def check(self, *words, status=(0,), **settings):
        process = self.begin(*words, **settings)
        out, err = process.communicate(timeout=60)
        assert process.returncode in status, (words, process.returncode, out, err)
        return out

    def duration(self, *words, before=lambda: None, status=(0,)):
        """Of the command when nothing interrupts it."""
        times = []
        for _ in range(3):
            before()
            began = time.monotonic()
            self.check(*words, status=status)
            times.append(time.monotonic() - began)
        return statistics.median(times)

    def moments(self, duration, part=1):
        """(which it is of all, when, the signal) of a part of them."""
        count = max(len(SIGNALS), round(self.count * part))
        for i in range(count):
            which = i * ALL // count
            yield which, duration * i / count, SIGNALS[which % len(SIGNALS)]

    def interrupt(self, words, after, number, times=1, pause=0.0):
        process = self.begin(*words)
        time.sleep(after)
        for i in range(times):
            try:
                if number == signal.SIGINT:
                    os.killpg(process.pid, number)
                else:
                    process.send_signal(number)
            except ProcessLookupError:  # the group has ended
                break
            time.sleep(pause if i + 1 < times else 0)
        return Interrupted(process, number, f"{times} times at {after:.3f}")

    def stop(self):
        """Where nothing was ever served it says so."""
        self.check("stop", "--root", self.root, status=(0,) if (self.root / ".shunt").exists() else (1,))

    def assert_ended(self, result, by_itself=False):
        """Nobody serves the root, nor is said to; `by_itself`: soon, when the command has not waited for it."""
        if by_itself:
            wait_until(lambda: not daemons_of(self.root))
        assert daemons_of(self.root) == [], result
        assert members_of(self.root) == [], result
        assert [path for path in self.run_base.rglob("*") if path.is_file()] == [], result

    def assert_left(self, result):
        """The same, and the root is plain, or has been left with a word, and can be exported."""
        self.assert_ended(result, by_itself=True)
        if (self.root / ".shunt").exists():
            assert result.status != 0 and "export" in result.err, result
            self.check("export", self.root)
        assert_plain(self.root)


@pytest.fixture
def scene(build, area, root, run_base, pytestconfig):
    made = Scene(build, area, root, run_base, pytestconfig.getoption("moments"))
    yield made
    for pid in daemons_of(root):
        os.kill(pid, signal.SIGKILL)


STARTERS = {"run": ["run", "--placement", "branch"],
            "launch": ["shunt-launch"],
            "launch with pretended nodes": ["shunt-launch", "--fake-nodes", "2"]}


@pytest.fixture(params=STARTERS, ids=lambda name: name.replace(" ", "-"))
def starter(request, scene):
    """starter(SCRIPT): a command that starts daemons, has a shell do something, ends them and exports."""
    words = STARTERS[request.param]
    scene.settings = {"SHUNT_FABRIC": "tcp:lo"} if "--fake-nodes" in words else {}
    return lambda script: [*words, "--root", scene.root, *(["--"] if words[0] == "run" else []), "sh", "-c", script]


TIMES = pytest.mark.parametrize("times", [1, 2, 3])


def pauses(which):
    """Between a signal and the next one."""
    return which % 5 * 0.01


@TIMES
def test_a_starter_while_it_starts(scene, starter, times):
    """The command would last for ever: a signal that is lost is seen."""
    duration = scene.duration(*starter("true"))
    for which, after, number in scene.moments(duration, 1 / 2):
        result = scene.interrupt(starter(f"echo 1 >{scene.root}/out/file; {FOR_EVER}"), after, number, times, pauses(which))
        assert result.is_by_signal(), result
        scene.assert_left(result)


@TIMES
def test_a_starter_while_it_ends(scene, starter, times):
    """What the command made is there, in the directory itself or after one more export."""
    words = starter(f"echo 1 >{scene.root}/out/file")
    duration = scene.duration(*words)
    for which, after, number in scene.moments(duration, 1 / 2):
        (scene.root / "out" / "file").unlink(missing_ok=True)
        result = scene.interrupt(words, after, number, times, pauses(which))
        assert result.status == 0 or result.is_by_signal(), result
        scene.assert_left(result)
        assert result.status != 0 or (scene.root / "out" / "file").read_text() == "1\n", result


def those_told(root, who):
    """The supervisors of the daemons of a root, the daemons, or all of them."""
    found = daemons_of(root)
    supervised = [pid for pid in found if parent_of(pid) in found]
    return {"supervisor": [pid for pid in found if pid not in supervised], "daemon": supervised, "all": found}[who]


def parent_of(pid):
    try:
        return int(stat_of(pid)[1])
    except OSError:  # it has ended
        return 0


TOLD = list(itertools.product(("supervisor", "daemon", "all"), SIGNALS, (1, 2, 3)))


def test_the_daemons_of_a_starter(scene, starter):
    """SIGHUP, as of a terminal that is closed, changes nothing once they serve. When they are told to end, each file that was made is
    there."""
    out = scene.root / "out"
    words = starter(f"for i in $(seq 200); do echo $i >{out}/$i && echo $i; done")
    duration = scene.duration(*words)
    # The latter of a process that was killed before it could take signals, as the tool that started it says.
    before_it_served = ("interrupted before it served", f"killed by signal {signal.SIGHUP.value} while it started")
    for which, after, _ in scene.moments(duration):
        who, number, times = TOLD[which % len(TOLD)]
        process = scene.begin(*words)
        time.sleep(after)
        for _ in range(times):
            for pid in those_told(scene.root, who):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(pauses(which))
        result = Interrupted(process, number, f"{times} times at {after:.3f} to {who}")
        assert 0 <= result.status < 128, result
        assert result.status == 0 or result.err != "", result
        scene.assert_left(result)
        found = {path.name: path.read_text() for path in out.iterdir()}
        made = [line for line in result.out.splitlines() if line.isdigit()]
        assert all(found[name] == f"{name}\n" for name in made), (result, found)
        assert number != signal.SIGHUP or result.status == len(made) - 200 == 0 or any(map(result.err.count, before_it_served)), result
        for name in found:
            (out / name).unlink()


# By which users and batch systems tell programs something: natively they end no program that takes them.
FOR_PROGRAMS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM)


def all_of(root, process):
    """What a batch system tells that tells all processes of a job, but for those of the program."""
    found = {process.pid, *daemons_of(root), *processes_of("shunt-launch", root)}
    return [pid for pid in found if is_running(pid)]


def tell(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.mark.parametrize("number", FOR_PROGRAMS, ids=lambda number: number.name)
def test_a_signal_for_programs_comes_to_the_program_alone(scene, starter, number):
    file = scene.root / "out" / "file"
    loop = f"trap 'echo 1 >{file}; exit 0' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    process = scene.begin(*starter(loop))
    assert process.stdout.readline() == "ready\n"
    daemons = daemons_of(scene.root)
    tell(set(all_of(scene.root, process)) - {process.pid}, number)
    process.send_signal(number)
    result = Interrupted(process, number, f"with the daemons {daemons}")
    assert daemons != [] and result.status == 0 and "ended" not in result.err, result
    scene.assert_left(result)
    assert file.read_text() == "1\n"


def test_a_signal_for_programs_while_it_ends(scene, starter):
    """Nobody waits for it any more."""
    file = scene.root / "out" / "file"
    words = starter(f"trap '' {' '.join(number.name[3:] for number in FOR_PROGRAMS)}; echo ready; echo 1 >{file}")
    duration = scene.duration(*words)
    for which, after, _ in scene.moments(duration):
        number = FOR_PROGRAMS[which % len(FOR_PROGRAMS)]
        file.unlink(missing_ok=True)
        process = scene.begin(*words)
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        tell(all_of(scene.root, process), number)
        result = Interrupted(process, number, f"at {after:.3f}")
        assert result.status == 0 and "ended" not in result.err, result
        scene.assert_left(result)
        assert file.read_text() == "1\n", result


def test_start(scene):
    """It serves and says so, or it does not serve."""
    words = ["start", "--root", scene.root]
    duration = scene.duration(*words, before=scene.stop)
    scene.stop()
    for _, after, number in scene.moments(duration):
        result = scene.interrupt(words, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status == 0:
            assert members_of(scene.root) != [], result
            scene.stop()
        scene.assert_ended(result)


def test_stop(scene):
    """The daemon serves on, or ends; either way it can be stopped again."""
    start = ["start", "--root", scene.root]
    words = ["stop", "--root", scene.root]
    duration = scene.duration(*words, before=lambda: scene.check(*start))
    for _, after, number in scene.moments(duration):
        scene.check(*start)
        result = scene.interrupt(words, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status != 0:
            scene.stop()
        scene.assert_ended(result, by_itself=True)  # the first one had been waiting


def test_stop_and_export(scene):
    """What it has not exported can be exported later."""
    start = ["start", "--root", scene.root, "--placement", "branch"]
    words = ["stop", "--export", "--root", scene.root]
    file = scene.root / "out" / "file"

    def begin():
        file.unlink(missing_ok=True)
        scene.check(*start)
        scene.check("exec", "--root", scene.root, "--", "sh", "-c", f"echo 1 >{file}")

    duration = scene.duration(*words, before=begin)
    for _, after, number in scene.moments(duration, 1 / 3):
        begin()
        result = scene.interrupt(words, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status != 0 and (scene.root / ".shunt").exists():
            scene.stop()
            scene.check("export", scene.root)
        scene.assert_ended(result, by_itself=True)
        assert_plain(scene.root)
        assert file.read_text() == "1\n", result


@pytest.mark.parametrize("is_killed", [True, False])
def test_cleanup(scene, is_killed):
    """Of a daemon that was killed, or that is to end."""
    words = ["cleanup", *([] if is_killed else ["--all"])]

    def begin():
        scene.check("start", "--root", scene.root)
        if is_killed:
            kill_daemon(those_told(scene.root, "daemon")[0])

    duration = scene.duration(*words, before=begin)
    for _, after, number in scene.moments(duration, 1 / 5):
        begin()
        result = scene.interrupt(words, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status != 0:
            scene.check(*words)
            wait_until(lambda: not daemons_of(scene.root))  # one that has been told to end ends by itself
        assert daemons_of(scene.root) == [], result
        assert [path for path in scene.run_base.rglob("*") if path.is_file()] == [], result
    scene.stop()


def test_exec(scene):
    """The command gets the signal, and the daemon knows what it made."""
    scene.check("start", "--root", scene.root, "--placement", "branch")
    out = scene.root / "out"
    words = ["exec", "--root", scene.root, "--", "sh", "-c"]
    duration = scene.duration(*words, f"echo 1 >{out}/file")
    for i, after, number in scene.moments(duration):
        result = scene.interrupt([*words, f"echo 1 >{out}/{i}; {FOR_EVER}"], after, number)
        assert result.is_by_signal(), result
    listed = scene.check(*words, f"ls {out}").split()
    assert sorted(listed) == sorted(map(os.path.basename, redirected_files(scene.root)))
    scene.stop()
    scene.assert_ended(None)


LOOKS = [["status", "--root"], ["ls", "-lR"], ["find"], ["names"], ["fsck"], ["where"], ["tree"], ["stat"],
         ["env", "--container", "podman", "--root"], ["doctor", "--root"]]
ANEW = ("status", "doctor")  # they say what is now


@pytest.mark.parametrize("words", LOOKS, ids=lambda words: words[0])
def test_what_only_looks(scene, words):
    scene.check("start", "--root", scene.root, "--placement", "branch")
    scene.check("exec", "--root", scene.root, "--", "sh", "-c", f"cd {scene.root}/out; seq 100 | xargs touch")
    words = [*words, scene.root]
    whole = scene.check(*words)
    for _, after, number in scene.moments(scene.duration(*words)):
        result = scene.interrupt(words, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        assert result.status != 0 or words[0] in ANEW or result.out == whole, result
    scene.check("status", "--root", scene.root)
    assert len(redirected_files(scene.root)) == 100
    scene.stop()
    scene.assert_ended(None)


@pytest.mark.parametrize("words", [["export"], ["fsck", "--repair"]], ids=lambda words: words[0])
def test_what_holds_the_root(scene, words):
    """It gives up its claim, which another host would take for that of one who lives. Each file is there, once."""
    kept = scene.area / "kept"
    scene.check("run", "--root", scene.root, "--placement", "branch", "--keep", "--", "sh", "-c",
                f"cd {scene.root}/out; for i in $(seq 12); do echo $i >$i; done")
    assert len(redirected_files(scene.root)) == 12
    shutil.move(scene.root, kept)

    def restore():
        shutil.rmtree(scene.root, ignore_errors=True)
        shutil.copytree(kept, scene.root)

    words = [*words, scene.root]
    done = (0, 1) if words[0] == "fsck" else (0,)  # it finds what to repair in a copy
    duration = scene.duration(*words, before=restore, status=done)
    for _, after, number in scene.moments(duration):
        restore()
        result = scene.interrupt(words, after, number)
        assert result.status in done or result.is_by_signal(), result
        scene.assert_ended(result)
        if result.status != 0 or words[0] == "fsck":
            scene.check("export", scene.root)
        assert_plain(scene.root)
        found = {path.name: path.read_text() for path in (scene.root / "out").iterdir()}
        assert found == {str(i): f"{i}\n" for i in range(1, 13)}, result


class Mountpoint:
    """In a mount name space of its own, of which no other test has a copy, for which the server would have to stay."""

    def __init__(self, scene, mounts):
        self.scene, self.mounts, self.at = scene, mounts, scene.area / "mount"
        self.at.mkdir()
        self.words = ["mount", scene.root, self.at], ["umount", self.at]

    def servers(self):
        """Those that serve it, or are about to."""
        return [pid for pid in processes_of("shunt-mount", self.at) if is_running(pid)]

    def is_mounted(self):
        return f" {self.at} fuse.shunt " in pathlib.Path(f"/proc/{self.mounts.pid}/mounts").read_text()

    def names(self):
        return os.listdir(self.mounts.seen(self.at))

    def assert_ended(self):
        wait_until(lambda: not self.is_mounted() and self.servers() == [])

    def end_servers(self):
        for server in self.servers():
            end_mount_server(server)

    def take_away(self):
        self.scene.check(*self.words[1])
        assert not self.is_mounted()
        self.assert_ended()


@pytest.fixture
def mountpoint(scene, mounts):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3") or \
            not (scene.tools / "mount" / "shunt-mount").exists():
        pytest.skip("needs FUSE, and a build with libfuse3")
    scene.prefix = mounts.prefix
    scene.check("start", "--root", scene.root)
    made = Mountpoint(scene, mounts)
    yield made
    made.end_servers()
    scene.stop()


def test_mount(scene, mountpoint):
    """It is mounted, or soon nothing is left of it."""
    mount, _ = mountpoint.words
    duration = scene.duration(*mount, before=lambda: mountpoint.is_mounted() and mountpoint.take_away())
    mountpoint.take_away()
    for _, after, number in scene.moments(duration, 1 / 3):
        result = scene.interrupt(mount, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status == 0:
            assert mountpoint.names() == ["out"], result
            mountpoint.take_away()
        mountpoint.assert_ended()


def test_umount(scene, mountpoint):
    """It can be asked again, if it was not done."""
    mount, umount = mountpoint.words
    duration = scene.duration(*umount, before=lambda: scene.check(*mount))
    for _, after, number in scene.moments(duration, 1 / 3):
        scene.check(*mount)
        result = scene.interrupt(umount, after, number)
        assert result.status == 0 or result.is_by_signal(), result
        if result.status != 0 and mountpoint.is_mounted():
            scene.check(*umount, status=(0, 1))  # a helper of the first one may have done it meanwhile
        mountpoint.assert_ended()


@pytest.fixture
def company(scene):
    """Daemons n1 and n2 of one session. Gives a function that starts n1 again, and says which process it is."""
    settings = {"SHUNT_FABRIC": "tcp:lo"}
    name = ["--root", scene.root, "--node", "n1"]

    def again():
        scene.check("start", *name, **settings)
        return json.loads(scene.check("status", *name, "--json"))[0]["pid"]

    scene.check("start", "--root", scene.root, "--node", "n2", **settings)
    return again


def assert_alone(scene, *what):
    assert [line for line in epoch_lines(scene.root) if line.startswith("node ")] == ["node n2"], what


def test_stop_after_a_crash(scene, company):
    """The supervisor is just about to start another daemon, has started it, or it has joined: no dead member is left, for whom
    the others would wait."""
    for after in (0.1 * i / 8 for i in range(8)):
        os.kill(company(), signal.SIGKILL)
        time.sleep(after)
        scene.check("stop", "--root", scene.root, "--node", "n1")
        assert_alone(scene, after)
    scene.stop()
    assert members_of(scene.root) == []


def test_a_crash_while_it_is_stopped(scene, company):
    """It was alive when stop looked."""
    daemon = company()
    stand_still(daemon)
    process = scene.begin("stop", "--root", scene.root, "--node", "n1")
    wait_until(lambda: has_signal(daemon, signal.SIGTERM))
    os.kill(daemon, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert_alone(scene)
    scene.stop()
    assert members_of(scene.root) == []
