#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""through_mount.py [options]: what calls cost below `shunt mount`, and how fast data goes.

One process makes files, looks at each, opens it, and removes it, then writes a file of --mount-mib in blocks and reads it:
natively, through bindfs, under shunt, and through shunt mount without shunt's library, by turns, in directories of the same file
system. bindfs lets the kernel keep names and attributes for a second, which is forgotten before files are looked at; shunt
mount lets it keep nothing."""

import contextlib
import os
import time

import measuring
import pass_through

COUNTS = {"mount-files": (5_000, 200, "files in a round below a mount"), "mount-mib": (512, 32, "MiB to write and read there")}
BLOCKS = {"64 KiB": 64 << 10, "1 MiB": 1 << 20}


@contextlib.contextmanager
def mounted(area):
    """The root, by shunt mount."""
    at = area.top / "view"
    at.mkdir()
    area.run(area.shunt, "mount", area.root, at)
    try:
        yield at
    finally:
        area.run(area.shunt, "umount", at)


def rate(path, size, block, flags, call):
    """MB a second."""
    fd = os.open(path, flags, 0o644)
    began = time.monotonic()
    for _ in range(size // block):
        call(fd)
    os.close(fd)
    return size / (time.monotonic() - began) / 1e6


def data_round(directory, mib):
    """Of processes without the library; under shunt data is native."""
    found, path = {}, directory / "data"
    for name, block in BLOCKS.items():
        text = bytearray(os.urandom(block))
        found[f"write, {name}"] = rate(path, mib << 20, block, os.O_WRONLY | os.O_CREAT, lambda fd, text=text: os.write(fd, text))
        found[f"read, {name}"] = rate(path, mib << 20, block, os.O_RDONLY, lambda fd, text=text: os.readv(fd, [text]))
        path.unlink()
    return found


def one_round(crew, directory, options, turn):
    files, prefix, found = options.mount_files, f"r{turn}", {}
    found["create"] = crew.microseconds("create", files, prefix=prefix)
    time.sleep(pass_through.FORGOTTEN)
    for call in ("stat", "open", "unlink"):
        found[call] = crew.microseconds(call, files, prefix=prefix)
    return {**found, **(data_round(directory, options.mount_mib) if directory else {})}


def findings(rounds):
    for call in rounds[0]["mount"]:
        is_rate = "KiB" in call or "MiB" in call
        ratios = [one["mount"][call] / one["bindfs"][call] for one in rounds]
        yield measuring.Finding(14, f"{call}: shunt mount's {'rate' if is_rate else 'time'} over bindfs's", "x", ratios,
                                least=0.9 if is_rate else None)
        for way in rounds[0]:
            if call in rounds[0][way]:
                yield measuring.Finding(14, f"{call}, {way}", "MB/s" if is_rate else "us", [one[way][call] for one in rounds])


def measure(options):
    with measuring.Area(options) as area, pass_through.mounted(area) as bindfs:
        area.start()
        with mounted(area) as mount:
            # A directory each, that the files of the others are not in.
            tops = {"native": area.plain, "bindfs": bindfs, "mount": mount / "seen", "shunt": area.root / "direct"}
            for top in tops.values():
                top.mkdir(exist_ok=True)
            crews = {way: area.crew("bench_worker", top, 1, node="n0" if way == "shunt" else None) for way, top in tops.items()}
            crews["mount"].make("create", 1, prefix="first")
            area.must_be_redirected()
            ways = {way: lambda turn, way=way: one_round(crews[way], None if way == "shunt" else tops[way], options, turn)
                    for way in tops}
            found = list(findings(measuring.alternate(options.rounds, "through a mount", ways)))
            area.end_crews()
        return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
