# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The stressors of stress-ng that work on files and names, each bounded by a number of operations and verifying what
it does."""

import functools
import re

from suite import Suite

# Stressor, operations, workers, further options. chmod and chown have one worker, since the others wait for the file of
# the first to appear, without an end if it is already gone.
STRESSORS = (
    ("access", 500, 2), ("chdir", 20, 2, "--chdir-dirs", "512"), ("chmod", 500, 1), ("chown", 500, 1),
    ("copy-file", 50, 2), ("dentry", 10_000, 2), ("dir", 10_000, 2), ("dirdeep", 2_000, 2), ("dirmany", 2_000, 2),
    ("fallocate", 20, 2), ("fcntl", 5_000, 2), ("fiemap", 50, 2), ("filename", 500, 2), ("flock", 5_000, 2),
    ("getdent", 2_000, 2), ("hdd", 500, 2), ("iomix", 200, 2), ("lease", 500, 2),
    ("link", 4, 2), ("locka", 500, 2), ("lockf", 5_000, 2), ("lockofd", 500, 2), ("mknod", 500, 2), ("mmapfork", 1, 1),
    ("msync", 50, 2), ("open", 5_000, 2), ("readahead", 20, 2), ("rename", 5_000, 2), ("revio", 2_000, 2),
    ("seek", 2_000, 2), ("sync-file", 20, 2), ("symlink", 1, 2), ("touch", 2_000, 2), ("utime", 5_000, 2),
    ("xattr", 100, 2),
)
WITHOUT_FILES = {"chdir", "dir", "getdent", "mmapfork"}
AS_NOBODY_TOO = {"chmod", "chown", "dentry", "dirdeep", "filename", "link", "rename", "utime"}

COMPLAINT = re.compile(r"stress-ng: (fail|error|warn):")
ENOUGH = 300  # seconds, after which stress-ng itself gives up, and has not done what was asked


def command(name, operations, workers, options, place):
    return ["stress-ng", "--no-rand-seed", "--verify", "--temp-path", place.root, "--timeout", ENOUGH,
            "--metrics-brief", f"--{name}", workers, f"--{name}-ops", operations, *options]


def done(name, text):
    """The operations that stress-ng counted."""
    found = re.search(rf"metrc: \[\d+\] {name} +(\d+) ", text)
    return int(found[1]) if found else 0


def outcomes(name, operations, place, ended):
    text = ended.out + ended.err
    complaints = {re.sub(r"\[\d+\] ", "", line) for line in text.splitlines() if COMPLAINT.match(line)}
    some = "all" if done(name, text) >= operations else done(name, text)
    return [f"{some} of {operations} operations", *sorted(complaints)]


def suite(name, operations, workers, *options, as_nobody=False):
    return Suite(f"stress-{name}{'-as-nobody' if as_nobody else ''}",
                 functools.partial(command, name, operations, workers, options),
                 functools.partial(outcomes, name, operations), as_nobody=as_nobody,
                 redirects=name not in WITHOUT_FILES)


def suites():
    return [suite(*stressor, as_nobody=as_nobody) for stressor in STRESSORS for as_nobody in (False, True)
            if not as_nobody or stressor[0] in AS_NOBODY_TOO]
