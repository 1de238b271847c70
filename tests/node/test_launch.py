# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""shunt-launch: Open MPI and MPICH as they are; srun, ssh, scontrol and flux as scripts that note how they were called
and run everything on this host, each node under a name of its own."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time

import manual
import pytest
from conftest import REPOSITORY, assert_plain, environment, redirected_files, run
from union_on_disk import Union, scontrol

HERE = socket.gethostname()
ALLOCATIONS = ("SLURM_", "PBS_", "LSB_", "PE_HOSTFILE", "COBALT_", "FLUX_", "OMPI_", "PMI_", "PMIX_")

# What becomes a node's process: on the stand-ins' hosts SHUNT_NODE is the host's name.
SSH = """
while case $1 in -x|-q) true ;; -o) shift ;; *) false ;; esac; do shift; done
host=$1
shift
[ "$host" != unreachable ] || exit 255
own=$(dirname "$0")/$host.tmp # hosts do not share /tmp
mkdir -p "$own"
exec env SHUNT_NODE="$host" TMPDIR="$own" sh -c "$*"
"""

SRUN = """
hosts= clean=
while case $1 in -*) true ;; *) false ;; esac; do
    case $1 in
    --nodelist=*) hosts=$(echo "${1#*=}" | tr , ' ') ;;
    --export=*) exports=${1#*=} ;;
    -n) shift ;;
    esac
    shift
done
for setting in $(echo "$exports" | tr , ' '); do
    case $setting in *=*) export "$setting" ;; esac
done
[ -z "$SCRUB" ] || [ -n "$hosts" ] || unset LD_PRELOAD
[ -n "$hosts" ] || { export SLURM_PROCID=5 ${JOB_SETTING-}; exec "$@"; }
exec 3<&0
for host in $hosts; do
    SHUNT_NODE=$host "$@" <&3 &
done
wait
"""


class Launch:
    """The command with a directory of stand-ins in front of PATH."""

    def __init__(self, build, area):
        self.path = build / "tools" / "shunt-launch"
        self.bin = area / "bin"
        self.log = area / "called"
        self.bin.mkdir()
        self.settings = {"PATH": f"{self.bin}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": 1,
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1, "OMPI_MCA_rmaps_base_oversubscribe": 1}

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"{name} $*\" >>{shlex.quote(str(self.log))}\n{script}")
        path.chmod(0o755)
        return path

    def called(self, name):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(name + " ")]

    def __call__(self, root, *words, **settings):
        return run([self.path, "--root", root, *words], **{**self.settings, **settings})

    def start(self, root, *words, **settings):
        return subprocess.Popen([str(word) for word in (self.path, "--root", root, *words)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env=environment(**{**self.settings, **settings}))


@pytest.fixture
def launch(build, area, monkeypatch):
    for name in list(os.environ):
        if name.startswith(ALLOCATIONS):
            monkeypatch.delenv(name)
    return Launch(build, area)


def plan(launch, root, *words, **settings):
    """What --dry-run prints: the nodes, the other lines."""
    lines = launch(root, "--dry-run", *words, **settings).check().splitlines()
    assert lines[0].startswith("# ")
    return lines[0].rsplit(":", 1)[1].split(), lines[1:]


def assert_no_session(shunt, root):
    status = json.loads(shunt("status", "--json", "--root", root).out)[0]
    assert status["state"] == "none", status


def wait_for(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.02)


def wait_for_file(root):
    deadline = time.monotonic() + 30
    while not redirected_files(root):
        assert time.monotonic() < deadline, "no file is made"
        time.sleep(0.02)


def rank_script(variable):
    return f'echo "$SHUNT_NODE" >"$0/rank.${variable}"'


MPI = pytest.mark.parametrize("launcher, variable", [("mpirun.openmpi", "OMPI_COMM_WORLD_RANK"),
                                                     ("mpiexec.hydra", "PMI_RANK")])


# Ranks


@MPI
def test_ranks_run_under_shunt(launch, root, launcher, variable):
    launch(root, "--placement", "branch", "--keep", launcher, "-n", 3, "sh", "-c", rank_script(variable), root).check()
    assert sorted(os.path.basename(path) for path in redirected_files(root)) == ["rank.0", "rank.1", "rank.2"]


@MPI
def test_exports_at_the_end(shunt, launch, root, launcher, variable):
    launch(root, "--placement", "branch", launcher, "-n", 2, "sh", "-c", rank_script(variable), root).check()
    assert_plain(root)
    assert sorted(os.listdir(root)) == ["rank.0", "rank.1"]
    assert_no_session(shunt, root)


# What Slurm does with a job that waits for another: later, elsewhere, with the environment that it was submitted with.
SBATCH = """
for word in "$@"; do
    case $word in --wrap=*) export -p >"$SUBMITTED.env"; printf '%s\\n' "${word#--wrap=}" >"$SUBMITTED" ;; esac
done
exit ${SBATCH_STATUS-0}
"""


@pytest.fixture(params=["shunt run", "shunt-launch"])
def leaving(request, build, launch, area):
    """leaving(root, WHEN, ...): a run that leaves that way."""
    launch.stand_in("sbatch", SBATCH)
    launch.submitted = area / "submitted"
    words = [build / "tools" / "shunt", "run"] if request.param == "shunt run" else [launch.path, "--fake-nodes", 1]

    def leave(root, when, script='echo 1 >"$0/a"; echo 2 >"$0/b"', **settings):
        return run([*words, "--root", root, "--placement", "branch", *when, "--", "sh", "-c", script, root],
                   **{**launch.settings, "SUBMITTED": launch.submitted, **settings})

    return leave


@pytest.mark.parametrize("when", [["--export", "now"], ["--export=later"], ["--export=never"], ["--keep"], ["--export", "later,submit"]])
def test_when_it_is_exported(shunt, launch, root, leaving, when):
    result = leaving(root, when, SLURM_JOB_ID=77)
    result.check()
    if "now" in when:
        assert_plain(root)
        assert all(line.startswith("shunt-launch: 2 operations, 2 files redirected") for line in result.err.splitlines()), result.err
        return
    assert len(redirected_files(root)) == 2
    assert_no_session(shunt, root)
    assert (f"shunt export {root}" in result.err) == ("--export=later" in when), result.err
    assert launch.submitted.exists() == ("later,submit" in when)
    if "later,submit" in when:
        assert "--dependency=afterany:77" in launch.called("sbatch")[0] and "--nodes=1" in launch.called("sbatch")[0]
        run(["sh", "-c", f". {launch.submitted}.env; . {launch.submitted}"]).check()
        assert_plain(root)
        assert sorted(os.listdir(root)) == ["a", "b"]


def test_files_leave_in_the_background(build, root, leaving):
    """While the command runs, which waits for it and makes another one."""
    where = f'"{build}/tools/shunt" where "$0/a"'
    script = f'echo 1 >"$0/a"; until test "$({where})" = "$0/a"; do sleep 0.05; done; cat "$0/a"; echo 2 >"$0/b"; {where}'
    result = leaving(root, ["--export", "background,1"], script)
    assert result.check() == f"1\n{root}/a\n"
    assert_plain(root)
    assert sorted(os.listdir(root)) == ["a", "b"]


@pytest.mark.parametrize("when, status, words", [
    ("soon", 2, "--export 'soon': not now, background, background,SECONDS, later, later,submit or never"),
    ("background,0", 2, "--export 'background,0': not now"),
    ("backgrounds", 2, "--export 'backgrounds': not now"),
    ("later,submit", 2, "--export later,submit: not within a job of Slurm (use --export later)")])
def test_an_export_that_cannot_be_asked_for(root, leaving, when, status, words):
    result = leaving(root, ["--export", when])
    result.check(status)
    assert words in result.err and os.listdir(root) == []


def test_an_export_that_slurm_refuses(root, leaving):
    result = leaving(root, ["--export", "later,submit"], SLURM_JOB_ID=77, SBATCH_STATUS=1)
    result.check(1)
    assert f"its export could not be submitted (run 'shunt export {root}')" in result.err
    assert len(redirected_files(root)) == 2


def test_a_job_at_its_time_limit_has_its_export_submitted(launch, shunt, root, area):
    launch.stand_in("sbatch", SBATCH)
    job = launch.start(root, "--fake-nodes", 1, "--placement", "branch", "--export", "later,submit", "--", "sh", "-c",
                       'echo 1 >"$0/a"; exec sleep 1000', root, SLURM_JOB_ID=77, SUBMITTED=area / "submitted")
    wait_for_file(root)
    job.terminate()
    job.communicate()
    assert job.returncode == 128 + signal.SIGTERM and (area / "submitted").exists()
    assert_no_session(shunt, root)


@MPI
def test_several_programs_in_one_line(launch, root, launcher, variable):
    script = rank_script(variable)
    launch(root, "--placement", "branch", "--keep", launcher, "-n", 1, "sh", "-c", script, root, ":", "-n", 1, "sh", "-c",
           script, root).check()
    assert len(redirected_files(root)) == 2


def test_two_roots(shunt, launch, root, area):
    other = area / "other"
    other.mkdir()
    launch(root, "--root", other, "--placement", "branch", "--keep", "sh", "-c", 'echo 1 >"$0/a"; echo 2 >"$1/b"', root,
           other).check()
    assert len(redirected_files(root)) == len(redirected_files(other)) == 1
    assert_no_session(shunt, root)
    assert_no_session(shunt, other)


@MPI
def test_a_pretended_node(launch, root, launcher, variable):
    launch(root, "--fake-nodes", 1, launcher, "-n", 2, "sh", "-c", rank_script(variable), root).check()
    assert [(root / f"rank.{rank}").read_text() for rank in (0, 1)] == ["fake0\n", "fake0\n"]


def test_the_status_is_the_jobs(launch, root):
    assert launch(root, "sh", "-c", "exit 7").status == 7
    assert launch(root, "sh", "-c", "kill -9 $$").status == 128 + 9
    assert launch(root, "mpiexec.hydra", "-n", 1, "sh", "-c", "exit 5").status == 5
    assert launch(root, "nothing-of-this-name").status == 127
    assert_plain(root)


def test_the_session_of_a_suspended_job_is_taken_over_if_asked_for(launch, root):
    Union(root).hold(host="login7", job="slurm:c:7:0:2:n1", lease=1)
    scontrol(launch.bin, "SUSPENDED")
    refused = launch(root, "sh", "-c", "echo ran")
    refused.check(1)
    assert refused.out == "" and "Slurm job 7 is suspended (resume or cancel that job, or give --takeover" in refused.err
    done = launch(root, "--takeover", "sh", "-c", "echo ran", SHUNT_STALE=1)
    assert done.check() == "ran\n"
    assert done.err.count("taken over") == 1 and "taken over, since no heartbeat came for 1 s (it was held by" in done.err
    assert_plain(root)


@pytest.mark.unsanitized
@pytest.mark.parametrize("line", [["sh"], ["mpirun.openmpi", "-n", 1, "sh"], ["mpiexec.hydra", "-n", 1, "sh"]])
def test_the_users_own_preload_is_kept(launch, build, root, line):
    own = build / "tests" / "node" / "stand_in.so"
    out = launch(root, *line, "-c", "echo $LD_PRELOAD", LD_PRELOAD=own).check()
    assert out.split(":")[0] == str(own) and out.rstrip().endswith("/libshunt_preload.so")


@pytest.mark.unsanitized
def test_the_lines_own_preload_is_kept(launch, build, root):
    own = build / "tests" / "node" / "stand_in.so"
    out = launch(root, "mpirun.openmpi", "-x", f"LD_PRELOAD={own}", "-n", 1, "sh", "-c", "echo $LD_PRELOAD").check()
    assert out.split(":")[0] == str(own) and out.rstrip().endswith("/libshunt_preload.so")


def test_settings_come_to_ranks_and_daemons(launch, shunt, root, area):
    runs = area / "runs"
    runs.mkdir()
    out = launch(root, "mpirun.openmpi", "-n", 1, "sh", "-c", "echo $SHUNT_DEADLINE; ls $SHUNT_RUN_DIR", SHUNT_RUN_DIR=runs,
                 SHUNT_DEADLINE=17).check()
    assert out.split() == ["17", f"shunt-{os.getuid()}"]


# The proof


def srun_job(launch, root, *words, **settings):
    launch.stand_in("srun", SRUN)
    return launch(root, "srun", "-n", 1, *words, SLURM_JOB_ID=1, SLURM_JOB_NODELIST=HERE, **settings)


def test_srun(launch, root):
    srun_job(launch, root, "sh", "-c", 'echo $SHUNT_ROOT >"$0/x"', root).check()
    assert (root / "x").read_text() == f"{root}\n"
    assert len(launch.called("srun")) == 1, "this host needs none for its daemon"


def test_a_rank_without_the_shim_does_not_run(launch, root):
    result = srun_job(launch, root, "sh", "-c", 'echo 1 >"$0/x"', root, SCRUB=1)
    result.check(97)
    assert f"rank 5 on {HERE}: would run without shunt" in result.err
    assert os.listdir(root) == []


def test_a_rank_without_a_daemon_does_not_run(launch, root, area):
    result = srun_job(launch, root, "sh", "-c", 'echo 1 >"$0/x"', root, JOB_SETTING=f"SHUNT_RUN_DIR={area}")
    result.check(97)
    assert f"{root}: rank 5 on {HERE} cannot use it, the daemon of node {HERE.split('.')[0]} does not answer" in result.err
    assert os.listdir(root) == []


def test_a_rank_with_another_hosts_name_goes_to_its_own_hosts_daemon(launch, root):
    srun_job(launch, root, "sh", "-c", 'echo 1 >"$0/x"', root, JOB_SETTING="SHUNT_NODE=elsewhere").check()
    assert os.listdir(root) == ["x"]


# Nodes and the daemons there


def test_a_daemon_by_openmpis_means(launch, shunt, root):
    agent = launch.stand_in("agent", SSH)
    launch(root, "--keep", "--placement", "branch", "mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--host", "far", "-n", 2,
           "sh", "-c", rank_script("OMPI_COMM_WORLD_RANK"), root).check()
    assert {path.split("/b/")[1].split("/")[0] for path in redirected_files(root)} == {"far.1"}
    assert_no_session(shunt, root)


def test_what_reads_its_messages_may_have_ended(launch, shunt, root):
    script = 'until [ -e "$0/go" ]; do sleep 0.02; done; touch "$0/made"'
    started = launch.start(root, "--placement", "branch", "sh", "-c", script, root)
    started.stderr.close()
    (root / "go").touch()
    assert started.wait(30) == 0
    assert sorted(os.listdir(root)) == ["go", "made"]
    assert_no_session(shunt, root)


def test_no_agent_comes_to_this_host_by_openmpis_means(launch, shunt, root):
    """It may be called by an address: an mpirun whose input goes to a process of its own host would not end."""
    launch(root, "mpirun.openmpi", "--host", "127.0.0.1:2", "-n", 2, "sh", "-c", rank_script("OMPI_COMM_WORLD_RANK"), root).check()
    assert sorted(os.listdir(root)) == ["rank.0", "rank.1"]
    assert_no_session(shunt, root)


@pytest.mark.parametrize("words, variables", [(["-hosts", "far"], {}), ([], {"HYDRA_HOST_FILE": "hosts"})])
def test_a_daemon_by_hydras_means(launch, shunt, area, root, words, variables):
    agent = launch.stand_in("agent", SSH)
    (area / "hosts").write_text("far:4\n")
    launch(root, "--keep", "--placement", "branch", "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", agent, *words,
           "-n", 2, "sh", "-c", rank_script("PMI_RANK"), root, **{key: area / value for key, value in variables.items()}).check()
    assert {path.split("/b/")[1].split("/")[0] for path in redirected_files(root)} == {"far.1"}
    assert_no_session(shunt, root)


def test_a_daemon_by_srun(launch, shunt, root):
    launch.stand_in("srun", SRUN)
    launch(root, "--keep", "--placement", "branch", "srun", "-n", 1, "sh", "-c", 'echo 1 >"$0/x"', root, SLURM_JOB_ID=1,
           SLURM_JOB_NODELIST="far", JOB_SETTING="SHUNT_NODE=far").check()
    keeper, job = launch.called("srun")
    assert "--overlap" in keeper and "--nodelist=far" in keeper and "--ntasks-per-node=1" in keeper
    assert "--export=ALL,LD_PRELOAD=" in job
    assert len(redirected_files(root)) == 1
    assert_no_session(shunt, root)


def test_a_daemon_by_ssh(launch, shunt, root, area):
    launch.stand_in("ssh", SSH)
    (area / "hosts").write_text("# mine\nfar slots=4\n")
    result = launch(root, "--hosts", area / "hosts", "env", "SHUNT_NODE=far", "sh", "-c", "true")
    assert result.status == 97, "the command itself runs here, where no daemon is"
    assert len(launch.called("ssh")) == 1 and " far " in launch.called("ssh")[0]
    assert_no_session(shunt, root)


@pytest.fixture
def several(launch, build, area):
    """A launch with a daemon of its own making: it notes its start and its end, and fails on the node `bad`."""
    tree = area / "tree"
    for part in ("tools", "daemon", "lib/shim"):
        (tree / part).mkdir(parents=True)
    shutil.copy(launch.path, tree / "tools")
    shutil.copy(build / "lib" / "shim" / "libshunt_preload.so", tree / "lib" / "shim")
    daemon = tree / "daemon" / "shuntd"
    daemon.write_text(f"""#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" != --node ] || node=$2; shift; done
[ "$node" != bad ] || {{ echo "shuntd: this one does not" >&2; exit 1; }}
mkfifo "{area}/ready.$node"
setsid bash -c 'trap "echo stop '$node' >>{area}/notes; exit" TERM; echo start '$node' >>{area}/notes
                : >"{area}/ready.'$node'"; while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null &
: <"{area}/ready.$node"
""")
    daemon.chmod(0o755)
    launch.path = tree / "tools" / "shunt-launch"
    launch.notes = area / "notes"
    launch.stand_in("srun", SRUN)
    launch.stand_in("ssh", SSH)
    return launch


def notes(launch):
    lines = launch.notes.read_text().split("\n") if launch.notes.exists() else []
    return [sorted(line.split()[1] for line in lines if line.startswith(word)) for word in ("start", "stop")]


def test_each_node_has_a_daemon_by_one_srun(several, root):
    result = several(root, "--keep", "srun", "-n", 1, "true", SLURM_JOB_ID=1, SLURM_JOB_NODELIST="n[01-03]")
    assert result.status == 97, "that daemon serves nobody"
    assert "--nodelist=n01,n02,n03" in several.called("srun")[0] and len(several.called("srun")) == 2
    assert notes(several) == [["n01", "n02", "n03"]] * 2


def test_each_node_has_a_daemon_by_one_mpirun(several, root):
    agent = several.stand_in("agent", SSH)
    result = several(root, "--keep", "mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--host", "a,b,c", "-n", 1, "true")
    result.check(97)
    assert notes(several) == [["a", "b", "c"]] * 2


def test_each_node_has_a_daemon_by_a_hydra_each(several, root):
    agent = several.stand_in("agent", SSH)
    result = several(root, "--keep", "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", agent, "-hosts", "a,b,c", "-n", 1,
                     "true")
    result.check(97)
    assert notes(several) == [["a", "b", "c"]] * 2


def test_each_node_has_a_daemon_by_an_ssh_each_and_this_host_by_none(several, root, area):
    (area / "hosts").write_text(f"a\n{HERE}\nb\na\n")
    result = several(root, "--keep", "--hosts", area / "hosts", "true")
    result.check(97)
    assert len(several.called("ssh")) == 2
    assert notes(several) == [sorted(["a", "b", HERE.split(".")[0]])] * 2


def test_each_pretended_node_has_a_daemon(several, root):
    result = several(root, "--keep", "--fake-nodes", 3, "true")
    result.check(97)
    assert "node fake0 does not answer" in result.err
    assert notes(several) == [["fake0", "fake1", "fake2"]] * 2


def test_ranks_are_spread_over_pretended_nodes(several, root):
    result = several(root, "--keep", "--fake-nodes", 3, "srun", "-n", 1, "true")
    assert "rank 5" in result.err and "node fake2 does not answer" in result.err


@pytest.mark.parametrize("bad, sentence", [("bad", "node bad: no daemon"), ("unreachable", "node unreachable: not reached")])
def test_a_node_that_fails_ends_the_launch(several, root, area, bad, sentence):
    (area / "hosts").write_text(f"a\n{bad}\nb\n")
    result = several(root, "--hosts", area / "hosts", "touch", area / "ran")
    assert result.status == 1
    assert sentence in result.err
    assert not (area / "ran").exists()
    started, stopped = notes(several)
    assert started == stopped and not set(started) - {"a", "b"}


def test_a_node_that_fails_under_srun_stops_the_others(several, root, area):
    result = several(root, "srun", "touch", area / "ran", SLURM_JOB_ID=1, SLURM_JOB_NODELIST="a,bad,b")
    assert result.status == 1
    assert "shuntd: this one does not" in result.err and "node bad: no daemon" in result.err
    assert not (area / "ran").exists()
    assert notes(several)[0] == notes(several)[1]


def test_a_daemon_that_is_stopped_is_told(launch, shunt, root, area):
    job = launch.start(root, "sh", "-c", 'touch "$0"; while [ ! -e "$1" ]; do sleep 0.05; done', area / "runs", area / "end")
    wait_for(area / "runs")
    shunt("stop", "--root", root).check()
    assert "a daemon has ended" in job.stderr.readline()
    (area / "end").touch()
    job.communicate(timeout=60)
    shunt.run(root, ["true"]).check()


# Signals

LOOP = 'trap "echo $1 >$0/got; exit 9" $1; touch $0/runs; while :; do sleep 0.05; done'


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_a_signal_comes_to_the_job_and_all_is_in_order(launch, shunt, root, name):
    job = launch.start(root, "--placement", "branch", "sh", "-c", LOOP, root, name)
    wait_for(root / ".shunt" / "b")
    deadline = time.monotonic() + 30
    while len(redirected_files(root)) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    job.send_signal(getattr(signal, f"SIG{name}"))
    _, err = job.communicate(timeout=60)
    assert job.returncode == 9
    assert f"run 'shunt export {root}'" in err
    assert_no_session(shunt, root)
    shunt("export", root).check()
    assert_plain(root)
    assert (root / "got").read_text() == f"{name}\n"


def test_a_killed_job_is_128_and_the_signal(launch, shunt, root, area):
    job = launch.start(root, "sh", "-c", 'touch "$0"; while :; do sleep 0.05; done', area / "runs")
    wait_for(area / "runs")
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM
    assert_no_session(shunt, root)


def wait_for_no_session(shunt, root):
    deadline = time.monotonic() + 30
    while json.loads(shunt("status", "--json", "--root", root).out)[0]["state"] != "none":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_second_signal_ends_at_once(launch, shunt, root, area):
    job = launch.start(root, "sh", "-c", 'trap "touch $0.got" TERM; touch "$0"; while :; do sleep 0.05; done', area / "runs")
    wait_for(area / "runs")
    job.send_signal(signal.SIGTERM)
    wait_for(area / "runs.got")
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM
    wait_for_no_session(shunt, root)


def test_a_launch_that_is_killed_takes_job_and_daemons_with_it(launch, shunt, root, area):
    job = launch.start(root, "sh", "-c", 'trap "touch $0.got; exit" TERM; touch "$0"; while :; do sleep 0.05; done',
                       area / "runs")
    wait_for(area / "runs")
    job.kill()
    job.communicate(timeout=60)
    wait_for(area / "runs.got")
    wait_for_no_session(shunt, root)


# What is planned


def test_a_dry_run_prints_and_runs_nothing(launch, root, area):
    nodes, lines = plan(launch, root, "--placement", "branch", "mpirun.openmpi", "--host", "a,b:2", "-n", 2, "touch", area / "ran")
    assert nodes == ["a", "b"]
    assert lines[0].startswith("mpirun.openmpi -n 2 --map-by ppr:1:node --stdin all --host a,b env ")
    assert lines[0].endswith(f" --keep-node --root {root} --placement branch &")
    assert lines[1].startswith(f"SHUNT_ROOT={root} mpirun.openmpi ")
    assert f"/shunt-launch --rank -- touch {area}/ran" in lines[1]
    assert lines[2] == f"shunt export {root}"
    assert not (area / "ran").exists() and os.listdir(root) == []


def test_a_dry_run_calls_each_pretended_node_by_its_name(launch, root):
    nodes, lines = plan(launch, root, "--fake-nodes", 3, "mpirun.openmpi", "-n", 2, "true", SHUNT_NODE="mine")
    assert nodes == ["fake0", "fake1", "fake2"]
    assert [line.split()[-2] for line in lines[:3]] == nodes and "SHUNT_NODE" not in "".join(lines[:3])
    assert lines[3].startswith(f"SHUNT_ROOT={root} SHUNT_NODE=fake0 mpirun.openmpi ") and "mine" not in "".join(lines)


@pytest.mark.parametrize("name", ["a b", "it's", "line\nfeed", "$HOME", "*;é"])
def test_a_shell_reads_what_a_dry_run_prints(launch, area, name):
    root = area / name
    root.mkdir()
    words = shlex.split(launch(root, "--dry-run", "mpirun.openmpi", "ls", root).check(), comments=True)
    assert words[-3:] == ["shunt", "export", str(root)]
    assert f"SHUNT_ROOT={root}" in words and words[words.index("--keep-node") + 2] == words[-4] == str(root)


@pytest.mark.parametrize("line", ["mpirun.openmpi", "mpirun.mpich", "srun"])
def test_all_settings_are_handed_on(launch, root, line):
    """However many there are, and however long their names."""
    settings = {**{f"SHUNT_OF_A_SITE_{i}": f"v{i}" for i in range(100)}, f"SHUNT_{'LONG' * 30}": "yes"}
    words = plan(launch, root, line, "true", SLURM_JOB_ID=7, SLURM_JOB_NODELIST="a,b", **settings)[1][-2]
    missing = [name for name in settings if name not in re.findall(r"\w+", words)]
    assert not missing, (len(missing), words)


def test_a_word_after_an_unknown_option_is_its_own_unless_it_can_be_executed(launch, root, area):
    (area / "model").write_text("#!/bin/sh\n")
    (area / "model").chmod(0o755)
    (area / "results").mkdir()
    for words, path in ((["--new", area / "results", area / "model"], os.environ["PATH"]),
                        (["--new", area / "model"], os.environ["PATH"]),
                        (["--new", "model"], f":{os.environ['PATH']}"), (["--new", "model"], f"{os.environ['PATH']}:"),
                        (["--new", "results", "model"], f"{os.environ['PATH']}::")):
        line = run([launch.path, "--root", root, "--dry-run", "mpirun.openmpi", *words, "x"], cwd=area, **{**launch.settings, "PATH": path})
        assert line.check().splitlines()[-2].endswith(f" -- {words[-1]} x"), (words, path)


def test_a_launcher_after_a_command_that_runs_it(launch, root, area):
    (area / "nodes").write_text("p1\np2\n")
    for before in ("env A=1", "time -p", "numactl --interleave all", "nice env A=1"):
        lines = plan(launch, root, *before.split(), "mpirun.openmpi", "-n", 2, "true", PBS_NODEFILE=area / "nodes")[1]
        assert lines[0].startswith("mpirun.openmpi -n 2 --map-by ppr:1:node --stdin all --host p1,p2 ")
        assert f" {before} mpirun.openmpi -x 'LD_PRELOAD=" in lines[1] and "/shunt-launch --rank -- true" in lines[1], lines[1]
    launch(root, "--fake-nodes", 1, "env", "A=1", "mpirun.openmpi", "-n", 2, "sh", "-c", 'echo $A >"$0/$OMPI_COMM_WORLD_RANK"',
           root).check()
    assert [(root / name).read_text() for name in "01"] == ["1\n", "1\n"]
    assert launch(root, "--dry-run", "env", "A=1", "true", PBS_NODEFILE=area / "nodes").status == 0


def test_a_launcher_after_a_script_is_refused(launch, root, area):
    """It may run it, or do something else with these words."""
    (area / "nodes").write_text("p1\np2\n")
    launch.stand_in("with_modules", 'exec "$@"')
    for before in (["with_modules"], ["bash", "-e", "with_modules"]):
        result = launch(root, *before, "mpirun.openmpi", "-n", 2, "true", PBS_NODEFILE=area / "nodes")
        assert result.status == 1 and f"script '{before[0]}' stands before the launcher 'mpirun.openmpi'" in result.err, result
    assert launch(root, "--dry-run", "with_modules", "mpirun.openmpi", "true").status == 0, "there is one node"
    assert launch(root, "--dry-run", "with_modules", "true", PBS_NODEFILE=area / "nodes").status == 0


def test_nodes_of_the_allocation(launch, root, area):
    (area / "nodes").write_text("p1\np1\np2\n")
    assert plan(launch, root, "true", SLURM_JOB_NODELIST="a[09-11],c")[0] == ["a09", "a10", "a11", "c"]
    assert plan(launch, root, "true", PBS_NODEFILE=area / "nodes")[0] == ["p1", "p2"]
    assert plan(launch, root, "true", LSB_DJOB_HOSTFILE=area / "nodes")[0] == ["p1", "p2"]
    assert plan(launch, root, "true", LSB_HOSTS="l1 l1 l2")[0] == ["l1", "l2"]
    launch.stand_in("flux", "echo 'f[1-3]'")
    assert plan(launch, root, "true", FLUX_URI="local:///x")[0] == ["f1", "f2", "f3"]
    assert launch.called("flux") == ["flux getattr hostlist"]
    assert plan(launch, root, "true")[0] == [HERE]


def test_scontrol_knows_lists_that_we_do_not(launch, root):
    launch.stand_in("scontrol", "echo bgp0a1; echo bgp0a2")
    assert plan(launch, root, "true", SLURM_JOB_NODELIST="bgp[0a1x0a2]")[0] == ["bgp0a1", "bgp0a2"]
    assert launch.called("scontrol") == ["scontrol show hostnames bgp[0a1x0a2]"]


@pytest.mark.parametrize("words, settings, sentence", [
    (["srun", "true"], {}, "run shunt-launch in a job of sbatch or salloc"),
    (["mpirun.openmpi", "-n", "1"], {}, "no program is found"),
    (["srun", "--multi-prog", "f"], {}, "takes programs from a file"),
    (["--hosts", "/nowhere", "true"], {}, "cannot be read"),
    (["--hosts", "/", "true"], {}, "/: the file of nodes cannot be read: Is a directory"),
    (["--hosts", "/dev/null", "true"], {}, "/dev/null: names no node (write one a line)"),
    (["true"], {"SLURM_JOB_NODELIST": "a;b"}, "is not a list of nodes"),
    (["--fake-nodes", "0", "true"], {}, "not a number from 1"),
    (["--fake-nodes", "4097", "true"], {}, "not a number from 1"),
    (["--fake-nodes", "2", "--hosts", "file", "true"], {}, "--hosts and --fake-nodes exclude each other"),
    (["--placement", "x", "true"], {}, "--placement 'x': neither auto nor branch"),
    (["--leaf-full", "4294967296", "true"], {}, "from 1 to 4294967295"),
    ([], {}, "no command is given"),
])
def test_refused_with_a_sentence(launch, root, words, settings, sentence):
    result = launch(root, *words, **settings)
    assert result.status in (1, 2) and result.out == ""
    assert sentence in result.err and result.err.startswith("shunt-launch: ") and result.err.count("\n") == 1
    assert os.listdir(root) == []


def test_an_mpirun_of_others_is_refused(launch, root):
    launch.stand_in("mpirun", "echo something else")
    result = launch(root, "mpirun", "-n", 1, "true")
    assert result.status == 2 and "names neither Open MPI nor MPICH" in result.err


PAGE = REPOSITORY / "tools" / "launch" / "shunt-launch.1"


def test_every_option_is_in_the_man_page(launch, root):
    page = PAGE.read_text().replace("\\-", "-")
    options = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "".join(launch(root, "--help").check().splitlines(True)[4:]))
    assert {"-r", "--root", "--fake-nodes", "--dry-run"} <= set(options)
    for option in set(options) - {"-V", "--version"}:
        assert option in page, option


def test_the_synopsis_of_the_man_page_has_every_option(launch, root):
    (name, line), = manual.synopses(PAGE)
    options = manual.options_of(launch(root, "--help").check())
    assert name == "shunt-launch" and manual.names_all(line, [option for option in options if "--version" not in option])


def test_completion(launch):
    script = REPOSITORY / "tools" / "launch" / "shunt-launch.bash"
    ask = ('source "$1"; COMP_WORDS=("$2" "${@:3}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
           '_shunt_launch "$2"; printf "%s\\n" "${COMPREPLY[@]}"')

    def complete(*words):
        return run(["bash", "-c", ask, "-", script, launch.path, *words]).check().split()

    assert complete("--k") == ["--keep"]
    assert complete("--root", "/", "--placement", "b") == ["branch"]
    assert "mpirun.openmpi" in complete("--keep", "mpirun.ope")
    assert set(complete("--root", "/tmp", "sh", "--", "/etc/hostna")) == {"/etc/hostname"}


def test_the_help_has_every_word_of_export(launch, root):
    words = re.search(r"--export (\S+)", launch(root, "--help").check())[1]
    assert words == "now|background[,SECONDS]|later[,submit]|never"


def test_help_and_version(launch, root):
    assert "--fake-nodes N" in launch(root, "--help").check()
    assert launch(root, "--version").check().startswith("shunt-launch ")


@MPI
def test_ranks_of_several_pretended_nodes_see_one_directory(launch, shunt, root, launcher, variable):
    script = f'echo "$SHUNT_NODE" >"$0/rank.${variable}"; until [ "$(ls "$0" | wc -l)" -eq 6 ]; do sleep 0.02; done'
    launch(root, "--placement", "branch", "--keep", "--fake-nodes", 3, launcher, "-n", 6, "sh", "-c", script, root,
           SHUNT_FABRIC="tcp").check()
    branches = sorted((path.split("/b/")[1].split(".")[0], os.path.basename(path)) for path in redirected_files(root))
    assert branches == [(f"fake{rank % 3}", f"rank.{rank}") for rank in sorted(range(6), key=lambda rank: (rank % 3, rank))]
    assert_no_session(shunt, root)
    shunt("export", root).check()
    assert_plain(root)


# What it says at the end


@pytest.mark.parametrize("nodes", [[], ["--fake-nodes", 2]])
def test_the_last_line_says_what_was_done(launch, root, nodes):
    script = "mkdir $0/d; for i in 1 2 3 4; do echo $i >$0/d/$i; done; mv $0/d/1 $0/d/one; rm $0/d/2"
    settings = {"SHUNT_FABRIC": "tcp"} if nodes else {}
    result = launch(root, "--placement", "branch", *nodes, "sh", "-c", script, root, **settings)
    result.check()
    line = result.err.splitlines()[-1]
    assert re.fullmatch(r"shunt-launch: 7 operations, 4 files redirected, [\d.]+ s waited for other processes, 3 files exported in "
                        r"[\d.]+ s", line), result.err
    assert result.out == ""


def test_the_last_line_as_json(launch, root):
    words = ["--placement", "branch", "--json", "sh", "-c", "echo words >$0/file; echo of the job", root]
    result = launch(root, *words)
    assert result.check() == "of the job\n"
    said = json.loads(result.err.splitlines()[-1])
    seconds = said.pop("export_seconds"), said.pop("waited_seconds")
    requests = said.pop("export_requests")
    assert said == {"operations": 1, "redirected": 1, "exported": True, "exported_files": 1, "exported_by_owners": 0} and min(seconds) >= 0
    assert (requests is None) == (run(["stat", "-f", "-c", "%T", root]).check() != "nfs\n")
    said = json.loads(launch(root, "--keep", *words).err.splitlines()[-1])
    assert not said["exported"] and said["exported_files"] == 0
    section = PAGE.read_text().split("\n.SH LAST LINE\n")[1].split("\n.SH ")[0]
    assert set(said) == manual.italics(section)


def test_the_last_line_of_a_job_that_failed(launch, root):
    result = launch(root, "--keep", "sh", "-c", "exit 7")
    assert result.status == 7 and re.fullmatch(r"shunt-launch: 0 operations, 0 files redirected, [\d.]+ s waited for other "
                                               r"processes, nothing exported\n", result.err), result.err
