# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""git's own commands, some hundred of them in a row, in repositories that know of each other."""

from suite import Suite, script

# An index holds times and inode numbers.
INDEXES = (r".*\.git/(worktrees/[^/]*/|modules/sub/central/)?index",)


def suites():
    return [Suite("git", script("git_script.sh", program="bash"), any_content=INDEXES)]
