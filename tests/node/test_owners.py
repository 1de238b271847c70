# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The export at the end of shunt-launch, by the nodes that made the files (tools/leaving/owner.h). What happens when one of them, or the
launch, ends on the way: tests/hooked/test_owners.py."""

import json
import os
import subprocess
import threading

import pytest
from conftest import assert_plain, environment, run
from union_on_disk import Union

COUNT = 40
# Of each of two pretended nodes.
MAKE = """
for node in fake0 fake1; do
    "$1" exec --root "$0" --node $node -- sh -c 'for i in $(seq '$2'); do echo '$node' >"$0/'$node'.$i"; done' "$0/$3" || exit
done
"""


@pytest.fixture
def launched(build, root):
    """launched(COUNT, DIRECTORY): what the launch says that made so many files of each node there."""

    def launch(count=COUNT, directory="out", script=MAKE, options=()):
        (root / directory).mkdir(parents=True, exist_ok=True)
        words = [build / "tools" / "shunt-launch", "--root", root, "--fake-nodes", 2, "--placement", "branch", "--json", *options, "--",
                 "sh", "-c", script, root, build / "tools" / "shunt", count, directory]
        result = run(words, SHUNT_FABRIC="tcp:lo")
        return result, json.loads(result.err.splitlines()[-1])

    return launch


def assert_all(directory, count=COUNT):
    assert sorted(os.listdir(directory)) == sorted(f"{node}.{i}" for node in ("fake0", "fake1") for i in range(1, count + 1))
    for path in directory.iterdir():
        assert path.read_text() == path.name.split(".")[0] + "\n"


@pytest.mark.parametrize("directory", ["out", "a directory/of 'some' %s"])
def test_the_nodes_export_what_they_made(launched, root, directory):
    result, said = launched(directory=directory)
    result.check()
    assert_plain(root)
    assert said["exported"] and said["exported_files"] == said["exported_by_owners"] == 2 * COUNT
    assert_all(root / directory)


def test_what_is_not_worth_an_order_is_exported_by_one(launched, root):
    result, said = launched(5)
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 10 and said["exported_by_owners"] == 0


def test_a_path_that_no_order_holds_is_exported_by_one(launched, root):
    result, said = launched(directory="two\nlines")
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 2 * COUNT and said["exported_by_owners"] == 0
    assert_all(root / "two\nlines")


def test_what_an_earlier_launch_kept_is_exported_by_its_nodes(launched, root):
    launched(options=["--keep"])[0].check()
    result, said = launched(script="true")
    result.check()
    assert_plain(root)
    assert said["exported_by_owners"] == 2 * COUNT
    assert_all(root / "out")


def test_what_lost_a_conflict_is_kept(launched, root):
    """A program without shunt made a name that a node has made, in the meantime."""
    launched(options=["--keep"])[0].check()
    (root / "out" / "fake0.3").touch()
    result, said = launched(script="true")
    result.check()
    assert_plain(root)
    assert said["exported_files"] == 2 * COUNT
    assert (root / "out" / "fake0.3.shunt-conflict-trunk").read_text() == ""
    (root / "out" / "fake0.3.shunt-conflict-trunk").unlink()
    assert_all(root / "out")


def test_nothing_is_replaced(launched, root):
    """What has the name of a file of a node, and no part of the union, stays: a directory."""
    launched(options=["--keep"])[0].check()
    (root / "out" / "fake0.3").mkdir()
    launched(script="true")[0].check()
    assert_plain(root)
    assert (root / "out" / "fake0.3").is_dir() and len(os.listdir(root / "out")) == 2 * COUNT + 1


def test_an_owner_that_cannot_leaves_it_to_the_export(launched, root):
    """What is immutable is said, once, and stays, and all else leaves."""
    script = MAKE + 'chattr +i "$("$1" where "$0/out/fake1.7")"'
    result, said = launched(script=script)
    if "Operation not supported" in result.err or "Inappropriate ioctl" in result.err:
        pytest.skip("no chattr here")
    stays = next(root.glob(".shunt/b/*/*/*/fake1.7"))
    try:
        assert result.status != 0 and result.err.count("immutable or append-only") == 1, result.err
        assert said["exported_files"] == 2 * COUNT - 1 and len(os.listdir(root / "out")) == 2 * COUNT  # and the marker
    finally:
        run(["chattr", "-i", stays]).check()


def test_several_directories(launched, root):
    """More than one of each node's, one below the other, one of them with a mode that keeps files from being made there."""
    script = MAKE + """
for directory in out/below out/below/more other; do
    mkdir -p "$0/$directory"
    for node in fake0 fake1; do
        "$1" exec --root "$0" --node $node -- sh -c 'for i in $(seq '$2'); do echo '$node' >"$0/'$node'.$i"; done' "$0/$directory" || exit
    done
done
chmod 500 "$0/out" "$0/other"
"""
    result, said = launched(script=script)
    result.check()
    assert_plain(root)
    assert said["exported_files"] == said["exported_by_owners"] == 8 * COUNT
    for directory, mode in ("out/below/more", 0o755), ("other", 0o500):
        assert_all(root / directory)
        assert (root / directory).stat().st_mode & 0o777 == mode
    assert len(os.listdir(root / "out")) == len(os.listdir(root / "out" / "below")) == 2 * COUNT + 1


# Without a launch: helpers. A stand-in for ssh runs everything on this host, each node under a name of its own.

SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
host=$1
shift
echo "$host" >>"$0.called"
[ "$host" != unreachable ] || exit 255
exec env SHUNT_NODE="${host%%.*}" sh -c "$*"
"""
SRUN = """#!/bin/sh
for word; do case $word in --*) option=$word; shift; echo "$option" >>"$0.called" ;; *) break ;; esac; done
exec env SHUNT_NODE=far "$@"
"""
NOBODY_IS_THERE = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SHUNT_NODE")


class Helped:
    """A root with files of nodes in branches, and the stand-ins by which these nodes are reached."""

    def __init__(self, shunt, area, root):
        self.shunt, self.area, self.union, self.bin = shunt, area, Union(root), area / "bin"
        self.bin.mkdir()
        self.stand_in("ssh", SSH)
        self.directories = {}

    def stand_in(self, name, script):
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def put(self, directory, *nodes, count=COUNT):
        mirror = self.union.mark(directory, len(self.directories) + 1)
        self.directories[directory] = {f"{node}.{i}" for node in nodes for i in range(count)}
        for name in self.directories[directory]:
            self.union.put(name.rpartition(".")[0] + ".1", mirror, name, name)

    def hosts(self, *names):
        (self.area / "hosts").write_text("# mine\n" + "".join(f"{name} slots=2\n" for name in names))
        return "--hosts", self.area / "hosts"

    def called(self, name="ssh"):
        path = self.bin / f"{name}.called"
        return sorted(path.read_text().split()) if path.exists() else []

    def run(self, *words, **settings):
        return self.shunt(*words, PATH=f"{self.bin}:{os.environ['PATH']}", **settings)

    def export(self, *words, **settings):
        """What the export says, all of which has succeeded."""
        result = self.run("export", "--json", *words, self.union.root, **settings)
        said = json.loads(result.check())
        self.assert_exported()
        assert said["complete"]
        return result, said

    def assert_exported(self):
        assert_plain(self.union.root)
        for directory, names in self.directories.items():
            assert {path.name: path.read_text() for path in (self.union.root / directory).iterdir() if path.is_file()} \
                == {name: name for name in names}


@pytest.fixture
def helped(shunt, area, root, monkeypatch):
    for name in NOBODY_IS_THERE:
        monkeypatch.delenv(name, raising=False)
    return Helped(shunt, area, root)


def test_helpers_export_what_their_nodes_made(helped):
    helped.put("one", "far", "near")
    helped.put("two", "near", "gone")
    helped.put("two/below", "far")
    result, said = helped.export(*helped.hosts("near", "idle", "far.example.org"))
    assert result.err == ""
    assert said["files"] == 5 * COUNT and said["by_owners"] == 4 * COUNT
    assert helped.called() == ["far.example.org", "near"]


def test_a_node_that_is_not_reached_is_said_and_done_without(helped):
    helped.put("one", "far", "unreachable")
    result, said = helped.export(*helped.hosts("unreachable", "far"))
    assert said["files"] == 2 * COUNT and said["by_owners"] == COUNT
    assert result.err.count("\n") == 1 and "node unreachable: not reached by 'ssh', so its files are renamed from here (" in result.err


@pytest.mark.parametrize("count, hosts", [(COUNT, ["idle"]), (5, ["far"]), (COUNT, [os.uname().nodename])])
def test_nothing_to_help_with(helped, count, hosts):
    """No node of the list has files, or too few of them to be worth it, or it is this node."""
    helped.put("one", "far" if hosts[0] in ("idle", "far") else hosts[0].split(".")[0], count=count)
    result, said = helped.export(*helped.hosts(*hosts))
    assert said["files"] == count and said["by_owners"] == 0 and result.err == "" and helped.called() == []


def test_without_hosts_and_allocation_it_is_done_alone(helped):
    helped.put("one", "far")
    assert helped.export()[1]["by_owners"] == 0 and helped.called() == []


def test_nodes_of_an_allocation_of_slurm(helped):
    """By one srun, to those that have files; also within it a list of hosts is for ssh."""
    helped.stand_in("srun", SRUN)
    helped.put("one", "far", "gone")
    allocation = {"SLURM_JOB_ID": 1, "SLURM_JOB_NODELIST": "far,idle"}
    assert helped.export(**allocation)[1]["by_owners"] == COUNT
    assert "--nodelist=far" in helped.called("srun") and helped.called() == []
    again = Helped.__new__(Helped)
    again.__dict__.update(helped.__dict__, directories={}, union=Union(helped.area / "again"))
    again.put("one", "far")
    assert again.export(*again.hosts("far"), **allocation)[1]["by_owners"] == COUNT
    assert again.called() == ["far"]


# What a node says that does not what it is told: it reads an order, or more, and answers.
ODD = {"ends": "read order; exit 0", "is killed": "read order; kill -KILL $$",
       "does nothing": "while read order; do echo shunt-node far moved 0 0; done",
       "lies": "while read order; do echo shunt-node far moved 1 0 1; done"}


@pytest.mark.parametrize("odd", ["ends", "is killed", "does nothing", "lies"])
def test_what_a_helper_leaves_the_export_does(helped, odd):
    helped.stand_in("ssh", f"#!/bin/sh\necho shunt-node far serves\n{ODD[odd]}\n")
    helped.put("one", "far", "near")
    helped.put("two", "far")
    result = helped.run("export", "--json", *helped.hosts("far"), helped.union.root)
    said = json.loads(result.check())
    helped.assert_exported()
    lies = 2 if odd == "lies" else 0
    assert said["by_owners"] == lies and said["files"] == 3 * COUNT + lies and result.err == ""


def test_one_line_of_progress_counts_what_all_nodes_say(helped):
    """Two nodes say how far they are; they end when the line has been seen."""
    helped.stand_in("ssh", f"""#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
echo shunt-node $1 serves
read order
echo shunt-node $1 moving 7
until [ -e {helped.area}/seen ]; do sleep 0.01; done
""")
    helped.put("one", "far")
    helped.put("two", "near")
    words = [helped.shunt.path, "export", "--progress", *helped.hosts("far", "near"), helped.union.root]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          env=environment(PATH=f"{helped.bin}:{os.environ['PATH']}")) as export:
        kill = threading.Timer(60, export.kill)
        kill.start()
        said = next((line for line in export.stderr if "exported 14 of about 80 files in 2 directories, 2 other nodes at work, " in line), None)
        (helped.area / "seen").touch()
        export.stderr.read()
        kill.cancel()
    assert said is not None and export.returncode == 0
    helped.assert_exported()


def test_a_stop_exports_by_helpers(helped):
    root = helped.union.root
    helped.put("one", "far", "near")
    (root / ".shunt" / "session").rmdir()
    helped.run("start", "--root", root).check()
    helped.run("stop", "--root", root, "--export", *helped.hosts("far", "near")).check()
    helped.assert_exported()
    assert helped.called() == ["far", "near"]


def test_the_last_of_several_stops_exports_by_helpers(helped):
    """A stop that leaves the root to another node starts none."""
    root = helped.union.root
    helped.put("one", "far")
    (root / ".shunt" / "session").rmdir()
    for node in "a", "b":
        helped.run("start", "--root", root, "--node", node, SHUNT_FABRIC="tcp:lo").check()
    helped.run("stop", "--root", root, "--node", "a", "--export", *helped.hosts("far")).check()
    assert helped.called() == [] and (root / ".shunt").exists()
    helped.run("stop", "--root", root, "--node", "b", "--export", *helped.hosts("far")).check()
    helped.assert_exported()
    assert helped.called() == ["far"]


def test_the_line_says_how_many_were_renamed_by_their_nodes(helped):
    helped.put("one", "far", "near")
    out = helped.run("export", *helped.hosts("far"), helped.union.root).check()
    assert f"exported {2 * COUNT} files in 1 directory, {COUNT} of them by the nodes that made them" in out


@pytest.mark.parametrize("words, status, sentence", [
    (["export", "--live", "--hosts", "x"], 2, "--hosts goes with neither --live nor --careful"),
    (["export", "--careful", "--hosts", "x"], 2, "--hosts goes with neither --live nor --careful"),
    (["export", "--hosts", "/nowhere"], 1, "/nowhere: the file of nodes cannot be read"),
    (["stop", "--hosts", "x", "--root"], 2, "--hosts goes with --export alone")])
def test_hosts_that_are_refused(helped, words, status, sentence):
    result = helped.run(*words, helped.union.root)
    assert result.status == status and sentence in result.err
