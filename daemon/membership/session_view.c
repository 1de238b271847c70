/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/session_view.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/rename_fence.h"
#include "disk/stall_watch.h"
#include "home/home.h"
#include "listen/listen.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/recovery.h"
#include "membership/remote_stall.h"
#include "membership/roles.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

#define WRITE_PAUSE CLOCK_SECOND /* before what could not be written is written again */

/* A file system that is full, or fails, may do so for long: said once. */
static void session_view_note(int *last, int code, const char *what)
{
    if (code != 0 && code != *last)
        log_warning("session: %s: %s", what, strerror(-code));
    *last = code;
}

void session_view_note_write(struct shuntd *shuntd, int code, const char *what)
{
    if (code == -ESTALE) /* somebody else's came first: that it was written is not said */
        return;
    session_view_note(&shuntd->write_failed, code, what);
    shuntd->next_write = code != 0 ? shuntd->now + WRITE_PAUSE : 0;
}

bool session_view_waits_to_write(const struct shuntd *shuntd)
{
    return shuntd->now < shuntd->next_write;
}

bool session_view_waits(const struct shuntd *shuntd)
{
    return operation_count(shuntd->home) > 0 || collective_is_under_way(shuntd) || peers_wait(shuntd->peers) ||
           homes_are_moving(shuntd);
}

/* A daemon that joined, and may be no member any more, may have left files in a branch that this daemon has not heard of. */
static int session_view_look_for_branches(struct shuntd *shuntd)
{
    size_t known = shuntd->root.branch_count;
    if (shuntd->session.next == shuntd->next_seen)
        return 0;
    int code = STALL_WATCHED(shuntd->stall_watch, union_root_look(&shuntd->root));
    for (size_t i = known; i < shuntd->root.branch_count && code == 0; i++)
        code = index_put_branch(shuntd->index, (uint16_t)(i + 1), shuntd->root.branches[i]);
    shuntd->next_seen = shuntd->session.next;
    return code;
}

/* A branch is known for good: its number stands in entries. */
static int session_view_add_branch(struct shuntd *shuntd, const struct session_member *member)
{
    if (shuntd->branch_of[member->number] != 0)
        return 0;
    int number = rpc_branch_number(shuntd, member->branch);
    if (number < 0)
        return number;
    shuntd->branch_of[member->number] = (uint16_t)number;
    return 0;
}

/* One without an address is not reached yet, and reaches nobody. Nor does this daemon before its own network is open: then it
 * publishes its address, and adopts all that have come meanwhile. */
static int session_view_add_member(struct shuntd *shuntd, const struct session_member *member)
{
    if (member->number == shuntd->me.number || member->address_size == 0)
        return 0;
    int code = session_view_add_branch(shuntd, member);
    return code == 0 && member->home != SESSION_LOST && peers_is_open(shuntd->peers)
               ? peers_add(shuntd->peers, member->number, member->since, member->address, member->address_size)
               : code;
}

/* Those of members that were lost have another name now; their numbers stay. */
static int session_view_follow_fences(struct shuntd *shuntd)
{
    char fenced[LAYOUT_BRANCH_MAX];
    int code = 0;
    for (uint32_t member = 1; member < shuntd->session.next && code == 0; member++) {
        uint16_t number = shuntd->branch_of[member];
        if (number == 0 || session_find(&shuntd->session, (uint16_t)member) != NULL)
            continue;
        shuntd->branch_of[member] = 0;
        const char *branch = shuntd->root.branches[number - 1];
        if (!STALL_WATCHED(shuntd->stall_watch, session_is_fenced(shuntd->root.path, branch)) ||
            !session_fenced_name(branch, fenced))
            continue;
        union_root_rename(&shuntd->root, number, fenced);
        code = index_put_branch(shuntd->index, number, fenced);
    }
    return code;
}

static int session_view_remove_members(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t number = 1; number < shuntd->session.next && code == 0; number++) {
        uint16_t member = (uint16_t)number;
        if (!peers_knows(shuntd->peers, member) || session_has(&shuntd->session, member))
            continue;
        code = collective_gone(shuntd, member);
        if (code == 0)
            code = delegation_member_gone(shuntd, member);
        if (code == 0)
            code = coordinator_member_gone(shuntd, member);
        rename_fence_gone(shuntd, member);
        if (code == 0)
            code = shuntd->membership_handlers->settle_member(shuntd, member);
        peers_remove(shuntd->peers, member);
    }
    return code;
}

/* Read once for a session: what becomes of the file later changes nothing for a daemon that has the key. */
static int session_view_own_key(struct shuntd *shuntd, uint8_t key[FRAME_KEY])
{
    int code = 0;
    if (shuntd->key_session != shuntd->session.id)
        code = STALL_WATCHED(shuntd->stall_watch, session_key(shuntd->root.path, &shuntd->session, shuntd->key));
    if (code == 0)
        shuntd->key_session = shuntd->session.id;
    memcpy(key, shuntd->key, FRAME_KEY);
    return code;
}

int session_view_adopt(struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    roles_keep(session, shuntd->parts);
    struct frame_self self = {
        .session = session->id, .epoch = session->epoch, .instance = shuntd->me.since, .member = shuntd->me.number};
    int code = session_view_own_key(shuntd, self.key);
    if (code != 0)
        return code;
    peers_set_self(shuntd->peers, &self);
    listen_set_keeps_names(shuntd->listen, shuntd->root.keeps_names && session->count > 1);
    /* A daemon that hands over what it has, and ends, waits until all that it said and was told is acknowledged. */
    peers_hasten(shuntd->peers, roles_are_leaving(session));
    code = session_view_look_for_branches(shuntd);
    for (size_t i = 0; i < session->count && code == 0; i++)
        code = session_view_add_member(shuntd, &session->members[i]);
    if (code == 0)
        code = homes_adopt(shuntd);
    if (code == 0)
        code = session_view_remove_members(shuntd);
    if (code == 0)
        code = session_view_follow_fences(shuntd);
    heartbeat_adopt(shuntd);
    shuntd->cut_off |= shuntd->me.number != 0 && !session_has(session, shuntd->me.number);
    return code == 0 ? recovery_members_gone(shuntd) : code;
}

static int session_view_read_in_force(const struct shuntd *shuntd, struct session *session)
{
    HOOK("session-read");
    return session_read(shuntd->root.path, session);
}

static int session_view_read(struct shuntd *shuntd, bool anyhow)
{
    struct session session;
    int code = STALL_WATCHED(shuntd->stall_watch, session_view_read_in_force(shuntd, &session));
    shuntd->cut_off |= code == 0 && session.id != shuntd->session.id;
    session_view_note(&shuntd->read_failed, code, "cannot be read"); /* the file system may be back with the next frame */
    if (code != 0 || session.id != shuntd->session.id || (session.epoch <= shuntd->session.epoch && !anyhow)) {
        session_finish(&session);
        return 0;
    }
    session_finish(&shuntd->session);
    shuntd->session = session;
    code = session_view_adopt(shuntd);
    return code;
}

int session_view_refresh(struct shuntd *shuntd)
{
    return session_view_read(shuntd, false);
}

int session_view_reread(struct shuntd *shuntd)
{
    return session_view_read(shuntd, true);
}

void session_view_leave(struct shuntd *shuntd)
{
    struct frame_self self = {.session = shuntd->session.id,
                              .epoch = shuntd->session.epoch + 1,
                              .instance = shuntd->me.since,
                              .member = shuntd->me.number};
    if (shuntd->session.count < 2 || session_key(shuntd->root.path, &shuntd->session, self.key) != 0)
        return;
    session_leave(shuntd->root.path, shuntd->session.id, shuntd->me.number);
    peers_set_self(shuntd->peers, &self);
    peers_flush(shuntd->peers);
}

/* The file system may fail for a while: then it is told with a later batch. */
static int session_view_revise(struct shuntd *shuntd)
{
    struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    size_t size = sizeof me->address;
    int code = me == NULL ? -ENOENT : peers_address(shuntd->peers, me->address, &size);
    if (code != 0)
        return code;
    me->address_size = (uint8_t)size;
    code = STALL_WATCHED(shuntd->stall_watch, session_revise(shuntd->root.path, &shuntd->session));
    if (code == 0)
        shuntd->me = *me;
    return code;
}

int session_view_publish_address(struct shuntd *shuntd)
{
    if (shuntd->me.address_size > 0 || !peers_is_open(shuntd->peers) || session_view_waits_to_write(shuntd))
        return 0;
    int code = session_view_revise(shuntd);
    while (code == -ESTALE) { /* somebody joined meanwhile */
        if ((code = session_view_refresh(shuntd)) != 0)
            return code;
        code = session_view_revise(shuntd);
    }
    session_view_note_write(shuntd, code, "the address of this daemon cannot be written");
    return code == 0 ? session_view_adopt(shuntd) : 0;
}

/* Coming: what is asked of a home here is waited for, since nothing else is to be done. */

static int session_view_pass(struct shuntd *shuntd)
{
    int code = session_view_refresh(shuntd);
    if (code == 0)
        code = rpc_receive_all(shuntd);
    peers_flush(shuntd->peers);
    return code;
}

/* A home may end meanwhile: then another one is to know. */
int session_view_join(struct shuntd *shuntd, uint64_t deadline)
{
    const uint64_t pulse = 50 * CLOCK_MILLISECOND, until = clock_monotonic() + deadline;
    const struct session_member *home = session_home(&shuntd->session);
    uint16_t told = 0;
    int code = 0;
    while (code == 0 && shuntd->stop == 0 && !shuntd->is_welcome && clock_monotonic() < until &&
           (home = session_home(&shuntd->session)) != NULL) {
        uint32_t rings = listen_rings(shuntd->listen);
        if (home->number != told)
            code = rpc_greet(shuntd, home->number);
        told = home->number;
        if (code == 0)
            code = session_view_pass(shuntd);
        if (code == 0 && !shuntd->is_welcome)
            listen_wait(shuntd->listen, rings, pulse);
    }
    if (code != 0 || shuntd->is_welcome || home == NULL)
        return code;
    return shuntd->stop != 0 ? -EINTR : -ETIMEDOUT;
}

int session_view_take_hello(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    return rpc_welcome(shuntd, member, remote_stall_told(shuntd));
}

int session_view_take_welcome(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    shuntd->is_welcome = true;
    remote_stall_hear(shuntd, member, item->client);
    return 0;
}
