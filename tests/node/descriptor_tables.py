# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs whose threads have tables of descriptors of their own, or other directories at numbers that the library may keep or
take; each prints the same natively and under shunt."""

# `seen` uses words often, and says what is there.
SEE = """
import ctypes, os, subprocess
def seen(path):
    for _ in range(40):
        try:
            result = os.stat(path).st_size
            attribute_of(path), readable(path)
        except OSError as error:
            result = error.strerror
    return result
def attribute_of(path):
    try:
        return os.getxattr(path, 'user.text')
    except OSError as error:
        return error.strerror
def readable(path):
    return os.access(path, os.R_OK)
def made(path):
    try:
        return os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        return error.strerror
def moved(path):
    try:
        return os.rename(root + '/spare', path)
    except OSError as error:
        return error.strerror
def fill(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.setxattr(path, 'user.text', text.encode())
ACL = "02000000 01000600ffffffff 04000500ffffffff 20000500ffffffff"  # rw-r-xr-x
# Another process, which does what it is told as quickly as this one.
told, tell = os.pipe()
hear, said = os.pipe()
if os.fork() == 0:
    os.close(tell)
    while line := os.read(told, 1000).decode():
        here, line = line.split("\\n")
        os.chdir(here)
        exec(line)
        os.write(said, b"done")
    os._exit(0)
os.close(told), os.close(said)
def elsewhere(line):
    os.write(tell, f"{os.getcwd()}\\n{line}".encode())
    os.read(hear, 4)
root = os.getcwd()
"""

# What another process, which the library is not in, makes of paths beside the root that were looked at; `unseen` is a libc
# behind the library.
UNSEEN = SEE + """
unseen = ctypes.CDLL('libc.so.6')
above = os.path.dirname(root)
def by_words(path):
    return [path, os.path.relpath(path)]
"""
OWN_TABLES = {
    "unshare": "unseen.unshare(0x400)",
    "close_range": "unseen.syscall(436, 3000, 4000, 2)",
    "dup2": "0",
}

# Every number that the library might keep is a directory with a file of that name there.
IN_AN_OWN_TABLE = UNSEEN.replace("{", "{{").replace("}", "}}") + """
import threading
for place, text in (('out', '123'), ('other', '12345')):
    fill(f'{{root}}/{{place}}/f', text)
os.mkdir(above + '/plain')
fill(above + '/plain/f', '1234567')
paths = [root + '/out/f', root + '/other/f']
def looks(count):
    return [sorted({{(os.stat(path).st_size, os.path.getsize(path), attribute_of(path)) for _ in range(count)}}) for path in paths]
def other_table():
    assert {own} == 0
    fd = os.open(above + '/plain', os.O_RDONLY)
    for _ in range(20):
        said.append(looks(20))
        for number in range(900, 1024):
            unseen.dup2(fd, number)
        said.append(looks(20))
said = []
print(looks(100))
thread = threading.Thread(target=other_table)
thread.start()
while thread.is_alive():
    said.append(looks(20))
thread.join()
print(sorted(set(map(str, said))))
"""

# A thread with a table of descriptors of its own, in which the numbers that the library takes next are free; in that of all other
# threads they are another directory of the root.
FOREIGN_NUMBERS = UNSEEN + """
import threading
fill('out/f', '123')
os.mkdir('other')
opened, done = threading.Event(), threading.Event()
def other_table():
    assert unseen.unshare(0x400) == 0
    opened.set()
    done.wait()
    for turn in range(10):
        unseen.mkdir(b'new%d' % turn, 0o777)
        said.append([made(f'new{turn}/f'), made(f'{root}/new{turn}/g'), sorted(os.listdir(f'new{turn}')), os.listdir('other')])
        os.rename(f'new{turn}/f', f'out/{turn}')
        os.symlink(root + f'/new{turn}', above + f'/to{turn}')
        said.append([seen(f'{above}/to{turn}/g'), seen(f'{above}/to{turn}/none'), made(f'{above}/to{turn}/h')])
said = []
thread = threading.Thread(target=other_table)
thread.start()
opened.wait()
for _ in range(40):
    os.open('other', os.O_RDONLY)
done.set()
thread.join()
print(said, sorted(os.listdir('out')), os.listdir('other'), sorted((at, sorted(files)) for at, _, files in os.walk('.')))
"""
