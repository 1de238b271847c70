/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RENAME and RENAMED: two names, held at once.
 *
 * The file goes to the place of what it replaces, whichever branch that is in: one rename of the file system,
 * and no moment with two copies. Onto no name it stays in its leaf if the directory stays the same and nobody
 * waits for its events, else it goes where creates of the other directory go; a file of the trunk stays in the
 * trunk. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "coordinator/placement.h"
#include "coordinator/rename_fence.h"
#include "home/home.h"
#include "home/route.h"
#include "ops/completion.h"
#include "ops/ops.h"
#include "prefetch/prefetch.h"
#include "reply/reply.h"
#include "rpc/home_rpc.h"

static struct home_dir *rename_both_known(struct shuntd *shuntd, const struct listen_request *request, struct home_dir **to,
                                          struct message *answer, int *how)
{
    struct home_dir *from = reply_dir(shuntd, request, 0, answer, how);
    *to = from != NULL ? reply_dir(shuntd, request, 1, answer, how) : NULL;
    return *to != NULL ? from : NULL;
}

/* Somebody of this node is at work on that name. What was prefetched for the rename, if anything, is not in its way. */
static struct operation *rename_busy_at(struct shuntd *shuntd, struct dirid dir, const struct message_text *name,
                                        enum operation_kind kind)
{
    struct operation *operation = operation_find(shuntd->home, dir, name->text, name->length);
    const bool is_for_it = operation != NULL && operation->kind == kind && operation_may_be_attached(operation);
    return is_for_it ? NULL : operation;
}

static struct operation *rename_busy(struct shuntd *shuntd, const struct message *m)
{
    struct operation *operation = rename_busy_at(shuntd, m->dir, &m->name, OPERATION_RENAME_FROM);
    return operation != NULL ? operation : rename_busy_at(shuntd, m->rename.to_dir, &m->rename.to_name, OPERATION_RENAME_TO);
}

static bool rename_is_exchange(const struct operation *operation)
{
    return (operation->flags & MESSAGE_EXCHANGE) != 0;
}

static bool rename_is_same_name(const struct message *m)
{
    const struct message_text *from = &m->name, *to = &m->rename.to_name;
    return dirid_equal(m->dir, m->rename.to_dir) && from->length == to->length &&
           memcmp(from->text, to->text, from->length) == 0;
}

/* Two names are held in one order, so that renames that cross do not wait for each other. */
static bool rename_is_before(const struct operation *a, const struct operation *b)
{
    return record_order(a->dir->id, a->name, a->length, b->dir->id, b->name, b->length) < 0;
}

static int rename_refuse(struct shuntd *shuntd, struct operation *operation, int result)
{
    int code = reply_result(shuntd, operation, result);
    return code == 0 ? home_rpc_abort(shuntd, operation) : code;
}

/* Why nothing is to be done; 0: something is. */
static int rename_reason(const struct operation *from, const struct operation *to, uint16_t flags)
{
    if (!operation_had_entry(from) || (!operation_had_entry(to) && (flags & MESSAGE_EXCHANGE)))
        return MESSAGE_ABSENT;
    if (operation_had_entry(to) && (flags & MESSAGE_NOREPLACE))
        return -EEXIST;
    return operation_had_entry(to) && from->before.ino == to->before.ino && !(flags & MESSAGE_TWO_FILES) ? MESSAGE_SAME : 0;
}

/* Where the file of the old name, whose entry is `old`, will be; `to->place` is where creates of its directory go now. */
static struct record_entry rename_destination(const struct operation *from, const struct operation *to,
                                              const struct record_entry *old)
{
    struct record_entry place = *old;
    place.branch = 0;
    place.leaf = 0;
    if (operation_had_entry(to) && !BROKEN("victims-place"))
        place = to->before;
    else if (from->dir == to->dir && to->dir->record.why != RECORD_WHY_WATCHED)
        place = *old;
    else if (old->branch != 0 && !(from->flags & MESSAGE_TRUNK)) {
        place.branch = to->place.branch;
        place.leaf = to->place.leaf;
    }
    return place;
}

static int rename_tell(struct shuntd *shuntd, const struct operation *from, const struct operation *to, int result)
{
    char places[2][REPLY_PLACE_MAX];
    struct message answer = {.type = MESSAGE_RENAME_ANSWER, .result = result, .answer.entry = {from->before, to->place}};
    reply_put_place(shuntd, from->dir, &from->before, places[0], &answer, 0);
    reply_put_place(shuntd, to->dir, &to->place, places[1], &answer, 1);
    return reply_send(shuntd, from->client, from->qp, from->tag, &answer);
}

static int rename_goes_on(struct shuntd *shuntd, struct operation *from)
{
    shuntd->counts.renames++;
    return prefetch_follow_rename(shuntd, from, from->rename.partner);
}

static int rename_give_leave(struct shuntd *shuntd, struct operation *from)
{
    int code = rename_tell(shuntd, from, from->rename.partner, operation_had_entry(from->rename.partner) ? MESSAGE_EXISTS : 0);
    return code == 0 ? rename_goes_on(shuntd, from) : code;
}

static bool rename_moves_directory(const struct operation *from, const struct operation *to)
{
    return from->before.type == DT_DIR || (operation_had_entry(to) && to->before.type == DT_DIR);
}

/* In one directory it is one change, which is undone if it comes to nothing. */
static int rename_note_changes(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    const bool has_left = from->before.branch != 0, has_come = to->place.branch != 0;
    int code = has_left ? operation_note_change(shuntd->home, from) : 0;
    return code == 0 && has_come && !(has_left && from->dir == to->dir) ? operation_note_change(shuntd->home, to) : code;
}

static int rename_note(struct shuntd *shuntd, struct operation *from)
{
    int code = rename_note_changes(shuntd, from, from->rename.partner);
    return code == 0 && from->was_prefetched /* to its home that was no look yet */
               ? home_report_visit(shuntd->home, from->dir, &from->before, shuntd->branch)
               : code;
}

static int rename_marked(struct shuntd *shuntd, struct operation *operation, const struct name_answer *unused)
{
    operation->rename.marked = true;
    if (!operation->rename.partner->rename.marked)
        return 0;
    struct operation *from = operation->kind == OPERATION_RENAME_FROM ? operation : operation->rename.partner,
                     *to = from->rename.partner;
    int code = rename_note(shuntd, from);
    if (code == 0 && rename_moves_directory(from, to) && rename_fence_is_needed(shuntd))
        return rename_fence_begin(shuntd, from, rename_give_leave);
    return code == 0 ? rename_give_leave(shuntd, from) : code;
}

/* Readers meet the old name as dying and a new one as pending. So is a name that is replaced, or exchanged,
 * but in its old place: there is a file there at every moment, and which one it is, is to be looked at. */
static struct record_entry rename_shown_from(const struct operation *from)
{
    struct record_entry shown = from->before;
    shown.state = rename_is_exchange(from) ? RECORD_PENDING : RECORD_DYING;
    return shown;
}

static struct record_entry rename_shown_to(const struct operation *to, const struct record_entry *place)
{
    struct record_entry shown = *place;
    shown.state = RECORD_PENDING;
    shown.ino = operation_had_entry(to) ? place->ino : 0;
    return shown;
}

static int rename_mark_one(struct shuntd *shuntd, struct operation *operation, const struct record_entry *shown)
{
    static const struct name_answer unasked;
    const bool is_shown =
        record_same(&operation->shown, shown) && operation->shown.state == shown->state && operation->shown.type == shown->type;
    return is_shown ? rename_marked(shuntd, operation, &unasked)
                    : home_rpc_request(shuntd, operation, NAME_MARK, 0, shown, rename_marked);
}

/* Of an old name that was kept since it was made (prefetch/rename_ahead.c) readers know no more than that it may be there. */
static bool rename_is_kept(const struct operation *from)
{
    return from->shown.state == RECORD_PENDING && from->shown.ino == 0 && !rename_is_exchange(from);
}

static int rename_mark(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    const struct record_entry dying = rename_is_kept(from) ? from->shown : rename_shown_from(from),
                              pending = rename_shown_to(to, &to->place);
    uint64_t id = to->id;
    int code = rename_mark_one(shuntd, from, &dying);
    return code == 0 && operation_by_id(shuntd->home, id) != NULL /* else both were released */
               ? rename_mark_one(shuntd, to, &pending)
               : code;
}

/* By what is known of them; where they are the client looks whether they still are. */
static int rename_tell_same(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    to->place = to->before;
    int code = rename_tell(shuntd, from, to, MESSAGE_SAME);
    return code == 0 ? home_rpc_abort(shuntd, from) : code;
}

static int rename_both_held(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    int why_not = rename_reason(from, to, from->flags);
    if (why_not == MESSAGE_SAME)
        return rename_tell_same(shuntd, from, to);
    if (why_not != 0)
        return rename_refuse(shuntd, from, why_not);
    if (to->place.branch != 0 && to->leaf.generation != to->dir->leaves.generation)
        return home_rpc_restart(shuntd, from); /* the leaf went meanwhile */
    from->place = from->before;
    to->place = rename_destination(from, to, &from->before);
    return rename_mark(shuntd, from, to);
}

static int rename_held(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    struct operation *partner = operation->rename.partner;
    if (answer->result < 0)
        return rename_refuse(shuntd, operation->kind == OPERATION_RENAME_FROM ? operation : partner, answer->result);
    if (!operation_is_claimed(partner))
        return home_rpc_request(shuntd, partner, NAME_CLAIM, NAME_EVEN_ABSENT, NULL, rename_held);
    return operation->kind == OPERATION_RENAME_FROM ? rename_both_held(shuntd, operation, partner)
                                                    : rename_both_held(shuntd, partner, operation);
}

/* One after the other, in the order of the names. */
static int rename_hold_in_order(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    return home_rpc_request(shuntd, rename_is_before(from, to) ? from : to, NAME_CLAIM, NAME_EVEN_ABSENT, NULL, rename_held);
}

/* Somebody else has one of them. While one is waited for, none that comes after it is held. */
static int rename_not_at_once(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    int code = home_rpc_let_go(shuntd, from);
    if (code == 0)
        code = home_rpc_let_go(shuntd, to);
    return code == 0 ? rename_hold_in_order(shuntd, from, to) : code;
}

/* What a home said before a process asked is no answer to that, unless it gave the name. */
static bool rename_is_answered(const struct operation *operation)
{
    return operation_is_claimed(operation) || (operation->rename.result != MESSAGE_BUSY && !operation->was_prefetched);
}

/* Both homes have answered. */
static int rename_both_answered(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    if (!rename_is_answered(from) || !rename_is_answered(to))
        return rename_not_at_once(shuntd, from, to);
    const int refused = from->rename.result < 0 ? from->rename.result : to->rename.result;
    return refused < 0 ? rename_refuse(shuntd, from, refused) : rename_both_held(shuntd, from, to);
}

int rename_answered(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    struct operation *partner = operation->rename.partner;
    operation->rename.is_tried = false;
    operation->rename.result = answer->result;
    if (partner->rename.is_tried)
        return 0;
    return operation->kind == OPERATION_RENAME_FROM ? rename_both_answered(shuntd, operation, partner)
                                                    : rename_both_answered(shuntd, partner, operation);
}

/* Unless it was asked before any process did. */
static int rename_try(struct shuntd *shuntd, struct operation *operation, unsigned flags, const struct record_entry *shown)
{
    return operation->rename.is_tried && operation->pending.op == 0
               ? home_rpc_request(shuntd, operation, NAME_CLAIM, NAME_NONBLOCK | flags, shown, rename_answered)
               : 0;
}

/* Both homes at once, neither of which lets it wait; and readers are told with the same request, by what its process knows of
 * the old name. */
static int rename_hold_at_once(struct shuntd *shuntd, struct operation *from, struct operation *to,
                               const struct record_entry *known)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    const struct record_entry place = rename_destination(from, to, known), pending = rename_shown_to(to, &place);
    const uint64_t id = to->id;
    from->rename.is_tried = !operation_is_claimed(from);
    to->rename.is_tried = !operation_is_claimed(to);
    if (!from->rename.is_tried && !to->rename.is_tried)
        return rename_both_answered(shuntd, from, to);
    int code = rename_try(shuntd, from, 0, &dying);
    return code == 0 && operation_by_id(shuntd->home, id) != NULL /* else both were released */
               ? rename_try(shuntd, to, NAME_EVEN_ABSENT, &pending)
               : code;
}

/* NULL: there is no memory for it. */
static struct operation *rename_begin(struct shuntd *shuntd, enum operation_kind kind, const struct listen_request *request,
                                      struct home_dir *dir)
{
    const struct message *m = &request->message;
    const struct message_text *name = kind == OPERATION_RENAME_TO ? &m->rename.to_name : &m->name;
    struct operation *operation = NULL;
    if (kind != OPERATION_LOOKUP && prefetch_take_rename(shuntd, request, kind, &operation) != 0)
        return NULL;
    return operation != NULL ? operation : operation_begin(shuntd->home, kind, dir, name->text, name->length, request);
}

static int rename_hold(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dirs[2],
                       const struct record_entry *creates)
{
    static const struct record_entry unknown;
    const struct record_entry *found = &request->message.rename.found;
    const bool is_known = found->branch <= shuntd->root.branch_count;
    struct operation *from = rename_begin(shuntd, OPERATION_RENAME_FROM, request, dirs[0]);
    struct operation *to = from != NULL ? rename_begin(shuntd, OPERATION_RENAME_TO, request, dirs[1]) : NULL;
    if (to == NULL)
        return -ENOMEM;
    from->rename.partner = to;
    to->rename.partner = from;
    to->place = *creates;
    to->leaf.generation = dirs[1]->leaves.generation;
    return rename_is_exchange(from) ? rename_not_at_once(shuntd, from, to)
                                    : rename_hold_at_once(shuntd, from, to, is_known ? found : &unknown);
}

/* As far as this index knows: where the old name's file is in the trunk, or a new name is there, none is needed. */
static bool rename_may_need_room(struct shuntd *shuntd, const struct home_dir *dir, const struct message *m)
{
    struct record_entry from, to;
    int old = home_get_entry(shuntd->home, m->dir, m->name.text, m->name.length, &from);
    int new = home_get_entry(shuntd->home, m->rename.to_dir, m->rename.to_name.text, m->rename.to_name.length, &to);
    uint16_t home = route_of_name(&shuntd->route, m->dir, m->name.text, m->name.length);
    bool remote = dir->delegation == 0 && home != shuntd->me.number;
    return new == -ENOENT && (old == 0 ? from.branch != 0 : remote);
}

/* A file in a branch may go to where creates of the other directory go: a leaf for it is made before any name
 * is held. */
static int rename_find_room(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dirs[2],
                            struct record_entry *creates)
{
    const struct message *message = &request->message;
    if (dirs[0] == dirs[1] || !(dirs[0]->record.flags & RECORD_MARKED) || (message->flags & MESSAGE_TRUNK) ||
        !rename_may_need_room(shuntd, dirs[0], message))
        return 0;
    return placement_choose(shuntd, dirs[1], message->rename.to_name.text, message->rename.to_name.length, request->client,
                            creates);
}

static int rename_is_itself(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    bool refused = answer->result == MESSAGE_EXISTS && (operation->flags & MESSAGE_NOREPLACE);
    return rename_refuse(shuntd, operation,
                         refused                            ? -EEXIST
                         : answer->result == MESSAGE_EXISTS ? MESSAGE_SAME
                                                            : MESSAGE_ABSENT);
}

static int rename_onto_itself(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir)
{
    struct operation *operation = rename_begin(shuntd, OPERATION_LOOKUP, request, dir);
    int code = operation != NULL ? home_rpc_request(shuntd, operation, NAME_LOOKUP, 0, NULL, rename_is_itself) : -ENOMEM;
    return code == 0 ? REPLY_SILENT : code;
}

int ops_rename(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct record_entry creates = {0};
    struct home_dir *dirs[2];
    int how;
    dirs[0] = rename_both_known(shuntd, request, &dirs[1], answer, &how);
    if (dirs[0] == NULL)
        return how;
    struct operation *operation = rename_busy(shuntd, &request->message);
    if (operation != NULL)
        return reply_block(shuntd, &operation->blocked, request);
    if (rename_is_same_name(&request->message))
        return rename_onto_itself(shuntd, request, dirs[0]);
    int code = rename_find_room(shuntd, request, dirs, &creates);
    if (code == -EAGAIN)
        return reply_block(shuntd, &dirs[1]->blocked, request);
    if (code == 0)
        code = rename_hold(shuntd, request, dirs, &creates);
    return code == 0 ? REPLY_SILENT : code;
}

static void rename_path_of(const struct operation *operation, char to[PATH_MAX])
{
    const char *parent = strcmp(operation->dir->path, ".") == 0 ? "" : operation->dir->path;
    snprintf(to, PATH_MAX, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", operation->length, operation->name);
}

/* The process that says that it has renamed a directory, and waits until all nodes know. */
struct rename_waiting {
    uint64_t client;
    uint32_t qp, tag;
};

static int rename_all_know(struct shuntd *shuntd, void *context, const struct collective_end *unused)
{
    const struct rename_waiting waiting = *(struct rename_waiting *)context;
    struct message answer = {.type = MESSAGE_ANSWER};
    free(context);
    return reply_send(shuntd, waiting.client, waiting.qp, waiting.tag, &answer);
}

static int rename_tell_moved(struct shuntd *shuntd, const char *from, const char *to, struct rename_waiting *waiting)
{
    return directory_tell_moved(shuntd, from, to, waiting != NULL ? rename_all_know : NULL, waiting);
}

static int rename_moved_directory(struct shuntd *shuntd, const struct operation *from, const struct operation *to,
                                  struct rename_waiting *waiting)
{
    char old_path[PATH_MAX], new_path[PATH_MAX];
    rename_path_of(from, old_path);
    rename_path_of(to, new_path);
    return rename_tell_moved(shuntd, old_path, new_path, waiting);
}

/* What is known of the places of directories, in three steps: the second must not meet the first's. */
static int rename_exchanged_directories(struct shuntd *shuntd, const struct operation *from, const struct operation *to,
                                        struct rename_waiting *waiting)
{
    static const char aside[] = "//"; /* no place has that name */
    char old_path[PATH_MAX], new_path[PATH_MAX];
    rename_path_of(from, old_path);
    rename_path_of(to, new_path);
    int code = rename_tell_moved(shuntd, old_path, aside, NULL);
    if (code == 0)
        code = rename_tell_moved(shuntd, new_path, old_path, NULL);
    return code == 0 ? rename_tell_moved(shuntd, aside, new_path, waiting) : code;
}

/* Place stays with name; what lies there has changed hands. */
static int rename_exchanged(struct shuntd *shuntd, struct operation *from, struct operation *to)
{
    struct record_entry first = from->before, second = to->before;
    first.type = to->before.type;
    first.ino = to->before.ino;
    second.type = from->before.type;
    second.ino = from->before.ino;
    from->before = first;
    to->before = second;
    from->dir_change.number = to->dir_change.number = 0; /* both have changed */
    int code = completion_failed(shuntd, from);
    return code == 0 ? completion_failed(shuntd, to) : code;
}

static int rename_tell_places(struct shuntd *shuntd, const struct operation *from, const struct operation *to, bool moved,
                              struct rename_waiting *waiting)
{
    if (moved && rename_is_exchange(from) && rename_moves_directory(from, to))
        return rename_exchanged_directories(shuntd, from, to, waiting);
    if (moved && !rename_is_exchange(from) && from->before.type == DT_DIR)
        return rename_moved_directory(shuntd, from, to, waiting);
    return waiting != NULL ? rename_all_know(shuntd, waiting, NULL) : 0;
}

/* All nodes hear of the new places before their processes go by what their kernels remember again. */
static int rename_ended(struct shuntd *shuntd, struct operation *from, struct operation *to, const struct message *renamed,
                        struct rename_waiting *waiting)
{
    struct record_entry moved = from->before;
    int code = rename_tell_places(shuntd, from, to, renamed->result == 0, waiting);
    if (code == 0)
        code = rename_fence_end(shuntd, from);
    from->rename.partner = to->rename.partner = NULL;
    if (code != 0)
        return code;
    if (renamed->result == 0 && rename_is_exchange(from))
        return rename_exchanged(shuntd, from, to);
    if (renamed->result != 0) {
        code = completion_failed(shuntd, from);
        return code == 0 ? completion_failed(shuntd, to) : code;
    }
    if (moved.type == DT_DIR && renamed->rename.replaced.ino != 0)
        code = coordinator_drop(shuntd, renamed->rename.replaced);
    if (code != 0)
        return code;
    code = completion_succeeded(shuntd, from, &moved, (struct dirid){0, 0});
    return code == 0 ? completion_succeeded(shuntd, to, &moved, (struct dirid){0, 0}) : code;
}

int completion_pair(struct shuntd *shuntd, struct operation *from, struct operation *to, const struct message *renamed)
{
    return rename_ended(shuntd, from, to, renamed, NULL);
}

/* By a grant, of which readers were told when both names were asked for. */
int rename_begins(struct shuntd *shuntd, struct operation *from)
{
    from->place = from->rename.partner->place = from->before;
    int code = rename_note(shuntd, from);
    return code == 0 ? rename_goes_on(shuntd, from) : code;
}

int rename_succeeded(struct shuntd *shuntd, struct operation *from)
{
    static const struct message renamed = {.type = MESSAGE_RENAMED};
    return completion_pair(shuntd, from, from->rename.partner, &renamed);
}

static struct operation *rename_of(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct message *m = &request->message;
    struct operation *from = operation_find_own(shuntd->home, m->dir, m->name.text, m->name.length, request->client);
    const bool has_begun = from != NULL && from->kind == OPERATION_RENAME_FROM && from->rename.partner != NULL &&
                           !operation_is_asking(from) && !operation_is_asking(from->rename.partner);
    return has_begun ? from : NULL;
}

int ops_renamed(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *m = &request->message;
    struct operation *from = rename_of(shuntd, request);
    struct rename_waiting *waiting = NULL;
    if (from == NULL)
        return m->tag != 0 ? REPLY_ANSWER : REPLY_SILENT;
    if (m->tag != 0) {
        if ((waiting = malloc(sizeof *waiting)) == NULL)
            return -ENOMEM;
        *waiting = (struct rename_waiting){.client = request->client, .qp = request->qp, .tag = m->tag};
    }
    return reply_silently(rename_ended(shuntd, from, from->rename.partner, m, waiting));
}
