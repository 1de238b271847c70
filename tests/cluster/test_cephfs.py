# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Two nodes on a real CephFS: what their calls cost its metadata server, by its own count."""

import json
import subprocess
import sys
import time

import cephfs
import pytest
from descriptor_tables import IN_AN_OWN_TABLE, OWN_TABLES

FILES = 200

# One file system for all of them, also where tests are shared out among several processes.
pytestmark = [pytest.mark.skipif(cephfs.what_is_missing() is not None, reason=str(cephfs.what_is_missing())),
              pytest.mark.xdist_group("cephfs")]


@pytest.fixture(scope="module")
def nodes(build, tmp_path_factory):
    with cephfs.two_nodes(tmp_path_factory.mktemp("cephfs"), build) as two:
        yield two


def test_a_shared_directory_costs_what_private_ones_do(nodes):
    with nodes.session("branch"):
        directories = [nodes.shared("out")] * 2
        assert nodes.measure("create", directories, FILES, under_shunt=True) <= 1.05
        assert nodes.measure("unlink", directories, FILES, under_shunt=True) <= 1.05


def test_what_the_kernel_asks_the_client(nodes):
    """Natively it is 7 to make a file: two parts of the path, the name, the making, and what goes with that; the same under shunt,
    which asks for the path, too, but not for the leaf, since that is kept open. Six to remove one. Nine to rename one; under
    shunt 7.6, since the path is asked for once."""
    with nodes.session("branch"):
        directories = [nodes.shared("remote_requests")] * 2
        counted = {"counter": cephfs.CephFS.answers, "under_shunt": True}
        assert nodes.measure("create", directories, FILES, **counted) <= 7.5
        assert nodes.measure("unlink", directories, FILES, **counted) <= 6.5
        nodes.measure("create", directories, FILES, **counted)
        assert nodes.measure("rename", directories, FILES, **counted) <= 8.5


CLOSES = """
import os, sys
def works(name):
    with open(name, "x") as file:
        file.write(name)
    assert open(name).read() == name and os.stat(name).st_size == len(name)
    os.unlink(name)
    assert not os.path.exists(name)

def kept():
    return [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) >= 950]

os.chdir(sys.argv[1])
for number in range(1000):
    works(f"again{number}")
    if len(kept()) == 2:
        break
assert len(kept()) == 2
child = os.fork()
works(f"second{child == 0}")
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for descriptor in kept():
    os.dup2(os.open("/", os.O_RDONLY), descriptor)
works("third")
os.closerange(3, 2000)
works("fourth")
"""


def test_a_program_may_do_what_it_likes_to_its_descriptors(nodes):
    """Also to those that lead to the branches and to a leaf."""
    with nodes.session("branch"):
        directory = nodes.shared("closed")
        nodes.under_shunt(0, cephfs.PYTHON, "-c", CLOSES, directory)


def test_natively_it_costs_more(nodes):
    """What the test above compares with: else it would show nothing. Nodes that make files at the same time natively take the
    directory from each other with each call, or keep it for several, as the scheduler lets them; by turns it is each call."""
    nodes.run(0, "mkdir", nodes.place / "shared")
    directories = [nodes.place / "shared"] * 2
    assert nodes.measure_by_turns("create", directories, FILES) > 3.5
    assert nodes.measure_by_turns("unlink", directories, FILES) > 1.5


def test_files_that_are_made_after_a_pause(nodes):
    """While nobody makes one, the directory is given its times. Natively a create after that costs twice as much, till the
    server has written them down."""
    with nodes.session("branch"):
        directory = nodes.shared("paused")
        trunk = nodes.ceph.mounts[0] / directory.relative_to(nodes.place)
        began = time.time_ns()
        nodes.together(nodes.work(0, "create", directory, FILES, under_shunt=True))
        cephfs.wait_until(lambda: trunk.stat().st_mtime_ns > began, "the directory's times")
        before = nodes.ceph.requests()
        nodes.together(nodes.work(0, "create", directory, 2 * FILES, first=FILES, under_shunt=True))
        assert nodes.ceph.requests() - before <= 1.3 * FILES


def test_files_that_are_made_while_the_other_node_lists(nodes):
    """Again and again. Prefetched names are given back for a listing, so that it looks for none of them in the maker's leaf, nor
    for the last one that was made, which its home knows: the maker's creates cost little more than without listings."""
    with nodes.session("branch"):
        directory = nodes.shared("listed")
        assert nodes.measure_listed(directory, 2 * FILES) <= 1.3


def test_files_that_the_other_node_opens(nodes):
    """Natively each create costs a request more, or three, than where nobody looks."""
    nodes.run(0, "mkdir", nodes.place / "looked-into")
    natively = nodes.measure_followed(nodes.place / "looked-into", 1000)
    with nodes.session("auto"):
        nodes.under_shunt(0, "mkdir", nodes.root / "looked-into")
        redirected = nodes.measure_followed(nodes.root / "looked-into", 1000, under_shunt=True)
    print(f"{natively:.2f} requests a file natively, {redirected:.2f} under shunt")
    assert redirected < natively / 2


# Natively, on one node: makes and removes a file, and says so; goes on once it is told.
OUTSIDER = """
import os, sys
for i in range(60):
    open(f"core.{i}", "x").close()
    if i:
        os.unlink(f"core.{i - 1}")
    print(i, flush=True)
    sys.stdin.readline()
"""
# On the other one, under shunt.
LISTER = """
import os, sys
for i in range(60):
    sys.stdin.readline()
    print(",".join(sorted(name for name in os.listdir(".") if name.startswith("core"))), flush=True)
"""


@pytest.mark.parametrize("placement", ["auto", "branch"])
def test_what_an_outsider_does_on_another_node_is_listed(nodes, placement):
    with nodes.session(placement):
        directory = nodes.shared(f"outsiders-{placement}")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        there = ["env", "-C", directory, sys.executable, "-c"]
        outsider = nodes.begin(1, *there, OUTSIDER, **pipes)
        lister = nodes.begin(0, *nodes.tool(0, "exec", "--", *there, LISTER), **pipes)
        for i in range(60):
            assert outsider.stdout.readline() == f"{i}\n"
            print(file=lister.stdin, flush=True)
            assert lister.stdout.readline() == f"core.{i}\n"
            print(file=outsider.stdin, flush=True)
        nodes.together(outsider, lister)


# The layout of a directory, changed by somebody's setfattr; and of the files that both nodes make after that.
CHANGES_OF_LAYOUT = {"set": "setfattr -n ceph.dir.layout.stripe_count -v 3 {}", "removed": "setfattr -x ceph.dir.layout {}"}
STRIPES = "touch {0} && getfattr --only-values -n ceph.file.layout.stripe_count {0}"


def stripes_after_changes(run, nodes, directory):
    """run(node, script) -> what it prints."""
    told = {}
    for changer in range(nodes.count):
        for change, script in CHANGES_OF_LAYOUT.items():
            run(changer, script.format(directory))
            told[changer, change] = [run(node, STRIPES.format(directory / f"{change}-{changer}-{node}")) for node in range(nodes.count)]
    return told


def printed(nodes, node, *words):
    process = nodes.begin(node, *words, stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=cephfs.PATIENCE)
    assert process.returncode == 0, (words, out)
    return out


def printed_under_shunt(nodes, node, script):
    return printed(nodes, node, *nodes.tool(node, "exec", "--", "sh", "-c", script))


def in_trunk(nodes, directory):
    return [path.name for path in (nodes.ceph.mounts[0] / directory.relative_to(nodes.place)).iterdir()]


def test_a_layout_that_comes_and_goes(nodes):
    """A directory's default layout, set and removed on one node, is that of the files which both make next."""
    nodes.run(0, "mkdir", nodes.place / "layouts")
    native = stripes_after_changes(lambda node, script: printed(nodes, node, "sh", "-c", script), nodes, nodes.place / "layouts")
    assert native == {(changer, change): ["3", "3"] if change == "set" else ["1", "1"] for changer, change in native}
    with nodes.session("branch"):
        directory = nodes.shared("layouts")
        told = stripes_after_changes(lambda node, script: printed_under_shunt(nodes, node, script), nodes, directory)
        assert not [name for name in in_trunk(nodes, directory) if name.startswith(tuple(CHANGES_OF_LAYOUT))]
    assert told == native


def test_a_layout_of_a_directory_above(nodes):
    """A directory without a layout has, natively, that of the nearest one above; a mirror lies elsewhere."""
    with nodes.session("branch"):
        nodes.under_shunt(0, "mkdir", nodes.root / "above")
        printed_under_shunt(nodes, 0, CHANGES_OF_LAYOUT["set"].format(nodes.root / "above"))
        directory = nodes.shared("above/below")
        assert [printed_under_shunt(nodes, node, STRIPES.format(directory / f"new{node}")) for node in range(2)] == ["3", "3"]
        assert not [name for name in in_trunk(nodes, directory) if name.startswith("new")]


# What is refused in a directory with a quota, and what it says.
IN_A_QUOTA = """
import errno, os, sys
def said(call, *words):
    try:
        return call(*words)
    except OSError as error:
        return errno.errorcode[error.errno]
directory, node = sys.argv[1:]
os.chdir(directory)
for name in (f"new{node}", f"below/new{node}"):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    print(said(os.truncate, name, 2 << 20), said(os.rename, name, f"../out{node}"), os.path.exists(name))
"""
GIVE_A_QUOTA = "mkdir -p {0}/below && setfattr -n ceph.quota.max_bytes -v 1048576 {0}"


def test_a_quota(nodes):
    """It counts what is in the directory and below, and nothing is renamed out of it: so all of that is in the trunk, also if the
    quota comes to a directory that is redirected."""
    natively, early = nodes.place / "quota", nodes.root / "quota"
    nodes.run(0, "sh", "-c", GIVE_A_QUOTA.format(natively))
    native = [printed(nodes, node, cephfs.PYTHON, "-c", IN_A_QUOTA, natively, node) for node in range(2)]
    assert native == ["EDQUOT EXDEV True\n" * 2] * 2
    with nodes.session("branch"):
        late = nodes.shared("late_quota")
        assert ".shunt-dir" in in_trunk(nodes, late)
        for directory in early, late:
            nodes.under_shunt(0, "sh", "-c", GIVE_A_QUOTA.format(directory))
            assert [printed(nodes, node, *nodes.tool(node, "exec", "--", cephfs.PYTHON, "-c", IN_A_QUOTA, directory, node))
                    for node in range(2)] == native
            assert {"new0", "new1"} <= set(in_trunk(nodes, directory))
        assert sorted(in_trunk(nodes, early)) == ["below", "new0", "new1"] and sorted(in_trunk(nodes, early / "below")) == ["new0", "new1"]
        told = json.loads(printed(nodes, 0, *nodes.tool(0, "status", "--json")))[0]["pinned"]
        assert {pinned["reason"] for pinned in told} == {"device"}, told
        nodes.under_shunt(1, "rm", "-r", early, late)


# A look at the directory of a directory's snapshots, each in a way of its own; and what the directory is afterwards.
LOOKS_AT_SNAPSHOTS = """
import contextlib, os, sys
ways = [os.stat, os.mkdir, os.rmdir, os.utime, os.listxattr, os.listdir, os.path.isdir, lambda path: os.chmod(path, 0o755),
        lambda path: os.symlink("to", path), lambda path: os.rename(path, "other")]
os.chdir(sys.argv[1])
for number, way in enumerate(ways):
    os.mkdir(str(number))
    open(f"{number}/file", "x").close()
    with contextlib.suppress(OSError):
        way(f"{number}/.snap")
    print(number, os.listdir(str(number)), os.path.isdir(f"{number}/.snap/"))
    os.unlink(f"{number}/file")
    os.rmdir(str(number))
"""


def test_the_directory_of_snapshots_is_no_entry(nodes):
    """It is found by its name, listed nowhere, and goes with its directory."""
    program = [cephfs.PYTHON, "-c", LOOKS_AT_SNAPSHOTS]
    nodes.run(0, "mkdir", nodes.place / "snapshots")
    native = printed(nodes, 0, *program, nodes.place / "snapshots")
    assert native == "".join(f"{number} ['file'] True\n" for number in range(10))
    with nodes.session("branch"):
        directory = nodes.shared("snapshots")
        for node in range(2):
            assert printed(nodes, node, *nodes.tool(node, "exec", "--", *program, directory)) == native


def test_a_number_that_is_another_directory_in_a_threads_own_table(nodes):
    """Of those that a process keeps open there (tests/hooked has more of them)."""
    native = nodes.place / "native" / "root"
    program = IN_AN_OWN_TABLE.format(own=OWN_TABLES["unshare"]).replace("range(20)", "range(4)")
    nodes.run(0, "mkdir", "-p", native)
    with nodes.session("branch"):
        said = []
        for root, words in ((native, []), (nodes.root / "table", nodes.tool(0, "exec", "--"))):
            nodes.run(0, *words, "mkdir", "-p", root)
            process = nodes.begin(0, *words, cephfs.PYTHON, "-c", f"import os\nos.chdir({str(root)!r})\n{program}",
                                  stdout=subprocess.PIPE, text=True)
            said.append(process.communicate(timeout=cephfs.PATIENCE)[0])
            assert process.returncode == 0
    assert said[1] == said[0]
