# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the daemon says of itself: its counters, its crash report, its manners with the terminal."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import daemons
import manual
import pytest
from conftest import run, wait_until


@pytest.fixture
def served(shunt, root):
    """A root with a daemon, placement branch; stopped at the end whatever happened."""
    shunt("start", "--root", root, "--placement", "branch", "--leaf-full", "4").check()
    yield root
    shunt("stop", "--root", root)


def status_of(shunt, root):
    return json.loads(shunt("status", "--json", "--root", root).out)[0]


def test_counters_tell_what_was_done(shunt, served):
    before = status_of(shunt, served)["counters"]
    script = "mkdir d; for i in 1 2 3 4 5 6 7 8 9; do echo $i >d/$i; done; mv d/1 d/one; rm d/2"
    shunt("exec", "--root", served, "--", "sh", "-c", f"cd {served}; {script}").check()
    after = status_of(shunt, served)["counters"]
    gained = {key: after[key] - before[key] for key in ("creates", "redirected", "renames", "unlinks", "malformed")}
    assert gained == {"creates": 10, "redirected": 9, "renames": 1, "unlinks": 1, "malformed": 0}
    assert after["directories"] == 2  # the root, and d, which was loaded when it was born


def test_the_manual_names_every_field_of_json(shunt, served):
    page = manual.page_of("status")
    shunt("exec", "--root", served, "--", "mkdir", served / "d").check()
    [made] = json.loads(shunt("status", "--all", "--json", "--root", served).check())
    keys = manual.keys_of(made, but=("counters", "all"))
    # What nobody has seen here: a directory whose creates stay in the trunk; files that a session has left.
    assert keys | {"path", "reason", "left_files", "export_seconds"} == manual.fields_of_json(page, "status")
    counters = page.read_text().split("\n.SH COUNTERS\n")[1].split("\n.SH ")[0].replace("\\-", "-")
    assert set(made["counters"]) == {word for line in re.findall(r"^\.I (.*)", counters, re.M) for word in line.split(", ")}


def test_a_root_is_given_once(build, area):
    for name in ("a", "b"):
        (area / name).mkdir()
    result = run([build / "daemon" / "shuntd", "--root", area / "a", "--root", area / "b"])
    assert result.status == 2 and f"{area / 'b'}: a shuntd serves one root" in result.err
    assert not any((area / name / ".shunt").exists() for name in ("a", "b"))


def test_daemon_tools_and_library_agree_on_a_nodes_name(build, shunt, root):
    """Slurm's, up to its first dot, where nothing else is said: a daemon that is started by hand has it, and programs find that one."""
    slurm = {"SLURMD_NODENAME": "twin2.cluster"}
    run([build / "daemon" / "shuntd", "--root", root, "--placement", "branch"], **slurm).check()
    try:
        assert status_of(shunt, root)["members"][0]["node"] == "twin2"
        run(["sh", "-c", 'echo 1 >"$0/a"; ls -a "$0"', root], LD_PRELOAD=build / "lib" / "shim" / "libshunt_preload.so", SHUNT_ROOT=root,
            **slurm).check()
        assert not (root / "a").exists(), "it is in the branch"
    finally:
        assert shunt("start", "--root", root, **slurm).status != 0, "it is there under that name"
        shunt("stop", "--node", "twin2", "--root", root).check()


def test_a_leaf_takes_as_many_names_as_it_is_told(shunt, served):
    shunt("exec", "--root", served, "--", "sh", "-c",
          f"mkdir {served}/d; for i in 0 1 2 3 4 5 6 7 8 9; do echo $i >{served}/d/$i; done").check()
    leaves = sorted((served / ".shunt" / "b").glob("*/d-*/*"), key=lambda leaf: int(leaf.name))
    assert [leaf.name for leaf in leaves] == ["0", "1", "2"]
    assert [len(list(leaf.iterdir())) for leaf in leaves] == [4, 4, 2]


def test_lookups_and_listings_send_no_message(shunt, served):
    words = ["exec", "--root", served, "--", "sh", "-c"]
    shunt(*words, f"mkdir {served}/d; for i in $(seq 50); do echo $i >{served}/d/$i; done").check()

    def requests(script):
        before = status_of(shunt, served)["counters"]["requests"]
        shunt(*words, script).check()
        return status_of(shunt, served)["counters"]["requests"] - before

    asked = requests("true")  # by exec and status themselves
    assert asked <= 3
    # Asked are, until the daemon has given the trunk its times and the trunk stands, whether names were made in it natively.
    every = f"cd {served}/d; ls; cat * >/dev/null; ls -l >/dev/null; test -f 7; stat 1 2 3 >/dev/null"
    wait_until(lambda: requests(every) == asked)


def test_a_crash_leaves_a_backtrace_in_the_log(shunt, root):
    shunt("start", "--root", root).check()
    status = status_of(shunt, root)
    os.kill(status["pid"], signal.SIGSEGV)
    wait_until(lambda: status_of(shunt, root)["pid"] != status["pid"])
    log = (Path(status["run_dir"]) / "log").read_text()
    assert "shuntd crashed: signal 11" in log
    assert "main+0x" in log
    shunt("stop", "--root", root).check()


def test_a_crash_of_another_thread_leaves_a_backtrace_in_the_log(shunt, root):
    """Those that carry frames serve, too. A fault, and a signal to one thread, which stands in for it here, is that thread's."""
    shunt("start", "--root", root).check()
    status = status_of(shunt, root)
    log = Path(status["run_dir"]) / "log"
    before = len(log.read_text())  # a root with the inode number of one that is gone may have had this directory
    tasks = Path(f"/proc/{status['pid']}/task")
    wait_until(lambda: len(list(tasks.iterdir())) > 1)
    signal_thread = ctypes.CDLL(None, use_errno=True).tgkill
    assert signal_thread(status["pid"], max(int(task.name) for task in tasks.iterdir()), signal.SIGSEGV) == 0
    wait_until(lambda: status_of(shunt, root)["pid"] != status["pid"])
    told = log.read_text()[before:]
    assert "shuntd crashed: signal 11" in told
    assert "main+0x" not in told
    shunt("stop", "--root", root).check()


def test_the_daemon_keeps_nothing_that_its_starter_had_open(build, root, area):
    """A batch script's lock ends with the script."""
    shunt, lock = build / "tools" / "shunt", area / "lock"
    try:
        subprocess.run(["flock", lock, shunt, "start", "--root", root], timeout=60, check=True)
        subprocess.run(["flock", "-n", lock, "true"], timeout=60, check=True)
    finally:
        subprocess.run([shunt, "stop", "--root", root], timeout=60, check=False)


def test_start_lets_go_of_the_terminal(build, root):
    """A pipe that the starter holds ends with the starter: the daemon keeps none of its descriptors."""
    command = [build / "tools" / "shunt", "start", "--root", root]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run([build / "tools" / "shunt", "stop", "--root", root], timeout=60, check=False)


def signal_until_gone(pid, number):
    """Sends the signal every millisecond for as long as that process runs."""
    deadline = time.monotonic() + 30
    process = os.pidfd_open(pid)
    try:
        while daemons.is_running(pid):
            assert time.monotonic() < deadline, f"process {pid} did not end"
            signal.pidfd_send_signal(process, number)
            time.sleep(0.001)
    except ProcessLookupError:  # it has ended since it was looked at
        pass
    finally:
        os.close(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whom", ["daemon", "supervisor"])
def test_signals_that_come_while_it_stops_change_nothing(shunt, root, number, whom):
    """30 times: a request to end that is repeated while everything is taken down ends in order, and leaves no files."""
    for _ in range(30):
        shunt("start", "--root", root).check()
        status = status_of(shunt, root)
        directory = Path(status["run_dir"])
        with (directory / "log").open() as log:
            [supervisor] = daemons.supervisor_of(status["pid"])
            signal_until_gone(status["pid"] if whom == "daemon" else supervisor, number)
            wait_until(lambda: not daemons.is_running(supervisor))
            assert not directory.exists()
            said = log.read()
            assert "ended by signal" not in said, said


# What the run directory takes

THREADS = """
import os, sys, threading
os.chdir(sys.argv[1])
everybody = threading.Barrier(4)

def work(i):
    everybody.wait()
    for j in range(10):
        os.close(os.open(f"{os.getpid()}-{i}-{j}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.stat(f"{os.getpid()}-{i}-{j}")

said, say = os.pipe()
wait, go_on = os.pipe()
for i in range(100):
    if os.fork() == 0:
        os.close(go_on)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.write(say, b".")
        os.read(wait, 1)
        os._exit(0)
for i in range(100):
    os.read(said, 1)
print(len(os.listdir(".")))
"""


def taken_by(directory):
    """In bytes; a file that is being made has another name at the moment, or is gone."""
    return sum(path.stat().st_blocks * 512 for path in directory.iterdir())


def test_a_root_with_nothing_in_it_takes_little(shunt, root):
    shunt("start", "--root", root).check()
    status = status_of(shunt, root)
    directory = Path(status["run_dir"])
    assert taken_by(directory) <= 2_000_000
    assert shunt("exec", "--root", root, "--", "ls", "-A", root).check() == ""
    assert taken_by(directory) <= 2_000_000
    os.kill(status["pid"], signal.SIGKILL)
    wait_until(lambda: status_of(shunt, root)["pid"] not in (status["pid"], None))
    assert taken_by(directory) <= 2_000_000
    shunt("stop", "--root", root).check()


def test_many_processes_take_as_much_as_they_use(shunt, served):
    directory = Path(status_of(shunt, served)["run_dir"])
    channel = directory / "channel"
    before = channel.stat().st_blocks * 512
    for _ in range(2):
        assert shunt("exec", "--root", served, "--", sys.executable, "-c", THREADS, served).check() == "4000\n"
        after = channel.stat().st_blocks * 512
        assert 60 * 16384 <= after - before <= 500 * 16384
        shunt("exec", "--root", served, "--", "sh", "-c", f"rm {served}/*").check()
    os.kill(status_of(shunt, served)["pid"], signal.SIGKILL)
    wait_until(lambda: channel.exists() and channel.stat().st_blocks * 512 < after)
    assert shunt("exec", "--root", served, "--", "ls", served).check() == ""
