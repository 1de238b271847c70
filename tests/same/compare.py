# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the program `same` printed natively, and what it printed under shunt."""

import itertools
import os
import re

SHOWN = 40

# The edge of a root is like that of a file system for what takes more than one rename: a directory would leave its mirrors
# after. mv and all else that knows EXDEV copies instead.
EDGE = re.compile(r"(SYS_)?rename[a-z0-9]*(\([^)]*\))? .*out/")
REFUSED = re.compile(r" = EXDEV( |$)")


# What the system beneath does not do as Linux does (tests/portability), and is not compared: by the beginning of its key.
EXCEPTED = re.compile(os.environ.get("SHUNT_SAME_EXCEPT", r"(?!)"))


def is_edge(key, native_lines, seen_lines):
    """What an earlier case has changed for good is told with every case, natively, too."""
    others = [line for line in seen_lines if line not in native_lines]
    return bool(EDGE.match(key)) and len(others) == 1 and bool(REFUSED.search(others[0]))


def blocks(text):
    """The cases of an output: for each its key, and all that was printed of it."""
    found, pending = [], []
    for line in text.splitlines():
        if line.startswith("    ") and found:
            found[-1][1].append(line)
        elif " = " in line:
            found.append((line.split(" = ")[0], [*pending, line]))
            pending = []
        else:
            pending.append(line)
    return [*found, ("the rest", pending)]


def differences(native, seen):
    """A readable comparison, empty if the outputs are the same."""
    if native == seen:
        return ""
    ours, theirs = blocks(native), blocks(seen)
    pairs = itertools.zip_longest(ours, theirs, fillvalue=("nothing", []))
    unequal = [(a, b) for a, b in pairs
               if a != b and not (a[0] == b[0] and (EXCEPTED.match(a[0]) or is_edge(a[0], a[1], b[1])))]
    if not unequal:
        return ""
    lines = [f"{len(unequal)} of {len(ours)} cases differ"]
    for (key, native_lines), (_, seen_lines) in unequal[:SHOWN]:
        lines += [f"-- {key}"]
        lines += [f"   native: {line}" for line in native_lines if line not in seen_lines]
        lines += [f"   shunt:  {line}" for line in seen_lines if line not in native_lines]
    return "\n".join(lines)
