/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "calls.h"
#include "kernel.h"

#if defined(__x86_64__)
#define FILTER_MACHINE AUDIT_ARCH_X86_64
#else
#define FILTER_MACHINE AUDIT_ARCH_AARCH64
#endif

#define FILTER_IO_URING_SETUP 425
#define FILTER_NEWEST 462 /* Linux 6.10. Those after it name paths in ways of their own (setxattrat, file_setattr) */
#define FILTER_MOST 256

struct filter_code {
    struct sock_filter steps[FILTER_MOST];
    unsigned short count;
};

static void filter_add(struct filter_code *code, unsigned what, unsigned value, int if_so, int if_not)
{
    code->steps[code->count++] = (struct sock_filter){(unsigned short)what, (unsigned char)if_so, (unsigned char)if_not, value};
}

static void filter_load(struct filter_code *code, size_t offset)
{
    filter_add(code, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

/* The answer, where the last word that was loaded is `value`. */
static void filter_if(struct filter_code *code, unsigned value, unsigned answer)
{
    filter_add(code, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    filter_add(code, BPF_RET | BPF_K, answer, 0, 0);
}

/* One that is looked at only with certain bits, or one of two values, in its first argument (the low half of it: both machines
 * are little-endian). */
static void filter_if_first(struct filter_code *code, unsigned number, unsigned test, unsigned value, unsigned other)
{
    filter_add(code, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
    filter_load(code, offsetof(struct seccomp_data, args));
    filter_add(code, BPF_JMP | test | BPF_K, value, 1, 0);
    filter_add(code, BPF_JMP | test | BPF_K, other, 0, 1);
    filter_add(code, BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF, 0, 0);
    filter_add(code, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* The other machine's calls (32-bit programs) go on: the shim warns of those. There is no ring, as under the shim, since its
 * calls would not be seen; nor are there calls that are newer than this table, so that programs go their older way. */
static void filter_write(struct filter_code *code)
{
    code->count = 0;
    filter_load(code, offsetof(struct seccomp_data, arch));
    filter_add(code, BPF_JMP | BPF_JEQ | BPF_K, FILTER_MACHINE, 1, 0);
    filter_add(code, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    filter_load(code, offsetof(struct seccomp_data, nr));
    filter_add(code, BPF_JMP | BPF_JGT | BPF_K, FILTER_NEWEST, 0, 1); /* the calls of x32 have higher numbers still */
    filter_add(code, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
    filter_if(code, FILTER_IO_URING_SETUP, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < calls_count; i++)
        if (calls_table[i].kind != CALLS_CONTROL)
            filter_if(code, (unsigned)calls_table[i].number, SECCOMP_RET_USER_NOTIF);
    filter_if_first(code, SYS_clone, BPF_JSET, CLONE_NEWNS, CLONE_NEWUSER);
    filter_if_first(code, SYS_prctl, BPF_JEQ, CALLS_ASK, PR_SET_DUMPABLE);
    filter_add(code, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

int filter_install(void)
{
    struct filter_code code;
    const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    filter_write(&code);
    const struct sock_fprog program = {code.count, code.steps};
    long fd = SYS3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd == -EACCES && SYS5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        fd = SYS3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return (int)fd;
}
