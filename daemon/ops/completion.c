/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* COMMIT, ABORT, UNLINKED, and what a client that died has left: how an operation ended. */

#include "ops/completion.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "ops/look.h"
#include "ops/ops.h"
#include "prefetch/prefetch.h"
#include "reply/reply.h"
#include "rpc/home_rpc.h"

/* Leaves are counted by what this node's processes do, in its own branch. */
static int completion_count_leaf(const struct shuntd *shuntd, struct home_dir *dir, const struct record_entry *entry,
                                 int32_t change)
{
    return entry->branch != 0 && entry->branch == shuntd->branch ? home_leaf_add(&dir->leaves, entry->leaf, change) : 0;
}

/* A directory that was made in this session need not be listed, since it is empty; unless it is too deep. */
static int completion_note_directory(struct shuntd *shuntd, const struct operation *operation, struct dirid child)
{
    char path[PATH_MAX];
    const char *parent = strcmp(operation->dir->path, ".") == 0 ? "" : operation->dir->path;
    int length =
        snprintf(path, sizeof path, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", operation->length, operation->name);
    return layout_is_in_reach(strlen(shuntd->root.path) + 1 + (size_t)length) ? coordinator_dir_created(shuntd, child, path)
                                                                              : 0;
}

static int completion_ended_create(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made,
                                   struct dirid child, bool may_be_kept)
{
    struct record_entry entry = operation->place;
    bool is_kept = false;
    entry.type = made->type != 0 ? made->type : entry.type;
    entry.ino = made->ino;
    int code = operation_had_entry(operation) || operation->leaf.counted
                   ? 0
                   : completion_count_leaf(shuntd, operation->dir, &entry, 1);
    operation->leaf.counted = false;
    if (code == 0 && entry.type == DT_DIR && child.ino != 0 && !home_has_forgotten_since(shuntd->home, operation))
        code = completion_note_directory(shuntd, operation, child);
    if (code == 0 && may_be_kept)
        code = prefetch_keep(shuntd, operation, &entry, &is_kept);
    return code == 0 && !is_kept ? home_rpc_end(shuntd, operation, &entry) : code;
}

static int completion_ended_unlink(struct shuntd *shuntd, struct operation *operation)
{
    int code = completion_count_leaf(shuntd, operation->dir, &operation->before, -1);
    return code == 0 ? home_rpc_end(shuntd, operation, NULL) : code;
}

static int completion_ended_rmdir(struct shuntd *shuntd, struct operation *operation)
{
    int code = coordinator_drop(shuntd, operation->rmdir.child);
    return code == 0 ? home_rpc_end(shuntd, operation, NULL) : code;
}

/* When its last file has left this node's mirror, new ones are made in the trunk again until the directory is hot. */
static int completion_ended_promotion(struct shuntd *shuntd, struct operation *operation)
{
    struct home_leaves *leaves = &operation->dir->leaves;
    int code = completion_count_leaf(shuntd, operation->dir, &operation->before, -1);
    if (code == 0 && operation->before.branch == shuntd->branch && home_leaves_are_empty(leaves))
        leaves->creates = 0;
    return code == 0 ? home_rpc_end(shuntd, operation, &operation->place) : code;
}

int completion_succeeded(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made,
                         struct dirid child)
{
    switch (operation->kind) {
    case OPERATION_CREATE:
        return completion_ended_create(shuntd, operation, made, child, false);
    case OPERATION_RENAME_TO:
        return completion_ended_create(shuntd, operation, made, (struct dirid){0, 0}, false);
    case OPERATION_UNLINK:
    case OPERATION_RENAME_FROM:
        return completion_ended_unlink(shuntd, operation);
    case OPERATION_RMDIR:
        return completion_ended_rmdir(shuntd, operation);
    case OPERATION_PROMOTE:
        return completion_ended_promotion(shuntd, operation);
    default: /* questions, which end with their answer */
        return home_rpc_abort(shuntd, operation);
    }
}

int completion_goes_on(struct shuntd *shuntd, struct operation *operation, uint64_t made)
{
    struct record_entry entry = operation->place;
    entry.ino = made;
    operation->leaf.counted = false; /* it is there: it counts as such */
    return prefetch_keep_for_rename(shuntd, operation, &entry);
}

int completion_committed(struct shuntd *shuntd, struct operation *operation, const struct record_entry *made,
                         struct dirid child)
{
    return operation->kind == OPERATION_CREATE ? completion_ended_create(shuntd, operation, made, child, true)
                                               : completion_succeeded(shuntd, operation, made, child);
}

int completion_failed(struct shuntd *shuntd, struct operation *operation)
{
    int code = operation_undo_change(shuntd->home, operation);
    if (code == 0 && operation_is_frozen(operation))
        code = coordinator_thaw(shuntd, operation->rmdir.child);
    return code == 0 ? home_rpc_end(shuntd, operation, operation_had_entry(operation) ? &operation->before : NULL) : code;
}

static int completion_look(const struct shuntd *shuntd, const struct operation *operation, const struct record_entry *entry,
                           struct statx *stat)
{
    return look_at_entry(shuntd, operation->dir, entry, operation->name, operation->length, stat);
}

/* Neither that it is there nor that it is not: the directory is not where it was thought to be, or the disk does not say. */
static bool completion_cannot_be_told(int looked)
{
    return looked != 0 && looked != -ENOENT;
}

/* 0: that file is there, -ENOENT: it is not, or another is; another -errno: it cannot be told. */
static int completion_look_for_file(const struct shuntd *shuntd, const struct operation *operation,
                                    const struct record_entry *place, uint64_t ino)
{
    struct statx stat;
    const int looked = completion_look(shuntd, operation, place, &stat);
    return looked == 0 && stat.stx_ino != ino ? -ENOENT : looked;
}

/* Of two names of one file the kernel renames neither. Where it cannot be told whether a new name has come, both are known. */
static int completion_settle_pair(struct shuntd *shuntd, struct operation *operation)
{
    struct operation *from = operation->kind == OPERATION_RENAME_FROM ? operation : operation_partner(operation);
    struct operation *to = operation_partner(from);
    const uint64_t ino = from->before.ino;
    const int new = completion_look_for_file(shuntd, to, &to->place, ino);
    struct message renamed = {.type = MESSAGE_RENAMED, .result = -ECANCELED};
    if (new == 0 && completion_look_for_file(shuntd, from, &from->before, ino) != 0)
        renamed.result = 0;
    if (completion_cannot_be_told(new) && !operation_had_entry(to)) {
        to->claim = CLAIM_EXISTING;
        to->before = to->place;
    }
    return completion_pair(shuntd, from, to, &renamed);
}

/* What is on disk decides. A create whose file is there happened; an unlink whose file is still there did not; where
 * another file is there, it took the name over. A promotion has happened where that very file is. Where it cannot be told,
 * nothing has happened, but for a create: a name that is known and not there is found out, and one that is there and not known
 * would be made twice. */
int completion_settle_by_disk(struct shuntd *shuntd, struct operation *operation)
{
    struct record_entry made = {0};
    struct statx stat;
    if (operation_partner(operation) != NULL)
        return completion_settle_pair(shuntd, operation);
    int there = completion_look(shuntd, operation, &operation->place, &stat);
    if (there == 0) {
        made.type = (uint8_t)IFTODT(stat.stx_mode);
        made.ino = stat.stx_ino;
    }
    bool another = there == 0 && made.ino != operation->before.ino;
    if (another && operation->kind == OPERATION_PROMOTE)
        return completion_failed(shuntd, operation);
    if (another && operation->kind == OPERATION_UNLINK)
        operation->kind = OPERATION_CREATE;
    bool removing = operation->kind == OPERATION_UNLINK || operation->kind == OPERATION_RMDIR;
    if (operation->kind == OPERATION_CREATE && completion_cannot_be_told(there))
        return completion_succeeded(shuntd, operation, &operation->place, (struct dirid){0, 0});
    if (there == (removing ? -ENOENT : 0)) /* a directory may have been there before, so it is not known to be empty */
        return completion_succeeded(shuntd, operation, &made, (struct dirid){0, 0});
    return completion_failed(shuntd, operation);
}

/* Its client was not told yet that it may begin: there is nothing to look for. */
static bool completion_has_not_begun(struct operation *operation)
{
    struct operation *partner = operation_partner(operation);
    if (!operation_is_asking(operation) && (partner == NULL || !operation_is_asking(partner)))
        return false;
    operation_abandon(operation);
    if (partner != NULL)
        operation_abandon(partner);
    return true;
}

int completion_settle_client(struct shuntd *shuntd, uint64_t client)
{
    int code = client != 0 ? prefetch_client_exits(shuntd, client) : 0;
    for (struct operation *operation;
         code == 0 && (operation = operation_next_of_client(shuntd->home, client)) != NULL && !BROKEN("no-settle");)
        if (!completion_has_not_begun(operation))
            code = completion_settle_by_disk(shuntd, operation);
    return code;
}

/* Where it is by now: a promotion may have been what the name was held for. */
static int completion_look_for(const struct shuntd *shuntd, const struct name_question *end, struct record_entry *entry,
                               struct statx *stat)
{
    const struct home_dir *dir = home_dir_find(shuntd->home, end->dir);
    struct record_entry promoted = *entry;
    const int looked = look_at_entry(shuntd, dir, entry, end->name, end->length, stat);
    if (looked != -ENOENT || entry->branch == 0)
        return looked;
    promoted.branch = 0;
    promoted.leaf = 0;
    const int in_trunk = look_at_entry(shuntd, dir, &promoted, end->name, end->length, stat);
    if (in_trunk != 0 || stat->stx_ino != entry->ino)
        return completion_cannot_be_told(in_trunk) ? in_trunk : looked;
    *entry = promoted;
    return 0;
}

static int completion_settle_held(struct shuntd *shuntd, struct name_question *end)
{
    struct record_entry entry;
    struct name_answer unused;
    struct statx stat;
    int code = home_get_entry(shuntd->home, end->dir, end->name, end->length, &entry);
    if (code != 0 && code != -ENOENT)
        return code;
    const int looked = code == 0 ? completion_look_for(shuntd, end, &entry, &stat) : code;
    if (looked == 0 || (looked != -ENOENT && entry.ino != 0)) { /* what cannot be told is as it was */
        end->entry = entry;
        end->entry.state = RECORD_LIVE;
    }
    if (looked == 0) {
        end->entry.type = (uint8_t)IFTODT(stat.stx_mode);
        end->entry.ino = stat.stx_ino;
    }
    return home_ask(shuntd->home, end, &unused);
}

int completion_settle_member(struct shuntd *shuntd, uint16_t member)
{
    struct name_question end;
    int code = 0;
    while (code == 0 && home_claim_of_member(shuntd->home, member, &end))
        code = completion_settle_held(shuntd, &end);
    return code;
}

/* What a notice is about: an operation of its sender's, which was told that it may begin. */
static struct operation *completion_mine(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct message *m = &request->message;
    struct operation *operation = operation_find_own(shuntd->home, m->dir, m->name.text, m->name.length, request->client);
    return operation != NULL && !operation_is_asking(operation) ? operation : NULL;
}

int ops_commit(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct operation *operation = completion_mine(shuntd, request);
    if (operation == NULL || operation_partner(operation) != NULL || operation->kind == OPERATION_RMDIR)
        return REPLY_SILENT;
    if (request->message.commit.entry.ino == 0) { /* the kernel did not say which file it is */
        const int settled = completion_settle_by_disk(shuntd, operation);
        return settled == 0 ? REPLY_SILENT : settled;
    }
    if (operation->kind == OPERATION_UNLINK)
        operation->kind = OPERATION_CREATE; /* a file from outside the root took its place: a create, at the same place */
    int code = completion_committed(shuntd, operation, &request->message.commit.entry, request->message.commit.child);
    return code == 0 ? REPLY_SILENT : code;
}

int ops_abort(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct operation *operation = completion_mine(shuntd, request);
    if (operation == NULL || operation_partner(operation) != NULL)
        return request->message.tag != 0 ? REPLY_ANSWER : REPLY_SILENT;
    const bool frozen = operation_is_frozen(operation);
    const struct dirid child = frozen ? operation->rmdir.child : (struct dirid){0};
    if (frozen)
        operation->rmdir.step = RMDIR_CLAIMS; /* it is thawed here, for the client that waits for that */
    int code = completion_failed(shuntd, operation);
    if (code == 0 && frozen)
        return coordinator_thaw_for(shuntd, child, request);
    return code != 0 ? code : request->message.tag != 0 ? REPLY_ANSWER : REPLY_SILENT;
}

int ops_unlinked(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    static const struct record_entry nothing;
    struct operation *operation = completion_mine(shuntd, request);
    if (operation == NULL || (operation->kind != OPERATION_UNLINK && operation->kind != OPERATION_RMDIR))
        return REPLY_SILENT;
    int code = completion_succeeded(shuntd, operation, &nothing, (struct dirid){0, 0});
    return code == 0 ? REPLY_SILENT : code;
}
