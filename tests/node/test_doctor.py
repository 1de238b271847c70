# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt doctor`: what it finds, on a host where all is well and where something is not."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import manual
import pytest
from conftest import HERE, PYTHON, Shunt, environment, run
from daemons import is_running, wait_until


def findings(result):
    return {one["check"]: (one["finding"], one["message"]) for one in json.loads(result.out)}


def test_all_is_well(shunt, root):
    result = shunt("doctor", "--root", root)
    lines = result.check().splitlines()
    needed = [line for line in lines if line.split()[1] != "fuse"]
    assert [line.split()[0] for line in needed] == ["ok"] * 8 and len(lines) == 9, result.out
    assert not any(line.endswith(".") for line in lines) and os.listdir(root) == []


def test_findings_as_json(shunt, root):
    result = shunt("doctor", "--json", "--root", root)
    assert list(findings(result)) == ["kernel", "libc", "run dir", "shuntd", "preload", "fuse", "mount", "file system", "network"]
    page = manual.page_of("doctor")
    assert manual.keys_of(json.loads(result.check())) == manual.fields_of_json(page, "doctor")
    checks = page.read_text().split("\n.SH CHECKS\n")[1].split("\n.SH ")[0]
    assert all(f"\n.B {check}\n" in checks for check in findings(result))


def test_a_root_of_the_environment(shunt, root):
    assert f"{root}: " in shunt("doctor", SHUNT_ROOT=root).check()
    assert str(root) not in shunt("doctor").check()


@pytest.mark.parametrize("run_dir, words", [("/nowhere/at/all", "no directory can be made in it: No such file"),
                                            ("relative", "not an absolute path")])
def test_a_run_directory_that_will_not_do(shunt, run_dir, words):
    result = shunt("doctor", "--json", SHUNT_RUN_DIR=run_dir)
    assert result.status == 1
    kind, message = findings(result)["run dir"]
    assert kind == "problem" and words in message and "set " in message


def test_a_run_directory_that_others_may_look_into(shunt, run_base):
    own = run_base / f"shunt-{os.geteuid()}"
    own.mkdir(mode=0o755)
    kind, message = findings(shunt("doctor", "--json", SHUNT_RUN_DIR=run_base))["run dir"]
    assert kind == "problem" and f"you alone may use (run 'chmod 700 {own}', or" in message
    own.rmdir()
    own.write_text("")
    kind, message = findings(shunt("doctor", "--json", SHUNT_RUN_DIR=run_base))["run dir"]
    assert kind == "problem" and "not a directory that you own (set SHUNT_RUN_DIR" in message


@pytest.mark.parametrize("variable, fault", [("SHUNT_STALE", "not a number of seconds from 1 to 86400"),
                                             ("SHUNT_LOG", "neither file nor syslog")])
def test_a_setting_that_is_not_understood(shunt, variable, fault):
    result = shunt("doctor", "--json", **{variable: "soon"})
    assert result.status == 1 and findings(result)["settings"] == ("problem", f"{variable}: {fault} (correct it or unset it)")
    assert [check for check, (kind, _) in findings(result).items() if kind == "problem"] == ["settings"]


def test_parts_that_are_missing(shunt, area):
    shutil.copy(shunt.path, area / "shunt")
    result = Shunt.__call__(type("", (), {"path": area / "shunt"})(), "doctor", "--json")
    assert result.status == 1
    found = findings(result)
    assert {check for check, (kind, _) in found.items() if kind == "problem"} == {"shuntd", "preload"}


def test_a_root_that_is_read_only(shunt, root, mounts):
    mounts("mount", "-t", "tmpfs", "-o", "ro", "none", root).check()
    result = mounts(shunt.path, "doctor", "--json", "--root", root)
    assert result.status == 1
    found = findings(result)
    assert found["mount"][0] == "problem" and "tmpfs, mounted read-only" in found["mount"][1]
    assert found["file system"][0] == "problem" and "a directory cannot be made" in found["file system"][1]


def test_a_file_system_that_is_read_only_elsewhere(shunt, root, area, mounts):
    """Another mount of the same file system says nothing of the root's own, whichever was made last."""
    (area / "elsewhere").mkdir()
    mounts("mount", "-t", "tmpfs", "none", root).check()
    mounts("mount", "--bind", root, area / "elsewhere").check()
    mounts("mount", "-o", "remount,bind,ro", area / "elsewhere").check()
    at_root, elsewhere = (findings(mounts(shunt.path, "doctor", "--json", "--root", path))["mount"] for path in (root, area / "elsewhere"))
    assert at_root[0] == "ok" and elsewhere[0] == "problem" and "tmpfs, mounted read-only" in elsewhere[1]


def test_a_file_system_without_hard_links(shunt, root, mounts, odd_file_system):
    odd_file_system("nolinks")
    result = mounts(shunt.path, "doctor", "--json", "--root", root)
    kind, message = findings(result)["file system"]
    assert result.status == 1 and kind == "problem" and "hard links do not work" in message
    assert os.listdir(mounts.seen(root)) == []


@pytest.fixture
def mounted_as(shunt, root, area, mounts):
    """mounted_as(type, options): what is found of the mount if the kernel says that of it."""
    def find(kind, options):
        mounts("mount", "-t", "tmpfs", "none", root).check()
        script = (f"sed 's| {root} \\(.*\\) - tmpfs none .*| {root} \\1 - {kind} server:/x rw,{options}|' /proc/$$/mountinfo >{area}/told; "
                  f"mount --bind {area}/told /proc/$$/mountinfo; exec {shunt.path} doctor --json --root {root}")
        return findings(mounts("sh", "-c", script))["mount"]
    return find


@pytest.mark.parametrize("kind, options, words", [
    ("nfs4", "vers=4.2,addr=10.0.0.1", "nfs4, with several nodes each call asks the server for its directory first, and names that nodes use at once may be missed"),
    ("nfs4", "vers=4.2,lookupcache=none", "nfs4, "), ("nfs", "noac,hard", "nfs, "), ("lustre", "flock", "lustre, ")])
def test_names_on_a_mount(mounted_as, kind, options, words):
    finding, message = mounted_as(kind, options)
    assert finding == "ok" and f": {words}" in message
    assert ("each call asks" in message) == (options == "vers=4.2,addr=10.0.0.1") and "attribute cache" not in message


def test_a_file_system_without_a_rename_that_replaces_nothing(shunt, root):
    result = run([PYTHON, HERE / "without_noreplace.py", shunt.path, "doctor", "--json", "--root", root])
    kind, message = findings(result)["file system"]
    assert kind == "warning" and "an export looks at each name before it renames" in message and "--careful" in message
    assert os.listdir(root) == []


def children_of(pid):
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_it_has_made_goes_also_when_it_is_interrupted(shunt, root, area, number):
    log = area / "calls"
    strace = subprocess.Popen(["strace", "-f", "-qq", "-o", log, "-e", "trace=linkat", "-e", "inject=linkat:signal=SIGSTOP:when=1",
                               shunt.path, "doctor", "--root", root], stdout=subprocess.DEVNULL, env=environment())
    wait_until(lambda: log.exists() and "stopped by SIGSTOP" in log.read_text())
    [doctor] = children_of(strace.pid)
    stopped = [*children_of(doctor), doctor][0]
    assert os.listdir(root) != []
    os.kill(doctor, number)
    if stopped != doctor:
        wait_until(lambda: not is_running(doctor))
    os.kill(stopped, signal.SIGCONT)
    strace.wait(30)
    wait_until(lambda: not is_running(stopped))
    assert os.listdir(root) == []


def test_hosts(shunt):
    result = shunt("doctor", "--host", "127.0.0.1", SHUNT_FABRIC="tcp")
    assert "host 127.0.0.1: answers at 127.0.0.1\n" in result.check()
    result = shunt("doctor", "--host", "x" * 300, SHUNT_FABRIC="tcp")
    assert result.status == 1 and "its name has no address" in result.out


def test_many_hosts(shunt):
    hosts = [f"127.0.{number // 200}.{number % 200 + 1}" for number in range(300)]
    out = shunt("doctor", *(word for host in hosts for word in ("--host", host)), SHUNT_FABRIC="tcp").check()
    assert re.findall(r"host (\S+): answers", out) == hosts


def test_a_host_that_does_not_answer(shunt):
    """From where no way leads to it."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    result = run(["unshare", *own, "--net", shunt.path, "doctor", "--host", "192.0.2.1"], SHUNT_FABRIC="tcp")
    assert result.status == 1
    assert "host 192.0.2.1: does not answer at 192.0.2.1: Network is unreachable (allow TCP between the hosts" in result.out


def test_hosts_of_an_allocation(shunt):
    out = shunt("doctor", SHUNT_FABRIC="tcp", SLURM_JOB_NODELIST="127.0.0.[1-2]").out
    assert "host 127.0.0.1: " in out and "host 127.0.0.2: " in out


def test_an_interface_that_is_not_there(shunt):
    assert "addresses of this host" in shunt("doctor", SHUNT_FABRIC="tcp:lo").check()
    result = shunt("doctor", SHUNT_FABRIC="tcp:ib17")
    assert result.status == 1 and "no interface or address of this host is 'ib17'" in result.out


def test_a_root_that_is_not_there(shunt, area):
    result = shunt("doctor", "--root", area / "nowhere")
    assert result.status == 2 and "does not exist" in result.err


# What is said of a call that failed says nothing of what is there, and what to do fits the error.
FITS = {"EIO": "look at that file system, and run this again", "EMFILE": "end other processes, or raise their limits, and run this again"}
NOT_SO = ["install the libraries", "seccomp profile", "load the module", "not in /proc", "has no rename", "hard links do not work", "no address",
          "inode numbers change", "not a directory", "allow TCP", "install fuse3", "a file system of this host", "another file system"]
FAILING = [("statx", "EIO"), ("linkat", "EIO"), ("renameat2", "EIO"), ("renameat", "EIO"), ("newfstatat", "EIO"), ("fstatfs", "EIO"), ("statfs", "EIO"),
           ("pipe2", "EMFILE"), ("pidfd_open", "EMFILE"), ("openat", "EMFILE"), ("socket", "EMFILE"), ("mkdir", "EIO")]


@pytest.mark.unsanitized
@pytest.mark.parametrize("call, error", FAILING)
def test_a_call_that_fails(shunt, root, area, call, error):
    """Each of a kind in turn. All that is said to be well has been looked at."""
    log, told = area / "calls", 0
    words = [shunt.path, "doctor", "--json", "--root", root, "--host", "127.0.0.1"]
    well = json.loads(run(words, SHUNT_FABRIC="tcp").out)
    for number in range(1, 120):
        result = run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}", *words],
                     SHUNT_FABRIC="tcp")
        if "(INJECTED)" not in log.read_text():
            break
        if not result.out.startswith("["):
            continue  # the loader's, or the root was not found
        for one in [one for one in json.loads(result.out) if one not in well and "shared object" not in one["message"]]:  # the loader's words
            told += 1
            assert not any(word in one["message"] for word in NOT_SO), (number, one)
            if one["finding"] != "ok":  # else it was done in another way
                assert FITS[error] in one["message"] or "check it with 'shuntd --version'" in one["message"], (number, one)
        assert os.listdir(root) == []
    assert told > 0
