#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""derive_symbols.py [--libc FILE] [--list FILE] [--all]: which functions of a libc reach a path, from its code.

Exported functions, and what they call directly or by an address that they take, are followed through the disassembly to
the system calls that name a file or a directory. Printed is how that differs from the list of decisions (symbols.txt):
`new` reaches such a call and stands under no decision, `gone` is exported no more, each with the calls. With --all every
symbol is printed. The exit status is 0 if nothing is new, 1 if something is, 2 in trouble."""

import argparse
import bisect
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "symbols.txt"

CALLS = set("""open openat openat2 creat stat lstat newfstatat statx access faccessat faccessat2 unlink unlinkat rmdir rename
    renameat renameat2 link linkat symlink symlinkat readlink readlinkat mkdir mkdirat mknod mknodat chmod fchmodat fchmodat2
    chown lchown fchownat utime utimes futimesat utimensat truncate setxattr lsetxattr getxattr lgetxattr listxattr llistxattr
    removexattr lremovexattr getdents getdents64 execve execveat statfs chdir getcwd bind connect inotify_add_watch
    fanotify_mark name_to_handle_at open_tree move_mount mount umount2 pivot_root chroot swapon swapoff acct uselib quotactl
    open_by_handle_at fsopen fspick fsconfig mount_setattr setxattrat getxattrat listxattrat removexattrat""".split())

PADDING = re.compile(r"^(nop|data16|cs nop|xchg\s+%ax,%ax|udf)")
MACHINES = {  # the number's register is set, the call is made, a direct branch, an address is taken, nothing falls through
    "x86_64": (r"mov\s+\$0x([0-9a-f]+),%[er]ax$", r"^syscall", r"^(?:bnd )?(?:call|j[a-z]+)\s+([0-9a-f]+)\b",
               r"^lea .*# ([0-9a-f]+)\b", r"^(?:(?:repz |bnd )?ret|(?:notrack |bnd )?jmp\b|hlt|ud2)"),
    "aarch64": (r"mov\s+[wx]8, #0x([0-9a-f]+)", r"^svc\b", r"^(?:bl?|b\.[a-z]+|cbn?z\s+\w+,|tbn?z\s+\w+, #\w+,)\s+([0-9a-f]+)\b",
                r"^adr\s+\w+, ([0-9a-f]+)\b", r"^(?:ret|br?\s|brk)"),
}


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"derive_symbols.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def numbers():
    """{number: name} of the system calls, as the C compiler knows them; some are defined by way of another macro."""
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True,
                          text=True, check=True).stdout
    macros = dict(re.findall(r"^#define (__NR\w*) (\w+)$", text, re.MULTILINE))
    found = {}
    for macro, value in macros.items():
        value = macros.get(value, value)
        if macro.startswith("__NR_") and value.isdigit():
            found[int(value)] = macro[len("__NR_"):]
    return found


def exports(libc):
    """{name: address} of the functions that it exports, each under its newest version."""
    found = {}
    for line in output("nm", "--dynamic", "--defined-only", libc).splitlines():
        address, kind, name = line.split()
        bare = name.split("@")[0]
        if kind in "TtWwi" and (bare not in found or "@@" in name):
            found[bare] = int(address, 16)
    return found


class Code:
    """The functions of a library: where each starts, what it calls, which system calls it makes itself."""

    def __init__(self, libc, machine, exported):
        number, call, branch, taken, end = (re.compile(text) for text in MACHINES[machine])
        names, last, ended = numbers(), None, True
        self.made, branches, fresh = [], [], set()
        for line in output("objdump", "-d", "--no-show-raw-insn", libc).splitlines():
            at, colon, text = line.partition(":\t")
            if not colon:
                continue
            here, text = int(at, 16), text.strip()
            if PADDING.match(text):
                continue
            if ended:  # what follows is reached by a branch, or is another function
                fresh.add(here)
            ended = bool(end.match(text))
            if found := number.search(text):
                last = int(found[1], 16)
            elif call.match(text):
                self.made.append((here, names.get(last)))
            elif found := branch.match(text) or taken.match(text):
                branches.append((here, int(found[1], 16), bool(re.match(r"(bnd )?(call|bl\b|lea|adr)", text))))
        self.starts = sorted({*exported.values(), *fresh, *(to for _, to, is_call in branches if is_call)})
        self.starts = sorted({*self.starts, *(to for at, to, _ in branches if self.start_of(at) != self.start_of(to))})
        self.edges, self.calls = {}, {}
        for at, to, _ in branches:
            self.edges.setdefault(self.start_of(at), set()).add(self.start_of(to))
        for at, name in self.made:
            self.calls.setdefault(self.start_of(at), set()).add(name)

    def start_of(self, address):
        at = bisect.bisect_right(self.starts, address)
        return self.starts[at - 1] if at > 0 else None

    def reached(self, address):
        seen, todo, found = set(), [self.start_of(address)], set()
        while todo:
            start = todo.pop()
            if start not in seen:
                seen.add(start)
                found |= self.calls.get(start, set()) & CALLS
                todo += self.edges.get(start, ())
        return found


def derive(libc):
    """{symbol: the file-system calls it reaches}."""
    machine = re.search(r"Machine:\s+(.*)", output("readelf", "--file-header", libc))[1]
    kind = "x86_64" if "X86-64" in machine else "aarch64" if "AArch64" in machine else None
    if kind is None:
        sys.exit(f"derive_symbols.py: {libc} is for {machine}, whose instructions are not known here")
    exported = exports(libc)
    code = Code(libc, kind, exported)
    return {name: code.reached(address) for name, address in exported.items()}


def decided(path=LIST):
    """{symbol: (yes or no, group)}."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {words[0]: (words[1], words[2]) for words in lines}


def own_libc():
    return re.search(r"libc\.so\.6 => (\S+)", output("ldd", sys.executable))[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libc", type=pathlib.Path, help="the library (default: the one of this Python)")
    parser.add_argument("--list", type=pathlib.Path, default=LIST, help="the decisions (default: symbols.txt beside this)")
    parser.add_argument("--all", action="store_true", help="print every symbol that reaches a path, and the decision")
    options = parser.parse_args()
    found, decisions = derive(options.libc or own_libc()), decided(options.list)
    new = sorted(name for name, calls in found.items() if calls and name not in decisions)
    gone = sorted(name for name in decisions if name not in found)
    shown = [("new", name) for name in new] + [("gone", name) for name in gone]
    if options.all:
        shown = [(decisions.get(name, ("new",))[0], name) for name in sorted(found) if found[name]]
    for word, name in shown:
        print(word, name, ",".join(sorted(found.get(name, ()))), sep="\t")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
