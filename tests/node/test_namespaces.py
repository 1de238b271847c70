# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Mount, user, PID and time namespaces: a root that is seen at another path is served there, and where it cannot be, calls
into it fail with EIO and say what to bind."""

import json
import os
import shutil
import subprocess

import pytest

from conftest import IS_SUPERUSER, PYTHON, REPOSITORY, environment, redirected_files, run
from test_failures import as_nobody, everybodys  # noqa: F401: a fixture

# Does what it is told, a line each: what it saw, or the name of the error.
AGENT = r"""
import errno, json, os, sys
def listing(path):
    return sorted(os.listdir(path))
def scan(path):
    with os.scandir(path) as entries:
        return sorted([entry.name, entry.is_file()] for entry in entries)
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def exclusive(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
def read(path):
    with open(path) as file:
        return file.read()
def stat(path):
    seen = os.stat(path)
    return [oct(seen.st_mode), seen.st_size]
def mtime(path):
    return os.stat(path).st_mtime_ns
def touch(path, time):
    os.utime(path, ns=(time, time))
done = {"list": listing, "scan": scan, "write": write, "exclusive": exclusive, "read": read, "stat": stat, "mtime": mtime,
        "touch": touch, "rename": os.rename, "unlink": os.unlink, "mkdir": os.mkdir, "rmdir": os.rmdir, "chmod": os.chmod,
        "chdir": os.chdir, "chroot": os.chroot, "link": os.link, "realpath": os.path.realpath, "truncate": os.truncate, "umask": os.umask}
for line in sys.stdin:
    verb, *words = json.loads(line)
    try:
        answer = done[verb](*words)
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(json.dumps(answer), flush=True)
"""


class Agent:
    """A process under shunt, by way of `wrapper`, which makes its namespaces."""

    def __init__(self, shunt, root, wrapper, area, **settings):
        self.err = open(area / f"err.{len(os.listdir(area))}", "w+", encoding="utf-8")
        command = [shunt.path, "exec", "--root", root, "--", *wrapper, PYTHON, "-c", AGENT]
        self.process = subprocess.Popen(list(map(str, command)), text=True, cwd="/", env=environment(**settings), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.err)

    def __call__(self, *words):
        self.process.stdin.write(json.dumps([str(word) if isinstance(word, os.PathLike) else word for word in words]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.said()
        return json.loads(answer)

    def said(self):
        self.err.seek(0)
        return self.err.read()

    def end(self):
        if self.process.stdin.closed:
            return self.said()
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.said()
        return self.said()


def can(*command):
    return shutil.which(command[0]) is not None and subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


BWRAP = ["bwrap", "--bind", "/", "/"]
NEEDS_BWRAP = pytest.mark.skipif(not can(*BWRAP), reason="bubblewrap cannot be used here")
NEEDS_SUPERUSER = pytest.mark.skipif(not IS_SUPERUSER, reason="only the superuser mounts")


@pytest.fixture
def place(area, request):
    """The root lies at work/root; other is where it is to be seen. With the parameter `mount`, work is one."""
    (area / "work").mkdir()
    is_mount = getattr(request, "param", "") == "mount"
    if is_mount:
        run(["mount", "-t", "tmpfs", "none", area / "work"]).check()
    (area / "work" / "root").mkdir()
    (area / "other").mkdir()
    yield area
    if is_mount:
        run(["umount", area / "work"]).check()


ON_A_MOUNT = pytest.param("mount", marks=NEEDS_SUPERUSER)


@pytest.fixture
def root(place):
    return place / "work" / "root"


@pytest.fixture
def start(shunt, root, place):
    """Agents in a session whose directory d holds a file in the trunk, `plain`, and one in the branch, `f`."""
    agents = []
    (root / "d").mkdir()
    (root / "d" / "plain").write_text("of the trunk")
    shunt("start", "--root", root, "--placement", "branch").check()

    def make(*wrapper, **settings):
        agents.append(Agent(shunt, root, wrapper, place, **settings))
        return agents[-1]

    try:
        host = make()
        host("write", root / "d" / "f", "data")
        assert [os.path.basename(path) for path in redirected_files(root)] == ["f"]
        yield host, make
        for agent in agents:
            agent.end()
    finally:
        shunt("stop", "--root", root).check()
    assert not list(root.rglob("*.shunt-conflict*"))
    shunt("export", root).check()
    assert not list(root.rglob(".shunt*"))


def shell(*lines):
    """A shell that mounts in a namespace of its own, then becomes the program."""
    return ["unshare", "--mount", "sh", "-e", "-c", "\n".join([*lines, 'exec "$@"']), "sh"]


def bind(place, *words):
    return [*BWRAP, *(str(word) for word in words)]


# How a container is made, and where it has the root's directory d.
def at_other_path(place, root):
    return bind(place, "--bind", root, place / "other", "--tmpfs", place / "work"), place / "other" / "d"


def at_other_path_by_a_shell(place, root):
    return shell(f"mount --bind {root} {place}/other", f"mount -t tmpfs none {place}/work"), place / "other" / "d"


def at_both_paths(place, root):
    return bind(place, "--bind", root, place / "other"), place / "other" / "d"


def at_its_own(place, root):
    return bind(place, "--bind", root, place / "other"), root / "d"


def beneath_what_is_bound(place, root):
    return bind(place, "--bind", place / "work", place / "other", "--tmpfs", place / "work"), place / "other" / "root" / "d"


def a_directory_next_to_it(place, root):
    return bind(place, "--bind", root / "d", place / "other"), place / "other"


def a_directory_next_to_it_elsewhere(place, root):
    (place / "third").mkdir()
    return (bind(place, "--bind", root / "d", place / "other", "--bind", root, place / "third", "--tmpfs", place / "work"),
            place / "other")


def another_directory_at_its_own(place, root):
    """Where the root's path leads something else is mounted."""
    (place / "elsewhere" / "d").mkdir(parents=True)
    return bind(place, "--bind", root, place / "other", "--bind", place / "elsewhere", root), place / "other" / "d"


def a_small_container(place, root):
    """As podman and Apptainer make one: nothing of the host's but what is said."""
    words = ["bwrap", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--bind", "/dev/shm",
             "/dev/shm", "--ro-bind", REPOSITORY, REPOSITORY, "--bind", root, "/data", "--chdir", "/data"]
    for name in ("bin", "lib", "lib64", "sbin"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    return [str(word) for word in words], "/data/d"


def of_another_user(place, root):
    return ["unshare", "--user", "--map-root-user"], root / "d"


def of_nobody(place, root):
    return ["unshare", "--user"], root / "d"


def of_another_user_elsewhere(place, root):
    return [*at_other_path(place, root)[0], "--unshare-user"], place / "other" / "d"


def in_another_time(place, root):
    return ["unshare", "--time", "--boottime", "100000"], root / "d"


def in_all_but_a_pid_namespace(place, root):
    return bind(place, "--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try", "--bind", root,
                place / "other", "--tmpfs", place / "work"), place / "other" / "d"


SERVED = [at_other_path, at_other_path_by_a_shell, at_both_paths, at_its_own, beneath_what_is_bound, a_directory_next_to_it,
          a_directory_next_to_it_elsewhere, another_directory_at_its_own, a_small_container, of_another_user, of_nobody,
          of_another_user_elsewhere, in_another_time, in_all_but_a_pid_namespace]


def made(layout, place, root):
    words, d = layout(place, root)
    tool = words[0]
    if not can(*(BWRAP if tool == "bwrap" else words if "sh" not in words else words[:2])):
        pytest.skip(f"{tool} cannot be used here")
    return words, d


@pytest.fixture(params=SERVED, ids=lambda layout: layout.__name__)
def served(request, start, place, root):
    words, d = made(request.param, place, root)
    host, make = start
    return host, make(*words), root / "d", str(d)


def test_what_is_there_is_seen(served):
    host, guest, _, d = served
    assert guest("list", d) == ["f", "plain"]
    assert guest("scan", d) == [["f", True], ["plain", True]]
    assert guest("read", f"{d}/f") == "data" and guest("read", f"{d}/plain") == "of the trunk"
    assert guest("stat", f"{d}/f") == ["0o100644", 4] and guest("stat", f"{d}/missing") == "ENOENT"
    assert guest("stat", f"{d}/f/x") == "ENOTDIR"
    assert guest("chdir", d) is None
    assert guest("read", "f") == "data" and guest("list", ".") == ["f", "plain"]
    assert guest.end() == "" and host.end() == ""


def test_what_is_made_is_seen_by_the_host_at_once(served):
    host, guest, d, there = served
    assert guest("write", f"{there}/new", "made") is None
    assert host("read", d / "new") == "made" and host("list", d) == ["f", "new", "plain"]
    assert host("exclusive", d / "new") == "EEXIST"
    assert guest("rename", f"{there}/new", f"{there}/newer") is None
    assert host("list", d) == ["f", "newer", "plain"] and host("stat", d / "new") == "ENOENT"
    assert guest("rename", f"{there}/newer", f"{there}/f") is None
    assert host("read", d / "f") == "made"
    assert guest("link", f"{there}/f", f"{there}/g") is None
    assert host("read", d / "g") == "made"
    assert guest("unlink", f"{there}/f") is None
    assert host("list", d) == ["g", "plain"]
    assert guest("rename", f"{there}/plain", f"{there}/g") is None
    assert host("list", d) == ["g"] and host("read", d / "g") == "of the trunk"
    assert guest("mkdir", f"{there}/sub") is None and guest("write", f"{there}/sub/x", "x") is None
    assert host("list", d / "sub") == ["x"] and host("read", d / "sub" / "x") == "x"
    assert host("rmdir", d / "sub") == "ENOTEMPTY"
    assert guest("unlink", f"{there}/sub/x") is None and guest("rmdir", f"{there}/sub") is None
    assert host("list", d) == ["g"]
    assert guest.end() == "" and host.end() == ""


def test_what_the_host_makes_is_seen_at_once(served):
    host, guest, d, there = served
    assert guest("stat", f"{there}/new") == "ENOENT"
    assert host("write", d / "new", "made") is None
    assert guest("read", f"{there}/new") == "made" and guest("list", there) == ["f", "new", "plain"]
    assert guest("exclusive", f"{there}/new") == "EEXIST"
    assert host("rename", d / "new", d / "f") is None
    assert guest("read", f"{there}/f") == "made" and guest("list", there) == ["f", "plain"]
    assert guest("stat", f"{there}/new") == "ENOENT"
    assert host("unlink", d / "f") is None
    assert guest("list", there) == ["plain"] and guest("stat", f"{there}/f") == "ENOENT"
    assert host("mkdir", d / "sub") is None and host("write", d / "sub" / "x", "x") is None
    assert guest("list", f"{there}/sub") == ["x"] and guest("rmdir", f"{there}/sub") == "ENOTEMPTY"


def test_attributes_and_times_of_a_directory(served):
    host, guest, d, there = served
    assert guest("chmod", there, 0o750) is None
    assert host("umask", 0o022) is not None and host("write", d / "new", "x") is None
    for path in redirected_files(d.parent):
        assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o750
    assert guest("mtime", there) == host("mtime", d)
    assert guest("unlink", f"{there}/new") is None
    assert guest("mtime", there) == host("mtime", d)
    assert guest("touch", there, 10**18) is None
    assert host("mtime", d) == guest("mtime", there) == 10**18


# Where the root cannot be served.


def a_directory_alone(place, root):
    return bind(place, "--bind", root / "d", place / "other", "--tmpfs", place / "work"), place / "other", "bind all of it"


def a_directory_alone_beneath_its_path(place, root):
    """Its text is that of the root's directory."""
    return bind(place, "--tmpfs", place / "work", "--bind", root / "d", root / "d"), root / "d", "bind all of it"


def hidden_by_a_tmpfs(place, root):
    return bind(place, "--tmpfs", place / "work", "--dir", root / "d"), root / "d", "bind all of it"


def hidden_by_an_empty_one(place, root):
    return bind(place, "--tmpfs", root), root, "bind all of it"


def without_the_hosts_shm(place, root):
    return bind(place, "--dev", "/dev", "--bind", root, place / "other"), root / "d", "by default /dev/shm"


def without_the_hosts_shm_elsewhere(place, root):
    return (bind(place, "--dev", "/dev", "--bind", root, place / "other", "--tmpfs", place / "work"), place / "other" / "d",
            "by default /dev/shm")


def in_a_pid_namespace(place, root):
    return bind(place, "--unshare-pid", "--proc", "/proc"), root / "d", "PID namespace"


def in_a_pid_namespace_elsewhere(place, root):
    return (bind(place, "--unshare-pid", "--proc", "/proc", "--bind", root, place / "other", "--tmpfs", place / "work"),
            place / "other" / "d", "PID namespace")


def in_a_pid_namespace_by_unshare(place, root):
    return ["unshare", "-m", "-p", "-f", "--mount-proc"], root / "d", "PID namespace"


def without_proc(place, root):
    words = ["bwrap", "--ro-bind", "/usr", "/usr", "--dev-bind", "/dev", "/dev", "--ro-bind", REPOSITORY, REPOSITORY, "--bind", root, root]
    for name in ("bin", "lib", "lib64", "sbin"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    return [str(word) for word in words], root / "d", "mount /proc"


def with_a_run_directory_that_is_read_only(place, root):
    return ["bwrap", "--ro-bind", "/", "/", "--bind", str(place), str(place)], root / "d", "bind it writable"


REFUSED = [with_a_run_directory_that_is_read_only, a_directory_alone, a_directory_alone_beneath_its_path, hidden_by_a_tmpfs, hidden_by_an_empty_one, without_the_hosts_shm,
           without_the_hosts_shm_elsewhere, in_a_pid_namespace, in_a_pid_namespace_elsewhere, in_a_pid_namespace_by_unshare,
           pytest.param(without_proc, marks=pytest.mark.unsanitized)]  # AddressSanitizer reads /proc


@NEEDS_BWRAP
@NEEDS_SUPERUSER
@pytest.mark.parametrize("layout", REFUSED, ids=lambda layout: layout.__name__)
def test_what_cannot_be_served_is_refused(layout, start, place, root):
    """Not the trunk, not even for what is there."""
    host, make = start
    words, d, advice = layout(place, root)
    guest = make(*words)
    said = {}
    for words in (["write", f"{d}/new", "x"], ["read", f"{d}/f"], ["stat", f"{d}/f"], ["stat", f"{d}/missing"], ["list", d], ["exclusive", f"{d}/f"],
                  ["unlink", f"{d}/plain"], ["rename", f"{d}/plain", f"{d}/other"], ["mkdir", f"{d}/sub"], ["read", f"{d}/plain"],
                  ["write", f"{d}/plain", "x"], ["truncate", f"{d}/plain", 1]):
        said[" ".join(map(str, words))] = guest(*words)
    assert all(answer == "EIO" for answer in said.values()), said
    err = guest.end()
    assert err.startswith((f"shunt: {root}: ", f"shunt: {place}/other: ")) and err.count("\n") == 1 and advice in err, err
    assert host("list", root / "d") == ["f", "plain"] and host("read", root / "d" / "plain") == "of the trunk"


@NEEDS_BWRAP
def test_what_is_next_to_a_root_that_cannot_be_served(start, place, root):
    """The rest of the file system is as ever."""
    _, make = start
    words, _, _ = a_directory_alone(place, root)
    guest = make(*words)
    beside = place / "beside"
    assert guest("mkdir", beside) is None and guest("write", beside / "x", "x") is None
    assert guest("list", beside) == ["x"] and guest("rename", beside / "x", beside / "y") is None
    assert guest("unlink", beside / "y") is None and guest("rmdir", beside) is None
    assert guest.end() == ""


@NEEDS_SUPERUSER
def test_a_program_that_mounts_by_itself(start, place, root):
    """It sees the root at its path when it begins, and hides it later."""
    _, make = start
    guest = make("unshare", "--mount")
    assert guest("read", root / "d" / "f") == "data"
    pid = guest.process.pid
    run(["nsenter", "-t", pid, "-m", "mount", "--bind", root, place / "other"]).check()
    assert guest("list", place / "other" / "d") == ["f", "plain"] and guest("read", place / "other" / "d" / "f") == "data"
    run(["nsenter", "-t", pid, "-m", "mount", "-t", "tmpfs", "none", place / "work"]).check()
    assert guest("read", place / "other" / "d" / "f") == "data"
    assert guest("write", place / "other" / "d" / "new", "x") is None
    assert guest("list", place / "other" / "d") == ["f", "new", "plain"]


@NEEDS_SUPERUSER
@pytest.mark.parametrize("words", [["read", "f"], ["write", "new", "x"], ["unlink", "f"], ["rename", "f", "g"], ["stat", "f"], ["link", "f", "g"],
                                   ["rename", "f", "plain"], ["exclusive", "new"], ["truncate", "f", 1], ["chmod", "f", 0o600]],
                         ids=lambda words: " ".join(map(str, words)))
def test_a_root_that_is_hidden_from_a_program_that_uses_it(words, start, place, root):
    host, make = start
    words = [str(place / "other" / word) if word in ("f", "g", "new", "plain") else word for word in words]
    guest = make("unshare", "--mount")
    assert guest("read", root / "d" / "f") == "data"
    pid = guest.process.pid
    run(["nsenter", "-t", pid, "-m", "mount", "--bind", root / "d", place / "other"]).check()
    assert guest("read", place / "other" / "f") == "data"
    run(["nsenter", "-t", pid, "-m", "mount", "-t", "tmpfs", "none", place / "work"]).check()
    assert guest(*words) == "EIO"
    assert guest("read", place / "other" / "f") == "EIO" and guest("write", place / "other" / "new", "x") == "EIO"
    err = guest.end()
    assert "bind all of it" in err and err.count("\n") == 1
    assert host("list", root / "d") == ["f", "plain"]


@NEEDS_SUPERUSER
@pytest.mark.unsanitized  # what AddressSanitizer needs is not in there
def test_a_small_environment(start, place, root):
    """What was cleared is given back."""
    _, make = start
    words, d = at_other_path_by_a_shell(place, root)
    guest = make("env", "-i", *words)
    assert guest("list", d) == ["f", "plain"] and guest("read", f"{d}/f") == "data"


@NEEDS_BWRAP
def test_a_file_of_a_branch_that_is_bound(start, place, root):
    """Bubblewrap looks at it when its own root is another one, and /proc is not there."""
    _, make = start
    (place / "target").touch()
    guest = make(*bind(place, "--bind", root / "d" / "f", place / "target"))
    assert guest("read", place / "target") == "data" and guest("list", root / "d") == ["f", "plain"]
    assert guest.end() == ""


@NEEDS_BWRAP
@pytest.mark.parametrize("place", ["directory", ON_A_MOUNT], indirect=True)
def test_what_is_mounted_in_the_root(start, place, root):
    """The places are made where /proc is not there, in a directory that nothing is known of."""
    host, make = start
    host("mkdir", root / "e")
    guest = make(*bind(place, "--tmpfs", root / "e" / "sub", "--bind", "/etc/hosts", root / "e" / "file", "--dir", root / "e" / "dir"))
    assert guest("list", root / "e") == ["dir", "file", "sub"]
    assert guest("read", root / "e" / "file") == open("/etc/hosts", encoding="utf-8").read()
    assert guest("write", root / "e" / "sub" / "x", "of the tmpfs") is None
    assert guest.end() == ""
    assert host("list", root / "e") == ["dir", "file", "sub"] and host("list", root / "e" / "sub") == []


@NEEDS_SUPERUSER
@pytest.mark.parametrize("proc", [False, True], ids=["without /proc", "with /proc"])
def test_a_chroot(proc, start, place, root):
    """Above the root it is served, by whichever kind of path comes first, in the root its branches are out of reach."""
    host, make = start
    for at in (place / "work", root):
        (at / "proc").mkdir()
    mounts = [f"mount --bind /proc {at}/proc" for at in (place / "work", root)] if proc else ["true"]
    above, below, within = (make(*shell(*mounts)) for _ in range(3))
    assert [agent("read", root / "d" / "f") for agent in (above, below, within)] == ["data"] * 3
    below("chroot", place / "work")
    below("chdir", "/root/d")
    assert below("read", "f") == "data" and below("list", ".") == ["f", "plain"] and below("stat", "missing") == "ENOENT"
    assert below.end() == ""
    above("chroot", place / "work")
    assert above("read", "/root/d/f") == "data" and above("list", "/root/d") == ["f", "plain"]
    assert above("write", "/root/d/new", "made") is None and above("stat", "/root/d/missing") == "ENOENT"
    assert host("read", root / "d" / "new") == "made"
    assert above.end() == ""
    within("chroot", root)
    assert within("list", "/d") in (["f", "new", "plain"], "EIO")
    assert within("read", "/d/f") == within("write", "/d/n", "x") == "EIO"
    assert "bind all of it" in within.end()
    for at in (place / "work", root):
        (at / "proc").rmdir()


@NEEDS_SUPERUSER
@pytest.mark.parametrize("place", [ON_A_MOUNT], indirect=True)
def test_a_root_that_is_first_used_after_a_chroot(start, place):
    """From where the run directory cannot be seen."""
    _, make = start
    proc = place / "work" / "proc"
    proc.mkdir()
    agent = make(*shell(f"mount --bind /proc {proc}"))
    agent("chroot", place / "work")
    assert agent("list", "/root/d") == ["f", "plain"] and agent("read", "/root/d/f") == "data"
    assert agent.end() == ""
    proc.rmdir()


@NEEDS_SUPERUSER
def test_a_user_who_is_root_in_a_container(everybodys):  # noqa: F811
    """As in podman and with Apptainer's --fakeroot; the superuser of the host has daemons, too."""
    session = as_nobody(everybodys)
    (everybodys / "run" / "shunt-0").mkdir(mode=0o700)
    session.start().check()
    root, other = session.root, everybodys / "run" / "other"
    other.mkdir()
    done = session.exec("sh", "-c", f"echo data >{root}/out/f; echo of the trunk >{root}/out/g")
    done.check()
    inside = session.exec("unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c",
                          f"id -u; cat {root}/out/f; mount --bind {root} {other}; mount -t tmpfs none {root}; ls {other}/out; "
                          f"cat {other}/out/f; echo made >{other}/out/made; mv {other}/out/made {other}/out/moved; rm {other}/out/g; ls {other}/out")
    assert inside.check() == "0\ndata\nf\ng\ndata\nf\nmoved\n"
    assert "Input/output error" not in inside.err
    assert session.exec("ls", root / "out").check() == "f\nmoved\n" and session.exec("cat", root / "out" / "moved").check() == "made\n"
    session.tool("stop", "--root", root).check()
