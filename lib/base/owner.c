/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "base/owner.h"

#include "base/sys.h"

static pid_t owner;

pid_t owner_pid(void)
{
    pid_t pid = __atomic_load_n(&owner, __ATOMIC_RELAXED);
    return pid != 0 ? pid : sys_getpid();
}

void owner_is_me(void)
{
    __atomic_store_n(&owner, sys_getpid(), __ATOMIC_RELAXED);
}
