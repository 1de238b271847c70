# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Two nodes whose indexes are bounded: what is evicted on both comes back on either, whatever the other one does meanwhile."""

import subprocess

import pytest

DIRECTORIES, NAMES = 60, 250  # of each node: four times what the indexes have for them together

SLOW_IS_NO_MATTER = pytest.mark.parametrize("net", ["host"], indirect=True)

WORK = f"""
import os, random, sys
me, rounds = sys.argv[1], int(sys.argv[2])
random.seed(me)
mine = set()
for i in range(rounds):
    d = (i // 10 * 3 + random.randrange(3)) % {DIRECTORIES}
    for k in range(random.choice((2, 2, 40))):
        name = f'd{{d}}/{{me}}.{{i}}.{{k}}'
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        mine.add(name)
    for k in range(2):
        old = random.choice(sorted(mine))
        assert os.path.exists(old) and os.path.basename(old) in os.listdir(os.path.dirname(old)), old
        mine.remove(old)
        new = f'd{{random.randrange({DIRECTORIES})}}/{{me}}.{{i}}.moved.{{k}}'
        if random.random() < 0.5:
            os.unlink(old)
        else:
            os.rename(old, new)
            mine.add(new)
        assert not os.path.exists(old), old
    try:
        os.open(random.choice(sorted(mine)), os.O_CREAT | os.O_EXCL)
        assert False
    except FileExistsError:
        pass
print('\\n'.join(sorted(mine)))
"""
MAKE = f"""
import os, sys
for d in range({DIRECTORIES}):
    os.makedirs(f'd{{d}}', exist_ok=True)
    for i in range({NAMES}):
        open(f'd{{d}}/{{sys.argv[1]}}.{{i:04}}', 'x').close()
"""
ALL = "find . -type f | sed 's,^./,,' | sort"
# Each of them is to be made by one process alone.
RACE = f"""
import os, sys
won = 0
for d in range({DIRECTORIES}):
    for i in range(5):
        try:
            os.close(os.open(f'd{{d}}/race.{{i}}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            won += 1
        except FileExistsError:
            pass
        os.stat(f'd{{d}}/race.{{i}}')
print(won)
"""


def counters(session, node):
    return session.status("--node", node)["counters"]


def python(session, node, script, *words):
    return session.on(node, "python3", "-c", script, *words, cwd=session.root).check()


def begin(session, node, script, *words):
    return session.begin("exec", node, "--", "python3", "-c", script, *map(str, words), stdout=subprocess.PIPE, text=True)


def ended(processes):
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


@pytest.fixture(params=["branch", "auto"])
def filled(session, request):
    """By both nodes; the names that there are."""
    session.start("a", "b", placement=request.param, SHUNT_INDEX_LIMIT="1M")
    assert session.homes() == ["a", "b"]
    for node in "ab":
        python(session, node, MAKE, node)
    session.wait_for(lambda: all(counters(session, node)["index_bytes"] <= 5 << 17 for node in "ab"))
    assert sum(counters(session, node)["evictions"] for node in "ab") > 0
    return session, sorted(f"d{d}/{node}.{i:04}" for node in "ab" for d in range(DIRECTORIES) for i in range(NAMES))


def all_names(session, node):
    return session.sh(node, ALL).split("\n")[:-1]


@SLOW_IS_NO_MATTER
def test_what_was_evicted_is_the_same_on_both_nodes(filled):
    session, expected = filled
    for node in "abab":
        assert all_names(session, node) == expected
        session.wait_for(lambda: all(counters(session, one)["index_bytes"] <= 5 << 17 for one in "ab"))
    assert sum(counters(session, node)["evictions_returned"] for node in "ab") > DIRECTORIES
    assert all(counters(session, node)["malformed"] == 0 for node in "ab")


@SLOW_IS_NO_MATTER
def test_both_work_while_directories_are_evicted(filled):
    session, expected = filled
    outputs = ended([begin(session, node, WORK, f"{node}{i}", 200) for node in "ab" for i in range(2)])
    expected = sorted(sum((text.split("\n")[:-1] for text in outputs), expected))
    for node in "ab":
        assert all_names(session, node) == expected
    assert all(counters(session, node)["malformed"] == 0 for node in "ab")
    on_disk = [path.name for path in session.root.rglob("*") if path.is_file() and ".shunt/session" not in str(path)]
    assert len([name for name in on_disk if name[:2] in ("a.", "b.") or name[:2] in ("a0", "a1", "b0", "b1")]) == len(expected)


@SLOW_IS_NO_MATTER
def test_names_are_made_once_whichever_node_has_forgotten_them(filled):
    session, _ = filled
    won = [int(text) for text in ended([begin(session, node, RACE) for node in "abab"])]
    assert sum(won) == 5 * DIRECTORIES


# In one directory, which grows above the limits of both meanwhile: one process after the other, then two at once.
GROW = """
import os, sys
first, last, won = *map(int, sys.argv[1:3]), 0
for i in range(first, last):
    name = f'huge/name.{i:06}'
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        won += 1
    except FileExistsError:
        os.stat(name)
    if i % 1000 == 0:
        found = set(os.listdir('huge'))
        assert found >= {f'name.{n:06}' for n in range(i + 1)}, (i, len(found))
print(won)
"""


@SLOW_IS_NO_MATTER
def test_one_directory_grows_above_the_limit_while_both_use_it(session):
    """At first it is wholly at home with the node that made it."""
    session.start("a", "b", placement="auto", SHUNT_INDEX_LIMIT="1M")
    assert session.homes() == ["a", "b"]
    python(session, "a", "import os; os.mkdir('huge')")
    assert python(session, "a", GROW, "0", "12000") == "12000\n"
    assert sum(counters(session, node)["index_oversized"] for node in "ab") >= 1
    assert len(session.sh("b", "ls huge").split()) == 12000
    won = [int(text) for text in ended([begin(session, node, GROW, 0, 30000) for node in "abab"])]
    assert sum(won) == 18000
    python(session, "b", "import os\nfor i in range(100): os.rename(f'huge/name.{i:06}', f'huge/moved.{i:06}')")
    expected = sorted([f"name.{i:06}" for i in range(100, 30000)] + [f"moved.{i:06}" for i in range(100)])
    for node in "ab":
        assert session.sh(node, "ls huge").split() == sorted(expected)
        found = counters(session, node)
        assert found["index_spilled"] == 1 and found["index_bytes"] < 1 << 20 and found["malformed"] == 0, found


@SLOW_IS_NO_MATTER
def test_a_home_that_is_lost_meanwhile(session):
    session.start("a", "b", SHUNT_INDEX_LIMIT="1M", SHUNT_STALE="6")
    assert session.homes() == ["a", "b"]
    for node in "ab":
        python(session, node, MAKE, node)
    session.vanish("b")
    session.wait_for(lambda: [member["node"] for member in session.members()] == ["a"])
    assert all_names(session, "a") == sorted(f"d{d}/{node}.{i:04}" for node in "ab" for d in range(DIRECTORIES)
                                             for i in range(NAMES))
