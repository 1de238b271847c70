# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""For a build with the option `hooks`: what the tests of several nodes have, and hooks (lib/base/hook.h)."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

CLUSTER = pathlib.Path(__file__).resolve().parents[1] / "cluster"
sys.path.insert(0, str(CLUSTER))

# Not as `conftest`, which is this file.
SPEC = importlib.util.spec_from_file_location("several_nodes", CLUSTER / "conftest.py")
several_nodes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(several_nodes)

NODE = CLUSTER.parent / "node"
NODE_SPEC = importlib.util.spec_from_file_location("one_node", NODE / "conftest.py")
one_node = sys.modules["one_node"] = importlib.util.module_from_spec(NODE_SPEC)
NODE_SPEC.loader.exec_module(one_node)

NODES = ("a", "b", "c")

build = several_nodes.build
session = several_nodes.session


@pytest.fixture
def shunt(build):
    """The command, for one node."""
    return one_node.Shunt(build)


@pytest.fixture
def net():
    """What is stopped between its steps needs no network next to."""
    return several_nodes.network.OneHost()


@pytest.fixture(scope="session", autouse=True)
def has_hooks(build):
    symbols = subprocess.run(["nm", build / "daemon" / "shuntd"], capture_output=True, text=True, check=True).stdout
    assert "hook_reach" in symbols, f"{build} was not set up with -Dhooks=true"


def wait_until(done, what, within=30):
    """Waits for an event: with a deadline, since a test that cannot end says nothing."""
    until = time.monotonic() + within
    while not done():
        assert time.monotonic() < until, f"waited without success for {what}"
        time.sleep(0.002)


class Meeting:
    """Where a process stops at a hook until the test lets it go on; or says that it came by."""

    def __init__(self, path):
        self.path = path

    def at(self, hook):
        return f"{hook}:meet={self.path}"

    def seen_at(self, hook):
        return f"{hook}:tell={self.path}"

    def seen_before_at(self, hook):
        """Nobody stops there before `again`."""
        self.go()
        pathlib.Path(f"{self.path}.reached").touch()
        return self.at(hook)

    def is_reached(self):
        return pathlib.Path(f"{self.path}.reached").exists()

    def reached(self):
        wait_until(self.is_reached, self.path)

    def again(self):
        """As if no process had come yet."""
        for end in ("reached", "go"):
            pathlib.Path(f"{self.path}.{end}").unlink(missing_ok=True)

    def go(self):
        pathlib.Path(f"{self.path}.go").touch()


class Call:
    """A line of Python under way on a node, in the root's directory `out`; its answer is printed, or its errno's name."""

    PROGRAM = """
import errno, os, sys, time
def make(name, text="", flags=os.O_EXCL):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    os.write(fd, text.encode())
    os.close(fd)
def read(name):
    return open(name).read()
def until(path):
    open(path + ".asked", "w").close()
    while not os.path.exists(path):
        time.sleep(0.001)
def watch():
    sys.path.remove("")  # or the import would list this directory
    from ctypes import CDLL
    return CDLL(None).inotify_add_watch(CDLL(None).inotify_init(), b".", 0x100)
def load_libc():
    sys.path.remove("")
    global ctypes
    import ctypes
def call(name, *words):
    libc = ctypes.CDLL(None, use_errno=True)
    answer = getattr(libc, name)(*words)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "")
    return answer
def result(line):
    try:
        return str(eval(line, globals()))
    except OSError as error:
        return errno.errorcode[error.errno]
print(result(sys.argv[1]))
"""

    def __init__(self, stage, node, line, **settings):
        session = stage.session
        command = [session.shunt.path, "exec", "--root", session.root, "--node", node, "--", "/usr/bin/python3", "-c",
                   self.PROGRAM, line]
        environment = {**session.environment(), **settings}
        self.stage, self.line = stage, line
        self.process = subprocess.Popen(list(map(str, command)), cwd=session.root / "out", env=environment,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)

    def has_ended(self):
        return self.process.poll() is not None

    def answer(self):
        """What it printed; nothing if it was killed."""
        try:
            answer = self.process.communicate(timeout=40)[0].strip()
            for plain, name in self.stage.names.items():
                answer = answer.replace(f"'{name}'", f"'{plain}'")
            return answer
        except subprocess.TimeoutExpired:
            return "no answer"


class Stage:
    """Nodes, and calls on them that meet the test at hooks.

    In the lines of calls 'm' and 'n' stand for names whose home is the node a, so that a test knows which daemon asks which."""

    def __init__(self, session, build, area):
        self.session, self.area = session, area
        self.calls, self.broken = [], {}
        self.blocked = Meeting(area / "blocked")
        self.meetings = 0
        self.out = session.root / "out"
        self.out.mkdir()
        self.names = dict(zip("mn", self.at_home_on_a(build)))
        self.ruler, = self.homes_of(build, "")

    def homes_of(self, build, *texts, of=None, members=range(1, len(NODES) + 1)):
        """Of the names `texts` in that directory; '' stands for itself, whose home is its coordinator's node. `members`: of a, b
        and c, whose daemon gets another number when it is started again."""
        command = [build / "tests" / "cluster" / "home_of", of or self.out, ",".join(map(str, members)), *texts]
        homes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return [NODES[members.index(int(home))] for home in homes]

    def at_home_on_a(self, build):
        texts = [f"name-{number}" for number in range(100)]
        return [text for text, home in zip(texts, self.homes_of(build, *texts)) if home == "a"]

    def translated(self, line):
        for plain, name in self.names.items():
            line = line.replace(f"'{plain}'", f"'{name}'")
        return line

    def path(self, plain):
        return self.out / self.names[plain]

    def begin(self, guard=None, placement="branch", hooks=(), used=True, **settings):
        """Daemons of three nodes and a directory `out`; the guard is taken away everywhere. Two nodes have used it, so that
        it is delegated to none; else the first one that does has it."""
        self.broken = {"SHUNT_BREAK": guard} if guard else {}
        hooks = ",".join([self.blocked.seen_at("request-blocked"), *hooks])
        self.session.start(*NODES, placement=placement, SHUNT_HOOKS=hooks, **self.broken, **settings)
        assert self.session.homes() == list(NODES)
        for node in "ab" if used else "":
            self.session.sh(node, "ls out")

    def meeting(self):
        self.meetings += 1
        return Meeting(self.area / f"meeting-{self.meetings}")

    def call(self, node, line, *hooks, **settings):
        self.blocked.again()
        call = Call(self, node, self.translated(line), **({"SHUNT_HOOKS": ",".join(hooks)} if hooks else {}), **self.broken, **settings)
        self.calls.append(call)
        return call

    def does(self, node, line):
        return self.call(node, line).answer()

    def heard(self, node):
        """The other daemons know what calls on that node have told its own: that travels with what is asked next."""
        self.session.status("--node", node, "--all")

    def daemons(self):
        return {member["node"]: member["pid"] for member in self.session.members()}

    def crash(self, node):
        """Its supervisor starts another one."""
        os.kill(self.session.member(node)["pid"], signal.SIGKILL)

    def crash_and_come_back(self, node):
        """The same, and that one is home of its part again; nobody on that node is at work."""
        before = self.daemons()[node]
        self.crash(node)
        wait_until(lambda: self.daemons().get(node, before) != before and self.session.is_settled(), f"{node} to be back")

    def waits(self, call):
        """A call that has to wait for another does; or it has ended, and the test sees that it should not have."""
        wait_until(lambda: self.blocked.is_reached() or call.has_ended(), f"{call.line} to wait")

    def end(self):
        for call in self.calls:
            if not call.has_ended():
                os.killpg(call.process.pid, signal.SIGKILL)
            call.process.communicate()
        for member in self.session.members() if self.broken else []:  # it may wait for ever for what nobody settles
            self.session.kill(member["pid"])


@pytest.fixture
def stage(session, build, tmp_path):
    stage = Stage(session, build, tmp_path)
    yield stage
    stage.end()
