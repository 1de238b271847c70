/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/recovery.h"

#include <string.h>

#include "base/hook.h"
#include "base/log.h"
#include "prefetch/prefetch.h"
#include "membership/migration.h"
#include "membership/roles.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"

static bool is_gone(const struct shuntd *shuntd, uint16_t member)
{
    return member != 0 && !session_has(&shuntd->session, member);
}

/* A home is no member any more, or one that was to hand something over and has not. */
bool anew_is_due(const struct shuntd *shuntd)
{
    const struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (is_gone(shuntd, route->home[i]) || is_gone(shuntd, route->from[i]))
            return true;
    return false;
}

/* What is under way in it goes on, in its mirrors: they are what they were as long as its marker is there. */
static void forget(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    struct record_dir record = {.flags = dir->record.flags & RECORD_MARKED, .marker = dir->record.marker};
    memcpy(record.mirror, dir->record.mirror, sizeof record.mirror);
    index_del_dir(shuntd->index, dir->id);
    if (dir->ruler != NULL) {
        rule_forget(dir->ruler);
        list_move(&dir->ruler->waiting, &dir->ruler->sealing); /* nobody will say any more that a name is free */
    }
    bool stays = dir->flights > 0; /* else it may be gone now */
    home_dir_drop(shuntd->home, dir);
    if (stays)
        dir->record = record;
}

/* Who joined later than the home died holds nothing, and says so, too; but nobody else tells him. Who is lost
 * says nothing: until he is dropped, his processes may be at work. */
static void await_all(struct shuntd *shuntd)
{
    const struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    struct route *route = &shuntd->route;
    memset(route->untold, 0, sizeof route->untold);
    route->untold_count = 0;
    for (size_t i = 0; i < shuntd->session.count && me != NULL && parts_is_home(me->home); i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member == me || member->address_size == 0 || BROKEN("held-untold"))
            continue;
        route->untold[member->number] = true;
        route->untold_count++;
    }
}

void anew_forget(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    log_line("a daemon that was home of names is gone: they are read again");
    memset(route->from, 0, sizeof route->from);
    memset(route->to, 0, sizeof route->to);
    home_let_go(shuntd->home);
    home_dirs_each(shuntd->home, forget, shuntd);
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->home[i] = 0;
    route->anew = route->epoch;
    await_all(shuntd);
}

static int tell_held(void *context, const struct flight *flight)
{
    return move_tell_held(context, flight);
}

static int tell_all_held(struct shuntd *shuntd)
{
    int code = BROKEN("held-untold") ? 0 : flight_each_held(shuntd->home, tell_held, shuntd);
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number != shuntd->me.number && parts_is_home(member->home))
            code = move_tell_end(shuntd, member->number);
    }
    return code;
}

int anew_tell(struct shuntd *shuntd)
{
    int code = ahead_forget(shuntd);
    if (code == 0)
        code = tell_all_held(shuntd);
    if (code == 0)
        code = move_take_kept(shuntd);
    if (code == 0)
        code = serve_ask_again(shuntd);
    if (code == 0)
        code = rule_ask_again(shuntd);
    if (code == 0 && !move_is_gathering(shuntd))
        code = rule_rest_all(shuntd);
    return code == 0 ? list_again(shuntd) : code;
}

int anew_gone(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t member = 1; member < shuntd->session.next && code == 0; member++)
        if (shuntd->route.untold[member] && session_find(&shuntd->session, (uint16_t)member) == NULL)
            code = move_has_come(shuntd, (uint16_t)member);
    return code;
}
