# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Names that a process takes without a question, since its daemon has granted them: at each moment at which somebody else may
come. Each is forced again with its guard taken away, and must then go wrong."""

import os

import conftest
import pytest
from test_interleavings import expect, guarded, in_a_row

# The node that takes it, the home of the name, and another one.
NODES = pytest.mark.parametrize("node", ["c", "a", "b"])


def begin(stage, guard=None, used=True):
    """What is granted stays so until it is taken, however busy the machine is."""
    stage.begin(",".join(filter(None, ["unused-kept", guard])), used=used)


def armed(held):
    """In the line of a call: from here on somebody stops there."""
    return f"[os.unlink(f'{held.path}.{{end}}') for end in ('reached', 'go')], open('{held.path}.armed', 'w').close()"


def row(stage, number, call="make"):
    """In the line of a call: the names before 'n', so that it is granted, which `granted` waits for."""
    return f"[{call}(f'name-{{i}}') for i in range({number - 7}, {number})], until('{stage.area}/granted')"


def wait_for_grant(stage):
    """Of 'n', and nothing before that: what follows in its row is granted in its order."""
    conftest.wait_until(lambda: os.path.exists(f"{stage.area}/granted.asked"), "the row to end")
    conftest.wait_until(lambda: stage.session.status("--node", "c")["counters"]["granted"] > 0, "the name to be granted")


def granted(stage, call):
    """The call, which has been granted 'n'."""
    wait_for_grant(stage)
    (stage.area / "granted").touch()
    return call


def taken(stage, held, line, hook):
    """The call of that line on c, which has taken what it was granted, and stops there or later."""
    call = granted(stage, stage.call("c", line, held.seen_before_at(hook)))
    conftest.wait_until(lambda: os.path.exists(f"{held.path}.armed"), "it to be armed")
    held.reached()
    return call


def taker(stage, number, held, *, hook="grant-taken", removes=False):
    """A process on c has taken what it was granted, and is about to make or remove 'n', or has done so."""
    call = "os.unlink" if removes else "make"
    return taken(stage, held, f"{row(stage, number, call)}, {armed(held)}, {call}('n')", hook)


def waits_for(stage, held, at_work, guard, asks, answer):
    """The call `asks` waits until the one `at_work` goes on, and has that answer; without the guard it has another one."""
    if guard is None:
        stage.waits(asks)
        held.go()
        assert (asks.answer(), at_work.answer().split()[-1]) == (answer, "None)")
    else:
        assert asks.answer() != answer
        held.go()
        at_work.answer()


@guarded("grant-kept")
@pytest.mark.parametrize("node, asking, answer", [*((node, f"{call}('n')", "EEXIST") for node in "cab" for call in ("make", "os.mkdir")),
                                                  *((node, "os.path.exists('n')", "True") for node in "cb")])
def test_who_asks_for_what_was_taken_waits(stage, build, guard, node, asking, answer):
    number = in_a_row(stage, build)
    begin(stage, guard)
    held = stage.meeting()
    maker = taker(stage, number, held)
    waits_for(stage, held, maker, guard, stage.call(node, asking), answer)


@pytest.mark.parametrize("home", ["a", "c"])
@pytest.mark.parametrize("hook, there", [("grant-taken", False), ("create-made", True)])
def test_a_listing_does_not_wait_for_who_has_taken_a_name(stage, build, home, hook, there):
    """At its home, where any name that is being made is looked for where it will be: be that another node or its taker's."""
    number = in_a_row(stage, build, home)
    begin(stage)
    held = stage.meeting()
    maker = taker(stage, number, held, hook=hook)
    assert stage.does(home, "(names := os.listdir(), 'n' in names)[1]") == str(there)
    held.go()
    maker.answer()


@NODES
@pytest.mark.parametrize("asking, answer", [("os.unlink('n')", "ENOENT"), ("os.rename('n', 'x')", "ENOENT"), ("make('n')", "None")])
def test_who_asks_for_what_is_being_removed_waits(stage, build, node, asking, answer):
    number = in_a_row(stage, build)
    begin(stage)
    # What is predicted beyond 'n' is there, too: a name that is not would end the prediction, perhaps before 'n' is granted.
    stage.does("b", f"[make(f'name-{{i}}') for i in range({number} + 1, {number} + 41)]")
    stage.does("b", f"[make(f'name-{{i}}') for i in ({number}, *range({number} - 7, {number}))]")
    held = stage.meeting()
    remover = taker(stage, number, held, removes=True)
    waits_for(stage, held, remover, None, stage.call(node, asking), answer)


@guarded("grant-unseen")
@NODES
def test_what_was_made_by_a_grant_is_there(stage, build, guard, node):
    """Though its daemon has not heard of it."""
    number = in_a_row(stage, build)
    begin(stage, guard)
    said = stage.area / "made"
    line = f"{row(stage, number)}, make('n'), open('{said}', 'w').close()"
    maker = granted(stage, stage.call("c", f"{line}, time.sleep(20)"))
    conftest.wait_until(said.exists, "it to be made")
    asks = stage.call(node, "make('n')")
    if guard is None:
        assert asks.answer() == "EEXIST"
    else:
        stage.waits(asks)
    maker.process.kill()


@guarded("times-unseen")
def test_a_directory_has_changed_when_a_name_was_made_by_a_grant(stage, build, guard):
    number = in_a_row(stage, build)
    begin(stage, guard)
    # 5 is CLOCK_REALTIME_COARSE, which file systems use.
    look = "(now := time.clock_gettime_ns(5), make('n'), os.stat('.').st_mtime_ns >= now)[2]"
    answer = granted(stage, stage.call("c", f"{row(stage, number)}, {look}")).answer()
    expect(guard, answer.endswith("True)"))


@guarded("settle-unseen")
def test_the_times_of_a_directory_are_set_after_a_name_was_made_by_a_grant(stage, build, guard):
    """Of a directory that no other node uses; and twice, since the index then has nothing to tell the trunk."""
    number = in_a_row(stage, build)
    begin(stage, guard, used=False)
    dated = "os.utime('.', (5, 5))"
    answer = granted(stage, stage.call("c", f"{row(stage, number)}, {dated}, make('n'), {dated}, os.stat('.').st_mtime")).answer()
    expect(guard, answer.endswith(" 5.0)"))


@pytest.mark.parametrize("hook, there", [("grant-taken", False), ("create-made", True)])
@pytest.mark.parametrize("node", ["c", "b"])
def test_who_dies_with_what_it_took(stage, build, hook, there, node):
    number = in_a_row(stage, build)
    begin(stage)
    held = stage.meeting()
    maker = taker(stage, number, held, hook=hook)
    maker.process.kill()
    assert stage.does(node, "os.path.exists('n')") == str(there)
    assert stage.does(node, "make('n')") == ("EEXIST" if there else "None")


@pytest.mark.parametrize("hook", ["grant-taken", "create-made"])
def test_a_daemon_that_dies_waits_for_who_has_taken_something(stage, build, hook):
    """Its successor reads the directory when that is on disk."""
    number = in_a_row(stage, build)
    begin(stage)
    held = stage.meeting()
    maker = taker(stage, number, held, hook=hook)
    stage.crash("c")
    asks = stage.call("b", "make('n')")
    held.go()
    assert maker.answer().split()[-1] == "None)"
    assert asks.answer() == "EEXIST"


def renamer(stage, number, ends):
    """The line of a process on c that has been granted the rename of 'n' to 'm', and then does what `ends` says."""
    stage.names["m"] = f"new-{number}"
    # Those beyond 'n' are there, too: a name that is not would end the prediction, perhaps before 'n' is granted. They are made in
    # no order, hence not by grants.
    stage.does("c", f"[make(f'name-{{i}}') for i in sorted(range({number} - 7, {number} + 41), key=lambda i: i * i % 97)]")
    line = f"[os.rename(f'name-{{i}}', f'new-{{i}}') for i in range({number} - 7, {number})], until('{stage.area}/granted')"
    return f"{line}, {ends}"


def rename_taker(stage, number, held, hook="grant-taken"):
    """It has taken that, and is about to rename 'n', or has done so."""
    return taken(stage, held, renamer(stage, number, f"{armed(held)}, os.rename('n', 'm')"), hook)


def assert_moved_or_not(stage, node, moved):
    """'n' is 'm' now, or what it was: one of both, on that node."""
    assert stage.does(node, "os.path.exists('n'), os.path.exists('m')") == str((not moved, moved))
    assert stage.does(node, "make('n')") == ("None" if moved else "EEXIST")
    assert stage.does(node, "make('m')") == ("EEXIST" if moved else "None")


def assert_moved_beyond_a_crash(stage, held, renaming):
    """The daemon's successor waits for the rename that is `held`."""
    stage.crash("c")
    asks = stage.call("b", "make('m')")
    held.go()
    assert renaming.answer().split()[-1] == "None)"
    assert (asks.answer(), stage.does("b", "os.path.exists('n')")) == ("EEXIST", "False")


@guarded("grant-kept")
@NODES
@pytest.mark.parametrize("asking, answer", [("make('m')", "EEXIST"), ("os.mkdir('m')", "EEXIST"), ("os.unlink('n')", "ENOENT"),
                                            ("os.rename('n', 'x')", "ENOENT")])
def test_a_call_on_either_name_of_a_rename_that_was_taken_waits(stage, build, guard, node, asking, answer):
    number = in_a_row(stage, build)
    begin(stage, guard)
    held = stage.meeting()
    renaming = rename_taker(stage, number, held)
    waits_for(stage, held, renaming, guard, stage.call(node, asking), answer)


@NODES
def test_what_was_renamed_by_a_grant_is_there(stage, build, node):
    """Though its daemon has not heard of it."""
    number = in_a_row(stage, build)
    begin(stage)
    said = stage.area / "renamed"
    ends = f"os.rename('n', 'm'), open('{said}', 'w').close(), time.sleep(20)"
    renaming = granted(stage, stage.call("c", renamer(stage, number, ends)))
    conftest.wait_until(said.exists, "it to be renamed")
    assert stage.does(node, "make('m')") == "EEXIST"
    assert stage.does(node, "os.path.exists('n'), read('m')") == "(False, '')"
    renaming.process.kill()


@pytest.mark.parametrize("hook, moved", [("grant-taken", False), ("rename-done", True)])
@pytest.mark.parametrize("node", ["c", "b"])
def test_a_process_that_is_killed_has_renamed_or_not(stage, build, hook, moved, node):
    number = in_a_row(stage, build)
    begin(stage)
    held = stage.meeting()
    rename_taker(stage, number, held, hook).process.kill()
    assert_moved_or_not(stage, node, moved)


@pytest.mark.parametrize("hook", ["grant-taken", "rename-done"])
def test_a_daemon_that_dies_waits_for_a_rename_that_was_taken(stage, build, hook):
    """Its successor reads the directory when that is on disk."""
    number = in_a_row(stage, build)
    begin(stage)
    held = stage.meeting()
    renaming = rename_taker(stage, number, held, hook)
    assert_moved_beyond_a_crash(stage, held, renaming)


def test_a_rename_of_an_older_file_is_not_taken_for_that_of_another(stage, build):
    """Which has come to its name since the rename was granted: there is but one file that a grant is about."""
    number = in_a_row(stage, build)
    begin(stage)
    line = renamer(stage, number, "os.rename('n', 'm'), read('m')")
    call = stage.call("c", line)
    wait_for_grant(stage)
    assert stage.does("b", "os.unlink('n'), make('n', 'another')") == "(None, None)"
    (stage.area / "granted").touch()
    assert call.answer().endswith("'another')")


# Checkpoints: each name is made, and then renamed; of 'n' both are granted as one.

BEFORE = 16  # which are renamed each, so that this is foreseen when 'n' is granted


def in_checkpoints(stage, build):
    """The number of 'n', which is renamed to 'm': their home is c itself, so that it grants both as soon as they are foreseen."""
    number = next(i for i in range(BEFORE, 200) if stage.homes_of(build, f"name-{i}", f"new-{i}") == ["c", "c"])
    stage.names = {"n": f"name-{number}", "m": f"new-{number}"}
    return number


def checkpointer(stage, number, ends):
    """The line of a process on c that has been granted 'n' and its rename to 'm', and then does what `ends` says."""
    each = "(make(f'name-{i}'), os.rename(f'name-{i}', f'new-{i}'))"
    return f"[{each} for i in range({number - BEFORE}, {number})], until('{stage.area}/granted'), {ends}"


def checkpoint_taker(stage, number, held, hook="grant-taken"):
    """It has made 'n', and has taken the rename that was granted with it, or has renamed it."""
    return taken(stage, held, checkpointer(stage, number, f"make('n'), {armed(held)}, os.rename('n', 'm')"), hook)


def checkpoint_made(stage, number, ends):
    """It has made 'n', which its daemon has not heard of, and goes on once the stage is `done`."""
    said = stage.area / "made"
    call = granted(stage, stage.call("c", checkpointer(stage, number, f"make('n'), open('{said}', 'w').close(), "
                                                                      f"until('{stage.area}/done'), {ends}")))
    conftest.wait_until(said.exists, "it to be made")
    return call


def requests_of(stage):
    """As its daemon has counted them; the question itself is one of them."""
    return stage.session.status("--node", "c")["counters"]["requests"]


def test_a_checkpoint_asks_nothing(stage, build):
    number = in_checkpoints(stage, build)
    begin(stage)
    line = f"until('{stage.area}/counted'), make('n'), os.rename('n', 'm'), until('{stage.area}/done')"
    call = granted(stage, stage.call("c", checkpointer(stage, number, line)))
    conftest.wait_until(lambda: os.path.exists(f"{stage.area}/counted.asked"), "the row to end")
    before = requests_of(stage)
    (stage.area / "counted").touch()
    conftest.wait_until(lambda: os.path.exists(f"{stage.area}/done.asked"), "the checkpoint")
    assert requests_of(stage) == before + 1
    (stage.area / "done").touch()
    call.answer()
    assert stage.does("b", "os.path.exists('n'), os.path.exists('m')") == "(False, True)"


@guarded("grant-kept")
@NODES
@pytest.mark.parametrize("asking", ["make('m')", "os.mkdir('m')"])
def test_a_call_on_the_new_name_of_a_checkpoint_that_is_being_renamed_waits(stage, build, guard, node, asking):
    number = in_checkpoints(stage, build)
    begin(stage, guard)
    held = stage.meeting()
    renaming = checkpoint_taker(stage, number, held)
    waits_for(stage, held, renaming, guard, stage.call(node, asking), "EEXIST")


@NODES
@pytest.mark.parametrize("asking", ["os.unlink('n')", "os.rename('n', 'x')"])
def test_a_call_on_the_first_name_of_a_checkpoint_that_is_being_renamed_waits(stage, build, node, asking):
    number = in_checkpoints(stage, build)
    begin(stage)
    held = stage.meeting()
    renaming = checkpoint_taker(stage, number, held)
    waits_for(stage, held, renaming, None, stage.call(node, asking), "ENOENT")


@NODES
@pytest.mark.parametrize("asking, answer, renamed", [("make('m', 'another')", "None", "None"), ("os.mkdir('m')", "None", "EISDIR"),
                                                     ("make('n')", "EEXIST", "None"), ("os.unlink('n')", "None", "ENOENT"),
                                                     ("os.rename('n', 'x')", "None", "ENOENT"), ("os.path.exists('m')", "False", "None"),
                                                     ("sorted(os.listdir())[:1]", None, "None")])
def test_a_call_between_create_and_rename_of_a_checkpoint(stage, build, node, asking, answer, renamed):
    """It finds what was made, waits for nothing, and the rename follows as it would have without it."""
    number = in_checkpoints(stage, build)
    begin(stage)
    call = checkpoint_made(stage, number, "os.rename('n', 'm')")
    assert answer in (stage.does(node, asking), None)
    (stage.area / "done").touch()
    assert call.answer().split()[-1] == ("None)" if renamed == "None" else renamed)
    for other in "cab":
        assert stage.does(other, "os.path.exists('m')") == str(renamed != "ENOENT")
        assert stage.does(other, "os.path.exists('n')") == str(renamed == "EISDIR")


@NODES
def test_the_new_name_of_a_checkpoint_that_is_being_made_is_free(stage, build, node):
    number = in_checkpoints(stage, build)
    begin(stage)
    held = stage.meeting()
    maker = taken(stage, held, checkpointer(stage, number, f"{armed(held)}, make('n'), os.rename('n', 'm'), read('m')"), "grant-taken")
    assert stage.does(node, "make('m', 'another')") == "None"
    held.go()
    assert maker.answer().endswith("'')"), "it was replaced"
    assert stage.does("b", "os.path.exists('n'), read('m')") == "(False, '')"


@pytest.mark.parametrize("hook, moved", [("grant-taken", False), ("rename-done", True)])
@pytest.mark.parametrize("node", ["c", "b"])
def test_a_process_that_is_killed_in_a_checkpoint_has_renamed_or_not(stage, build, hook, moved, node):
    number = in_checkpoints(stage, build)
    begin(stage)
    held = stage.meeting()
    checkpoint_taker(stage, number, held, hook).process.kill()
    assert_moved_or_not(stage, node, moved)


def test_a_process_that_is_killed_between_create_and_rename_has_made_it(stage, build):
    number = in_checkpoints(stage, build)
    begin(stage)
    checkpoint_made(stage, number, "None").process.kill()
    assert stage.does("b", "os.path.exists('n'), os.path.exists('m')") == "(True, False)"
    assert stage.does("a", "make('m'), os.unlink('n')") == "(None, None)"


@pytest.mark.parametrize("hook", ["grant-taken", "rename-done"])
def test_a_daemon_that_dies_waits_for_a_checkpoint_that_is_being_renamed(stage, build, hook):
    number = in_checkpoints(stage, build)
    begin(stage)
    held = stage.meeting()
    renaming = checkpoint_taker(stage, number, held, hook)
    assert_moved_beyond_a_crash(stage, held, renaming)


def test_a_daemon_that_dies_between_create_and_rename(stage, build):
    """What it granted is over: the rename asks its successor."""
    number = in_checkpoints(stage, build)
    begin(stage)
    call = checkpoint_made(stage, number, "os.rename('n', 'm')")
    stage.crash("c")
    assert stage.does("b", "os.path.exists('n')") == "True"
    (stage.area / "done").touch()
    assert call.answer().endswith("None)")
    assert stage.does("b", "os.path.exists('n'), os.path.exists('m')") == "(False, True)"
