/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <linux/stat.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "names/names.h"

/* How long a directory has to have had its times before its names are read, so that no later change gives it the same ones:
 * more than any file system's clock stands still that counts less than seconds. */
#define TRUNK_TIMES_STAND (50 * CLOCK_MILLISECOND)

/* Written and read by many at once, without a lock: what was not written as a whole by one of them does not have the sum. */
struct trunk_times {
    uint64_t key, times;
    uint64_t since; /* clock_files, when they were first seen; 0: its names were read since they had stood */
    uint64_t sum;
};
_Static_assert(sizeof(struct trunk_times) == REQUEST_TRUNK_TIMES, "it fits into the channel");

static uint64_t trunk_times_sum_of(const struct trunk_times *times)
{
    return record_sum(times, offsetof(struct trunk_times, sum), 0) | 1;
}

static uint64_t trunk_times_key_of(struct dirid dir)
{
    return record_sum(&dir, sizeof dir, 1);
}

/* UINT64_MAX: nothing is known. */
static uint64_t trunk_times_since(const struct names_root *root, struct dirid dir, uint64_t times)
{
    struct trunk_times seen;
    const uint64_t key = trunk_times_key_of(dir);
    memcpy(&seen, request_trunk_times(root->channel, key), sizeof seen);
    return times != 0 && seen.key == key && seen.times == times && seen.sum == trunk_times_sum_of(&seen) ? seen.since
                                                                                                         : UINT64_MAX;
}

uint64_t names_trunk_times(const struct statx *stat)
{
    const struct statx_timestamp both[2] = {stat->stx_mtime, stat->stx_ctime};
    return stat->stx_ctime.tv_nsec != 0 ? record_sum(both, sizeof both, 0) | 1 : 0;
}

bool names_trunk_is_read(const struct names_root *root, struct dirid dir, uint64_t times)
{
    return trunk_times_since(root, dir, times) == 0;
}

bool names_trunk_has_stood(const struct names_root *root, struct dirid dir, uint64_t times, uint64_t now)
{
    const uint64_t since = trunk_times_since(root, dir, times);
    return since <= now && now - since >= TRUNK_TIMES_STAND;
}

static void trunk_times_note(const struct names_root *root, struct dirid dir, uint64_t times, uint64_t since)
{
    const uint64_t key = trunk_times_key_of(dir);
    struct trunk_times seen = {.key = key, .times = times, .since = since};
    seen.sum = trunk_times_sum_of(&seen);
    memcpy(request_trunk_times(root->channel, key), &seen, sizeof seen);
}

void names_trunk_was_seen(const struct names_root *root, struct dirid dir, uint64_t times)
{
    if (times != 0 && trunk_times_since(root, dir, times) == UINT64_MAX)
        trunk_times_note(root, dir, times, clock_files());
}

void names_trunk_was_read(const struct names_root *root, struct dirid dir, uint64_t times)
{
    trunk_times_note(root, dir, times, 0);
}
