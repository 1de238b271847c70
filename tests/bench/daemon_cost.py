#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""daemon_cost.py [options]: what a daemon uses of a processor, for a request and while nobody asks.

Counted is the time on a processor of all threads of the daemon, user and system. A create is one at its home (one node,
placement branch), with its confirmation, leaves and mirrors; a lookup is asked for by its message, since a process finds
such a name in the index by itself. Many clients make batches: what the daemon finds waiting is one transaction. The clients
here share one core, so that the daemon, on the other, is done with a lookup before the next one is asked, and what it does
then, which is to look for it, counts, too. So lookups are also measured as they come from a node of many cores, where all ask
at once: so many lie there when the daemon wakes, one to a queue pair; its wake counts. What
lookups cost the home when another node asks is told, too; there is no limit for that.

That 1,000 clients cost no more than 10 is seen in two sessions by turns: 10 processes ask, and in one of the sessions 990
more are connected; then all 1,000 ask. Each asks so often that its start and its end do not count. Idle: how often threads of
the daemon and of its supervisor were on a processor while nobody asked."""

import time

import measuring

# A round of `long` lasts longer than the kernel's tick, with which the time of a thread that spins is added to its process's: what
# a shorter one cost may be read as 0.
COUNTS = {"requests": (200_000, 640, "requests in a round"), "batch": (16, 8, "processes that ask at the same time"),
          "clients": (1000, 50, "clients that are many"), "long": (4_000_000, 40_000, "requests in a round of few clients and of many"),
          "asked-names": (8000, 160, "names in a round that another node looks at"),
          "waiting": (200, 20, "lookups that wait at the same time, at most 248"),
          "seconds": (10, 1, "how long nobody asks")}
FEW = 10
NOISE = 1.05
QUIET = 2  # seconds: what follows a start (libfabric finds out which networks there are), or the last request, is done


class Served:
    """A session with its crews, and what its daemons use."""

    def __init__(self, area, options, nodes=("n0",)):
        self.area, self.options = area, options
        area.start(*nodes)
        area.under_shunt("mkdir", area.root / "out")
        self.daemons = area.daemons()
        self.rest()

    def rest(self):
        time.sleep(0 if self.options.quick else QUIET)

    def used(self, node="n0"):
        return measuring.cpu_of(self.daemons[node]["pid"])

    def worker(self, processes, node="n0"):
        return self.area.crew("bench_worker", self.area.root / "out", processes, node=node)

    def asker(self, processes):
        return self.area.crew("bench_asker", self.area.root / "out", processes, self.daemons["n0"]["run_dir"],
                              self.options.waiting)

    def cost(self, crew, call, requests, active, **options):
        """Microseconds of n0's daemon for one of so many requests."""
        before = self.used()
        crew.make(call, requests // active, active=active, **options)
        return (self.used() - before) / (requests // active * active)

    def cost_waiting(self, asker, **names):
        """... for a lookup, of its first process's names, in so many at once."""
        rows = self.options.requests // self.options.batch // self.options.waiting
        return self.cost(asker, "waiting", rows, 1, **names) / self.options.waiting

    def switches(self):
        pids = [pid for member in self.daemons.values() for pid in (member["pid"], supervisor_of(member["pid"]))]
        return {thread: times for pid in pids for thread, times in measuring.switches_of(pid).items()}

    def wakes(self):
        """How often a daemon or supervisor of any node was on a processor while nobody asked."""
        self.rest()
        before = self.switches()
        time.sleep(self.options.seconds)
        after = self.switches()
        ended = len(before.keys() - after.keys())
        return ended + sum(times - before.get(thread, 0) for thread, times in after.items())


def supervisor_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("PPid:"))


def measure_home(options):
    """Creates and lookups of many clients of one node, and of one client."""
    with measuring.Area(options) as area:
        served = Served(area, options)
        makers, askers = served.worker(options.batch), served.asker(options.batch)
        makers.make("create", 1, prefix="first", active=options.batch)
        area.must_be_redirected()

        def one_round(turn):
            names = {"prefix": f"r{turn}"}
            found = {"create": served.cost(makers, "create", options.requests, options.batch, **names),
                     "lookup": served.cost(askers, "lookup", options.requests, options.batch, **names),
                     "waiting": served.cost_waiting(askers, **names)}
            found["unlink"] = served.cost(makers, "unlink", options.requests, options.batch, **names)
            found["create alone"] = served.cost(makers, "create", options.requests // 8, 1, prefix=f"alone{turn}")
            return found

        rounds = measuring.repeat(options.rounds, "the daemon as a home", one_round)
        idle = served.wakes()
    many = f"of {options.batch} clients at once"
    column = {what: [one[what] for one in rounds] for what in rounds[0]}
    return [measuring.Finding(5, f"the daemon's CPU for a create at its home, {many}", "us", column["create"], most=2.5),
            measuring.Finding(5, f"... for a lookup that it must answer, {many}", "us", column["lookup"], most=1.0),
            measuring.Finding(5, f"... for a lookup, {options.waiting} waiting", "us", column["waiting"], most=1.0),
            measuring.Finding(5, f"... for an unlink at its home, {many}", "us", column["unlink"]),
            measuring.Finding(5, "... for a create at its home, of one client", "us", column["create alone"]),
            measuring.Finding(5, f"one node: wake-ups in {options.seconds} s while nobody asks", "", [idle], most=0)]


def measure_asked(options):
    """The home's part of what another node's processes look for."""
    with measuring.Area(options) as area:
        served = Served(area, options, nodes=("n0", "n1"))
        others = served.worker(options.batch, node="n1")
        area.under_shunt("ls", area.root / "out")  # or the directory is delegated to n1, which then asks no other daemon
        names = options.asked_names // options.batch

        def one_round(turn):
            others.make("create", names, prefix=f"r{turn}", active=options.batch)
            return served.cost(others, "stat", names * options.batch, options.batch, prefix=f"r{turn}")

        rounds = measuring.repeat(options.rounds, "another node asks", one_round)
        idle = served.wakes()
    return [measuring.Finding(5, "the daemon's CPU for a name that another node's processes look at, half at home here", "us",
                            rounds),
            measuring.Finding(5, f"two nodes: wake-ups of both in {options.seconds} s while nobody asks (beats)", "", [idle])]


def measure_clients(options):
    """Two sessions, one of few and one of many connected clients."""
    with measuring.Area(options) as few_area, measuring.Area(options) as many_area:
        served, askers = {}, {}
        for name, area, clients in (("few", few_area, FEW), ("many", many_area, options.clients)):
            served[name] = Served(area, options)
            served[name].worker(clients).make("create", 1, active=clients)
            askers[name] = served[name].asker(clients)
            askers[name].make("lookup", 1, active=clients)  # now they are connected
        ways = {"few": lambda _: served["few"].cost(askers["few"], "again", options.long, FEW),
                "some of many": lambda _: served["many"].cost(askers["many"], "again", options.long, FEW),
                "many": lambda _: served["many"].cost(askers["many"], "again", options.long, options.clients)}
        rounds = measuring.alternate(options.rounds, "few clients and many", ways)
    return list(compare_clients(rounds, options))


def compare_clients(rounds, options):
    words = {"some of many": f"{FEW} of {options.clients:,} connected clients", "many": f"{options.clients:,} clients"}
    for name, who in words.items():
        yield measuring.Finding(5, f"the daemon's CPU for a lookup of {who}, over that of {FEW}", "x",
                                [one[name] / one["few"] for one in rounds], most=NOISE)
    for name, who in {"few": f"{FEW} clients", **words}.items():
        yield measuring.Finding(5, f"the daemon's CPU for a lookup of {who}", "us", [one[name] for one in rounds])


def measure(options):
    return measure_home(options) + measure_clients(options) + measure_asked(options)


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
