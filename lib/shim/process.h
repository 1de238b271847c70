/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is configured. Set by the constructor (start.c), before the program's first instruction (state.h). */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/state.h"

/* Resolves the real functions and reads the environment, once. Every wrapper calls process_has_roots first: an
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

/* A file is not in its branch. True: the root is at another path by now, or cannot be seen any more (names_root_find_again),
 * and from now on no text is known to be foreign. `room` is for the text from which a relative way is seen. */
bool process_root_has_moved(struct names_root *, const char *way, char room[PATH_MAX]);

/* Where their daemons can be reached, before that may not be seen any more. */
void process_attach_roots(void);

/* Where this process works, as the kernel tells it. False: nowhere that has a path. */
bool process_working_directory(char to[PATH_MAX]);
/* It is about to restrict its system calls (seccomp); and may it have done so? Asked and told by all instances of the library
 * in the process (wrap_namespace.c). */
void process_will_be_filtered(void);
bool process_is_filtered(void);

#define PROCESS_PAGE 4096 /* no machine has smaller ones */

/* Can what a caller points at be read? Where it cannot, the native call says EFAULT, and looking would be a SIGSEGV. The kernel
 * is asked in each call, but of memory that lasts (lasting.h): not all that takes another page away can be seen (free and the
 * end of a thread unmap within libc, a system call's instruction is not seen, another process truncates a file that is
 * mapped). `size` is at most a page. */
bool process_can_read(const void *at, size_t size);
/* The same of a path: 0: it ends where the kernel reads it, and can be read up to there; -EFAULT or -ENAMETOOLONG, which the
 * native call says of it. */
int process_check_path(const char *path);

static inline size_t process_room_in_page(const void *at)
{
    return PROCESS_PAGE - ((uintptr_t)at & (PROCESS_PAGE - 1));
}

/* Pages on which there was an absolute path outside all roots, and which is not asked for again of such a path that ends there:
 * it is to cost no system call. Of what is taken away unseen the answer is a SIGSEGV then (shunt(7)).
 *
 * `taken` counts what is taken away, after that call; it is read before the kernel is asked whether a page can be read. A call
 * that begins when one that takes memory away has returned reads the new count (seq_cst; whatever told the thread to begin
 * orders them, too). So it asks of what is there now, or finds an answer with that count in its word, which was asked for after
 * that, too; one of before is not believed, whenever it is stored. */
static inline uint32_t process_taken(void)
{
    return __atomic_load_n(&shim_state.process.taken, __ATOMIC_SEQ_CST);
}

/* What `readable` has of an address; 0: nothing is remembered of it. No address of a program has more than 56 bits. */
static inline uint64_t process_readable_word(const void *at, uint32_t taken)
{
    const uint64_t page = (uintptr_t)at & ~(uintptr_t)(PROCESS_PAGE - 1);
    return page != 0 && page >> 56 == 0 ? page << 8 | taken % PROCESS_TAKEN : 0;
}

static inline uint64_t *process_readable_place(const void *at)
{
    return &shim_state.process.readable[(uintptr_t)at / PROCESS_PAGE % PROCESS_PAGES];
}

static inline void process_remember_readable(const char *path, uint32_t taken)
{
    __atomic_store_n(process_readable_place(path), process_readable_word(path, taken), __ATOMIC_RELAXED);
}

static inline bool process_remembers_readable(const char *path)
{
    const uint64_t word = process_readable_word(path, process_taken());
    return word != 0 && __atomic_load_n(process_readable_place(path), __ATOMIC_RELAXED) == word &&
           memchr(path, '\0', process_room_in_page(path)) != NULL;
}

/* Memory may have been taken away: after such a call. A path on it is an error for all calls that begin after this.
 * Async-signal-safe, and right in a vfork child, which has the same memory. */
void process_forget_readable(void);
/* How much of it can be written, from its beginning. What is there stays. */
size_t process_writable(void *at, size_t size);
