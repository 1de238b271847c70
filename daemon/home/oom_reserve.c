/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "home/oom_reserve.h"

#include <stdlib.h>

#define SPARE (4u << 20) /* for what a batch of requests may need, several times over */

static void *spare;

bool oom_reserve_release(void)
{
    void *given = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
    free(given);
    return given != NULL;
}

bool oom_reserve_is_there(void)
{
    if (__atomic_load_n(&spare, __ATOMIC_ACQUIRE) != NULL)
        return true;
    void *more = malloc(SPARE), *none = NULL;
    if (more != NULL && !__atomic_compare_exchange_n(&spare, &none, more, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        free(more);
    return more != NULL;
}
