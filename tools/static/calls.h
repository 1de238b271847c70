/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The system calls that are looked at: those that name a path, or ask a directory through its descriptor. A table: each is
 * answered by the call `as` with the arguments that `arguments` spells, one letter for each argument of `as`, or of the
 * caller's where it says so:
 *
 *     @        AT_FDCWD; the caller gave none
 *     d        a directory's descriptor
 *     p        the path seen from it
 *     P        a path for a call that takes no directory
 *     f        a descriptor, which concerns us if a directory of a root is open there
 *     F        a descriptor of whatever it is
 *     k        the address of a socket, the number of its bytes follows: the path in it, or none
 *     i        a number
 *     a        flags with AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH
 *     x w      flags of open; a mask of inotify's
 *     u m v    flags of umount2, move_mount and fspick
 *     Q        the path of a quota file, if quota is switched on
 *     0 N R C  a constant that the caller gave by the call's name (0, AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, those of creat)
 *     s        a text that is handed in
 *     t        `in` bytes that are handed in; may be NULL
 *     b        bytes that are handed in, their number follows
 *     o        `out` bytes that come back
 *     O        bytes that come back, of which the result is the number; the room for them follows
 */

#include <stdbool.h>
#include <stddef.h>

#define CALLS_ARGUMENTS 6

enum calls_kind {
    CALLS_PLAIN = 0,
    CALLS_OPEN,     /* gives a descriptor */
    CALLS_OPEN_HOW, /* openat2 */
    CALLS_CHDIR,    /* is looked at, and done by the kernel */
    CALLS_TRUNK,    /* the kernel does it, with a file that is moved to the trunk first */
    CALLS_EXEC,     /* so, too */
    CALLS_BIND,     /* makes a socket's name */
    CALLS_RIGHTS,   /* may change the caller's user, groups, capabilities, root or mount namespace */
    CALLS_REFUSED,  /* ENOSYS, unless the library is in the caller and answers for it */
    CALLS_CONTROL,
};

enum {
    CALLS_FOLLOWS = 1,
    CALLS_MAKES = 2,
    CALLS_ADMIN = 4, /* the kernel asks for a capability before it looks at the path */
};

struct calls_entry {
    int number, as;
    char arguments[CALLS_ARGUMENTS + 2];
    unsigned char kind, how;
    unsigned short in, out;
};

extern const struct calls_entry calls_table[];
extern const size_t calls_count;

/* NULL: not in the table. */
const struct calls_entry *calls_find(int number);

/* prctl with this option and the roots as the second argument: 0 where this helper serves a caller these roots, else EINVAL,
 * as the kernel says. */
#define CALLS_ASK 0x53485354
