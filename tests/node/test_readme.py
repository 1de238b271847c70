# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What README.md says is so: verbs, variables, files, and the calls that are not wrapped."""

import re

from conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def test_every_verb_exists(shunt):
    verbs = set(re.findall(r"shunt ([a-z]+)[ `\n]", "\n".join(re.findall(r"(?:`|    )(shunt [^`\n]*[`\n])", README))))
    assert {"run", "start", "exec", "stop", "ls", "export", "fsck"} <= verbs
    for verb in verbs - {"help"}:
        shunt("help", verb.lower()).check()


def test_the_variables_are_those_that_are_read():
    named = set(re.findall(r"^\| `(SHUNT_[A-Z_]+)` \|", README, re.M))
    read = set(re.findall(r'"(SHUNT_[A-Z_]+)"', (REPOSITORY / "lib" / "config" / "config.c").read_text()))
    assert named == read


def test_every_path_exists():
    for path in re.findall(r"`((?:lib|daemon|tools|tests|examples|include)/[^`* ]+)`", README):
        assert (REPOSITORY / path).exists(), path
    for room in (REPOSITORY / "lib").iterdir():
        assert not room.is_dir() or f"      {room.name}/" in README, f"lib/{room.name} is not on the tour"
    for room in (REPOSITORY / "daemon").iterdir():
        assert not room.is_dir() or f"      {room.name}/" in README, f"daemon/{room.name} is not on the tour"


def test_what_is_said_not_to_be_wrapped_is_not():
    table = set(re.findall(r"^SYMBOL\(\w+, (\w+)", (REPOSITORY / "lib" / "shim" / "table.h").read_text(), re.M))
    section = README[README.index("*Calls not wrapped.*"):README.index("*Calls that differ.*")]
    missing = set(re.findall(r"`([a-z_]+)`", section))
    assert {"sendto", "sendmsg", "tmpnam", "tmpnam_r"} <= missing and not missing & table
