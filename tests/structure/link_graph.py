#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""link_graph.py BUILD [--rooms]: which file calls which, by the undefined symbols of the objects in a build directory.

A room is a directory of lib/, daemon/ and tools/. The exit status is 1 if files of different rooms form a cycle, if more
than MOST files of one room do, or if the rooms themselves do; each cycle is printed with the symbols that make it. It is 1 as
well if a room uses one that stands above it in docs/architecture.md, or if two files define a symbol of the same name.
--rooms prints which room uses which."""

import collections
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
MOST = 4
PARTS = ("lib", "daemon", "tools")
PRELOAD = pathlib.Path("lib/shim")
# Rooms that are given what they need, not the daemon's whole struct.
WITHOUT_SHUNTD = ("daemon/home", "daemon/listen", "daemon/peer")


def sources(build):
    """{object: its source, from the top of the tree}, for lib/, daemon/ and tools/."""
    found = {}  # by source: one that is compiled more than once is read once
    for path in pathlib.Path(build).rglob("*.o"):
        name = re.sub(r"\.c\.o$", "", path.name)
        directory = path.parent.parent.relative_to(build)
        for source in candidates(directory, name):
            if (TOP / source).exists() and source.parts[0] in PARTS:
                found.setdefault(source, path)
                break
    return {path: source for source, path in found.items()}


def candidates(directory, name):
    """Meson writes the path of a source below its directory with _ for /: all readings of it."""
    parts = name.split("_")
    while parts[:1] == [".."]:
        directory, parts = directory.parent, parts[1:]
    for cut in range(len(parts)):
        yield pathlib.Path(directory, *parts[:cut], "_".join(parts[cut:]) + ".c")


def symbols(path):
    defined, undefined = set(), set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind in "TDBRVWi":
            defined.add(name)
        elif kind == "U":
            undefined.add(name)
    return defined, undefined


def is_seen(owner, user):
    """The preload library defines libc's names; nothing else is linked with it."""
    return PRELOAD not in owner.parents or PRELOAD in user.parents


def link_graph(build):
    """{(user, used): {symbol}} over sources, and {symbol: its files} of those that more than one defines."""
    owners, needs = collections.defaultdict(list), {}
    for path, source in sources(build).items():
        defined, needs[source] = symbols(path)
        for name in defined - {"main"}:
            owners[name].append(source)
    owner = {name: files[0] for name, files in owners.items()}
    edges = collections.defaultdict(set)
    for source, names in needs.items():
        for name in names:
            if name in owner and owner[name] != source and is_seen(owner[name], source):
                edges[source, owner[name]].add(name)
    return edges, {name: files for name, files in owners.items() if len(files) > 1}


def cycles(edges):
    """The strongly connected components of more than one node (Tarjan)."""
    graph = collections.defaultdict(set)
    for user, used in edges:
        graph[user].add(used)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            found.append(stack[stack.index(node):])
            del stack[stack.index(node):]

    for node in list(graph):
        if node not in index:
            visit(node)
    return [sorted(cycle) for cycle in found if len(cycle) > 1]


def room_edges(edges):
    rooms = collections.defaultdict(set)
    for (user, used), names in edges.items():
        if user.parent != used.parent:
            rooms[user.parent, used.parent] |= names
    return rooms


def include_edges():
    """{(room, room): {"FILE includes HEADER"}}."""
    rooms = collections.defaultdict(set)
    for part in PARTS:
        for path in sorted((TOP / part).rglob("*.[ch]")):
            user = path.parent.relative_to(TOP)
            for header in re.findall(r'^#include "(\w+/\w+\.h)"', path.read_text(), re.M):
                used = next((TOP / base / header for base in ("lib", part) if (TOP / base / header).exists()), None)
                if used is not None and used.parent.relative_to(TOP) != user:
                    rooms[user, used.parent.relative_to(TOP)].add(f"{path.name} includes {header}")
    return rooms


def rooms_listed():
    """The rooms in the order of docs/architecture.md; what is in daemon/ itself is above the rooms of the daemon."""
    listed, part = [], None
    for line in (TOP / "docs" / "architecture.md").read_text().splitlines():
        if found := re.match(rf"    ({'|'.join(PARTS)})/$", line):
            part = pathlib.Path(found[1])
            listed.append(part)
        elif part and (found := re.match(r"      (\w+)/ ", line)):
            listed.append(part / found[1])
    return listed


def uphill(rooms):
    """The edges that do not go down, and those of rooms that are not listed."""
    places = {room: place for place, room in enumerate(rooms_listed())}
    for user, used in sorted(rooms):
        inside = user.parts[0] == used.parts[0]
        if not (user in places and used in places and (places[user] < places[used] if inside else used.parts[0] == "lib")):
            yield user, used


def whole_daemons():
    """The files of WITHOUT_SHUNTD that include the daemon's whole struct."""
    paths = (path for room in WITHOUT_SHUNTD for path in sorted((TOP / room).glob("*.[ch]")))
    return [path.relative_to(TOP) for path in paths if '#include "shuntd.h"' in path.read_text()]


def show(cycle, edges):
    for user in cycle:
        for used in cycle:
            if (user, used) in edges:
                print(f"    {user} -> {used}: {', '.join(sorted(edges[user, used]))}")


def main(build, *options):
    sys.setrecursionlimit(10000)
    edges, twice = link_graph(build)
    rooms = room_edges(edges)
    for edge, headers in include_edges().items():
        rooms[edge] |= headers
    if "--rooms" in options:
        for user in sorted({user for user, _ in rooms}):
            print(f"{user}: {' '.join(sorted(str(used) for one, used in rooms if one == user))}")
    bad = 0
    for cycle in cycles(edges):
        across = len({source.parent for source in cycle}) > 1
        wrong = across or len(cycle) > MOST
        bad += wrong
        print(f"{'BAD ' if wrong else ''}cycle of {len(cycle)} files{' of different rooms' if across else ''}:")
        show(cycle, edges)
    for cycle in cycles(rooms):
        bad += 1
        print(f"BAD cycle of {len(cycle)} rooms:")
        show(cycle, rooms)
    for user, used in uphill(rooms):
        bad += 1
        print(f"BAD {user} -> {used} is not down the list of docs/architecture.md: {', '.join(sorted(rooms[user, used]))}")
    for name, files in sorted(twice.items()):
        bad += 1
        print(f"BAD {name} is in {' and '.join(map(str, files))}")
    for path in whole_daemons():
        bad += 1
        print(f"BAD {path} includes shuntd.h")
    files = {source for edge in edges for source in edge}
    print(f"{len(files)} files, {len(edges)} uses, {bad} bad")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
