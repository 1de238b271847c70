/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/failure_detector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "disk/disk.h"
#include "peer/peers.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/roles.h"
#include "rpc/peer_rpc.h"

#define AT_ONCE 64                       /* members that are looked at together */
#define UNHEARD (5 * CLOCK_SECOND)       /* who acknowledges nothing for so long is not reached */
#define SUSPECT_AFTER (2 * SESSION_BEAT) /* beyond a beat's interval */

struct watch {
    bool looks;                                  /* a look is under way */
    uint64_t next;                               /* monotonic */
    bool told;                                   /* that too few are reached */
    int fenced;                                  /* how the last try to fence a branch ended */
    struct session_pulse pulses[UINT16_MAX + 1]; /* by the members' numbers */
};

/* A look at one member. */
struct charge {
    uint16_t number;
    bool lost;
    char branch[LAYOUT_BRANCH_MAX];
    struct session_pulse pulse;
    int fenced; /* -EAGAIN: its lease is not over */
};

struct watch_job {
    struct disk_job job;
    struct session session; /* which it is, no members */
    size_t count;
    struct charge charges[AT_ONCE];
};

int watch_create(struct shuntd *shuntd)
{
    shuntd->watch = calloc(1, sizeof *shuntd->watch);
    return shuntd->watch != NULL ? 0 : -ENOMEM;
}

void watch_free(struct shuntd *shuntd)
{
    free(shuntd->watch);
}

/* One that has never beaten has a lease without an end (beat_adopt). */
static bool stands_still(const struct shuntd *shuntd, uint16_t member, uint64_t time)
{
    const struct session_pulse *pulse = &shuntd->watch->pulses[member];
    return pulse->beat != 0 && pulse->still >= time;
}

static bool is_suspect(const struct shuntd *shuntd, const struct session_member *member)
{
    return parts_is_lost(member->home) || stands_still(shuntd, member->number, beat_interval(shuntd) + SUSPECT_AFTER);
}

/* Whom this daemon watches: the next one and, if that is silent, the one behind it, and so on. */
static size_t list_charges(const struct shuntd *shuntd, const struct session_member *charges[AT_ONCE])
{
    const struct session *session = &shuntd->session;
    size_t me = 0, count = 0;
    while (me < session->count && session->members[me].number != shuntd->me.number)
        me++;
    for (size_t i = 1; i < session->count && count < AT_ONCE; i++) {
        charges[count++] = &session->members[(me + i) % session->count];
        if (!is_suspect(shuntd, charges[count - 1]))
            break;
    }
    return count;
}

/* On the fabric. */

/* Not who merely owes no acknowledgement: there may have been nothing to acknowledge since he vanished. */
static bool is_reached(const struct shuntd *shuntd, const struct session_member *member)
{
    return !parts_is_lost(member->home) && peers_has_heard(shuntd->peers, member->number, UNHEARD);
}

/* Something for everybody to acknowledge, so that it shows who hears. */
static int greet_all(struct shuntd *shuntd)
{
    int code = 0;
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number != shuntd->me.number && !parts_is_lost(member->home) && peers_is_idle(shuntd->peers, member->number))
            code = relay_greet(shuntd, member->number);
    }
    return code;
}

static bool reaches_half(const struct shuntd *shuntd)
{
    size_t reached = 1, all = 0;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        all += !parts_is_lost(member->home);
        reached += member->number != shuntd->me.number && is_reached(shuntd, member);
    }
    return 2 * reached >= all;
}

/* What follows from a look. */

static bool is_gone(const struct shuntd *shuntd, const struct session_member *member)
{
    return !parts_is_lost(member->home) && stands_still(shuntd, member->number, shuntd->session.lease + SESSION_BEAT) &&
           peers_knows(shuntd->peers, member->number) && peers_is_silent(shuntd->peers, member->number, UNHEARD);
}

/* Those are lost that have been silent for long enough. */
static int lose(struct shuntd *shuntd, const struct session_member *const charges[], size_t count)
{
    bool loses = false;
    for (size_t i = 0; i < count; i++)
        loses |= is_gone(shuntd, charges[i]);
    if (!loses)
        return 0;
    if (!reaches_half(shuntd)) {
        if (!shuntd->watch->told)
            log_line("members are silent, but less than half of all are reached from here: the session stays "
                     "as it is");
        shuntd->watch->told = true;
        return 0;
    }
    shuntd->watch->told = false;
    for (size_t i = 0; i < count; i++)
        if (is_gone(shuntd, charges[i])) {
            struct session_member *member = session_find(&shuntd->session, charges[i]->number);
            log_line("%s on host %s is silent on the file system and on the fabric: it is lost", member->node, member->host);
            member->home = SESSION_LOST;
        }
    HOOK("member-lost");
    return homes_lose(shuntd);
}

static int decide(struct shuntd *shuntd)
{
    const struct session_member *charges[AT_ONCE];
    size_t count = list_charges(shuntd, charges);
    bool suspects = false;
    for (size_t i = 0; i < count; i++)
        suspects |= !parts_is_lost(charges[i]->home) && is_suspect(shuntd, charges[i]);
    int code = suspects ? greet_all(shuntd) : 0;
    return code == 0 && suspects ? lose(shuntd, charges, count) : code;
}

/* A look that came behind the epoch in which a member is lost, and finds that its beat has stood still for a
 * lease, says that it has none any more: it cannot get another one, whether it beats or not. */
static void carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct watch_job *job = (struct watch_job *)base;
    for (size_t i = 0; i < job->count; i++) {
        struct charge *charge = &job->charges[i];
        int code = session_observe(shuntd->root.path, &job->session, charge->number, &charge->pulse);
        bool is_over = (code == 0 && charge->pulse.still >= job->session.lease) || BROKEN("lease-unawaited");
        charge->fenced = -EAGAIN;
        if (charge->lost && is_over)
            charge->fenced = BROKEN("unfenced") ? 0 : session_fence(shuntd->root.path, charge->branch);
    }
}

/* One that was fenced is no member any more. */
static int drop(struct shuntd *shuntd, const struct charge *charge)
{
    HOOK("branch-fenced");
    int code = charge->fenced == 0 ? session_drop(shuntd->root.path, shuntd->session.id, charge->number) : charge->fenced;
    if (code != 0 && code != shuntd->watch->fenced)
        log_line("the lost node's branch %s cannot be fenced: %s", charge->branch, strerror(-code));
    shuntd->watch->fenced = code;
    return code == 0 ? relay_look(shuntd) : 0;
}

static int finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct watch_job *job = (struct watch_job *)base;
    int code = 0;
    shuntd->watch->looks = false;
    for (size_t i = 0; i < job->count && code == 0; i++) {
        shuntd->watch->pulses[job->charges[i].number] = job->charges[i].pulse;
        if (job->charges[i].fenced != -EAGAIN)
            code = drop(shuntd, &job->charges[i]);
    }
    free(job);
    return code == 0 ? decide(shuntd) : code;
}

static int look(struct shuntd *shuntd, uint64_t now)
{
    const struct session_member *charges[AT_ONCE];
    struct watch_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    job->session =
        (struct session){.id = shuntd->session.id, .founded = shuntd->session.founded, .lease = shuntd->session.lease};
    job->count = list_charges(shuntd, charges);
    for (size_t i = 0; i < job->count; i++) {
        job->charges[i] = (struct charge){.number = charges[i]->number,
                                          .lost = parts_is_lost(charges[i]->home),
                                          .pulse = shuntd->watch->pulses[charges[i]->number]};
        strcpy(job->charges[i].branch, charges[i]->branch);
    }
    shuntd->watch->looks = true;
    /* Suspects are looked at more often, since no more than a beat's time counts between two looks. */
    bool suspects = job->count > 0 && is_suspect(shuntd, charges[0]);
    shuntd->watch->next = now + (suspects ? SESSION_BEAT : beat_interval(shuntd));
    disk_submit(shuntd->pulse, &job->job);
    return 0;
}

int watch_step(struct shuntd *shuntd)
{
    if (shuntd->session.count < 2 || shuntd->watch->looks || shuntd->now < shuntd->watch->next)
        return 0;
    return look(shuntd, shuntd->now);
}
