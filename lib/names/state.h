/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room. Async-signal-safe, thread-safe. */

#include "names/names.h"

#define NAMES_LOOK (5 * CLOCK_MILLISECOND) /* how often a process looks whether what it waits for has come */

/* Fails closed: -EIO, and says why once. */
int names_fail(struct names_root *, int code);

/* NULL: not attached. */
static inline struct request_channel *names_channel_of(const struct names_root *root)
{
    return __atomic_load_n(&root->channel, __ATOMIC_ACQUIRE);
}

static inline bool names_root_is_attached(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_is_alive(channel) && root->sight == NAMES_SEEN;
}

/* One thread at a time maps, no handler comes in between, and errno is as it was after it. */
struct mapping {
    uint64_t signals;
    int saved;
};

struct mapping names_begin_mapping(struct names_root *);
void names_end_mapping(struct names_root *, const struct mapping *);
/* A daemon that has crashed is waited for if somebody starts it again. 0 or -errno. */
int names_attach_patiently(struct names_root *);
/* Asks it for an answer alone. 0 or -errno. */
int names_ping(struct request_channel *, uint64_t deadline);
