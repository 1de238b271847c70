/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <stddef.h>
#include <string.h>

#include "names/names.h"

/* What the road has room for, for each of them. Written and read by many at once, without a lock: what was not written as
 * a whole by one of them, of that name, does not have the sum. */
struct sighting {
    uint64_t sum;
    struct record_entry entry;
    char branch[LAYOUT_BRANCH_MAX];
    char mirror[RECORD_MIRROR_MAX];
};
_Static_assert(sizeof(struct sighting) <= REQUEST_SIGHTING, "it fits into the road");

static uint64_t sum_of(const struct sighting *sighting, uint64_t key)
{
    const size_t from = offsetof(struct sighting, entry);
    return record_sum((const char *)sighting + from, sizeof *sighting - from, key) | 1;
}

static uint64_t key_of(struct dirid dir, const char *name, size_t length)
{
    return record_sum(name, length, record_sum(&dir, sizeof dir, 0));
}

bool names_recall(const struct names_root *root, struct dirid dir, const char *name, size_t length, struct view_found *found)
{
    struct sighting seen;
    uint64_t key = key_of(dir, name, length);
    memcpy(&seen, request_sighting(root->road, key), sizeof seen);
    if (seen.sum != sum_of(&seen, key))
        return false;
    found->entry = seen.entry;
    if (seen.entry.branch != 0) {
        memcpy(found->branch, seen.branch, sizeof found->branch);
        memcpy(found->dir.mirror, seen.mirror, sizeof found->dir.mirror);
    }
    return true;
}

void names_remember(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                    const struct view_found *found)
{
    struct sighting seen = {.entry = found->entry};
    uint64_t key = key_of(dir, name, length);
    if (seen.entry.branch != 0) {
        memcpy(seen.branch, found->branch, sizeof seen.branch);
        memcpy(seen.mirror, found->dir.mirror, sizeof seen.mirror);
    }
    seen.sum = sum_of(&seen, key);
    memcpy(request_sighting(root->road, key), &seen, sizeof seen);
}
