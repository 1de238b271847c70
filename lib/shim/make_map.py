# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""make_map.py TABLE MAP: the linker's version script of the preload library: it exports what the table lists, nothing else."""

import re
import sys


def main(table, to):
    with open(table) as file:
        names = sorted(set(re.findall(r"^SYMBOL\(\w+, (\w+),", file.read(), re.M)))
    if not names:
        sys.exit(f"{table}: no SYMBOL lines")
    with open(to, "w") as file:
        file.write("{\n  global:\n" + "".join(f"    {name};\n" for name in names) + "  local:\n    *;\n};\n")


main(*sys.argv[1:])
