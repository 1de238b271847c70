# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""SQLite, whose databases several processes write and read at once."""

from suite import Suite, script

MODES = ("wal", "delete", "truncate", "persist")


def suites():
    # Which page a row lies in depends on who came first; the program prints what the tables hold.
    return [Suite(f"sqlite-{mode}", script("sqlite_program.py", mode), any_content=(r".*\.db", r".*-journal"))
            for mode in MODES]
