# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the documents say is so: README.md, docs/ and the manual pages."""

import re
import subprocess

import pytest
from conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
ARCHITECTURE = (REPOSITORY / "docs" / "architecture.md").read_text()
CONCEPTS = (REPOSITORY / "docs" / "shunt.7").read_text()
DOCUMENTS = sorted(REPOSITORY.glob("*.md")) + sorted((REPOSITORY / "docs").glob("*.md"))
PAGES = [page for room in ("docs", "tools", "daemon", "lib") for page in sorted((REPOSITORY / room).rglob("*.[13578]"))]


def test_the_readme_can_be_read_in_one_go():
    assert len(README.splitlines()) <= 160


def test_the_readme_counts_no_tests():
    assert not re.search(r"[0-9]+ (of [0-9]+ )?(programs|parts|steps|tests)\b", README), "the number is another one with the next test"


def test_every_subcommand_exists(shunt):
    lines = re.findall(r"(?:`|^    )(shunt [^`\n]*)", README, re.M)
    subcommands = {name for line in lines for name in re.findall(r"(?<![.\w])shunt ([a-z]+)\b", line)}
    assert {"run", "start", "exec", "stop", "ls", "export", "fsck"} <= subcommands
    for subcommand in subcommands - {"help"}:
        shunt("help", subcommand).check()


def test_the_variables_are_those_that_are_read():
    named = set(re.findall(r"^\| `(SHUNT_[A-Z_]+)` \|", README, re.M))
    read = set(re.findall(r'"(SHUNT_[A-Z_]+)"', (REPOSITORY / "lib" / "config" / "config.c").read_text()))
    assert named == read


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_exists(document):
    text = document.read_text()
    paths = re.findall(r"`((?:lib|daemon|tools|tests|examples|include|docs)/[^`* ]+)`", text)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    for path in paths:
        name, _, test = path.partition("::")
        assert (REPOSITORY / name).exists(), path
        assert not test or f"def {test}(" in (REPOSITORY / name).read_text(), path
    for link in links:
        assert (document.parent / link).exists(), link


def test_the_overviews_name_every_manual_page():
    for overview in (REPOSITORY / "tools" / "shunt.1", REPOSITORY / "docs" / "shunt.7"):
        text = overview.read_text().replace("\\-", "-")
        for page in PAGES:
            name, section = page.name.rsplit(".", 1)
            assert page == overview or f".BR {name} ({section})" in text.split(".SH SEE ALSO\n")[1], (overview.name, page.name)


def test_every_room_is_in_the_architecture():
    for part in ("lib", "daemon", "tools"):
        for room in (REPOSITORY / part).iterdir():
            assert not room.is_dir() or f"      {room.name}/" in ARCHITECTURE, f"{part}/{room.name}"


def test_numbers_of_formats_are_those_of_the_sources():
    rooms = [REPOSITORY / "lib", REPOSITORY / "daemon"]
    defined = dict(re.findall(r"^#define (\w+) (\d+)\b", "".join(path.read_text() for room in rooms for path in room.rglob("*.h")), re.M))
    said = [pair for room in rooms for path in room.rglob("*.md") for pair in re.findall(r"`([A-Z_]+)` = (\d+)", path.read_text())]
    assert len(said) >= 4 and [(name, defined.get(name)) for name, _ in said] == said
    live = re.search(r"^    shunt-catalogue (\d+)$", (REPOSITORY / "lib" / "catalogue" / "FORMAT.md").read_text(), re.M)
    assert live.group(1) == defined["CATALOGUE_FORMAT"]


def test_what_is_said_not_to_be_wrapped_is_not():
    table = set(re.findall(r"^SYMBOL\(\w+, (\w+)", (REPOSITORY / "lib" / "shim" / "table.h").read_text(), re.M))
    section = CONCEPTS[CONCEPTS.index(".SS Calls that are not wrapped"):CONCEPTS.index(".SS Calls that differ")]
    missing = set(re.findall(r"([a-z_]+) \([23]\)", section))
    assert {"sendto", "sendmsg", "tmpnam", "tmpnam_r", "wordexp"} <= missing and not missing & table


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_manual_pages_have_no_faults(page):
    result = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
