# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A program for Node.js and one for Java: what their libraries offer for files, by the calls that they choose."""

from suite import HERE, Suite, script


def java(place):
    # Its own temporary files and its performance data stay out of what is compared.
    program = HERE / "FileProgram.java"
    return ["java", "-XX:-UsePerfData", f"-Djava.io.tmpdir={place.root}", f"-Dprogram={program}", program]


def suites():
    # Node.js asks io_uring in one of the two; the shim refuses it, and Node.js does without.
    return [Suite("node", script("files.mjs", program="node")),
            Suite("node-io-uring", script("files.mjs", program="node"), settings={"UV_USE_IO_URING": "1"}),
            Suite("node-as-nobody", script("files.mjs", program="node"), as_nobody=True),
            Suite("java", java),
            Suite("java-as-nobody", java, as_nobody=True)]
