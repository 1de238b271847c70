# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Which processes live, which one starts a daemon again, and one that does nothing for a while."""

import contextlib
import os
import pathlib
import re
import signal
import time


def epoch_lines(root):
    """Those of the newest epoch's file; [] without one."""
    while True:
        epochs = sorted((pathlib.Path(root) / ".shunt" / "session").glob("epoch.*"), key=lambda path: int(path.suffix[1:]))
        try:
            return epochs[-1].read_text().splitlines() if epochs else []
        except FileNotFoundError:  # superseded, and removed, since it was listed: there is a newer one
            pass


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def stat_of(pid):
    """The fields of its stat after its name: state, parent ..."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_running(pid):
    try:
        return stat_of(pid)[0] not in "ZX"
    except OSError:
        return False


def end_mount_server(pid):
    """Of a mount that was taken away. A mount name space that another test has made meanwhile has a copy of the mount, which the
    server serves until it is told to end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not is_running(pid))


def supervisor_of(pid):
    parent = stat_of(pid)[1]
    is_one = pathlib.Path(f"/proc/{parent}/comm").read_text() == "shuntd\n"
    return [int(parent)] if is_one else []


def pending_signals(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {int(bits, 16) for bits in re.findall(r"^(?:SigPnd|ShdPnd):\t(\w+)$", text, re.MULTILINE)}


def has_signal(pid, number):
    """Is it pending there?"""
    return any(bits >> (number - 1) & 1 for bits in pending_signals(pid))


def states_of(pid):
    """Of its threads."""
    states = set()
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            states.add(stat.read_text().rpartition(")")[2].split()[0])
    return states


def stand_still(pid):
    """A signal takes a moment to stop each thread that is running; what comes meanwhile is still heard."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: states_of(pid) == {"T"})


@contextlib.contextmanager
def standing_still(pid):
    """It is there, but does nothing."""
    try:
        stand_still(pid)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
