/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A filter of system calls that allows what looking at files needs, and kills for others: the list of file(1) 5.45. With
 * BY_CALL in the environment it is asked for as libseccomp does. */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel_abi.h"

static const int few_calls[] = {
#ifdef __x86_64__
    SYS_access,       SYS_dup2,           SYS_getdents,     SYS_lstat,      SYS_open,      SYS_readlink, SYS_select,
    SYS_stat,         SYS_unlink,         SYS_utimes,
#endif
    SYS_brk,          SYS_close,          SYS_exit,         SYS_exit_group, SYS_faccessat, SYS_fcntl,    SYS_fstat,
    SYS_futex,        SYS_getdents64,     SYS_ioctl,        SYS_lseek,      SYS_madvise,   SYS_mmap,     SYS_mprotect,
    SYS_mremap,       SYS_munmap,         SYS_newfstatat,   SYS_openat,     SYS_pread64,   SYS_read,     SYS_readlinkat,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_statx,      SYS_sysinfo,   SYS_umask,    SYS_getpid,
    SYS_getrandom,    SYS_write,          SYS_writev,
};

/* What a program's begin calls, natively and under shunt (shunt(7)), and what executes it. */
static const int few_calls_to_execute[] = {
#ifdef __x86_64__
    SYS_arch_prctl,
#endif
    SYS_execve,     SYS_set_tid_address, SYS_set_robust_list, SYS_prlimit64, SYS_rseq,  SYS_getcwd,  SYS_geteuid,
    SYS_getegid,    SYS_uname,           SYS_fstatfs,         SYS_getxattr,  SYS_prctl, SYS_openat2,
};

struct few_calls {
    struct sock_filter filter[2 * (sizeof few_calls + sizeof few_calls_to_execute) / sizeof(int) + 2]; /* two for each call */
    unsigned short used;
};

static inline void few_calls_add(struct few_calls *to, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to->filter[to->used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        to->filter[to->used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
}

static inline int few_calls_restrict(struct few_calls *to)
{
    to->filter[to->used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {to->used, to->filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return getenv("BY_CALL") != NULL ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                                     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static inline void few_calls_look(struct few_calls *to)
{
    to->filter[to->used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
}

static inline int few_calls_begin(void)
{
    struct few_calls all = {.used = 0};
    few_calls_look(&all);
    few_calls_add(&all, few_calls, sizeof few_calls / sizeof *few_calls);
    return few_calls_restrict(&all);
}

/* Also those that executing a program needs; openat2 is allowed, or refused with an error. */
static inline int few_calls_begin_executing(int refuses)
{
    struct few_calls all = {.used = 0};
    const size_t more = sizeof few_calls_to_execute / sizeof *few_calls_to_execute;
    few_calls_look(&all);
    few_calls_add(&all, few_calls, sizeof few_calls / sizeof *few_calls);
    few_calls_add(&all, few_calls_to_execute, more);
    if (refuses)
        all.filter[all.used - 1].k = SECCOMP_RET_ERRNO | EPERM;
    return few_calls_restrict(&all);
}
