/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <stddef.h>
#include <string.h>

#include "names/names.h"
#include "wire/page.h"

#define FORESEEN 32768 /* bytes of names, a part of which is at home here: so few that hardly one loses its place to others */

/* What the road has room for, a few times for names whose keys are alike, of which the newest comes first: of a thousand that
 * are foreseen hardly one is lost before it is looked at. Written and read by many at once, without a lock: what was not
 * written as a whole by one of them, of that name, does not have the sum. */
struct sighting {
    uint64_t key, sum;
    struct record_entry entry;
    char branch[LAYOUT_BRANCH_MAX];
    char mirror[RECORD_MIRROR_MAX];
    char foreseen; /* 1: its home has not been asked for it */
    char zero[7];
};
_Static_assert(sizeof(struct sighting) == REQUEST_SIGHTING, "it fits into the road");

static uint64_t sum_of(const struct sighting *sighting, uint64_t key)
{
    const size_t from = offsetof(struct sighting, entry);
    return record_sum((const char *)sighting + from, sizeof *sighting - from, key) | 1;
}

static uint64_t key_of(struct dirid dir, const char *name, size_t length)
{
    return record_sum(name, length, record_sum(&dir, sizeof dir, 0));
}

static bool is_seen(const struct names_root *root, uint64_t key, struct sighting *seen)
{
    const struct sighting *alike = request_sightings(root->road, key);
    for (int i = 0; i < REQUEST_ALIKE; i++)
        if (__atomic_load_n(&alike[i].key, __ATOMIC_RELAXED) == key) {
            memcpy(seen, &alike[i], sizeof *seen);
            if (seen->sum == sum_of(seen, key))
                return true;
        }
    return false;
}

bool names_recall(const struct names_root *root, struct dirid dir, const char *name, size_t length, struct view_found *found,
                  bool *foreseen)
{
    struct sighting seen;
    uint64_t key = key_of(dir, name, length);
    if (!is_seen(root, key, &seen))
        return false;
    found->entry = seen.entry;
    *foreseen = seen.foreseen != 0;
    if (seen.entry.branch != 0) {
        memcpy(found->branch, seen.branch, sizeof found->branch);
        memcpy(found->dir.mirror, seen.mirror, sizeof found->dir.mirror);
    }
    return true;
}

static void remember(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                     const struct record_entry *entry, const char *branch, const char *mirror, bool foreseen)
{
    const uint64_t key = key_of(dir, name, length);
    struct sighting seen = {.key = key, .entry = *entry, .foreseen = foreseen};
    struct sighting *alike = request_sightings(root->road, key);
    if (seen.entry.branch != 0) {
        memcpy(seen.branch, branch, strnlen(branch, sizeof seen.branch - 1));
        memcpy(seen.mirror, mirror, strnlen(mirror, sizeof seen.mirror - 1));
    }
    seen.sum = sum_of(&seen, key);
    int others = 0;
    while (others < REQUEST_ALIKE - 1 && __atomic_load_n(&alike[others].key, __ATOMIC_RELAXED) != key)
        others++;
    memmove(alike + 1, alike, (size_t)others * sizeof seen);
    *alike = seen;
}

void names_remember(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                    const struct record_entry *entry, const char *branch, const char *mirror)
{
    remember(root, dir, name, length, entry, branch, mirror, false);
}

/* The name of the branch of that word, which is mostly that of the name before. */
static bool find_branch(const struct names_root *root, uint32_t word, uint32_t *known, char branch[LAYOUT_BRANCH_MAX])
{
    if (word != *known)
        *known = view_find_branch(root->view, word, branch) == 0 ? word : 0;
    return word == *known;
}

uint64_t names_foresee(struct names_root *root, struct dirid dir, const char *mirror, uint64_t from,
                       struct request_answer *answer)
{
    const struct message list = {.type = MESSAGE_LIST, .dir[0] = dir, .child = {.ino = from, .birth = FORESEEN}};
    char branch[LAYOUT_BRANCH_MAX];
    struct page_name next;
    uint32_t known = 0;
    size_t at = 0;
    if (names_ask(root, &list, answer) != 0)
        return from;
    const struct message *page = &answer->message;
    while (page->result == 0 && page_next(page->text, page->text_length, &at, &next) == 1)
        if (next.entry.state == RECORD_LIVE &&
            (next.branch == 0 || (mirror[0] != '\0' && find_branch(root, next.branch, &known, branch))))
            remember(root, dir, next.name, next.length, &next.entry, branch, mirror, true);
    uint64_t limit = page->result == 0 ? page->child.ino : from;
    request_read(answer);
    return limit;
}
