/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Doing something that needs descriptors in a process that has none left: RLIMIT_NOFILE may be lowered to
 * what is open, and natively a stat works all the same. It is done in a child that shares this process's
 * memory, and so leaves there what it maps, but has a copy of the table of descriptors, in which some are
 * closed. */

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/sys.h"

#define HELPER_STACK 65536
#define HELPER_CLOSED 16

struct helper {
    int (*run)(void *context);
    void *context;
    int kept; /* a descriptor that `run` needs, or a negative number */
    int answer;
};

static inline int helper_child(void *of)
{
    struct helper *helper = (struct helper *)of;
    for (int fd = 0; fd < HELPER_CLOSED; fd++)
        if (fd != helper->kept)
            sys_close(fd);
    helper->answer = helper->run(helper->context);
    return 0;
}

/* Its answer (in which no descriptor may be), or -EMFILE if there can be no child. It must not ask for its
 * own process id, and signals are blocked by the caller. Async-signal-safe. */
static inline int helper_run(int (*run)(void *context), void *context, int kept)
{
    struct helper helper = {run, context, kept, -EMFILE};
    char *stack = (char *)sys_mmap(NULL, HELPER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(stack))
        return -EMFILE;
    int child = clone(helper_child, stack + HELPER_STACK, CLONE_VM | CLONE_VFORK, &helper);
    while (child > 0 && SYS4(SYS_wait4, child, NULL, __WALL, NULL) == -EINTR)
        continue;
    sys_munmap(stack, HELPER_STACK);
    return helper.answer;
}
