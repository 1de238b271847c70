# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""shunt bench, with few files: what it measures, how it says so, and that it leaves nothing after. How fast anything
is, is not looked at."""

import csv
import io
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import manual
import pytest
from conftest import environment, is_running, run, stand_still
from daemons import has_signal

OPERATIONS = ["create", "open", "stat", "utime", "readdir", "rename", "unlink"]
LAUNCHERS = ("SLURM_", "FLUX_", "OMPI_", "PMI_", "PMIX_", "MV2_")
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1, "OMPI_MCA_rmaps_base_oversubscribe": 1}


ENDLESS = ("--fake-nodes", 2, "-f", 300, "-r", 1000)


class Bench:
    """The command, for a directory that holds one file of the user's."""

    def __init__(self, shunt, area):
        self.shunt, self.directory, self.run_dir = shunt.path, area / "given", area / "run"
        self.directory.mkdir()
        self.run_dir.mkdir()
        (self.directory / "mine").write_text("mine")
        self.settings = {"SHUNT_RUN_DIR": self.run_dir, "SHUNT_FABRIC": "tcp", **SETTINGS}

    def words(self, *words):
        return [str(word) for word in (self.shunt, "bench", *words, self.directory)]

    def __call__(self, *words, before=(), **settings):
        return run([*before, *self.words(*words)], **{**self.settings, **settings})

    def start(self, *words, before=(), **options):
        return subprocess.Popen([*before, *self.words(*words)], stdin=subprocess.DEVNULL, env=environment(**self.settings),
                                start_new_session=True, **options)

    def assert_nothing_is_left(self):
        assert os.listdir(self.directory) == ["mine"]
        assert not self.daemons(), "a daemon has left something, or lives"

    def daemons(self):
        """What daemons have in their run directory while they live."""
        return list(self.run_dir.glob("*/*"))

    def wait_for_nothing(self):
        """Its parent is gone; what it had started cleans up by itself."""
        wait_until(lambda: os.listdir(self.directory) == ["mine"] and not self.daemons(), "an empty place")


def wait_until(holds, what):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


@pytest.fixture
def bench(shunt, area, monkeypatch):
    for name in list(os.environ):
        if name.startswith(LAUNCHERS):
            monkeypatch.delenv(name)
    made = Bench(shunt, area)
    yield made
    made.assert_nothing_is_left()


def measured(found, key="configuration"):
    return {(one[key], one["operation"]): one for one in found["results"]}


# What is measured


def test_json_has_every_operation_in_every_configuration(bench):
    found = json.loads(bench("--fake-nodes", 2, "-f", 20, "-r", 2, "-p", "branch", "-c", "private,shared,shunt,shunt-private",
                             "--json").check())
    results = measured(found)
    assert set(results) == {(configuration, operation) for operation in OPERATIONS
                            for configuration in ("private", "shared", "shunt", "shunt-private")}
    for (configuration, operation), one in results.items():
        # In one directory each of the two processes lists the files of both.
        listed = 2 if operation == "readdir" and configuration in ("shared", "shunt") else 1
        assert one["operations"] == 2 * 20 * listed, one
        assert len(one["rates"]) == 2
        assert 0 < one["rate"]["lowest"] <= one["rate"]["median"] <= one["rate"]["highest"]
        latency = one["latency_ns"]
        assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"] <= latency["highest"]
    assert (found["nodes"], found["pretended"], found["mounts"]) == (["fake0", "fake1"], True, 1)
    assert found["export"]["files"] == 40
    assert "shared directory" in found["verdict"]
    assert manual.keys_of(found) == manual.fields_of_json(manual.page_of("bench"), "bench")
    pairs = {(one["of"], one["to"]) for one in found["ratios"]}
    assert pairs == {("private", "shared"), ("shunt", "shared"), ("shunt-private", "private")}


def test_ratios_are_those_of_the_rates(bench):
    found = json.loads(bench("-f", 20, "-r", 3, "-o", "create", "--json").check())
    rates = {one["configuration"]: one["rates"] for one in found["results"]}
    for one in found["ratios"]:
        expected = sorted(a / b for a, b in zip(rates[one["of"]], rates[one["to"]]))
        assert [one["ratio"][key] for key in ("lowest", "median", "highest")] == pytest.approx(expected, rel=1e-6)


def test_csv_has_every_measurement(bench):
    out = bench("-n", 3, "-f", 5, "-r", 2, "-w", 0, "-s", "0,3901,4096", "-c", "shared,shunt", "-o", "create,stat", "-b",
                "stat", "--csv").check()
    lines = list(csv.DictReader(io.StringIO(out)))
    assert len(lines) == 2 * 2 * 3 * 2
    assert {line["size"] for line in lines} == {"0", "3901", "4096"}
    assert {(line["operation"], line["files"]) for line in lines} == {("create", "own"), ("stat", "neighbour")}
    for line in lines:
        assert line["operations"] == "15"
        assert float(line["rate"]) == pytest.approx(15 / float(line["seconds"]), rel=1e-3)


def test_the_neighbours_files_under_shunt(bench):
    found = json.loads(bench("-n", 4, "--fake-nodes", 2, "-f", 20, "-r", 1, "-b", "all", "-c", "shared,shunt", "-p", "branch",
                             "--json").check())
    assert all(one["files"] == "neighbour" for one in found["results"])
    assert measured(found)["shunt", "unlink"]["operations"] == 80


def test_files_are_redirected_under_shunt_alone(bench):
    """While it runs: native files are where they seem to be, those under shunt in branches of both nodes."""
    process = bench.start(*ENDLESS, "-p", "branch", "-c", "shared,shunt", stdout=subprocess.DEVNULL)
    branches = bench.directory.glob
    try:
        for node in ("fake0", "fake1"):
            wait_until(lambda node=node: any(branches(f"shunt-bench.*/root/.shunt/b/{node}.*/p*/*/f*")), f"files of {node}")
        wait_until(lambda: any(branches("shunt-bench.*/native/p*/f*")), "native files")
        assert not any(branches("shunt-bench.*/native/.shunt"))
    finally:
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM


def test_text_ends_with_a_sentence(bench):
    out = bench("-f", 10, "-r", 2).check()
    assert out.startswith("2 processes on 1 node with 1 mount of the file system (")
    assert re.match(r"create: a shared directory costs .* here.*; shunt would ", out.splitlines()[-1]), out


# Ranks


@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpiexec.hydra"])
def test_ranks_of_an_mpi_launch(bench, launcher):
    done = bench("--fake-nodes", 2, "-f", 10, "-r", 1, "--json", before=[launcher, "-n", 2])
    found = json.loads(done.check())
    assert (found["processes"], found["nodes"]) == (2, ["fake0", "fake1"])
    assert measured(found)["shunt", "create"]["operations"] == 20


def test_processes_started_by_hand(bench):
    words = ("-f", 10, "-r", 1, "--json")
    other = bench.start("--rank", "1/2", *words, before=["env", "SHUNT_NODE=two"])
    found = json.loads(bench("--rank", "0/2", *words, SHUNT_NODE="one").check())
    assert other.wait(60) == 0
    assert found["nodes"] == ["one", "two"]


MEET = "shunt-bench.meet"


def test_a_second_one_in_the_same_directory_is_told(bench):
    """One whose host cannot be told may live; so does the first process of one that waits for its second."""
    (bench.directory / MEET).write_text("")
    done = bench("--rank", "0/2")
    done.check(1)
    assert "another 'shunt bench' begins in this directory (run this again in 2 minutes, or give" in done.err
    (bench.directory / MEET).unlink()
    first = bench.start("--rank", "0/2", "-f", 10, "-r", 1)
    wait_until(lambda: (bench.directory / MEET).exists(), "the first process")
    bench("--rank", "0/2").check(1)
    bench("--rank", "1/2", "-f", 10, "-r", 1).check()
    assert first.wait(60) == 0


def left_by_one_that_was_killed(bench):
    first = bench.start("--rank", "0/2")
    wait_until(lambda: (bench.directory / MEET).exists() and "end\n" in (bench.directory / MEET).read_text(), "its file")
    # The one in a session of its own, too, which would clean up.
    children = pathlib.Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    for child in children:
        os.killpg(int(child), signal.SIGKILL)
    first.wait(60)
    wait_until(lambda: not any(map(is_running, children)), "their end")


def left_on_another_host(bench):
    (bench.directory / MEET).write_text("of another version")
    long_ago = time.time() - 150
    os.utime(bench.directory / MEET, (long_ago, long_ago))


@pytest.mark.parametrize("leave", [left_by_one_that_was_killed, left_on_another_host])
def test_what_a_killed_one_left_is_in_nobodys_way(bench, leave):
    leave(bench)
    other = bench.start("--rank", "1/2", "-f", 10, "-r", 1)  # it does not go by what it finds
    bench("--rank", "0/2", "-f", 10, "-r", 1).check()
    assert other.wait(60) == 0
    bench.assert_nothing_is_left()


def test_another_program_listens_where_a_killed_one_did(bench):
    """Ports are given out again."""
    left_by_one_that_was_killed(bench)
    text = (bench.directory / MEET).read_text()
    port = text.splitlines()[1].split()[-1]
    with socket.create_server(("127.0.0.1", 0)) as another:
        (bench.directory / MEET).write_text(text.replace(f" {port}\n", f" {another.getsockname()[1]}\n"))
        other = bench.start("--rank", "1/2", "-f", 10, "-r", 1)
        time.sleep(1)  # so that it looks at what was left
        bench("--rank", "0/2", "-f", 10, "-r", 1).check()
        assert other.wait(60) == 0


# Plots


@pytest.mark.skipif(shutil.which("gnuplot") is None, reason="gnuplot is not installed")
def test_plots(bench, area):
    svg, png = area / "it's a plot.svg", area / "plot.png"
    done = bench("-f", 5, "-r", 2, "-s", "0,1", "--plot", svg, "--plot", png)
    done.check()
    assert not done.err
    text = "".join(ElementTree.parse(svg).getroot().itertext())
    assert all(word in text for word in (*OPERATIONS, "private", "shared", "shunt", "files of 1 bytes"))
    assert png.read_bytes().startswith(b"\x89PNG")


def test_without_gnuplot_it_says_so_before_it_measures(bench, area):
    done = bench("--plot", area / "plot.svg", PATH="/nowhere")
    done.check(1)
    assert "gnuplot: command not found" in done.err and not done.out


def test_where_no_plot_can_be_it_says_so_before_it_measures(bench, area):
    done = bench("--json", "--plot", area / "nowhere" / "plot.svg")
    done.check(1)
    assert "nowhere" in done.err and not done.out


# What goes wrong


def test_refuses_to_run_in_a_root_and_under_shunt(bench, shunt, root):
    shunt("start", "--root", root).check()
    try:
        within = shunt("bench", root)
        under = shunt("exec", "--root", root, "--", *bench.words())
    finally:
        shunt("stop", "--root", root).check()
    within.check(1)
    assert "inside a root of shunt" in within.err
    under.check(2)
    assert "runs under shunt already" in under.err


def test_a_daemon_that_cannot_start(bench):
    done = bench("-f", 5, "--fake-nodes", 2, SHUNT_FABRIC="none")
    done.check(1)
    assert ": held by a session of " in done.err and not done.out


def test_a_full_disk(bench, area):
    if os.geteuid() != 0:
        pytest.skip("only the superuser can mount a small file system")
    small = area / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=50", "none", small], check=True)
    try:
        done = run([bench.shunt, "bench", "-f", 100, small], **bench.settings)
        done.check(1)
        assert re.search(r"process [01] on .*: create of .*: No space left on device", done.err), done.err
        assert not os.listdir(small)
    finally:
        subprocess.run(["umount", small], check=True)


# Stopping


def files_are_made(bench, tree):
    """What the benchmark removes meanwhile is passed over."""
    return lambda: any(name.startswith("f") for top in bench.directory.glob("shunt-bench.*")
                       for _, _, names in os.walk(top / tree) for name in names)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.parametrize("tree", ["native", "root"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(bench, number, tree):
    process = bench.start(*ENDLESS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(files_are_made(bench, tree), "files")
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 128 + number


@pytest.mark.parametrize("words, line", [(ENDLESS, b"warm-up, 0 %"), (("--rank", "0/3"), b"1 of 3 processes are here"),
                                         (("--rank", "1/3"), b"waiting for process 0")])
def test_ctrl_c_of_a_terminal_and_its_progress_line(bench, words, line):
    """Every process in the foreground gets the signal."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        words = bench.words(*words)
        os.execve(words[0], words, environment(**bench.settings))
    seen = b""
    while line not in seen:
        seen += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGINT


def test_a_second_signal_need_not_wait(bench):
    """A worker that hangs, as with its file system, holds up the cleaning; it is done all the same."""
    process = bench.start(*ENDLESS, stderr=subprocess.PIPE, text=True)
    wait_until(files_are_made(bench, "root"), "files")
    conductor, = children(process.pid)
    worker = children(children(conductor)[0])[0]
    stand_still(worker)
    try:
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not has_signal(process.pid, signal.SIGTERM), "the first to be taken")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        os.kill(worker, signal.SIGCONT)
    assert f"process {conductor}: still removing the files" in process.stderr.read()
    bench.wait_for_nothing()


def test_it_cleans_up_when_it_is_killed(bench):
    process = bench.start(*ENDLESS)
    wait_until(files_are_made(bench, "root"), "files")
    process.kill()
    process.wait()
    bench.wait_for_nothing()


@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpiexec.hydra"])
def test_the_end_of_an_mpi_launch(bench, launcher):
    process = bench.start(*ENDLESS, before=[launcher, "-n", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(files_are_made(bench, "root"), "files")
    process.terminate()
    process.wait(60)
    bench.wait_for_nothing()


def test_a_process_that_is_lost_ends_all(bench):
    first = bench.start("--rank", "0/2", *ENDLESS[2:], before=["env", "SHUNT_NODE=one"], stderr=subprocess.PIPE, text=True)
    second = bench.start("--rank", "1/2", before=["env", "SHUNT_NODE=two"])
    wait_until(files_are_made(bench, "root"), "files")
    second.kill()
    second.wait()
    _, words = first.communicate(timeout=60)
    assert first.returncode in (1, 128 + signal.SIGTERM), words
    bench.wait_for_nothing()


def test_an_agent_that_is_killed(bench):
    """The daemon of its node outlives it: the conductor's business."""
    process = bench.start(*ENDLESS, stderr=subprocess.PIPE, text=True)
    wait_until(files_are_made(bench, "root"), "files")
    conductor, = children(process.pid)
    os.kill(children(conductor)[0], signal.SIGKILL)
    _, words = process.communicate(timeout=60)
    assert "process 0 on fake0: ended before the benchmark did" in words
    assert process.returncode == 1


def test_nohup(bench):
    process = bench.start("-f", 100, "-r", 5, "-c", "private,shared", before=["nohup"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    wait_until(files_are_made(bench, "native"), "files")
    process.send_signal(signal.SIGHUP)
    assert process.wait(120) == 0
