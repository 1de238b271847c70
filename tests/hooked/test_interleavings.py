# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The interleavings that the order of an operation's steps guards against, one after another, forced at hooks. Each is
forced again with its guard taken away, and must then go wrong: else it shows nothing."""

import json
import os
import pathlib
import signal
import subprocess

import conftest
import pytest

# The nodes that make, and that look: the home of the names and another node; two others.
PAIRS = pytest.mark.parametrize("one, other", [("a", "b"), ("b", "a"), ("b", "c")])


def guarded(guard):
    """What a test expects with the guard, and that it is not so without."""
    return pytest.mark.parametrize("guard", [None, guard])


NODES = "abc"


def keys(stage):
    """Of the indexes of all nodes. What programs see is made right by the next listing: what is in the trunk is compared."""
    return sum(json.loads(stage.session.at("status", node, "--json").check())[0]["counters"]["index_keys"] for node in NODES)


def keys_of_all_users(stage):
    """Each node's index has the directory from then on."""
    for node in NODES:
        stage.does(node, "os.path.exists('nothing')")
    return keys(stage)


def expect_keys(guard, stage, count):
    if guard is None:
        conftest.wait_until(lambda: keys(stage) == count, f"{count} keys in the indexes")
    else:
        assert keys(stage) != count


def expect(guard, what):
    assert bool(what) == (guard is None)


@PAIRS
def test_a_create_that_is_not_confirmed_is_not_absent(stage, one, other):
    stage.begin()
    made = stage.meeting()
    maker = stage.call(one, "make('n', 'text')", made.at("create-made"))
    made.reached()
    looking = stage.call(other, "os.stat('n').st_nlink")
    if other != "a":  # at home the entry is read in place, and the file is there
        stage.waits(looking)
    made.go()
    assert (maker.answer(), looking.answer()) == ("None", "1")


SWAPS = """
import threading, time
{before}
for meeting in meetings:
    for end in ("reached", "go"):
        os.unlink(f"{{meeting}}.{{end}}")
worker = threading.Thread(target={work})
worker.start()
def met(meeting):
    while not os.path.exists(f"{{meeting}}.reached"):
        time.sleep(0.002)
def leaves():
    links = [(int(number), os.path.join("/proc/self/fd", number)) for number in os.listdir("/proc/self/fd")]
    return [number for number, link in links if number >= lowest and os.path.islink(link) and os.readlink(link).endswith("/0")]
met(meetings[0])
saved = [(number, os.dup(number)) for number in leaves()]
for number, _ in saved:
    os.dup2(os.open(elsewhere, os.O_RDONLY), number)
if saved:
    print("swapped")
for meeting in meetings:
    met(meeting)
    if meeting != meetings[0]:
        for number, own in saved:
            os.dup2(own, number)
    open(f"{{meeting}}.go", "w").close()
worker.join()
"""


def swaps_at(stage, guard, hooks, before, work, lowest=950):
    """The program puts another directory in the place of the leaf's descriptor, and of all of them from `lowest` on, while a
    thread of it is at work and stands at the first hook, and that one back at a second. (what it says, that directory)"""
    stage.begin(",".join(filter(None, ("near", guard))))
    meetings, elsewhere = [stage.meeting() for _ in hooks], stage.area / "elsewhere"
    elsewhere.mkdir()
    names = f"dict(globals(), meetings={[str(meeting.path) for meeting in meetings]}, elsewhere='{elsewhere}', lowest={lowest})"
    program = stage.translated(SWAPS.format(before=before, work=work))
    met = [meeting.seen_before_at(hook) for meeting, hook in zip(meetings, hooks)]
    return stage.call("c", f"exec({program!r}, {names})", *met).answer(), elsewhere


LOOKS_AT = """
with open(elsewhere + '/' + 'n', 'w') as file:
    file.write("the file of another directory")
make('n', 'text')
os.stat('n')
"""
LOOKS = "lambda: print(os.stat('n').st_size)"


@guarded("leaf-without-a-look")
def test_a_program_that_takes_a_leafs_descriptor_while_a_file_is_looked_at(stage, guard):
    """Every one, also that of the call itself."""
    answer, _ = swaps_at(stage, guard, ["leaf-seen"], LOOKS_AT, LOOKS, lowest=0)
    expect(guard, answer == "swapped\n4\nNone")


@guarded("leaf-unpinned")
def test_a_program_that_takes_a_leafs_descriptor_and_puts_it_back_while_a_file_is_looked_at(stage, guard):
    answer, _ = swaps_at(stage, guard, ["leaf-seen", "leaf-used"], LOOKS_AT, LOOKS)
    expect(guard, answer == "swapped\n4\nNone")


@guarded("leaf-unpinned")
def test_a_program_that_takes_a_leafs_descriptor_while_a_file_is_made(stage, guard):
    answer, elsewhere = swaps_at(stage, guard, ["create-reserved"], "make('m')", "lambda: make('n', 'text')")
    assert answer == "swapped\nNone"
    expect(guard, list(elsewhere.iterdir()) == [])
    if guard is None:
        assert stage.does("b", "read('n')") == "text"


@guarded("absent-while-pending")
def test_a_pending_name_is_waited_for(stage, guard):
    stage.begin(guard)
    made = stage.meeting()
    maker = stage.call("b", "make('n', 'text')", made.at("create-made"))
    made.reached()
    looking = stage.call("c", "os.stat('n').st_nlink")
    stage.waits(looking)
    made.go()
    maker.answer()
    expect(guard, looking.answer() == "1")


def in_a_row(stage, build, home="a"):
    """The number of a name which has its home there; 'n' is that name."""
    number = next(i for i in range(8, 100) if stage.homes_of(build, f"name-{i}") == [home])
    stage.names = {"n": f"name-{number}"}
    return number


def answers_or_waits(stage, guard, call, answer):
    if guard is None:
        assert call.answer() == answer
    else:
        stage.waits(call)


def asks_for_what_is_foreseen(stage, guard, there, row, asks):
    """What b makes, what c does in a row, from which 'n' follows, and (a node, its call, the answer)."""
    node, asking, answer = asks
    stage.begin(guard)
    stage.does("b", there)
    stage.does("c", row)
    answers_or_waits(stage, guard, stage.call(node, asking), answer)


@guarded("ahead-kept")
@pytest.mark.parametrize("node, asking, answer", [("a", "make('n')", "None"), ("b", "make('n')", "None"),
                                                  ("b", "os.path.exists('n')", "False"), ("c", "os.mkdir('n')", "None"),
                                                  ("b", "os.rename('x', 'n')", "None")])
def test_who_asks_for_a_name_that_is_reserved_ahead_has_it(stage, build, guard, node, asking, answer):
    """Its daemon holds it for c, whose process has made the names before it."""
    number = in_a_row(stage, build)
    asks_for_what_is_foreseen(stage, guard, "make('x')", f"[make(f'name-{{i}}') for i in range({number - 6}, {number})]",
                              (node, asking, answer))


@guarded("ahead-unclaimed")
@pytest.mark.parametrize("hook", ["create-reserved", "create-made"])
def test_a_listing_does_not_wait_for_who_makes_a_name_that_was_predicted(stage, build, guard, hook):
    """At its home, where any name that is being made is looked for where it will be."""
    number = in_a_row(stage, build)
    stage.begin(guard)
    held = stage.meeting()
    arm = f"[os.unlink(f'{held.path}.{{end}}') for end in ('reached', 'go')], open('{held.path}.armed', 'w').close()"
    maker = stage.call("c", f"[make(f'name-{{i}}') for i in range({number - 6}, {number})], {arm}, make('n')",
                       held.seen_before_at(hook))
    conftest.wait_until(lambda: os.path.exists(f"{held.path}.armed"), "it to be armed")
    held.reached()
    assert stage.session.status("--node", "c")["counters"]["prefetched"] > 0
    listing = stage.call("a", "os.listdir()")
    if guard is not None:
        with pytest.raises(subprocess.TimeoutExpired):
            listing.process.wait(2)
    else:
        assert ("'n'" in listing.answer()) == (hook == "create-made")
    held.go()
    maker.answer()


@guarded("last-answer-unseen")
def test_what_a_daemon_answers_before_it_ends_is_seen(stage, guard):
    """A process has just looked without success, and then finds the daemon gone."""
    stage.begin(guard)
    looked, session, daemons = stage.meeting(), stage.session, stage.daemons().values()
    for pid in daemons:  # none answers before it was looked
        conftest.one_node.stand_still(pid)
    stops = subprocess.Popen([session.shunt.path, "stop", "--all", "--root", session.root],
                             env={**session.environment(), **stage.broken, "SHUNT_HOOKS": looked.at("unanswered")})
    looked.reached()
    for pid in daemons:
        os.kill(pid, signal.SIGCONT)
    conftest.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in daemons), "all daemons to end")
    looked.go()
    expect(guard, stops.wait(60) == 0)


@guarded("unpeeked")
@pytest.mark.parametrize("hook", ["create-reserved", "create-made"])
@pytest.mark.parametrize("other", ["b", "c"])
def test_a_listing_waits_for_nobody_who_makes_a_name(stage, guard, other, hook):
    """Where its home is elsewhere: on the maker's node, and on a third."""
    stage.begin(guard)
    made = stage.meeting()
    maker = stage.call("b", "make('n', 'text')", made.at(hook))
    made.reached()
    listing = stage.call(other, "os.listdir()")
    answers_or_waits(stage, guard, listing, "['n']" if hook == "create-made" else "[]")
    made.go()
    assert maker.answer() == "None"


@guarded("peeked-once")
@pytest.mark.parametrize("other", ["a", "c"])
def test_a_listing_that_finds_no_file_looks_again(stage, guard, other):
    """It was made, and has gone to the trunk as programs do that are run, before it was looked for."""
    stage.begin(guard)
    made, looked = stage.meeting(), stage.meeting()
    maker = stage.call("b", r"make('n', '#!/bin/true\n')", made.at("create-made"))
    made.reached()
    listing = stage.call(other, "[name for name in os.listdir() if name == 'n']", looked.at("list-doubts"))
    looked.reached()
    made.go()
    maker.answer()
    assert stage.does("c", "os.chmod('n', 0o755), os.spawnl(os.P_WAIT, os.path.abspath('n'), 'it')") == "(None, 0)"
    looked.go()
    expect(guard, listing.answer() == "['n']")


@guarded("ahead-kept")
@pytest.mark.parametrize("node, asking, answer", [("a", "os.unlink('n')", "None"), ("b", "os.rename('n', 'x')", "None"),
                                                  ("b", "make('n')", "EEXIST"), ("c", "os.rename('x', 'n')", "None")])
def test_who_asks_for_a_name_whose_unlink_is_predicted_finds_it(stage, build, guard, node, asking, answer):
    number = in_a_row(stage, build)
    there = f"make('x'), [make(f'name-{{i}}') for i in ({number}, *range({number} - 6, {number}))]"
    asks_for_what_is_foreseen(stage, guard, there, f"[os.unlink(f'name-{{i}}') for i in range({number - 6}, {number})]",
                              (node, asking, answer))


@guarded("ahead-kept")
@pytest.mark.parametrize("node, asking, answer", [("a", "make('n')", "None"), ("b", "os.path.exists('n')", "False"),
                                                  ("b", "os.mkdir('n')", "None"), ("c", "os.rename('x', 'n')", "None")])
def test_a_predicted_target_of_a_rename_goes_to_the_process_that_asks(stage, build, guard, node, asking, answer):
    number = in_a_row(stage, build)
    there = f"make('x'), [make(f'old-{{i}}') for i in range({number - 6}, {number})]"
    row = f"[os.rename(f'old-{{i}}', f'name-{{i}}') for i in range({number - 6}, {number})]"
    asks_for_what_is_foreseen(stage, guard, there, row, (node, asking, answer))


@guarded("ahead-kept")
@pytest.mark.parametrize("node, asking, answer", [("a", "os.unlink('n')", "None"), ("b", "os.rename('n', 'x')", "None"),
                                                  ("b", "make('n')", "EEXIST"), ("c", "os.rename('x', 'n')", "None"),
                                                  ("b", "os.stat('n').st_nlink", "1")])
def test_a_name_that_is_kept_for_its_rename_is_found(stage, build, guard, node, asking, answer):
    """Its maker has renamed all that it has made before."""
    number = in_a_row(stage, build)
    made = "(make(f'name-{i}'), os.rename(f'name-{i}', f'new-{i}'))"
    asks_for_what_is_foreseen(stage, guard, "make('x')", f"[{made} for i in range({number - 6}, {number})], make('n')",
                              (node, asking, answer))


@guarded("whole-unfinished")
@pytest.mark.parametrize("one, other", [("a", "b"), ("b", "a"), ("b", "c")])
def test_who_has_a_directory_for_itself_ends_what_it_began_before_others_come(stage, guard, one, other):
    stage.begin(guard, used=False)
    reserved = stage.meeting()
    maker = stage.call(one, "make('n', 'winner')", reserved.at("create-reserved"))
    reserved.reached()
    second = stage.call(other, "make('n', 'loser')")
    if guard is None:
        stage.waits(second)
    else:
        second.answer()
    reserved.go()
    expect(guard, (maker.answer(), second.answer()) == ("None", "EEXIST"))


@pytest.mark.parametrize("hook, found", [("create-reserved", "ENOENT"), ("create-made", "1")])
def test_what_was_left_in_a_directory_that_one_node_had_for_itself_is_settled(stage, hook, found):
    stage.begin(used=False)
    stage.call("b", "make('n')", f"{hook}:kill").answer()
    assert stage.does("c", "os.stat('n').st_nlink") == found


@guarded("loser-unlinks")
@pytest.mark.parametrize("hook", ["create-reserved", "create-made"])
def test_who_loses_does_not_touch_the_winner(stage, guard, hook):
    stage.begin(guard)
    held = stage.meeting()
    winner = stage.call("b", "make('n', 'winner')", held.at(hook))
    held.reached()
    loser = stage.call("c", "make('n', 'loser')")
    stage.waits(loser)
    held.go()
    assert (winner.answer(), loser.answer()) == ("None", "EEXIST")
    expect(guard, stage.does("a", "read('n')") == "winner")


@guarded("no-settle")
@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize("hook, found", [("create-reserved", "ENOENT"), ("create-made", "1")])
def test_what_a_client_that_was_killed_has_left_is_settled(stage, guard, node, hook, found):
    stage.begin(guard)
    stage.call(node, "make('n')", f"{hook}:kill").answer()
    expect(guard, stage.call("c", "os.stat('n').st_nlink", SHUNT_DEADLINE="3").answer() == found)


@guarded("no-settle")
@pytest.mark.parametrize("hook, left", [("remove-held", "['n']"), ("remove-done", "[]")])
def test_an_unlink_whose_client_was_killed_is_settled(stage, guard, hook, left):
    stage.begin(guard)
    stage.does("b", "make('n')")
    stage.call("b", "os.unlink('n')", f"{hook}:kill").answer()
    settled = stage.call("c", "os.stat('n').st_nlink", SHUNT_DEADLINE="3").answer()
    expect(guard, settled == ("1" if left == "['n']" else "ENOENT"))
    if guard is None:
        assert stage.does("a", "os.listdir()") == left


@guarded("no-settle")
@pytest.mark.parametrize("hook, left", [("rename-held", "['m']"), ("rename-done", "['n']")])
def test_a_rename_whose_client_was_killed_is_settled(stage, guard, hook, left):
    stage.begin(guard)
    stage.does("b", "make('m')")
    stage.call("b", "os.rename('m', 'n')", f"{hook}:kill").answer()
    settled = stage.call("c", "os.stat('m').st_nlink", SHUNT_DEADLINE="3").answer()
    expect(guard, settled == ("1" if left == "['m']" else "ENOENT"))
    if guard is None:
        assert stage.does("a", "os.listdir()") == left


def test_what_changes_while_a_directory_is_listed_beats_the_list(stage):
    stage.path("n").touch()
    listed = stage.meeting()
    stage.begin(hooks=[listed.at("load-listed")])
    first = stage.call("b", "os.stat('m')")
    listed.reached()
    removal = stage.call("c", "os.unlink('n')")
    stage.waits(removal)
    listed.go()
    assert (first.answer(), removal.answer()) == ("ENOENT", "None")
    assert stage.does("a", "os.listdir()") == "[]"


@guarded("no-second-look")
def test_a_place_is_believed_only_if_the_file_is_there(stage, guard):
    """Between the look-up and the open the file goes, and another of its name comes elsewhere."""
    stage.begin(guard)
    stage.does("b", "make('n', 'first')")
    found = stage.meeting()
    reader = stage.call("a", "read('n')", found.at("looked-up"))
    found.reached()
    assert stage.does("c", "os.unlink('n'), make('n', 'second')") == "(None, None)"
    found.go()
    expect(guard, reader.answer() == "second")


def test_a_file_that_was_replaced_at_its_place_is_the_one_that_is_opened(stage):
    stage.begin()
    stage.does("b", "make('n', 'first')")
    found = stage.meeting()
    reader = stage.call("a", "read('n')", found.at("looked-up"))
    found.reached()
    assert stage.does("c", "make('m', 'second'), os.rename('m', 'n')") == "(None, None)"
    found.go()
    assert reader.answer() == "second"


@PAIRS
@pytest.mark.parametrize("leads_to, answer", [("elsewhere", "None"), ("no/where", "ENOENT")])
def test_a_link_that_comes_before_a_file_is_made_is_followed(stage, one, other, leads_to, answer):
    """What it leads to is made, as natively."""
    stage.begin()
    held = stage.meeting()
    maker = stage.call(one, "make('n', flags=0)", held.at("hold"))
    held.reached()
    assert stage.does(other, f"os.symlink({leads_to!r}, 'n')") == "None"
    held.go()
    assert maker.answer() == answer
    assert stage.does("c", "os.path.exists('elsewhere')") == str(leads_to == "elsewhere")


# Of a link, each one of its own, that leads nowhere; and of one that leads to a file in a branch.
OF_NOTHING = [("make('{}', flags=0)", "ENOENT"), ("read('{}')", "ENOENT"), ("os.open('{}', os.O_NOFOLLOW)", "ELOOP"),
              ("os.stat('{}')", "ENOENT"), ("make('{}')", "EEXIST"), ("os.truncate('{}', 0)", "ENOENT"), ("os.readlink('{}')", "no/where")]
OF_A_FILE = [("make('{}', flags=0)", "None"), ("read('{}')", "text"), ("os.stat('{}').st_size", "4"), ("os.utime('{}')", "None"),
             ("os.truncate('{}', 0)", "None")]
# Of an empty directory.
OF_A_DIRECTORY = [("make('{}', flags=0)", "EISDIR"), ("os.open('{}', os.O_CREAT | os.O_RDONLY)", "EISDIR"), ("make('{}')", "EEXIST"),
                  ("os.listdir('{}')", "[]"), ("make('{}/file')", "None"), ("os.unlink('{}')", "EISDIR"), ("os.mkdir('{}')", "EEXIST"),
                  ("os.rmdir('{}')", "None"), ("os.rename('file', '{}')", "EISDIR"), ("os.rename('{}', 'other')", "None"),
                  ("os.rename('{}/', 'another')", "None"),
                  ("[entry.is_dir() for entry in os.scandir() if entry.name == '{}']", "[True]")]


def come_to(stage, node, calls, *names):
    """What the calls answer on a node, each of its own name."""
    return eval(stage.does(node, f"[result(line) for line in {[line.format(name) for (line, _), name in zip(calls, names)]!r}]"))


def come_to_replaced(stage, node, calls, makes, replaces):
    """What the calls answer on a node, each of a name that it knows, in whose place a program without the shim puts something."""
    stage.begin()
    stage.does("c", "make('file', 'text')")
    places = [stage.out / f"name-{number}" for number, _ in enumerate(calls)]
    for place in places:
        makes(place)
    natively = [(seen.st_mode, seen.st_size, seen.st_ino) for seen in map(os.stat, places)]
    line = "[(seen.st_mode, seen.st_size, seen.st_ino) for seen in map(os.stat, {!r})]".format([place.name for place in places])
    assert stage.does(node, line) == str(natively)
    for place in places:
        replaces(place)
    return come_to(stage, node, calls, *(place.name for place in places))


def test_a_link_that_has_the_inode_of_the_file_that_was_there_is_a_link(stage):
    """The file is in the trunk, and other nodes remember it. What file system gives the number again does so at once."""
    stage.begin(placement="auto")
    names = [f"name-{number}" for number, _ in enumerate(OF_NOTHING)]
    for name in names:
        assert stage.does("c", f"make({name!r})") == "None"
        for node in "ab":
            stage.does(node, f"os.stat({name!r})")
        stage.does("c", f"os.unlink({name!r}), os.symlink('no/where', {name!r})")
    assert come_to(stage, "b", OF_NOTHING, *names) == [answer for _, answer in OF_NOTHING]


@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize("calls, leads_to", [(OF_NOTHING, "no/where"), (OF_A_FILE, "file")], ids=["nothing", "file"])
def test_a_link_that_a_program_without_the_shim_puts_in_place_of_a_file_is_followed(stage, node, calls, leads_to):
    seen = come_to_replaced(stage, node, calls, pathlib.Path.touch, lambda file: (file.unlink(), file.symlink_to(leads_to)))
    assert seen == [answer for _, answer in calls]


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_directory_that_a_program_without_the_shim_puts_in_place_of_a_file_is_one(stage, node):
    seen = come_to_replaced(stage, node, OF_A_DIRECTORY, pathlib.Path.touch, lambda file: (file.unlink(), file.mkdir()))
    assert seen == [answer for _, answer in OF_A_DIRECTORY]


# Of what is no directory, but for a link.
OF_NO_DIRECTORY = [("os.close(os.open('{}', os.O_CREAT | os.O_RDWR))", "None"), ("os.close(os.open('{}', os.O_CREAT | os.O_EXCL))", "EEXIST"),
                   ("os.mkdir('{}')", "EEXIST"), ("os.rmdir('{}')", "ENOTDIR"), ("os.unlink('{}')", "None"),
                   ("os.rename('{}/', 'moved')", "ENOTDIR"), ("os.rename('file', '{}')", "None")]


# RENAME_NOREPLACE: 0, or the name of the errno.
REPLACES_NOTHING = ("(lambda c: c.CDLL(None, use_errno=True).renameat2(-100, b'{}', -100, b'{}', 1) and errno.errorcode[c.get_errno()])"
                    "(__import__('ctypes'))")


@PAIRS
def test_a_name_that_a_program_without_the_shim_has_removed_is_free_for_a_rename_that_replaces_nothing(stage, one, other):
    stage.begin()
    (stage.out / "name").touch()
    assert stage.does(other, "make('file', 'text'), os.stat('name').st_size") == "(None, 0)"
    (stage.out / "name").unlink()
    assert stage.does(one, REPLACES_NOTHING.format("file", "name")) == "0"
    assert stage.does(other, "os.listdir(), read('name')") == "(['name'], 'text')"


def test_a_rename_that_replaces_nothing_misses_its_old_name_first(stage):
    stage.begin()
    (stage.out / "name").touch()
    assert stage.does("b", "make('file'), os.stat('name').st_size") == "(None, 0)"
    (stage.out / "name").unlink()
    assert stage.does("a", REPLACES_NOTHING.format("name", "file")) == "ENOENT"


@pytest.mark.parametrize("puts, answer", [(lambda path: path.touch(), "ENOTDIR"), (os.mkfifo, "ENOTDIR"), (os.mkdir, "None"),
                                          (lambda path: path.symlink_to("no/where"), "ENOTDIR"), (lambda path: path.symlink_to("."), "ENOTDIR")])
def test_a_slash_behind_a_name_that_the_index_does_not_know_follows_no_link(stage, puts, answer):
    stage.begin()
    assert stage.does("a", "os.listdir()") == "[]"
    puts(stage.out / "name")
    assert stage.does("b", "os.rename('name/', 'moved')") == answer
    assert stage.does("c", "os.listdir()") == str(["moved" if answer == "None" else "name"])


@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize("puts, answers", [
    (lambda path: path.touch(), {}), (os.mkfifo, {}), (lambda path: path.symlink_to("no/where"), {0: "ENOENT"}),
    (lambda path: path.symlink_to("link-leads-here"), {})], ids=["file", "fifo", "link", "link-to-make"])
def test_what_a_program_without_the_shim_puts_in_place_of_a_directory_is_none(stage, node, puts, answers):
    seen = come_to_replaced(stage, node, OF_NO_DIRECTORY, pathlib.Path.mkdir, lambda place: (place.rmdir(), puts(place)))
    assert seen == [answers.get(number, answer) for number, (_, answer) in enumerate(OF_NO_DIRECTORY)]


@guarded("victims-place")
def test_a_file_that_is_replaced_is_replaced_where_it_is(stage, guard):
    """The name can be opened at each moment, and there is never a second file of it."""
    stage.begin(guard)
    stage.does("b", "make('n', 'old')")
    stage.does("c", "make('m', 'new')")
    before, after = stage.meeting(), stage.meeting()
    renamer = stage.call("c", "os.rename('m', 'n')", before.at("rename-held"), after.at("rename-done"))
    before.reached()
    assert guard or stage.does("a", "read('n')") == "old"
    before.go()
    after.reached()
    seen = stage.does("a", "read('n')")
    on_disk = list(stage.session.root.glob(f".shunt/b/*/out-*/*/{stage.path('n').name}"))
    after.go()
    assert renamer.answer() == "None"
    expect(guard, seen == "new" and len(on_disk) == 1 and stage.session.branch_of(stage.path("n")) == "b")


def test_renames_that_cross_do_not_wait_for_each_other(stage):
    stage.begin()
    stage.does("b", "make('m', 'first'), make('n', 'second')")
    held = stage.meeting()
    one = stage.call("b", "os.rename('m', 'n')", held.at("rename-held"))
    held.reached()
    other = stage.call("c", "os.rename('n', 'm')")
    stage.waits(other)
    held.go()
    assert (one.answer(), other.answer()) == ("None", "None")
    assert stage.does("a", "os.listdir(), read('m')") == "(['m'], 'first')"


@guarded("link-asks")
def test_links_that_cross_do_not_wait_for_each_other(stage, guard):
    """Each holds the new name, which is the other's old one, and finds that its own old one is gone."""
    stage.begin(guard)
    found, held = [stage.meeting(), stage.meeting()], [stage.meeting(), stage.meeting()]
    links = []
    for i, (old, new) in enumerate((("m", "n"), ("n", "m"))):
        stage.does("a", f"make({old!r})")
        links.append(stage.call("bc"[i], f"os.link({old!r}, {new!r})", found[i].at("link-found"),
                                held[i].at("link-reserved"), SHUNT_DEADLINE="5"))
        found[i].reached()
        stage.does("a", f"os.unlink({old!r})")
    for meeting in found:
        meeting.go()
    # Both hold their new names before either goes on: else the first finds the name of the second free.
    for meeting in held:
        meeting.reached()
    for meeting in held:
        meeting.go()
    expect(guard, [link.answer() for link in links] == ["ENOENT", "ENOENT"])


@pytest.mark.parametrize("known", [True, False])
def test_a_directory_that_is_being_removed_takes_no_creates(stage, known):
    stage.begin()
    stage.does("a", "os.mkdir('sub')")
    if known:
        stage.does("c", "make('sub/m'), os.unlink('sub/m')")
    held = stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", held.at("rmdir-held"))
    held.reached()
    birth = stage.call("c", "make('sub/n')")
    stage.waits(birth)
    held.go()
    assert (removal.answer(), birth.answer()) == ("None", "ENOENT")


@pytest.mark.parametrize("refused", [False, True])
def test_a_directory_that_is_being_removed_gets_no_mirrors(stage, refused):
    """They would be those of no directory. Each daemon makes its own, and that of c has made none so far. `refused`: by the kernel,
    since a program without shunt has made a file there."""
    removed = stage.meeting()
    stage.begin(hooks=[removed.at("mirrors-removed")])
    stage.does("a", "os.mkdir('sub'), make('sub/m'), os.unlink('sub/m')")
    assert stage.does("c", "os.listdir('sub')") == "[]"
    removal = stage.call("b", "os.rmdir('sub')")
    removed.reached()
    birth = stage.call("c", "make('sub/n')")
    stage.waits(birth)
    stage.session.status("--node", "c")
    if refused:
        (stage.out / "sub" / "file").touch()
    removed.go()
    assert (removal.answer(), birth.answer()) == (("ENOTEMPTY", "None") if refused else ("None", "ENOENT"))
    assert len(list(stage.session.root.glob(".shunt/b/*/sub-*/*/n"))) == len(list(stage.session.root.glob(".shunt/b/*/sub-*"))) == refused


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_directory_that_is_replaced_before_its_rmdir_was_gone(stage, node):
    """Another one is there when its coordinator is asked."""
    stage.begin()
    stage.does("a", "os.mkdir('sub')")
    held = stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", held.at("hold"))
    held.reached()
    assert stage.does(node, "os.rmdir('sub'), os.mkdir('sub')") == "(None, None)"
    held.go()
    assert removal.answer() == "ENOENT"
    assert stage.does("a", "os.rmdir('sub')") == "None"


@pytest.mark.parametrize("hook", ["claim-unserved", "claim-absent"])
def test_a_directory_that_is_replaced_before_its_name_is_claimed_was_gone(stage, hook):
    """There was none when its coordinator had been asked, or when its name had. The other one has a marker by then, but no file."""
    marked = stage.meeting()
    stage.begin(hooks=[marked.at("marker-written")])
    stage.does("a", "os.mkdir('sub')")
    held, gone = stage.meeting(), stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", held.at("hold"), gone.at(hook))
    held.reached()
    assert stage.does("a", "os.rmdir('sub')") == "None"
    held.go()
    gone.reached()
    assert stage.does("a", "os.mkdir('sub')") == "None"
    maker = stage.call("c", "make('sub/m')")
    marked.reached()
    gone.go()
    assert removal.answer() == "ENOENT"
    marked.go()
    assert maker.answer() == "None"


def test_a_directory_with_the_identity_of_one_that_has_gone_is_removed_in_order(stage):
    """Its inode number is used again within a tick of the clock: it is served, has a marker, and no file is made in it after all."""
    marked = stage.meeting()
    stage.session.settings["SHUNT_BREAK"] = "births-alike"
    stage.begin("births-alike", hooks=[marked.at("marker-written")])
    stage.does("a", "os.mkdir('sub')")
    held, gone = stage.meeting(), stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", held.at("hold"), gone.at("claim-unserved"))
    held.reached()
    number = os.stat(stage.out / "sub").st_ino
    assert stage.does("a", "os.rmdir('sub')") == "None"
    others = (stage.out / f"other-{count}" for count in range(1000))  # another program may have the number for a moment
    other = next((path for path in others if path.mkdir() is None and path.stat().st_ino == number), None)
    if other is None:
        pytest.skip("no directory gets the number again: this file system does not do that at once, or another program has it")
    held.go()
    gone.reached()
    assert stage.does("a", f"os.rename('{other.name}', 'sub')") == "None"
    maker = stage.call("c", "make('sub/m')")
    marked.reached()
    os.killpg(maker.process.pid, signal.SIGKILL)
    gone.go()
    marked.go()
    assert removal.answer() == "None"


def test_a_directory_that_is_renamed_and_replaced_before_it_is_frozen_was_gone(stage):
    stage.begin()
    stage.does("a", "os.mkdir('sub'), make('sub/m'), os.unlink('sub/m')")
    held = stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", held.at("hold"))
    held.reached()
    assert stage.does("a", "os.rename('sub', 'moved'), os.mkdir('sub')") == "(None, None)"
    held.go()
    assert removal.answer() == "ENOENT"
    assert stage.does("c", "make('sub/n'), make('moved/n')") == "(None, None)"
    assert stage.does("a", "os.listdir('sub'), os.listdir('moved')") == "(['n'], ['n'])"


def test_a_directory_that_is_replaced_after_it_was_not_empty_stays(stage):
    stage.begin()
    stage.does("a", "os.mkdir('sub'), make('sub/m')")
    full = stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", full.at("rmdir-not-empty"))
    full.reached()
    assert stage.does("a", "os.unlink('sub/m'), os.rmdir('sub'), os.mkdir('sub')") == "(None, None, None)"
    full.go()
    assert removal.answer() == "ENOENT"
    assert stage.does("a", "make('sub/n'), os.listdir(), os.listdir('sub')") == "(None, ['sub'], ['n'])"


@pytest.mark.parametrize("before", ["None", "os.symlink('x', 'sub')", "os.mkfifo('sub')"])
def test_a_directory_that_comes_where_none_was_to_be_removed(stage, before):
    """It is removed as any other, or stays."""
    stage.begin()
    stage.does("a", before)
    none = stage.meeting()
    removal = stage.call("b", "os.rmdir('sub')", none.at("rmdir-no-directory"))
    none.reached()
    assert stage.does("a", "os.path.lexists('sub') and os.unlink('sub'), os.mkdir('sub')")
    none.go()
    answer = removal.answer()
    assert answer == ("ENOENT" if before == "None" else "None")
    assert [stage.does(node, "os.listdir()") for node in "abc"] == [str(["sub"] if answer != "None" else [])] * 3
    if answer != "None":
        assert stage.does("c", "make('sub/n')") == "None"
        assert stage.does("a", "os.listdir('sub')") == "['n']"


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_directory_that_is_replaced_before_another_is_renamed_onto_it(stage, node):
    stage.begin()
    stage.does("a", "os.mkdir('sub'), os.mkdir('dir'), make('dir/n')")
    held = stage.meeting()
    renaming = stage.call("b", "os.rename('dir', 'sub')", held.at("hold"))
    held.reached()
    assert stage.does(node, "os.rmdir('sub'), os.mkdir('sub'), make('sub/m'), os.unlink('sub/m')") == "(None, None, None, None)"
    held.go()
    assert renaming.answer() == "None"
    assert stage.does("a", "os.listdir(), os.listdir('sub')") == "(['sub'], ['n'])"


def test_what_was_found_in_the_trunk_may_be_gone_when_it_is_adopted(stage):
    stage.begin()
    assert stage.does("a", "os.listdir()") == "[]"
    stage.path("n").write_text("native")
    found, before = stage.meeting(), keys_of_all_users(stage)
    finder = stage.call("b", "read('n')", found.at("adopt-found"))
    found.reached()
    stage.does("c", "os.unlink('n')")
    found.go()
    assert finder.answer() == "native"
    expect_keys(None, stage, before)
    assert stage.does("a", "os.listdir()") == "[]"


def test_what_was_found_in_the_trunk_may_be_another_when_it_is_adopted(stage):
    stage.begin()
    stage.does("a", "os.listdir()")
    stage.path("n").write_text("native")
    found = stage.meeting()
    finder = stage.call("b", "read('n')", found.at("adopt-found"))
    found.reached()
    assert stage.does("c", "os.unlink('n'), make('n', 'new')") == "(None, None)"
    found.go()
    assert finder.answer() == "native"
    assert stage.does("a", "os.listdir(), read('n')") == "(['n'], 'new')"


@guarded("unlink-unheld")
def test_a_file_that_came_meanwhile_is_not_removed_behind_its_makers_back(stage, guard):
    stage.begin(guard, placement="auto")
    stage.does("a", "os.listdir()")
    found, made, before = stage.meeting(), stage.meeting(), keys_of_all_users(stage)
    removal = stage.call("b", "os.unlink('n')", found.at("unlink-found"))
    found.reached()
    maker = stage.call("c", "make('n')", made.at("create-made"))
    made.reached()
    found.go()
    stage.waits(removal)
    made.go()
    assert (maker.answer(), removal.answer()) == ("None", "None")
    expect_keys(guard, stage, before)
    assert stage.does("a", "os.listdir()") == "[]"


def test_a_file_that_came_after_one_that_went_is_not_removed_behind_its_makers_back_either(stage):
    """The one that was found is gone when it is adopted; then there is another of its name. Where the home is (elsewhere,
    the first question is to hold the name)."""
    stage.begin(placement="auto")
    stage.does("a", "os.listdir()")
    found, adopted, unknown, held = (stage.meeting() for _ in range(4))
    removal = stage.call("a", "os.unlink('n')", found.at("unlink-found"), adopted.at("adopt-found"),
                         unknown.at("still-unknown"), held.at("remove-held"))
    found.reached()
    stage.does("c", "make('n')")
    found.go()
    adopted.reached()
    stage.does("c", "os.unlink('n')")
    adopted.go()
    unknown.reached()
    stage.does("c", "make('n')")
    unknown.go()
    conftest.wait_until(lambda: held.is_reached() or removal.has_ended(), "the removal")
    assert held.is_reached()
    held.go()
    assert removal.answer() == "None"
    assert stage.does("a", "os.listdir()") == "[]"


def test_who_waits_is_served_when_the_name_is_free(stage):
    """The word of it wakes the daemon, also of a node where nothing else happens."""
    stage.begin(SHUNT_DEADLINE="20")
    stage.does("b", "make('n')")
    held = stage.meeting()
    removal = stage.call("b", "os.unlink('n')", held.at("remove-done"))
    held.reached()
    waiting = stage.call("c", "make('n', 'new')", SHUNT_DEADLINE="20")
    stage.waits(waiting)
    held.go()
    assert (removal.answer(), waiting.answer()) == ("None", "None")


def makes_too(stage, held, first, guard):
    """Another node makes the name that is held at its home: the answers to its claimant, and to that one."""
    other = stage.call("c", "make('n', 'other')", SHUNT_DEADLINE="20")
    stage.waits(other)
    if guard:
        other.answer()
    held.go()
    return first.answer(), other.answer()


@guarded("former-unawaited")
def test_a_daemon_that_crashes_is_followed_when_its_processes_are_done(stage, guard):
    """Else the home settles what they hold by what is not on disk yet."""
    stage.begin(guard)
    held = stage.meeting()
    assert stage.does("c", "os.listdir()") == "[]"  # so that it need not ask for the directory when b is away
    first = stage.call("b", "make('n', 'first')", held.at("create-reserved"))
    held.reached()
    stage.crash("b")
    expect(guard, makes_too(stage, held, first, guard) == ("None", "EEXIST"))


@guarded("held-untold")
def test_what_is_held_when_a_home_crashes_is_held_at_the_next(stage, guard):
    stage.begin(guard)
    held = stage.meeting()
    first = stage.call("b", "make('n', 'first')", held.at("create-reserved"))
    held.reached()
    stage.crash_and_come_back("a")
    expect(guard, makes_too(stage, held, first, guard) == ("None", "EEXIST"))


@guarded("listed-beats")
def test_what_was_held_while_a_directory_is_listed_again_beats_the_list(stage, guard):
    """A home crashes, and the directory is listed again while a file of it goes."""
    listed, held = stage.meeting(), stage.meeting()
    listed.go()
    stage.begin(guard, hooks=[listed.at("load-listed")])
    stage.does("b", "make('n')")
    removal = stage.call("b", "os.unlink('n')", held.at("remove-held"))
    held.reached()
    listed.again()
    stage.crash_and_come_back("a")
    lister = stage.call("c", "os.listdir()")
    listed.reached()
    held.go()
    assert removal.answer() == "None"
    stage.heard("b")
    listed.go()
    expect(guard, lister.answer() == "[]" and stage.does("a", "os.listdir()") == "[]")


@pytest.mark.parametrize("whole", ["os.fsync(os.open('.', os.O_RDONLY))", "os.chmod('.', 0o750)", "os.utime('.', (1, 1))"])
def test_what_concerns_a_directory_does_not_wait_for_who_waits_for_its_coordinator(stage, whole):
    """A node asks the coordinator for its first leaf while the coordinator asks all nodes for something."""
    one, other = (node for node in conftest.NODES if node != stage.ruler)
    asking, told = stage.meeting(), stage.meeting()
    stage.begin(hooks=[asking.at("mark-asked"), told.seen_at("all-asked")], SHUNT_DEADLINE="4")
    assert stage.does(one, "os.listdir()") == "[]"
    marker = stage.call(stage.ruler, "make('m')")
    asking.reached()
    asking.go()
    assert marker.answer() == "None"
    asking.again()
    birth = stage.call(one, "make('n')")
    asking.reached()
    asked = stage.call(other, whole)
    told.reached()
    asking.go()
    assert (birth.answer(), asked.answer()) == ("None", "None")
    assert sorted(stage.does(other, "os.listdir()").strip("[]").split(", ")) == ["'m'", "'n'"]


def test_a_directory_that_is_replaced_while_its_first_leaf_is_asked_for(stage):
    """By a program without shunt: the file is made in the one that is there then, and nothing went wrong."""
    asking = stage.meeting()
    stage.begin(hooks=[asking.at("mark-asked")])
    birth = stage.call(next(node for node in conftest.NODES if node != stage.ruler), f"make({str(stage.out)!r} + '/n')")
    asking.reached()
    stage.out.rmdir()
    stage.out.mkdir()
    asking.go()
    assert birth.answer() == "None"
    assert stage.session.names(stage.ruler, stage.out) == ["n"]
    for member in stage.session.members():
        assert "warning" not in (pathlib.Path(member["run_dir"]) / "log").read_text()


@guarded("list-torn")
def test_names_that_find_another_home_are_listed(stage, guard):
    """The others were asked for theirs when this node still had them; its index is read when it has them no more."""
    stage.begin(guard)
    names = sorted(f"f{number}" for number in range(60))
    stage.does("a", f"make({names[0]!r}), time.sleep(0.05), [make(name) for name in {names[1:]}]")
    conftest.wait_until(stage.session.trunk_has_its_times(), "the trunk to be given its times")
    for _ in range(3):  # until those are proven, what is in it is compared by a listing more
        stage.does("a", "os.listdir(), time.sleep(0.1)")
    asked = stage.meeting()
    lister = stage.call("a", "sorted(os.listdir())", asked.at("list-asked"))
    asked.reached()
    stage.session.start("d", **stage.broken)
    conftest.wait_until(lambda: stage.session.homes() == ["a", "b", "c", "d"], "d to be a home")
    asked.go()
    expect(guard, lister.answer() == str(names))


@guarded("telling-unseen")
def test_a_change_time_that_nobody_is_to_see(stage, guard):
    """The trunk is told when names in its mirrors changed, a while after: that gives it another change time."""
    told, awaited = stage.meeting(), stage.meeting()
    stage.begin(guard, hooks=[told.at("trunk-told")])
    times = "(os.stat('.').st_ctime_ns, os.fstat(os.open('.', 0)).st_ctime_ns)"
    before = stage.does("a", f"(make('m'), time.sleep(0.05), make('n'), {times})[3]")
    told.reached()
    looking = stage.call("a", times, awaited.seen_at("times-awaited"))
    conftest.wait_until(lambda: awaited.is_reached() or looking.has_ended(), "the change time to be looked at")
    told.go()
    expect(guard, looking.answer() == before)


@pytest.mark.parametrize("other", ["b", "c"])
def test_a_name_that_is_looked_at_for_a_listing_when_a_home_has_crashed_is_listed(stage, other):
    """Its directory is loaded for that again."""
    stage.begin()
    assert stage.does("b", "make('m'), make('n')") == "(None, None)"
    held, looked = stage.meeting(), stage.meeting()
    exchange = "__import__('ctypes').CDLL(None).renameat2(-100, b'm', -100, b'n', 2)"  # both names are there throughout
    exchanging = stage.call("b", exchange, held.at("rename-held"))
    held.reached()
    lister = stage.call(other, "sorted(os.listdir()) == sorted(['m', 'n'])", looked.at("list-pending"))
    looked.reached()
    stage.crash_and_come_back("a")
    looked.go()
    held.go()
    assert (exchanging.answer(), lister.answer()) == ("0", "True")


def test_a_listing_fails_if_a_directory_that_was_lost_cannot_be_loaded_again(stage):
    """As when the daemon has no memory for it: a name of which nothing can be known is not left out."""
    stage.begin()
    assert stage.does("b", "make('m'), make('n')") == "(None, None)"
    held, looked = stage.meeting(), stage.meeting()
    exchanging = stage.call("b", "__import__('ctypes').CDLL(None).renameat2(-100, b'm', -100, b'n', 2)", held.at("rename-held"))
    held.reached()
    lister = stage.call("a", "os.listdir()", looked.at("list-pending"), SHUNT_BREAK="load-fails")
    looked.reached()
    stage.crash_and_come_back("a")
    looked.go()
    held.go()
    assert (exchanging.answer(), lister.answer()) == ("0", "ENOMEM")


def requests(stage):
    return json.loads(stage.session.at("status", "a", "--json").check())[0]["counters"]["requests"]


def test_more_processes_list_than_there_are_bulk_buffers(stage):
    """Long answers that have not been read: later requests get short ones."""
    stage.begin()
    assert stage.does("b", "[make(f'f{number}') for number in range(900)].count(None)") == "900"
    held, listers = [], []
    for _ in range(17):
        held.append(stage.meeting())
        listers.append(stage.call("a", "len(set(os.listdir()))", held[-1].at("list-asked")))
    for meeting in held:
        meeting.reached()
    before = requests(stage)
    assert stage.does("a", "len(set(os.listdir()))") == "900"
    assert requests(stage) - before > 900 * 2 // 3 * 24 // 2048
    for meeting in held:
        meeting.go()
    assert [lister.answer() for lister in listers] == ["900"] * 17


@pytest.mark.parametrize("line, hook", [("os.unlink('n')", "remove-held"), ("os.rename('m', 'n')", "rename-held")])
def test_a_listing_fails_if_it_cannot_be_told_what_is_there(stage, line, hook):
    """Its home waits for the operation on a name; a listing that waits no longer must not leave it out."""
    stage.begin()
    assert stage.does("b", "make('m'), make('n')") == "(None, None)"
    held = stage.meeting()
    worker = stage.call("b", line, held.at(hook))
    held.reached()
    assert stage.call("c", "os.listdir()", SHUNT_DEADLINE="1").answer() == "EIO"
    held.go()
    assert worker.answer() == "None"


def test_a_watched_directory_gets_no_marker_that_was_asked_for_before(stage):
    """The watcher would see it come."""
    one, other = (node for node in conftest.NODES if node != stage.ruler)
    asking, told = stage.meeting(), stage.meeting()
    stage.begin(hooks=[asking.at("mark-asked"), told.seen_at("all-asked")])
    birth = stage.call(one, "make('n')")
    asking.reached()
    watching = stage.call(other, "watch()")
    told.reached()
    asking.go()
    assert (birth.answer(), watching.answer()) == ("None", "1")
    assert [path.name for path in stage.out.iterdir()] == [stage.path("n").name]


ENDED = {"remove-held": ("'rm', 'n'", True), "remove-done": ("'rm', 'n'", False), "rename-held": ("'mv', 'n', 'm'", True),
         "rename-done": ("'mv', 'n', 'm'", False), "create-made": ("'touch', 'n'", True)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("hook", ENDED)
def test_who_is_ended_by_a_signal_amid_a_call(stage, hook, number):
    """A program that handles none is not waited for: what it did is settled by what is there."""
    words, is_there = ENDED[hook]
    stage.begin()
    held = stage.meeting()
    if hook != "create-made":
        stage.does("b", "make('n')")
    program = stage.call("c", f"os.execvp({words.split(',')[0]}, [{words}])", held.at(hook))
    held.reached()
    program.process.send_signal(number)
    assert program.process.wait(20) in (-number, 128 + number)
    for node in "ab":
        assert stage.does(node, "os.path.exists('n'), os.path.exists('m')") == str((is_there, hook == "rename-done"))
    assert stage.does("b", "make('n')") == ("EEXIST" if is_there else "None")
