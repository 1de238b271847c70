# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What a man page says of how commands are called, and what their help says of it."""

import re


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
