# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""count_results.py DIRECTORY: adds up the JUnit files of a test run.

Names what failed, with what it says of that, then prints `N passed, N failed` (and `, N skipped` if any) as the last line.
NAME.status next to NAME.xml is the exit status of the command that wrote it: one that failed without a failure in its file, or
without a file, counts as one failure. The exit status is 0 if something passed and nothing failed."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

LINES_MOST, LINE_MOST = 8, 300


def outcome(case):
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"


def reason(case):
    """What a failed test says: of pytest's, the error and where it was."""
    text = "".join(child.text or child.get("message") or "" for child in case if child.tag in ("failure", "error"))
    told = [line[:LINE_MOST] for line in text.splitlines() if re.match(r"E  |\S+:\d+: ", line)] or text.splitlines()
    return told if len(told) <= 2 * LINES_MOST else [*told[:LINES_MOST], "...", *told[-LINES_MOST:]]


def read_cases(path):
    """(name, outcome, reason) of each test in a JUnit file; nothing from a file that is missing or cut off."""
    try:
        cases = ElementTree.parse(path).iter("testcase")
    except (OSError, ElementTree.ParseError):
        return []
    return [(f"{case.get('classname') or ''} {case.get('name')}".strip(), outcome(case), reason(case)) for case in cases]


def main(directory):
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for status in sorted(directory.glob("*.status")):
        stage = status.stem
        cases = read_cases(status.with_suffix(".xml"))
        failed = [(name, why) for name, result, why in cases if result == "failed"]
        for _, result, _ in cases:
            totals[result] += 1
        code = status.read_text().strip()
        if not failed and code != "0":
            failed = [(f"ended with status {code}", [])]
            totals["failed"] += 1
        for name, why in failed:
            print(f"FAILED {stage}: {name}", *why, sep="\n    ")
    print(f"{totals['passed']} passed, {totals['failed']} failed"
          + (f", {totals['skipped']} skipped" if totals["skipped"] else ""))
    return 0 if totals["passed"] and not totals["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
