# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Calls in an order that nobody thought of come to what they come to natively. SHUNT_SEEDS says how many orders (default 60), of 300
calls each."""

import os
import pathlib

import pytest
from conftest import PYTHON, assert_equal_text, make_pair

SEEDS = int(os.environ.get("SHUNT_SEEDS", "60"))
AT_ONCE = 20
PROGRAM = pathlib.Path(__file__).with_name("random_calls.py")


@pytest.mark.parametrize("first", range(1, SEEDS + 1, AT_ONCE))
@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_random_calls(shunt, area, placement, first):
    pair = make_pair(shunt, area, placement)
    native, shunted = pair.both(f"{PYTHON} {PROGRAM} $ROOT 300 $(seq {first} {first + AT_ONCE - 1})", redirects=placement == "branch")
    assert_equal_text(native, shunted)
    pair.assert_equal()


# What such orders have shown.

SAY = """
import os, errno
def say(call, *words):
    try: print(call.__name__, *words, call(*words) and '')
    except OSError as error: print(call.__name__, *words, errno.errorcode[error.errno])
"""
SLASHES = SAY + """
os.mkdir('here')
for number in range(6): os.mkdir(f'here/{number}')  # from then on the parent is held open
for make in (lambda: os.mkdir('here/x'), lambda: os.mkfifo('here/x'), lambda: os.symlink('none', 'here/x'), lambda: open('here/x', 'w').close()):
    make()
    for path in ('here/x/', './here/x//', os.getcwd() + '/here/x/'):
        say(os.mkdir, path)
        say(os.mknod, path)
        say(os.open, path, os.O_CREAT | os.O_RDWR | os.O_NONBLOCK)
    os.rmdir('here/x') if os.path.isdir('here/x') else os.unlink('here/x')
"""


def test_a_slash_after_what_is_there(pair):
    """The directory is held open, and what is looked at without the slash is seen from there: mkdir('here/x/') went on for ever."""
    assert_equal_text(*pair.both(f'{PYTHON} -c "$SLASHES"', SLASHES=SLASHES, redirects=False))


THROUGH_FILES = SAY + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def linkat(path):
    if libc.linkat(-100, b'', -100, path.encode(), 0x1000) != 0: raise OSError(ctypes.get_errno(), '')
open('file', 'w').close()
os.symlink('file/', 'link')
for path in ('file/..', 'file/x/../..', 'file/../..', 'link/x', 'link/..', os.getcwd() + '/file/..'):
    for call in (os.stat, os.readlink, os.unlink, os.rmdir, os.mkdir, os.mknod, os.listdir, os.chdir, linkat): say(call, path)
    for call in (os.rename, os.link, os.symlink): say(call, 'file', path)
"""


def test_a_path_through_a_file_and_up_again(pair):
    """It leads nowhere, also if its words lead to the root itself or above it: ENOTDIR."""
    assert_equal_text(*pair.both(f'{PYTHON} -c "$CALLS"', CALLS=THROUGH_FILES))
