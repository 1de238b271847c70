/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/scratch.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shim/state.h"

static struct scratch *scratch_map_piece(void)
{
    void *at = sys_mmap(NULL, sizeof(struct scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sys_is_error(at) ? NULL : at;
}

/* Puts a new piece, taken already, into an empty slot of the pool. */
static struct scratch *scratch_grow(unsigned slot)
{
    struct scratch *fresh = scratch_map_piece(), *none = NULL;
    if (fresh == NULL)
        return NULL;
    fresh->taken = 1;
    if (__atomic_compare_exchange_n(&shim_state.scratch[slot], &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    sys_munmap(fresh, sizeof *fresh);
    return none != NULL && __atomic_exchange_n(&none->taken, 1, __ATOMIC_ACQUIRE) == 0 ? none : scratch_grow(slot + 1);
}

struct scratch *scratch_take(void)
{
    for (unsigned i = 0; i < SCRATCH_PIECES - 64; i++) {
        struct scratch *piece = __atomic_load_n(&shim_state.scratch[i], __ATOMIC_ACQUIRE);
        if (piece == NULL)
            return scratch_grow(i);
        if (__atomic_load_n(&piece->taken, __ATOMIC_RELAXED) == 0 &&
            __atomic_exchange_n(&piece->taken, 1, __ATOMIC_ACQUIRE) == 0)
            return piece;
    }
    return NULL;
}

void scratch_give(struct scratch *piece)
{
    if (piece != NULL)
        __atomic_store_n(&piece->taken, 0, __ATOMIC_RELEASE);
}
