/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/parent_guess.h"

#include <fcntl.h>

#include "shim/state.h"

#define OFTEN 4

uint64_t parent_guess_word(int at, const char *path, size_t length)
{
    return path[0] == '/' || at == AT_FDCWD ? record_hash(path, length) | 1 : 0;
}

static struct parent_guess_entry *parent_guess_find(uint64_t word)
{
    for (unsigned i = 0; i < PARENT_GUESS_ENTRIES; i++)
        if (shim_thread.parent_guess.entries[i].word == word)
            return &shim_thread.parent_guess.entries[i];
    return NULL;
}

bool parent_guess(uint64_t word, struct parent *to)
{
    const struct parent_guess_entry *one = word != 0 ? parent_guess_find(word) : NULL;
    if (one == NULL || one->times < OFTEN)
        return false;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *to = one->parent;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return one->word == word && one->times >= OFTEN;
}

static struct parent_guess_entry *parent_guess_find_room(uint64_t word)
{
    struct parent_guess_entry *one = parent_guess_find(word);
    return one != NULL ? one : &shim_thread.parent_guess.entries[shim_thread.parent_guess.next++ % PARENT_GUESS_ENTRIES];
}

static bool parent_guess_is_same(const struct parent *one, const struct parent *other)
{
    return one->root == other->root && dirid_equal(one->dir, other->dir) && one->mount == other->mount;
}

static void parent_guess_write(uint64_t word, const struct parent *parent)
{
    struct parent_guess_entry *one = parent_guess_find_room(word);
    if (one->word == word && parent_guess_is_same(&one->parent, parent)) {
        one->times += one->times < OFTEN;
        return;
    }
    one->times = 0;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    one->word = word;
    one->parent = *parent;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    one->times = 1;
}

/* A handler that interrupts a write writes nothing. */
void parent_guess_learn(uint64_t word, const struct parent *parent)
{
    if (word == 0 || shim_thread.parent_guess.writing)
        return;
    shim_thread.parent_guess.writing = true;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    parent_guess_write(word, parent);
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    shim_thread.parent_guess.writing = false;
}

void parent_guess_forget(void)
{
    for (unsigned i = 0; i < PARENT_GUESS_ENTRIES; i++)
        shim_thread.parent_guess.entries[i].times = 0;
}
