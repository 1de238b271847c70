# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a man page says of how commands are called, and what their help says of it."""

import re
import shlex

from conftest import REPOSITORY

OVERVIEW = REPOSITORY / "tools" / "shunt.1"
PAGES = [OVERVIEW, *sorted(OVERVIEW.parent.glob("shunt-*.1"))]


def page_of(subcommand):
    """The page that names it under NAME, else the overview."""
    for page in PAGES[1:]:
        names = page.read_text().split(".SH NAME\n")[1].split(" \\- ")[0]
        if f"shunt-{subcommand}" in names.replace("\\-", "-").split(", "):
            return page
    return OVERVIEW


def synopses(page):
    """[(command, its line)] of a man page, as they stand there."""
    text = page.read_text().split(".SH SYNOPSIS\n.nf\n")[1].split(".fi\n")[0]
    lines = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-").replace("\n ", " ").splitlines()
    return [re.match(r"([a-z-]+(?: [a-z]+)?) ?(.*)", line).groups() for line in lines]


def options_of(text):
    """[{spelling}] of the options that a command's help lists."""
    return [set(pair) - {""} for pair in re.findall(r"^  (-[\w-]+)(?:, (-[\w-]+))?", text, re.M)]


def names_all(line, options):
    """Does it name each of these options once, in one of its spellings, and no other?"""
    named = re.findall(r"(?<![\w-])--?[a-zA-Z0-9][\w-]*", line)
    return len(named) == len(options) and all(sum(map(named.count, option)) == 1 for option in options)


def italics(text):
    """{word} that is set in italics by a macro."""
    lines = [shlex.split(line) for line in text.splitlines() if re.match(r"\.(I|IR|RI) ", line)]
    return {word for macro, *words in lines for word in words[macro == ".RI"::1 if macro == ".I" else 2]}


def fields_of_json(page, verb):
    """{field} of what a subcommand prints with --json, as the page tells them."""
    section = page.read_text().split("\n.SH JSON\n")[1].split("\n.SH ")[0]
    for part in re.split(r"^\.TP\n|^\.PP\n", section, flags=re.M)[1:]:
        verbs, text = part.split("\n", 1)
        if verb in shlex.split(verbs):
            return italics(text)
    raise KeyError(verb)


def keys_of(made, but=()):
    """{key} of what was printed as JSON, at every depth, but for what is below some of them."""
    if isinstance(made, list):
        return set().union(*(keys_of(one, but) for one in made))
    if isinstance(made, dict):
        return set(made).union(*(keys_of(value, but) for key, value in made.items() if key not in but))
    return set()
