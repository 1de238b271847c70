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

/* Can a path's first byte (or what else a caller points at) be read? Where it cannot, the native call says
 * EFAULT, and looking would be a SIGSEGV. The kernel is asked once for a page, since to ask for each path would be a system
 * call for each call of the program. Nothing invalidates that, and it decides no answer: of a page that the program has
 * unmapped or protected since, and hands on as a path, the answer is a SIGSEGV in this library where the kernel's is EFAULT
 * (shunt(7)). */
bool process_ask_readable(const void *at);
static inline bool process_can_read(const void *at)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    return __builtin_expect(shim_state.process.readable[page / 4096 % PROCESS_PAGES] == page && page != 0, 1) ||
           process_ask_readable(at);
}
