# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A ring (ring.py), without nodes."""

import io
import json
import socket
import subprocess

import meeting
import ring


def test_what_is_said_before_the_holder_listens_is_not_lost():
    """A process has its turn over before the holder has taken its number."""
    out = io.BytesIO()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        members = [socket.create_connection(listener.getsockname()) for _ in range(2)]
        members[0].sendall(b"0\n" + json.dumps({"printed": b"first".hex()}).encode() + b"\n" +
                           json.dumps({"to": 1, "turn": b"now".hex()}).encode() + b"\n")
        members[1].sendall(b"1\n")
        with meeting.held(listener, 2, lambda *words: ring.hold(*words, out)):
            members[1].settimeout(20)
            assert members[1].recv(10) == b"now"
            for member in members:
                member.close()
    assert out.getvalue() == b"first"


def test_a_turn_that_is_passed_on_by_a_process_that_ends_is_not_lost(monkeypatch):
    """It has ended before the relay looks for the first time."""
    def ended(*words, begin=subprocess.Popen, **options):
        process = begin(*words, **options)
        process.wait()
        return process

    monkeypatch.setattr(ring.subprocess, "Popen", ended)
    passes = "IFS=:, read _ _ to_first _ <<END\n$1\nEND\necho last; echo turn >/dev/fd/$to_first"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = ring.Relay(*listener.getsockname(), 1, 2)
        holder, _ = listener.accept()
        assert relay.run(["sh", "-c", passes, "sh", "RING"], 1, 2) == 0
        relay.socket.close()
        said = [json.loads(line) for line in holder.makefile("rb")]
    assert said == [1, {"printed": b"last\n".hex()}, {"to": 0, "turn": b"turn\n".hex()}]
