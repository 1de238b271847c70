/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/delegation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hook.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "home/route.h"
#include "reply/answer_queue.h"
#include "reply/reply.h"
#include "rpc/peer_rpc.h"

#define NAMES_MAX 10000 /* more are not read twice */

/* What its coordinator does. */

static bool delegation_is_home(const struct shuntd *shuntd, uint16_t member)
{
    const struct session_member *one = session_find(&shuntd->session, member);
    bool has_shards = false;
    for (unsigned i = 0; i < RECORD_SHARDS && !has_shards; i++)
        has_shards = shuntd->route.home[i] == member;
    return one != NULL && one->home == SESSION_HOME && has_shards;
}

static bool delegation_has_anybody_left(const struct session *session)
{
    return session->count + 1 != session->next;
}

/* Where one daemon is home of everything, it is so of each directory anyway. */
bool delegation_may_be(const struct shuntd *shuntd, const struct home_dir *dir, const struct coordinator_request *question,
                       size_t names)
{
    return question != NULL && !(question->message.flags & MESSAGE_SPREAD) && dir->coordinator->node_count == 0 &&
           !dir->coordinator->sharded && names <= NAMES_MAX && !route_is_sole(&shuntd->route) &&
           !delegation_has_anybody_left(&shuntd->session) && delegation_is_home(shuntd, question->member);
}

int delegation_recall(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    struct home_coordinator *coordinator = dir->coordinator;
    const struct message wanted = {.type = MESSAGE_RECALL, .dir = dir->id, .delegation.number = coordinator->delegation};
    HOOK("request-blocked");
    coordinator->in_request = coordinator->recalling = true;
    list_append(&coordinator->queued, &question->link);
    return coordinator->nodes[0] == shuntd->me.number
               ? delegation_recalled(shuntd, shuntd->me.number, dir->id, coordinator->delegation)
               : rpc_message(shuntd, coordinator->nodes[0], RPC_NOTIFY, 0, &wanted);
}

void delegation_forget(struct home_coordinator *coordinator)
{
    coordinator->delegation = 0;
    if (coordinator->recalling)
        coordinator->in_request = coordinator->recalling = false;
}

/* It is not delegated again: the next delegation could have the same number. */
void delegation_lose(struct home_coordinator *coordinator)
{
    delegation_forget(coordinator);
    coordinator->loaded = false;
    coordinator->sharded = true;
}

int delegation_returned(struct shuntd *shuntd, struct coordinator_request *question)
{
    struct home_dir *dir = home_dir_find(shuntd->home, question->message.dir);
    struct home_coordinator *coordinator = dir != NULL ? dir->coordinator : NULL;
    const uint64_t number = question->message.delegation.number;
    int code = coordinator_result(shuntd, question, 0);
    if (code != 0 || coordinator == NULL || number == 0 || coordinator->delegation != number)
        return code;
    delegation_lose(coordinator);
    return coordinator->in_request ? 0 : coordinator_resume(shuntd, dir->id);
}

struct gone {
    uint16_t member;
    bool had_some;
};

static void delegation_note_gone(struct home_dir *dir, void *context)
{
    struct gone *gone = context;
    if (dir->coordinator == NULL || dir->coordinator->delegation == 0 || dir->coordinator->nodes[0] != gone->member)
        return;
    delegation_lose(dir->coordinator);
    gone->had_some = true;
}

int delegation_member_gone(struct shuntd *shuntd, uint16_t member)
{
    struct gone gone = {.member = member};
    home_dirs_each(shuntd->home, delegation_note_gone, &gone);
    return gone.had_some ? coordinator_resume_all(shuntd) : 0;
}

/* What the daemon does whose it is. */

/* With its number; also that of a delegation that was refused. */
static int delegation_give_back(struct shuntd *shuntd, struct dirid id, uint64_t number)
{
    const struct message given = {.type = MESSAGE_RETURN, .dir = id, .delegation.number = number};
    return coordinator_submit(shuntd, &given, NULL, NULL);
}

static int delegation_forget_names(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->listed = 0;
    dir->list_result = 0;
    dir->complete = false;
    return home_del_entries(shuntd->home, dir->id, NULL, NULL);
}

/* Names that were handed out in another epoch have not been taken; and a delegation of that time may have been asked for by the
 * next coordinator before it came. */
int delegation_accept(struct shuntd *shuntd, struct home_dir *dir, const struct message *answer, uint32_t epoch)
{
    const uint64_t number = answer->coordinator_answer.delegation, names = answer->coordinator_answer.names;
    if (number == 0)
        return 0;
    if (number == dir->delegation)
        return dir->recalled ? -EAGAIN : 0;
    int code = epoch == shuntd->route.epoch ? home_list_begin(shuntd->home, dir, number) : -ESTALE;
    if (code == 0 && (code = home_unspill(shuntd->home, dir)) == -ENOSPC) {
        dir->list_result = code;
        code = 0;
    }
    if (code == 0 && !dir->complete && dir->listed == names && dir->list_result == 0) {
        dir->listed = 0;
        dir->complete = true;
        dir->delegation = number;
        dir->record.flags |= RECORD_DELEGATED;
        home_list_end(dir);
        return 0;
    }
    if (code == 0)
        code = delegation_forget_names(shuntd, dir);
    if (code == 0 || code == -ESTALE)
        code = delegation_give_back(shuntd, dir->id, number);
    return code == 0 ? -EAGAIN : code;
}

/* An operation that waited for a name may hold it by now. A listing that began when all names were here is told before they go.
 */
int delegation_continue(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    if (dir == NULL || !dir->recalled || (dir->claims > 0 && !BROKEN("whole-unfinished")))
        return 0;
    const uint64_t number = dir->delegation;
    int code = reply_forget_dir(shuntd, dir);
    listen_count_loss(shuntd->listen);
    if (code == 0)
        code = delegation_forget_names(shuntd, dir);
    home_list_end(dir);
    if (route_of_dir(&shuntd->route, id) != shuntd->me.number) /* another daemon lists them now */
        home_leaves_retire(&dir->leaves);
    dir->delegation = 0;
    dir->recalled = false;
    dir->record.flags &= ~(uint32_t)RECORD_DELEGATED;
    if (code == 0)
        code = home_dir_wake(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    return code == 0 ? delegation_give_back(shuntd, id, number) : code;
}

/* From now on nobody begins anything in it: LOAD waits (load_request). What was begun comes to its end. */
int delegation_give_up(struct shuntd *shuntd, struct home_dir *dir)
{
    int code = reply_forget_dir(shuntd, dir);
    if (code == 0)
        code = home_await_all(shuntd->home, dir);
    dir->recalled = true;
    return code == 0 ? delegation_continue(shuntd, dir->id) : code;
}

/* The answer that delegated it may have come too late, or is still to come and will be refused. The former coordinator has
 * told the next one. */
int delegation_recalled(struct shuntd *shuntd, uint16_t member, struct dirid id, uint64_t number)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    if (member != route_of_dir(&shuntd->route, id))
        return 0;
    if (dir != NULL && number != 0 && dir->delegation == number)
        return dir->recalled ? 0 : delegation_give_up(shuntd, dir);
    int code = dir != NULL && dir->delegation == 0 && !dir->complete ? delegation_forget_names(shuntd, dir) : 0;
    return code == 0 ? delegation_give_back(shuntd, id, number) : code;
}

struct leaving {
    struct dirid *dirs; /* NULL: they are only counted */
    size_t count;
    bool wanted;
};

static void delegation_note_whole(struct home_dir *dir, void *context)
{
    struct leaving *leaving = context;
    if (dir->delegation == 0 || dir->recalled != leaving->wanted)
        return;
    if (leaving->dirs != NULL)
        leaving->dirs[leaving->count] = dir->id;
    leaving->count++;
}

static size_t delegation_count_whole(struct shuntd *shuntd, bool wanted)
{
    struct leaving leaving = {.wanted = wanted};
    home_dirs_each(shuntd->home, delegation_note_whole, &leaving);
    return leaving.count;
}

bool delegation_has_any(struct shuntd *shuntd)
{
    return delegation_count_whole(shuntd, false) + delegation_count_whole(shuntd, true) > 0;
}

int delegation_leave(struct shuntd *shuntd)
{
    struct leaving leaving = {.dirs = NULL};
    size_t count = delegation_count_whole(shuntd, false);
    int code = 0;
    if (count == 0)
        return 0;
    leaving.dirs = malloc(count * sizeof *leaving.dirs);
    if (leaving.dirs == NULL)
        return -ENOMEM;
    home_dirs_each(shuntd->home, delegation_note_whole, &leaving);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct home_dir *dir = home_dir_find(shuntd->home, leaving.dirs[i]);
        code = dir != NULL && dir->delegation != 0 ? delegation_give_up(shuntd, dir) : 0;
    }
    free(leaving.dirs);
    return code;
}
