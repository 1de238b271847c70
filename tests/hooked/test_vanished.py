# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A node that vanishes, or stands still, between the steps of an operation; and what the lease and the fence are for."""

import itertools
import os
import pathlib
import signal
import subprocess

import conftest
import pytest
from test_interleavings import expect, guarded

LEASE = "6"  # as short as it may be


@pytest.fixture
def stage(stage):
    stage.session.settings["SHUNT_STALE"] = LEASE
    return stage


def dropped(stage, node):
    conftest.wait_until(lambda: stage.session.member(node) is None, f"{node} to be dropped")


def goes_on(stage, node, daemon):
    """It finds that it was dropped, and its supervisor starts another one, which is not to be left after."""
    os.kill(daemon, signal.SIGCONT)
    conftest.wait_until(lambda: stage.session.member(node) is not None, f"{node} to be back")


def job_goes_on(stage, node, daemon, held, done, ends):
    """The same, where a thread of it meets the test at `held`: that comes to the end of its job before main's thread ends the
    process."""
    done.again()
    held.go()
    os.kill(daemon, signal.SIGCONT)
    done.reached()
    ends.go()
    goes_on(stage, node, daemon)


@guarded("missing-is-gone")
def test_a_file_of_a_lost_node_is_found_under_its_branchs_new_name(stage, guard):
    """A process that was told where it is, and perhaps holds its name, finds nothing there; it is not gone."""
    stage.begin(guard)
    stage.does("c", "[make(name, name) for name in ('removed', 'renamed', 'replaced', 'written', 'linked')][0]")
    stage.does("b", "make('other', 'other')")
    under_way = {"remove-held": "os.unlink('removed')", "rename-held": "os.rename('renamed', 'new')",
                 "rename-held:": "os.rename('other', 'replaced')", "looked-up": "open('written', 'a').write('more')",
                 "link-reserved": "os.link('linked', 'link')"}
    calls = []
    for hook, line in under_way.items():
        held = stage.meeting()
        calls.append((held, stage.call("a", line, held.at(hook.strip(":")))))
        held.reached()
    stage.session.vanish("c")
    dropped(stage, "c")
    for held, _ in calls:
        held.go()
    answers = [call.answer() for _, call in calls]
    expect(guard, answers == ["None", "None", "None", "4", "None"])
    if guard is None:
        seen = stage.does("b", "{name: read(name) for name in sorted(os.listdir())}")
        assert eval(seen) == {"link": "linked", "linked": "linked", "new": "renamed", "replaced": "other",
                              "written": "writtenmore"}


@pytest.mark.parametrize("hook, guard", [("heartbeat-begun", None), ("heartbeat-begun", "stall-unwaited"), ("look-begun", None)])
def test_a_file_system_that_stalls_is_waited_for(stage, hook, guard):
    """As natively. Meanwhile a home that is silent is no reason to fail; where the file system works it is one."""
    stage.session.settings["SHUNT_STALE"] = "30"  # it is not dropped
    beat, broken = stage.meeting(), {"SHUNT_BREAK": guard} if guard else {}
    stage.session.start("a", SHUNT_HOOKS=beat.seen_before_at(hook), **broken)
    stage.session.start("b", "c")
    assert stage.session.homes() == list(conftest.NODES)
    for node in conftest.NODES:
        stage.does(node, f"make('of-{node}')")  # what is decided of the directory is: names alone are asked for from now on
    beat.again()
    beat.reached()
    silent = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(silent)
    waits = stage.call("a", "[make(f'a-{number}') for number in range(30)][0]", SHUNT_DEADLINE="8")
    if guard is None:
        assert stage.call("b", "[make(f'b-{number}') for number in range(30)][0]", SHUNT_DEADLINE="8").answer() == "EIO"
        assert not waits.has_ended()
    else:
        waits.process.wait(40)
    beat.go()
    os.kill(silent, signal.SIGCONT)
    expect(guard, waits.answer() == "None")


def fresh_directory_of(stage, build, ruler):
    """One that no node has used yet, whose coordinator is on that node."""
    directories = (stage.session.root / f"fresh{number}" for number in itertools.count())
    return next(directory for directory in directories if directory.mkdir() or stage.homes_of(build, "", of=directory) == [ruler])


@pytest.mark.parametrize("hook", ["session-read", "mark-begun"])
@pytest.mark.parametrize("guard", [None, "stall-unwaited"])
def test_one_thing_that_the_file_system_holds_up_is_waited_for(stage, build, hook, guard):
    """A call that main's thread of the daemon makes, or one of its other threads, while heartbeats are not held up, as on CephFS what
    needs something that a lost node held. A daemon that hangs for another reason is not waited for."""
    session, held = stage.session, stage.meeting()
    session.settings["SHUNT_STALE"] = "30"  # nobody is dropped
    fresh = fresh_directory_of(stage, build, "a")
    session.start("a", SHUNT_HOOKS=held.seen_before_at(hook), **({"SHUNT_BREAK": guard} if guard else {}))
    session.start("b", "c")
    assert session.homes() == list(conftest.NODES)
    for node in conftest.NODES:
        stage.does(node, "os.listdir()")
    hung = session.member("b")["pid"]
    held.again()
    joins = session.begin("start", "d", stdout=subprocess.DEVNULL) if hook == "session-read" else None
    if joins is not None:
        held.reached()
    waits = stage.call("a", f"make('../{fresh.name}/n')", SHUNT_DEADLINE="3")
    held.reached()
    conftest.one_node.stand_still(hung)
    assert stage.call("b", "make('m')", SHUNT_DEADLINE="10").answer() == "EIO"
    if guard is None:
        assert not waits.has_ended()
    else:
        waits.process.wait(40)
    held.go()
    os.kill(hung, signal.SIGCONT)
    expect(guard, waits.answer() == "None")
    assert joins is None or joins.wait(60) == 0


@guarded("stall-untold")
def test_what_the_file_system_holds_up_at_another_node_is_waited_for(stage, build, guard):
    """By a call at b that waits for the daemon of a, where the file system holds up one thing; its process has waited for three
    times its deadline then. A daemon that hangs for another reason is not waited for, also right after that."""
    session, held = stage.session, stage.meeting()
    session.settings["SHUNT_STALE"] = "30"  # nobody is dropped
    fresh = fresh_directory_of(stage, build, "a")
    stage.begin(guard, hooks=[held.seen_before_at("mark-begun")])
    held.again()
    waits = stage.call("b", f"make('../{fresh.name}/n')", SHUNT_DEADLINE="3")
    held.reached()
    try:
        waits.process.wait(9)
    except subprocess.TimeoutExpired:
        pass
    held.go()
    expect(guard, waits.answer() == "None")
    hung = session.member("c")["pid"]
    conftest.one_node.stand_still(hung)
    assert stage.call("b", "[make(f'b-{number}') for number in range(30)][0]", SHUNT_DEADLINE="3").answer() == "EIO"
    os.kill(hung, signal.SIGCONT)


def test_a_node_whose_daemon_the_file_system_holds_up_is_lost_and_no_call_fails(stage, build):
    """Main's thread reads an epoch, for longer than a lease: it neither heartbeats nor is heard. The others go on without its node;
    its processes wait for as long as the file system does, and go on with the next daemon."""
    session, held = stage.session, stage.meeting()
    session.settings["SHUNT_STALE"] = LEASE
    texts = [f"text-{number}" for number in range(60)]
    names = {node: [text for text, home in zip(texts, stage.homes_of(build, *texts)) if home == node] for node in "ab"}
    session.start("a")
    session.start("b", SHUNT_HOOKS=held.seen_before_at("session-read"))
    session.start("c")
    assert session.homes() == list(conftest.NODES)
    for node in conftest.NODES:
        stage.does(node, "os.listdir()")
    assert stage.does("b", "make('there', 'there')") == "None"
    held.again()
    joins = session.begin("start", "d", stdout=subprocess.DEVNULL)
    held.reached()
    waiting = [stage.call("b", f"make('{names[home][0]}')", SHUNT_DEADLINE="3") for home in "ab"]
    others = [stage.call(node, f"make('{names['b'][number]}')") for number, node in enumerate("ac", 1)]
    dropped(stage, "b")
    assert [call.answer() for call in others] == ["None", "None"]
    waiting.append(stage.call("b", "read('there')", SHUNT_DEADLINE="3"))
    conftest.time.sleep(4)  # longer than their deadline
    assert not any(call.has_ended() for call in waiting)
    held.go()
    assert [call.answer() for call in waiting] == ["None", "None", "there"]
    assert joins.wait(60) == 0


@guarded("unfenced")
def test_a_lost_node_makes_nothing_any_more(stage, guard):
    """It had leave to make a file, and goes on when another node has made one of that name."""
    stage.begin(guard)
    reserved = stage.meeting()
    late = stage.call("c", "make('n', 'late')", reserved.at("create-reserved"))
    reserved.reached()
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    assert stage.does("a", "make('n', 'first')") == "None"
    reserved.go()
    if guard is not None:  # nobody keeps it from making one
        conftest.wait_until(lambda: len(list(stage.session.root.rglob(f".shunt/b/*/*/*/{stage.names['n']}"))) == 2, "two")
    goes_on(stage, "c", daemon)
    if guard is None:
        assert late.answer() == "EEXIST" and stage.does("b", "read('n')") == "first"
        assert len(list(stage.session.root.rglob(f".shunt/b/*/*/*/{stage.names['n']}"))) == 1


@guarded("leaf-without-a-lease")
def test_a_lost_node_makes_nothing_in_a_leaf_that_it_keeps_open(stage, guard):
    """As it is where each part of a path is asked for: by the descriptor it comes there, though the leaf is another
    branch's by now."""
    stage.begin(",".join(filter(None, ("near", guard))))
    reserved = stage.meeting()
    hook = reserved.seen_before_at("create-reserved")
    stops = f"[os.unlink('{reserved.path}.' + end) for end in ('reached', 'go')]"
    late = stage.call("c", f"[make('m'), {stops}, make('n', 'late')][2]", hook)
    conftest.wait_until(lambda: not pathlib.Path(f"{reserved.path}.go").exists(), "the first file")
    reserved.reached()
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    assert stage.does("a", "make('n', 'first')") == "None"
    copies = lambda: len(list(stage.session.root.rglob(f".shunt/b/*/*/*/{stage.names['n']}")))
    assert copies() == 1
    reserved.go()
    if guard is not None:
        conftest.wait_until(lambda: copies() == 2, "a second one")
    goes_on(stage, "c", daemon)
    if guard is None:
        assert late.answer() == "EEXIST" and stage.does("b", "read('n')") == "first"
        assert copies() == 1


@guarded("leaf-without-a-lease")
def test_what_a_lost_node_removes_from_a_leaf_that_it_keeps_open_is_gone_everywhere(stage, guard):
    stage.begin(",".join(filter(None, ("near", guard))))
    assert stage.does("c", "make('n')") == "None"
    held = stage.meeting()
    late = stage.call("c", "os.unlink('n')", held.at("remove-held"))
    held.reached()
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    assert stage.does("b", "os.listdir()") == "['n']"
    held.go()
    goes_on(stage, "c", daemon)
    assert late.answer() == "None"
    expect(guard, stage.does("b", "os.listdir()") == "[]")
    assert stage.does("a", "os.path.exists('n')") == "False"


@guarded("leaf-without-a-lease")
def test_a_lost_node_renames_nothing_in_a_leaf_that_it_keeps_open(stage, guard):
    """It is as if it had not begun, until the node is back as another one, and then it is done."""
    stage.begin(",".join(filter(None, ("near", guard))))
    assert stage.does("c", "make('n', 'text')") == "None"
    held, done = stage.meeting(), stage.meeting()
    late = stage.call("c", "os.rename('n', 'o')", held.at("rename-held"), done.at("rename-done"))
    held.reached()
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    assert stage.does("b", "os.listdir()") == "['n']"
    held.go()
    done.reached()
    expect(guard, stage.does("b", "os.listdir(), read('n')") == "(['n'], 'text')")
    done.go()
    goes_on(stage, "c", daemon)
    assert late.answer() == "None"
    if guard is None:
        assert stage.does("b", "os.listdir(), read('o')") == "(['o'], 'text')"


def test_who_is_back_before_it_is_dropped_waits_for_that(stage):
    """For longer than a supervisor starts daemons again that live briefly: eight of them, and pauses of 3 s in all. Time is
    what is tested: that one daemon does nothing else for so long."""
    fenced = stage.meeting()
    stage.begin(hooks=[fenced.at("branch-fenced")])
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    fenced.reached()
    late = stage.call("c", "make('n', 'late')")
    os.kill(daemon, signal.SIGCONT)
    log = pathlib.Path(stage.session.member("c")["run_dir"]) / "log"
    conftest.wait_until(lambda: "taken for lost" in log.read_text(), "the next daemon of c")
    conftest.time.sleep(8)
    assert not late.has_ended() and log.read_text().count("taken for lost") == 1, "it is the same daemon still"
    fenced.go()
    assert late.answer() == "None" and stage.does("a", "read('n')") == "late"


def test_who_has_not_been_spoken_to_is_not_taken_for_reached(stage, build):
    """Two of three vanish; one of them owed an answer, so that it shows earlier that it does not hear."""
    asked = stage.meeting()
    stage.begin(hooks=[asked.seen_at("request-relayed")])
    name = next(text for text in map(str, range(100)) if stage.homes_of(build, text) == ["b"])
    assert stage.does("a", "os.listdir()") == "[]"
    conftest.one_node.stand_still(stage.session.member("b")["pid"])
    asked.again()
    stage.call("a", f"os.path.exists('{name}')")
    asked.reached()
    conftest.time.sleep(1)  # c acknowledges the listing, half a second later by itself; no daemon tells what it is owed
    log = pathlib.Path(stage.session.member("a")["run_dir"]) / "log"
    for node in "bc":
        stage.session.vanish(node)
    conftest.wait_until(lambda: "less than half" in log.read_text(), "a to see that it is alone")
    assert [stage.session.member(node)["home"] for node in "abc"] == ["yes"] * 3


READER = """
import os, sys, time
names = sys.argv[1:]
print("ready", flush=True)
while os.path.exists("../go"):
    before = time.time()
    if not all(os.path.exists("out/" + name) for name in names): last = before
    time.sleep(0.002)
print(last)
"""


def read_on(stage, build, node):
    """Names that a node's daemon itself knows to be absent, and a process there which says when it last began to look and
    missed one."""
    texts = [f"file-{number}" for number in range(60)]
    names = [text for text, home in zip(texts, stage.homes_of(build, *texts)) if home == node]
    assert stage.does(node, "os.listdir()") == "[]"
    (stage.area / "go").touch()
    reader = stage.session.begin("exec", node, "--", "env", *[f"{name}={value}" for name, value in stage.broken.items()],
                                 "/usr/bin/python3", "-c", READER, *names, stdout=-1, text=True)
    assert reader.stdout.readline() == "ready\n"
    return names, reader


def made_elsewhere(stage, names):
    """When another node had made them all."""
    assert stage.does("a", f"[make(name) for name in {names}][0]") == "None"
    made = conftest.time.time()
    conftest.time.sleep(0.2)  # for the reader to miss one in, if it may; it looks every 2 ms
    return made


def last_missed(stage, reader):
    (stage.area / "go").unlink()
    return float(reader.communicate(timeout=60)[0])


@guarded("no-lease")
def test_a_node_that_stands_still_knows_nothing(stage, build, guard):
    """Its daemon says nothing for so long that it is lost, while its processes read what it knew."""
    stage.begin(guard)
    names, reader = read_on(stage, build, "c")
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    made = made_elsewhere(stage, names)
    os.kill(daemon, signal.SIGCONT)
    expect(guard, last_missed(stage, reader) < made)


@guarded("lease-unawaited")
def test_a_lease_that_was_renewed_at_the_last_moment_is_waited_for(stage, build, guard):
    """It heartbeats once more when the others have seen enough, and stands still again: it may go on for a lease."""
    lost = stage.meeting()
    stage.begin(guard, hooks=[lost.at("member-lost")])
    names, reader = read_on(stage, build, "c")
    daemon = stage.session.member("c")["pid"]
    beat, = (stage.session.root / ".shunt" / "session").glob("beat.*.3")
    conftest.one_node.stand_still(daemon)
    lost.reached()
    before = beat.stat().st_mtime_ns
    os.kill(daemon, signal.SIGCONT)
    conftest.wait_until(lambda: beat.stat().st_mtime_ns != before, "a beat")
    conftest.time.sleep(0.1)  # it looks after the beat
    conftest.one_node.stand_still(daemon)
    lost.go()
    made = made_elsewhere(stage, names)
    os.kill(daemon, signal.SIGCONT)
    expect(guard, last_missed(stage, reader) < made)


def directory_ruled_by(stage, build, ruler, next_ruler=None, members=(1, 2, 3), at_home=None):
    """One whose coordinator is on that node; in a session of those members, on another one; and whose own name is at home there."""
    stage.does("a", "[os.mkdir(f'sub-{number}') for number in range(128)][0]")
    for directory in sorted(stage.out.glob("sub-*")):
        if (stage.homes_of(build, "", of=directory) == [ruler]
                and next_ruler in (None, stage.homes_of(build, "", of=directory, members=members)[0])
                and at_home in (None, stage.homes_of(build, directory.name)[0])):
            return directory.name
    raise AssertionError("no such directory")


def uses(stage, directory, *nodes):
    for node in nodes:
        assert stage.does(node, f"make('{directory}/m'), os.unlink('{directory}/m')") == "(None, None)"


def test_a_directory_that_a_lost_node_was_about_to_remove_can_be_used(stage, build):
    """Its coordinator removes the mirrors for a node that is not there any more when that is done."""
    removed = stage.meeting()
    stage.begin(hooks=[removed.at("mirrors-removed")])
    directory = directory_ruled_by(stage, build, "a")
    uses(stage, directory, "b", "c")
    stage.call("c", f"os.rmdir('{directory}')")
    removed.reached()
    stage.session.vanish("c")
    dropped(stage, "c")
    birth = stage.call("b", f"make('{directory}/n'), os.listdir('{directory}')", SHUNT_DEADLINE="8")
    stage.waits(birth)
    removed.go()
    assert birth.answer() == "(None, ['n'])"
    assert stage.does("a", f"os.listdir('{directory}')") == "['n']"


@guarded("trunk-job-unawaited")
def test_a_directory_whose_coordinator_changes_amid_its_removal_keeps_its_files(stage, build, guard):
    """A home crashes, and its node's next daemon is the coordinator, while the one before is about to remove the marker."""
    removed = stage.meeting()
    stage.begin(guard, hooks=[removed.at("mirrors-removed")])
    directory = directory_ruled_by(stage, build, "a", "c", members=(1, 2, 4))
    uses(stage, directory, "a", "b")
    before = stage.daemons()["c"]
    removal = stage.call("b", f"os.rmdir('{directory}')")
    removed.reached()
    stage.crash("c")
    conftest.wait_until(lambda: stage.daemons().get("c", before) != before, "the next daemon of c")
    birth = stage.call("a", f"make('{directory}/n', 'text')")
    if guard is not None:  # else it is made when the marker is gone, or not at all
        birth.process.wait(40)
    removed.go()
    answers = birth.answer(), removal.answer()
    expect(guard, answers in (("None", "ENOTEMPTY"), ("ENOENT", "None")))
    if answers[1] != "None":
        stage.crash_and_come_back("b")
        assert stage.does("b", f"read('{directory}/n')") == "text"


@guarded("trunk-job-without-a-lease")
@pytest.mark.parametrize("hook, line", [("mirrors-removed", "os.rmdir('{}')"), ("marker-written", "make('{}/o')")])
def test_a_lost_coordinator_removes_no_marker(stage, build, hook, line, guard):
    """Others have made files in their mirrors by it when that node goes on."""
    held, done, ends = stage.meeting(), stage.meeting(), stage.meeting()
    stage.begin(guard, hooks=[held.seen_before_at(hook), done.seen_at("trunk-job-done"), ends.at("cut-off")])
    directory = directory_ruled_by(stage, build, "c")
    if hook == "mirrors-removed":
        uses(stage, directory, "a", "b")
    late, daemon = lost_at(stage, held, line.format(directory))
    assert stage.does("a", f"make('{directory}/n', 'text')") == "None"
    assert (stage.out / directory / ".shunt-dir").exists()
    job_goes_on(stage, "c", daemon, held, done, ends)
    late.answer()
    stage.crash_and_come_back("a")
    expect(guard, stage.does("b", f"read('{directory}/n')") == "text")


def lost_at(stage, held, line):
    """The node c is dropped while its daemon, a coordinator, meets the test in what it does for a call there: (the call, its
    daemon)."""
    held.again()
    late = stage.call("c", line)
    held.reached()
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    dropped(stage, "c")
    return late, daemon


@guarded("trunk-job-without-a-lease")
def test_a_lost_coordinator_does_not_judge_a_marker(stage, build, guard):
    """It was about to remove one that was copied natively; the others have done that since, and have made another one."""
    held, done, ends = stage.meeting(), stage.meeting(), stage.meeting()
    stage.begin(guard, hooks=[held.seen_before_at("marker-foreign"), done.seen_at("load-listed"), ends.at("cut-off")])
    assert stage.does("a", "make('o')") == "None"
    for number in range(128):
        copy = stage.out / f"copy-{number}"
        copy.mkdir()
        (copy / ".shunt-dir").write_bytes((stage.out / ".shunt-dir").read_bytes())
    copy = next(copy for copy in sorted(stage.out.glob("copy-*")) if stage.homes_of(build, "", of=copy) == ["c"]).name
    late, daemon = lost_at(stage, held, f"os.listdir('{copy}')")
    assert stage.does("a", f"make('{copy}/n', 'text')") == "None"
    job_goes_on(stage, "c", daemon, held, done, ends)
    late.answer()
    stage.crash_and_come_back("a")
    expect(guard, stage.does("b", f"read('{copy}/n')") == "text")


@guarded("trunk-job-without-a-lease")
def test_a_lost_coordinator_writes_no_marker(stage, build, guard):
    """The others have loaded the directory, and go by its having none: rmdir would be ENOTEMPTY."""
    held, written, ends = stage.meeting(), stage.meeting(), stage.meeting()
    stage.begin(guard, hooks=[held.seen_before_at("mark-begun"), written.seen_before_at("marker-written"), ends.at("cut-off")])
    directory = directory_ruled_by(stage, build, "c")
    late, daemon = lost_at(stage, held, f"make('{directory}/o')")
    written.again()
    os.killpg(late.process.pid, signal.SIGKILL)  # it would make the file by the next daemon
    assert stage.does("a", f"os.listdir('{directory}')") == "[]"
    held.go()
    os.kill(daemon, signal.SIGCONT)
    written.reached()  # or not written
    os.kill(daemon, signal.SIGKILL)
    conftest.wait_until(lambda: stage.session.member("c") is not None, "c to be back")
    expect(guard, stage.does("a", f"os.rmdir('{directory}')") == "None")


def test_a_loss_that_cannot_be_written_is_written_once_it_can(stage):
    """And the branch of a member is not fenced before. Where the session is not to be found, its file system has failed."""
    lost = stage.meeting()
    stage.begin(hooks=[lost.at("member-lost")])
    assert stage.does("c", "make('n', 'text')") == "None"
    log = pathlib.Path(stage.session.member("b")["run_dir"]) / "log"
    written = stage.session.root / ".shunt" / "session"
    stage.session.vanish("c")
    lost.reached()
    away = written.rename(written.with_name("away"))
    lost.go()
    conftest.wait_until(lambda: "the homes of names cannot be written" in log.read_text(), "b to fail")
    lost.again()
    lost.reached()  # b tries it again
    assert "removed from the session" not in log.read_text()
    away.rename(written)
    lost.go()
    dropped(stage, "c")
    assert log.read_text().count("removed from the session") == 1
    assert stage.does("a", "read('n')") == "text"


@pytest.mark.parametrize("crashes", ["a", "c"])
def test_a_watched_directory_stays_in_the_trunk_when_a_home_crashes(stage, crashes):
    """What the node makes in it whose daemon has been started again, too."""
    stage.begin()
    ends = stage.area / "ends"
    stage.call("b", f"watch(), until({str(ends)!r})")
    conftest.wait_until(pathlib.Path(f"{ends}.asked").exists, "b to watch")
    stage.crash_and_come_back(crashes)
    for node in conftest.NODES:
        assert stage.does(node, f"make('by-{node}')") == "None"
    assert sorted(os.listdir(stage.out)) == ["by-a", "by-b", "by-c"]
    ends.touch()


def test_a_directory_that_a_guest_was_about_to_remove_can_be_used(stage):
    """Its daemon, home of nothing yet, crashes, and the process is killed: nothing is read again for that."""
    held = stage.meeting()
    stage.session.start("a", SHUNT_BREAK="guests-stay")
    stage.session.start("b")
    assert stage.session.member("b")["home"] == "no"
    assert stage.does("a", "(os.mkdir('d'), make('d/f'), os.unlink('d/f'))[0]") == "None"
    removal = stage.call("b", "os.rmdir('d')", held.at("rmdir-held"))
    held.reached()
    before = stage.daemons()["b"]
    stage.crash("b")
    os.killpg(removal.process.pid, signal.SIGKILL)
    conftest.wait_until(lambda: stage.daemons().get("b", before) != before, "the next daemon of b")
    assert stage.does("a", "make('d/n', 'text')") == "None"
    assert stage.does("b", "read('d/n')") == "text"
    assert stage.does("b", "os.unlink('d/n'), os.rmdir('d')") == "(None, None)"


def directory_of_two_then_three(stage, build, *coordinators):
    """In a session of a and b, which c is to join: one whose own name is and stays on b, and whose coordinator is on these nodes."""
    if not (stage.out / "sub-0").exists():
        stage.does("a", "[os.mkdir(f'sub-{number}') for number in range(128)][0]")
    directory = next(path for path in sorted(stage.out.glob("sub-*"))
                     if {*stage.homes_of(build, path.name, members=(1, 2)), *stage.homes_of(build, path.name)} == {"b"}
                     and (*stage.homes_of(build, "", of=path, members=(1, 2)), *stage.homes_of(build, "", of=path)) == coordinators)
    uses(stage, directory.name, "a", "b")
    return directory


def take_away(stage, guard):
    """In daemons that the test starts one after the other, and in all else."""
    stage.broken = {"SHUNT_BREAK": guard} if guard else {}
    stage.session.settings.update(stage.broken)


def of_two_then_three(stage, build):
    """Such a directory, whose coordinator is and stays on b, a name in it that is at home on b and stays there, and one that is on a
    and will be on c."""
    directory = directory_of_two_then_three(stage, build, "b", "b")
    names = [f"name-{number}" for number in range(200)]
    before, after = (stage.homes_of(build, *names, of=directory, members=members) for members in ((1, 2), (1, 2, 3)))
    stays = next(name for name, *homes in zip(names, before, after) if homes == ["b", "b"])
    moves = next(name for name, *homes in zip(names, before, after) if homes == ["a", "c"])
    assert stage.does("b", "(os.mkdir('other'), os.rmdir('other'))[0]") == "None"
    return directory.name, stays, moves


@guarded("frozen-for-good")
def test_a_directory_that_is_handed_over_frozen_thaws(stage, build, guard):
    """It was not removed after all, of which its next home does not hear, or heard before it had it."""
    answered, hands_over, thawed = stage.meeting(), stage.meeting(), stage.meeting()
    take_away(stage, guard)
    stage.session.start("a", SHUNT_HOOKS=hands_over.seen_before_at("hands-over"))
    stage.session.start("b", SHUNT_HOOKS=f"{answered.seen_before_at('freeze-answered')},{thawed.seen_at('thawed')}")
    conftest.wait_until(stage.session.is_settled, "b to be a home")
    directory, stays, moves = of_two_then_three(stage, build)
    assert stage.does("b", f"make('{directory}/{stays}')") == "None"
    answered.again()
    removal = stage.call("b", f"os.rmdir('{directory}')")
    answered.reached()
    hands_over.again()
    joins = stage.session.begin("start", "c", "--placement", "branch")
    hands_over.reached()
    thawed.again()
    answered.go()
    thawed.reached()
    hands_over.go()
    assert removal.answer() == "ENOTEMPTY"
    assert joins.wait(60) == 0
    born = stage.call("b", f"make('{directory}/{moves}')", SHUNT_DEADLINE="5")
    expect(guard, born.answer() == "None")


@guarded("idle-unsaid")
def test_a_removal_that_waits_for_a_name_that_is_handed_over_goes_on(stage, build, guard):
    """Its next home says when nobody is at work on it any more."""
    held, thawed = stage.meeting(), stage.meeting()
    take_away(stage, guard)
    stage.session.start("a")
    stage.session.start("b", SHUNT_HOOKS=thawed.seen_at("thawed"))
    conftest.wait_until(stage.session.is_settled, "b to be a home")
    directory, _, moves = of_two_then_three(stage, build)
    birth = stage.call("b", f"make('{directory}/{moves}')", held.at("create-made"))
    held.reached()
    thawed.again()
    removal = stage.call("b", f"os.rmdir('{directory}')", SHUNT_DEADLINE="5")
    thawed.reached()
    stage.session.start("c")
    conftest.wait_until(stage.session.is_settled, "c to be a home")
    held.go()
    assert birth.answer() == "None"
    expect(guard, removal.answer() == "ENOTEMPTY")


@guarded("unknown-is-empty")
def test_a_removal_waits_for_a_name_that_is_on_its_way_to_its_next_home(stage, build, guard):
    """Which is asked before it has got the directory from any of its homes: they hand over late, since one stands still and the
    other is about to remove a directory whose coordinator moves."""
    held, hands_over, asked, removed, thawed = (stage.meeting() for _ in range(5))
    take_away(stage, guard)
    stage.session.start("a", SHUNT_HOOKS=hands_over.seen_before_at("hands-over"))
    stage.session.start("b", SHUNT_HOOKS=f"{removed.at('mirrors-removed')},{thawed.seen_at('thawed')}")
    conftest.wait_until(stage.session.is_settled, "b to be a home")
    directory, _, moves = of_two_then_three(stage, build)
    goes = directory_of_two_then_three(stage, build, "b", "c").name
    birth = stage.call("b", f"make('{directory}/{moves}')", held.at("create-made"))
    held.reached()
    other_removal = stage.call("b", f"os.rmdir('{goes}')")
    removed.reached()
    hands_over.again()
    stage.session.settings["SHUNT_HOOKS"] = asked.seen_at("freeze-asked")
    joins = stage.session.begin("start", "c", "--placement", "branch")
    del stage.session.settings["SHUNT_HOOKS"]
    hands_over.reached()
    removal = stage.call("b", f"os.rmdir('{directory}')")
    asked.reached()
    thawed.again()
    hands_over.go()
    thawed.reached()
    removed.go()
    assert joins.wait(60) == 0
    assert other_removal.answer() == "None"
    if guard:
        conftest.wait_until(removal.has_ended, "it to be answered")
    expect(guard, not removal.has_ended())
    held.go()
    assert birth.answer() == "None"
    assert removal.answer() == "ENOTEMPTY"


def test_mirrors_of_a_node_that_leaves_follow_their_directory(stage):
    """It has handed over what it had, and waits for a process that makes a file."""
    held = stage.meeting()
    stage.begin()
    assert stage.does("c", "make('n')") == "None"
    mirror, = stage.session.root.glob(".shunt/b/c.*/out-*")
    birth = stage.call("c", "make('o')", held.at("create-reserved"))
    held.reached()
    leaves = stage.session.begin("stop", "c")
    conftest.wait_until(lambda: stage.session.member("c")["home"] == "gone", "c to have handed over")
    assert stage.does("a", f"os.chmod({str(stage.out)!r}, 0o750)") == "None"
    modes = {oct(path.stat().st_mode & 0o7777) for path in (stage.out, mirror)}
    held.go()
    assert leaves.wait(60) == 0
    assert birth.answer() == "None"
    assert modes == {"0o750"}


def test_mirrors_of_a_node_whose_daemon_dies_follow_their_directory(stage, build):
    """It was told of the change, and died before it did anything."""
    asked = stage.meeting()
    stage.begin(hooks=[asked.seen_at("all-asked")])
    directory = stage.out / directory_ruled_by(stage, build, "a", at_home="a")
    assert stage.does("c", f"make('{directory.name}/n')") == "None"
    assert stage.does("a", f"os.listdir('{directory.name}')") == "['n']"
    daemon = stage.session.member("c")["pid"]
    conftest.one_node.stand_still(daemon)
    asked.again()
    change = stage.call("a", f"os.chmod({directory.name!r}, 0o750)")
    asked.reached()
    stage.session.status("--node", "a")  # which has told all
    os.kill(daemon, signal.SIGKILL)
    assert change.answer() == "None"
    mirror, = stage.session.root.glob(f".shunt/b/c.*/{directory.name}-*")
    assert {oct(path.stat().st_mode & 0o7777) for path in (directory, mirror)} == {"0o750"}


def delegated_then(stage, build, holder, *coordinators, members=(1, 2)):
    """A directory that nobody but that node has used, with these coordinators in a session of a and b, and once c is there, too."""
    stage.does(holder, "[os.mkdir(f'sub-{number}') for number in range(128)][0]")
    directory = next(path for path in sorted(stage.out.glob("sub-*"))
                     if (*stage.homes_of(build, "", of=path, members=members), *stage.homes_of(build, "", of=path)) == coordinators)
    assert stage.does(holder, f"os.listdir('{directory.name}')") == "[]"
    return directory.name


def test_a_directory_that_is_asked_back_as_its_coordinator_changes(stage, build):
    """The next coordinator asks for it again, and is the one to which it is returned."""
    held = stage.meeting()
    hooks = stage.blocked.seen_at("request-blocked")
    stage.session.start("a", SHUNT_HOOKS=hooks)
    stage.session.start("b", SHUNT_HOOKS=hooks)
    conftest.wait_until(stage.session.is_settled, "b to be a home")
    directory = delegated_then(stage, build, "a", "b", "c")
    birth = stage.call("a", f"make('{directory}/n', 'text')", held.at("create-made"))
    held.reached()
    listing = stage.call("b", f"os.listdir('{directory}')")
    stage.waits(listing)
    stage.session.start("c", SHUNT_HOOKS=hooks)
    conftest.wait_until(stage.session.is_settled, "c to be a home")
    assert not listing.has_ended()
    held.go()
    assert birth.answer() == "None" and listing.answer() == "['n']"
    for node in "cba":
        assert stage.does(node, f"read('{directory}/n'), os.listdir('{directory}')") == "('text', ['n'])"
    assert stage.does("c", f"os.unlink('{directory}/n'), os.rmdir('{directory}')") == "(None, None)"


def test_a_directory_that_is_asked_back_from_a_node_that_is_lost(stage, build):
    """What its process was making there is there, and is no more at work when that is said."""
    held = stage.meeting()
    stage.begin(used=False)
    directory = delegated_then(stage, build, "c", "b", "b", members=(1, 2, 3))
    assert stage.does("c", f"make('{directory}/n', 'text')") == "None"
    stage.call("c", f"make('{directory}/m', 'text')", held.at("create-made"))
    held.reached()
    listing = stage.call("a", f"sorted(os.listdir('{directory}'))")
    stage.waits(listing)
    stage.session.vanish("c")
    dropped(stage, "c")
    assert listing.answer() == "['m', 'n']"
    for node in "ba":
        assert stage.does(node, f"read('{directory}/n'), sorted(os.listdir('{directory}'))") == "('text', ['m', 'n'])"
    assert stage.does("a", f"[os.unlink('{directory}/' + name) for name in 'mn'], os.rmdir('{directory}')") == "([None, None], None)"
