/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/last_lookup.h"

#include <string.h>

#include "shim/fdcache.h"
#include "shim/parent_cache.h"
#include "shim/process.h"
#include "shim/state.h"
#include "shim/target.h"

#define PAGE ((uintptr_t)4096) /* at least */

static bool last_lookup_read_last(struct last_lookup_entry *to)
{
    const struct last_lookup_entry *last = &shim_thread.last_lookup.last;
    const uint64_t word = last->word;
    if (word == 0)
        return false;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *to = *last;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return to->word == word && last->word == word;
}

/* Nothing is read but what can be: a path may end just before a page that cannot. */
static bool last_lookup_is_its_path(const struct last_lookup_entry *seen, const char *path)
{
    const size_t room = PAGE - ((uintptr_t)path & (PAGE - 1));
    if (!process_can_read(path))
        return false;
    if (room <= seen->length && (strnlen(path, room) < room || !process_can_read(path + seen->length)))
        return false;
    return strnlen(path, seen->length + 1) == seen->length && record_hash(path, seen->length) == seen->word;
}

bool last_lookup_at(struct last_lookup *last_lookup, const char *path)
{
    struct last_lookup_entry seen;
    if (!last_lookup_read_last(&seen) || !process_has_roots() || !last_lookup_is_its_path(&seen, path) ||
        !parent_cache_is_now(seen.root, path, seen.stamp))
        return false;
    *last_lookup = (struct last_lookup){.root = seen.root, .leaf = seen.leaf, .name = path + seen.name};
    return fdcache_leaf_again(seen.root, seen.leaf, seen.key, &last_lookup->at);
}

bool last_lookup_holds(const struct last_lookup *last_lookup, long result)
{
    fdcache_give(last_lookup->root, last_lookup->leaf);
    return !fdcache_may_have_moved(result);
}

static void last_lookup_store(const struct target *t, int leaf)
{
    struct last_lookup_entry *last = &shim_thread.last_lookup.last;
    last->word = 0;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    last->stamp = t->stamp;
    last->root = t->root;
    last->key = fdcache_leaf_key(t->root, leaf);
    last->leaf = leaf;
    last->length = t->parent_length + t->length;
    last->name = t->parent_length;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    last->word = record_hash(t->path, last->length);
}

void last_lookup_keep(const struct target *t, int leaf)
{
    if (t->stamp == 0 || t->slash || shim_thread.last_lookup.writing)
        return;
    shim_thread.last_lookup.writing = true;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    last_lookup_store(t, leaf);
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    shim_thread.last_lookup.writing = false;
}
