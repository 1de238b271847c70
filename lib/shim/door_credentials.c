/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process of root's that is about to become somebody else: what it needs of the daemon is mapped before,
 * since it may not open it afterwards. Its children inherit it; a program that one of them executes does not,
 * and is refused as any other user's. */

#include <sys/fsuid.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/door_credentials.h"
#include "shim/door.h"

void credentials_prepare(void)
{
    if (!process_has_roots() || SYS0(SYS_geteuid) != 0)
        return;
    for (unsigned i = 0; i < process.count; i++)
        names_is_attached(&process.roots[i]);
}

DOOR int setuid(uid_t user)
{
    credentials_prepare();
    return REAL(setuid)(user);
}

DOOR int seteuid(uid_t user)
{
    credentials_prepare();
    return REAL(seteuid)(user);
}

DOOR int setreuid(uid_t own, uid_t effective)
{
    credentials_prepare();
    return REAL(setreuid)(own, effective);
}

DOOR int setresuid(uid_t own, uid_t effective, uid_t saved)
{
    credentials_prepare();
    return REAL(setresuid)(own, effective, saved);
}

DOOR int setfsuid(uid_t user)
{
    credentials_prepare();
    return REAL(setfsuid)(user);
}
