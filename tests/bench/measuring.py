# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the benchmarks share: an area on the file system that is measured, native runs and runs under shunt by turns, and
findings, which are judged by their medians, written down with the machine they were made on, and shown as a table.

A benchmark is a module with COUNTS, {option: (how many, how many with --quick, what it is)}, and measure(options), which
gives its findings. It ends with main(): every benchmark runs by itself, too."""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
MEMORY = "/dev/shm"
PATIENCE = 60


class Failed(Exception):
    """What was to be measured did not work, or would have shown nothing."""


FAILURES = (Failed, OSError, subprocess.SubprocessError)


def say(text):
    """Progress on standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass
class Finding:
    """One value for each round. The limits are those of the figure, None where there is none."""

    figure: int
    what: str
    unit: str
    values: list
    least: float = None
    most: float = None

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def held(self):
        """None: nothing was wanted."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.median >= self.least) and (self.most is None or self.median <= self.most)

    @property
    def wanted(self):
        if self.least is not None and self.most is not None:
            return f"{number(self.least)} to {number(self.most)}"
        return f"at least {number(self.least)}" if self.least is not None else \
            f"at most {number(self.most)}" if self.most is not None else ""

    def as_json(self):
        return {**dataclasses.asdict(self), "median": self.median, "lowest": min(self.values),
                "highest": max(self.values), "held": self.held}


def number(value):
    """With three digits that say something, or all before the point."""
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def table(findings):
    """In Markdown."""
    lines = ["| figure | what | wanted | found: median (lowest to highest) | held |", "| --- | --- | --- | --- | --- |"]
    for one in findings:
        spread = "" if len(one.values) == 1 else f" ({number(min(one.values))} to {number(max(one.values))})"
        held = {None: "", True: "yes", False: "**no**"}[one.held]
        lines.append(f"| {one.figure} | {one.what} | {one.wanted} | {number(one.median)} {one.unit}{spread} | {held} |"
                     .replace("  ", " "))
    return "\n".join(lines)


def file_system(directory):
    words = ["findmnt", "-n", "-o", "FSTYPE", "-T", directory]
    found = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return found[-1] if found else "?"  # the last one mounted there is what is seen


def machine(directory):
    """What a figure is worth nothing without."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    virtual = any(line.startswith("flags") and "hypervisor" in line.split() for line in lines)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": model, "cores": os.cpu_count(), "virtual": virtual, "memory": f"{memory:.0f} GiB",
            "kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "file system": file_system(directory)}


def in_words(about):
    kind = "virtual machine" if about["virtual"] else "machine"
    return (f"{kind} with {about['cores']} cores ({about['processor']}), {about['memory']}, Linux {about['kernel']}, "
            f"{about['libc']}, {about['file system']}")


def report(findings, options, failures=()):
    """Prints the table, writes the results, gives the exit status."""
    about, date = machine(options.dir), datetime.datetime.now(datetime.timezone.utc)
    print(f"{date:%d %B %Y}, {in_words(about)}\n\n{table(findings)}")
    for failure in failures:
        print(f"\n{failure}")
    if options.results:
        whole = {"date": date.isoformat(timespec="seconds"), "machine": about, "rounds": options.rounds,
                 "findings": [one.as_json() for one in findings], "failures": list(failures)}
        options.results.write_text(json.dumps(whole, indent=1) + "\n")
    return 1 if failures else 0


def common_options(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parents[2] / "build"
    parser.add_argument("--build", type=pathlib.Path, default=default, help="the build directory")
    parser.add_argument("--dir", type=pathlib.Path, default=MEMORY, help=f"where to measure (default: {MEMORY})")
    parser.add_argument("--rounds", type=int, help="how often (default: 6; quick: 1)")
    parser.add_argument("--quick", action="store_true", help="so few of everything that it shows only that it works")
    parser.add_argument("--results", type=pathlib.Path, help="a file for all values (JSON)")
    return parser


def add_counts(parser, counts):
    for name, (usual, quick, what) in counts.items():
        parser.add_argument(f"--{name}", type=int, help=f"{what} (default: {usual:,}; quick: {quick:,})")


def settle(options, counts):
    """Gives what was not said its default. A process that is told to end from now on leaves nothing behind."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    options.build = options.build.resolve()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 6
    for name, (usual, quick, _) in counts.items():
        name = name.replace("-", "_")
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)


def arguments(doc, counts):
    """Of a benchmark that runs by itself."""
    parser = common_options(doc)
    add_counts(parser, counts)
    options = parser.parse_args()
    settle(options, counts)
    return options


def main(measure, doc, counts):
    options = arguments(doc, counts)
    try:
        findings = measure(options)
    except FAILURES as failure:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {failure}")
    sys.exit(report(findings, options))


def order_of(names, turn):
    """Each is the first as often as the last or between others, so that what comes and goes on the machine, and what the one
    before left after, meets all alike: in as many rounds as there are of them, and then backwards. So six rounds treat two and
    three ways alike."""
    first = turn % len(names)
    order = names[first:] + names[:first]
    return order if turn // len(names) % 2 == 0 else order[::-1]


def alternate(rounds, what, ways):
    """Calls each of `ways`, {name: function of the round's number}, in every round: [{name: answer}]."""
    answers = []
    for turn in range(rounds):
        say(f"{what}: round {turn + 1} of {rounds}")
        found = {name: ways[name](turn) for name in order_of(list(ways), turn)}
        answers.append({name: found[name] for name in ways})
    return answers


def repeat(rounds, what, way):
    """Where there is nothing to take turns with: [answer]."""
    return [one[what] for one in alternate(rounds, what, {what: way})]


def cpu_of(pid):
    """Microseconds of CPU of a process so far, its threads that have ended included."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1000  # what clock_getcpuclockid(3) gives


def switches_of(pid):
    """How often each thread of a process was taken off a processor: {thread: times}."""
    return {task.name: sum(int(line.split()[1]) for line in (task / "status").read_text().splitlines()
                           if "ctxt_switches" in line) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


class Area:
    """A directory of one's own with a plain directory and a root, which are used alike. All ends with the block."""

    def __init__(self, options, parent=None):
        self.build = options.build
        self.shunt = self.build / "tools" / "shunt"
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="shunt-bench.", dir=parent or options.dir)).resolve()
        # Where shunt's own files of a node are as a rule, too: in memory.
        self.run_dir = tempfile.mkdtemp(prefix="shunt-bench-run.", dir=MEMORY if os.path.isdir(MEMORY) else None)
        self.root, self.plain = self.top / "root", self.top / "plain"
        for directory in (self.root, self.plain):
            directory.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
        self.environment = {**kept, "LC_ALL": "C", "SHUNT_RUN_DIR": self.run_dir}
        self.crews = []

    def __enter__(self):
        return self

    def end_crews(self):
        """Before what they have in use goes."""
        for crew in self.crews:
            crew.end()
        self.crews.clear()

    def __exit__(self, *_):
        self.end_crews()
        with contextlib.suppress(Failed):
            self.stop()
        shutil.rmtree(self.run_dir)
        shutil.rmtree(self.top)

    def run(self, *words, **options):
        words = list(map(str, words))
        done = subprocess.run(words, env=self.environment, stdout=options.pop("stdout", subprocess.PIPE), text=True,
                              check=False, **options)
        if done.returncode != 0:
            raise Failed(f"status {done.returncode} of {' '.join(words)}")
        return done.stdout

    def words(self, *words, node="n0"):
        """A command under shunt on a node."""
        return [self.shunt, "exec", "--root", self.root, "--node", node, "--", *words]

    def under_shunt(self, *words, node="n0", **options):
        return self.run(*self.words(*words, node=node), **options)

    def seconds(self, *words):
        """How long a command took; what it prints is not looked at."""
        began = time.monotonic()
        self.run(*words, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    def start(self, *nodes, placement="branch"):
        for node in nodes or ["n0"]:
            self.run(self.shunt, "start", "--root", self.root, "--node", node, "--placement", placement)

    def stop(self):
        if (self.root / ".shunt").exists():
            self.run(self.shunt, "stop", "--all", "--root", self.root)

    def status(self, *words):
        return json.loads(self.run(self.shunt, "status", "--root", self.root, "--json", *words))[0]

    def daemons(self):
        """{node: what the session says of its member}."""
        return {member["node"]: member for member in self.status()["members"]}

    def crew(self, program, directory, processes, *words, node=None):
        """Natively, or under shunt on a node."""
        words = [self.build / "tests" / "bench" / program, directory, processes, *words]
        self.crews.append(Crew(self.words(*words, node=node) if node else words, self.environment))
        return self.crews[-1]

    def redirected(self):
        """How many files are in branches."""
        return sum(len(names) for mirror in self.root.glob(".shunt/b/*/*/") for _, _, names in os.walk(mirror))

    def must_be_redirected(self):
        if self.redirected() == 0:
            raise Failed("nothing was redirected, so this would show nothing")


class Crew:
    """Processes that make calls when they are told to (workers.h)."""

    def __init__(self, words, environment):
        self.process = subprocess.Popen(list(map(str, words)), env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed(f"{words[0]} does not get ready")
        self.active = 0

    def begin(self, call, count, prefix="f", first=0, active=1):
        self.process.stdin.write(f"{call} {prefix} {first} {count} {active}\n")
        self.process.stdin.flush()
        self.active = active

    def wait(self):
        """[(seconds, microseconds of CPU, switches)] of what was begun, one for each process."""
        told = [list(map(int, self.process.stdout.readline().split())) for _ in range(self.active)]
        if not all(told):
            raise Failed("a process of a crew failed")
        return [(elapsed / 1e9, used / 1e3, switches) for elapsed, used, switches in told]

    def make(self, call, count, **options):
        self.begin(call, count, **options)
        return self.wait()

    def microseconds(self, call, count, **options):
        """Of one call of the first process."""
        return self.make(call, count, **options)[0][0] / count * 1e6

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
