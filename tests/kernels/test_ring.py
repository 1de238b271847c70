# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The holder of a ring (ring.py), without nodes."""

import io
import json
import socket

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
