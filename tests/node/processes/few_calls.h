/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A filter of system calls that allows what looking at files needs, and kills for others: the list of file(1) 5.45. With
 * BY_CALL in the environment it is asked for as libseccomp does. */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static inline int few_calls_begin(void)
{
    struct sock_filter filter[2 * sizeof few_calls / sizeof *few_calls + 2];
    unsigned short used = 0;
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof few_calls / sizeof *few_calls; i++) {
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)few_calls[i], 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {used, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return getenv("BY_CALL") != NULL ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                                     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
