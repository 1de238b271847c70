/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What is the kernel's own under shunt, too, so that its own answer is right: an open directory and the
 * working directory are directories of the trunk, and of the few descriptors in the application that are shunt's (fdcache.h)
 * none is to be stepped around. These wrappers are there to be complete: a reader of the calls of a program here sees all
 * that change descriptors and the working directory.
 *
 * They hand on and look at nothing else: close and dup2 are called before any constructor has run, in vfork children and in
 * signal handlers. */

#include <unistd.h>

#include "shim/real.h"

#define WRAPPER_NATIVE(RESULT, NAME, DECLARED, GIVEN)                                                                          \
    RESULT NAME DECLARED;                                                                                                      \
    __attribute__((visibility("default"))) RESULT NAME DECLARED                                                                \
    {                                                                                                                          \
        return REAL(NAME) GIVEN;                                                                                               \
    }

WRAPPER_NATIVE(int, close, (int fd), (fd))
WRAPPER_NATIVE(int, __close, (int fd), (fd))
WRAPPER_NATIVE(int, dup2, (int fd, int to), (fd, to))
WRAPPER_NATIVE(int, __dup2, (int fd, int to), (fd, to))
WRAPPER_NATIVE(int, dup3, (int fd, int to, int flags), (fd, to, flags))
WRAPPER_NATIVE(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags))

void closefrom(int first); /* not in the headers of glibc 2.31 */
__attribute__((visibility("default"))) void closefrom(int first)
{
    REAL(closefrom)(first);
}

WRAPPER_NATIVE(int, fchdir, (int fd), (fd))
WRAPPER_NATIVE(char *, getcwd, (char *to, size_t size), (to, size))
WRAPPER_NATIVE(char *, __getcwd_chk, (char *to, size_t size, size_t room), (to, size, room))
WRAPPER_NATIVE(char *, getwd, (char *to), (to))
WRAPPER_NATIVE(char *, __getwd_chk, (char *to, size_t room), (to, room))
WRAPPER_NATIVE(char *, get_current_dir_name, (void), ())
