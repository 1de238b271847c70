# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A Slurm of its own on this machine: `ctl` (slurmctld, munged, where jobs are submitted) and node1, node2 ..., each with a
PID, UTS, IPC, mount and cgroup namespace: a host's name, a boot id, a /dev/shm, and a tree of cgroups by which slurmd finds the
processes of a step. All share one network namespace, whose addresses say nothing of nodes, and all files.

Times are short: a node that is killed is down after 5 to 15 s (SlurmdTimeout), KillWait is 2 s. Needs root."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import uuid

NEEDED = ("slurmctld", "slurmd", "munged", "srun", "ip")

CONF = """ClusterName=shunt
SlurmctldHost=ctl(127.0.0.1)
SlurmUser=root
AuthInfo=socket={place}/munge.sock,cred_expire=6
StateSaveLocation={place}/state
SlurmctldPidFile={place}/slurmctld.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdSpoolDir={place}/%n.spool
SlurmdPidFile={place}/slurmd.%n.pid
SlurmdLogFile={place}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/{tracks}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,batch_sched_delay=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge=600
MailProg=/bin/true
PartitionName=all Nodes={nodes} Default=YES MaxTime=60 State=UP OverSubscribe=YES:8
PartitionName=twins Nodes={twins} MaxTime=60 State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=2000\n"
TWINS = ("twin1", "twin2")  # nodes of one host, `twin`, that runs only where a test boots it

# The first process of a member: makes its namespaces what they are to be, starts what it is for, and reaps.
FIRST = r"""
set -e
place=$1 name=$2 cgroup=$3 mount=$4 nodes=$5
export SLURM_CONF=$place/slurm.conf
hostname "$name"
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount --bind "$place/hosts" /etc/hosts
if [ "$name" = ctl ]; then
    ip link add a0 type veth peer name a1
    ip addr add 10.98.0.1/24 dev a0
    for link in lo a0 a1; do ip link set "$link" up; done
    munged --foreground --force --key-file="$place/munge.key" --seed-file="$place/munge.seed" --socket="$place/munge.sock" \
        --pid-file="$place/munge.pid" --log-file="$place/munged.log" &
    slurmctld -D -c &
else
    mount -t proc proc /proc
    mount --bind "$cgroup" "$mount"
    [ ! -e "$cgroup/cgroup.controllers" ] || mkdir -p "$mount/system.slice"
    mount --bind "$place/$name.boot" /proc/sys/kernel/random/boot_id
    for node in $nodes; do
        mkdir -p "$place/$node.spool"
        slurmd -D -N "$node" &
    done
fi
echo up >"$place/$name.up"
set +e
trap : CHLD
while :; do sleep 1000 & wait; done
"""


def cgroup_mount():
    """(where cgroups that Slurm can freeze are mounted, the version of Slurm's plugin)"""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for _, where, kind, options, *_ in mounts:
        if kind == "cgroup" and "freezer" in options.split(","):
            return where, "v1"
    for _, where, kind, *_ in mounts:
        if kind == "cgroup2":
            return where, "v2"
    return None, None


def what_is_missing():
    """Why there can be no Slurm here, or None."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "a Slurm of its own takes root"
    if absent:
        return f"a Slurm of its own takes {', '.join(absent)}"
    return None if cgroup_mount()[0] else "a Slurm of its own takes cgroups, which are not mounted"


def wait_for(condition, seconds=90, what="it"):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not happen in time"
        time.sleep(0.1)
    return found


class Cluster:
    def __init__(self, place, nodes=4, tracks="cgroup"):
        self.place, self.members = pathlib.Path(place), {}
        self.nodes = [f"node{i}" for i in range(1, nodes + 1)]
        where, version = cgroup_mount()
        self.mount = where
        self.group = pathlib.Path(where) / f"shunt-slurm-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.group.mkdir()
        self.configure(tracks, version)

    def configure(self, tracks, version):
        for name in ("state", "home"):
            (self.place / name).mkdir()
        key = self.place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        lines = "".join(NODE.format(name=name, host="twin" if name in TWINS else name, port=17100 + i)
                        for i, name in enumerate([*self.nodes, *TWINS]))
        conf = CONF.format(place=self.place, tracks=tracks, nodes=",".join(self.nodes), twins=",".join(TWINS))
        (self.place / "slurm.conf").write_text(conf + lines)
        (self.place / "cgroup.conf").write_text(
            f"CgroupPlugin=cgroup/{version}\nCgroupMountpoint={self.mount.removesuffix('/freezer')}\nCgroupAutomount=no\n"
            "IgnoreSystemd=yes\nConstrainCores=no\nConstrainRAMSpace=no\n")
        (self.place / "hosts").write_text("127.0.0.1 localhost ctl twin " + " ".join(self.nodes) + "\n")

    def start(self):
        self.boot("ctl")
        wait_for(lambda: "UP" in self.run("scontrol", "ping").stdout, what="slurmctld")
        for name in self.nodes:
            self.boot(name)
        self.wait_until_idle("all", len(self.nodes))

    def wait_until_idle(self, partition, count):
        wait_for(lambda: self.run("sinfo", "-h", "-N", "-p", partition, "-o", "%T").stdout.split() == ["idle"] * count, what="all idle")

    def boot_twins(self):
        self.boot("twin", TWINS)
        self.wait_until_idle("twins", len(TWINS))

    def boot(self, name, nodes=()):
        group = self.group / name
        group.mkdir(exist_ok=True)
        (self.place / f"{name}.boot").write_text(f"{uuid.uuid4()}\n")
        (self.place / f"{name}.up").unlink(missing_ok=True)
        net = ["unshare", "--net"] if name == "ctl" else ["nsenter", "--net=" + self.namespace("ctl", "net")]
        script = f'echo $$ >{group}/cgroup.procs && exec {" ".join(net)} unshare --uts --ipc --mount --pid --cgroup --fork ' \
                 f'--kill-child --propagation slave bash -c "$0" first {self.place} {name} {group} {self.mount} "{" ".join(nodes or [name])}"'
        with open(self.place / f"{name}.out", "w", encoding="utf-8") as out:
            outer = subprocess.Popen(["bash", "-c", script, FIRST], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                     start_new_session=True)
        self.members[name] = outer
        wait_for(lambda: (self.place / f"{name}.up").exists() or outer.poll() is not None, what=name)
        assert outer.poll() is None, (self.place / f"{name}.out").read_text()

    def namespace(self, name, kind):
        return f"/proc/{self.first(name)}/ns/{kind}"

    def first(self, name):
        """The first process of a member, as this machine counts."""
        outer = self.members[name].pid
        return int(pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def words(self, *words):
        first = self.first("ctl")
        return ["nsenter", f"--target={first}", "--net", "--uts", "--ipc", "--mount", f"--wd={self.place}", "--", "env",
                f"SLURM_CONF={self.place}/slurm.conf", *map(str, words)]

    def run(self, *words, **settings):
        """A command on ctl."""
        environment = {**os.environ, **settings}
        return subprocess.run(self.words(*words), env=environment, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)

    def at(self, name, *words):
        """A command on a node, outside of every job."""
        first = self.first(name)
        return subprocess.run(["nsenter", f"--target={first}", "--net", "--uts", "--ipc", "--mount", "--pid", "--", *words],
                              cwd=self.place, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)

    def submit(self, script, *options):
        """A job; its number. What it says is in said(number)."""
        path = self.place / f"job.{uuid.uuid4().hex[:8]}"
        path.write_text(f"#!/bin/bash\n{script}\n")
        done = self.run("sbatch", "--parsable", f"--output={self.place}/out.%j", "--open-mode=append", *options, path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def said(self, job):
        path = self.place / f"out.{job}"
        return path.read_text() if path.exists() else ""

    def state(self, job):
        lines = self.run("scontrol", "-o", "show", "job", job).stdout
        return dict(word.split("=", 1) for word in lines.split() if "=" in word).get("JobState")

    def ended(self, job, state="COMPLETED"):
        """Waits for its end: what it said."""
        going_on = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")
        assert wait_for(lambda: (now := self.state(job)) not in going_on and now, what=f"the end of job {job}") == state, \
            self.said(job)
        return self.said(job)

    def kill(self, name):
        """The node vanishes, with all of its processes."""
        os.kill(self.first(name), signal.SIGKILL)
        self.members.pop(name).wait()
        self.end_group(self.group / name)

    def processes(self, name, word):
        """The command lines of a node's processes that have this word in them."""
        return [line for line in self.at(name, "ps", "-eo", "args").stdout.splitlines() if word in line and "ps -eo" not in line]

    @staticmethod
    def end_group(group):
        """What is left in it ends; a frozen process does not."""
        def is_gone():
            for state in group.rglob("freezer.state"):
                state.write_text("THAWED")
            for procs in group.rglob("cgroup.procs"):
                for pid in map(int, procs.read_text().split()):
                    if pid > 1:
                        os.kill(pid, signal.SIGKILL)
            for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                inner.rmdir()
            group.rmdir()
            return True

        def tried():
            try:
                return not group.exists() or is_gone()
            except OSError:
                return False
        wait_for(tried, what=f"the end of {group}")

    def stop(self):
        for name in [name for name in self.members if name != "ctl"] + ["ctl"]:
            if name in self.members:
                try:
                    os.kill(self.first(name), signal.SIGKILL)
                except (OSError, IndexError):
                    pass
                self.members.pop(name).wait()
        self.end_group(self.group)
