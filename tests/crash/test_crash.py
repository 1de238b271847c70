# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Kills at random points, few of each kind (full.sh has the many), and proof that the oracle sees what is wrong."""

import dataclasses

import ground
import pytest
import rounds
from oracle import Failed

SEED = 1


def run(mode, place, kills):
    """Says its counts as a figure."""
    made = rounds.MODES[mode](place, SEED)
    made.run(kills)
    print(f"{mode}, {len(place.nodes)} nodes: {made.figures}")
    assert made.figures.kills >= kills and made.figures.operations > kills


def test_the_oracle_holds_for_a_plain_directory(plain):
    run("clients", plain, 20)


@pytest.mark.parametrize("nodes, placement", [(1, "auto"), (3, "branch")])
@pytest.mark.parametrize("mode, kills", [("clients", 30), ("everything", 4)])
def test_nothing_is_lost(served, mode, kills, nodes, placement):
    run(mode, served(nodes, placement=placement, SHUNT_LEAF_FULL="20"), kills)


@pytest.mark.parametrize("mode, kills", [("clients", 10), ("everything", 1), ("node", 2)])
def test_nothing_is_lost_while_files_leave(served, mode, kills):
    place = served(3, made=ground.Emptied, SHUNT_LEAF_FULL="20")
    run(mode, place, kills)
    assert place.moved().stat().st_size > kills


def test_nothing_is_lost_with_a_daemon(served):
    run("shuntd", served(1), 10)


def test_nothing_is_lost_with_a_node(served):
    run("node", served(3), 6)


@pytest.mark.parametrize("mode", ["vanished", "silent"])
def test_nothing_is_lost_with_a_node_that_is_away_for_long(served, mode):
    run(mode, served(3), 1)


def test_nothing_is_lost_on_cephfs(served_on_cephfs):
    """All on one, which takes longer to start than the kills do."""
    place = served_on_cephfs(3)
    for mode, kills in {"clients": 10, "shuntd": 5, "node": 2, "everything": 1}.items():
        run(mode, place, kills)


# What may go wrong, done to a listing.


def without_one(listed, number):
    files = [path for path, entry in listed if entry.kind == "f"]
    return [one for one in listed if one[0] != files[number % len(files)]]


def twice(listed, number):
    return [*listed, listed[number % len(listed)]]


def changed(listed, number, **values):
    files = [i for i, (_, entry) in enumerate(listed) if entry.kind == "f"]
    at = files[number % len(files)]
    path, entry = listed[at]
    return [*listed[:at], (path, dataclasses.replace(entry, **values)), *listed[at + 1:]]


FAULTS = {
    "a file is gone": without_one,
    "a name is there twice": twice,
    "a file is cut off": lambda listed, number: changed(listed, number, size=0, token=0),
    "a file holds something else": lambda listed, number: changed(listed, number, is_good=False),
    "an old file is back": lambda listed, number: changed(listed, number, token=(1 << 32) | 1),
    "a link is lost": lambda listed, number: changed(listed, number, links=7),
    "a name that nobody made": lambda listed, number: [*listed, ("p/x", listed[0][1])],
    "a contest that nobody entered": lambda listed, number: [*listed, ("p/x9999", listed[0][1])],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_oracle_sees(plain, fault):
    """Of a directory in which all are done, nothing may be otherwise, wherever that is."""
    round_ = rounds.Round(plain, rounds.Figures(), SEED, 0)
    for _ in range(3):
        round_.begin(operations=300)
    assert [process.wait() for _, process in round_.workers.values()] == [0] * 3
    oracle = round_.oracle()
    listed = plain.look("-", round_.top)
    assert oracle.complaints(listed) == []
    for number in range(len(listed)):
        if FAULTS[fault](listed, number) != listed:
            assert oracle.complaints(FAULTS[fault](listed, number)), (fault, listed[number])


def test_a_file_that_is_taken_away_is_missed(served):
    place = served(1)
    mode = rounds.Clients(place, SEED)
    place.start()
    mode.one_round()
    files = [path for path in place.root.glob(".shunt/b/*/*/*/[wx]*") if path.is_file()]
    files[0].unlink()
    with pytest.raises(Failed):
        mode.begin_anew()
