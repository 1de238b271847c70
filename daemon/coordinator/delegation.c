/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/delegation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hook.h"
#include "rpc/peer_rpc.h"
#include "membership/route.h"
#include "ops/ops.h"

#define NAMES_MAX 10000 /* more are not read twice */

/* What its ruler does. */

static bool is_home(const struct shuntd *shuntd, uint16_t member)
{
    const struct session_member *one = session_find(&shuntd->session, member);
    bool has_shards = false;
    for (unsigned i = 0; i < RECORD_SHARDS && !has_shards; i++)
        has_shards = shuntd->route.home[i] == member;
    return one != NULL && one->home == SESSION_HOME && has_shards;
}

static bool has_anybody_left(const struct session *session)
{
    return session->count + 1 != session->next;
}

/* Where one daemon is home of everything, it is so of each directory anyway. */
bool whole_may_be(const struct shuntd *shuntd, const struct home_dir *dir, const struct rule_question *question, size_t names)
{
    return question != NULL && !(question->message.flags & MESSAGE_SPREAD) && dir->ruler->node_count == 0 &&
           !dir->ruler->spread && names <= NAMES_MAX && !route_is_sole(shuntd) && !has_anybody_left(&shuntd->session) &&
           is_home(shuntd, question->member);
}

int whole_recall(struct shuntd *shuntd, struct home_dir *dir, struct rule_question *question)
{
    struct home_ruler *ruler = dir->ruler;
    const struct message wanted = {.type = MESSAGE_WANTED, .dir[0] = dir->id, .child.birth = ruler->whole};
    HOOK("request-parked");
    ruler->busy = ruler->recalls = true;
    list_append(&ruler->waiting, &question->link);
    return ruler->nodes[0] == shuntd->me.number ? whole_wanted(shuntd, shuntd->me.number, dir->id, ruler->whole)
                                                : relay_message(shuntd, ruler->nodes[0], RELAY_NEWS, 0, &wanted);
}

void whole_forget(struct home_ruler *ruler)
{
    ruler->whole = 0;
    if (ruler->recalls)
        ruler->busy = ruler->recalls = false;
}

/* It is not given again: the next gift could have the same number. */
void whole_lose(struct home_ruler *ruler)
{
    whole_forget(ruler);
    ruler->loaded = false;
    ruler->spread = true;
}

int whole_given_back(struct shuntd *shuntd, struct rule_question *question)
{
    struct home_dir *dir = home_dir_find(shuntd->home, question->message.dir[0]);
    struct home_ruler *ruler = dir != NULL ? dir->ruler : NULL;
    const uint64_t number = question->message.child.birth;
    int code = rule_result(shuntd, question, 0);
    if (code != 0 || ruler == NULL || number == 0 || ruler->whole != number)
        return code;
    whole_lose(ruler);
    return ruler->busy ? 0 : rule_rest(shuntd, dir->id);
}

struct gone {
    uint16_t member;
    bool had_some;
};

static void note_gone(struct home_dir *dir, void *context)
{
    struct gone *gone = context;
    if (dir->ruler == NULL || dir->ruler->whole == 0 || dir->ruler->nodes[0] != gone->member)
        return;
    whole_lose(dir->ruler);
    gone->had_some = true;
}

int whole_gone(struct shuntd *shuntd, uint16_t member)
{
    struct gone gone = {.member = member};
    home_dirs_each(shuntd->home, note_gone, &gone);
    return gone.had_some ? rule_rest_all(shuntd) : 0;
}

/* What the daemon does whose it is. */

/* With its number; that of a gift that never was one, as well. */
static int give_back(struct shuntd *shuntd, struct dirid id, uint64_t number)
{
    const struct message given = {.type = MESSAGE_GIVEN, .dir[0] = id, .child.birth = number};
    return rule_ask(shuntd, &given, NULL, NULL);
}

static int forget_names(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->listed = 0;
    dir->complete = false;
    return index_del_names(shuntd->index, dir->id, NULL, NULL);
}

/* Names that were handed out in another epoch have not been taken; and a gift of that time may have been asked for by the
 * next ruler before it came. */
int whole_take(struct shuntd *shuntd, struct home_dir *dir, const struct message *answer, uint32_t epoch)
{
    const uint64_t number = answer->dir[1].ino, names = answer->dir[1].birth;
    if (number == 0)
        return 0;
    if (number == dir->whole)
        return dir->wanted ? -EAGAIN : 0;
    int code = epoch == shuntd->route.epoch ? home_list_begin(shuntd, dir, number) : -ESTALE;
    if (code == 0 && !dir->complete && dir->listed == names) {
        dir->listed = 0;
        dir->complete = true;
        dir->whole = number;
        dir->record.flags |= RECORD_WHOLE;
        home_list_end(dir);
        return 0;
    }
    if (code == 0)
        code = forget_names(shuntd, dir);
    if (code == 0 || code == -ESTALE)
        code = give_back(shuntd, dir->id, number);
    return code == 0 ? -EAGAIN : code;
}

/* Who waited for a name meanwhile may hold it by now. A listing that began when all names were here is told before they go. */
int whole_go_on(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    if (dir == NULL || !dir->wanted || (dir->held > 0 && !BROKEN("whole-unfinished")))
        return 0;
    const uint64_t number = dir->whole;
    int code = serve_forget(shuntd, dir);
    listen_count_loss(shuntd->listen);
    if (code == 0)
        code = forget_names(shuntd, dir);
    home_list_end(dir);
    if (route_of_dir(shuntd, id) != shuntd->me.number) /* who lists them now */
        home_leaves_close(&dir->share);
    dir->whole = 0;
    dir->wanted = false;
    dir->record.flags &= ~(uint32_t)RECORD_WHOLE;
    if (code == 0)
        code = home_dir_rest(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    return code == 0 ? give_back(shuntd, id, number) : code;
}

/* From now on nobody begins anything in it: LOAD waits (serve_load). What was begun comes to its end. */
static int want(struct shuntd *shuntd, struct home_dir *dir)
{
    int code = serve_forget(shuntd, dir);
    if (code == 0)
        code = home_await_all(shuntd->home, dir);
    dir->wanted = true;
    return code == 0 ? whole_go_on(shuntd, dir->id) : code;
}

/* The answer that gave it may have come for nobody; or it is still to come, and will be refused. Who ruled before has
 * told the next one. */
int whole_wanted(struct shuntd *shuntd, uint16_t member, struct dirid id, uint64_t number)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    if (member != route_of_dir(shuntd, id))
        return 0;
    if (dir != NULL && number != 0 && dir->whole == number)
        return dir->wanted ? 0 : want(shuntd, dir);
    int code = dir != NULL && dir->whole == 0 && !dir->complete ? forget_names(shuntd, dir) : 0;
    return code == 0 ? give_back(shuntd, id, number) : code;
}

struct leaving {
    struct dirid *dirs; /* NULL: they are only counted */
    size_t count;
    bool wanted;
};

static void note_whole(struct home_dir *dir, void *context)
{
    struct leaving *leaving = context;
    if (dir->whole == 0 || dir->wanted != leaving->wanted)
        return;
    if (leaving->dirs != NULL)
        leaving->dirs[leaving->count] = dir->id;
    leaving->count++;
}

static size_t count_whole(struct shuntd *shuntd, bool wanted)
{
    struct leaving leaving = {.wanted = wanted};
    home_dirs_each(shuntd->home, note_whole, &leaving);
    return leaving.count;
}

bool whole_has_any(struct shuntd *shuntd)
{
    return count_whole(shuntd, false) + count_whole(shuntd, true) > 0;
}

int whole_leave(struct shuntd *shuntd)
{
    struct leaving leaving = {.dirs = NULL};
    size_t count = count_whole(shuntd, false);
    int code = 0;
    if (count == 0)
        return 0;
    leaving.dirs = malloc(count * sizeof *leaving.dirs);
    if (leaving.dirs == NULL)
        return -ENOMEM;
    home_dirs_each(shuntd->home, note_whole, &leaving);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct home_dir *dir = home_dir_find(shuntd->home, leaving.dirs[i]);
        code = dir != NULL && dir->whole != 0 ? want(shuntd, dir) : 0;
    }
    free(leaving.dirs);
    return code;
}
