# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The index is bounded (SHUNT_INDEX_LIMIT): directories that nobody uses are evicted and come back, and no program can tell."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from conftest import PYTHON, environment, run, wait_until

LIMIT = {"SHUNT_INDEX_LIMIT": "1M", "SHUNT_NODE": "n1"}
BUDGET = (1 << 20) * 5 // 8
DIRECTORIES, NAMES = 80, 300  # that take twice what the index has for them

FILL = f"""
import os, sys
for d in range({DIRECTORIES}):
    os.mkdir(f'{{sys.argv[1]}}/d{{d}}')
    for i in range({NAMES}):
        open(f'{{sys.argv[1]}}/d{{d}}/name.{{i:04}}', 'x').close()
"""

# Lists all directories but one, from the first on or from another one.
WALK = """
import os, sys
root, part = sys.argv[1], int(sys.argv[2])
names = sorted(os.listdir(root))
at = part * len(names) // 4
for d in names[at:] + names[:at]:
    if d != 'd7':
        assert len(os.listdir(f'{root}/{d}')) >= 1, d
"""

# A process that stays, and looks at one directory before and after it was evicted, by all that it holds of it.
STAYS = f"""
import errno, os, sys, threading
root = sys.argv[1]
d = root + '/d7'
expected = sorted(f'name.{{i:04}}' for i in range({NAMES}))
def refused(error, call, *words):
    try:
        call(*words)
    except OSError as e:
        assert e.errno == error, (call, words, e)
    else:
        assert False, (call, words)
def times():
    st = os.stat(d)
    return st.st_mtime_ns, st.st_ctime_ns, st.st_ino
fd = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
os.chdir(d)
file = open(d + '/name.0001', 'w')
before = times()
stream = os.scandir(d)
told = [next(stream).name for _ in range(3)]
print('ready', flush=True)
for line in sys.stdin:
    if line.startswith('times'):
        assert times() == before, (times(), before)
    if line.startswith('read'):
        told += [entry.name for entry in stream]
        assert sorted(told) == expected, (len(told), len(set(told)))
    if line.startswith('names'):
        assert sorted(os.listdir(fd)) == sorted(os.listdir('.')) == sorted(os.listdir(d)) == expected
    if line.startswith('lookups'):
        for name in ('name.0000', 'name.0299'):
            assert os.stat(name).st_ino == os.stat(d + '/' + name).st_ino == os.stat(name, dir_fd=fd).st_ino
            refused(errno.EEXIST, os.open, d + '/' + name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        for name in ('none', 'name.0300'):
            refused(errno.ENOENT, os.stat, d + '/' + name)
            refused(errno.ENOENT, os.stat, name)
        refused(errno.ENOTEMPTY, os.rmdir, d)
        assert os.readlink(f'/proc/self/fd/{{file.fileno()}}') == d + '/name.0001'
    if line.startswith('changes'):
        open('new', 'x').close()
        refused(errno.EEXIST, os.open, d + '/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.rename('new', d + '/newer')
        refused(errno.ENOENT, os.stat, 'new')
        os.rename('newer', root + '/d8/moved')
        os.rename(root + '/d8/moved', d + '/name.0003')
        os.unlink('name.0005')
        refused(errno.ENOENT, os.stat, d + '/name.0005')
        open('name.0005', 'x').close()
    print('done', flush=True)
"""


class Limited:
    def __init__(self, shunt, root, placement, **settings):
        self.shunt, self.root, self.settings = shunt if isinstance(shunt, list) else [shunt.path], root, {**LIMIT, **settings}
        self.tool("start", "--root", root, "--placement", placement).check()

    def tool(self, *words, **more):
        return run([*self.shunt, *words], **{**self.settings, **more})

    def python(self, script, *words):
        return self.tool("exec", "--root", self.root, "--", PYTHON, "-c", script, *words).check()

    def open(self, script, *words, stdout=subprocess.PIPE):
        return subprocess.Popen([str(word) for word in (*self.shunt, "exec", "--root", self.root, "--", PYTHON, "-c", script,
                                                        *words)],
                                stdin=subprocess.PIPE, stdout=stdout, text=True, env=environment(**self.settings))

    def status(self):
        return json.loads(self.tool("status", "--json", "--root", self.root).out)[0]

    def counters(self):
        return self.status()["counters"]

    def until_within(self):
        wait_until(lambda: self.counters()["index_bytes"] <= BUDGET)

    def evict_all(self):
        """Until each directory was evicted that nobody has used meanwhile: they all do not fit at once."""
        for part in range(4):
            self.python(WALK, self.root, part)
            self.until_within()


@pytest.fixture(params=["branch", "auto"])
def limited(request, shunt, root):
    made = Limited(shunt, root, request.param)
    yield made
    made.tool("stop", "--root", root)


def asked(process, word):
    process.stdin.write(word + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line == "done\n", (word, line, process.poll())


def test_no_process_can_tell(limited):
    limited.python(FILL, limited.root)
    limited.until_within()  # also without anything that follows
    process = limited.open(STAYS, limited.root)
    assert process.stdout.readline() == "ready\n"
    for word in ("times", "read", "names", "lookups", "changes", "names", "lookups"):
        limited.evict_all()
        asked(process, word)
    process.stdin.close()
    assert process.wait() == 0
    counters = limited.counters()
    assert counters["evictions_returned"] > 100 and counters["index_limit"] == 1 << 20 and counters["malformed"] == 0
    assert counters["index_oversized"] == 0
    assert counters["index_file_bytes"] < 4 << 20


WORK = f"DIRECTORIES = {DIRECTORIES}" + """
import os, random, sys
root, me, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
random.seed(me)
mine = {}
for i in range(rounds):
    d = (i // 10 * 3 + random.randrange(3)) % DIRECTORIES
    name = f'{root}/d{d}/{me}.{i}'
    for k in range(random.choice((2, 2, 40))):
        os.close(os.open(f'{name}.{k}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        mine[f'{name}.{k}'] = True
    for _ in range(2):
        old = random.choice(list(mine))
        if random.random() < 0.4:
            os.unlink(old)
            del mine[old]
            assert not os.path.exists(old), old
        elif random.random() < 0.5:
            new = f'{root}/d{random.randrange(DIRECTORIES)}/{me}.{i}.moved.{_}'
            os.rename(old, new)
            del mine[old]
            mine[new] = True
        else:
            os.stat(old)
            assert os.path.basename(old) in os.listdir(os.path.dirname(old)), old
    try:
        os.open(random.choice(list(mine)), os.O_CREAT | os.O_EXCL)
        assert False
    except FileExistsError:
        pass
print('\\n'.join(sorted(mine)))
"""

ALL = "import os, sys\nfor at, _, names in os.walk(sys.argv[1]):\n    for name in names: print(os.path.join(at, name))"


def work(limited, rounds, meanwhile=None):
    """Four processes at once; the names that there are to be. They are more than a pipe holds, and nobody reads meanwhile."""
    limited.python(FILL, limited.root)
    outputs = [tempfile.TemporaryFile("w+") for _ in range(4)]
    processes = [limited.open(WORK, limited.root, f"p{i}", rounds, stdout=outputs[i]) for i in range(4)]
    if meanwhile is not None:
        meanwhile(processes)
    assert [process.wait() for process in processes] == [0] * 4
    names = []
    for output in outputs:
        output.seek(0)
        names.append(output.read().split("\n")[:-1])
        output.close()
    filled = [f"{limited.root}/d{d}/name.{i:04}" for d in range(DIRECTORIES) for i in range(NAMES)]
    return sorted(sum(names, filled))


def test_workers_go_on_while_directories_are_evicted(limited):
    expected = work(limited, 80)
    limited.evict_all()
    assert sorted(limited.python(ALL, limited.root).split("\n")[:-1]) == expected
    assert limited.counters()["malformed"] == 0
    limited.tool("stop", "--root", limited.root).check()
    limited.tool("export", limited.root).check()
    native = [os.path.join(at, name) for at, _, names in os.walk(limited.root) for name in names]
    assert sorted(native) == expected


def test_a_daemon_that_dies_meanwhile(limited):
    def are_over(processes):
        return any(process.poll() is not None for process in processes)

    def kill(processes):
        for _ in range(3):
            wait_until(lambda: limited.status().get("counters", {}).get("evictions", 0) > 0 or are_over(processes), 60)
            if not are_over(processes):
                os.kill(limited.status()["pid"], signal.SIGKILL)
                killed.append(True)

    killed = []
    expected = work(limited, 80, kill)
    assert killed
    assert sorted(limited.python(ALL, limited.root).split("\n")[:-1]) == expected


HUGE = f"""
import errno, os, sys
d, step, made = sys.argv[1] + '/huge', int(sys.argv[2]), 'new' + sys.argv[2]
names = {{f'name.{{i:05}}' for i in range(step, 20000)}} | {{f'new{{i}}' for i in range(step)}}
assert set(os.listdir(d)) == names and len(os.listdir(d)) == len(names)
for i in range(step, 20000, 500):
    name = f'{{d}}/name.{{i:05}}'
    assert os.stat(name).st_size == 0
    try:
        os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        assert False
    except FileExistsError:
        pass
assert not os.path.exists(d + '/none') and os.access(f'{{d}}/name.{{step:05}}', os.F_OK)
open(d + '/' + made, 'x').close()
os.rename(d + '/' + made, d + '/moving')
os.rename(d + '/moving', f'{{d}}/name.{{step + 1:05}}')
os.rename(f'{{d}}/name.{{step + 1:05}}', d + '/' + made)
open(f'{{d}}/name.{{step + 1:05}}', 'x').close()
os.mkdir(d + '/' + made + '.d')
os.rmdir(d + '/' + made + '.d')
os.unlink(f'{{d}}/name.{{step:05}}')
names = names - {{f'name.{{step:05}}'}} | {{made}}
assert sorted(os.listdir(d)) == sorted(names)
seen = os.scandir(d)
some = [next(seen).name for _ in range(10)]
os.unlink(d + '/name.19999')
open(d + '/name.19999', 'x').close()
rest = [entry.name for entry in seen]
assert len(some + rest) == len(set(some + rest)) and set(some + rest) >= names - {{'name.19999'}}
try:
    os.rmdir(d)
    assert False
except OSError as e:
    assert e.errno == errno.ENOTEMPTY
"""


def huge(shunt, root, placement, **settings):
    (root / "huge").mkdir()
    for i in range(20000):
        (root / "huge" / f"name.{i:05}").touch()
    return Limited(shunt, root, placement, **settings)


@pytest.mark.parametrize("placement", ["branch", "auto"])
def test_one_directory_above_the_limit_is_looked_up_in_a_file(shunt, root, placement):
    made = huge(shunt, root, placement)
    for step in range(3):
        made.python(HUGE, root, step)
    counters = made.counters()
    assert counters["index_oversized"] >= 1 and counters["index_spilled"] == 1 and counters["index_spilled_bytes"] > 1 << 20
    assert counters["index_bytes"] < 1 << 20 and counters["index_file_bytes"] < 2 << 20 and counters["malformed"] == 0
    log = (pathlib.Path(made.status()["run_dir"]) / "log").read_text()
    assert "huge: its 20000 names take more than the 1.0 MiB of the limit, and are looked up in a file" in log
    os.kill(made.status()["pid"], signal.SIGKILL)
    made.python(HUGE, root, 3)
    names = sorted(made.python("import os, sys; print('\\n'.join(os.listdir(sys.argv[1])))", root / "huge").split("\n")[:-1])
    made.tool("stop", "--root", root).check()
    made.tool("export", root).check()
    assert sorted(os.listdir(root / "huge")) == names and len(names) == 20000


def test_one_that_cannot_be_spilled_stays_in_the_index(shunt, root, area, mounts):
    """The file system of the catalogue has room for that, and for no more."""
    (area / "small").mkdir()
    mounts("mount", "-t", "tmpfs", "-o", "size=24m", "none", area / "small").check()
    made = huge([*mounts.prefix, shunt.path], root, "branch", SHUNT_CATALOGUE_DIR=area / "small")
    for step in range(2):
        made.python(HUGE, root, step)
    assert made.counters()["index_spilled"] == 0 and made.counters()["index_bytes"] > 1 << 20
    log = (pathlib.Path(made.status()["run_dir"]) / "log").read_text()
    assert "the names of directories above the limit of the index stay in it: No space left on device" in log
    made.tool("stop", "--root", root).check()


# From the first step that is left on, one process makes, renames and removes long names; `done` says how many of its steps are over.
GROW = """
import mmap, os, struct, sys
d, steps = sys.argv[1] + '/huge', int(sys.argv[3])
done = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 8)
def name(i, kind='made'):
    return f'{d}/{kind}.{i:06}.'.ljust(len(d) + 251, 'x')
for i in range(struct.unpack('Q', done[:])[0], steps):
    os.close(os.open(name(i), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    if i % 10 == 3:
        os.unlink(name(i))
    if i % 10 == 7:
        os.rename(name(i), name(i, 'new'))
    done[:] = struct.pack('Q', i + 1)
"""

# Another one looks at them meanwhile: what was done before a call began, the call must see.
LOOK = """
import mmap, os, random, struct, sys
d, steps, made = sys.argv[1] + '/huge', int(sys.argv[3]), 0
done = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 8)
random.seed(steps)
first = struct.unpack('Q', done[:])[0]
def name(i, kind='made'):
    return f'{d}/{kind}.{i:06}.'.ljust(len(d) + 251, 'x')
def is_there(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        os.stat(path)
        return True
    os.unlink(path)
    return False
while made < steps:
    made = struct.unpack('Q', done[:])[0]
    for i in (random.randrange(made) for _ in range(500)):
        if i >= first and i % 10 in (3, 7):
            assert not os.path.exists(name(i)) and not is_there(name(i)), i
            assert os.path.exists(name(i, 'new')) == (i % 10 == 7), i
        else:
            assert os.path.exists(name(i)) and is_there(name(i)), i
    expected = {os.path.basename(name(i, 'new' if i >= first and i % 10 == 7 else 'made')) for i in range(made)
                if i < first or i % 10 != 3}
    found = os.listdir(d)
    assert len(found) == len(set(found)) and set(found) >= expected, (made, len(found), len(expected))
    assert len(found) <= struct.unpack('Q', done[:])[0] + 3, len(found)
print(len(found))
"""


def memory(status):
    """Bytes of the run directory, and of the daemon's own."""
    own = next(line for line in pathlib.Path(f"/proc/{status['pid']}/status").read_text().splitlines() if "RssAnon" in line)
    return (sum(path.stat().st_blocks * 512 for path in pathlib.Path(status["run_dir"]).iterdir() if path.is_file()),
            int(own.split()[1]) << 10)


def test_the_log_says_how_much_of_the_limit_a_directory_takes(shunt, root):
    (root / "huge").mkdir()
    made = Limited(shunt, root, "branch", SHUNT_INDEX_LIMIT="1280K")
    made.python("import os, sys\nfor i in range(20000): os.mknod(f'{sys.argv[1]}/name.{i:05}')", root / "huge")
    log = (pathlib.Path(made.status()["run_dir"]) / "log").read_text()
    said = re.search(r"huge: its names, \d+ by now, take ([\d.]+) of the ([\d.]+) MiB of the limit", log)
    assert 0.1 <= float(said[1]) <= 1.3 and said[2] == "1.2", said[0]
    made.tool("stop", "--root", root).check()


@pytest.mark.unsanitized  # the memory of a sanitizer is many times as much
def test_one_that_grows_above_the_limit_is_looked_up_in_a_file(shunt, root, area):
    """In the same session, while it is in use, with the memory of the run directory and of the daemon within the limit."""
    first, steps, limit = 40_000, 72_000, 32 << 20
    names = first + (steps - first) // 10 * 9
    (area / "catalogues").mkdir()
    (area / "done").write_bytes(first.to_bytes(8, sys.byteorder))
    (root / "huge").mkdir()
    for i in range(first):
        (root / "huge" / f"made.{i:06}.".ljust(250, "x")).touch()
    made = Limited(shunt, root, "branch", SHUNT_INDEX_LIMIT="32M", SHUNT_CATALOGUE_DIR=area / "catalogues")
    processes = [made.open(script, root, area / "done", steps) for script in (GROW, LOOK)]
    assert [process.wait() for process in processes] == [0, 0]
    assert int(processes[1].stdout.read()) == names
    counters, (of_run_dir, own) = made.counters(), memory(made.status())
    assert counters["index_spilled"] == 1 and counters["index_oversized"] == 1 and counters["malformed"] == 0
    assert counters["index_file_bytes"] <= limit and counters["index_bytes"] < 1 << 20
    assert of_run_dir + own <= limit, (of_run_dir, own)
    log = (pathlib.Path(made.status()["run_dir"]) / "log").read_text()
    assert "MiB of the limit, and are looked up in a file from now on" in log
    os.kill(made.status()["pid"], signal.SIGKILL)  # the next daemon reads them
    assert len(made.python("import os, sys; print('\\n'.join(os.listdir(sys.argv[1])))",
                           root / "huge").split()) == names
    made.tool("stop", "--root", root).check()


def test_a_limit_that_is_none(shunt, root):
    for value in ("0", "12X", "100K", "1.5G"):
        result = shunt("start", "--root", root, SHUNT_INDEX_LIMIT=value)
        assert result.status != 0 and "SHUNT_INDEX_LIMIT: not a size of at least 1M" in result.err
