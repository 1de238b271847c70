#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""names.py [TOP]: the names of functions, as a backtrace shows them.

In lib/, daemon/ and tools/ a static function begins with the name of its file, or with its first words (rename_fence.c:
rename_fence_lift); in all of the tree none has a one-word name. Prints those that do not hold to it; exit status 1 if
there are any."""

import pathlib
import re
import sys

STATIC = re.compile(r"^(?:__attribute__\(\(\w+\)\) )?static (?!inline\b)[^=;{}()]*?\b(?!ElfW\b)(\w+)\((?!\()[^;]*?\)\s*\{", re.M)


def statics(path):
    """The static functions that a source defines."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return [name for name in STATIC.findall(text) if name not in ("__attribute__", "main")]


def begins_with_file(name, stem):
    words = stem.split("_")
    return any(name.startswith("_".join(words[:count]) + "_") for count in range(1, len(words) + 1))


def main(top="."):
    top, bad, count = pathlib.Path(top), 0, 0
    for room in ("lib", "daemon", "tools", "tests", "examples"):
        for path in sorted((top / room).rglob("*.c")):
            for name in statics(path):
                count += 1
                owned = room in ("lib", "daemon", "tools")
                if "_" not in name or (owned and not begins_with_file(name, path.stem)):
                    print(f"{path.relative_to(top)}: {name}")
                    bad += 1
    print(f"{count} static functions, {bad} whose names say too little")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
