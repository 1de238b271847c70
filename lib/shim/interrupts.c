/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/interrupts.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "shim/process.h"

void interrupts_start(void)
{
    shim_state.interrupts.are_seen = true;
}

void interrupts_will_be_handled(void)
{
    __atomic_store_n(&shim_state.interrupts.handled, 1, __ATOMIC_RELAXED);
}

/* Asked once: a process that gets one later is a shell's child that executes a program. */
static bool interrupts_may_have_terminal(void)
{
    int32_t terminal = __atomic_load_n(&shim_state.interrupts.terminal, __ATOMIC_RELAXED);
    if (terminal != 0)
        return terminal > 0;
    const int fd = sys_openat(AT_FDCWD, "/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd >= 0)
        sys_close(fd);
    terminal = fd == -ENXIO || fd == -ENOENT ? -1 : 1;
    __atomic_store_n(&shim_state.interrupts.terminal, terminal, __ATOMIC_RELAXED);
    return terminal > 0;
}

bool interrupts_may_do_harm(void)
{
    const struct interrupts_state *state = &shim_state.interrupts;
    return !state->are_seen || __atomic_load_n(&state->handled, __ATOMIC_RELAXED) != 0 || process_is_filtered() ||
           interrupts_may_have_terminal();
}

struct interrupts_held interrupts_hold(void)
{
    if (!interrupts_may_do_harm())
        return (struct interrupts_held){.are_held = false};
    return (struct interrupts_held){true, sys_block_signals()};
}

void interrupts_let(struct interrupts_held held)
{
    if (held.are_held)
        sys_set_signals(held.mask);
}
