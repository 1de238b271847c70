# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Names that are predicted, since a process makes or removes others in a row: nobody can tell them from names that nobody
thinks of, neither that process, to which they are granted, nor another one, for which they are taken back."""

import os
import subprocess

import pytest

from conftest import redirected_files
from test_failures import session, started  # noqa: F401: fixtures

CALLS = """
import errno, os, subprocess, sys
def spawn(name):
    action = (os.POSIX_SPAWN_OPEN, 1, name, os.O_CREAT | os.O_WRONLY, 0o644)
    return os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[action]), 0)[1])
def replaced_by_directory(name):
    os.mkdir(name + ".directory")
    os.rename(name + ".directory", name)
def replaced(name):
    open(name + ".other", "x").close()
    os.rename(name + ".other", name)
CALLS = {
    "rmdir": os.rmdir, "listdir": os.listdir, "stat": lambda name: os.stat(name).st_size, "unlink": os.unlink,
    "chmod": lambda name: os.chmod(name, 0o600),
    "open": lambda name: open(name).close(), "truncate": lambda name: os.truncate(name, 0), "readlink": os.readlink,
    "chdir": os.chdir, "exchange": lambda name: os.rename(name, name + ".moved"), "link": lambda name: os.link(name, name + ".link"),
    "exec": lambda name: os.execv(name, [name]), "beneath": lambda name: open(name + "/x").close(),
    "spawn": spawn, "mkdir": os.mkdir, "symlink": lambda name: os.symlink("nowhere", name), "fifo": os.mkfifo,
    "append": lambda name: open(name, "a").close(), "exclusive": lambda name: open(name, "x").close(),
    "replaced": replaced, "replaced by a directory": replaced_by_directory,
}
def outcome(call, name):
    try:
        return CALLS[call](name)
    except OSError as error:
        return errno.errorcode[error.errno]
if sys.argv[1] == "one":
    print(sys.argv[2], outcome(sys.argv[2], sys.argv[3]))
    sys.exit()
for call in CALLS:
    os.mkdir(call)
    if REMOVES:
        for i in range(16):
            open(f"{call}/f{i:02}", "x").close()
    for i in range(8):
        if REMOVES:
            os.unlink(f"{call}/f{i:02}")
        else:
            open(f"{call}/f{i:02}", "x").close()
    name = f"{call}/f08"
    if OTHER:
        subprocess.run([sys.executable, sys.argv[0], "one", call, name], check=True)
    else:
        print(call, outcome(call, name), flush=True)
    print(call, sorted(os.listdir(call)), flush=True)
"""


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("removes", [False, True])
def test_a_predicted_name_is_as_any_other(native_and_shunt, area, removes, other):
    program = area / "calls.py"
    program.write_text(f"REMOVES, OTHER = {removes}, {other}\n{CALLS}")
    native, shunt = native_and_shunt(f"/usr/bin/python3 {program} all")
    assert shunt == native


TICK = 10_000_000
ROW = """
import os, time
for i in range(40):
    time.sleep(0.03)
    open(f"out/f{i:02}", "x").close()
print("made", flush=True)
time.sleep(60)
"""


def test_what_was_made_by_grants_has_changed_its_directory_when_the_session_ends(started):  # noqa: F811
    """Though no daemon has heard of it, and the program goes on. It takes the time from the clock of files, which ticks; a file
    system may be more exact."""
    maker = started.popen("/usr/bin/python3", "-c", ROW, cwd=started.root, stdout=subprocess.PIPE)
    assert maker.stdout.readline() == "made\n"
    started.stop().check()
    maker.kill()
    maker.communicate()
    made = max(os.stat(file).st_mtime_ns for file in redirected_files(started.root))
    assert (started.root / "out").stat().st_mtime_ns > made - TICK
