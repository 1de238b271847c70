/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Programs that work in one directory look at file after file by relative paths, and to ask the kernel each time where
 * that directory is costs as much as half of what they asked for. So that it is next to all roots, so that only a path
 * with `..` leads from it to one, is remembered, or that it is a root or in one, so that only a path with `..` leads out of
 * that: by each thread for itself, since threads may have working directories of their own, until anybody here changes
 * its own, and for a moment only. What is not seen here, a system call that a program makes by itself or somebody's rename of
 * a directory into a root, is noticed a moment later.
 *
 * A vfork child shares this memory, but not its parent's working directory. It believes what its parent has seen, which
 * is right until it changes its own, and leaves nothing after that its parent would believe.
 *
 * Async-signal-safe, thread-safe. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "shim/state.h"

#define CWD_SPIN_BITS 23 /* of ns: 8 ms, some ticks of the clock that is looked at */

/* A word for now, as far as the working directory is concerned; 0 while a thread changes it. */
static inline uint64_t cwd_now(void)
{
    uint64_t changes = __atomic_load_n(&shim_state.cwd.changes, __ATOMIC_ACQUIRE);
    return (uint32_t)changes != 0 ? 0 : changes | (uint32_t)(clock_of(CLOCK_MONOTONIC_COARSE) >> CWD_SPIN_BITS);
}

/* Is it known to be next to all roots? False says nothing. */
static inline bool cwd_is_apart(void)
{
    uint64_t seen = shim_thread.cwd.seen_apart;
    return seen != 0 && seen == cwd_now();
}

/* Is it known to be a root, or in one? */
static inline bool cwd_is_within(void)
{
    uint64_t seen = shim_thread.cwd.seen_within;
    return seen != 0 && seen == cwd_now();
}

/* Of one that is next to all, and of this thread's: another word than that of any other. */
static inline uint64_t cwd_word(void)
{
    return shim_thread.cwd.seen_apart ^ (uintptr_t)&shim_thread.cwd.seen_apart;
}

/* It was seen to be there, later than `now`, which cwd_now gave. */
void cwd_set_apart(uint64_t now);
void cwd_set_within(uint64_t now);

/* Around each change of it. */
void cwd_change(void);
void cwd_changed(void);

/* In a child of fork: libc may change the directory unseen by every wrapper (daemon), and a thread that was just about to
 * change it is not here. */
void cwd_forget(void);
