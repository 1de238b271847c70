#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""stack_use.py BUILD: how much stack each call that the preload library exports takes at most, by the frames and the call graph
that gcc tells (-fcallgraph-info=su, gcc 10 or later). The exit status is 1 if one takes more than MOST.

The sources are compiled once more, with the commands of the build; not with another compiler or a sanitizer, whose frames are
theirs. What is not in the graph:

* Calls through pointers. The original function takes what it takes natively, as do functions of the program (NATIVE tells their
  lines). Functions of the library that are called so are in CALLBACKS, by who calls them; one that is missing there is an error.
* Functions of libc that the library calls by their names: the small ones of ALLOWED, with what they may take.
* Which way a call can go at run time: UNREACHABLE has what it cannot.
* Recursion: RECURSIVE says why each ends, and how often it is counted.
* Frames of a size that is not known when it is compiled. ALLOCA says where there are such: a target, where the path may be ours
  (TARGET_ROOM), whose size gcc counts; and the arguments of the program's own, as in libc."""

import collections
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOP = pathlib.Path(__file__).resolve().parents[2]
MOST = 8192
LIBC = 256
ROOMS = ("shim", "names", "request", "wire", "index", "union", "session", "path", "config", "base")
NATIVE = re.compile(r"REAL\(|TRUNK\(|WRAPPER_|original\(|ZONED\(|ON_TRUNK|NATIVE\(|libc\(|visitor\.|filter\(|ask\(which")
CALLBACKS = {
    "request_exchange": ["target_ask_see_parent"],
    "request_hold": ["target_ask_see_parent"],
    "mounts_lead_to": ["visible_look"],
    "view_look": ["view_read_found", "view_read_next"],
    "view_list": ["names_tell_near"],
    "names_tell_near": ["dir_stream_each", "operate_directory_first_away"],
    "names_tell_far": ["dir_stream_each", "operate_directory_first_away"],
    "operate_link_check": ["operate_link_old_lookup", "operate_link_new_parent", "operate_link_new_lookup",
                           "operate_link_new_settled", "operate_link_is_*"],
    "rename_checks_walk": ["rename_checks_old_*", "rename_checks_new_*", "rename_checks_is_*", "rename_checks_are_*",
                           "rename_checks_needs_*"],
    "operate_rename": ["operate_rename_look_up", "rename_checks_found", "operate_rename_make_bare",
                       "operate_rename_promote_*", "operate_rename_claim"],
    "operate_remove_until_there": ["operate_remove_unlink_here", "operate_remove_rmdir_here"],
    "operate_rename_between": ["operate_rename_between_*", "rename_checks_found", "operate_rename_across_promote_*"],
    "outsiders_read": ["outsiders_adopt", "outsiders_note"],
    "syscall": ["wrap_syscall_*_call", "wrap_mount_call", "wrap_landlock_call", "wrap_memory_call"],
}
# A function of a cycle -> how often it is on the stack at most, and why.
RECURSIVE = {
    "target_missing_parent": (1, "a look for what is in the way of a path has no such look (TARGET_NESTED)"),
    "walk_nftw_walk_directory": (1, "as deep as the tree is, as libc's own does"),
    "wrap_spawn_directory_before": (1, "as many as the program's own file actions"),
}
# A function -> one above it on the stack that never leads to it, and why.
UNREACHABLE = {
    "target_recheck_follow_again": ("target_missing_parent", "only what has TARGET_LOOKS is followed again, and that look has not"),
}
ALLOCA = {"target.h": "TARGET_ROOM", "wrap_exec.c": "char **vector"}  # where alloca is called: the line has this


def commands(build):
    """{source: (directory, words)} of the rooms that the preload library is made of."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (build / entry["file"]).resolve()
        if TOP not in source.parents:
            continue
        parts = source.relative_to(TOP).parts
        if parts[0] == "lib" and parts[1] in ROOMS and entry["output"].startswith("lib/"):
            found[source] = shlex.split(entry["command"])
    return found


def compiled(build, area, source, words):
    """The text of its graph."""
    kept, rest = [], iter(words[1:] if words[0].endswith("ccache") else words)
    for word in rest:
        if word in ("-o", "-MF", "-MQ"):
            next(rest)
        elif word not in ("-MD", "-c"):
            kept.append(word)
    out = area / ("_".join(source.relative_to(TOP).parts) + ".o")
    subprocess.run([*kept, "-w", "-fcallgraph-info=su", "-c", "-o", out], cwd=build, check=True)
    return out.with_suffix(".ci").read_text()


class Graph:
    def __init__(self, build):
        self.build, self.frames, self.calls, self.lines = build, {}, collections.defaultdict(set), collections.defaultdict(set)
        self.known, self.faults = {}, set()

    def add(self, text):
        for line in text.splitlines():
            node = re.match(r'node: \{ title: "([^"]*)" label: ".*?\\n(\d+) bytes \(([a-z,]*)\)', line)
            edge = re.match(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"(?: label: "([^"]*)")?', line)
            if node:
                self.frames[node[1]] = int(node[2])
            elif edge and edge[2] == "__indirect_call":
                self.lines[edge[1]].add(edge[3])
            elif edge:
                self.calls[edge[1]].add(edge[2])

    def look_for_alloca(self):
        for source in (TOP / "lib").glob("*/*.[ch]"):
            for line in source.read_text().splitlines():
                if "alloca(" in line and ALLOCA.get(source.name, "alloca(none") not in line:
                    self.faults.add(f"{source.name}: what alloca takes has no known size: {line.strip()}")

    def line(self, place):
        name, number, _ = place.rsplit(":", 2)
        return (self.build / name).read_text().splitlines()[int(number) - 1]

    def targets(self, function):
        """What it calls, pointers included."""
        found, name = set(self.calls[function]), function.rpartition(":")[2].partition(".")[0]
        for place in self.lines[function]:
            if NATIVE.search(self.line(place)):
                continue
            if name not in CALLBACKS:
                self.faults.add(f"{name}: calls through a pointer ({place}): its targets are to be in CALLBACKS")
        for pattern in CALLBACKS.get(name, []) if self.lines[function] else []:
            wanted = re.compile(re.escape(pattern).replace(r"\*", ".*") + r"(\..*)?")
            found |= {other for other in self.frames if wanted.fullmatch(other.rpartition(":")[2])}
        return found

    def most(self, function, above=()):
        """(bytes, the functions) of the deepest way from there on."""
        if function not in self.frames:
            return (LIBC, (function,)) if function != "__indirect_call" else (0, ())
        name = function.rpartition(":")[2]
        if name in UNREACHABLE and any(caller.rpartition(":")[2] == UNREACHABLE[name][0] for caller in above):
            return (0, ())
        times, limit = above.count(function), RECURSIVE.get(name, (None,))[0]
        if times and not any(caller.rpartition(":")[2] in RECURSIVE for caller in above[above.index(function):]):
            self.faults.add(f"{name}: is called by itself ({' '.join(above[above.index(function):])})")
            return (0, ())
        if limit is not None and times >= limit:
            return (0, ())
        key = (function, tuple(sorted((name, sum(caller.rpartition(":")[2] == name for caller in above)) for name in RECURSIVE)))
        if key not in self.known:
            ways = [self.most(other, (*above, function)) for other in self.targets(function)]
            deepest = max(ways, default=(0, ()))
            self.known[key] = (self.frames[function] + 8 + deepest[0], (function, *deepest[1]))
        return self.known[key]


def exported(build):
    library = build / "lib" / "shim" / "libshunt_preload.so"
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[-1].partition("@")[0] for line in lines.splitlines()})


def main(build):
    found = commands(build)
    words = " ".join(next(iter(found.values())))
    if "-fsanitize" in words or "-O0" in words or "clang" in words.split()[0]:
        return 77  # skipped
    graph = Graph(build)
    graph.look_for_alloca()
    with tempfile.TemporaryDirectory() as area, ThreadPoolExecutor() as pool:
        for text in pool.map(lambda item: compiled(build, pathlib.Path(area), *item), found.items()):
            graph.add(text)
    uses = sorted(((*graph.most(name), name) for name in exported(build)), reverse=True)
    for size, way, name in uses:
        if size > MOST:
            print(f"{name}: {size} bytes: " + " ".join(f"{call.rpartition(':')[2]}({graph.frames.get(call, LIBC)})" for call in way))
    print("\n".join(sorted(graph.faults)), end="\n" if graph.faults else "")
    print(f"{len(uses)} exported calls take {uses[0][0]} bytes of stack at most ({uses[0][2]})")
    return 1 if graph.faults or uses[0][0] > MOST else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
