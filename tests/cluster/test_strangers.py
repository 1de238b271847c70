# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A stranger without the key learns nothing and changes nothing, and its attempts are counted."""

import os
import pathlib
import re
import struct
import subprocess
import sys

import network_tap
import pytest
from daemons import epoch_lines

ONE_NETWORK = pytest.mark.parametrize("net", ["network"], indirect=True)
TAP = pathlib.Path(network_tap.__file__)
FRAME = b"shfr"  # how one begins (daemon/peer/FRAME.md)
# Sends what is on its input, and prints what comes back until nothing more does.
CALL = """
import socket, sys
caller = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1)
answer = b""
try:
    caller.sendall(sys.stdin.buffer.read())
    while True:
        got = caller.recv(65536)
        answer += got
        if not got:
            break
except OSError:
    pass
sys.stdout.buffer.write(answer)
"""


class Tap:
    """All that comes to a node, from the beginning of the block to its end."""

    def __init__(self, session, node, file):
        self.words = [*session.net.into(node), sys.executable, TAP, "wire0", file]
        self.file = file

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(20) == 0

    def streams(self, port):
        return network_tap.read_streams(self.file.read_bytes(), port)


def address_of(session, node):
    """As the session tells it, once the daemon has said it: a struct sockaddr_in."""
    told = re.search(rf"\nnode {node}\n(?:.*\n)*?address ([0-9a-f]+)\n", "\n".join(epoch_lines(session.root)) + "\n")
    return told and bytes.fromhex(told[1])


def port_of(session, node):
    """Where its daemon listens."""
    return struct.unpack_from("!H", address_of(session, node), 16)[0]


def call(session, node, stream):
    """What a stranger elsewhere in the network gets that says that to a node's daemon."""
    words = [*session.net.into("stranger"), sys.executable, "-c", CALL, session.net.address(node), str(port_of(session, node))]
    return subprocess.run(words, input=stream, stdout=subprocess.PIPE, timeout=60, check=True).stdout


def counter(session, name, node="a"):
    return session.status("--node", node)["counters"][name]


class Heard:
    """What the daemon that connected to the other's said to that from its first word on: either may be the first to find the other
    in the session."""

    def __init__(self, session, tap):
        streams = {node: [said for said in tap.streams(port_of(session, node)).values() if FRAME in said] for node in "ab"}
        assert any(streams.values()), f"frames and packets by ports: {network_tap.count_segments(tap.file.read_bytes(), FRAME)}"
        self.to, self.by = ("a", "b") if streams["a"] else ("b", "a")
        self.streams = streams[self.to]
        assert b"moved" in b"".join(self.streams), "frames are authenticated, not secret: else this shows nothing"


@pytest.fixture
def heard(session, tmp_path):
    """Nodes a and b at work, and what one has said to the other."""
    session.start("a")
    with Tap(session, "a", tmp_path / "packets") as tap:
        session.start("b")
        session.sh("a", "mkdir out; echo theirs >out/kept")
        for node in "ba":
            session.sh(node, "for i in $(seq 16); do echo mine >out/made; mv out/made out/moved-$i; rm out/moved-$i; done; ls out")
    return Heard(session, tap)


def assert_unharmed(session):
    assert session.sh("a", "cat out/kept; ls out") == "theirs\nkept\n"
    assert session.sh("b", "cat out/kept; echo more >out/more; ls out") == "theirs\nkept\nmore\n"
    assert session.names("a", "out") == ["kept", "more"]
    session.sh("a", "rm out/more")


@ONE_NETWORK
@pytest.mark.parametrize("noise", [b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 100000, bytes(range(256)) * 400, FRAME * 20000],
                         ids=["nothing", "http", "zeros", "bytes", "frames"])
def test_noise_changes_nothing(heard, session, noise):
    assert b"out" not in call(session, heard.to, noise)
    assert_unharmed(session)


@ONE_NETWORK
def test_what_was_heard_is_of_no_use_later(heard, session):
    """The whole conversation of a daemon that was there, said again when it is gone: every frame of it is refused."""
    session.stop(heard.by)
    before = counter(session, "frames_dropped", heard.to)
    for stream in heard.streams:
        assert FRAME not in call(session, heard.to, stream)
    assert counter(session, "frames_dropped", heard.to) > before
    session.start(heard.by)
    for stream in heard.streams:
        assert FRAME not in call(session, heard.to, stream)
    assert_unharmed(session)
    assert session.names("a", "out") == ["kept"]


@ONE_NETWORK
def test_what_was_heard_is_of_no_use_at_once(heard, session):
    """The daemon that said it is still there; to repeat it is to claim to be that one."""
    for stream in heard.streams:
        assert FRAME not in call(session, heard.to, stream)
    assert_unharmed(session)


@ONE_NETWORK
def test_a_frame_that_was_changed_is_refused(heard, session):
    session.stop(heard.by)
    before = counter(session, "frames_dropped", heard.to)
    for stream in heard.streams:
        call(session, heard.to, stream.replace(b"moved", b"kept\0"))
    assert counter(session, "frames_dropped", heard.to) > before
    session.start(heard.by)
    assert_unharmed(session)


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_daemon_with_another_key_is_not_heard(session):
    session.start("a", "b")
    session.sh("a", "mkdir out; echo theirs >out/kept")
    session.stop("b")
    key = next(session.root.glob(".shunt/session/key.*"))
    text = key.read_text()
    key.write_text(re.sub("key [0-9a-f]{64}", "key " + "5a" * 32, text))
    before = counter(session, "frames_dropped")
    unheard = session.begin("start", "b")
    session.wait_for(lambda: counter(session, "frames_dropped") > before)
    unheard.terminate()
    assert unheard.wait(60) != 0
    key.write_text(text)
    session.start("b")
    assert_unharmed(session)


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("spoil", [lambda key: key.chmod(0o640), lambda key: os.chown(key, 65534, -1),
                                   lambda key: key.rename(key.parent / "real") and key.symlink_to("real")],
                         ids=["mode", "owner", "link"])
def test_a_key_that_others_may_have_seen_or_made(session, spoil):
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give a file away")
    session.start("a", "b")
    session.stop("b")
    spoil(next(session.root.glob(".shunt/session/key.*")))
    assert session.at("start", "b").status == 1
    assert session.sh("a", "echo here >file; cat file") == "here\n"


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_node_local_files_are_the_users_alone(session, tmp_path):
    session.start("a", "b")
    session.sh("b", "echo >file")
    found = list((tmp_path / "run").rglob("*"))
    assert {path.name for path in found} >= {"channel", "index", "log"}
    assert {(path.name, oct(path.stat().st_mode & 0o7777)) for path in found
            if path.stat().st_mode & 0o7777 != (0o700 if path.is_dir() else 0o600)} == set()


@pytest.mark.parametrize("net", ["host"], indirect=True)
@pytest.mark.parametrize("spoil", [lambda place: (place.mkdir(), place.chmod(0o755)),
                                   lambda place: (place.mkdir(0o700), os.chown(place, 65534, -1)),
                                   lambda place: place.symlink_to("/tmp"), lambda place: place.write_text("")],
                         ids=["mode", "owner", "link", "file"])
def test_a_run_directory_that_another_may_have_made(session, tmp_path, spoil):
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give a directory away")
    spoil(tmp_path / "run" / f"shunt-{os.geteuid()}")
    refused = session.at("start", "a")
    assert refused.status == 1 and "SHUNT_RUN_DIR" in refused.err
    assert session.tool("status", "--root", session.root).status == 1, "nobody serves it"


@pytest.mark.parametrize("net", ["host"], indirect=True)
def test_a_channel_that_others_may_enter_is_not_used(session, tmp_path):
    session.start("a")
    next((tmp_path / "run").glob("*/*")).chmod(0o755)
    failed = session.on("a", "touch", session.root / "file")
    assert failed.status != 0
    assert not (session.root / "file").exists()
