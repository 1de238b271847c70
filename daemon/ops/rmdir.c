/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CLOSE: a directory is about to be removed. Its coordinator has all its homes frozen; if no name is left there its
 * mirrors and its marker go; then the name of the directory is held, and the client may rmdir it. GONE or WITHDRAW
 * says how that went.
 *
 * Nobody waits for anything while a directory is frozen, or two who remove and rename crosswise would wait for each
 * other: where a name is held, the freezes are taken off again, and it is tried once more when the name is free. Whoever makes
 * and removes files there without a pause has one held each time: where one of them was there since the first try, the
 * directory was not empty. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "membership/recovery.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"
#include "union/mirror.h"

/* What every daemon does. */

int collective_freeze(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (dir == NULL)
        return 0;
    if (shuntd->route.missing == 0)
        return home_freeze(shuntd, dir, message->child.ino);
    int code = home_report_idle(shuntd->home, dir); /* names are on their way here */
    return code == 0 ? MESSAGE_BUSY : code;
}

int collective_thaw(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    return dir != NULL ? home_thaw(shuntd, dir) : 0;
}

int collective_drop(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (dir == NULL)
        return 0;
    int code = index_del_dir(shuntd->index, dir->id);
    home_dir_forget_times(dir);
    home_dir_drop(shuntd->home, dir);
    return code;
}

/* What the coordinator does. */

struct freeze {
    struct disk_job job;
    struct coordinator_request *question;
    struct dirid id;
    uint32_t epoch; /* of the route, when it began */
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

static void rmdir_carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct freeze *freeze = (struct freeze *)job;
    char branch[2 * PATH_MAX];
    int trunk = disk_open_trunk(shuntd, freeze->path, freeze->id);
    freeze->result = trunk < 0 ? trunk : 0;
    for (size_t i = 0; i < shuntd->root.branch_count && freeze->result == 0; i++) {
        snprintf(branch, sizeof branch, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path, shuntd->root.branches[i]);
        freeze->result = mirror_remove(branch, freeze->mirror);
    }
    if (freeze->result == 0)
        freeze->result = sys_unlinkat(trunk, LAYOUT_MARKER, 0);
    if (trunk >= 0)
        sys_close(trunk);
}

/* All are frozen, and nothing is left that would stand in the way of an rmdir but what the kernel knows of. */
static int rmdir_closed(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze *freeze = context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    struct coordinator_request *question = freeze->question;
    struct dirid id = freeze->id;
    free(freeze);
    dir->coordinator->closing = true;
    dir->coordinator->in_request = false;
    int code = coordinator_result(shuntd, question, 0);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int rmdir_thawed(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze freeze = *(struct freeze *)context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze.id);
    int code = 0;
    free(context);
    dir->coordinator->in_request = false;
    if (recovery_is_due(shuntd)) { /* coordinator_call_again comes back to it */
        list_append(&dir->coordinator->queued, &freeze.question->link);
        return 0;
    }
    if (freeze.result == MESSAGE_NOT_EMPTY || freeze.result < 0)
        code = coordinator_result(shuntd, freeze.question, freeze.result);
    else if (dir->coordinator->retries_removal ||
             freeze.epoch != shuntd->route.epoch) /* nobody says so any more where all began again */
        code = coordinator_serve(shuntd, freeze.question);
    else /* coordinator_dir_idle comes back to it */
        list_append(&dir->coordinator->awaiting_idle, &freeze.question->link);
    return code == 0 ? coordinator_resume(shuntd, freeze.id) : code;
}

/* The marker stays, and rmdir will say that the directory is not empty, which is true on disk. */
static int rmdir_not_bare(struct shuntd *shuntd, struct home_dir *dir, struct freeze *freeze)
{
    const struct message thaw = {.type = MESSAGE_THAW, .dir[0] = freeze->id};
    log_line("the mirrors of %s could not be removed: %s", dir->path, strerror(-freeze->result));
    dir->record.flags |= RECORD_UNLISTED;
    freeze->result = MESSAGE_NOT_EMPTY;
    return collective_begin(shuntd, &thaw, NULL, rmdir_thawed, freeze);
}

static int rmdir_finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct freeze *freeze = (struct freeze *)job;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    struct message record = {.type = MESSAGE_RECORD, .dir[0] = freeze->id};
    if (freeze->result != 0 && freeze->result != -ENOENT)
        return rmdir_not_bare(shuntd, dir, freeze);
    dir->record.flags &= ~(uint32_t)RECORD_MARKED;
    dir->record.marker = 0;
    memset(dir->record.mirror, 0, sizeof dir->record.mirror);
    coordinator_number_decision(shuntd, dir);
    coordinator_put_record(&record, dir);
    return collective_begin(shuntd, &record, NULL, rmdir_closed, freeze);
}
static int rmdir_frozen(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze *freeze = context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    const struct message thaw = {.type = MESSAGE_THAW, .dir[0] = freeze->id};
    /* Names may have been nowhere while all were asked. */
    bool moved = freeze->epoch != shuntd->route.epoch || !dir->coordinator->loaded;
    dir->coordinator->retries_removal |= moved;
    freeze->result = end->lost ? MESSAGE_BUSY : end->result;
    if (freeze->result != 0 || moved || recovery_is_due(shuntd))
        return collective_begin(shuntd, &thaw, NULL, rmdir_thawed, freeze);
    if (!(dir->record.flags & RECORD_MARKED))
        return rmdir_closed(shuntd, freeze, end);
    freeze->job = (struct disk_job){.carry_out = rmdir_carry_out, .finish = rmdir_finish};
    memcpy(freeze->mirror, dir->record.mirror, sizeof freeze->mirror);
    strcpy(freeze->path, dir->path);
    disk_submit(shuntd->disk, &freeze->job);
    return 0;
}

int coordinator_freeze(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    const uint64_t now = clock_monotonic();
    question->began = question->began != 0 ? question->began : now;
    const struct message freeze_all = {.type = MESSAGE_FREEZE, .dir[0] = dir->id, .child.ino = now - question->began};
    if (dir->record.flags & RECORD_UNLISTED)
        return coordinator_result(shuntd, question, MESSAGE_NOT_EMPTY);
    struct freeze *freeze = calloc(1, sizeof *freeze);
    if (freeze == NULL)
        return -ENOMEM;
    freeze->question = question;
    freeze->id = dir->id;
    freeze->epoch = shuntd->route.epoch;
    dir->coordinator->in_request = true;
    dir->coordinator->retries_removal = false;
    return collective_begin(shuntd, &freeze_all, NULL, rmdir_frozen, freeze);
}

int coordinator_dir_idle(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    struct home_coordinator *coordinator = dir != NULL ? dir->coordinator : NULL;
    if (coordinator == NULL)
        return 0;
    coordinator->retries_removal = true;
    list_move(&coordinator->queued, &coordinator->awaiting_idle);
    return coordinator->in_request ? 0 : coordinator_resume(shuntd, id);
}

/* What the node of who asks does. */

static int rmdir_ask_to_freeze(struct shuntd *, struct operation *);

static int rmdir_release(struct shuntd *shuntd, struct operation *operation, int result)
{
    int code = reply_result(shuntd, operation, result);
    return code == 0 ? home_rpc_abort(shuntd, operation) : code;
}

/* What this node's processes know of a directory that is not loaded is out of date. */
static int rmdir_not_frozen(struct shuntd *shuntd, struct operation *operation, int result)
{
    struct home_dir *child = home_dir_find(shuntd->home, operation->child);
    int code = result == MESSAGE_NOT_LOADED && home_dir_is_loaded(child) ? reply_forget_dir(shuntd, child) : 0;
    return code == 0 ? rmdir_release(shuntd, operation, result) : code;
}

/* Who had the name has it no more: once more. */
static int rmdir_is_free(struct shuntd *shuntd, struct operation *operation, const struct name_answer *unused)
{
    return rmdir_ask_to_freeze(shuntd, operation);
}

static int rmdir_held(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    if (answer->result != MESSAGE_BUSY) {
        operation->place = operation->before;
        return reply_result(shuntd, operation, 0);
    }
    operation->frozen = false;
    int code = coordinator_thaw(shuntd, operation->child);
    return code == 0 ? home_rpc_request(shuntd, operation, NAME_LOOKUP, 0, NULL, rmdir_is_free) : code;
}

static int rmdir_is_frozen(struct shuntd *shuntd, const struct coordinator_call *coordinator_call, const struct message *answer)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    struct operation *operation = operation_by_id(shuntd->home, coordinator_call->operation);
    if (operation == NULL)
        return answer->result == 0 ? coordinator_thaw(shuntd, answer->dir[0]) : 0;
    operation->asks_coordinator = false;
    operation->frozen = answer->result == 0;
    if (operation->abandoned)
        return home_rpc_abort(shuntd, operation);
    if (!operation->frozen)
        return rmdir_not_frozen(shuntd, operation, answer->result);
    return home_rpc_request(shuntd, operation, NAME_CLAIM, NAME_EVEN_ABSENT | NAME_NONBLOCK, &dying, rmdir_held);
}

static int rmdir_ask_to_freeze(struct shuntd *shuntd, struct operation *operation)
{
    const struct message freeze = {.type = MESSAGE_FREEZE, .dir[0] = operation->child};
    const struct coordinator_call coordinator_call = {.operation = operation->id};
    operation->asks_coordinator = true;
    peers_urge_all(shuntd->peers); /* what was removed there is to be gone for its homes when they are asked */
    return coordinator_submit(shuntd, &freeze, rmdir_is_frozen, &coordinator_call);
}

int ops_rmdir(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct operation *operation = operation_find(shuntd->home, dir->id, message->name[0], message->name_length[0]);
    if (operation != NULL)
        return reply_block(shuntd, &operation->blocked, request);
    operation = operation_begin(shuntd, OPERATION_RMDIR, dir, message->name[0], message->name_length[0], request);
    if (operation == NULL)
        return -ENOMEM;
    operation->child = message->child;
    operation_await(shuntd->home, operation->id); /* whoever asks for the directory waits, wherever that is */
    int code = rmdir_ask_to_freeze(shuntd, operation);
    return code == 0 ? REPLY_SILENT : code;
}
