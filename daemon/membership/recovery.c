/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/recovery.h"

#include <string.h>

#include "base/hook.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "home/home.h"
#include "home/route.h"
#include "membership/migration.h"
#include "membership/roles.h"
#include "membership/session_view.h"
#include "prefetch/prefetch.h"
#include "reply/answer_queue.h"
#include "rpc/home_rpc.h"
#include "rpc/receive.h"

/* What is under way in it goes on, in its mirrors: they are what they were as long as its marker is there. */
static void recovery_forget_dir(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    struct record_dir record = {.why = dir->record.why == RECORD_WHY_WATCHED ? RECORD_WHY_WATCHED : RECORD_WHY_NOT};
    if (dir->operations > 0) { /* else it may be gone now */
        record.flags = dir->record.flags & RECORD_MARKED;
        record.marker = dir->record.marker;
        memcpy(record.mirror, dir->record.mirror, sizeof record.mirror);
    }
    home_del_dir(shuntd->home, dir);
    dir->reports_idle = false; /* coordinators begin all again that waits for that */
    if (dir->coordinator != NULL) {
        coordinator_forget(dir->coordinator);
        dir->coordinator->node_count = 0; /* who still uses it asks for it again */
        list_move(&dir->coordinator->queued,
                  &dir->coordinator->awaiting_idle); /* nobody will say any more that a name is free */
        coordinator_let_go(dir);
    }
    home_dir_drop_but(shuntd->home, dir, &record);
}

/* A member that joined after the home died holds nothing, and says so, too; but no other tells it. A lost member
 * says nothing: until it is dropped, its processes may be at work. */
static void recovery_await_all(struct shuntd *shuntd)
{
    const struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    struct route *route = &shuntd->route;
    memset(route->unreported, 0, sizeof route->unreported);
    route->unreported_count = 0;
    for (size_t i = 0; i < shuntd->session.count && me != NULL && roles_is_home(me->home); i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member == me || member->address_size == 0 || BROKEN("held-untold"))
            continue;
        route->unreported[member->number] = true;
        route->unreported_count++;
    }
}

void recovery_forget(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    if (route->own > 0)
        log_warning("session: a daemon that was home of names is gone, so these names are read again");
    else /* it may have left in order before this one could take anything over */
        log_line("session: this daemon becomes a home after others have ended, so names are read again");
    memset(route->from, 0, sizeof route->from);
    memset(route->to, 0, sizeof route->to);
    home_drop_claims(shuntd->home);
    home_note_forgotten(shuntd->home);
    home_dirs_each(shuntd->home, recovery_forget_dir, shuntd);
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->home[i] = 0;
    route->recovery_epoch = route->epoch;
    shuntd->outdated_jobs = shuntd->trunk_jobs;
    recovery_await_all(shuntd);
}

static int recovery_tell_held(void *context, const struct operation *operation)
{
    return migration_send_claim(context, operation);
}

int recovery_tell_end(struct shuntd *shuntd)
{
    int code = 0;
    if (!shuntd->owes_end || (shuntd->outdated_jobs > 0 && !BROKEN("trunk-job-unawaited")))
        return 0;
    shuntd->owes_end = false;
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number != shuntd->me.number && roles_is_home(member->home))
            code = migration_send_end(shuntd, member->number);
    }
    return code;
}

struct telling {
    struct shuntd *shuntd;
    int code;
};

/* Its coordinator, be it another daemon by now, has all daemons know that new files of it stay in the trunk. */
static void recovery_tell_watched(struct home_dir *dir, void *context)
{
    struct telling *telling = context;
    const uint16_t coordinator = route_of_dir(&telling->shuntd->route, dir->id);
    if (telling->code == 0 && dir->record.why == RECORD_WHY_WATCHED && coordinator != telling->shuntd->me.number)
        telling->code = migration_send_record(telling->shuntd, dir, coordinator);
}

static int recovery_tell_all_watched(struct shuntd *shuntd)
{
    struct telling telling = {.shuntd = shuntd};
    home_dirs_each(shuntd->home, recovery_tell_watched, &telling);
    return telling.code;
}

static int recovery_tell_all_held(struct shuntd *shuntd)
{
    shuntd->owes_end = true;
    int code = BROKEN("held-untold") ? 0 : operation_each_claimed(shuntd->home, recovery_tell_held, shuntd);
    if (code == 0)
        code = recovery_tell_all_watched(shuntd);
    return code == 0 ? recovery_tell_end(shuntd) : code;
}

int recovery_report(struct shuntd *shuntd)
{
    int code = prefetch_forget(shuntd);
    if (code == 0)
        code = recovery_tell_all_held(shuntd);
    if (code == 0)
        code = rpc_receive_deferred(shuntd);
    if (code == 0)
        code = home_rpc_repeat(shuntd);
    if (code == 0)
        code = coordinator_resubmit(shuntd);
    if (code == 0 && !route_is_gathering(&shuntd->route))
        code = coordinator_resume_all(shuntd);
    return code == 0 ? shuntd->membership_handlers->resume_lists(shuntd) : code;
}

int recovery_members_gone(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t member = 1; member < shuntd->session.next && code == 0; member++)
        if (shuntd->route.unreported[member] && session_find(&shuntd->session, (uint16_t)member) == NULL)
            code = migration_arrived(shuntd, (uint16_t)member);
    return code;
}
