/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* User Mode Linux is a program that runs each process of its guest under ptrace. On a switch it reads the registers of that
 * process by PTRACE_GETREGSET, NT_X86_XSTATE, into memory that Linux 6.1 sizes for what processors had by then, and writes them
 * back. The kernel beneath refuses (EFAULT, and User Mode Linux panics at the first process) to write less than the whole set,
 * which AMX made 8 KiB larger. So a smaller set is written to the beginning of the whole one here, as it stands.
 *
 * Preloaded into the kernel's process alone. What it hands on is errno's own convention: -1, as ptrace(2) says. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REGISTER_SET_MAX 65536

static long set_whole(pid_t pid, void *which, const struct iovec *given)
{
    static __thread char whole[REGISTER_SET_MAX] __attribute__((aligned(64)));
    struct iovec all = {.iov_base = whole, .iov_len = sizeof whole};
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, which, &all) < 0)
        return -1;
    if (given->iov_len >= all.iov_len)
        return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, which, given);
    memcpy(whole, given->iov_base, given->iov_len);
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, which, &all);
}

/* As libc's: what it reads is what it returns, where the system call writes it to `data`. */
static long peek_word(int request, pid_t pid, void *at)
{
    long word = 0;
    const long code = syscall(SYS_ptrace, request, pid, at, &word);
    return code < 0 ? code : word;
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list words;
    va_start(words, request);
    const pid_t pid = va_arg(words, pid_t);
    void *at = va_arg(words, void *), *data = va_arg(words, void *);
    va_end(words);
    if (request == PTRACE_SETREGSET && (long)at == NT_X86_XSTATE)
        return set_whole(pid, at, data);
    if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER)
        return peek_word((int)request, pid, at);
    return syscall(SYS_ptrace, request, pid, at, data);
}
