#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""scaling.py [--measured FILE] [--quick] [--out FILE]: a simulation of sessions of 2 to 4,096 nodes.

Its unit costs are what scaling_measure.py found with 1 to 4 daemons. With these it first tells what 1 to 64 daemons that
share the cores of one machine do, and compares that with what was measured; if any figure is more than a fifth off, the
status is 1. Then it gives each daemon a node of its own and puts a file system beneath. docs/scaling.md says what is assumed."""

import argparse
import collections
import json
import math
import pathlib
import random
import sys
from dataclasses import dataclass

import simpy

MEASURED = pathlib.Path(__file__).with_name("scaling.json")
TOLERANCE = 0.2
CALIBRATED = 4  # daemons of a session
CLIENTS = 4  # of a node, where more than the costs is compared
CREATING = 0.7  # of a client's work is over when it tells how it ended
WINDOW = 4  # frames on their way to a daemon (daemon/peer/peers.c); so many are acknowledged at once, or after half a second
ACKNOWLEDGE_AFTER = 0.5e6  # microseconds, as all times here
SAY_AFTER = 0.5e6  # what nobody waits for, unless a frame goes there anyway


# What is known of one machine.


@dataclass
class Costs:
    """Of CPU time, in microseconds, while nothing else uses the caches."""

    client: float = 0.0  # of a create, with its system calls
    lone_client: float = 0.0  # ... if there is one daemon, which answers sooner than a client is asleep
    batch: float = 0.0  # of a daemon, with what it is to sleep before and to be woken
    request: float = 0.0
    frame: float = 0.0  # sent or received, with the item in it
    cast: float = 0.0  # more for a part of a collective, or what came of one
    kick: float = 0.0  # to wake a thread on a core that does nothing
    eager: float = 0.0  # no cost: which share of the daemons that are woken come before all processes that wait for a core


def solve(rows, values):
    """Least squares of few unknowns that are not negative: those that would be are left out."""
    count = len(rows[0])
    kept = list(range(count))
    while kept:
        matrix = [[*(sum(row[i] * row[j] for row in rows) for j in kept), sum(row[i] * value for row, value in zip(rows, values))]
                  for i in kept]
        found = eliminate(matrix)
        if min(found) >= 0:
            return [found[kept.index(i)] if i in kept else 0.0 for i in range(count)]
        kept.remove(kept[found.index(min(found))])
    return [0.0] * count


def eliminate(matrix):
    """Solves linear equations, the last column being the right sides."""
    size = len(matrix)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(size):
            factor = matrix[row][column] / matrix[column][column] if row != column else 0
            matrix[row] = [one - factor * other for one, other in zip(matrix[row], matrix[column])]
    return [matrix[row][size] / matrix[row][row] for row in range(size)]


class Machine:
    """What was measured on it: rows of scaling_measure.py."""

    def __init__(self, rows):
        self.rows = rows
        self.side_by_side = [row for row in rows if row["what"] == "side by side"]  # more and more of them
        self.costs = self.calibrate()

    def row(self, what, daemons, clients=None):
        return next((row for row in self.rows if row["what"] == what and row["daemons"] == daemons and
                     row.get("clients") == clients), None)

    def coldness(self, who, processes):
        """How much longer everything takes where so many processes use the caches by turns, as those of small sessions
        do that have nothing to do with each other."""
        first = self.side_by_side[0]
        points = [(math.log(row["daemons"] * (1 + row["clients"])), max(1.0, used(row, who) / used(first, who)))
                  for row in self.side_by_side]
        return interpolate(points, math.log(max(processes, 1)))

    def calibrate(self):
        """From sessions of few daemons, which have the caches that one of four has."""
        rows = [row for row in self.rows if row["what"] == "creates" and row["daemons"] <= CALIBRATED]
        lone, several = rows[0], rows[1:]
        costs = Costs(lone_client=lone["client us"], client=sum(row["client us"] for row in several) / len(several))
        # Relative to what was measured, or the slowest would decide.
        costs.batch, costs.request, costs.frame = solve(
            [[counted / used(row, "daemon") for counted in (row["batches"], row["requests"], frames_of(row))] for row in rows],
            [1.0] * len(rows))
        return costs


def used(row, who):
    """By clients, or by daemons: which of its two threads serves what has come is a matter of which one sleeps (daemon/main.c)."""
    return row["main us"] + row["fabric us"] if who == "daemon" else row["client us"]


def frames_of(row):
    return row["frames_sent"] + row["frames_received"]


def interpolate(points, x):
    """Between the nearest two; beyond the last, what it is there."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]


# Threads on cores.


class Cores:
    """Of one node: a process that is to run waits for one that is free, in its turn, and keeps it until it sleeps. Some of the
    daemons that are woken come before all that wait: a scheduler is fair to processes that sleep often."""

    def __init__(self, env, count, costs):
        self.env, self.costs = env, costs
        self.free = [-math.inf] * count  # since when each of them is
        self.waiting = collections.deque()
        self.random = random.Random(2)

    def take(self, daemon=False):
        if self.free:
            if self.free.pop(0) < self.env.now and self.costs.kick:
                yield self.env.timeout(self.costs.kick)
            return
        turn = self.env.event()
        if daemon and self.random.random() < self.costs.eager:
            self.waiting.appendleft(turn)
        else:
            self.waiting.append(turn)
        yield turn

    def give(self):
        if self.waiting:
            self.waiting.popleft().succeed()
        else:
            self.free.append(self.env.now)


class Thread:
    """Sleeps until something is put before it, and takes all of that at once, again and again."""

    def __init__(self, env, cores, serve):
        self.env, self.cores, self.serve = env, cores, serve
        self.waiting, self.wake = [], None
        env.process(self.run())

    def put(self, item, rings=True):
        self.waiting.append(item)
        if rings and self.wake is not None and not self.wake.triggered:
            self.wake.succeed()

    def run(self):
        while True:
            self.wake = self.env.event()
            yield self.wake
            self.wake = None
            yield from self.cores.take(daemon=True)
            while self.waiting:
                taken, self.waiting = self.waiting, []
                cost, deliver = self.serve(taken)
                # The first half is the transaction; then one after the other is told.
                yield self.env.timeout(cost / 2 if deliver else cost)
                for to, item in deliver:
                    yield self.env.timeout(cost / 2 / len(deliver))
                    to(item)
            self.cores.give()


class Patience:
    """The members that something waits for, and whether it has waited long."""

    def __init__(self, env, limit):
        self.env, self.limit = env, limit
        self.since = {}
        self.begun = collections.deque()  # in their order, with those that have ended

    def begin(self, number):
        if number not in self.since:
            self.since[number] = self.env.now
            self.begun.append((self.env.now, number))

    def end(self, number):
        self.since.pop(number, None)

    def over(self):
        late = []
        while self.begun and self.env.now - self.begun[0][0] >= self.limit:
            since, number = self.begun.popleft()
            if self.since.get(number) == since:
                late.append(number)
        return late


class Daemon:
    """Serves one batch after the other. Items for one daemon share the frames of a batch, and where a WINDOW of frames is on
    its way there, those of several."""

    def __init__(self, net, number, cores):
        self.net, self.number = net, number
        self.thread = Thread(net.env, cores, self.serve)
        self.received = collections.Counter()  # frames that were not acknowledged, by their sender
        self.unheard = Patience(net.env, ACKNOWLEDGE_AFTER)
        self.due = set()  # members that have sent so many
        self.late = collections.defaultdict(list)  # items that nobody waits for
        self.unsaid = Patience(net.env, SAY_AFTER)
        self.flying = collections.Counter()  # frames that others have not acknowledged
        self.items = collections.defaultdict(list)  # that are to go out, by receiver
        self.casts = {}

    def serve(self, taken):
        net, costs, items, deliver = self.net, self.net.costs, self.items, []
        cost = costs.batch
        for kind, *rest in taken:
            if kind == "frame":
                sender, those, acknowledged = rest
                cost += costs.frame
                self.flying[sender] -= acknowledged
                self.note(sender, those)
                cost += costs.cast * sum(item[0] in ("cast", "told") for item in those)
                for item in those:
                    self.take(item, items, deliver)
            else:
                cost += costs.request
                self.take((kind, *rest), items, deliver)
        for number in self.unsaid.over():
            items.setdefault(number, [])
        for number in [number for number in items if self.flying[number] < WINDOW]:
            cost += self.send(number, items.pop(number), deliver)
            self.flying[number] += 1
        for number in sorted(self.due.union(self.unheard.over())):
            cost += self.send(number, [], deliver)
        net.batches += 1
        return cost * net.cold, deliver

    def send(self, number, items, deliver):
        """Each frame acknowledges what has come, and takes along what nobody waits for."""
        frame = ("frame", self.number, self.late.pop(number, []) + items, self.received.pop(number, 0))
        self.due.discard(number)
        self.unheard.end(number)
        self.unsaid.end(number)
        deliver.append((self.net.carry_to(number), frame))
        self.net.frames += 1
        return self.net.costs.frame

    def note(self, sender, items):
        if not items:  # an acknowledgement itself
            return
        self.unheard.begin(sender)
        self.received[sender] += 1
        if self.received[sender] == WINDOW:
            self.due.add(sender)

    def take(self, item, items, deliver):
        getattr(self, f"take_{item[0]}")(item, items, deliver)

    # Of names: a question to the home, its answer, the word of how it ended.

    def take_reserve(self, item, items, deliver):
        _, home, answered = item
        if home == self.number:
            deliver.append((answered.succeed, None))
        else:
            items[home].append(("ask", self.number, answered))

    def take_ask(self, item, items, _):
        _, asker, answered = item
        items[asker].append(("reply", answered))

    def take_reply(self, item, _, deliver):
        deliver.append((item[1].succeed, None))

    def take_confirm(self, item, *_):
        home = item[1]
        if home != self.number:
            self.late[home].append(("end",))
            self.unsaid.begin(home)

    def take_end(self, *_):
        pass

    # Of all daemons: half of the others go to each of two, which do the same; answers come back (daemon/rpc/collective.c).

    def take_collective(self, item, items, deliver):
        others = [number for number in range(len(self.net.daemons)) if number != self.number]
        self.spread(item[1], None, others, items, deliver)

    def take_cast(self, item, items, deliver):
        _, answered, parent, others = item
        self.spread(answered, parent, others, items, deliver)

    def spread(self, answered, parent, others, items, deliver):
        half = (len(others) + 1) // 2
        parts = [part for part in (others[:half], others[half:]) if part]
        self.casts[answered] = [len(parts), parent]
        for part in parts:
            items[part[0]].append(("cast", answered, self.number, part[1:]))
        self.settle(answered, items, deliver)

    def take_told(self, item, items, deliver):
        self.casts[item[1]][0] -= 1
        self.settle(item[1], items, deliver)

    def settle(self, answered, items, deliver):
        left, parent = self.casts[answered]
        if left > 0:
            return
        del self.casts[answered]
        if parent is None:
            deliver.append((answered.succeed, None))
        else:
            items[parent].append(("told", answered))


class Net:
    """A session: its daemons, on the cores of one machine or each on a node's own, and the wire between them."""

    def __init__(self, costs, count, cores=None, cold=(1.0, 1.0), wire=0.0, node_cores=4):
        self.env = simpy.Environment()
        self.costs, self.wire = costs, wire
        self.cold, self.client_cold = cold
        self.frames = self.batches = self.files = 0
        shared = Cores(self.env, cores, costs) if cores else None
        self.cores = [shared or Cores(self.env, node_cores, costs) for _ in range(count)]
        self.daemons = []
        self.daemons += [Daemon(self, number, self.cores[number]) for number in range(count)]
        self.random = random.Random(1)

    def carry_to(self, number):
        put = self.daemons[number].thread.put
        if self.wire == 0:
            return put
        return lambda frame: self.env.timeout(self.wire).callbacks.append(lambda _: put(frame))

    def client(self, number, files):
        """Makes one file after the other, and never waits for the word of how it ended to be heard."""
        put, costs = self.daemons[number].thread.put, self.costs
        sole = len(self.daemons) == 1
        work = (costs.lone_client if sole else costs.client) * self.client_cold
        home = self.random.randrange(len(self.daemons))
        yield from self.cores[number].take()
        while True:
            answered = self.env.event()
            put(("reserve", home, answered))
            self.cores[number].give()
            yield answered
            yield from self.cores[number].take()
            yield self.env.timeout(work * CREATING)
            if files is not None:
                self.cores[number].give()
                yield from files.create(self.env)
                yield from self.cores[number].take()
            put(("confirm", home), rings=False)
            yield self.env.timeout(work * (1 - CREATING))
            self.files += 1
            home = self.random.randrange(len(self.daemons))

    def creates(self, clients, duration, files=None):
        """Files a second, once it has got going."""
        for number in range(len(self.daemons)):
            for _ in range(clients):
                self.env.process(self.client(number, files))
        self.env.run(duration / 2)
        before = self.files
        self.frames = self.batches = 0
        self.env.run(duration)
        made = self.files - before
        return {"rate": made / (duration / 2) * 1e6, "frames": self.frames / made, "batches": self.batches / made}

    def collective(self, count):
        """How long one takes whose asker has nothing else to do."""
        took = []

        def ask():
            for _ in range(count):
                began, answered = self.env.now, self.env.event()
                self.daemons[0].thread.put(("collective", answered))
                yield answered
                yield from self.cores[0].take()
                self.cores[0].give()
                took.append(self.env.now - began)

        self.env.run(self.env.process(ask()))
        return sorted(took)[len(took) // 2]


# The machine that was measured.


def shared_net(machine, count, clients, cores):
    processes = count * (1 + clients)
    cold = [machine.coldness(who, processes) for who in ("daemon", "client")]
    return Net(machine.costs, count, cores=cores, cold=cold)


def compare(machine, told, daemons, duration):
    """Rows: what, daemons, measured, simulated. A process that wants all of the cores gets a share of them."""
    cores, share = told["cores"], told["share"]
    rows = []
    for count in daemons:
        measured = machine.row("creates", count, CLIENTS)
        if measured:
            found = shared_net(machine, count, measured["clients"], cores).creates(measured["clients"], duration)
            rows.append(("creates/s", count, measured["rate"], found["rate"] * share, measured, found))
        measured = machine.row("collective", count)
        if measured:
            found = shared_net(machine, count, 0, cores).collective(30)
            rows.append(("collective us", count, measured["latency us"] / measured["requests"], found, measured, None))
    return rows


def find_rest(machine, told, rounds=4, steps=6):
    """What no counter tells: with what the sessions of few daemons come out best, looked for by turns in ever smaller steps.
    How eager daemons are is seen in their batches, the rest in rates and latencies."""
    counts = sorted({row["daemons"] for row in machine.rows if row["what"] == "creates" and row["daemons"] <= CALIBRATED})
    seen = {"eager": lambda row: row[5]["batches"] / row[4]["batches"] if row[5] else 1.0,
            "kick": lambda row: row[3] / row[2], "cast": lambda row: row[3] / row[2]}
    width = {"eager": 1.0, "kick": 100.0, "cast": 40.0}

    def distance(name, value):
        setattr(machine.costs, name, value)
        return sum(math.log(seen[name](row)) ** 2 for row in compare(machine, told, counts, 2e4))

    for _ in range(rounds):
        for name in seen:
            middle = getattr(machine.costs, name) or width[name] / 2
            low, high = max(0.0, middle - width[name] / 2), middle + width[name] / 2
            for _ in range(steps):
                left, right = low + (high - low) / 3, high - (high - low) / 3
                low, high = (low, right) if distance(name, left) <= distance(name, right) else (left, high)
            setattr(machine.costs, name, (low + high) / 2)
            width[name] /= 2


def print_comparison(rows):
    """The greatest deviation, as a share."""
    print(f"{'on one machine':16}{'daemons':>8}{'measured':>12}{'lowest':>10}{'highest':>10}{'simulated':>12}{'off by':>9}"
          f"{'frames':>9}{'simulated':>11}{'batches':>9}{'simulated':>11}")
    worst = 0.0
    for what, count, measured, simulated, row, found in rows:
        off = simulated / measured - 1
        worst = max(worst, abs(off))
        scale = row["requests"] if what != "creates/s" else 1
        counts = (row["frames_sent"], found["frames"], row["batches"], found["batches"]) if found else ()
        frames = "".join(f"{count:{width}.2f}" for count, width in zip(counts, (9, 11, 9, 11)))
        print(f"{what:16}{count:8}{measured:12.0f}{row['spread'][0] / scale:10.0f}{row['spread'][1] / scale:10.0f}"
              f"{simulated:12.0f}{off:+9.0%}{frames}{'' if count > CALIBRATED else '  (calibrated)'}")
    return worst


# Many nodes, and a file system.


@dataclass
class FileSystem:
    """One metadata service; in a directory that several nodes use, a create keeps it so many times longer."""

    name: str
    private_rate: float  # creates/s
    penalty: float
    latency: float  # of a create that waits for nobody


class Service:
    """A file system at work."""

    def __init__(self, env, system, is_shared):
        self.resource = simpy.Resource(env, capacity=1)
        self.service = 1e6 / system.private_rate * (system.penalty if is_shared else 1)
        self.latency = system.latency

    def create(self, env):
        with self.resource.request() as request:
            yield request
            yield env.timeout(self.service)
        yield env.timeout(self.latency)


# docs/scaling.md says where the figures are from.
SYSTEMS = (FileSystem("Lustre", 56_000 * 2.2, 2.2, 1000.0),
           FileSystem("GPFS", math.sqrt(2_000 * 53_000) * 9.0, 9.0, 1000.0))
HOW = ("shared", "private", "shunt")
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def files_made(machine, system, count, options, how):
    """Files a second that all nodes make together: natively in one directory or in private ones, or under shunt."""
    net = Net(machine.costs, count if how == "shunt" else 0, wire=options.wire)
    clients = count * options.clients
    service = Service(net.env, system, is_shared=how == "shared" and count > 1)
    # Long enough for each client to make some, and for some thousand in all.
    slowest = max(system.latency + 10 * options.wire, clients * service.service)
    duration = max(3 * slowest, 3000 / clients * slowest)
    if how == "shunt":
        return net.creates(options.clients, duration, service)["rate"]
    return natively(net.env, service, machine.costs, clients, duration)


def natively(env, service, costs, clients, duration):
    made = [0]

    def client():
        while True:
            yield env.timeout(costs.client)
            yield from service.create(env)
            made[0] += 1

    for _ in range(clients):
        env.process(client())
    env.run(duration / 2)
    before = made[0]
    env.run(duration)
    return (made[0] - before) / (duration / 2) * 1e6


def latency(machine, count, options):
    return Net(machine.costs, count, wire=options.wire).collective(3)


def extrapolate(machine, nodes, options):
    """Rows of figures by the number of nodes, and their names."""
    names = [*(f"{system.name} {how}" for system in SYSTEMS for how in HOW), "collective us"]
    rows = []
    print(f"\nsimulated, one daemon a node, {options.clients} clients on each: creates/s, and a collective's time in us")
    print(f"{'nodes':>8}" + "".join(f"{name:>16}" for name in names))
    for count in nodes:
        row = [files_made(machine, system, count, options, how) for system in SYSTEMS for how in HOW]
        rows.append((count, *row, latency(machine, count, options) if count > 1 else math.nan))
        print(f"{count:8}" + "".join(f"{value:16.0f}" for value in rows[-1][1:]), flush=True)
    return rows, names


# From which penalty on does shunt pay?

WIRES = (5.0, 20.0, 100.0)
PENALTY_MAX = 256.0


def create_time(machine, system, count, options, wire):
    """Between two creates of a client under shunt, while nobody waits for the file system."""
    idle = FileSystem(system.name, system.private_rate * 1e3, 1.0, system.latency + 1e6 / system.private_rate)
    options = argparse.Namespace(clients=options.clients, wire=wire)
    return count * options.clients / files_made(machine, idle, count, options, "shunt") * 1e6


def pays_from(system, native_time, shunt_time, clients):
    """The formula of docs/scaling.md. A client waits longer natively as soon as what the penalty adds to a create is more than
    what shunt adds; and all of them together are slower as soon as the directory does not take what they make under shunt."""
    service = 1e6 / system.private_rate
    return min(1 + (shunt_time - native_time) / service, max(1.0, shunt_time / clients / service))


def pays_from_simulated(machine, system, count, options, wire):
    """The same by trying penalties."""
    options = argparse.Namespace(clients=options.clients, wire=wire)
    goal = files_made(machine, system, count, options, "shunt")
    low, high = 1.0, PENALTY_MAX
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        penalised = FileSystem(system.name, system.private_rate, middle, system.latency)
        if files_made(machine, penalised, count, options, "shared") > goal:
            low = middle
        else:
            high = middle
    return low


def break_even(machine, nodes, options):
    """Rows: nodes, and for each wire the penalty by the formula; then the same by simulation."""
    system, rows = SYSTEMS[0], []
    print(f"\nthe penalty from which on shunt pays, {options.clients} clients on each node: by the formula, and simulated")
    print(f"{'nodes':>8}" + "".join(f"{f'{wire:.0f} us':>9}{'simulated':>11}" for wire in WIRES))
    for count in nodes:
        native = machine.costs.client + system.latency + 1e6 / system.private_rate
        times = [create_time(machine, system, count, options, wire) for wire in WIRES]
        by_formula = [pays_from(system, native, time, count * options.clients) for time in times]
        simulated = [pays_from_simulated(machine, system, count, options, wire) for wire in WIRES]
        rows.append((count, *by_formula, *simulated))
        print(f"{count:8}" + "".join(f"{one:9.2f}{other:11.2f}" for one, other in zip(by_formula, simulated)), flush=True)
    return rows


@dataclass
class Locked:
    """A file system whose clients are in the kernel and send each other locks: what a create takes more in a directory that two
    nodes share than in a private one. These are means, so how long a node keeps a lock is in them."""

    name: str
    private_rate: float  # creates/s of a node
    packets: float
    requests: float  # of the disk

    def shared_rate(self, wire, disk):
        """The lock is what all wait for: one create after the other."""
        return 1e6 / (1e6 / self.private_rate + self.packets * wire + self.requests * disk)


LOCKED = (Locked("OCFS2", 3_398, 13.7 - 4.8, 10.7 - 0.07), Locked("GFS2", 4_939, 3.0 - 2.6, 0.0))


def on_locks(machine):
    """Rows: file system, microseconds of a packet and of a request of the disk; creates/s natively and under shunt."""
    rows = []
    print("\ntwo nodes of a file system with locks, creates/s in one directory")
    print(f"{'':8}{'packet us':>10}{'disk us':>9}{'native':>9}{'shunt':>9}{'times':>7}")
    for locked in LOCKED:
        system = FileSystem(locked.name, 2 * locked.private_rate, 1.0, 0.0)
        for wire in WIRES:
            found = files_made(machine, system, 2, argparse.Namespace(clients=1, wire=wire), "shunt")
            for disk in (0.0, 1000.0):
                native = locked.shared_rate(wire, disk)
                rows.append((locked.name, wire, disk, native, found))
                print(f"{locked.name:8}{wire:10.0f}{disk:9.0f}{native:9.0f}{found:9.0f}{found / native:7.1f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=pathlib.Path, default=MEASURED, help="what scaling_measure.py wrote")
    parser.add_argument("--out", type=pathlib.Path, help="where to write all figures, as JSON (for scaling_plot.py)")
    parser.add_argument("--quick", action="store_true", help="short runs of few nodes: does all of it still work?")
    parser.add_argument("--clients", type=int, default=4, help="of a node (4)")
    parser.add_argument("--wire", type=float, default=50.0, help="microseconds of a frame from node to node (50)")
    options = parser.parse_args()
    told = json.loads(options.measured.read_text())
    machine = Machine(told["measured"])
    find_rest(machine, told["machine"])
    print(machine.costs)
    counts = sorted({row["daemons"] for row in machine.rows})
    few = [count for count in counts if 1 < count <= CALIBRATED]
    rows = compare(machine, told["machine"], few if options.quick else counts, 5e4 if options.quick else 1.2e6)
    worst = print_comparison(rows)
    figures, names = extrapolate(machine, NODES[:4] if options.quick else NODES, options)
    pays = break_even(machine, NODES[1:2] if options.quick else NODES[1:6], options)
    locks = on_locks(machine)
    if options.out:
        told["compared"] = [row[:4] for row in rows]
        told["simulated"] = {"names": names, "rows": figures, "clients": options.clients, "wire": options.wire}
        told["break even"] = {"wires": WIRES, "rows": pays, "locks": locks}
        options.out.write_text(json.dumps(told, indent=1) + "\n")
    if worst > TOLERANCE:
        sys.exit(f"scaling.py: a simulated figure is {worst:.0%} off the measured one")


if __name__ == "__main__":
    main()
