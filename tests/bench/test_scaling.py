# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What the simulation of scaling.py says where the answer is known without it."""

import math
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import scaling  # noqa: E402

NOTHING = scaling.Costs()


def test_least_squares_find_what_the_rows_were_made_of():
    rows = [[1, 0, 2], [0, 3, 1], [2, 2, 2], [5, 1, 0]]
    values = [sum(one * cost for one, cost in zip(row, (4.0, 0.5, 7.0))) for row in rows]
    assert scaling.solve(rows, values) == pytest.approx([4.0, 0.5, 7.0])


def test_no_cost_is_negative():
    assert scaling.solve([[1, 0], [1, 1]], [5.0, 4.0]) == pytest.approx([4.5, 0.0])


def test_between_measured_points_lies_a_line_and_beyond_them_nothing_changes():
    points = [(1.0, 10.0), (3.0, 20.0)]
    assert [scaling.interpolate(points, x) for x in (0, 1, 2, 3, 9)] == [10, 10, 15, 20, 20]


def test_a_collective_takes_as_many_messages_one_after_the_other_as_that_of_the_daemons():
    """tests/cluster/test_many_nodes.py counts these."""
    counts = (2, 3, 4, 8, 16, 32, 64)
    hops = {count: scaling.Net(NOTHING, count, wire=1.0).collective(1) for count in counts}
    assert hops == {count: 2 * (count.bit_length() - 1) for count in counts}


def test_a_daemon_that_asks_nobody_costs_what_it_costs():
    costs = scaling.Costs(client=10.0, lone_client=10.0, batch=5.0, request=1.0)
    # One client and one daemon by turns: its work, and a batch with the word of the last file and the question for the next.
    assert scaling.Net(costs, 1).creates(1, 1e5)["rate"] == pytest.approx(1e6 / (10 + 5 + 2), rel=0.01)


def test_a_create_whose_home_is_another_daemon_is_two_frames():
    """A question and an answer. The word of how it ended goes with the next frame for the same daemon; each acknowledges what
    has come."""
    found = scaling.Net(scaling.Costs(client=100.0), 16).creates(1, 5e4)
    assert found["frames"] == pytest.approx(15 / 16 * 2, rel=0.01)


def test_what_nobody_waits_for_goes_out_after_half_a_second():
    """And is acknowledged as late: up to four frames for a file, where each node makes one in two seconds."""
    found = scaling.Net(scaling.Costs(client=2e6), 16).creates(1, 4e8)
    assert 15 / 16 * 3 < found["frames"] <= 15 / 16 * 4


def test_who_was_heard_meanwhile_is_waited_for_again():
    env = scaling.simpy.Environment()
    patience, over = scaling.Patience(env, 10), []

    def runs():
        patience.begin(1)
        patience.begin(2)
        yield env.timeout(6)
        patience.end(1)
        patience.begin(1)
        for _ in range(3):
            yield env.timeout(5)
            over.append(patience.over())

    env.process(runs())
    env.run()
    assert over == [[2], [1], []]


def test_no_more_than_a_window_of_frames_is_on_its_way_to_a_daemon():
    """A wire takes 100 us each way, so to either daemon not more than four frames begin their way in 200 us."""
    found = scaling.Net(scaling.Costs(client=1.0), 2, wire=100.0, node_cores=64).creates(64, 1e5)
    assert found["frames"] * found["rate"] <= 1.01 * 2 * scaling.WINDOW * 1e6 / 200


@pytest.mark.parametrize("eager, first", [(0.0, "client"), (1.0, "daemon")])
def test_a_daemon_that_is_eager_comes_before_a_client_that_waits(eager, first):
    env, order = scaling.simpy.Environment(), []
    cores = scaling.Cores(env, 1, scaling.Costs(eager=eager))

    def runs(name):
        yield from cores.take(daemon=name == "daemon")
        yield env.timeout(1)
        order.append(name)
        cores.give()

    for name in ("another", "client", "daemon"):
        env.process(runs(name))
    env.run()
    assert order[1] == first


@pytest.mark.parametrize("is_shared, expected", [(False, 10_000), (True, 2_000)])
def test_a_busy_file_system_makes_what_it_can(is_shared, expected):
    system = scaling.FileSystem("one", private_rate=10_000, penalty=5.0, latency=1000.0)
    env = scaling.simpy.Environment()
    service = scaling.Service(env, system, is_shared)
    assert scaling.natively(env, service, NOTHING, 50, 1e6) == pytest.approx(expected, rel=0.02)


def test_from_which_penalty_on_shunt_pays():
    """By the formula: a client of few waits less than natively; many of them meet what the directory takes."""
    system = scaling.FileSystem("one", private_rate=100_000, penalty=1.0, latency=1000.0)
    assert scaling.pays_from(system, native_time=1010, shunt_time=1060, clients=2) == pytest.approx(6)
    assert scaling.pays_from(system, native_time=1010, shunt_time=1060, clients=50) == pytest.approx(2.12)
    assert scaling.pays_from(system, native_time=1010, shunt_time=1060, clients=1000) == 1


def test_what_locks_cost_is_added_to_a_create():
    locked = scaling.Locked("one", private_rate=10_000, packets=5.0, requests=0.5)
    assert locked.shared_rate(wire=20.0, disk=200.0) == pytest.approx(1e6 / (100 + 100 + 100))


def test_all_of_it_runs(tmp_path):
    """And what was measured with few daemons is what the model makes of it."""
    program = pathlib.Path(scaling.__file__)
    done = subprocess.run([sys.executable, program, "--quick", "--out", tmp_path / "figures"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    picture = tmp_path / "picture.svg"
    subprocess.run([sys.executable, program.with_name("scaling_plot.py"), tmp_path / "figures", picture], check=True)
    assert "simulation" in picture.read_text()
    figures = scaling.json.loads((tmp_path / "figures").read_text())
    assert not math.isnan(figures["simulated"]["rows"][-1][-1])
    for row in figures["break even"]["rows"]:  # of the simulation, as of the formula
        assert row[4:] == pytest.approx(row[1:4], rel=0.05)
