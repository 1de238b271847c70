#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""references.py [TOP]: what comments refer to is there.

Prints each file of the project that a comment or a document names and that is not in the tree, and each function that a comment names
and that no source has. Exit status 1 if there are any."""

import pathlib
import re
import subprocess
import sys

CODE = (".c", ".h", ".pml")
# Files of others, which comments name as the source of a fact.
OTHERS = {"util_wait.c", "lmdb.h", "fs/namei.c", "linux/landlock.h", "linux/magic.h", "lustre_user.h", "fs/ceph/ioctl.h", "ctype.h"}
# Functions, fields and settings of the kernel and of libc, likewise.
OTHERS_NAMES = {"current_time", "do_linkat", "do_renameat2", "fid_type", "filename_create", "filename_lookup", "filename_parentat",
                "gnu_dev_makedev", "ioprio_set", "last_type", "may_create_in_sticky", "may_delete", "mmap_base", "nfs_check_verifier",
                "nfs_compare_mount_options", "no_new_privs", "pthread_cancel", "seq_cst", "stack_guard_gap", "vfs_link", "vfs_rename"}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DOCUMENT = re.compile(r"(^|/)[\w.-]+\.(md|[1-8])$|^NEWS$")
FILE = re.compile(r"(?<![\w./<\"-])([A-Za-z_][\w/-]*\.(?:c|h|pml|py|sh|md))\b")
FUNCTION = re.compile(r"(?<![\w/.-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b(?!\*|\.\w)")


def sources(top):
    """path -> text of what is tracked, or of what a tarball has"""
    listed = subprocess.run(["git", "-C", top, "ls-files"], capture_output=True, text=True, check=False).stdout.split("\n")
    paths = [path for path in listed if path] or [str(path.relative_to(top)) for path in pathlib.Path(top).rglob("*") if path.is_file()]
    return {path: (top / path).read_text(encoding="utf-8", errors="replace") for path in paths
            if path.endswith(CODE) or DOCUMENT.search(path)}, paths


def missing_files(texts, paths):
    known = {f"/{path}" for path in paths}
    for path, text in texts.items():
        for said in COMMENT.findall(text) if path.endswith(CODE) else [text]:
            for name in FILE.findall(said):
                if name not in OTHERS and not any(other.endswith(f"/{name}") for other in known):
                    yield f"{path}: there is no {name}"


def missing_functions(texts, paths):
    """Words with an underscore in comments that are in no source but in comments, nor a file's name."""
    sources_of = {path: text for path, text in texts.items() if path.endswith(CODE)}
    known = {word for text in sources_of.values() for word in re.findall(r"\w+", COMMENT.sub("", text))} | OTHERS_NAMES
    known |= {pathlib.PurePath(path).stem for path in paths}
    for path, text in sources_of.items():
        for comment in COMMENT.findall(text):
            for name in FUNCTION.findall(comment):
                if name not in known and name.upper() not in known:
                    yield f"{path}: no source has {name}"


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    texts, paths = sources(top)
    if not texts:
        sys.exit(f"{top}: no sources are here")
    found = [*missing_files(texts, paths), *missing_functions(texts, paths)]
    print("\n".join(found) or f"{len(texts)} files: what their comments refer to is there")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
