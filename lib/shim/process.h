/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The shim's one process-wide state: what is configured. Written by the constructor, before the program's
 * first instruction, and read-only from then on (but for what lib/names keeps in its roots and the memory of
 * foreign directories); so it needs no lock and is right after fork, in threads and in signal handlers.
 * Nothing here is keyed by a descriptor or by the working directory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "names/names.h"

#define PROCESS_HEADS (2 * NAMES_ROOTS)
#define PROCESS_HEAD 64
#define PROCESS_FOREIGN 256
#define PROCESS_DEAD_ENDS 256
#define PROCESS_PAGES 256

/* What every call looks at comes first, in one line of memory: each more costs every call of the program some
 * ns. */
struct process {
    _Alignas(64) bool started;
    unsigned count; /* of roots; 0: the shim is out of the way */
    unsigned head_count;
    struct names_root *roots;
    /* How the texts of the roots begin, as they are and as they were given: nearly every path is told from
     * them by these. */
    char heads[PROCESS_HEADS][PROCESS_HEAD];
    struct config config;
    const char *preload;                   /* LD_PRELOAD as the program was started with it, to be carried on to its children */
    uint64_t foreign[PROCESS_FOREIGN];     /* directories that were seen not to be under a root, as one word each */
    uint64_t dead_ends[PROCESS_DEAD_ENDS]; /* paths that were seen to reach no root, likewise */
    uintptr_t readable[PROCESS_PAGES];     /* addresses of pages that could be read when a path was there */
    uint32_t names_made;                   /* counts what this process did that can make an alias of a root */
};

extern struct process process;

/* Resolves the real functions and reads the environment, once. Every wrapper calls process_ready first: an
 * allocator or an audit library can come before our constructor. */
void process_start(char *const environment[]);

static inline bool process_has_roots(void)
{
    if (__builtin_expect(!process.started, 0))
        process_start(NULL);
    if (__builtin_expect(process.count == 0, 1))
        return false;
    names_process_check(process.roots, process.count);
    return true;
}

/* Can a path's first byte (or what else a caller points at) be read? Where it cannot, the native call says
 * EFAULT, and looking would be a SIGSEGV. The kernel is asked once for a page; of one that is taken away
 * later the answer is out of date. */
bool process_ask_readable(const void *at);
static inline bool process_can_read(const void *at)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    return __builtin_expect(process.readable[page / 4096 % PROCESS_PAGES] == page && page != 0, 1) || process_ask_readable(at);
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
bool process_is_dead_end(const char *path);
bool process_is_dead_end_from(uint64_t from, const char *path);
void process_set_dead_end(uint64_t from, const char *path);
void process_made_name(void);
