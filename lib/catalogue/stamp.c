/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/stamp.h"

#include <linux/stat.h>

#define STAMP_SECOND 1000000000
#define STAMP_OLD (3600ull * STAMP_SECOND)

/* False where it does not fit. */
static bool stamp_time(const struct statx_timestamp *time, int64_t *ns)
{
    if (time->tv_nsec >= STAMP_SECOND || __builtin_mul_overflow((int64_t)time->tv_sec, (int64_t)STAMP_SECOND, ns))
        return false;
    return !__builtin_add_overflow(*ns, (int64_t)time->tv_nsec, ns);
}

bool catalogue_stamp_of(const struct statx *stat, struct catalogue_stamp *stamp)
{
    const uint32_t needed = STATX_INO | STATX_MTIME | STATX_CTIME;
    /* By chance that is one of 1,000,000,000 times where they are finer: it costs one listing. */
    if ((stat->stx_mask & needed) != needed || stat->stx_ctime.tv_nsec == 0)
        return false;
    stamp->id = dirid_of(stat);
    return stamp_time(&stat->stx_mtime, &stamp->mtime) && stamp_time(&stat->stx_ctime, &stamp->ctime);
}

bool catalogue_stamp_equal(const struct catalogue_stamp *a, const struct catalogue_stamp *b)
{
    return dirid_equal(a->id, b->id) && a->mtime == b->mtime && a->ctime == b->ctime;
}

static uint64_t stamp_distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

bool catalogue_stamp_is_old(const struct catalogue_stamp *stamp, int64_t now)
{
    return stamp_distance(now, stamp->ctime) >= STAMP_OLD && stamp_distance(now, stamp->mtime) >= STAMP_OLD;
}
