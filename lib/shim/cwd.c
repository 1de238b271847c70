/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/cwd.h"

#include "base/owner.h"
#include "base/sys.h"

#define CHANGE ((uint64_t)1 << 32)

/* A vfork child's would be taken for its parent's. */
static void cwd_set(uint64_t *seen, uint64_t now)
{
    if (sys_getpid() == owner_pid())
        *seen = now;
}

void cwd_set_apart(uint64_t now)
{
    cwd_set(&shim_thread.cwd.seen_apart, now);
}

void cwd_set_within(uint64_t now)
{
    cwd_set(&shim_thread.cwd.seen_within, now);
}

void cwd_change(void)
{
    __atomic_add_fetch(&shim_state.cwd.changes, 1, __ATOMIC_ACQ_REL);
}

void cwd_changed(void)
{
    __atomic_add_fetch(&shim_state.cwd.changes, CHANGE - 1, __ATOMIC_ACQ_REL);
}

void cwd_forget(void)
{
    const uint64_t changes = __atomic_load_n(&shim_state.cwd.changes, __ATOMIC_RELAXED);
    __atomic_store_n(&shim_state.cwd.changes, (changes | (CHANGE - 1)) + 1, __ATOMIC_RELEASE);
}
