#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""messages.py [TOP]: what users read on standard error, in the daemon's log and in `shunt status` has one form.

A message is `object: failure (remedy)`. This takes the format strings of all calls that print one, and the tables and
functions whose strings become a part of one, and prints those with a forbidden word, with a full stop at the end, with a
capital letter at the beginning (except proper names), or with a remedy that is not in parentheses; and the errors of tools,
and those with which a daemon does not start, that end without one. Exit status 1 if there are any."""

import pathlib
import re
import sys

CALLS = re.compile(r"\b(error_report|error_usage|log_line|log_warning|complain|fsck_tell|progress_line|command_one_word|"
                   r"command_complain_option|doctor_say|program_words|explain_words|epoch_add_\w+|slurm_error)\(")
# Strings that become a part of a message: the whole body of these functions and tables.
BODIES = {
    "tools/cli/error.c": ["sentences[]"],
    "tools/leaving/copy.c": ["copy_words("],
    "tools/serving/counters.c": ["counters_in_words(", "counters_print("],
    "tools/commands/command_status.c": ["command_status_reason(", "command_status_print_words("],
    "tools/spank/tool.c": ["tool_complain_roots("],
    "tools/repair/fsck_mirrors.c": ["fsck_mirrors_look_at_orphan("],
    "lib/names/explain.c": ["explain_code("],
    "lib/session/epoch.c": ["session_describe("],
    "lib/shim/program.c": ["program_about_elf(", "program_about_rights("],
    "daemon/crash.c": ["crash_report("],
}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
FORBIDDEN = re.compile(r"\b(verb|too much|makes? no sense|in vain|is no more|who|whom|he|his|him|nobody|somebody|anybody|whoever|anew|behind|"
                       r"beside|keeper|crew|kin|mend|beats?|fabric|is no|has gone away|stands above|said above|cannot be had|"
                       r"does not do|gets? them back|road|lane|errand|flight|parked|withdraw)\b|`")
PROPER = re.compile(r"(SHUNT_[A-Z_]+|FLUX_URI|TCP|LD_PRELOAD|EIO|Open MPI|MPICH|Intel\(R\))\b")
# A call of these ends with a remedy in parentheses, in one of its strings; of doctor_say, one of a problem.
ERRORS = re.compile(r"error_report|complain|doctor_say")
# What is no error, but says what goes on; and what passes on a sentence that is made, and looked at, elsewhere.
WITHOUT_REMEDY = {
    "%s", "%s: %s",
    "%s: waits for another job of yours that starts or stops the daemon of this node",
    "%s: %s, whose %s is about to end, which is waited for",
    "%s: %s, which is taken over after %llu s without a heartbeat",
    "%s: %s, whose end is waited for",
    "%s: taken over, since %s has ended (it was %s)",
    "%s: taken over, since no heartbeat came for %llu s (it was %s)",
    "file%s redirected, %.1f s waited for other processes, %s",
    "%s: no counters of all daemons, %s",
}
REMEDY = re.compile(r"[;,:] (?:please )?(?:use|run|try|see|give|make|set|remove|name|check|ask|start|stop|install|move)\b")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def end_of(text, at, opening, closing):
    """The place after the bracket that closes the one before `at`."""
    depth = 1
    for token in re.compile(LITERAL + r"|'(?:[^'\\]|\\.)+'|[" + re.escape(opening + closing) + "]").finditer(text, at):
        if token[0] in (opening, closing):
            depth += 1 if token[0] == opening else -1
        if depth == 0:
            return token.end()
    return len(text)


def strings(text):
    """The string literals of a piece of C, those that follow each other joined."""
    for found in re.finditer(LITERAL + r"(?:\s*(?:[A-Z_]{3,}\s*)?" + LITERAL + ")*", text):
        yield "".join(part[1:-1] for part in re.findall(LITERAL, found[0])).replace("\\n", "").replace('\\"', '"')


def pieces(path, text):
    """What is printed: (offset, text of a call or body, the function that is called)."""
    for found in CALLS.finditer(text):
        yield found.start(), text[found.end():end_of(text, found.end(), "(", ")")], found[1]
    for name in BODIES.get(str(path), []):
        at = text.find(name)
        while at >= 0 and (end := re.compile(r"[{;]").search(text, at)) and end[0] == ";":
            at = text.find(name, at + 1)
        if at < 0:
            yield -1, name, None
            continue
        begin = text.index("{", at) + 1
        yield at, text[begin:end_of(text, begin, "{", "}")], None


def faults(message):
    """What is wrong with the form of a message."""
    plain = re.sub(r"%[-0-9.*]*(?:ll?|z)?[a-z]", "x", message).strip()
    outside = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", plain)
    if found := FORBIDDEN.search(plain):
        yield f"forbidden: {found[0]}"
    if plain.endswith(".") and not plain.endswith("..."):
        yield "ends with a full stop"
    first = re.match(r"(?:x: )*", plain).end()
    if re.match(r"[A-Z]", plain[first:]) and not PROPER.match(plain, first):
        yield "begins with a capital letter"
    if found := REMEDY.search(outside.split("(")[0] if outside.count("(") > outside.count(")") else outside):
        yield f"a remedy outside parentheses: {found[0]}"


def lacks_remedy(piece, call):
    """Is it an error that leaves a user without what to do next?"""
    if not call or not ERRORS.fullmatch(call) or (call == "doctor_say" and "DOCTOR_PROBLEM" not in piece):
        return False
    said = {message.strip() for message in strings(piece)}
    return bool(said) and not said & WITHOUT_REMEDY and not any(message.endswith(")") for message in said)


def main(top="."):
    top, bad, count = pathlib.Path(top), 0, 0
    for room in ("lib", "daemon", "tools"):
        for file in sorted((top / room).rglob("*.c")):
            path, text = file.relative_to(top), without_comments(file.read_text())
            for at, piece, call in pieces(path, text):
                if at < 0:
                    print(f"{path}: no {piece})")
                    bad += 1
                    continue
                if lacks_remedy(piece, call):
                    print(f"{path}:{text.count(chr(10), 0, at) + 1}: without a remedy: {' '.join(strings(piece))}")
                    bad += 1
                for message in strings(piece):
                    count += 1
                    for fault in faults(message) if " " in message.strip() else ():
                        print(f"{path}:{text.count(chr(10), 0, at) + 1}: {fault}: {message}")
                        bad += 1
    print(f"{count} texts of messages, {bad} faults of form")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
