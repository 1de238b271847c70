/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which directory the words before a name will lead to, guessed, so that the daemon can be asked for a name that is to be made
 * (TARGET_LATER) while the kernel is asked where the words do lead (target_hold). Nothing is done or answered that the kernel
 * has not said since: the statx of `parent/.` that every other call begins with is made before the answer is looked at, and
 * what the daemon said about another directory is dropped (TARGET_ASTRAY). So nothing has to invalidate a guess. Whatever other
 * processes, threads, working directories, identities and mounts do to the words, a wrong one costs one question.
 *
 * Each thread guesses for itself, what it has been told a few times in a row. Async-signal-safe, thread-safe; a vfork child
 * may guess by what its parent knows, and its parent by what it knows. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names/names.h"

struct parent {
    struct names_root *root;
    struct dirid dir;
    uint64_t mount;
};

#define PARENT_GUESS_ENTRIES 3 /* the loader has memory of threads for few namespaces (wrap_namespace.c) */

struct parent_guess_entry {
    uint64_t word; /* 0: none */
    struct parent parent;
    uint32_t times; /* in a row */
};

struct parent_guess_thread {
    struct parent_guess_entry entries[PARENT_GUESS_ENTRIES];
    bool writing;
    unsigned next; /* to be replaced */
};

/* For the words of a parent, the slash at their end included, as they are; 0: nothing is guessed of them. */
uint64_t parent_guess_word(int at, const char *path, size_t length);
bool parent_guess(uint64_t word, struct parent *);
/* The kernel has said so. */
void parent_guess_learn(uint64_t word, const struct parent *);
/* One of them was wrong. */
void parent_guess_forget(void);
