/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What is locked counts whole against RLIMIT_MEMLOCK, and no mapping can be excepted: index, channel and the table of directory
 * streams would take many times what a program natively needs, and a channel that is locked takes memory of the run directory
 * for all that it has room for. So what is there is unmapped before mlockall(MCL_CURRENT), where nobody else can be in it, and
 * all is mapped before mlockall(MCL_FUTURE). A larger part of an index that was mapped before is not locked either (view_grow).
 * Between the two calls of one for both, what another thread maps is not locked. */

#include <errno.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shim/dir_stream.h"
#include "shim/scratch.h"
#include "shim/wrap.h"

/* /proc/self/task has a link more for each thread. */
static bool wrap_memory_is_alone(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/proc/self/task", 0, STATX_NLINK, &stat) == 0 && stat.stx_nlink == 3;
}

static void wrap_memory_unmap_own(void)
{
    if (!wrap_memory_is_alone())
        return;
    for (unsigned i = 0; i < shim_state.process.count; i++)
        names_detach(&shim_state.roots[i]);
    dir_stream_unmap();
}

static void wrap_memory_map_own(void)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        names_is_attached(&shim_state.roots[i]);
    dir_stream_map();
    scratch_give(scratch_take());
}

WRAPPER int mlockall(int flags)
{
    if (!process_has_roots() || !(flags & (MCL_CURRENT | MCL_FUTURE)))
        return REAL(mlockall)(flags);
    int answer = 0;
    if (flags & MCL_CURRENT) {
        wrap_memory_unmap_own();
        answer = REAL(mlockall)(flags & ~MCL_FUTURE);
    }
    const int saved = errno;
    wrap_memory_map_own();
    errno = saved;
    return answer == 0 && (flags & MCL_FUTURE) ? REAL(mlockall)(flags & ~MCL_CURRENT) : answer;
}
