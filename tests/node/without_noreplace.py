# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""without_noreplace.py COMMAND...: runs it where the kernel knows no rename that replaces nothing (RENAME_NOREPLACE), as most
file systems of clusters have none: a seccomp filter answers EINVAL."""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7FFF0000
RENAMEAT2 = {"x86_64": 316, "aarch64": 276}[platform.machine()]
NUMBER, FIFTH_ARGUMENT = 0, 48  # in struct seccomp_data

FILTER = [(LOAD, 0, 0, NUMBER), (JUMP_EQUAL, 0, 3, RENAMEAT2), (LOAD, 0, 0, FIFTH_ARGUMENT), (JUMP_SET, 0, 1, 1),
          (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EINVAL), (RETURN, 0, 0, SECCOMP_RET_ALLOW)]


def main():
    instructions = b"".join(struct.pack("<HBBI", *one) for one in FILTER)
    code = ctypes.create_string_buffer(instructions, len(instructions))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(FILTER), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0:
        sys.exit(f"without_noreplace.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
