/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process of root's that is about to become somebody else: what it needs of the daemon is mapped before,
 * since it may not open it afterwards. Its children inherit it; a program that one of them executes does not,
 * and is refused as any other user's. */

#include <grp.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap_credentials.h"
#include "shim/wrap.h"

void credentials_prepare(void)
{
    if (!process_has_roots() || SYS0(SYS_geteuid) != 0)
        return;
    for (unsigned i = 0; i < shim_state.process.count; i++)
        names_is_attached(&shim_state.roots[i]);
}

#define BECOME(CALL)                                                                                                           \
    ({                                                                                                                         \
        credentials_prepare();                                                                                                 \
        CALL;                                                                                                                  \
    })

WRAPPER int setuid(uid_t user)
{
    return BECOME(REAL(setuid)(user));
}

WRAPPER int seteuid(uid_t user)
{
    return BECOME(REAL(seteuid)(user));
}

WRAPPER int setreuid(uid_t own, uid_t effective)
{
    return BECOME(REAL(setreuid)(own, effective));
}

WRAPPER int setresuid(uid_t own, uid_t effective, uid_t saved)
{
    return BECOME(REAL(setresuid)(own, effective, saved));
}

WRAPPER int setfsuid(uid_t user)
{
    return BECOME(REAL(setfsuid)(user));
}

WRAPPER int setgid(gid_t group)
{
    return BECOME(REAL(setgid)(group));
}

WRAPPER int setegid(gid_t group)
{
    return BECOME(REAL(setegid)(group));
}

WRAPPER int setregid(gid_t own, gid_t effective)
{
    return BECOME(REAL(setregid)(own, effective));
}

WRAPPER int setresgid(gid_t own, gid_t effective, gid_t saved)
{
    return BECOME(REAL(setresgid)(own, effective, saved));
}

WRAPPER int setfsgid(gid_t group)
{
    return BECOME(REAL(setfsgid)(group));
}

WRAPPER int setgroups(size_t count, const gid_t *list)
{
    return BECOME(REAL(setgroups)(count, list));
}

WRAPPER int initgroups(const char *user, gid_t group)
{
    return BECOME(REAL(initgroups)(user, group));
}

int capset(cap_user_header_t, const cap_user_data_t); /* glibc has it, and no header for it */

WRAPPER int capset(cap_user_header_t header, const cap_user_data_t data)
{
    return BECOME(REAL(capset)(header, data));
}

/* A caller that gives fewer arguments finds what was in those registers, as in libc's own function. */
WRAPPER int prctl(int option, ...)
{
    unsigned long a[4];
    va_list more;
    va_start(more, option);
    for (unsigned i = 0; i < 4; i++)
        a[i] = va_arg(more, unsigned long);
    va_end(more);
    if (option == PR_SET_SECCOMP)
        process_will_be_filtered();
    return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}
