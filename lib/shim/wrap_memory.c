/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What takes memory away: what is remembered of it is forgotten after the call, whatever that said, since it may have done a
 * part. Not mmap with MAP_FIXED, since what moves data is native and not replaced (tests/bench/data.py).
 *
 * What is locked counts whole against RLIMIT_MEMLOCK, and no mapping can be excepted: index, channel and the table of directory
 * streams would take many times what a program natively needs, and a channel that is locked takes memory of the run directory
 * for all that it has room for. So what is there is unmapped before mlockall(MCL_CURRENT), where nobody else can be in it, and
 * all is mapped before mlockall(MCL_FUTURE). A larger part of an index that was mapped before is not locked either (view_grow).
 * Between the two calls of one for both, what another thread maps is not locked. */

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/kernel_abi.h"
#include "base/sys.h"
#include "shim/dir_stream.h"
#include "shim/lasting.h"
#include "shim/scratch.h"
#include "shim/wrap.h"
#include "shim/wrap_memory.h"

/* Not in the headers of glibc 2.31. */
ssize_t process_madvise(int process, const struct iovec *parts, size_t count, int advice, unsigned flags);
void *__sbrk(intptr_t more);

#define ADVICE_POISON 100 /* from there on (MADV_HWPOISON, MADV_GUARD_INSTALL) no more is to be read */

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

static void wrap_memory_taken(const void *at, size_t size)
{
    process_forget_readable();
    if (shim_state.process.count > 0 && size > 0)
        lasting_taken(at, size);
}

/* `size` bytes from `at` on, if IF. */
#define WRAP_MEMORY_TAKES(IF, AT, SIZE, CALL)                                                                                  \
    ({                                                                                                                         \
        __typeof__(CALL) answer_ = (CALL);                                                                                     \
        if (IF)                                                                                                                \
            wrap_memory_taken(AT, SIZE);                                                                                       \
        answer_;                                                                                                               \
    })

WRAPPER int munmap(void *at, size_t size)
{
    return WRAP_MEMORY_TAKES(true, at, size, REAL(munmap)(at, size));
}

WRAPPER int mprotect(void *at, size_t size, int protection)
{
    return WRAP_MEMORY_TAKES(!(protection & PROT_READ), at, size, REAL(mprotect)(at, size, protection));
}

WRAPPER int pkey_mprotect(void *at, size_t size, int protection, int key)
{
    return WRAP_MEMORY_TAKES(true, at, size, REAL(pkey_mprotect)(at, size, protection, key));
}

WRAPPER void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = va_arg(more, void *); /* which libc looks at if there is one */
    va_end(more);
    void *moved = WRAP_MEMORY_TAKES(true, at, size, REAL(mremap)(at, size, new_size, flags, to));
    if (flags & MREMAP_FIXED)
        wrap_memory_taken(to, new_size);
    return moved;
}

WRAPPER int remap_file_pages(void *at, size_t size, int protection, size_t page, int flags)
{
    return WRAP_MEMORY_TAKES(true, at, size, REAL(remap_file_pages)(at, size, protection, page, flags));
}

WRAPPER int madvise(void *at, size_t size, int advice)
{
    const bool takes = advice == MADV_REMOVE || advice == MADV_DONTFORK || advice >= ADVICE_POISON;
    return WRAP_MEMORY_TAKES(takes, at, size, REAL(madvise)(at, size, advice));
}

WRAPPER ssize_t process_madvise(int process, const struct iovec *parts, size_t count, int advice, unsigned flags)
{
    return WRAP_MEMORY_TAKES(true, NULL, 0, REAL(process_madvise)(process, parts, count, advice, flags));
}

WRAPPER int shmdt(const void *at)
{
    return WRAP_MEMORY_TAKES(true, at, 1, REAL(shmdt)(at));
}

WRAPPER int brk(void *end)
{
    return WRAP_MEMORY_TAKES(true, NULL, 0, REAL(brk)(end));
}

WRAPPER void *sbrk(intptr_t more)
{
    return WRAP_MEMORY_TAKES(more < 0, NULL, 0, REAL(sbrk)(more));
}

WRAPPER void *__sbrk(intptr_t more)
{
    return WRAP_MEMORY_TAKES(more < 0, NULL, 0, REAL(__sbrk)(more));
}

long wrap_memory_call(long number, const long a[6], bool *known)
{
    size_t size = 0;
    *known = true;
    switch (number) {
    case SYS_mprotect:
        if (a[2] & PROT_READ)
            break;
        __attribute__((fallthrough));
    case SYS_munmap:
    case SYS_pkey_mprotect:
    case SYS_mremap:
    case SYS_remap_file_pages:
    case SYS_madvise:
        size = (size_t)a[1];
        break;
    case SYS_shmdt:
        size = 1;
        break;
    case SYS_process_madvise:
    case SYS_brk:
        break;
    default:
        *known = false;
        return 0;
    }
    const long answer =
        WRAP_MEMORY_TAKES(true, (const void *)a[0], size, REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    if (number == SYS_mremap && (a[3] & MREMAP_FIXED))
        wrap_memory_taken((const void *)a[4], (size_t)a[2]);
    return answer;
}
