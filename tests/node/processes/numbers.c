/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* numbers PATH FIRST LAST: makes each system call from number FIRST to LAST with PATH as its first, then as its second
 * argument. None is done: a filter answers for the kernel each call that has the address of PATH among its arguments. Of each
 * number that is not answered so stands a line on standard output, and of each that is not given all six arguments. */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../old_libc.h"

enum { GIVEN_PATH = 1234, GIVEN_ALL, LAST_ARGUMENT = 0x5abcdef, NUMBER_FSCONFIG = 431 };

static void add_step(struct sock_fprog *to, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    to->filter[to->len++] = (struct sock_filter){code, yes, no, k};
}

/* Goes on after the next `skipped` instructions unless the argument is `value`. */
static void unless_argument(struct sock_fprog *to, int which, uint64_t value, uint8_t skipped)
{
    const uint32_t at = offsetof(struct seccomp_data, args) + 8 * (uint32_t)which;
    add_step(to, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
    add_step(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)value, 0, (uint8_t)(skipped + 2));
    add_step(to, BPF_LD | BPF_W | BPF_ABS, at + 4, 0, 0);
    add_step(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value >> 32), 0, skipped);
}

/* Whole: only what is given all the arguments. */
static int answer_for_kernel(const char *path, bool whole)
{
    struct sock_filter code[64];
    struct sock_fprog filter = {0, code};
    for (int i = 0; i < 5; i++) {
        unless_argument(&filter, i, (uintptr_t)path, 6);
        unless_argument(&filter, 5, LAST_ARGUMENT, 1);
        add_step(&filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | GIVEN_ALL, 0, 0);
        add_step(&filter, BPF_RET | BPF_K, whole ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | GIVEN_PATH, 0, 0);
    }
    add_step(&filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0;
}

/* Those whose arguments are descriptors or buffers; rings, which there are not under roots; what the kernel does not show a
 * filter (uretprobe, uprobe). */
static bool takes_no_path(long number)
{
    static const long calls[] = {
        SYS_fsync,    SYS_fdatasync, SYS_fchdir, SYS_fchmod, SYS_fchown, SYS_fstat, SYS_getdents64, SYS_io_uring_setup,
#ifdef SYS_getdents
        SYS_getdents, 335,           336
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == number)
            return true;
    return false;
}

static int error_of(long number, const char *path, int which)
{
    errno = 0;
    if (number == NUMBER_FSCONFIG)
        return syscall(number, 0L, 3L /* a path */, 0L, path, (long)AT_FDCWD, (long)LAST_ARGUMENT) == -1 ? errno : 0;
    if (number == SYS_fanotify_mark)
        return syscall(number, 0L, 0L, 0L, (long)AT_FDCWD, path, (long)LAST_ARGUMENT) == -1 ? errno : 0;
    long result = which == 0 ? syscall(number, path, 0L, 0L, 0L, 0L, (long)LAST_ARGUMENT)
                             : syscall(number, (long)AT_FDCWD, path, 0L, 0L, 0L, (long)LAST_ARGUMENT);
    return result == -1 ? errno : 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    char *path = strdup(argv[1]);
    if (path == NULL || answer_for_kernel(path, atol(argv[2]) > 0) != 0)
        return perror("numbers"), 2;
    for (long number = atol(argv[2]); number <= atol(argv[3]); number++) {
        if (takes_no_path(number))
            continue;
        int first = error_of(number, path, 0), second = error_of(number, path, 1);
        if (first == GIVEN_ALL || second == GIVEN_ALL)
            continue;
        if (first == GIVEN_PATH || second == GIVEN_PATH)
            printf("%ld: path\n", number);
        else
            printf("%ld: %s\n", number, strerrorname_np(second));
    }
    return 0;
}
