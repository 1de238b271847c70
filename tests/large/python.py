# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Python's own tests of what it asks of the file system."""

import functools
import xml.etree.ElementTree as ElementTree

from suite import PYTHON, Suite

MODULES = ("test_os", "test_shutil", "test_pathlib", "test_glob", "test_tempfile", "test_subprocess", "test_mmap",
           "test_fcntl")


def command(module, place):
    # Its working directory and all its temporary files are below --tempdir.
    return [PYTHON, "-m", "test", "--tempdir", place.root, "--junit-xml", place.above / "junit.xml", module]


def outcome(case):
    bad = [child for child in case if child.tag in ("error", "failure")]
    if bad:
        last = (bad[0].text or "").strip().splitlines()[-1:]
        return f"{bad[0].tag} {''.join(last)}"
    return "ok" if case.get("status") == "run" and case.find("skipped") is None else "skipped"


def outcomes(place, ended):
    try:
        cases = ElementTree.parse(place.above / "junit.xml").iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        return [f"no report: {error}"]
    return sorted(f"{case.get('name')}: {outcome(case)}" for case in cases)


def suites():
    return [Suite(f"{module}{'-as-nobody' if as_nobody else ''}", functools.partial(command, module), outcomes, "tests",
                  as_nobody=as_nobody, refused=module == "test_subprocess" and not as_nobody)
            for module in MODULES for as_nobody in (False, True)]
