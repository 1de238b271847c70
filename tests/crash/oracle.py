# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What must be true of a directory in which workers (worker.c) were killed: from their logs, and from nothing else.

A worker's own names are a small tree that is computed operation by operation, with the errors and sizes that POSIX
demands; at most the last operation is open, and then both outcomes are allowed, and for what it writes each length in
between. A name that all fight for is a register: its last value is what some operation gave it that no other one,
begun after that had ended, replaced. A contest has one winner; the losers have seen it."""

import errno
import re
from dataclasses import dataclass, field, replace

OWN = re.compile(r"[pq]/(?:[wsd](\d+)(?:-\d+)?|d\d+/w\d+-\d+)$")
REGISTER = re.compile(r"[pq]/c\d+$")
CONTEST = re.compile(r"[pq]/[xl]\d+$")
DIRECTORY = re.compile(r"[pq]/d\d+$")
NEVER = float("inf")


@dataclass
class Operation:
    """Two lines of a log, or the first of them."""

    number: int
    begin: int
    kind: str
    token: int
    length: int
    a: str
    b: str
    end: float = NEVER
    error: int = None
    size: int = 0
    links: int = 0

    @property
    def is_done(self):
        return self.error is not None

    def __str__(self):
        how = errno.errorcode.get(self.error, self.error) if self.error else "done" if self.is_done else "under way"
        return f"{self.number} {self.kind} {self.a} {self.b} {self.token:x}: {how}"


def read_log(path):
    """The operations of a worker. A line without an end was never written."""
    operations = []
    for line in path.read_text().split("\n")[:-1] if path.exists() else []:
        word = line.split(" ")
        if word[0] == "I":
            operations.append(Operation(int(word[1]), int(word[2]), word[3], int(word[4], 16), int(word[5]), *word[6:8]))
        else:
            last = operations[-1]
            assert last.number == int(word[1]), line
            last.end, last.error, last.size, last.links = (int(number) for number in word[2:6])
    return operations


@dataclass(frozen=True)
class Entry:
    """One name, as somebody saw it."""

    kind: str
    inode: int
    links: int
    size: int
    token: int
    is_good: bool


@dataclass(eq=False)
class File:
    """What a worker knows of a file: its length, which is uncertain while it is written, and its names."""

    token: int
    low: int
    high: int
    links: int = 1


FOLDER = "directory"


class Failed(Exception):
    """An operation did what it must not, or left what must not be."""


def parent_of(path):
    return path.rpartition("/")[0]


@dataclass
class Tree:
    """The own names of one worker, and what it did to the names that all fight for."""

    names: dict = field(default_factory=dict)
    done_to_others: list = field(default_factory=list)

    def copy(self):
        files = {id(node): replace(node) for node in self.names.values() if node is not FOLDER}
        return Tree({path: files.get(id(node), node) for path, node in self.names.items()}, list(self.done_to_others))

    def has_parent(self, path):
        parent = parent_of(path)
        return "/" not in parent or parent in self.names

    def get(self, path):
        if path not in self.names:
            raise FileNotFoundError
        return self.names[path]

    def put(self, path, node):
        if not self.has_parent(path):
            raise FileNotFoundError
        if path in self.names and self.names[path] is not FOLDER:
            self.names[path].links -= 1
        self.names[path] = node

    def drop(self, path):
        node = self.names.pop(path)
        if node is not FOLDER:
            node.links -= 1

    def is_absent(self, path):
        if path in self.names:
            raise FileExistsError

    def is_empty(self, path):
        if any(name.startswith(path + "/") for name in self.names):
            raise OSError(errno.ENOTEMPTY, "")

    def move_directory(self, old, new):
        self.get(old)
        if old == new:
            return
        self.is_empty(new)
        for path in [path for path in self.names if path == old or path.startswith(old + "/")]:
            self.names[new + path[len(old):]] = self.names.pop(path)

    def rename(self, old, new, is_exclusive=False):
        if DIRECTORY.match(old):
            self.move_directory(old, new)
            return
        node = self.get(old)
        if is_exclusive:
            self.is_absent(new)
        if self.names.get(new) is node:
            return
        self.put(new, node)
        del self.names[old]

    def exchange(self, one, other):
        first, second = self.get(one), self.get(other)
        self.names[one], self.names[other] = second, first

    def link(self, old, new):
        node = self.get(old)
        self.is_absent(new)
        self.put(new, node)
        node.links += 1

    def create(self, operation):
        self.is_absent(operation.a)
        self.put(operation.a, File(operation.token, operation.length, operation.length))

    def rewrite(self, operation):
        if operation.a not in self.names:
            self.create(operation)
            return
        node = self.names[operation.a]
        node.token, node.low, node.high = operation.token, operation.length, operation.length

    def append(self, operation):
        node = self.get(operation.a)
        node.low += operation.length
        node.high = node.low

    def make_directory(self, path):
        self.is_absent(path)
        self.names[path] = FOLDER

    def remove_directory(self, path):
        self.get(path)
        self.is_empty(path)
        self.drop(path)

    def apply(self, operation):
        """As POSIX says; or raises its error, and nothing has changed."""
        a, b = operation.a, operation.b
        {
            "c": lambda: self.create(operation),
            "w": lambda: self.rewrite(operation),
            "a": lambda: self.append(operation),
            "u": lambda: self.drop(a) if self.get(a) else None,
            "r": lambda: self.rename(a, b),
            "n": lambda: self.rename(a, b, is_exclusive=True),
            "e": lambda: self.exchange(a, b),
            "l": lambda: self.link(a, b),
            "m": lambda: self.make_directory(a),
            "d": lambda: self.remove_directory(a),
            "s": lambda: self.get(a),
            "f": lambda: None,
        }[operation.kind]()


@dataclass
class Deed:
    """What an operation did to a name that all fight for; `node` None: removed it."""

    operation: Operation
    path: str
    node: File


def is_fought_for(path):
    return bool(REGISTER.match(path) or CONTEST.match(path))


def deed_of(tree, operation):
    """The tree after an operation on a name that all fight for, which went as it says, and what it did."""
    if operation.kind == "u":
        return Deed(operation, operation.a, None)
    if operation.kind == "c":
        return Deed(operation, operation.a, File(operation.token, operation.length, operation.length))
    node = tree.get(operation.a)
    if operation.kind == "r":
        tree.drop(operation.a)
    return Deed(operation, operation.b, node)


ERRORS_OF_FIGHTS = {"u": {errno.ENOENT}, "c": {errno.EEXIST}, "l": {errno.EEXIST}, "r": set()}


class Worker:
    """One log, followed to its end: `alternatives` are the trees that may be there."""

    def __init__(self, number, operations, excused=()):
        self.number, self.operations, self.excused = number, operations, set(excused)
        self.lost = []  # contests, as (path, operation)
        self.failed = None
        tree = Tree()
        try:
            for operation in operations:
                if not operation.is_done:
                    break
                if operation.error not in self.excused:
                    self.follow(tree, operation)
        except Failed as failure:
            self.failed = str(failure)
        self.alternatives = [tree] if not operations or operations[-1].is_done else self.both(tree, operations[-1])

    def follow(self, tree, operation):
        fought_for = next((path for path in (operation.a, operation.b) if is_fought_for(path)), None)
        if fought_for is None:
            self.follow_own(tree, operation)
        elif operation.error == 0:
            tree.done_to_others.append(deed_of(tree, operation))
            if operation.kind == "l":
                tree.names[operation.a].links += 1
        elif operation.kind in "rl" and operation.a not in tree.names:
            if operation.error != errno.ENOENT:  # it could not be made, for an error that is excused
                raise Failed(f"worker {self.number}: {operation}")
        elif operation.error not in ERRORS_OF_FIGHTS[operation.kind]:
            raise Failed(f"worker {self.number}: {operation}")
        elif operation.error == errno.EEXIST:
            self.lost.append((fought_for, operation))

    def follow_own(self, tree, operation):
        expected = 0
        try:
            tree.apply(operation)
        except OSError as error:
            expected = error.errno or {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST}[type(error)]
        if operation.error != expected:
            raise Failed(f"worker {self.number}: {operation}, not {errno.errorcode.get(expected, 'done')}")
        node = tree.names.get(operation.a)
        if expected == 0 and operation.kind in "cwas" and isinstance(node, File):
            if operation.size != node.low or (operation.kind == "s" and operation.links != node.links):
                raise Failed(f"worker {self.number}: {operation}: size {operation.size}, links {operation.links}, "
                             f"not {node.low}, {node.links}")

    @staticmethod
    def both(tree, operation):
        """It was under way: it has happened, or not, or what it writes is there in part."""
        after = tree.copy()
        try:
            if is_fought_for(operation.a) or is_fought_for(operation.b):
                after.done_to_others.append(deed_of(after, operation))
                nodes = [after.done_to_others[-1].node] if operation.kind == "c" else []
            else:
                after.apply(operation)
                nodes = [after.names.get(operation.a)] if operation.kind in "cwa" else []
        except OSError:
            return [tree]
        for node in nodes:
            node.low -= operation.length
        if operation.kind in "ul" and not OWN.match(operation.a if operation.kind == "u" else operation.b):
            return [after]  # one's own names tell nothing of it
        return [after, tree]


def fits(node, entry):
    """Is this the file, as far as its names and content go?"""
    if node is FOLDER:
        return entry.kind == "d"
    return (entry.kind == "f" and entry.is_good and node.low <= entry.size <= node.high
            and (entry.token == node.token or entry.size == 0))


def describe(node):
    return "a directory" if node is FOLDER else "nothing" if node is None else f"{node.token:x} of {node.low} to {node.high}"


def differences(tree, seen):
    found = [f"{path}: {describe(node)} is not there" for path, node in tree.names.items() if path not in seen]
    found += [f"{path}: {entry} should not be there" for path, entry in seen.items() if path not in tree.names]
    found += [f"{path}: {describe(tree.names[path])}, not {entry}" for path, entry in seen.items()
              if path in tree.names and not fits(tree.names[path], entry)]
    return found


class Oracle:
    """Of all workers of one directory."""

    def __init__(self, logs, excused=()):
        """`logs`: {number of a worker: its log}; `excused`: errors that say that nothing was done."""
        self.workers = {number: Worker(number, read_log(path), excused) for number, path in logs.items()}

    @property
    def operations(self):
        return sum(len(worker.operations) for worker in self.workers.values())

    def complaints(self, listed):
        """Of a listing, [(path, Entry)]: what is wrong with it. Nothing, if it is one of those that may be."""
        seen = dict(listed)
        found = [worker.failed for worker in self.workers.values() if worker.failed]
        found += self.complaints_of_inodes(listed, seen)
        trees = [self.tree_of(worker, seen, found) for worker in self.workers.values()]
        found += [f"{path}: nobody made it" for path in seen
                  if path not in ("p", "q") and not OWN.match(path) and not is_fought_for(path)]
        self.judge_fights([deed for tree in trees for deed in tree.done_to_others], seen, found)
        return found

    @staticmethod
    def complaints_of_inodes(listed, seen):
        found = []
        if len(seen) != len(listed):
            found.append(f"there twice: {sorted(path for path, _ in listed if [p for p, _ in listed].count(path) > 1)}")
        files = [entry for entry in seen.values() if entry.kind == "f"]
        names, inodes = {}, {}
        for entry in files:
            names[entry.inode] = names.get(entry.inode, 0) + 1
            inodes.setdefault(entry.token, set()).add(entry.inode)
        found += [f"{path}: {entry.links} links, but {names[entry.inode]} names" for path, entry in seen.items()
                  if entry.kind == "f" and entry.links != names[entry.inode]]
        found += [f"file {token:x} is there {len(all_of_it)} times" for token, all_of_it in inodes.items()
                  if token and len(all_of_it) > 1]
        return found

    @staticmethod
    def tree_of(worker, seen, found):
        """Which of a worker's trees is there; if none, the complaints about the first one."""
        own = {path: entry for path, entry in seen.items()
               if OWN.match(path) and int(re.search(r"\d+", path)[0]) == worker.number}
        complaints = [differences(tree, own) for tree in worker.alternatives]
        for tree, wrong in zip(worker.alternatives, complaints):
            if not wrong:
                return tree
        last = worker.operations[-1] if worker.operations else "nothing"
        found += [f"worker {worker.number} (last: {last}): {wrong}" for wrong in min(complaints, key=len)]
        return worker.alternatives[0]

    def judge_fights(self, deeds, seen, found):
        lost = [loss for worker in self.workers.values() for loss in worker.lost]
        paths = {deed.path for deed in deeds} | {path for path, _ in lost} | {path for path in seen if is_fought_for(path)}
        for path in sorted(paths):
            of_it = [deed for deed in deeds if deed.path == path]
            losses = [operation for lost_path, operation in lost if lost_path == path]
            entry = seen.get(path)
            judge = judge_register if REGISTER.match(path) else judge_contest
            wrong = judge(of_it, losses, entry)
            if wrong:
                done = "; ".join(f"{deed.operation}" for deed in sorted(of_it, key=lambda deed: deed.operation.begin)[-8:])
                found.append(f"{path}: {wrong}, is {entry} ({done})")


def is_one_of(nodes, entry):
    return any(entry is None if node is None else entry is not None and fits(node, entry) for node in nodes)


def judge_register(deeds, _losses, entry):
    begun_last = max((deed.operation.begin for deed in deeds if deed.operation.is_done), default=-1)
    candidates = [deed.node for deed in deeds if deed.operation.end > begun_last]
    if begun_last < 0:
        candidates.append(None)
    return None if is_one_of(candidates, entry) else f"must be one of {[describe(node) for node in candidates]}"


def judge_contest(deeds, losses, entry):
    won = [deed for deed in deeds if deed.operation.is_done]
    if len(won) > 1:
        return "has several winners"
    early = min((deed.operation.begin for deed in deeds), default=NEVER)
    if any(loss.end < early for loss in losses):
        return "was lost to nobody"
    candidates = [deed.node for deed in won or deeds]
    if not won and not losses:
        candidates.append(None)
    return None if is_one_of(candidates, entry) else f"must be one of {[describe(node) for node in candidates]}"
