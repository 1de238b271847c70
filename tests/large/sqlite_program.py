# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""sqlite_program.py MODE: processes that write and read two databases at once, in a journal mode, one of which is
killed in a transaction and the last of which checks all sums."""

import multiprocessing
import os
import signal
import sqlite3
import sys

WRITERS, READERS, TRANSFERS, ACCOUNTS = 4, 2, 60, 20
TOTAL = ACCOUNTS * 1000


def connect(mode, name="bank.db"):
    db = sqlite3.connect(name, timeout=120, isolation_level=None)
    db.execute(f"pragma journal_mode = {mode}")
    db.execute("pragma synchronous = normal")
    return db


def prepare(mode):
    db = connect(mode)
    db.execute("create table account(id integer primary key, amount integer check (amount >= -100000))")
    db.execute("create table entry(writer, number, primary key (writer, number)) without rowid")
    db.executemany("insert into account values (?, ?)", [(n, 1000) for n in range(ACCOUNTS)])
    other = connect(mode, "other.db")
    other.execute("create table copy(writer, number, note text)")
    print("mode:", db.execute("pragma journal_mode").fetchone())
    db.close()
    other.close()


def transfer(db, writer, number):
    """One transaction over both databases."""
    source, to, amount = (writer + number) % ACCOUNTS, (writer * 7 + number * 3) % ACCOUNTS, number % 13
    db.execute("begin immediate")
    db.execute("update account set amount = amount - ? where id = ?", (amount, source))
    db.execute("update account set amount = amount + ? where id = ?", (amount, to))
    db.execute("insert into entry values (?, ?)", (writer, number))
    db.execute("insert into other.copy values (?, ?, ?)", (writer, number, "x" * (number * 37 % 3000)))
    db.execute("rollback" if number % 10 == 9 else "commit")


def write(mode, writer):
    db = connect(mode)
    db.execute("attach 'other.db' as other")
    for number in range(TRANSFERS):
        transfer(db, writer, number)
    db.close()


def read(mode, done):
    """No reader ever sees half a transfer."""
    db = connect(mode)
    while not done.is_set():
        assert db.execute("select sum(amount) from account").fetchone()[0] == TOTAL
    db.close()


def die(mode):
    """Leaves a journal, or a log, with a transaction that never ended."""
    db = connect(mode)
    db.execute("pragma cache_size = 1")
    db.execute("pragma cache_spill = 1")
    db.execute("begin immediate")
    db.execute("create table unfinished(blob)")
    for _ in range(200):
        db.execute("insert into unfinished values (randomblob(3000))")
    os.kill(os.getpid(), signal.SIGKILL)


def ended(processes):
    for process in processes:
        process.join(240)
    return [process.exitcode for process in processes]


def contend(mode):
    done = multiprocessing.Event()
    readers = [multiprocessing.Process(target=read, args=(mode, done)) for _ in range(READERS)]
    writers = [multiprocessing.Process(target=write, args=(mode, n)) for n in range(WRITERS)]
    for process in readers + writers:
        process.start()
    print("writers:", ended(writers))
    done.set()
    print("readers:", ended(readers))


def check(mode):
    db = connect(mode)
    print("accounts:", db.execute("select * from account order by id").fetchall())
    print("entries:", db.execute("select writer, count(*), sum(number) from entry group by writer").fetchall())
    print("tables:", db.execute("select name from sqlite_schema order by name").fetchall())
    db.execute("attach 'other.db' as other")
    print("copies:", db.execute("select count(*), sum(number), sum(length(note)) from other.copy").fetchone())
    print("integrity:", db.execute("pragma integrity_check").fetchall())
    print("other:", db.execute("pragma other.integrity_check").fetchall())
    print("checkpoint:", db.execute("pragma wal_checkpoint(truncate)").fetchone()[0])
    with sqlite3.connect("backup.db") as backup:
        db.backup(backup)
    db.execute("vacuum into 'vacuumed.db'")
    db.execute("vacuum")
    for name in ("backup.db", "vacuumed.db"):
        copy = sqlite3.connect(name)
        print(name, copy.execute("pragma integrity_check").fetchall(),
              copy.execute("select sum(amount) from account").fetchone())
        copy.close()
    db.close()


def main(mode):
    prepare(mode)
    contend(mode)
    victim = multiprocessing.Process(target=die, args=(mode,))
    victim.start()
    print("killed:", ended([victim]), sorted(name for name in os.listdir() if not name.endswith("-shm")))
    check(mode)
    print("left:", sorted(os.listdir()))


if __name__ == "__main__":
    main(sys.argv[1])
