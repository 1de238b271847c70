# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the large programs of tests/large found, each in the fewest calls that show it."""

from conftest import assert_equal_text

PYTHON = "/usr/bin/python3"

# The daemon hears of a removal after the call has returned. What is known of the name until then must not be believed.
AFTER_REMOVAL = r"""
import ctypes, errno, os, socket

ROUNDS = 10

def outcome(call, *words):
    try:
        call(*words)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def clear(name):
    if os.path.lexists(name):
        (os.rmdir if os.path.isdir(name) else os.unlink)(name)

def create(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))

def bring(name):
    create("../../outside")
    os.rename("../../outside", name)

def resolve(name):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.realpath(os.fsencode(name), ctypes.create_string_buffer(8192)) == 0:
        raise OSError(ctypes.get_errno(), "realpath")

CALLS = {
    "create": create,
    "bring in": bring,
    "take out": lambda name: os.rename(name, "../../taken"),
    "replace": lambda name: os.rename("other", name),
    "replace by a directory": lambda name: os.rename("other-directory", name),
    "unlink": os.unlink,
    "make": os.mkdir,
    "link": lambda name: os.symlink("nothing", name),
    "fifo": os.mkfifo,
    "truncate": lambda name: os.truncate(name, 0),
    "read": os.readlink,
    "resolve": resolve,
    "enter": os.chdir,
    "run": lambda name: os.waitpid(os.posix_spawn(name, [name], {}), 0),
    "name again": lambda name: os.link(name, "elsewhere"),
    "rename onto": lambda name: os.rename(name, "other"),
    "listen": lambda name: socket.socket(socket.AF_UNIX).bind(name),
    "change": lambda name: os.chmod(name, 0o600),
    "attribute": lambda name: os.setxattr(name, "user.x", b"x"),
    "list": os.listdir,
    "remove": os.rmdir,
}
MAKE = {"directory": os.mkdir, "file": create, "link": lambda name: os.symlink("nothing", name)}
TAKE = {"removed": clear, "renamed": lambda name: os.rename(name, "elsewhere")}

def after_removal(make, take, call):
    create("other")
    os.mkdir("other-directory")
    make("gone")
    take("gone")
    how = outcome(call, "gone")
    for left in ("gone", "other", "other-directory", "elsewhere", "../../outside"):
        clear(left)
    return how

for kind, make in MAKE.items():
    for way, take in TAKE.items():
        for name, call in CALLS.items():
            print(kind, way, name, sorted({after_removal(make, take, call) for _ in range(ROUNDS)}))
"""


def test_what_was_just_taken_away_is_there_no_more(native_and_shunt):
    native, shunt = native_and_shunt(f'mkdir in; cd in; touch first; {PYTHON} -c "$AFTER_REMOVAL"; rm first',
                                     AFTER_REMOVAL=AFTER_REMOVAL)
    assert_equal_text(native, shunt)
    assert "directory removed create ['done']" in native and "file renamed take out ['ENOENT']" in native
