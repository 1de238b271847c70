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
#include "disk/stall_watch.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/roles.h"
#include "membership/session_view.h"
#include "peer/peers.h"
#include "rpc/peer_rpc.h"

#define AT_ONCE 64                       /* members that are looked at together */
#define UNHEARD (5 * CLOCK_SECOND)       /* a member that acknowledges nothing for so long is not reached */
#define SUSPECT_AFTER (2 * SESSION_BEAT) /* beyond a heartbeat's interval */

struct failure_detector {
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

struct failure_detector_job {
    struct disk_job job;
    struct session session; /* which it is, no members */
    size_t count;
    struct charge charges[AT_ONCE];
};

int failure_detector_create(struct shuntd *shuntd)
{
    shuntd->failure_detector = calloc(1, sizeof *shuntd->failure_detector);
    return shuntd->failure_detector != NULL ? 0 : -ENOMEM;
}

void failure_detector_free(struct shuntd *shuntd)
{
    free(shuntd->failure_detector);
}

/* Each has beaten before it was a member: one whose file is not there is waited for. */
static bool failure_detector_stands_still(const struct shuntd *shuntd, uint16_t member, uint64_t time)
{
    const struct session_pulse *pulse = &shuntd->failure_detector->pulses[member];
    return pulse->beat != 0 && pulse->still >= time;
}

static bool failure_detector_is_suspect(const struct shuntd *shuntd, const struct session_member *member)
{
    return roles_is_lost(member->home) ||
           failure_detector_stands_still(shuntd, member->number, heartbeat_interval(shuntd) + SUSPECT_AFTER);
}

/* The members that this daemon watches: the next one and, if that is silent, the one after it, and so on. */
static size_t failure_detector_list_charges(const struct shuntd *shuntd, const struct session_member *charges[AT_ONCE])
{
    const struct session *session = &shuntd->session;
    size_t me = 0, count = 0;
    while (me < session->count && session->members[me].number != shuntd->me.number)
        me++;
    for (size_t i = 1; i < session->count && count < AT_ONCE; i++) {
        charges[count++] = &session->members[(me + i) % session->count];
        if (!failure_detector_is_suspect(shuntd, charges[count - 1]))
            break;
    }
    return count;
}

/* On the fabric. */

/* Not a member that merely owes no acknowledgement: there may have been nothing to acknowledge since it vanished. */
static bool failure_detector_is_reached(const struct shuntd *shuntd, const struct session_member *member)
{
    return !roles_is_lost(member->home) && peers_has_heard(shuntd->peers, member->number, UNHEARD);
}

/* Something for every member to acknowledge, so that it shows which of them are reached. */
static int failure_detector_greet_all(struct shuntd *shuntd)
{
    int code = 0;
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number != shuntd->me.number && !roles_is_lost(member->home) && peers_is_idle(shuntd->peers, member->number))
            code = rpc_greet(shuntd, member->number);
    }
    return code;
}

static bool failure_detector_reaches_half(const struct shuntd *shuntd)
{
    size_t reached = 1, all = 0;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        all += !roles_is_lost(member->home);
        reached += member->number != shuntd->me.number && failure_detector_is_reached(shuntd, member);
    }
    return 2 * reached >= all;
}

/* What follows from a look. */

static bool failure_detector_is_gone(const struct shuntd *shuntd, const struct session_member *member)
{
    const struct session *session = &shuntd->session;
    const struct session_pulse *pulse = &shuntd->failure_detector->pulses[member->number];
    return !roles_is_lost(member->home) && pulse->beat != 0 &&
           session_pulse_is_over(pulse, session->system, session->lease + SESSION_BEAT) &&
           peers_knows(shuntd->peers, member->number) && peers_is_silent(shuntd->peers, member->number, UNHEARD);
}

/* Nobody takes this daemon's names over, either: if it is to end, it ends as it does at a second signal. */
static void failure_detector_decide_nothing(struct shuntd *shuntd)
{
    if (!shuntd->failure_detector->told)
        log_warning("session: members are silent, but less than half of all can be reached from here, so none is removed");
    shuntd->failure_detector->told = true;
    if (shuntd->stop == 1) {
        log_warning("session: ends without handing its names over: less than half of all members can be reached");
        shuntd->stop = 2;
    }
}

static size_t failure_detector_list_gone(const struct shuntd *shuntd, const struct session_member *const charges[],
                                         size_t count, uint16_t gone[AT_ONCE])
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (failure_detector_is_gone(shuntd, charges[i]))
            gone[found++] = charges[i]->number;
    return found;
}

/* Once the epoch is written: until then it is tried again. */
static void failure_detector_tell(const struct shuntd *shuntd, uint16_t number)
{
    const struct session_member *member = session_find(&shuntd->session, number);
    if (member != NULL && member->home == SESSION_LOST)
        log_warning("node %s on host %s: silent on the file system and on the network, so it is removed from the session",
                    member->node, member->host);
}

/* Those are lost that have been silent for long enough. */
static int failure_detector_lose(struct shuntd *shuntd, const struct session_member *const charges[], size_t count)
{
    uint16_t gone[AT_ONCE];
    count = failure_detector_list_gone(shuntd, charges, count, gone);
    if (count == 0)
        return 0;
    if (!failure_detector_reaches_half(shuntd)) {
        failure_detector_decide_nothing(shuntd);
        return 0;
    }
    shuntd->failure_detector->told = false;
    for (size_t i = 0; i < count; i++)
        session_find(&shuntd->session, gone[i])->home = SESSION_LOST;
    HOOK("member-lost");
    const int code = homes_lose(shuntd);
    for (size_t i = 0; i < count; i++)
        failure_detector_tell(shuntd, gone[i]);
    return code;
}

static int failure_detector_decide(struct shuntd *shuntd)
{
    const struct session_member *charges[AT_ONCE];
    size_t count = failure_detector_list_charges(shuntd, charges);
    bool suspects = false;
    for (size_t i = 0; i < count; i++)
        suspects |= !roles_is_lost(charges[i]->home) && failure_detector_is_suspect(shuntd, charges[i]);
    int code = suspects ? failure_detector_greet_all(shuntd) : 0;
    return code == 0 && suspects ? failure_detector_lose(shuntd, charges, count) : code;
}

/* A look that came after the epoch in which a member is lost, and finds that its heartbeat has stood still for a
 * lease, says that it has none any more: it cannot get another one, whether it heartbeats or not. */
static void failure_detector_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct failure_detector_job *job = (struct failure_detector_job *)base;
    HOOK("look-begun");
    for (size_t i = 0; i < job->count; i++) {
        struct charge *charge = &job->charges[i];
        int code = session_observe(shuntd->root.path, &job->session, charge->number, &charge->pulse);
        bool is_over = (code == 0 && session_pulse_is_over(&charge->pulse, job->session.system, job->session.lease)) ||
                       BROKEN("lease-unawaited");
        charge->fenced = -EAGAIN;
        if (charge->lost && is_over)
            charge->fenced = BROKEN("unfenced") ? 0 : session_fence(shuntd->root.path, charge->branch);
    }
}

/* One that was fenced is no member any more. */
static int failure_detector_drop(struct shuntd *shuntd, const struct charge *charge)
{
    HOOK("branch-fenced");
    int code = charge->fenced;
    if (code == 0)
        code = STALL_WATCHED(shuntd->stall_watch, session_drop(shuntd->root.path, shuntd->session.id, charge->number));
    if (code != 0 && code != shuntd->failure_detector->fenced)
        log_warning("%s: the branch of the lost node cannot be fenced: %s", charge->branch, strerror(-code));
    shuntd->failure_detector->fenced = code;
    return code == 0 ? session_view_refresh(shuntd) : 0;
}

static int failure_detector_conclude(struct disk_job *base, struct shuntd *shuntd)
{
    struct failure_detector_job *job = (struct failure_detector_job *)base;
    int code = 0;
    shuntd->failure_detector->looks = false;
    for (size_t i = 0; i < job->count && code == 0; i++) {
        shuntd->failure_detector->pulses[job->charges[i].number] = job->charges[i].pulse;
        if (job->charges[i].fenced != -EAGAIN)
            code = failure_detector_drop(shuntd, &job->charges[i]);
    }
    free(job);
    return code == 0 ? failure_detector_decide(shuntd) : code;
}

static int failure_detector_look(struct shuntd *shuntd, uint64_t now)
{
    const struct session_member *charges[AT_ONCE];
    struct failure_detector_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = failure_detector_carry_out, .finish = failure_detector_conclude};
    job->session = (struct session){.id = shuntd->session.id,
                                    .founded = shuntd->session.founded,
                                    .lease = shuntd->session.lease,
                                    .system = shuntd->session.system};
    job->count = failure_detector_list_charges(shuntd, charges);
    for (size_t i = 0; i < job->count; i++) {
        job->charges[i] = (struct charge){.number = charges[i]->number,
                                          .lost = roles_is_lost(charges[i]->home),
                                          .pulse = shuntd->failure_detector->pulses[charges[i]->number]};
        strcpy(job->charges[i].branch, charges[i]->branch);
    }
    shuntd->failure_detector->looks = true;
    /* Suspects are looked at more often, since no more than a heartbeat's time counts between two looks. */
    bool suspects = job->count > 0 && failure_detector_is_suspect(shuntd, charges[0]);
    shuntd->failure_detector->next = now + (suspects ? SESSION_BEAT : heartbeat_interval(shuntd));
    disk_submit(shuntd->heartbeat_disk, &job->job);
    return 0;
}

/* A file system that expels a node holds up what concerns the files of that one (the look at its heartbeat, the fence) for
 * longer than this daemon's own heartbeat, or those alone. */
int failure_detector_step(struct shuntd *shuntd)
{
    struct failure_detector *detector = shuntd->failure_detector;
    if (shuntd->session.count < 2 || shuntd->now < detector->next)
        return 0;
    if (!detector->looks)
        return failure_detector_look(shuntd, shuntd->now);
    detector->next = shuntd->now + heartbeat_interval(shuntd);
    heartbeat_note_stall(shuntd);
    return 0;
}
