#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""pjdfstest, a suite of others for what POSIX says of file systems, in a plain directory and on a `shunt mount -o allow_other`
whose files are in a branch: each of its checks comes out the same. CHECKOUT is a copy of github.com/pjd/pjdfstest, which is
left as it is. As root; takes autoconf and automake. Some six minutes. The last line is `N passed, N failed`."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CHECK = re.compile(r"(ok|not ok) (\d+)(.*)")
SHOWN = 60


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=pathlib.Path, metavar="CHECKOUT")
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build", help="the build directory")
    parser.add_argument("--area", type=pathlib.Path, default=tempfile.gettempdir(),
                        help="where it runs: a directory on the file system to be tested")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="tests whose names begin so (chmod, rename/0)")
    parser.add_argument("--jobs", type=int, default=4, help="so many tests at a time in each place; most of them sleep")
    return parser.parse_args()


def build_suite(checkout, to):
    shutil.copytree(checkout, to, ignore=shutil.ignore_patterns(".git"))
    with open(to / "build.log", "w") as log:
        for command in ("autoreconf -ifs", "./configure", "make pjdfstest"):
            if subprocess.run(command, shell=True, cwd=to, stdout=log, stderr=subprocess.STDOUT).returncode != 0:
                sys.exit(f"pjdfstest.py: '{command}' failed: {log.name}")
    # What it expects depends on the type of the file system, which is to be one in both places.
    (to / "df").write_text("#!/bin/sh\necho none ext4\n")
    (to / "df").chmod(0o755)


def checks_of(suite, test, directory):
    """What a test says of each of its checks; 0: of itself."""
    done = subprocess.run(["sh", test], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          env={**os.environ, "PATH": f"{suite}:{os.environ['PATH']}", "LC_ALL": "C"})
    said = {0: f"status {done.returncode} {done.stdout.partition(chr(10))[0]}"}
    for line in done.stdout.splitlines():
        if check := CHECK.fullmatch(line):
            said[int(check[2])] = re.sub(r"pjdfstest_[0-9a-f]+", "NAME", check[1] + check[3])
    return said


def run_both(suite, tests, plain, seen, jobs):
    """Yields (test, what it says natively, what it says on the mount)."""
    with ThreadPoolExecutor(jobs) as native, ThreadPoolExecutor(jobs) as mounted:
        pairs = [(test, native.submit(checks_of, suite, test, plain), mounted.submit(checks_of, suite, test, seen)) for test in tests]
        for test, one, other in pairs:
            yield test.relative_to(suite / "tests"), one.result(), other.result()


def compare(results):
    """(checks alike, those that differ)"""
    passed, shown = 0, []
    for test, native, seen in results:
        for number in sorted(native.keys() | seen.keys()):
            if native.get(number) == seen.get(number):
                passed += number > 0
            else:
                shown.append(f"{test} {number}: natively {native.get(number)}\n    on the mount {seen.get(number)}")
    return passed, shown


def main():
    options = parse_options()
    shunt = options.build.resolve() / "tools" / "shunt"
    if os.geteuid() != 0 or not shunt.exists():
        sys.exit("pjdfstest.py: root is needed, and a build")
    area = pathlib.Path(tempfile.mkdtemp(prefix="shunt-pjdfstest.", dir=options.area)).resolve()
    area.chmod(0o755)
    suite, root, at, plain, run = (area / name for name in ("suite", "root", "mount", "plain", "run"))
    build_suite(options.checkout, suite)
    for directory in (root, at, plain, run):
        directory.mkdir()
    tests = [test for test in sorted((suite / "tests").rglob("*.t"))
             if str(test.relative_to(suite / "tests")).startswith(tuple(options.only))]
    environment = {**os.environ, "SHUNT_RUN_DIR": str(run), "SHUNT_NODE": "n1"}

    def tool(*words):
        subprocess.run([shunt, *words], check=True, env=environment)

    tool("start", "--root", root, "--placement", "branch")
    try:
        tool("mount", "-o", "allow_other,dev,suid", root, at)
        (at / "seen").mkdir()
        passed, different = compare(run_both(suite, tests, plain, at / "seen", options.jobs))
    finally:
        subprocess.run([shunt, "umount", at], env=environment)
        subprocess.run([shunt, "stop", "--root", root], env=environment)
    print("\n".join(different[:SHOWN]))
    if not different:
        shutil.rmtree(area)
    print(f"{passed} passed, {len(different)} failed")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
