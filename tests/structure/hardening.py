#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""hardening.py BUILD: what the flags of meson.build promise is in the files that a release build makes.

shuntd, shunt, shunt-launch, shunt-static and libshunt are bound at start (BIND_NOW), have a read-only relocation segment, check their stack
and libc's buffers (_FORTIFY_SOURCE); nothing names a directory of the machine that built it. The preload library is bound
at start and imports libc alone. The exit status is 1 if one of that is missing."""

import pathlib
import subprocess
import sys

HARDENED = ["daemon/shuntd", "tools/shunt", "tools/shunt-launch", "tools/static/shunt-static", "lib/api/libshunt.so.*[0-9]"]
IF_BUILT = ["tools/spank/spank_shunt.so", "tools/mount/shunt-mount"]
PRELOAD = "lib/shim/libshunt_preload.so"


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True).stdout


def faults_of(path, sources):
    dynamic, symbols = readelf("-d", path), readelf("--dyn-syms", path)
    if "BIND_NOW" not in dynamic and " NOW" not in dynamic:
        yield "is not bound at start"
    if path.name.startswith("libshunt_preload"):
        needed = [line for line in dynamic.splitlines() if "(NEEDED)" in line and "libc.so" not in line and "ld-linux" not in line]
        yield from (f"needs more than libc: {line.strip()}" for line in needed)
    else:
        if "GNU_RELRO" not in readelf("-l", path):
            yield "has no read-only relocations"
        if "__stack_chk_fail" not in symbols:
            yield "does not check its stack"
        if "_chk@" not in symbols.replace("__stack_chk_fail", ""):
            yield "calls no checked function of libc"
    content = path.read_bytes()
    for directory in sources:
        if str(directory).encode() + b"/" in content:
            yield f"names {directory}"


def main(build):
    build = pathlib.Path(build).resolve()
    files = [path for name in [*HARDENED, PRELOAD] for path in (sorted(build.glob(name))[:1] or [build / name])]
    files += [build / name for name in IF_BUILT if (build / name).exists()]
    bad = 0
    for path in files:
        for fault in faults_of(path, [build, pathlib.Path(__file__).resolve().parents[2]]):
            print(f"{path.relative_to(build)}: {fault}")
            bad += 1
    print(f"{len(files)} files, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
