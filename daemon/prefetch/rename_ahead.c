/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Renames that follow each other: ckpt.0001.tmp becomes ckpt.0001, ckpt.0002.tmp becomes ckpt.0002. The new names are reserved
 * ahead. So are old names that are there already and follow each other, too; then both are granted to the thread, as far as a
 * rename is no more than that: of a file in this node's branch, within its directory, that replaces nothing. And a file that a
 * thread has just made, which it renames each time, stays claimed: to the home of its name its create takes a little longer. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "coordinator/placement.h"
#include "home/home.h"
#include "home/oom_reserve.h"
#include "home/state.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "prefetch/stream.h"

static struct rename_stream *rename_ahead_stream(const struct shuntd *shuntd, uint32_t qp)
{
    return &shuntd->prefetch->renamers[qp];
}

/* Where the next file will be under its new name, if it is where the last one was. 1: that cannot be told. */
static int rename_ahead_place(struct shuntd *shuntd, const struct operation *from, const struct operation *to,
                              const struct prefetch_name *next, struct record_entry *place)
{
    uint32_t fresh;
    *place = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = to->place.branch, .leaf = to->place.leaf};
    int code = from->dir != to->dir
                   ? placement_choose_prefetched(shuntd, to->dir, next->name, next->length, from->client, place, &fresh)
                   : 0;
    return code == -EAGAIN || (code == 0 && place->branch == 0) ? 1 : code;
}

/* The old and the new name that come so far ahead. 0, 1: not those, nor any after them; or a fatal -errno. */
static int rename_ahead_ask(struct shuntd *shuntd, const struct rename_stream *stream, const struct operation *from,
                            const struct operation *to, unsigned ahead)
{
    char names[2][RECORD_NAME_MAX];
    struct prefetch_name new = {.kind = OPERATION_RENAME_TO, .dir = to->dir, .name = names[1]},
                         old = {.kind = OPERATION_RENAME_FROM,
                                .dir = from->dir,
                                .name = names[0],
                                .entry = {.state = RECORD_DYING}};
    new.qp = old.qp = from->qp;
    new.completion = old.completion = shuntd->prefetch_handlers->rename_answered;
    new.length = sequence_predict(&stream->to, ahead, names[1]);
    old.length = stream->made == 0 ? sequence_predict(&stream->old.sequence, ahead, names[0]) : 0;
    int code =
        new.length > 0 && (stream->made > 0 || old.length > 0) ? rename_ahead_place(shuntd, from, to, &new, &new.entry) : 1;
    if (code == 0 && prefetch_is_elsewhere(shuntd, to->dir, new.name, new.length))
        code = prefetch_ask(shuntd, &new);
    if (code == 0 && old.length > 0 && prefetch_is_elsewhere(shuntd, from->dir, old.name, old.length))
        code = prefetch_ask(shuntd, &old);
    return code;
}

/* BROKEN: as if it always had been so often. */
static bool rename_ahead_is_long(const struct rename_stream *stream, unsigned run)
{
    return (run >= RUN_MIN && run >= stream->old.run) || BROKEN("ahead-late");
}

static unsigned rename_ahead_run(const struct rename_stream *stream)
{
    const unsigned old = stream->made > 0 ? stream->made : stream->old.sequence.run;
    return old < stream->to.run ? old : stream->to.run;
}

static void rename_ahead_add(struct shuntd *shuntd, struct rename_stream *stream, const struct operation *from,
                             const struct operation *to)
{
    const bool is_made = dirid_equal(stream->last_dir, from->dir->id) && stream->last_hash == from->hash;
    const bool follows_old = sequence_add(&stream->old.sequence, from->name, from->length) > 0;
    const bool follows = sequence_add(&stream->to, to->name, to->length) > 0;
    stream->made = is_made ? stream->made + 1 : 0;
    if (!follows || !(follows_old || is_made)) {
        prefetch_breaks_off(shuntd, &stream->old);
        grant_take_back_like(shuntd, from);
    }
    stream->old.reserved -= stream->old.reserved > 0;
    stream->old.granted -= stream->old.granted > 0;
    if (rename_ahead_run(stream) >= WINDOW_MAX)
        stream->old.run = RUN_MIN; /* it goes well */
}

/* Granting. */

static bool rename_ahead_may_go(const struct shuntd *shuntd, const struct operation *from, uint32_t qp)
{
    return prefetch_may_be_granted(from, OPERATION_RENAME_FROM, qp) && operation_had_entry(from) &&
           from->before.branch == shuntd->branch && from->before.type == DT_REG &&
           from->dir->record.why != RECORD_WHY_WATCHED; /* else its file may go elsewhere (ops/rename.c) */
}

/* A file of that place. Readers were told that. */
static bool rename_ahead_may_come(const struct operation *to, const struct record_entry *place, uint32_t qp)
{
    return prefetch_may_be_granted(to, OPERATION_RENAME_TO, qp) && !operation_had_entry(to) &&
           to->place.branch == place->branch && to->place.leaf == place->leaf;
}

/* The old name, if it may go, then the new one, to which its file can come. NULL: there is none. */
static int rename_ahead_begin(struct shuntd *shuntd, const struct rename_stream *stream, struct home_dir *dir, uint32_t qp,
                              struct operation *both[2])
{
    char name[RECORD_NAME_MAX];
    const unsigned ahead = stream->old.granted + 1;
    struct prefetch_name next = {.kind = OPERATION_RENAME_FROM,
                                 .dir = dir,
                                 .qp = qp,
                                 .name = name,
                                 .length = sequence_predict(&stream->old.sequence, ahead, name),
                                 .entry = {.state = RECORD_DYING},
                                 .completion = shuntd->prefetch_handlers->rename_answered};
    both[0] = both[1] = NULL;
    int code = next.length > 0 ? prefetch_begin(shuntd, &next, &both[0]) : 0;
    if (code != 0 || !rename_ahead_may_go(shuntd, both[0], qp))
        return code;
    next.kind = OPERATION_RENAME_TO;
    next.length = sequence_predict(&stream->to, ahead, name);
    next.entry = both[0]->before;
    next.entry.state = RECORD_PENDING;
    next.entry.ino = 0;
    return next.length > 0 ? prefetch_begin(shuntd, &next, &both[1]) : 0;
}

/* 0, 1: not that one, nor any after it; or a fatal -errno. */
static int rename_ahead_grant(struct shuntd *shuntd, struct rename_stream *stream, struct home_dir *dir, uint32_t qp)
{
    struct operation *both[2];
    int code = rename_ahead_begin(shuntd, stream, dir, qp, both);
    if (code != 0)
        return code;
    if (both[1] == NULL || !rename_ahead_may_come(both[1], &both[0]->before, qp))
        return 1;
    if (operation_has_grant(both[0]))
        return operation_partner(both[0]) == both[1] ? 0 : 1;
    return grant_make_pair(shuntd, both[0], both[1], stream->old.client) ? 0 : 1;
}

int rename_ahead_grant_more(struct shuntd *shuntd, struct home_dir *dir, uint32_t qp)
{
    struct rename_stream *stream = rename_ahead_stream(shuntd, qp);
    const unsigned most = prefetch_to_be_granted(rename_ahead_run(stream));
    int code = 0;
    if (stream->made > 0 || !dirid_equal(stream->old.dir, stream->to_dir))
        return 0;
    while (code == 0 && stream->old.granted < most && prefetch_has_room(shuntd, &stream->old, qp)) {
        code = rename_ahead_grant(shuntd, stream, dir, qp);
        stream->old.granted += code == 0;
    }
    return code < 0 ? code : 0;
}

/* Of a thread that renames what it has just made, each time, and within its directory. */
static bool rename_ahead_is_of_made(const struct rename_stream *stream, const struct operation *made, uint64_t client)
{
    return stream->made > 0 && rename_ahead_is_long(stream, rename_ahead_run(stream)) && stream->old.client == client &&
           dirid_equal(stream->old.dir, made->dir->id) && dirid_equal(stream->to_dir, made->dir->id) &&
           made->dir->record.why != RECORD_WHY_WATCHED;
}

/* The new name that goes with that old one. The last file may have been renamed already, or is about to be. 0: none can be
 * told. */
static size_t rename_ahead_predict(const struct rename_stream *stream, const struct operation *made, unsigned ahead,
                                   char name[RECORD_NAME_MAX])
{
    for (unsigned i = ahead; i <= ahead + 1; i++)
        if (sequence_predict(&stream->old.sequence, i, name) == made->length && memcmp(name, made->name, made->length) == 0)
            return sequence_predict(&stream->to, i, name);
    return 0;
}

int rename_ahead_find_new(struct shuntd *shuntd, const struct operation *made, unsigned ahead, struct operation **to)
{
    const struct rename_stream *stream = rename_ahead_stream(shuntd, made->qp);
    char name[RECORD_NAME_MAX];
    struct prefetch_name next = {.kind = OPERATION_RENAME_TO,
                                 .dir = made->dir,
                                 .qp = made->qp,
                                 .name = name,
                                 .entry = made->place,
                                 .completion = shuntd->prefetch_handlers->rename_answered};
    *to = NULL;
    if (rename_ahead_is_of_made(stream, made, shuntd->prefetch->streams[made->qp].client))
        next.length = rename_ahead_predict(stream, made, ahead, name);
    next.entry.state = RECORD_PENDING;
    int code = next.length > 0 ? prefetch_begin(shuntd, &next, to) : 0;
    if (*to != NULL && (!rename_ahead_may_come(*to, &made->place, made->qp) || (*to)->rename.partner != NULL))
        *to = NULL;
    return code;
}

int prefetch_follow_rename(struct shuntd *shuntd, const struct operation *from, const struct operation *to)
{
    struct rename_stream *stream = rename_ahead_stream(shuntd, from->qp);
    int code = 0;
    if (from->before.branch == 0 || to->place.branch == 0 || operation_had_entry(to) || shuntd->stop != 0 ||
        shuntd->prefetch->forgets)
        return 0;
    if (stream->old.client != from->client || !dirid_equal(stream->old.dir, from->dir->id) ||
        !dirid_equal(stream->to_dir, to->dir->id)) {
        prefetch_begin_again(&stream->old, from->client, from->dir->id);
        stream->to_dir = to->dir->id;
        stream->to = (struct sequence){0};
        stream->made = 0;
    }
    stream->old.used = shuntd->now;
    rename_ahead_add(shuntd, stream, from, to);
    const bool is_long = rename_ahead_is_long(stream, rename_ahead_run(stream));
    const unsigned window = is_long ? prefetch_widen(shuntd, &stream->old) : 0;
    for (; stream->old.reserved < window && code == 0; stream->old.reserved += code == 0)
        code = rename_ahead_ask(shuntd, stream, from, to, stream->old.reserved + 1);
    return code < 0 ? code : is_long && oom_reserve_is_there() ? rename_ahead_grant_more(shuntd, from->dir, from->qp) : 0;
}

int prefetch_take_rename(struct shuntd *shuntd, const struct listen_request *request, enum operation_kind kind,
                         struct operation **taken)
{
    struct operation *operation = prefetch_operation_on(shuntd, &request->message, kind == OPERATION_RENAME_TO ? 1 : 0);
    *taken = NULL;
    if (operation == NULL || operation->kind != kind || !operation_may_be_attached(operation))
        return 0;
    *taken = operation;
    shuntd->counts.prefetched++;
    return operation_attach_request(shuntd->home, operation, request);
}

/* Keeping what was made. */

/* The one that was kept before, if it still is: the thread has made another name since. */
static int rename_ahead_let_go(struct shuntd *shuntd, struct rename_stream *stream)
{
    struct operation *kept = stream->kept != 0 ? operation_by_id(shuntd->home, stream->kept) : NULL;
    stream->kept = 0;
    if (kept == NULL || !operation_is_prefetched(kept))
        return 0;
    return prefetch_give_back(shuntd, kept);
}

static bool rename_ahead_may_keep(const struct shuntd *shuntd, const struct rename_stream *stream,
                                  const struct operation *operation, const struct record_entry *made)
{
    const struct home_dir *dir = operation->dir;
    return rename_ahead_is_long(stream, stream->made) && (stream->made == 0 || stream->old.client == operation->client) &&
           (stream->made == 0 || dirid_equal(stream->old.dir, dir->id)) && made->type == DT_REG &&
           made->branch == shuntd->branch && made->ino != 0 && operation->state == OPERATION_WANTED && !operation->awaited &&
           !operation_had_entry(operation) && prefetch_is_elsewhere(shuntd, dir, operation->name, operation->length) &&
           !dir->reports_idle && !dir->recalled && shuntd->stop == 0 && !shuntd->prefetch->forgets;
}

/* Its create has ended, and its claim goes on: readers still meet a new name, which may have a file by now. */
static void rename_ahead_keep(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made)
{
    grant_ends(shuntd, operation);
    operation_keep(shuntd->home, operation, made);
    rename_ahead_stream(shuntd, operation->qp)->kept = operation->id;
}

static int rename_ahead_note_made(struct shuntd *shuntd, const struct operation *operation)
{
    struct rename_stream *stream = rename_ahead_stream(shuntd, operation->qp);
    int code = rename_ahead_let_go(shuntd, stream);
    stream->last_dir = operation->dir->id;
    stream->last_hash = operation->hash;
    return code;
}

int prefetch_keep_for_rename(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made)
{
    struct operation *to = operation->rename.partner;
    int code = rename_ahead_note_made(shuntd, operation);
    operation_keep(shuntd->home, operation, made);
    operation->rename.partner = to;
    return code;
}

int prefetch_keep(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made, bool *is_kept)
{
    int code = rename_ahead_note_made(shuntd, operation);
    *is_kept = code == 0 && rename_ahead_may_keep(shuntd, rename_ahead_stream(shuntd, operation->qp), operation, made);
    if (*is_kept)
        rename_ahead_keep(shuntd, operation, made);
    return code;
}
