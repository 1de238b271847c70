/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/last_lookup.h"

#include <string.h>

#include "shim/fdcache.h"
#include "shim/parent_cache.h"
#include "shim/process.h"

/* A handler may interrupt whoever reads or writes here: what was read counts if the word is the same behind it, and who is
 * interrupted while he writes is left alone. */
static __thread struct last {
    uint64_t word; /* of the path; 0: none */
    uint64_t moment;
    const struct names_root *root;
    uint64_t key; /* of the leaf */
    int leaf;
    uint32_t length, name; /* of the path, and where the name begins in it */
} last;
static __thread bool writing;

#define PAGE ((uintptr_t)4096) /* at least */

static bool read_last(struct last *to)
{
    const uint64_t word = last.word;
    if (word == 0)
        return false;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *to = last;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return to->word == word && last.word == word;
}

/* Nothing is read but what can be: a path may end just before a page that cannot. */
static bool is_its_path(const struct last *seen, const char *path)
{
    const size_t room = PAGE - ((uintptr_t)path & (PAGE - 1));
    if (!process_can_read(path))
        return false;
    if (room <= seen->length && (strnlen(path, room) < room || !process_can_read(path + seen->length)))
        return false;
    return strnlen(path, seen->length + 1) == seen->length && record_hash(path, seen->length) == seen->word;
}

bool glance_at(struct glance *glance, const char *path)
{
    struct last seen;
    if (!read_last(&seen) || !process_has_roots() || !is_its_path(&seen, path) || !parents_is_now(seen.root, path, seen.moment))
        return false;
    *glance = (struct glance){.root = seen.root, .leaf = seen.leaf, .name = path + seen.name};
    return near_leaf_again(seen.root, seen.leaf, seen.key, &glance->at);
}

bool glance_holds(const struct glance *glance, long result)
{
    near_give(glance->root, glance->leaf);
    return !near_may_be_elsewhere(result);
}

static void keep(const struct target *t, int leaf)
{
    last.word = 0;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    last.moment = t->moment;
    last.root = t->root;
    last.key = near_leaf_key(t->root, leaf);
    last.leaf = leaf;
    last.length = t->parent_length + t->length;
    last.name = t->parent_length;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    last.word = record_hash(t->path, last.length);
}

void glance_keep(const struct target *t, int leaf)
{
    if (t->moment == 0 || t->slash || writing)
        return;
    writing = true;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    keep(t, leaf);
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    writing = false;
}
