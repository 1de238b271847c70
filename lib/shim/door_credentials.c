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
#include "shim/parents.h"

void credentials_prepare(void)
{
    if (!process_has_roots() || SYS0(SYS_geteuid) != 0)
        return;
    for (unsigned i = 0; i < process.count; i++)
        names_is_attached(&process.roots[i]);
}

/* Whoever one was before, he was let through other directories. */
#define BECOME(CALL)                                                                                         \
    ({                                                                                                       \
        credentials_prepare();                                                                               \
        int result_ = (CALL);                                                                                \
        parents_forget();                                                                                   \
        result_;                                                                                             \
    })

DOOR int setuid(uid_t user)
{
    return BECOME(REAL(setuid)(user));
}

DOOR int seteuid(uid_t user)
{
    return BECOME(REAL(seteuid)(user));
}

DOOR int setreuid(uid_t own, uid_t effective)
{
    return BECOME(REAL(setreuid)(own, effective));
}

DOOR int setresuid(uid_t own, uid_t effective, uid_t saved)
{
    return BECOME(REAL(setresuid)(own, effective, saved));
}

DOOR int setfsuid(uid_t user)
{
    return BECOME(REAL(setfsuid)(user));
}
