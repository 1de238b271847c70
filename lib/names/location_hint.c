/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <stddef.h>
#include <string.h>

#include "names/names.h"
#include "wire/page.h"
#include "union/layout.h"

#define PREFETCHED                                                                                                             \
    32768 /* bytes of names, a part of which is at home here: so few that hardly one loses its place to others                 \
           */

/* What the channel has room for, a few times for names whose keys are alike, of which the newest comes first: of a thousand
 * that are predicted hardly one is lost before it is looked at. Written and read by many at once, without a lock: what was not
 * written as a whole by one of them, of that name, does not have the sum. */
struct location_hint {
    uint64_t key, sum;
    struct record_entry entry;
    char branch[LAYOUT_BRANCH_MAX];
    char mirror[RECORD_MIRROR_MAX];
    char prefetched; /* 1: its home has not been asked for it */
    char zero[7];
};
_Static_assert(sizeof(struct location_hint) == REQUEST_LOCATION_HINT, "it fits into the channel");

static uint64_t location_hint_sum_of(const struct location_hint *location_hint, uint64_t key)
{
    const size_t from = offsetof(struct location_hint, entry);
    return record_sum((const char *)location_hint + from, sizeof *location_hint - from, key) | 1;
}

static uint64_t location_hint_key_of(struct dirid dir, const char *name, size_t length)
{
    return record_sum(name, length, record_sum(&dir, sizeof dir, 0));
}

static bool location_hint_is_seen(const struct names_root *root, uint64_t key, struct location_hint *seen)
{
    const struct location_hint *alike = request_location_hints(root->channel, key);
    for (int i = 0; i < REQUEST_ALIKE; i++)
        if (__atomic_load_n(&alike[i].key, __ATOMIC_RELAXED) == key) {
            memcpy(seen, &alike[i], sizeof *seen);
            if (seen->sum == location_hint_sum_of(seen, key))
                return true;
        }
    return false;
}

bool names_recall(const struct names_root *root, struct dirid dir, const char *name, size_t length, struct view_found *found,
                  bool *prefetched)
{
    struct location_hint seen;
    uint64_t key = location_hint_key_of(dir, name, length);
    if (!location_hint_is_seen(root, key, &seen))
        return false;
    found->entry = seen.entry;
    *prefetched = seen.prefetched != 0;
    if (seen.entry.branch != 0) {
        memcpy(found->branch, seen.branch, sizeof found->branch);
        memcpy(found->dir.mirror, seen.mirror, sizeof found->dir.mirror);
    }
    return true;
}

static void location_hint_remember(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                                   const struct record_entry *entry, const char *branch, const char *mirror, bool prefetched)
{
    const uint64_t key = location_hint_key_of(dir, name, length);
    struct location_hint seen = {.key = key, .entry = *entry, .prefetched = prefetched};
    struct location_hint *alike = request_location_hints(root->channel, key);
    if (seen.entry.branch != 0) {
        memcpy(seen.branch, branch, strnlen(branch, sizeof seen.branch - 1));
        memcpy(seen.mirror, mirror, strnlen(mirror, sizeof seen.mirror - 1));
    }
    seen.sum = location_hint_sum_of(&seen, key);
    int others = 0;
    while (others < REQUEST_ALIKE - 1 && __atomic_load_n(&alike[others].key, __ATOMIC_RELAXED) != key)
        others++;
    memmove(alike + 1, alike, (size_t)others * sizeof seen);
    *alike = seen;
}

void names_remember(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                    const struct record_entry *entry, const char *branch, const char *mirror)
{
    request_make_location_hints(root->channel);
    location_hint_remember(root, dir, name, length, entry, branch, mirror, false);
}

/* The name of the branch of that word, which is mostly that of the name before. */
static bool location_hint_find_branch(const struct names_root *root, uint32_t word, uint32_t *known,
                                      char branch[LAYOUT_BRANCH_MAX])
{
    if (word != *known)
        *known = view_find_branch(root->view, word, branch) == 0 ? word : 0;
    return word == *known;
}

uint64_t names_bulk_lookup(struct names_root *root, struct dirid dir, const char *mirror, uint64_t from,
                           struct request_answer *answer)
{
    const struct message list = {.type = MESSAGE_LIST, .dir = dir, .list = {.from = from, .room = PREFETCHED}};
    char branch[LAYOUT_BRANCH_MAX];
    struct page_name next;
    uint32_t known = 0;
    size_t at = 0;
    if (names_ask(root, &list, answer) != 0)
        return from;
    request_make_location_hints(root->channel);
    const struct message *page = &answer->message;
    while (page->result == 0 && page_next(page->text_answer.text.text, page->text_answer.text.length, &at, &next) == 1)
        if (next.entry.state == RECORD_LIVE &&
            (next.branch == 0 || (mirror[0] != '\0' && location_hint_find_branch(root, next.branch, &known, branch))))
            location_hint_remember(root, dir, next.name, next.length, &next.entry, branch, mirror, true);
    uint64_t limit = page->result == 0 ? page->text_answer.limit : from;
    request_read(answer);
    return limit;
}
