/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is configured, and what this process knows of paths and directories outside all roots. Set by the constructor, before
 * the program's first instruction (state.h). */

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
 * EFAULT, and looking would be a SIGSEGV. The kernel is asked once for a page; of one that is taken away
 * later the answer is out of date. */
bool process_ask_readable(const void *at);
static inline bool process_can_read(const void *at)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    return __builtin_expect(shim_state.process.readable[page / 4096 % PROCESS_PAGES] == page && page != 0, 1) ||
           process_ask_readable(at);
}

/* Was this directory seen to lie under no root? One word holds it, so a torn read cannot lie. Forgotten when
 * any directory crosses the edge of a root. */
bool process_is_foreign(uint64_t device, struct dirid);
void process_set_foreign(uint64_t device, struct dirid);

/* Programs look for files that are not there, the same ones again and again; each such ENOENT would cost
 * system calls to see whether the path reaches a root through a symbolic link from outside. So paths that did
 * not are remembered, for as long as the second lasts, and only until this process makes, moves or links a
 * name: an alias that another process makes is seen a second later at the latest. The path is
 * absolute, and `from` 0, or it is seen from the working directory of which `from` is the word (cwd.h). */
bool process_is_negative(const char *path);
bool process_is_negative_from(uint64_t from, const char *path);
void process_set_negative(uint64_t from, const char *path);
void process_made_name(void);
