/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* System calls without libc.
 *
 * The shim exports libc's names, so code that runs inside an application must not call them: it would come
 * back through its own wrapper, or through another interposer's. Every function here returns what the kernel
 * returned: zero or a positive value, or -errno. errno is not touched. All are async-signal-safe and callable
 * from any thread, in a vfork child, and before constructors have run. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/stat.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include "base/hook.h"
#include "base/kernel_abi.h"

#if defined(__clang_analyzer__)
#include <unistd.h>
/* What an analyser can follow: it knows nothing of what the assembler below writes. */
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    long answer = syscall(number, a, b, c, d, e, f);
    return answer < 0 ? -errno : answer;
}
#elif defined(__x86_64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined(__aarch64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "shunt knows the system call convention of x86_64 and aarch64 only"
#endif

#define SYS0(n) sys_call(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) sys_call(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) sys_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS6(n, a, b, c, d, e, f) sys_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* What changes names, between two points where a test may end the process: hook `step`. */
#define SYS_CHANGE(CALL)                                                                                                       \
    ({                                                                                                                         \
        HOOK("step");                                                                                                          \
        int changed = (int)(CALL);                                                                                             \
        HOOK("step");                                                                                                          \
        changed;                                                                                                               \
    })

static inline int sys_openat(int dir, const char *path, int flags, mode_t mode)
{
    if (flags & O_CREAT)
        return SYS_CHANGE(SYS4(SYS_openat, dir, path, flags, mode));
    return (int)SYS4(SYS_openat, dir, path, flags, mode);
}

static inline int sys_close(int fd)
{
    return (int)SYS1(SYS_close, fd);
}

static inline ssize_t sys_read(int fd, void *to, size_t size)
{
    return SYS3(SYS_read, fd, to, size);
}

static inline ssize_t sys_write(int fd, const void *from, size_t size)
{
    return SYS3(SYS_write, fd, from, size);
}

static inline off_t sys_lseek(int fd, off_t offset, int whence)
{
    return SYS3(SYS_lseek, fd, offset, whence);
}

static inline int sys_statx(int dir, const char *path, int flags, unsigned mask, struct statx *to)
{
    return (int)SYS5(SYS_statx, dir, path, flags, mask, to);
}

/* Newer (6.13) than the headers that this is built with may be; their numbers are the same on every machine. */
#define SYS_GETXATTRAT 464
#define SYS_LISTXATTRAT 465

/* getxattr of a path seen from a descriptor. The kernel has no larger values than 64 KiB. */
static inline ssize_t sys_getxattrat(int dir, const char *path, int flags, const char *name, void *value, size_t size)
{
    const struct {
        uint64_t value;
        uint32_t size, flags;
    } to = {(uintptr_t)value, size < UINT32_MAX ? (uint32_t)size : UINT32_MAX, 0};
    return SYS6(SYS_GETXATTRAT, dir, path, flags, name, &to, sizeof to);
}

static inline int sys_unlinkat(int dir, const char *path, int flags)
{
    return SYS_CHANGE(SYS3(SYS_unlinkat, dir, path, flags));
}

static inline int sys_mkdirat(int dir, const char *path, mode_t mode)
{
    return SYS_CHANGE(SYS3(SYS_mkdirat, dir, path, mode));
}

static inline int sys_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return SYS_CHANGE(SYS5(SYS_renameat2, from_dir, from, to_dir, to, flags));
}

static inline int sys_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return SYS_CHANGE(SYS5(SYS_linkat, from_dir, from, to_dir, to, flags));
}

static inline int sys_symlinkat(const char *target, int dir, const char *path)
{
    return SYS_CHANGE(SYS3(SYS_symlinkat, target, dir, path));
}

static inline ssize_t sys_readlinkat(int dir, const char *path, char *to, size_t size)
{
    return SYS4(SYS_readlinkat, dir, path, to, size);
}

static inline ssize_t sys_getdents64(int fd, void *to, size_t size)
{
    return SYS3(SYS_getdents64, fd, to, size);
}

static inline ssize_t sys_getcwd(char *to, size_t size)
{
    return SYS2(SYS_getcwd, to, size);
}

static inline int sys_fchmod(int fd, mode_t mode)
{
    return (int)SYS2(SYS_fchmod, fd, mode);
}

static inline int sys_fchownat(int dir, const char *path, uid_t user, gid_t group, int flags)
{
    return (int)SYS5(SYS_fchownat, dir, path, user, group, flags);
}

static inline int sys_utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    return (int)SYS4(SYS_utimensat, dir, path, times, flags);
}

static inline int sys_futex_wait(const uint32_t *word, uint32_t seen, const struct timespec *limit)
{
    return (int)SYS4(SYS_futex, word, FUTEX_WAIT, seen, limit);
}

static inline int sys_futex_wake(const uint32_t *word, int how_many)
{
    return (int)SYS3(SYS_futex, word, FUTEX_WAKE, how_many);
}

/* The same with a set of bits: waiters are woken where the two have one in common. `until` is a time (CLOCK_MONOTONIC). */
static inline int sys_futex_wait_bits(const uint32_t *word, uint32_t seen, const struct timespec *until, uint32_t bits)
{
    return (int)SYS6(SYS_futex, word, FUTEX_WAIT_BITSET, seen, until, NULL, bits);
}

static inline int sys_futex_wake_bits(const uint32_t *word, uint32_t bits)
{
    return (int)SYS6(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

#define SYS_LEAST_PAGE 4096u

/* Makes the pages of a shared mapping of a file be there, and changes nothing in them: 0; -ENOSPC: the file system has no room
 * for one, and a load or store there would be a SIGBUS. The kernel writes the page in the process's place (a futex operation
 * that adds no bit), and a system call that meets such a page fails. MADV_POPULATE_WRITE would do (Linux 5.14); fallocate needs
 * a descriptor, and raises SIGXFSZ. */
static inline int sys_populate(void *at, size_t size)
{
    for (size_t i = 0; i < size; i += SYS_LEAST_PAGE) {
        char *word = (char *)at + i;
        if (SYS6(SYS_futex, word, FUTEX_WAKE_OP, 0, 0, word, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) < 0)
            return -ENOSPC;
    }
    return 0;
}

/* What a thread's own instructions raise. */
#define SYS_OWN_SIGNALS                                                                                                        \
    (1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGSEGV - 1) |      \
     1ull << (SIGSYS - 1))

/* Lets no signal be delivered to this thread until sys_set_signals, and answers the mask that stood before.
 * SYS_OWN_SIGNALS stay as they are: held back, one would be the end of the process. */
static inline uint64_t sys_block_signals(void)
{
    uint64_t all = ~SYS_OWN_SIGNALS, before = 0;
    SYS4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
    return before;
}

static inline void sys_set_signals(uint64_t mask)
{
    SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

/* Does the answer to a look at a path say something of the path, so that another call would meet it there, too? */
static inline bool sys_is_about_path(int code)
{
    return code == -ENOENT || code == -ENOTDIR || code == -ELOOP || code == -ENAMETOOLONG || code == -EACCES ||
           code == -EBADF || code == -EFAULT || code == -EINVAL;
}

/* May a filter of system calls have given it? */
static inline bool sys_may_be_refused(int code)
{
    return code == -EPERM || code == -ENOSYS || code == -EACCES;
}

static inline pid_t sys_getpid(void)
{
    return (pid_t)SYS0(SYS_getpid);
}

static inline void *sys_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return (void *)SYS6(SYS_mmap, at, size, protection, flags, fd, offset);
}

/* sys_mmap answers -errno as a pointer; this tells the two apart. */
static inline int sys_is_error(const void *pointer)
{
    return (unsigned long)pointer >= (unsigned long)-4095L;
}

static inline int sys_munmap(void *at, size_t size)
{
    return (int)SYS2(SYS_munmap, at, size);
}
