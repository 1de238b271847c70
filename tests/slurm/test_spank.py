# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""srun --shunt=DIR and #SBATCH --shunt=DIR by Slurm's plugin (tools/spank), and the examples of a prolog and an epilog."""

import os
import pathlib
import re

import pytest
from conftest import BUILD, NOBODY, skip
from slurm_cluster import wait_for

PLUGIN = "tools/spank/spank_shunt.so"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"
# Twenty files of each task; all is in the branches.
WORKS = "for i in $(seq 20); do : >$0/out/$SLURM_STEP_ID.$SLURM_PROCID.$i; done; echo node $SHUNT_NODE;"


@pytest.fixture(scope="module")
def spank(cluster, for_all):
    """The cluster, with the plugin, which commands and slurmd look for each time."""
    if not (BUILD / PLUGIN).exists():
        skip("the plugin is not built: no slurm/spank.h")
    (cluster.place / "plugstack.conf").write_text(f"optional {for_all.parent}/{PLUGIN} bin={for_all}\n")
    yield cluster
    (cluster.place / "plugstack.conf").unlink()


def srun(cluster, root, script, *options, before=(), **settings):
    return cluster.run(*before, "srun", f"--shunt={root}", *options, "bash", "-c", script, root, SHUNT_PLACEMENT="branch", **settings)


def is_plain(cluster, root, count):
    """It is exported, and nobody serves it."""
    assert os.listdir(root) == ["out"] and len(os.listdir(root / "out")) == count
    for node in set(cluster.nodes) & set(cluster.members):
        assert cluster.processes(node, str(root)) == []
    return True


def test_a_step(spank, root):
    """Its nodes share the root; its status is its program's; its files are in their places when srun has ended."""
    mark = root.parent / "works"
    script = WORKS + f": >{mark}.$SLURM_PROCID; until [ -e {mark}.0 -a -e {mark}.1 -a -e {mark}.2 -a -e {mark}.3 ]; do sleep 0.05; " \
                     "done; ls $0/out | wc -l; exit 3"
    done = srun(spank, root, script, "-N2", "-n4", "--ntasks-per-node=2")
    assert done.returncode == 3, done.stderr
    nodes = re.findall(r"^node (node[12])\.\d+\.0$", done.stdout, re.M)
    assert sorted(nodes) == ["node1", "node1", "node2", "node2"] and done.stdout.split().count("80") == 4, done.stdout
    assert is_plain(spank, root, 80)


def test_a_step_that_keeps(spank, root, shunt):
    done = srun(spank, root, WORKS, "--shunt-keep")
    assert done.returncode == 0 and len(list((root / ".shunt" / "b").rglob("0.0.*"))) == 20, done.stderr
    assert spank.run(shunt, "export", root).returncode == 0 and is_plain(spank, root, 20)


def test_files_leave_while_a_step_runs(spank, root, shunt):
    """Each node's leave in the background; its program waits for that, and the rest leaves at the end."""
    script = WORKS + f"until [ $({shunt} where $0/out/0.$SLURM_PROCID.20) = $0/out/0.$SLURM_PROCID.20 ]; do sleep 0.05; done; : >$0/out/$SLURM_PROCID"
    done = srun(spank, root, script, "-N2", "--shunt-export=background,1")
    assert done.returncode == 0, done.stderr
    assert is_plain(spank, root, 42)


def submitted_exports(cluster):
    """The numbers of those jobs, and what they have for output."""
    jobs = [line for line in cluster.run("scontrol", "-o", "show", "job").stdout.splitlines() if "JobName=shunt-export " in line]
    jobs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in jobs]
    return {job["JobId"]: pathlib.Path(job["StdOut"]) for job in jobs}


def assert_exported_by_a_job(cluster, root, earlier):
    wait_for(lambda: not (root / ".shunt").exists(), what="the export")
    jobs = submitted_exports(cluster)
    number, = set(jobs) - set(earlier)
    cluster.ended(number)
    assert jobs[number].read_text() == f"exported 40 files in 1 directory: {root} is a plain directory\n"
    assert jobs[number].parent == cluster.place, "not where the job was submitted"
    jobs[number].unlink()
    assert is_plain(cluster, root, 40)


def test_the_export_of_a_step_is_submitted(spank, root):
    earlier = submitted_exports(spank)
    done = srun(spank, root, WORKS, "-N2", "--shunt-export=later,submit")
    assert done.returncode == 0, done.stderr
    assert_exported_by_a_job(spank, root, earlier)


def test_the_export_of_a_script_that_is_ended_is_submitted(spank, root):
    """As at its time limit. It is a job that is not under shunt itself."""
    earlier, mark = submitted_exports(spank), root.parent / "waits"
    job = spank.submit(f"#SBATCH --shunt={root}\n#SBATCH --shunt-export=later,submit\nsrun -N2 bash -c '{WORKS}' {root}\n"
                       f": >{mark}; exec sleep 1000", "-N2", "--export=ALL,SHUNT_PLACEMENT=branch")
    wait_for(mark.exists, what="the script")
    spank.run("scancel", "--batch", "--signal=TERM", job)
    spank.ended(job, "FAILED")
    assert_exported_by_a_job(spank, root, earlier)


def test_a_step_that_is_exported_later(spank, root, shunt):
    done = srun(spank, root, WORKS, "--shunt-export=later")
    assert done.returncode == 0 and done.stderr.count(f"(run 'shunt export {root}' on one node") == 1, done.stderr
    assert spank.run(shunt, "export", root).returncode == 0 and is_plain(spank, root, 20)


@pytest.mark.parametrize("when", ["soon", "background,86401"])
def test_an_export_that_cannot_be_asked_for(spank, root, when):
    done = srun(spank, root, "echo has run", f"--shunt-export={when}")
    assert done.returncode == 255 and f"--shunt-export '{when}': not now, background" in done.stderr and "has run" not in done.stdout, done.stderr


def test_a_step_without_the_option(spank):
    done = spank.run("srun", "-N2", "env")
    assert done.returncode == 0 and done.stderr == "" and not re.search("SHUNT_(ROOT|NODE|SERVED)|LD_PRELOAD", done.stdout), done.stdout


def test_a_user(spank, root, become):
    """All of it is the user's: the daemons, and what they make."""
    done = srun(spank, root, WORKS + "ps -eo uid,args | grep '[s]huntd.*'$0; id -u", "-D/", before=become)
    assert done.returncode == 0, done.stderr
    users = re.findall(rf"^ *(\d+) .*shuntd.*{root}", done.stdout, re.M)
    assert set(users) == {str(NOBODY)} and done.stdout.splitlines()[-1] == str(NOBODY), done.stdout
    assert is_plain(spank, root, 20)
    assert {path.stat().st_uid for path in (root / "out").iterdir()} == {NOBODY}


@pytest.mark.parametrize("wrong, status, said", [
    ("run1", 255, "--shunt 'run1': not an absolute path"),
    ("/nowhere/run1", 97, "/nowhere/run1: does not exist")])
def test_what_cannot_be_served_is_not_run(spank, wrong, status, said):
    done = srun(spank, wrong, "echo has run", "-n2")
    assert done.returncode == status and said in done.stderr and "has run" not in done.stdout, done.stderr


def test_where_a_site_has_turned_it_off(spank, root):
    """Programs run natively, and each node says so, once; what only shunt shows is not run past."""
    conf = spank.place / "shunt.conf"
    conf.write_text("enabled = no\nmessage = ticket 4711\n")
    done = srun(spank, root, "echo node ${SHUNT_NODE-none}; ls -a $0", "-N2", "-n4", SHUNT_CONF=conf)
    assert done.returncode == 0 and done.stdout.count("node none") == 4 and ".shunt" not in done.stdout, done.stderr
    assert done.stderr.count("off on this host: ticket 4711, so programs run without it") == 2, done.stderr
    (root / ".shunt").mkdir()
    done = srun(spank, root, "echo has run", "-n2", SHUNT_CONF=conf)
    assert done.returncode == 97 and "only shunt shows" in done.stderr and "has run" not in done.stdout, done.stderr


def test_a_signal_for_the_programs(spank, root):
    """It ends none of the daemons."""
    mark = root.parent / "signalled"
    job = spank.submit(f"srun -N2 --shunt={root} bash -c 'trap \": >{mark}.$SLURM_PROCID\" USR1; : >{mark}.ready.$SLURM_PROCID; "
                       f"until [ -e {mark}.$SLURM_PROCID ]; do sleep 0.05; done; {WORKS}' {root}", "-N2")
    wait_for(lambda: len(list(mark.parent.glob("signalled.ready.*"))) == 2, what="the step")
    spank.run("scancel", "--signal=USR1", f"{job}.0")
    assert spank.ended(job).count("node ") == 2 and is_plain(spank, root, 40)


def test_two_steps_at_once(spank, root):
    """On the same nodes: each has daemons of its own, which are nodes to each other, and the last one to end exports."""
    marks = root.parent / "at-once"
    step = f"srun --overlap -N2 --shunt={root} bash -c 'until [ -e {marks}.2 ]; do : >{marks}.$SLURM_STEP_ID.$SLURM_PROCID; " \
           f"[ $(ls {marks}.?.? | wc -l) -lt 4 ] || : >{marks}.2; sleep 0.05; done; {WORKS} [ $SLURM_STEP_ID = 0 ] || exit 4' {root}"
    said = spank.ended(spank.submit(f"{step} & first=$!; {step}; second=$?; wait $first; echo ends $((second + $?))", "-N2"))
    assert len(set(re.findall(r"^node (.*)", said, re.M))) == 4 and "ends 4" in said, said
    assert is_plain(spank, root, 80)


def test_a_batch_script(spank, root):
    """It is under shunt, and so are its steps, one after the other and at once; its end exports. A step with other roots has all."""
    others = [root.parent / "other-1", root.parent / "other-2"]
    for other in others:
        other.mkdir()
    script = f"""#SBATCH --shunt={root}
echo script $SHUNT_NODE
srun -N2 -n2 bash -c '{WORKS}' {root}
srun -N1 -n1 --overlap bash -c '{WORKS}' {root} & srun -N2 -n2 --overlap bash -c '{WORKS}' {root}; wait
: >{root}/out/script
srun -N1 -n1 -w node2 --overlap --shunt={others[0]}:{others[1]} bash -c '
  ls {root}/out | wc -l; : >{root}/out/step; : >{others[0]}/step; : >{others[1]}/step'
ls {root}/out | wc -l
exit 5"""
    job = spank.submit(script, "-w", "node1,node2")
    said = spank.ended(job, "FAILED")
    assert f".{job}.batch" in said and said.count("node ") == 5 and "\n101\n" in said and "\n102\n" in said, said
    assert "ExitCode=5:0" in spank.run("scontrol", "show", "job", job).stdout
    assert is_plain(spank, root, 102) and [os.listdir(other) for other in others] == [["step"], ["step"]]


def test_steps_of_salloc(spank, root):
    """The shell is on the log-in node, and not under shunt: its steps are, one after the other."""
    step = f"srun -n2 bash -c '{WORKS} ls $0/out | wc -l' {root}"
    shell = f"echo shell ${{SHUNT_NODE-none}}; {step} && {step}; ls {root}/out | wc -l; exit 6"
    done = spank.run("salloc", f"--shunt={root}", "-N2", "bash", "-c", shell, SHUNT_PLACEMENT="branch")
    assert done.returncode == 6 and "shell none" in done.stdout and done.stdout.splitlines()[-1] == "80", done.stdout + done.stderr
    assert len(set(re.findall(r"^node (.*)", done.stdout, re.M))) == 4, done.stdout
    assert is_plain(spank, root, 80)


def test_mpirun_in_a_batch_script(spank, root):
    """It brings its own daemon to other nodes by a step, whose programs are under shunt, as are those that it starts itself."""
    script = spank.place / "mpi.sh"
    script.write_text(f"#!/bin/bash\nfor i in $(seq 20); do : >{root}/out/$OMPI_COMM_WORLD_RANK.$i; done; echo node $SHUNT_NODE\n")
    script.chmod(0o755)
    said = spank.ended(spank.submit(f"#SBATCH --shunt={root}\nmpirun --allow-run-as-root -n 2 --map-by ppr:1:node {script}; exit $?",
                                    "-w", "node1,node2", "-N2", "--export=ALL,SHUNT_PLACEMENT=branch"))
    nodes = sorted(re.findall(r"^node (.*)", said, re.M))
    assert [name.split(".")[0] for name in nodes] == ["node1", "node2"] and nodes[0].endswith(".batch"), said
    assert is_plain(spank, root, 40)


def test_a_step_of_a_script_has_its_roots_whatever_it_exports(spank, root):
    """Also one that has a root of its own, in a job that hands no variables on."""
    other = root.parent / "other-none"
    other.mkdir()
    step = f"for node in node1 node2; do srun -N1 -n1 -w $node --export=NONE --shunt={other} /bin/bash -c '" \
           f"/bin/ls {root}/out; : >{root}/out/$SLURMD_NODENAME; : >{other}/$SLURMD_NODENAME'; done; ls {root}/out"
    said = spank.ended(spank.submit(f"#SBATCH --shunt={root}\n: >{root}/out/script\n{step}", "-N2", "-n2", "-w", "node1,node2",
                                    "--export=ALL,SHUNT_PLACEMENT=branch"))
    assert said.split() == ["script", "node1", "script", "node1", "node2", "script"], said
    assert is_plain(spank, root, 3) and sorted(os.listdir(other)) == ["node1", "node2"]


def test_a_launch_in_a_batch_script(spank, root, for_all):
    """Of another root: its ranks have both, and it exports its own, while the script goes on with the other one."""
    other = root.parent / "launched"
    (other / "out").mkdir(parents=True)
    line = f"{for_all}/shunt-launch --root {other} --placement branch srun -n2 bash -c '{WORKS} ls {root}/out' {other}"
    said = spank.ended(spank.submit(f"#SBATCH --shunt={root}\n: >{root}/out/script\n{line}; echo ends $?; ls -a {other}", "-N2", "-n2", "-w",
                                    "node1,node2", "--export=ALL,SHUNT_PLACEMENT=branch"))
    assert said.split().count("script") == 2 and "ends 0" in said and ".shunt" not in said.split(), said
    assert is_plain(spank, root, 1) and is_plain(spank, other, 40)


def test_a_step_that_exports_nothing(spank, root):
    """It has what shunt gives, though no variable of the user's, whose PATH is none of shunt's."""
    script = "PATH=/usr/bin:/bin; " + WORKS + "echo mine ${MINE-none}"
    done = spank.run("srun", f"--shunt={root}", "--export=NONE", "-N2", "/bin/bash", "-c", script, root, MINE="set")
    assert done.returncode == 0 and done.stdout.count("mine none") == 2, done.stdout + done.stderr
    assert len(re.findall("^node node", done.stdout, re.M)) == 2 and is_plain(spank, root, 40), done.stdout


def test_a_heterogeneous_script(spank, root):
    """Each of its groups has daemons, which are those of one session."""
    step = f"bash -c '{WORKS}' {root}; ls {root}/out | wc -l"
    said = spank.ended(spank.submit(f"#SBATCH --shunt={root}\nsrun --het-group=0,1 {step}\nsrun --het-group=1 {step}", "-N1", "-w", "node1",
                                    "--export=ALL,SHUNT_PLACEMENT=branch", ":", "-N1", "-w", "node2"))
    assert re.findall(r"^\d+$", said, re.M) == ["40", "60"], said
    assert sorted(name.split(".")[0] for name in re.findall(r"^node (.*)", said, re.M)) == ["node1", "node2", "node2"], said
    assert is_plain(spank, root, 60)


def test_a_heterogeneous_step(spank, root):
    """The option of one of its programs holds for all of them."""
    done = spank.run("srun", f"--shunt={root}", "-N1", "-w", "node1", "bash", "-c", WORKS, root, ":", "-N1", "-w", "node2", "bash", "-c",
                     WORKS, root, SHUNT_PLACEMENT="branch")
    nodes = sorted(name.split(".")[0] for name in re.findall(r"^node (.*)", done.stdout, re.M))
    assert done.returncode == 0 and nodes == ["node1", "node2"], done.stdout + done.stderr
    assert is_plain(spank, root, 40)


def test_a_script_that_is_cancelled(spank, root):
    """It exports nothing, and the next one goes on at once, with one line that says so."""
    mark = root.parent / "cancelled"
    job = spank.submit(f"#SBATCH --shunt={root}\nsrun -N2 bash -c '{WORKS} : >{mark}.$SLURM_PROCID; exec sleep 1000' {root}", "-N2",
                       "--export=ALL,SHUNT_PLACEMENT=branch")
    wait_for(lambda: len(list(mark.parent.glob("cancelled.*"))) == 2, what="the step")
    spank.run("scancel", job)
    spank.ended(job, "CANCELLED")
    assert (root / ".shunt").is_dir()
    done = srun(spank, root, "ls $0/out | wc -l", "-w", "node3")
    assert done.returncode == 0 and done.stdout == "40\n", done.stderr
    assert is_plain(spank, root, 40)


@pytest.fixture
def scripts(spank):
    """The examples, of this build, and with a log of their own."""
    conf, log = spank.place / "slurm.conf", spank.place / "scripts.log"
    before = conf.read_text()
    (spank.place / "logger").write_text(f"#!/bin/sh\necho \"$2 begins\" >>{log}\nexec cat >>{log}\n")
    (spank.place / "logger").chmod(0o755)
    for name in ("prolog", "epilog"):
        text = (EXAMPLES / f"{name}.sh").read_text()
        (spank.place / f"{name}.sh").write_text(text.replace("/usr/bin/shunt", f"{BUILD}/tools/shunt")
                                                .replace("logger", f"{spank.place}/logger"))
        (spank.place / f"{name}.sh").chmod(0o755)
    conf.write_text(f"{before}Prolog={spank.place}/prolog.sh\nEpilog={spank.place}/epilog.sh\n")
    assert spank.run("scontrol", "reconfigure").returncode == 0
    yield log
    conf.write_text(before)
    assert spank.run("scontrol", "reconfigure").returncode == 0


def test_prolog_and_epilog(spank, scripts, root):
    """Daemons that are killed leave files in /dev/shm: the epilog removes them. A job without --shunt is not looked at."""
    earlier = set(spank.at("node1", "find", "/dev/shm", "-type", "f").stdout.split())
    done = srun(spank, root, "pkill -KILL shuntd; find /dev/shm -type f", "-w", "node1")
    assert set(done.stdout.split()) - earlier, done.stderr
    wait_for(lambda: "shunt-epilog begins" in scripts.read_text(), what="the epilog")
    assert "shunt-prolog begins" in scripts.read_text()
    wait_for(lambda: set(spank.at("node1", "find", "/dev/shm", "-type", "f").stdout.split()) <= earlier, what="the end of the epilog")
    scripts.write_text("")
    assert spank.run("srun", "-w", "node1", "true").returncode == 0
    wait_for(lambda: "shunt-epilog begins" in scripts.read_text(), what="the epilog")
    assert "prolog" not in scripts.read_text()
    assert spank.run("sinfo", "-h", "-n", "node1", "-o", "%T").stdout.strip() in ("idle", "completing")
