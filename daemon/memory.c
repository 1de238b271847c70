/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What shuntd calls instead of malloc and its kin (the linker's --wrap). When there is no memory
 * under a limit of the process, a small piece is taken from a reserve, so that what is under way need
 * not stop half way. Large pieces, as for the listing of a directory, are asked for by code that can do without. */

#include <stdlib.h>

#include "home/oom_reserve.h"

#define SMALL (512u << 10)

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    void *memory = __real_malloc(size);
    return memory != NULL || size > SMALL || !oom_reserve_release() ? memory : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *memory = __real_calloc(count, size);
    return memory != NULL || count > SMALL / size || !oom_reserve_release() ? memory : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    void *memory = __real_realloc(old, size);
    return memory != NULL || size > SMALL || !oom_reserve_release() ? memory : __real_realloc(old, size);
}
