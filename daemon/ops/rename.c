/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RENAME and RENAMED: two names, held at once.
 *
 * The file goes to the place of what it replaces, whoever's branch that is: one rename of the file system,
 * and no moment with two copies. Onto no name it stays in its leaf if the directory stays the same and nobody
 * waits for its events, else it goes where births of the other directory go; a file of the trunk stays in the
 * trunk. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "rpc/collective.h"
#include "coordinator/rename_fence.h"
#include "membership/route.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"

static struct home_dir *both_known(struct shuntd *shuntd, const struct listen_request *request, struct home_dir **to,
                                   struct message *answer, int *how)
{
    struct home_dir *from = serve_dir(shuntd, request, 0, answer, how);
    *to = from != NULL ? serve_dir(shuntd, request, 1, answer, how) : NULL;
    return *to != NULL ? from : NULL;
}

static struct flight *busy(struct shuntd *shuntd, const struct message *message)
{
    struct flight *flight = flight_find(shuntd->home, message->dir[0], message->name[0], message->name_length[0]);
    return flight != NULL ? flight : flight_find(shuntd->home, message->dir[1], message->name[1], message->name_length[1]);
}

static bool is_exchange(const struct flight *flight)
{
    return (flight->flags & MESSAGE_EXCHANGE) != 0;
}

static bool is_same_name(const struct message *m)
{
    return dirid_equal(m->dir[0], m->dir[1]) && m->name_length[0] == m->name_length[1] &&
           memcmp(m->name[0], m->name[1], m->name_length[0]) == 0;
}

/* Two names are held in one order, so that renames that cross do not wait for each other. */
static bool is_before(const struct flight *a, const struct flight *b)
{
    return record_order(a->dir->id, a->name, a->length, b->dir->id, b->name, b->length) < 0;
}

static int refuse(struct shuntd *shuntd, struct flight *flight, int result)
{
    int code = serve_tell_result(shuntd, flight, result);
    return code == 0 ? serve_release(shuntd, flight) : code;
}

/* Why nothing is to be done; 0: something is. */
static int reason(const struct flight *from, const struct flight *to, uint16_t flags)
{
    if (!from->had_before || (!to->had_before && (flags & MESSAGE_EXCHANGE)))
        return MESSAGE_ABSENT;
    if (to->had_before && (flags & MESSAGE_NOREPLACE))
        return -EEXIST;
    return to->had_before && from->before.ino == to->before.ino ? MESSAGE_SAME : 0;
}

/* Where the old name's file will be; `to->place` is where births of its directory go now. */
static void choose(const struct flight *from, struct flight *to, uint16_t flags)
{
    struct record_entry births = to->place;
    to->place = from->before;
    to->place.branch = 0;
    to->place.leaf = 0;
    if (to->had_before && !BROKEN("victims-place"))
        to->place = to->before;
    else if (from->dir == to->dir && to->dir->record.why != RECORD_WHY_WATCHED)
        to->place = from->before;
    else if (from->before.branch != 0 && !(flags & MESSAGE_TRUNK)) {
        to->place.branch = births.branch;
        to->place.leaf = births.leaf;
    }
}

static int tell(struct shuntd *shuntd, const struct flight *from, const struct flight *to)
{
    char places[2][SERVE_PLACE_MAX];
    struct message answer = {
        .type = MESSAGE_ANSWER, .result = to->had_before ? MESSAGE_EXISTS : 0, .entry = {from->before, to->place}};
    shuntd->counts.renames++;
    serve_place(shuntd, from->dir, &from->before, places[0], &answer, 0);
    serve_place(shuntd, to->dir, &to->place, places[1], &answer, 1);
    return serve_reply(shuntd, from->client, from->lane, from->tag, &answer);
}

static int give_leave(struct shuntd *shuntd, struct flight *from)
{
    return tell(shuntd, from, from->partner);
}

static bool moves_directory(const struct flight *from, const struct flight *to)
{
    return from->before.type == DT_DIR || (to->had_before && to->before.type == DT_DIR);
}

static int marked(struct shuntd *shuntd, struct flight *flight, const struct name_answer *unused)
{
    flight->marked = true;
    if (!flight->partner->marked)
        return 0;
    struct flight *from = flight->kind == FLIGHT_FROM ? flight : flight->partner, *to = from->partner;
    int code = from->before.branch != 0 ? flight_touch(shuntd, from) : 0;
    if (code == 0 && to->place.branch != 0)
        code = flight_touch(shuntd, to);
    if (code == 0 && moves_directory(from, to))
        return moving_begin(shuntd, from, give_leave);
    return code == 0 ? give_leave(shuntd, from) : code;
}

/* Readers meet the old name as dying and a new one as pending. So is a name that is replaced, or exchanged,
 * but in its old place: there is a file there at every moment, and which one it is, is to be looked at. */
static int mark(struct shuntd *shuntd, struct flight *from, struct flight *to)
{
    struct record_entry dying = from->before, pending = to->place;
    dying.state = is_exchange(from) ? RECORD_PENDING : RECORD_DYING;
    pending.state = RECORD_PENDING;
    if (!to->had_before) {
        pending.type = from->before.type;
        pending.ino = 0;
    }
    uint64_t id = to->id;
    int code = serve_ask(shuntd, from, NAME_MARK, 0, &dying, marked);
    return code == 0 && flight_by_id(shuntd->home, id) != NULL /* else both were released */
               ? serve_ask(shuntd, to, NAME_MARK, 0, &pending, marked)
               : code;
}

static int both_held(struct shuntd *shuntd, struct flight *from, struct flight *to)
{
    int why_not = reason(from, to, from->flags);
    if (why_not != 0)
        return refuse(shuntd, from, why_not);
    if (to->place.branch != 0 && to->lost != to->dir->share.lost)
        return serve_restart(shuntd, from); /* the leaf went meanwhile */
    from->place = from->before;
    choose(from, to, from->flags);
    return mark(shuntd, from, to);
}

static int held(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    struct flight *partner = flight->partner;
    if (answer->result < 0)
        return refuse(shuntd, flight->kind == FLIGHT_FROM ? flight : partner, answer->result);
    if (!partner->held)
        return serve_ask(shuntd, partner, NAME_HOLD, NAME_ANYHOW, NULL, held);
    return flight->kind == FLIGHT_FROM ? both_held(shuntd, flight, partner) : both_held(shuntd, partner, flight);
}

static struct flight *begin(struct shuntd *shuntd, enum flight_kind kind, const struct listen_request *request,
                            struct home_dir *dir, int i)
{
    const struct message *message = &request->message;
    return flight_begin(shuntd, kind, dir, message->name[i], message->name_length[i], request);
}

static int hold(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dirs[2],
                const struct record_entry *births)
{
    struct flight *from = begin(shuntd, FLIGHT_FROM, request, dirs[0], 0);
    struct flight *to = from != NULL ? begin(shuntd, FLIGHT_TO, request, dirs[1], 1) : NULL;
    if (to == NULL)
        return -ENOMEM;
    from->partner = to;
    to->partner = from;
    to->place = *births;
    to->lost = dirs[1]->share.lost;
    return serve_ask(shuntd, is_before(from, to) ? from : to, NAME_HOLD, NAME_ANYHOW, NULL, held);
}

/* As far as this index knows: where the old name's file is in the trunk, or a new name is there, none is needed. */
static bool may_need_room(struct shuntd *shuntd, const struct home_dir *dir, const struct message *m)
{
    struct record_entry from, to;
    int old = index_get_entry(shuntd->index, m->dir[0], m->name[0], m->name_length[0], &from);
    int new = index_get_entry(shuntd->index, m->dir[1], m->name[1], m->name_length[1], &to);
    uint16_t home = route_of_name(shuntd, m->dir[0], m->name[0], m->name_length[0]);
    bool elsewhere = dir->whole == 0 && home != shuntd->me.number;
    return new == -ENOENT && (old == 0 ? from.branch != 0 : elsewhere);
}

/* A file in a branch may go to where births of the other directory go: a leaf for it is made before any name
 * is held. */
static int find_room(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dirs[2],
                     struct record_entry *births)
{
    const struct message *message = &request->message;
    if (dirs[0] == dirs[1] || !(dirs[0]->record.flags & RECORD_MARKED) || (message->flags & MESSAGE_TRUNK) ||
        !may_need_room(shuntd, dirs[0], message))
        return 0;
    return serve_choose(shuntd, dirs[1], message->name[1], message->name_length[1], request->client, births);
}

static int is_itself(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    bool refused = answer->result == MESSAGE_EXISTS && (flight->flags & MESSAGE_NOREPLACE);
    return refuse(shuntd, flight, refused ? -EEXIST : answer->result == MESSAGE_EXISTS ? MESSAGE_SAME : MESSAGE_ABSENT);
}

static int onto_itself(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir)
{
    struct flight *flight = begin(shuntd, FLIGHT_LOOKUP, request, dir, 0);
    int code = flight != NULL ? serve_ask(shuntd, flight, NAME_LOOKUP, 0, NULL, is_itself) : -ENOMEM;
    return code == 0 ? SERVE_SILENT : code;
}

int serve_rename(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct record_entry births = {0};
    struct home_dir *dirs[2];
    int how;
    dirs[0] = both_known(shuntd, request, &dirs[1], answer, &how);
    if (dirs[0] == NULL)
        return how;
    struct flight *flight = busy(shuntd, &request->message);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    if (is_same_name(&request->message))
        return onto_itself(shuntd, request, dirs[0]);
    int code = find_room(shuntd, request, dirs, &births);
    if (code == -EAGAIN)
        return serve_park(shuntd, &dirs[1]->waiting, request);
    if (code == 0)
        code = hold(shuntd, request, dirs, &births);
    return code == 0 ? SERVE_SILENT : code;
}

static void path_of(const struct flight *flight, char to[PATH_MAX])
{
    const char *parent = strcmp(flight->dir->path, ".") == 0 ? "" : flight->dir->path;
    snprintf(to, PATH_MAX, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", flight->length, flight->name);
}

static int moved_directory(struct shuntd *shuntd, const struct flight *from, const struct flight *to)
{
    char old_path[PATH_MAX], new_path[PATH_MAX];
    path_of(from, old_path);
    path_of(to, new_path);
    return cast_moved(shuntd, old_path, new_path);
}

/* What is known of the places of directories, in three steps: the second must not meet the first's. */
static int exchanged_directories(struct shuntd *shuntd, const struct flight *from, const struct flight *to)
{
    static const char aside[] = "//"; /* no place has that name */
    char old_path[PATH_MAX], new_path[PATH_MAX];
    path_of(from, old_path);
    path_of(to, new_path);
    int code = cast_moved(shuntd, old_path, aside);
    if (code == 0)
        code = cast_moved(shuntd, new_path, old_path);
    return code == 0 ? cast_moved(shuntd, aside, new_path) : code;
}

/* Place stays with name; what lies there has changed hands. */
static int exchanged(struct shuntd *shuntd, struct flight *from, struct flight *to)
{
    struct record_entry first = from->before, second = to->before;
    first.type = to->before.type;
    first.ino = to->before.ino;
    second.type = from->before.type;
    second.ino = from->before.ino;
    int code = first.type == DT_DIR || second.type == DT_DIR ? exchanged_directories(shuntd, from, to) : 0;
    from->before = first;
    to->before = second;
    from->touch = to->touch = 0; /* both have changed */
    if (code == 0)
        code = serve_ended_badly(shuntd, from);
    return code == 0 ? serve_ended_badly(shuntd, to) : code;
}

int serve_ended_pair(struct shuntd *shuntd, struct flight *from, struct flight *to, const struct message *renamed)
{
    struct record_entry moved = from->before;
    int code = moving_end(shuntd, from);
    from->partner = to->partner = NULL;
    if (code != 0)
        return code;
    if (renamed->result == 0 && is_exchange(from))
        return exchanged(shuntd, from, to);
    if (renamed->result != 0) {
        code = serve_ended_badly(shuntd, from);
        return code == 0 ? serve_ended_badly(shuntd, to) : code;
    }
    if (moved.type == DT_DIR) {
        code = moved_directory(shuntd, from, to);
        if (code == 0 && renamed->child.ino != 0)
            code = rule_drop(shuntd, renamed->child);
        if (code != 0)
            return code;
    }
    code = serve_ended_well(shuntd, from, &moved, (struct dirid){0, 0});
    return code == 0 ? serve_ended_well(shuntd, to, &moved, (struct dirid){0, 0}) : code;
}

int serve_renamed(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *m = &request->message;
    struct flight *from = flight_of(shuntd->home, m->dir[0], m->name[0], m->name_length[0], request->client);
    if (from == NULL || from->kind != FLIGHT_FROM || from->partner == NULL || flight_is_asking(from) ||
        flight_is_asking(from->partner))
        return SERVE_SILENT;
    int code = serve_ended_pair(shuntd, from, from->partner, m);
    return code == 0 ? SERVE_SILENT : code;
}
