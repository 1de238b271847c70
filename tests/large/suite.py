# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a suite is, and running it: once in a plain directory, once in a root with every file redirected."""

import collections
import dataclasses
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Callable

import tree

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
NOBODY = 65534
GOOD = "exit status 0"
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--"]

# Settings of the one who runs this that would change what the programs do.
FOREIGN_ENVIRONMENT = re.compile(r"^(SHUNT_|LD_PRELOAD$|GIT_|MAKE|PYTHON|NODE_|JAVA_|_JAVA|JDK_|HDF5_|BLOCK_SIZE$)")


@dataclass(frozen=True)
class Place:
    """Where a suite runs: in `root`; `above` is outside of it and takes what a suite reports."""

    above: pathlib.Path

    @property
    def root(self):
        return self.above / "root"


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: str
    out: str
    err: str
    seconds: float
    redirected: int = 0  # how many files were born in a branch


def lines_printed(place, ended):
    return ended.out.splitlines()


@dataclass(frozen=True)
class Suite:
    """A command that is run in the root, and what two runs of it must agree on besides what they leave there.

    `redirects`: a run under shunt in which no file was born in a branch shows nothing, and fails.
    `refused`: some of its processes become another user, whom the library refuses with a word on standard error."""

    name: str
    command: Callable[[Place], list]
    outcomes: Callable[[Place, Ended], list] = lines_printed  # lines; or, of a suite of tests, `NAME: OUTCOME`
    unit: str = "lines"
    as_nobody: bool = False
    redirects: bool = True
    refused: bool = False
    any_content: tuple = ()  # patterns of paths that may differ in size and content
    timeout: int = 600
    settings: dict = field(default_factory=dict)


def script(name, *words, program=PYTHON):
    """A command: a program's file of this directory, with these words."""
    return lambda place: [program, HERE / name, *words]


def environment(place, settings):
    kept = {key: value for key, value in os.environ.items() if not FOREIGN_ENVIRONMENT.match(key)}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(place.root), "TMPDIR": str(place.root), **settings}


def execute(command, place, settings, timeout):
    """Runs a command in the root to its end, or kills it with its children."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   cwd=place.root, env=environment(place, settings), start_new_session=True)
        try:
            status = str(process.wait(timeout))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            status = f"none within {timeout} s"
        texts = [stream.seek(0) or stream.read().decode(errors="replace") for stream in (out, err)]
    return Ended(status, *texts, time.monotonic() - began)


def make_place(above, as_nobody):
    place = Place(above)
    place.root.mkdir(parents=True)
    for path in (place.above, place.root):
        path.chmod(0o755)
        if as_nobody:
            os.chown(path, NOBODY, NOBODY)
    return place


def words(suite, place, prefix, afterwards):
    """All words of a run. The suite's command is followed by another, whose status does not count."""
    then = ["sh", "-c", f'"$@"; status=$?; {afterwards}; exit $status', "sh"]
    return [*(AS_NOBODY if suite.as_nobody else []), *prefix, *then, *suite.command(place)]


def run_natively(suite, place):
    return execute(words(suite, place, [], ":"), place, suite.settings, suite.timeout)


def redirected(report):
    """How many files the daemon says were born in its branch."""
    try:
        return json.loads(report.read_text())[0]["counters"]["redirected"]
    except (OSError, ValueError, LookupError):
        return 0


def run_under_shunt(suite, place, shunt):
    report = place.above / "status.json"
    ask = f"{shlex.quote(str(shunt))} status --root {shlex.quote(str(place.root))} --json > {shlex.quote(str(report))}"
    prefix = [shunt, "run", "--root", place.root, "--placement", "branch", "--"]
    ended = execute(words(suite, place, prefix, ask), place, suite.settings, 4 * suite.timeout)
    if (place.root / ".shunt").exists():  # it was killed, or could not export
        execute([*(AS_NOBODY if suite.as_nobody else []), shunt, "stop", "--root", place.root], place, {}, 60)
    return dataclasses.replace(ended, redirected=redirected(report))


@dataclass(frozen=True)
class Account:
    """What became of a run, as lines that two runs must agree on."""

    lines: list
    left: list
    unit: str
    seconds: float
    redirected: int

    def __str__(self):
        if self.unit == "tests":
            kinds = collections.Counter((line.partition(": ")[2].split() or ["?"])[0] for line in self.lines[1:])
            return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        if len(self.lines) == 2 and not self.left:
            return self.lines[1]
        return f"{len(self.lines) - 1} {self.unit}, {len(self.left)} names left"

    @property
    def is_empty(self):
        return len(self.lines) + len(self.left) <= 1


def account(suite, place, ended):
    said = [] if suite.refused else [line for line in ended.err.splitlines() if line.startswith("shunt: ")]
    lines = [f"exit status {ended.status}", *said, *suite.outcomes(place, ended)]
    lines = [line.replace(str(place.above), "ABOVE") for line in lines]
    left = tree.described(place.root, suite.any_content)
    return Account(lines, left, suite.unit, ended.seconds, ended.redirected)


@dataclass(frozen=True)
class Outcome:
    """A suite's two accounts, and how they differ: lines of a diff, empty if they do not."""

    suite: Suite
    native: Account
    shunt: Account
    different: list


def compare(suite, native, shunt):
    if native.is_empty or (suite.unit == "lines" and native.lines[0] != GOOD):
        return ["it cannot even do its work natively:", *native.lines[:10]]
    if suite.redirects and shunt.redirected == 0:
        return ["no file was redirected: this shows nothing"]
    return list(difflib.unified_diff(native.lines + native.left, shunt.lines + shunt.left, "native", "shunt",
                                     lineterm="", n=0))


def run_both(suite, area, shunt):
    """Runs a suite in both ways, in new directories of `area`, which stay if it differs."""
    above = pathlib.Path(tempfile.mkdtemp(prefix="suite.", dir=area))
    above.chmod(0o755)
    # Names of one length, since some programs leave traces of how long a path is.
    places = [make_place(above / name, suite.as_nobody) for name in ("plain", "shunt")]
    endings = [run_natively(suite, places[0]), run_under_shunt(suite, places[1], shunt)]
    for place, ended in zip(places, endings):
        (place.above / "out").write_text(ended.out)
        (place.above / "err").write_text(ended.err)
    native, seen = (account(suite, place, ended) for place, ended in zip(places, endings))
    different = compare(suite, native, seen)
    if different:
        different.append(f"(both are kept in {above})")
    else:
        shutil.rmtree(above)
    return Outcome(suite, native, seen, different)
