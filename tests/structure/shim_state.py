#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""shim_state.py BUILD: what of the preload library changes stands in lib/shim/state.h, with its fork, thread and signal rules.

Reads the objects of lib/shim in a build directory. The exit status is 1 if one other than that of state.c holds a static or
global variable that is not constant, of the process or of a thread, unless WRITE_ONCE names it; each is printed."""

import re
import subprocess
import sys

from link_graph import PRELOAD, sources

STATE = PRELOAD / "state.c"
# {source: {variable: why it may stand there}}
WRITE_ONCE = {
    PRELOAD / "real.c": {
        "real": "table.h makes its type; each pointer goes from NULL to the one function that it can be, the same for every thread",
        "libraries": "filled before the program's first instruction, read from then on; only real.c knows what it means",
        "library_count": "of libraries, filled with them",
        "started": "set when libraries are filled",
    },
}
MUTABLE = re.compile(r"^(\.data(?!\.rel\.ro)|\.bss|\.tdata|\.tbss|\.lbss|\.ldata|\*COM\*)")  # else it is code or constant


def mutable(path):
    """The variables that an object defines and that may change. Names with two underscores first are the compiler's own."""
    lines = subprocess.run(["nm", "--format=sysv", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[2] in ("b", "B", "d", "D", "C", "s", "S", "g", "G", "u", "V", "v") and \
                fields[3] in ("OBJECT", "TLS", "COMMON") and MUTABLE.match(fields[6]) and not fields[0].startswith("__"):
            yield re.sub(r"\.\d+$", "", fields[0])  # one of a function has a number


def main(build):
    objects = {path: source for path, source in sources(build).items() if source.parent == PRELOAD}
    held = {source: sorted(mutable(path)) for path, source in objects.items()}
    bad = [f"{source}: {name}" for source, names in sorted(held.items()) for name in names
           if source != STATE and name not in WRITE_ONCE.get(source, {})]
    gone = [f"{source}: {name} (named in WRITE_ONCE, but not there)" for source, names in WRITE_ONCE.items() for name in names
            if name not in held.get(source, ())]
    missing = [] if held.get(STATE) else [f"{STATE}: no state"]
    for line in bad + gone + missing:
        print(f"BAD {line}")
    print(f"{len(objects)} objects, {len(bad)} mutable variables outside {STATE.name}")
    return 1 if bad or gone or missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
