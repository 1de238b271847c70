/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What is the kernel's own under shunt, too, so that its own answer is right: an open directory and the
 * working directory are directories of the trunk, and no descriptor in the application is shunt's
 * (lib/index/view.h), so none is to be stepped around. These doors are there to be complete: whoever looks at
 * the calls of a program here sees all that change descriptors and the working directory.
 *
 * They hand on and look at nothing else: close and dup2 are called before any constructor has run, in vfork
 * children and in signal handlers. */

#include <unistd.h>

#include "shim/real.h"

#define DOOR_NATIVE(RESULT, NAME, DECLARED, GIVEN)                                                           \
    RESULT NAME DECLARED;                                                                                    \
    __attribute__((visibility("default"))) RESULT NAME DECLARED                                              \
    {                                                                                                        \
        return REAL(NAME) GIVEN;                                                                             \
    }

DOOR_NATIVE(int, close, (int fd), (fd))
DOOR_NATIVE(int, __close, (int fd), (fd))
DOOR_NATIVE(int, dup2, (int fd, int to), (fd, to))
DOOR_NATIVE(int, __dup2, (int fd, int to), (fd, to))
DOOR_NATIVE(int, dup3, (int fd, int to, int flags), (fd, to, flags))
DOOR_NATIVE(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags))
DOOR_NATIVE(void, closefrom, (int first), (first))

DOOR_NATIVE(char *, getcwd, (char *to, size_t size), (to, size))
DOOR_NATIVE(char *, __getcwd_chk, (char *to, size_t size, size_t room), (to, size, room))
DOOR_NATIVE(char *, getwd, (char *to), (to))
DOOR_NATIVE(char *, __getwd_chk, (char *to, size_t room), (to, room))
DOOR_NATIVE(char *, get_current_dir_name, (void), ())
