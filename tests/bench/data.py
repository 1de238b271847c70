#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""data.py [options]: sequential writes and reads as IOR makes them, natively and under shunt.

fio's processes write a file each, or parts of one shared file, and read them again, in blocks of 4 KiB to 64 MiB: natively,
under shunt (one node, placement branch), and natively once more, by turns. The two native runs show what noise is: shunt's rate
is wanted to be no further from the native one than the two native ones were from each other in any round, whichever of
them was faster. Likewise the processes' time on a processor, all cases together, which is less noisy: 5 % are let pass there.

The other half of the proof is counted: which functions that move data the library replaces."""

import itertools
import json
import subprocess

import measuring

COUNTS = {"mib": (256, 32, "MiB that each process writes"), "writers": (2, 2, "processes that write and read")}
BLOCKS = {"4 KiB": 4 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20, "64 MiB": 64 << 20}
NOISE = 0.05
QUICK_BLOCKS = ("64 KiB",)
CALLS = ("write", "read")
LAYOUTS = ("separate files", "one shared file")
MOVERS = ("read", "write", "pread", "pwrite", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2",
          "pwritev2", "mmap", "mmap64", "msync", "lseek", "lseek64", "sendfile", "sendfile64", "copy_file_range", "splice",
          "fread", "fwrite", "aio_read", "aio_write")


def job(case, directory, options):
    """One group of processes, after a wall: what was written is there when it is read."""
    layout, block, call = case
    each = options.mib << 20
    where = [f"--directory={directory}", f"--filename_format=b{block}.$jobnum"] if layout == "separate files" else \
        [f"--filename={directory}/shared{block}", f"--offset_increment={each}"]
    return [f"--name={call}", "--stonewall", f"--rw={call}", *where, f"--bs={block}", f"--size={each}",
            f"--numjobs={options.writers}", "--ioengine=psync", "--fallocate=none", "--group_reporting"]


def one_way(area, way, cases, options):
    """{case: (bytes a second, CPU time)}; the files are gone then, so that each run makes its own."""
    directory, run = (area.root / "out", area.under_shunt) if way == "shunt" else (area.plain, area.run)
    words = [word for case in cases for word in job(case, directory, options)]
    jobs = json.loads(run("fio", "--output-format=json", *words))["jobs"]
    run("find", directory, "-type", "f", "-name", "*[0-9]", "-delete")
    return {case: (job[case[-1]]["bw_bytes"], job["job_runtime"] * (job["usr_cpu"] + job["sys_cpu"]))
            for case, job in zip(cases, jobs, strict=True)}


def noise_of(ratios):
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def findings(rounds, names):
    for case in rounds[0]["native"]:
        of = {way: [one[way][case][0] / one["native"][case][0] for one in rounds] for way in rounds[0]}
        noise = noise_of(of["native again"])
        layout, block, call = case
        yield measuring.Finding(8, f"{call}, {layout}, {names[block]}: shunt's rate over native's", "x", of["shunt"],
                                least=1 / noise, most=noise)


def cpu_findings(rounds):
    """Of all cases together, since that depends less on what else the machine does."""
    for call in CALLS:
        spent = [{way: sum(cpu for (_, _, what), (_, cpu) in one[way].items() if what == call) for way in one}
                 for one in rounds]
        again = [one["native again"] / one["native"] for one in spent]
        noise = max(1 + NOISE, noise_of(again))
        yield measuring.Finding(8, f"{call}, all of these: CPU time under shunt over native's", "x",
                                [one["shunt"] / one["native"] for one in spent], least=1 / noise, most=noise)
        yield measuring.Finding(8, f"{call}, all of these: CPU time native over native's", "x", again)


def replaced(area):
    library = area.build / "lib" / "shim" / "libshunt_preload.so"
    words = ["nm", "-D", "--defined-only", library]
    exported = {line.split()[-1] for line in subprocess.run(words, stdout=subprocess.PIPE, text=True,
                                                            check=True).stdout.splitlines()}
    return exported.intersection(MOVERS)


def measure(options):
    names = {size: name for name, size in BLOCKS.items() if not options.quick or name in QUICK_BLOCKS}
    cases = list(itertools.product(LAYOUTS, names, CALLS))
    with measuring.Area(options) as area:
        area.start()
        area.under_shunt("mkdir", area.root / "out")
        area.under_shunt("touch", area.root / "out" / "first")
        area.must_be_redirected()
        ways = {way: lambda _, way=way: one_way(area, way, cases, options) for way in ("native", "shunt", "native again")}
        rounds = measuring.alternate(options.rounds, "data", ways)
        return [measuring.Finding(8, "functions that move data and are replaced", "", [len(replaced(area))], most=0),
                *findings(rounds, names), *cpu_findings(rounds)]


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
