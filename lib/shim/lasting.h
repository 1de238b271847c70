/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Memory that lasts as long as the process does: what is in use of the first thread's stack, what lies below the end of the
 * heap (brk), and the program's own image. Nearly every path of a program in C, C++ or Fortran is there, and need not be asked
 * for before it is read. Nothing is remembered of an address: stack pointer and end of the heap say each time what is there.
 *
 * A program may take away a part of it all the same. lasting_taken is told, and from then on nothing of that kind (stack, heap,
 * segment) lasts. What the library does not see of that shunt(7) says. */

#include <stddef.h>
#include <stdint.h>

#define LASTING_SEGMENTS 8

/* Set in the constructor; then each word is written to 0 alone, by any thread, relaxed: a call that begins after one that takes
 * memory away has returned is told of it by whatever told the thread to begin. A forked child goes on with its parent's. */
struct lasting_state {
    uintptr_t stack_end; /* of the first thread; 0: nothing lasts there */
    uintptr_t heap;      /* where it began, or a later place in it; 0: likewise */
    struct {
        uintptr_t from, end; /* end 0: none */
    } segments[LASTING_SEGMENTS];
};

/* In the constructor, if there are roots. */
void lasting_start(void);
/* How many bytes from there on last; 0: the kernel is to be asked. Async-signal-safe, thread-safe, no system call. */
size_t lasting_room(const void *at);
/* That much may have been taken away, or made unreadable, here or for children. `size` may be more than there is. */
void lasting_taken(const void *at, size_t size);
