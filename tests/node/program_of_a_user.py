# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""program_of_a_user.py DIRECTORY: a pool of processes makes, renames, reads and removes files of one directory with
pathlib, and shares sqlite databases, with a rollback journal and with a write-ahead log. What it prints and leaves,
except the layout of the databases, is the same in every run."""

import hashlib
import multiprocessing
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile

WORKERS = 4
FILES = 40


def connect(path):
    return sqlite3.connect(path, timeout=60, isolation_level=None)


def work(task):
    """One worker: files of its own in the shared directory, and a row for each in each database."""
    directory, worker = task
    for number in range(FILES):
        temporary = directory / f".{worker}.{number}.tmp"
        temporary.write_text(f"{worker} {number}\n" * (number + 1))
        target = temporary.rename(directory / f"result.{worker}.{number:03}")
        if number % 4 == 3:
            target.unlink()
        for name in ("journal.db", "wal.db"):
            connection = connect(directory / name)
            connection.execute("insert into results values (?, ?, ?)", (worker, number, target.exists()))
            connection.close()
    return worker, len(list(directory.glob(f"result.{worker}.*")))


def make_databases(directory):
    for name, mode in (("journal.db", "delete"), ("wal.db", "wal")):
        connection = connect(directory / name)
        assert connection.execute(f"pragma journal_mode={mode}").fetchone() == (mode,)
        connection.execute("create table results (worker integer, number integer, kept integer)")
        connection.close()


def dump_databases(directory):
    for name in ("journal.db", "wal.db"):
        connection = connect(directory / name)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        rows = connection.execute("select * from results order by worker, number").fetchall()
        connection.close()
        (directory / f"{name}.txt").write_text("\n".join(map(str, rows)))
        print(name, len(rows))


def tour_of_pathlib(directory):
    first = directory / "result.0.000"
    link = directory / "link"
    link.symlink_to(first.name)
    os.link(first, directory / "hard")
    print(link.resolve().name, link.read_text() == first.read_text(), first.samefile(directory / "hard"))
    first.chmod(0o640)
    os.utime(first, ns=(10**18, 10**18 + 1))
    print(oct(link.stat().st_mode), link.lstat().st_size, first.stat().st_mtime_ns, first.stat().st_nlink)
    below = directory / "a" / "b" / "c"
    below.mkdir(parents=True)
    shutil.copy2(first, below / "copy")
    shutil.copytree(directory / "a", directory / "tree")
    shutil.move(below / "copy", directory / "moved")
    for path in (directory / "missing", first / "below"):
        try:
            path.read_bytes()
        except OSError as error:
            print(type(error).__name__, error.errno)
    shutil.rmtree(directory / "a")
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        with tempfile.NamedTemporaryFile(dir=temporary) as file:
            file.write(b"x")
            file.flush()
            print(os.path.getsize(file.name), len(os.listdir(temporary)))


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir()
    make_databases(directory)
    with multiprocessing.Pool(WORKERS) as pool:
        print(sorted(pool.imap_unordered(work, [(directory, worker) for worker in range(WORKERS)])))
    dump_databases(directory)
    tour_of_pathlib(directory)
    os.chdir(directory)
    for path in sorted(pathlib.Path(".").rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and path.suffix != ".db" else ""
        print(path, oct(path.lstat().st_mode), path.is_symlink(), content)


if __name__ == "__main__":
    main()
