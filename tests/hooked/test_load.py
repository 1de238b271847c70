# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A directory whose mirrors are listed by all daemons, and what comes between (daemon/coordinator/share.h)."""

import conftest
import pytest

ABSENT = [f"y{number}" for number in range(8)]  # nodes that are in no session any more
NAMES = 5


class Shared:
    """The stage with branches of absent nodes, so many that no daemon lists all."""

    def __init__(self, stage):
        self.stage, self.session = stage, stage.session
        self.session.start("y0")
        self.session.sh("y0", "touch out/of-y0")
        self.session.stop("y0")
        mirror, = stage.session.root.glob(".shunt/b/y0.1/out-*")
        self.leaves = [self.session.root / ".shunt" / "b" / f"{node}.1" / mirror.name / "0" for node in ABSENT]
        for node, leaf in zip(ABSENT, self.leaves):
            leaf.mkdir(parents=True, exist_ok=True)
            for number in range(NAMES):
                (leaf / f"{node}-{number}").write_text(node)

    def begin(self, hooks=None, **settings):
        """`hooks`: those of each node's daemon."""
        self.stage.broken = {key: value for key, value in settings.items() if key == "SHUNT_BREAK"}
        for node in conftest.NODES:
            of_node = ",".join([self.stage.blocked.seen_at("request-blocked"), *(hooks or {}).get(node, [])])
            self.session.start(node, **{**settings, "SHUNT_HOOKS": of_node})
        assert self.session.homes() == list(conftest.NODES)

    def on_disk(self):
        return sorted(path.name for path in self.session.root.glob(".shunt/b/*/out-*/*/*"))

    def is_seen_by(self, *nodes):
        """The names, and that there are no others, whichever node is home of them."""
        expected = self.on_disk()
        assert len(expected) >= NAMES * len(ABSENT)
        for node in nodes:
            assert self.stage.does(node, "sorted(os.listdir())") == str(expected)
            assert self.stage.does(node, f"[os.stat(name).st_nlink for name in {expected}] == [1] * {len(expected)}") == "True"
            assert self.stage.does(node, "[os.path.exists(f'y1-{i}') for i in range(100, 110)] == [False] * 10") == "True"

    def others(self):
        return [node for node in conftest.NODES if node != self.stage.ruler]


@pytest.fixture
def shared(stage):
    return Shared(stage)


def shares(shared, nodes="abc"):
    for node in nodes:
        counters = shared.session.status("--node", node)["counters"]
        assert counters["mirrors_absent"] >= 2 and counters["mirrors_others"] == 0, counters


def test_each_daemon_lists_a_share(shared):
    shared.begin()
    shared.is_seen_by(*"abc")
    shares(shared)


def test_what_changes_while_mirrors_are_listed_waits(shared):
    listed, (other, _) = shared.stage.meeting(), shared.others()
    (shared.leaves[2] / shared.stage.names["n"]).touch()
    shared.begin({other: [listed.at("share-listed")]})
    first = shared.stage.call("b", "os.stat('m')")
    listed.reached()
    removal = shared.stage.call("c", "os.unlink('n')")
    shared.stage.waits(removal)
    listed.go()
    assert (first.answer(), removal.answer()) == ("ENOENT", "None")
    shared.is_seen_by(*"abc")


@pytest.mark.parametrize("point", ["share-begun", "share-listed"])
@pytest.mark.parametrize("which", ["coordinator", "other"])
def test_a_daemon_dies_while_mirrors_are_listed(shared, point, which):
    """Its supervisor starts another one; the directory is listed again."""
    died = shared.stage.area / "died"
    dies = shared.stage.ruler if which == "coordinator" else shared.others()[0]
    asks = shared.others()[1]
    shared.begin({dies: [f"{point}:kill=1{died}"]})
    before = shared.stage.daemons()
    lister = shared.stage.call(asks, "sorted(os.listdir())")
    conftest.wait_until(lambda: (shared.stage.area / "died.reached").exists(), "it to die")
    assert lister.answer() == str(shared.on_disk())
    conftest.wait_until(lambda: shared.stage.daemons().get(dies, before[dies]) != before[dies] and shared.session.is_settled(), "it to be back")
    shared.is_seen_by(*"abc")
    assert shared.stage.does(asks, "make('y1-0')") == "EEXIST"


def test_a_node_joins_while_mirrors_are_listed(shared):
    listed, (other, asks) = shared.stage.meeting(), shared.others()
    shared.begin({other: [listed.at("share-listed")]})
    lister = shared.stage.call(asks, "sorted(os.listdir())")
    listed.reached()
    shared.session.start("d")
    asked = shared.stage.meeting()
    newcomer = shared.stage.call("d", "sorted(os.listdir())", asked.seen_at("unanswered"))
    asked.reached()  # the coordinator has it wait, or who that is changes just then
    listed.go()
    assert lister.answer() == newcomer.answer() == str(shared.on_disk())
    assert shared.session.homes() == ["a", "b", "c", "d"]
    shared.is_seen_by(*"abcd")


def test_a_node_leaves_while_mirrors_are_listed(shared):
    listed, (other, leaves) = shared.stage.meeting(), shared.others()
    shared.begin({other: [listed.at("share-listed")]})
    lister = shared.stage.call(other, "sorted(os.listdir())")
    listed.reached()
    stops = shared.session.begin("stop", leaves)
    conftest.wait_until(lambda: (shared.session.member(leaves) or {}).get("home") != "yes", "it to be about to leave")
    listed.go()
    answer = lister.answer()
    assert stops.wait(60) == 0  # its branch, if it is empty, goes before that
    assert answer == str(shared.on_disk())
    shared.is_seen_by(other, shared.stage.ruler)


@pytest.mark.parametrize("guard", [None, "twice-unseen"])
@pytest.mark.parametrize("where", ["branches", "leaves", "trunk"])
def test_one_name_in_two_places_is_settled_once(shared, guard, where):
    """By the rules that a single lister has: the file that is not empty keeps the name, whichever daemon listed it."""
    other = {"branches": shared.leaves[5], "leaves": shared.leaves[1].parent / "7", "trunk": shared.stage.out}[where]
    other.mkdir(exist_ok=True)
    (other / "y1-3").touch()
    loser = f"y1-3.shunt-conflict-{dict(branches='y5', leaves='y1', trunk='trunk')[where]}"
    shared.begin(**({"SHUNT_BREAK": guard} if guard else {}))
    seen = [shared.stage.does(node, f"read('y1-3'), os.stat('{loser}').st_size") for node in "abc"]
    if guard is not None:
        assert seen == ["ENOENT"] * 3
        return
    assert seen == ["('y1', 0)"] * 3
    assert (other / loser).exists() and not (other / "y1-3").exists()
