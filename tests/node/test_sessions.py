# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a centre sees and cleans on a node: `shunt status` without a root, and `shunt cleanup`."""

import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import manual
import pytest
from conftest import IS_SUPERUSER, PYTHON, environment, redirected_files, run
from daemons import is_running, standing_still, supervisor_of, wait_until

OTHER = 65534
BECOME = ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups"]


class Host:
    """Sessions below one SHUNT_RUN_DIR."""

    def __init__(self, shunt, run_base):
        self.shunt, self.run_base, self.started = shunt, run_base, []

    def __call__(self, *words, **settings):
        return self.shunt(*words, **{"SHUNT_RUN_DIR": self.run_base, **settings})

    def start(self, root, **settings):
        root.mkdir(exist_ok=True)
        self.started.append(root)
        self("start", "--root", root, "--placement", "branch", **settings).check()
        return self.of(root)

    def sessions(self, *words):
        return json.loads(self("status", "--json", *words).check())

    def of(self, root):
        return next(one for one in self.sessions() if one["root"] == str(root))

    def kill(self, session):
        """All at once, as a scheduler does."""
        ends = [*supervisor_of(session["pid"]), session["pid"]]
        for process in ends:
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, ends)))

    def run_dirs(self):
        return sorted(str(path) for path in self.run_base.glob("shunt-*/*"))


@pytest.fixture
def host(shunt, run_base):
    made = Host(shunt, run_base)
    yield made
    for root in made.started:
        made("stop", "--root", root)


# status


def test_status_of_a_host_is_a_table(host, area):
    assert host("status").check() == "no session on this host\n"
    host.start(area / "one", SLURM_JOB_ID="1234", SLURM_STEP_ID="0")
    host.start(area / "two words")
    title, *rows = host("status").check().splitlines()
    assert title.split() == ["USER", "JOB", "SINCE", "MEMORY", "STATE", "ROOT"]
    assert [row[title.index("ROOT"):] for row in rows] == [str(area / "one"), str(area / "two words")]
    assert [row[title.index("JOB"):].split()[0] for row in rows] == ["1234", "-"]
    assert all(" MiB  serving  " in row for row in rows), rows


def test_status_of_a_host_as_json(host, area):
    first = host.start(area / "one", SLURM_JOB_ID="1234", SLURM_STEP_ID="0")
    assert first["job"] == {"scheduler": "slurm", "id": "1234", "step": "0"} and first["state"] == "serving"
    assert first["file_bytes"] > 10**6 and first["daemon_bytes"] > 10**5
    assert host.start(area / "two")["job"] is None
    host("exec", "--root", area / "one", "--", "touch", area / "one" / "file").check()
    counted = host.sessions("--verbose")
    assert [one["counters"]["redirected"] for one in counted] == [1, 0]
    page = manual.page_of("status")
    assert manual.keys_of(counted, but=("counters",)) | {"reason"} == manual.fields_of_json(page, "status, without a root")


def test_status_of_a_host_has_counters_when_asked(host, area):
    host.start(area / "one")
    assert "redirected" not in host("status").check()
    assert "  redirected       0\n" in host("status", "-v").check()


def test_status_of_a_host_counts_the_processes_that_use_it(host, area):
    host.start(area / "one")
    script = "echo >$ROOT/file; echo; read line"
    program = subprocess.Popen([host.shunt.path, "exec", "--root", area / "one", "--", "sh", "-c", script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=environment(SHUNT_RUN_DIR=host.run_base, ROOT=area / "one"))
    program.stdout.readline()
    try:
        assert host.of(area / "one")["processes"] == 1
    finally:
        program.kill()
        program.wait()


def test_status_says_what_was_killed(host, area):
    session = host.start(area / "one", SLURM_JOB_ID="7")
    host.kill(session)
    left = host.of(area / "one")
    assert left["state"] == "ended" and left["job"]["id"] == "7" and left["pid"] == 0


def test_status_with_a_root_in_the_environment_is_of_that_root(host, area):
    host.start(area / "one")
    host.start(area / "two")
    [only] = json.loads(host("status", "--json", SHUNT_ROOT=area / "one").check())
    assert only["root"] == str(area / "one") and "members" in only


WATCH = "import ctypes, os, sys; libc = ctypes.CDLL(None); libc.inotify_add_watch(libc.inotify_init(), os.fsencode(sys.argv[1]), 0x100)"


def test_the_name_of_a_pinned_directory_counts_nothing(host, area):
    """Lines of what the daemon answers are told apart by newlines, which a name may have."""
    directory = area / "one" / "odd\nrequests 4711\npinned owner x\\n"
    host.start(area / "one")
    directory.mkdir()
    host("exec", "--root", area / "one", "--", PYTHON, "-c", WATCH, directory).check()
    [told], [of_host] = json.loads(host("status", "--json", "--root", area / "one").check()), host.sessions("-v")
    for one in (told, of_host):
        assert one["pinned"] == [{"path": directory.name, "reason": "watched"}] and one["counters"]["requests"] != 4711
    assert f"  pinned   {directory.name}: new files stay" in host("status", "--root", area / "one").check()


def test_status_of_a_root_says_that_its_daemon_does_not_answer(host, area):
    with standing_still(host.start(area / "one")["pid"]):
        out = host("status", "--root", area / "one").check()
    assert "  state    alive\n" in out and out.endswith("\n  counters cannot be read: Connection timed out\n")


# metrics


def families(text):
    """{name: {labels: value}}, by a parser that refuses what is no OpenMetrics text."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def samples(found, name):
    return {sample.labels["root"]: sample.value for sample in found[name].samples}


def flat(sample):
    return sample.name, tuple(sorted(sample.labels.items())), sample.value


def test_metrics_of_a_host_without_sessions(host):
    text = host("status", "--metrics").check()
    assert text.endswith("# EOF\n") and not any(family.samples for family in families(text).values())


def test_metrics_of_a_host(host, area):
    """All counters are there, with their values."""
    odd = area / 'odd "name" \\ of\ta\nroot é'
    host.start(area / "one", SLURM_JOB_ID="1234")
    host.start(odd)
    host("exec", "--root", odd, "--", "touch", odd / "file").check()
    host.kill(host.start(area / "killed"))
    found = families(host("status", "--metrics", SHUNT_ROOT=odd).check())
    assert samples(found, "shunt_redirected") == {str(area / "one"): 0, str(odd): 1}
    jobs = {sample.labels["root"]: (sample.labels["scheduler"], sample.labels["job"]) for sample in found["shunt_session_info"].samples}
    assert jobs == {str(area / "one"): ("slurm", "1234"), str(odd): ("", ""), str(area / "killed"): ("", "")}
    states = {sample.labels["root"]: sample.labels["shunt_session_state"]
              for sample in found["shunt_session_state"].samples if sample.value == 1}
    assert states == {str(area / "one"): "serving", str(odd): "serving", str(area / "killed"): "ended"}
    for one in host.sessions("-v"):
        assert abs(samples(found, "shunt_session_start_time_seconds")[one["root"]] - one["since_ns"] / 1e9) < 1e-3
        for key, value in one.get("counters", {}).items():
            name = next(name for name in (f"shunt_{key}", f"shunt_{key}_bytes", f"shunt_{key[:-3]}_seconds") if name in found)
            measured = samples(found, name)[one["root"]]
            assert measured <= value if found[name].type == "counter" else measured >= 0, key
    page = manual.page_of("status").read_text()
    assert all(name in page for name in found if name.startswith("shunt_session_"))


def test_a_node_exporter_takes_the_metrics(host, area):
    """Its textfile collector refuses a file with a type that it does not know: it reads the format before OpenMetrics."""
    host.start(area / 'odd "name" \\ of\ta\nroot é')
    text = host("status", "--metrics").check()
    assert set(re.findall(r"^# TYPE \w+ (.*)$", text, re.M)) <= {"counter", "gauge", "histogram", "summary", "untyped"}
    parser = pytest.importorskip("prometheus_client.parser")
    older = [sample for family in parser.text_string_to_metric_families(text) for sample in family.samples]
    newer = [sample for family in families(text).values() for sample in family.samples]
    assert set(map(flat, older)) == set(map(flat, newer))


def test_metrics_are_of_the_host(host, area):
    assert host("status", "--metrics", "--all").status == 2
    area.joinpath("one").mkdir()
    assert host("status", "--metrics", "--root", area / "one").status == 2


# cleanup


def test_cleanup_removes_what_a_killed_daemon_left(host, area):
    host.kill(host.start(area / "killed"))
    alive = host.start(area / "alive")
    out = host("cleanup").check()
    assert f"{area / 'killed'}: " in out and "alive" not in out
    assert host.run_dirs() == [alive["run_dir"]] and host.of(area / "alive")["state"] == "serving"
    assert host("cleanup").check() == ""


@pytest.mark.parametrize("step", range(1, 9))
def test_cleanup_that_was_interrupted_is_gone_on_with(host, shunt, area, step):
    """Also where a daemon runs of which it cannot know whose it is: below another SHUNT_RUN_DIR."""
    host.kill(host.start(area / "killed"))
    (area / "elsewhere").mkdir(mode=0o700)
    (area / "alive").mkdir()
    elsewhere = {"SHUNT_RUN_DIR": area / "elsewhere"}
    shunt("start", "--root", area / "alive", **elsewhere).check()
    subprocess.run(["strace", "-o", "/dev/null", "-e", f"inject=unlinkat:signal=SIGTERM:when={step}", shunt.path, "cleanup"],
                   env=environment(SHUNT_RUN_DIR=host.run_base), stdout=subprocess.DEVNULL, check=False)
    host("cleanup").check()
    assert [path for path in host.run_base.rglob("*") if path.is_file()] == []
    shunt("stop", "--root", area / "alive", **elsewhere).check()


def looks_at_run_dir(log, run_base):
    """(call, number) of each by which a command looks at the run directory, before it looks at processes."""
    counts = collections.Counter()
    for line in log.read_text().splitlines():
        if '"/proc/' in line and re.search(r'"/proc/\d', line):
            return
        call = line.partition("(")[0]
        counts[call] += 1
        if f'"{run_base}' in line or '"channel"' in line or (call == "pread64" and line.rpartition(" = ")[0].rstrip().endswith(", 0)")):
            yield call, counts[call]


@pytest.mark.unsanitized
@pytest.mark.parametrize("words", [["cleanup", "--all"], ["status"]], ids=lambda words: words[0])
def test_what_cannot_be_looked_at_is_not_passed_over(host, shunt, area, words):
    """The daemon serves, and its channel or the directory that it is in cannot be read once."""
    session, log = host.start(area / "one"), area / "calls"
    settings = environment(SHUNT_RUN_DIR=host.run_base)
    traced = ["strace", "-qq", "-o", log, "-e", "trace=openat,pread64"]
    subprocess.run([*traced, shunt.path, "status"], env=settings, stdout=subprocess.DEVNULL, check=True)
    looks = list(looks_at_run_dir(log, host.run_base))
    assert {call for call, _ in looks} == {"openat", "pread64"}
    for call, number in looks:
        result = subprocess.run([*traced, "-e", f"inject={call}:error=EMFILE:when={number}", shunt.path, *words], env=settings,
                                capture_output=True, text=True, check=False)
        assert "(INJECTED)" in log.read_text()
        assert result.returncode == 1 and result.stderr.endswith(")\n"), (call, number, result)
        assert host.of(area / "one")["pid"] == session["pid"]


def test_cleanup_of_a_job_ends_its_daemons_alone(host, area):
    host.start(area / "ended", SLURM_JOB_ID="1")
    host("exec", "--root", area / "ended", "--", "touch", area / "ended" / "file").check()
    other = host.start(area / "other", SLURM_JOB_ID="2")
    host.start(area / "none")
    files = redirected_files(area / "ended")
    host("cleanup", "--job", "1").check()
    assert sorted(one["root"] for one in host.sessions()) == [str(area / "none"), str(area / "other")]
    assert files == redirected_files(area / "ended") and len(files) == 1
    assert host.of(area / "other")["pid"] == other["pid"]
    assert host("status", "--json", "--root", area / "ended").status == 1, "it has left its session"


def test_cleanup_leaves_a_daemon_that_another_job_uses(host, area):
    session = host.start(area / "one", SLURM_JOB_ID="1")
    script = "echo; exec sleep 1000"
    settings = environment(SHUNT_RUN_DIR=host.run_base, ROOT=area / "one", SLURM_JOB_ID="2")
    program = subprocess.Popen([host.shunt.path, "exec", "--root", area / "one", "--", "sh", "-c", script],
                               stdout=subprocess.PIPE, env=settings)
    program.stdout.readline()
    try:
        assert f"process {program.pid}" in host("cleanup", "--job", "1").check()
        assert host.of(area / "one")["pid"] == session["pid"]
    finally:
        program.kill()
        program.wait()
    host("cleanup", "--job", "1").check()
    assert host.sessions() == []


def test_cleanup_asks_slurm_which_jobs_have_ended(host, area):
    squeue = area / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text("#!/bin/sh\ncase $* in *--jobs=1) echo RUNNING ;; *--jobs=2) ;; *--jobs=3) echo COMPLETED ;; "
                      "*--jobs=4) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;; "
                      "*) echo 'Unable to contact slurm controller' >&2; exit 1 ;; esac\n")
    squeue.chmod(0o755)
    for job in range(1, 6):
        host.start(area / f"root{job}", SLURM_JOB_ID=job)
    host("cleanup", PATH=f"{squeue.parent}:{os.environ['PATH']}").check()
    assert [one["job"]["id"] for one in host.sessions()] == ["1", "5"]


def test_cleanup_of_all(host, area):
    host.start(area / "one", SLURM_JOB_ID="1")
    host.start(area / "two")
    host("cleanup", "--all").check()
    assert host.run_dirs() == [] and host.sessions() == []


def test_cleanup_ends_a_daemon_that_has_crashed_and_is_started_again(host, area):
    session = host.start(area / "one", SLURM_JOB_ID="1")
    supervisor = supervisor_of(session["pid"])
    os.kill(session["pid"], signal.SIGKILL)
    host("cleanup", "--job", "1").check()
    assert not any(map(is_running, supervisor))
    assert host.run_dirs() == []


def test_cleanup_waits_for_a_daemon_that_is_ending_by_itself(host, shunt, area):
    """Its files are gone by the time that it would be told to end, and its supervisor is not."""
    session, calls = host.start(area / "one"), area / "calls"
    supervisor, = supervisor_of(session["pid"])
    cleanup = subprocess.Popen(["strace", "-qq", "-o", calls, "-e", "trace=pidfd_open,poll,exit_group", "-e",
                                "inject=pidfd_open:signal=SIGSTOP:when=1", shunt.path, "cleanup", "--all"],
                               env=environment(SHUNT_RUN_DIR=host.run_base), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: calls.exists() and "stopped by SIGSTOP" in calls.read_text())
    with standing_still(supervisor):
        os.kill(session["pid"], signal.SIGTERM)
        wait_until(lambda: not os.path.exists(session["run_dir"]))
        os.kill(int(pathlib.Path(f"/proc/{cleanup.pid}/task/{cleanup.pid}/children").read_text()), signal.SIGCONT)
        wait_until(lambda: re.search("poll|exit_group", calls.read_text()))
        assert "exit_group" not in calls.read_text()
    assert cleanup.wait(30) == 0 and cleanup.stdout.read().count(": its daemon has ended") == 1
    assert not is_running(supervisor)


def ends(host, shunt, log, call, error, number):
    """A cleanup of all one of whose calls fails: (its result, what it sent); None: so many it does not make."""
    words = ["strace", "-qq", "-o", log, "-e", f"trace={call},pidfd_send_signal", "-e", f"inject={call}:error={error}:when={number}"]
    result = run([*words, shunt.path, "cleanup", "--all"], SHUNT_RUN_DIR=host.run_base)
    text = log.read_text()
    sent = re.findall(r"pidfd_send_signal\(\d+, (SIG\w+), .*= 0$", text, re.MULTILINE)
    return (result, sent) if "(INJECTED)" in text else None


@pytest.mark.unsanitized
@pytest.mark.parametrize("call, error", [("pidfd_open", "EMFILE"), ("pidfd_open", "ENOSYS"), ("pidfd_send_signal", "EPERM"),
                                         ("openat", "EMFILE"), ("pread64", "EIO"), ("read", "EIO")])
def test_cleanup_kills_none_that_it_has_not_told_to_end(host, shunt, area, call, error):
    """One of its calls fails. It ends a daemon as it should, or leaves it and says why; no file of one that serves goes."""
    session, log = host.start(area / "one"), area / "calls"
    for number in range(1, 200):
        found = ends(host, shunt, log, call, error, number)
        if found is None:
            break
        result, sent = found
        assert "SIGKILL" not in sent, (number, result)
        if is_running(session["pid"]):
            assert sent == [] and host.of(area / "one")["pid"] == session["pid"], (number, result)
            assert result.status != 0 and "daemon has ended" not in result.out, (number, result)
        elif sent != [] and result.status == 0:
            assert not os.path.exists(session["run_dir"]), (number, result)
        if not is_running(session["pid"]):
            session = host.start(area / "one")
    assert 1 < number < 199


def test_cleanup_touches_no_file_of_a_user(host, area):
    session = host.start(area / "one")
    host.kill(session)
    own = pathlib.Path(session["run_dir"]) / "own"
    own.write_text("mine")
    result = host("cleanup")
    assert result.status == 1 and session["run_dir"] in result.err and own.read_text() == "mine"


def test_cleanup_follows_no_link(host, area):
    session = host.start(area / "one")
    host.kill(session)
    run_dir = pathlib.Path(session["run_dir"])
    (area / "precious").mkdir()
    (area / "precious" / "log").write_text("mine")
    run_dir.with_name("1-1-link").symlink_to(area / "precious")
    moved = run_dir.parent.rename(host.run_base / "moved")
    run_dir.parent.symlink_to(moved)
    assert host("cleanup", "--all").check() == ""
    assert (area / "precious" / "log").read_text() == "mine" and (moved / run_dir.name / "index").exists()
    run_dir.parent.unlink()


def test_cleanup_leaves_a_daemon_that_is_about_to_begin(host, area):
    """It waits for a process that is at what an earlier daemon let it begin."""
    host.kill(host.start(area / "one"))
    run_dir = pathlib.Path(host.of(area / "one")["run_dir"])
    begins = subprocess.Popen([host.shunt.path.parents[1] / "daemon" / "shuntd", "--foreground", "--root", area / "one", "--node",
                               run_dir.name.split("-", 2)[2]], env=environment(SHUNT_RUN_DIR=host.run_base), stderr=subprocess.PIPE)
    begins.stderr.readline()
    try:
        (run_dir / "channel").rename(run_dir / "hidden")
        assert host("cleanup").check() == "" and (run_dir / "index").exists()
        (run_dir / "hidden").rename(run_dir / "channel")
    finally:
        begins.terminate()
        begins.wait()


@pytest.mark.parametrize("words", [["cleanup", "word"], ["cleanup", "--job", ""], ["cleanup", "--user", "no such user"]])
def test_cleanup_refuses(host, words):
    result = host(*words)
    assert result.status == 2 and len(result.err.splitlines()) == 1


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["status", "--metrics"], ["cleanup", "--job", "none of these"]])
def test_a_run_directory_that_is_not_absolute_is_not_another_one(host, words):
    """The daemons of /dev/shm are not those that are meant."""
    result = host(*words, SHUNT_RUN_DIR="run")
    assert (result.status, result.out) == (1, "") and result.err.startswith("shunt: SHUNT_RUN_DIR: "), result.err


@pytest.mark.skipif(not IS_SUPERUSER, reason="to become another user takes the superuser")
def test_root_sees_and_cleans_those_of_all_users(host):
    with tempfile.TemporaryDirectory() as area:  # others may not go into pytest's
        os.chmod(area, 0o755)
        host.run_base.chmod(0o1777)
        root = pathlib.Path(area) / "root"
        root.mkdir()
        os.chown(root, OTHER, OTHER)
        own = pathlib.Path(area) / "own"
        host.start(own)
        start = [*BECOME, host.shunt.path, "start", "--root", root, "--placement", "branch"]
        settings = environment(SHUNT_RUN_DIR=host.run_base, SLURM_JOB_ID="5")
        subprocess.run(start, env=settings, check=True)
        seen = {one["root"]: one for one in host.sessions("-v")}
        assert {root: one["uid"] for root, one in seen.items()} == {str(own): os.geteuid(), str(area) + "/root": OTHER}
        assert seen[str(root)]["counters"]["creates"] == 0 and seen[str(root)]["job"]["id"] == "5"
        listed = subprocess.run([*BECOME, host.shunt.path, "status", "--json"], env=settings, check=True, capture_output=True)
        assert [one["root"] for one in json.loads(listed.stdout)] == [str(root)], "others see their own"
        ended = subprocess.run([*BECOME, host.shunt.path, "cleanup", "--all"], env=settings, check=True, capture_output=True)
        assert str(own).encode() not in ended.stdout and [one["root"] for one in host.sessions()] == [str(own)]
        subprocess.run(start, env=settings, check=True)
        host("cleanup", "--user", OTHER, "--job", "5").check()
        assert [one["root"] for one in host.sessions()] == [str(own)]
        host("stop", "--root", own)


def test_a_process_that_is_no_shuntd_is_not_ended(host, area):
    """Whoever may write the channel may write any process into it."""
    session = host.start(area / "one")
    bystander = subprocess.Popen(["sleep", "1000"])
    try:
        with standing_still(session["pid"]), open(pathlib.Path(session["run_dir"]) / "channel", "r+b") as channel:
            head = channel.read(4096)
            supervisor = supervisor_of(session["pid"])[0]
            at = head.index(supervisor.to_bytes(4, "little"))
            channel.seek(at)
            channel.write(bystander.pid.to_bytes(4, "little"))
            channel.flush()
        host("cleanup", "--all")
        assert is_running(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.skipif(not IS_SUPERUSER, reason="to become another user takes the superuser")
@pytest.mark.parametrize("words", [["--metrics"], ["--json", "--verbose"]], ids=" ".join)
def test_a_user_who_stops_what_asks_the_daemon_does_not_stop_root(host, words):
    """It is a process of that user's. The daemon is stopped as well, so that the process is there when it is looked for."""
    with tempfile.TemporaryDirectory() as area:
        os.chmod(area, 0o755)
        host.run_base.chmod(0o1777)
        root = pathlib.Path(area) / "root"
        root.mkdir()
        os.chown(root, OTHER, OTHER)
        settings = environment(SHUNT_RUN_DIR=host.run_base)
        subprocess.run([*BECOME, host.shunt.path, "start", "--root", root], env=settings, check=True)
        daemon = host.of(root)["pid"]
        with standing_still(daemon):
            asks = subprocess.Popen([host.shunt.path, "status", *words], env=settings, stdout=subprocess.PIPE, text=True)
            children = pathlib.Path(f"/proc/{asks.pid}/task/{asks.pid}/children")
            wait_until(lambda: any(re.search(
                rf"^Uid:\t{OTHER}\t{OTHER}\t", pathlib.Path(f"/proc/{child}/status").read_text(), re.M)
                for child in children.read_text().split()))
            child = int(children.read_text())
            subprocess.run([*BECOME, "kill", "-STOP", str(child)], check=True)
            try:
                said, _ = asks.communicate(timeout=30)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                asks.wait()
        assert asks.returncode == 0 and str(root) in said and not is_running(child)
        subprocess.run([*BECOME, host.shunt.path, "stop", "--root", root], env=settings, check=True)
