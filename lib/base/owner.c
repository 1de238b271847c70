/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "base/owner.h"

#include "base/sys.h"

static pid_t owner;
static uint64_t owner_user; /* 1 + its id when it first said so */

pid_t owner_pid(void)
{
    pid_t pid = __atomic_load_n(&owner, __ATOMIC_RELAXED);
    return pid != 0 ? pid : sys_getpid();
}

uid_t owner_uid(void)
{
    uint64_t user = __atomic_load_n(&owner_user, __ATOMIC_RELAXED);
    return user != 0 ? (uid_t)(user - 1) : (uid_t)SYS0(SYS_geteuid);
}

void owner_is_me(void)
{
    if (__atomic_load_n(&owner_user, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&owner_user, 1 + (uint64_t)(uid_t)SYS0(SYS_geteuid), __ATOMIC_RELAXED);
    __atomic_store_n(&owner, sys_getpid(), __ATOMIC_RELAXED);
}
