/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The shared memory of a channel, as a test looks into it. */

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "request/channel.h"

/* It stays mapped until the test's process ends. */
static inline struct channel *channel_memory(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct channel *memory = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(fd >= 0 && memory != MAP_FAILED);
    close(fd);
    return memory;
}

/* How many queue pairs a process has. */
static inline unsigned channel_memory_qps(const struct channel *memory, pid_t pid)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CHANNEL_QPS; i++)
        count += channel_qp_is_there(memory, i) && __atomic_load_n(&memory->qp[i].owner, __ATOMIC_ACQUIRE) == (uint32_t)pid;
    return count;
}
