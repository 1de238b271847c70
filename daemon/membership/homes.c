/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/homes.h"

#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/log.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "disk/stall_watch.h"
#include "home/home.h"
#include "home/route.h"
#include "membership/migration.h"
#include "membership/recovery.h"
#include "membership/roles.h"
#include "membership/session_view.h"
#include "peer/peers.h"
#include "rpc/collective.h"

static void homes_count_own(struct route *route, uint16_t me)
{
    route->own = 0;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->own += route->home[i] == me;
}

void homes_found(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->home[i] = shuntd->me.number;
    homes_count_own(route, shuntd->me.number);
    route->epoch = (uint32_t)shuntd->session.moved;
    route->dirty = true;
}

/* A shard whose old home is no member any more has nothing to be waited for: its directories are read again.
 */
static void homes_assign(struct shuntd *shuntd, uint32_t shard, uint16_t next, uint16_t old)
{
    struct route *route = &shuntd->route;
    uint16_t me = shuntd->me.number;
    if (route->home[shard] == me && next != me)
        route->to[shard] = next;
    if (next == me && route->home[shard] != me && old != 0 && old != me)
        route->from[shard] = old;
    route->home[shard] = next;
}

static void homes_reassign(struct shuntd *shuntd)
{
    uint16_t now[SESSION_MEMBERS_MAX], before[SESSION_MEMBERS_MAX];
    size_t count = roles_now(&shuntd->session, now);
    size_t old_count = roles_before(&shuntd->session, before);
    bool moving = roles_are_moving(&shuntd->session);
    struct route *route = &shuntd->route;
    for (uint32_t i = 0; i < RECORD_SHARDS && count > 0; i++)
        homes_assign(shuntd, i, route_rendezvous(i, now, count),
                     moving && old_count > 0 ? route_rendezvous(i, before, old_count) : 0);
    homes_count_own(route, shuntd->me.number);
    route->missing = route->unreported_count;
    route->hands_over = false;
    for (unsigned i = 0; i < RECORD_SHARDS; i++) {
        route->missing += route->from[i] != 0;
        route->hands_over |= route->to[i] != 0;
    }
}

/* A directory that is being loaded is loaded again: its coordinator finds the homes changed. */
static void homes_forget_listed(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->complete || dir->listed + dir->expected == 0)
        return;
    home_unlist(shuntd->home, dir);
    home_dir_wake(shuntd->home, dir);
}

int homes_adopt(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    route->settled = false;
    if ((uint32_t)shuntd->session.moved == route->epoch)
        return 0;
    route->epoch = (uint32_t)shuntd->session.moved;
    shuntd->moved = false; /* that was another move */
    bool recovers = roles_begin_recovery(&shuntd->session);
    if (recovers)
        recovery_forget(shuntd);
    homes_reassign(shuntd);
    home_dirs_each(shuntd->home, homes_forget_listed, shuntd);
    homes_publish_losses(shuntd);
    return recovers ? recovery_report(shuntd) : 0;
}

/* The end of a move. */

static bool homes_has_done_its_part(const struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    if (shuntd->route.hands_over || shuntd->route.missing > 0)
        return false;
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home == SESSION_GOING && !peers_is_idle(shuntd->peers, session->members[i].number))
            return false;
    return true;
}

int homes_part_moved(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    if (message->epoch != shuntd->route.epoch || homes_has_done_its_part(shuntd))
        return 0;
    collective_wait_on(collective, &shuntd->checks);
    return COLLECTIVE_LATER;
}

/* Publishes what homes are from now on; an epoch of somebody else's came first: it is looked at, and this
 * again. What could not be written is not so here either: the file system may fail for a while, and let nothing be read. */
static int homes_publish_epoch(struct shuntd *shuntd, bool moves)
{
    uint64_t before = shuntd->session.moved;
    shuntd->route.settled = false;
    if (moves)
        shuntd->session.moved = shuntd->session.epoch + 1;
    int code = STALL_WATCHED(shuntd->stall_watch, session_revise(shuntd->root.path, &shuntd->session));
    session_view_note_write(shuntd, code, "the homes of names cannot be written");
    if (code == 0)
        return session_view_adopt(shuntd);
    shuntd->session.moved = before;
    roles_restore(&shuntd->session, shuntd->parts);
    return session_view_reread(shuntd);
}

static int homes_all_have_moved(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    shuntd->checking = false;
    if (end->result == 0 && (uint32_t)shuntd->session.moved == shuntd->checked)
        shuntd->moved = true; /* published with the next step, outside of what called this */
    return 0;
}

int homes_lose(struct shuntd *shuntd)
{
    roles_set_recovery(&shuntd->session);
    return homes_publish_epoch(shuntd, true);
}

static int homes_check(struct shuntd *shuntd)
{
    const struct message moved_on = {.type = MESSAGE_HAS_MOVED, .epoch = shuntd->route.epoch};
    if (shuntd->checking)
        return 0;
    shuntd->checking = true;
    shuntd->checked = shuntd->route.epoch;
    return collective_begin(shuntd, &moved_on, NULL, homes_all_have_moved, NULL);
}

/* When all homes have gone, and this daemon came too late to take over from them, what was in their indexes
 * is read again from the file system. */
static bool homes_must_begin(const struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home != SESSION_GUEST ||
            (session->members[i].address_size > 0 && session->members[i].number < shuntd->me.number))
            return false;
    return shuntd->stop == 0;
}

static int homes_lead(struct shuntd *shuntd)
{
    if (route_lacks_home(&shuntd->route,
                         &shuntd->session)) { /* also in the middle of a move, which would not come to its end */
        roles_set_recovery(&shuntd->session);
        return homes_publish_epoch(shuntd, true);
    }
    if (roles_are_moving(&shuntd->session) && !shuntd->moved)
        return homes_check(shuntd);
    if (shuntd->moved) {
        shuntd->moved = false;
        roles_finish(&shuntd->session);
        return homes_publish_epoch(shuntd, false);
    }
    if (!BROKEN("guests-stay") && roles_change(&shuntd->session))
        return homes_publish_epoch(shuntd, true);
    shuntd->route.settled = true;
    return 0;
}

static bool homes_is_under_way(const struct shuntd *shuntd)
{
    return shuntd->owes_end || shuntd->route.hands_over || shuntd->route.missing > 0 || shuntd->checking || shuntd->moved ||
           !list_empty(&shuntd->checks);
}

/* What is to be found out of all members, or all shards, is not found out with each batch. */
static bool homes_is_settled(const struct shuntd *shuntd)
{
    return shuntd->route.settled && shuntd->stop == 0 && !homes_is_under_way(shuntd);
}

/* A lone member has nothing to lead, but for the end of what began when there were more. */
static bool homes_has_nothing_to_lead(const struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    return shuntd->me.address_size == 0 || (session->count < 2 && roles_first(session) != 0 && !roles_are_moving(session));
}

int homes_step(struct shuntd *shuntd)
{
    if (homes_is_settled(shuntd))
        return 0;
    int code = recovery_tell_end(shuntd);
    if (code == 0 && shuntd->route.hands_over)
        code = migration_hand_over(shuntd);
    if (code == 0 && homes_has_done_its_part(shuntd))
        home_collectives_ready(shuntd->home, &shuntd->checks);
    if (code != 0 || homes_has_nothing_to_lead(shuntd) || session_view_waits_to_write(shuntd))
        return code;
    uint16_t first = roles_first(&shuntd->session);
    if (first == 0)
        code = session_view_refresh(shuntd);
    if (first == shuntd->me.number)
        return homes_lead(shuntd);
    if (code == 0 && first == 0 && homes_must_begin(shuntd)) {
        roles_set_recovery(&shuntd->session);
        return homes_publish_epoch(shuntd, true);
    }
    shuntd->route.settled = code == 0 && first != 0 && !roles_are_moving(&shuntd->session);
    return code;
}

bool homes_are_moving(const struct shuntd *shuntd)
{
    return homes_is_under_way(shuntd) ||
           (!shuntd->route.settled && (roles_first(&shuntd->session) == 0 || roles_are_moving(&shuntd->session)));
}

bool homes_are_due(const struct shuntd *shuntd)
{
    return shuntd->moved && shuntd->me.address_size > 0 && roles_first(&shuntd->session) == shuntd->me.number &&
           !session_view_waits_to_write(shuntd);
}

/* What processes of this node may take from the index: "absent" of names in these shards. */

void homes_publish_losses(struct shuntd *shuntd)
{
    uint64_t homes[RECORD_SHARDS / 64] = {0};
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route_is_here(&shuntd->route, shuntd->me.number, i))
            homes[i / 64] |= 1ull << (i % 64);
    listen_set_homes(shuntd->listen, homes);
    if (!route_is_sole(&shuntd->route)) /* other nodes may change directories in their mirrors */
        listen_set_redirected(shuntd->listen);
}

void homes_publish(struct shuntd *shuntd)
{
    if (!shuntd->route.dirty)
        return;
    shuntd->route.dirty = false;
    homes_publish_losses(shuntd);
}

/* Leaving. */

static bool homes_is_alone(const struct shuntd *shuntd)
{
    return shuntd->session.count < 2 || shuntd->me.address_size == 0;
}

bool homes_may_leave(struct shuntd *shuntd)
{
    struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    if (me == NULL || homes_is_alone(shuntd))
        return true;
    if (roles_have_lost(&shuntd->session)) /* somebody is to fence them */
        return false;
    if (me->home == SESSION_GUEST || me->home == SESSION_GONE)
        return operation_count(shuntd->home) == 0 && !collective_is_under_way(shuntd) && !peers_wait(shuntd->peers);
    if (me->home == SESSION_HOME && !delegation_has_any(shuntd) && !session_view_waits_to_write(shuntd)) {
        me->home = SESSION_LEAVING;
        homes_publish_epoch(shuntd, false);
    }
    return false;
}
