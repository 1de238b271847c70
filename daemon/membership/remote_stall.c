/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/remote_stall.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hook.h"
#include "coordinator/coordinator.h"
#include "home/home.h"
#include "listen/listen.h"
#include "membership/heartbeat.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "rpc/home_rpc.h"
#include "rpc/peer_rpc.h"

/* Why a member is asked. Others may wait for what this daemon waits for; its own processes, if they wait for what it does. */
enum { NOT_ASKED, FOR_OTHERS, FOR_PROCESSES };

struct remote_stall {
    uint64_t seen; /* monotonic, when the file system held up something at another node last, as far as is known; 0: never */
    uint64_t operation, call, collective; /* the last ones that had begun at the last look at what is waited for */
    uint32_t epoch;                       /* of the homes, then */
    uint8_t asked[UINT16_MAX + 1];        /* members that have not answered yet, and why they are */
};

int remote_stall_create(struct shuntd *shuntd)
{
    shuntd->remote_stall = calloc(1, sizeof *shuntd->remote_stall);
    return shuntd->remote_stall != NULL ? 0 : -ENOMEM;
}

void remote_stall_free(struct shuntd *shuntd)
{
    free(shuntd->remote_stall);
}

/* For longer than it takes to be seen again. */
static bool remote_stall_is_lately(const struct shuntd *shuntd, uint64_t seen, uint64_t now)
{
    return seen != 0 && now - seen < heartbeat_interval(shuntd) + CLOCK_SECOND;
}

/* Once at a time: one that says nothing may be silent for long. */
static int remote_stall_ask(struct shuntd *shuntd, uint16_t member, uint8_t why)
{
    uint8_t *asked = &shuntd->remote_stall->asked[member];
    const bool is_asked = *asked != NOT_ASKED;
    if (!peers_knows(shuntd->peers, member))
        return 0;
    *asked = *asked > why ? *asked : why;
    return is_asked ? 0 : rpc_greet(shuntd, member);
}

static int remote_stall_ask_for_others(struct shuntd *shuntd, uint16_t member)
{
    return remote_stall_ask(shuntd, member, FOR_OTHERS);
}

static int remote_stall_ask_claimant(void *shuntd, uint16_t member)
{
    return remote_stall_ask_for_others(shuntd, member);
}

/* What waits for this daemon itself waits for those that it waits for. */
static int remote_stall_ask_for_processes(struct shuntd *shuntd, uint16_t member)
{
    if (member != shuntd->me.number)
        return remote_stall_ask(shuntd, member, FOR_PROCESSES);
    if (remote_stall_is_lately(shuntd, shuntd->remote_stall->seen, clock_monotonic()))
        listen_add_stall(shuntd->listen);
    return 0;
}

/* What is to come from other homes before this one can answer. */
static int remote_stall_ask_homes(struct shuntd *shuntd)
{
    const struct route *route = &shuntd->route;
    const bool is_new = shuntd->remote_stall->epoch != route->epoch;
    int code = 0;
    shuntd->remote_stall->epoch = route->epoch;
    if (is_new || route->missing == 0)
        return 0;
    for (unsigned i = 0; i < RECORD_SHARDS && code == 0; i++)
        code = route->from[i] != 0 ? remote_stall_ask_for_others(shuntd, route->from[i]) : 0;
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++)
        if (route->unreported[shuntd->session.members[i].number])
            code = remote_stall_ask_for_others(shuntd, shuntd->session.members[i].number);
    return code;
}

int remote_stall_step(struct shuntd *shuntd)
{
    struct remote_stall *stall = shuntd->remote_stall;
    if (shuntd->session.count < 2)
        return 0;
    int code = home_rpc_each_asked(shuntd, &stall->operation, remote_stall_ask_for_processes);
    if (code == 0)
        code = home_each_awaited(shuntd->home, remote_stall_ask_claimant, shuntd);
    if (code == 0)
        code = coordinator_each_asked(shuntd, &stall->call, remote_stall_ask_for_processes);
    if (code == 0)
        code = collective_each_asked(shuntd, &stall->collective, remote_stall_ask_for_others);
    return code == 0 ? remote_stall_ask_homes(shuntd) : code;
}

uint64_t remote_stall_told(const struct shuntd *shuntd)
{
    const uint64_t own = __atomic_load_n(&shuntd->stalled, __ATOMIC_RELAXED), other = shuntd->remote_stall->seen;
    const uint64_t seen = own > other ? own : other, now = clock_monotonic();
    return remote_stall_is_lately(shuntd, seen, now) ? now - seen + 1 : 0;
}

void remote_stall_hear(struct shuntd *shuntd, uint16_t member, uint64_t told)
{
    struct remote_stall *stall = shuntd->remote_stall;
    const uint64_t now = clock_monotonic();
    const bool processes_wait = stall->asked[member] == FOR_PROCESSES;
    stall->asked[member] = NOT_ASKED;
    if (told == 0 || told > now || !remote_stall_is_lately(shuntd, now - (told - 1), now) || BROKEN("stall-untold"))
        return;
    if (stall->seen < now - (told - 1))
        stall->seen = now - (told - 1);
    if (processes_wait)
        listen_add_stall(shuntd->listen);
}
