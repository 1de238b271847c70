# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Which processes live, and who starts a daemon again."""

import pathlib


def stat_of(pid):
    """The fields of its stat behind its name: state, parent ..."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_running(pid):
    try:
        return stat_of(pid)[0] not in "ZX"
    except OSError:
        return False


def supervisor_of(pid):
    parent = stat_of(pid)[1]
    is_one = pathlib.Path(f"/proc/{parent}/comm").read_text() == "shuntd\n"
    return [int(parent)] if is_one else []
