/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/sort.h"

#include <stdlib.h>
#include <string.h>

#define SORT_RUN 16 /* names that a run has on average, else merging is no quicker than qsort */

static int sort_compare(const void *a, const void *b)
{
    const struct union_name *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    if (order != 0)
        return order;
    if (one->branch != other->branch)
        return one->branch < other->branch ? -1 : 1;
    return one->leaf < other->leaf ? -1 : one->leaf > other->leaf;
}

/* Notes where runs begin, and where the last one ends. How many there are; `most` + 1: more. */
static size_t sort_find_runs(const struct union_name *names, size_t count, size_t *runs, size_t most)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && sort_compare(&names[i - 1], &names[i]) <= 0)
            continue;
        if (found == most)
            return most + 1;
        runs[found++] = i;
    }
    runs[found] = count;
    return found;
}

/* Merges from[begin..middle) and from[middle..end) to the same place of `to`. */
static void sort_merge(const struct union_name *from, size_t begin, size_t middle, size_t end, struct union_name *to)
{
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++)
        to[i] = right == end || (left < middle && sort_compare(&from[left], &from[right]) <= 0) ? from[left++] : from[right++];
}

/* Each run with the next one. How many are left. */
static size_t sort_merge_all(const struct union_name *from, size_t *runs, size_t count, struct union_name *to)
{
    const size_t end = runs[count];
    size_t merged = 0;
    for (size_t i = 0; i < count; i += 2) {
        const bool is_pair = i + 1 < count;
        const size_t begin = runs[i], after = is_pair ? runs[i + 2] : end;
        sort_merge(from, begin, is_pair ? runs[i + 1] : end, after, to);
        runs[merged++] = begin;
    }
    runs[merged] = end;
    return merged;
}

/* False: they are not merged, for want of memory or since they are in no order. */
static bool sort_by_merging(struct union_name *names, size_t count)
{
    const size_t most = count / SORT_RUN + 1;
    size_t *runs = malloc((most + 1) * sizeof *runs);
    size_t left = runs != NULL ? sort_find_runs(names, count, runs, most) : most + 1;
    struct union_name *room = left > 1 && left <= most ? malloc(count * sizeof *room) : NULL;
    struct union_name *from = names, *to = room;
    bool is_done = left == 1;
    while (room != NULL && left > 1) {
        left = sort_merge_all(from, runs, left, to);
        struct union_name *other = from;
        from = to;
        to = other;
        is_done = left == 1;
    }
    if (room != NULL && from != names)
        memcpy(names, from, count * sizeof *names);
    free(room);
    free(runs);
    return is_done;
}

void sort_names(struct union_name *names, size_t count)
{
    if (count > 1 && !sort_by_merging(names, count))
        qsort(names, count, sizeof *names, sort_compare);
}
