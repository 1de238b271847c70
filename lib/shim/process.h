/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is configured. Set by the constructor, before the program's first instruction (state.h). */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/state.h"

/* Resolves the real functions and reads the environment, once. Every wrapper calls process_ready first: an
 * allocator or an audit library can come before our constructor. */
void process_start(char *const environment[]);

static inline bool process_has_roots(void)
{
    if (__builtin_expect(!shim_state.process.started, 0))
        process_start(NULL);
    if (__builtin_expect(shim_state.process.count == 0, 1))
        return false;
    names_process_check(shim_state.roots, shim_state.process.count);
    return true;
}

/* A file is not in its branch. True: the root is at another path by now, or cannot be seen any more (names_root_has_moved), and
 * from now on no text is known to be foreign. */
bool process_root_has_moved(struct names_root *, const char *way);

/* Where this process works, as the kernel tells it. False: nowhere that has a path. */
bool process_working_directory(char to[PATH_MAX]);
/* It is about to restrict its system calls (seccomp). */
void process_will_be_filtered(void);

/* Can what a caller points at be read? Where it cannot, the native call says EFAULT, and looking would be a SIGSEGV. The kernel
 * is asked in each call: nothing would say when a page that could be read is taken away (free and the end of a thread unmap
 * within libc, a system call's instruction is anybody's, another process truncates a file that is mapped). `size` is at most
 * a page. */
bool process_can_read(const void *at, size_t size);
/* The same of a path: 0: it ends where the kernel reads it, and can be read up to there; -EFAULT or -ENAMETOOLONG, which the
 * native call says of it. */
int process_check_path(const char *path);
/* How much of it can be written, from its beginning. What is there stays. */
size_t process_writable(void *at, size_t size);
