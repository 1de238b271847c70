# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Rounds of work and kills. Each has a directory of its own, in which workers of all nodes work at the same time, and
ends with all that can be looked at compared with the oracle."""

import errno
import itertools
import os
import pathlib
import random
import signal
import sys
import time
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "node"))

import ground
from daemons import is_running, supervisor_of
from oracle import Failed, Oracle

WORKERS = 4
KILLS_A_ROUND = 10
OPERATIONS_MAX = 10**6  # none comes so far
LONGEST_LIFE = 0.03  # seconds from one kill to the next


def wait_until(condition, complaint, pause=0.01):
    until = time.monotonic() + ground.PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise Failed(complaint)
        time.sleep(pause)


def wait_until_gone(pids):
    wait_until(lambda: not any(is_running(pid) for pid in pids), f"{pids} were killed and do not end", pause=0.001)


def with_supervisors(daemons):
    """First those that would start a daemon again."""
    daemons = list(daemons)
    return [*itertools.chain.from_iterable(map(supervisor_of, daemons)), *daemons]


@dataclass
class Figures:
    """What was done, to be printed."""

    kills: int = 0
    rounds: int = 0
    operations: int = 0
    cut: int = 0  # operations that a kill came into
    names: int = 0
    sights: int = 0
    began: float = field(default_factory=time.monotonic)

    def __str__(self):
        return (f"{self.kills} kills, {self.rounds} rounds, {self.operations} operations, {self.cut} of them cut off, "
                f"{self.sights} listings of {self.names} names, {time.monotonic() - self.began:.0f} s")


class Round:
    """A directory, and the workers in it."""

    def __init__(self, place, figures, seed, number):
        self.place, self.figures, self.seed, self.number = place, figures, seed, number
        self.random = random.Random(f"{seed}/{number}")
        self.top = place.root / f"round-{number}"
        self.logs = {}
        self.numbers = itertools.count(1)
        self.workers = {}  # those at work: {number: (node, process)}
        place.on(self.node(), "mkdir", "-p", self.top / "p", self.top / "q")
        (place.area / "logs").mkdir(exist_ok=True)

    def node(self):
        return self.random.choice(self.place.nodes)

    def begin(self, node=None, operations=OPERATIONS_MAX, **options):
        number = next(self.numbers)
        node = node or self.node()
        log = self.logs[number] = self.place.area / "logs" / f"{self.number}.{number}"
        words = [self.place.worker, "work", self.top, log, number, f"{self.seed}{self.number}", operations]
        words += self.place.base.limits
        self.workers[number] = node, self.place.begin(node, *words, **options)
        return number

    def begin_all(self):
        nodes = itertools.cycle(self.place.nodes)
        for node in itertools.islice(nodes, max(WORKERS, len(self.place.nodes) + 1)):
            self.begin(node)
        self.place.begin_movers()

    def live(self, most=LONGEST_LIFE):
        time.sleep(self.random.random() * most * self.place.base.pace)

    def kill(self, numbers):
        """At once."""
        processes = [self.workers.pop(number)[1] for number in numbers]
        ground.end(*processes)
        self.figures.kills += [process.wait() for process in processes].count(-signal.SIGKILL)

    def kill_one(self):
        """Another worker takes its place."""
        number = self.random.choice(sorted(self.workers))
        node = self.workers[number][0]
        self.kill([number])
        self.begin(node)

    def finish(self):
        """Those that live end their last operation."""
        for _, process in self.workers.values():
            process.send_signal(signal.SIGTERM)
        for number, (node, process) in self.workers.items():
            try:
                status = process.wait(ground.PATIENCE)
            except ground.subprocess.TimeoutExpired:
                raise Failed(f"worker {number} on {node} hangs: {self.logs[number].read_text().splitlines()[-1]}") from None
            if status not in (0, -signal.SIGTERM):  # one that is told before it can listen
                raise Failed(f"worker {number} on {node} ended with status {status}")
        self.workers = {}

    def oracle(self, excused=()):
        self.place.end_movers()
        oracle = Oracle(self.logs, excused)
        operations = [worker.operations for worker in oracle.workers.values()]
        self.figures.operations += oracle.operations
        self.figures.cut += sum(bool(of_one) and not of_one[-1].is_done for of_one in operations)
        return oracle

    def compare(self, oracle, whose, listed):
        complaints = oracle.complaints(listed)
        self.figures.sights += 1
        self.figures.names += len(listed)
        if complaints:
            raise Failed(f"round {self.number}, seed {self.seed}: what {whose} sees of {self.top} is not what must be:\n  "
                         + "\n  ".join(complaints[:30]))

    def check_cold(self, oracle):
        for whose, listed in self.place.sights(self.top).items():
            self.compare(oracle, whose, listed)

    def check_live(self, oracle):
        node = self.node()
        live = self.place.look(node, self.top)
        self.compare(oracle, f"a program on {node}", live)
        for whose, listed in self.place.sights(self.top).items():
            if without_directories_links(listed) != without_directories_links(live):
                different = set(without_directories_links(listed)) ^ set(without_directories_links(live))
                raise Failed(f"round {self.number}: {whose} and a program on {node} differ: {sorted(map(str, different))}")

    def remove(self):
        self.place.on(self.node(), "rm", "-r", self.top)
        for log in self.logs.values():
            log.unlink(missing_ok=True)


def without_directories_links(listed):
    """A directory's count of links is the file system's own business."""
    return sorted((path, entry.kind, entry.inode, entry.size, entry.token, entry.links if entry.kind == "f" else 0)
                  for path, entry in listed)


class Mode:
    """A way to kill. A batch of rounds is looked at once more by a session that begins after it."""

    rounds_a_batch = 10
    settings = {}  # of the session
    excused = ()  # errors that workers may get; then nothing was done

    def __init__(self, place, seed, say=lambda text: None):
        self.place, self.seed, self.say = place, seed, say
        self.figures = Figures()
        self.standing = []  # rounds that a later session is to see: (round, oracle)

    def kill_in(self, round_):
        """Works and kills until enough is killed. True: the session is dead, too."""
        raise NotImplementedError

    def run(self, kills):
        self.place.common.update(self.settings)
        self.place.start()
        while self.figures.kills < kills:
            self.one_round()
            if len(self.standing) == self.rounds_a_batch or self.figures.kills >= kills:
                self.begin_anew()
            self.say(f"{type(self).__name__.lower()}: {self.figures}")
        self.place.stop()
        self.place.is_clean()

    def living_daemon(self, node):
        """Once it is a member again, if it was killed before."""
        wait_until(lambda: is_running(self.place.daemons().get(node, 0)), f"the daemon of {node} was not started again")
        return self.place.daemons()[node]

    def one_round(self):
        round_ = Round(self.place, self.figures, self.seed, self.figures.rounds)
        self.figures.rounds += 1
        is_dead = self.kill_in(round_)
        oracle = round_.oracle(self.excused)
        if is_dead:
            round_.check_cold(oracle)
            self.place.start()
        round_.check_live(oracle)
        self.standing.append((round_, oracle))

    def begin_anew(self):
        """A new session sees what the old one has seen, and removes it."""
        self.heal()
        self.place.start()
        for round_, oracle in self.standing:
            round_.check_live(oracle)
            round_.remove()
        self.standing = []

    def heal(self):
        """What first use has not settled, fsck finds and mends; and nothing is for a person to look at."""
        self.place.stop()
        self.place.fsck("--repair", statuses=(0, 1))
        self.place.is_clean()


class Clients(Mode):
    """Of processes that work, one after the other, while the others go on."""

    def heal(self):
        """The daemon has settled all."""
        self.place.stop()
        self.place.is_clean()

    def kill_in(self, round_):
        round_.begin_all()
        for _ in range(KILLS_A_ROUND):
            round_.live()
            round_.kill_one()
        round_.live()
        round_.finish()


class Everything(Mode):
    """Of all processes and all daemons at once, with all indexes deleted."""

    rounds_a_batch = 5
    excused = (errno.EIO,)  # of those that outlive their daemon briefly

    def kill_in(self, round_):
        round_.begin_all()
        round_.live(4 * LONGEST_LIFE)
        workers = [process for _, process in round_.workers.values()]
        daemons = with_supervisors(self.place.daemons().values())
        victims = [*workers, *daemons]
        round_.random.shuffle(victims)
        victims.sort(key=lambda victim: victim not in daemons[:len(daemons) // 2])  # else they start daemons again
        ground.end(*victims)
        for process in workers:
            process.wait()
        wait_until_gone([victim for victim in victims if isinstance(victim, int)])
        round_.workers = {}
        for node in self.place.nodes:
            self.place.forget(node)
        self.figures.kills += 1
        return True


class Daemons(Mode):
    """Of a daemon, one after the other, while work goes on: its supervisor starts it again, and nobody gets an error. It
    gives up after eight that lived briefly, so that each round has a session of its own."""

    rounds_a_batch = 1

    def kill_in(self, round_):
        round_.begin_all()
        for _ in range(KILLS_A_ROUND // 2):
            round_.live(4 * LONGEST_LIFE)
            ground.end(self.living_daemon(round_.node()))
            self.figures.kills += 1
        round_.live(4 * LONGEST_LIFE)
        round_.finish()


class Nodes(Mode):
    """Of a node: its daemon and its processes at once, and its index is gone. Nobody but this program starts it again."""

    excused = (errno.EIO,)

    @staticmethod
    def in_order(daemons, workers):
        return [*daemons, *workers]

    def kill_on(self, round_, node):
        daemon = self.place.daemons()[node]
        numbers = [number for number, (where, _) in round_.workers.items() if where == node]
        processes = [round_.workers.pop(number)[1] for number in numbers]
        ground.end(*self.in_order(with_supervisors([daemon]), processes))
        for process in processes:
            process.wait()
        wait_until_gone([daemon])
        self.place.forget(node)
        self.figures.kills += 1

    def kill_in(self, round_):
        round_.begin_all()
        for _ in range(KILLS_A_ROUND // 5):
            round_.live()
            node = round_.node()
            self.kill_on(round_, node)
            self.place.start_node(node)
            round_.begin(node)
        round_.live(4 * LONGEST_LIFE)
        round_.finish()


class Vanished(Nodes):
    """The same, and it stays away until the others have gone on without it; none of them gets an error, nor do its own
    processes, since they do not outlive their daemon by a moment."""

    rounds_a_batch = 3
    settings = {"SHUNT_STALE": "6"}  # the shortest
    excused = ()

    @staticmethod
    def in_order(daemons, workers):
        return [*workers, *daemons]

    def dropped(self, daemon):
        """Its process number is no member's any more."""
        wait_until(lambda: daemon not in self.place.daemons().values(),
                   f"daemon {daemon} is silent, and the others do not go on", pause=0.1)

    def kill_in(self, round_):
        round_.begin_all()
        round_.live(4 * LONGEST_LIFE)
        node = round_.node()
        daemon = self.place.daemons()[node]
        self.kill_on(round_, node)
        self.dropped(daemon)
        round_.live(4 * LONGEST_LIFE)
        self.place.start_node(node)
        round_.begin(node)
        round_.live(4 * LONGEST_LIFE)
        round_.finish()


class Silent(Vanished):
    """Of nobody: a daemon stands still until the others have gone on without its node, and then goes on. Its processes wait
    when they have nothing to go by any more."""

    def kill_in(self, round_):
        round_.begin_all()
        round_.live(4 * LONGEST_LIFE)
        node = round_.node()
        daemon = self.place.daemons()[node]
        os.kill(daemon, signal.SIGSTOP)
        self.dropped(daemon)
        round_.live(4 * LONGEST_LIFE)
        os.kill(daemon, signal.SIGCONT)
        self.figures.kills += 1
        self.living_daemon(node)
        round_.live(4 * LONGEST_LIFE)
        round_.finish()


MODES = {"clients": Clients, "shuntd": Daemons, "node": Nodes, "vanished": Vanished, "silent": Silent,
         "everything": Everything}
