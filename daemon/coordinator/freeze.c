/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* FREEZE: a directory is about to be removed. All its homes freeze it; if no name is left there, its mirrors and its marker
 * go. THAW and DROP say how that went.
 *
 * Nobody waits for anything while a directory is frozen, or two processes that remove and rename crosswise would wait for
 * each other: where a name is claimed, the directory is thawed again, and the freeze is tried once more when the name is
 * free. A process that makes and removes files there without a pause has one claimed each time: where one of them was there
 * since the first try, the directory was not empty. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "disk/disk.h"
#include "home/home.h"
#include "home/route.h"
#include "reply/answer_queue.h"
#include "rpc/collective.h"
#include "union/disk.h"
#include "union/marker.h"
#include "union/mirror.h"

/* What every daemon does. */

/* Names are on their way here: the coordinator hears when they have come, and nobody is at work on one. */
static int freeze_await_names(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, id, "")) == NULL)
        return -ENOMEM;
    int code = home_report_idle(shuntd->home, dir);
    return code == 0 ? MESSAGE_BUSY : code;
}

int freeze_part_freeze(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    HOOK("freeze-asked");
    if (shuntd->route.missing > 0 && (dir != NULL || !BROKEN("unknown-is-empty")))
        return freeze_await_names(shuntd, message->dir);
    return dir != NULL ? home_freeze(shuntd->home, dir, message->freeze.tried) : 0;
}

int freeze_part_thaw(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    HOOK("thawed");
    return dir != NULL ? home_thaw(shuntd->home, dir) : 0;
}

int freeze_part_drop(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    if (dir == NULL)
        return 0;
    int code = home_del_dir(shuntd->home, dir);
    home_dir_forget_times(dir);
    home_dir_drop(shuntd->home, dir);
    return code;
}

/* Another coordinator than the one that has said so may have frozen it since. */
static int freeze_ended(struct shuntd *shuntd, const struct coordinator_call *coordinator_call, const struct message *answer)
{
    struct home_dir *dir = home_dir_find(shuntd->home, answer->dir);
    if (dir == NULL || !dir->frozen)
        return 0;
    return coordinator_call->epoch == shuntd->route.epoch ? home_thaw(shuntd->home, dir) : freeze_await_thaw(shuntd, dir->id);
}

int freeze_await_thaw(struct shuntd *shuntd, struct dirid id)
{
    const struct message question = {.type = MESSAGE_AWAIT_THAW, .dir = id};
    return BROKEN("frozen-for-good") ? 0 : coordinator_submit(shuntd, &question, freeze_ended, NULL);
}

/* What the coordinator does. */

/* It is not asked while a directory is being frozen, or closed. */
int freeze_is_over(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    return coordinator_result(shuntd, question, 0);
}

struct freeze {
    struct disk_job job;
    struct coordinator_request *question;
    struct dirid id;
    uint32_t epoch; /* of the route, when it began */
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

/* The node whose branch it is may have made it, or leaves of it, after this node's kernel has looked. */
static int freeze_remove_mirror(const struct shuntd *shuntd, const char *branch, const char *mirror)
{
    char path[2 * PATH_MAX];
    struct statx parent, stat;
    snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s/%s/0", branch, mirror);
    if (shuntd->root.keeps_names)
        disk_look_freshly(shuntd->root.path, path, &parent, &stat);
    snprintf(path, sizeof path, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path, branch);
    return mirror_remove(path, mirror);
}

static void freeze_carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct freeze *freeze = (struct freeze *)job;
    int trunk = disk_open_trunk(shuntd, freeze->path, freeze->id);
    freeze->result = disk_is_elsewhere(trunk) ? MESSAGE_NOT_LOADED : trunk < 0 ? trunk : 0;
    for (size_t i = 0; i < shuntd->root.branch_count && freeze->result == 0; i++)
        freeze->result = freeze_remove_mirror(shuntd, shuntd->root.branches[i], freeze->mirror);
    HOOK("mirrors-removed");
    if (freeze->result == 0 && !coordinator_has_lease(shuntd)) /* others may have made mirrors by this marker since */
        freeze->result = MESSAGE_NOT_LOADED;
    if (freeze->result == 0)
        freeze->result = marker_remove(trunk); /* the rmdir may be refused */
    if (trunk >= 0)
        sys_close(trunk);
    HOOK("trunk-job-done");
}

static int freeze_thawed(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze freeze = *(struct freeze *)context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze.id);
    int code = 0;
    free(context);
    dir->coordinator->in_request = false;
    if (route_lacks_home(&shuntd->route, &shuntd->session)) { /* coordinator_resume_all comes back to it */
        list_append(&dir->coordinator->queued, &freeze.question->link);
        return 0;
    }
    if (freeze.result == MESSAGE_NOT_EMPTY || freeze.result == MESSAGE_NOT_LOADED || freeze.result < 0)
        code = coordinator_result(shuntd, freeze.question, freeze.result);
    else if (dir->coordinator->retries_removal ||
             freeze.epoch != shuntd->route.epoch) /* nobody says so any more where all began again */
        code = coordinator_serve(shuntd, freeze.question);
    else /* coordinator_dir_idle comes back to it */
        list_append(&dir->coordinator->awaiting_idle, &freeze.question->link);
    return code == 0 ? coordinator_resume(shuntd, freeze.id) : code;
}

static int freeze_thaw(struct shuntd *shuntd, struct freeze *freeze)
{
    const struct message thaw = {.type = MESSAGE_THAW, .dir = freeze->id};
    return collective_begin(shuntd, &thaw, NULL, freeze_thawed, freeze);
}

/* All are frozen, and nothing is left that would stand in the way of an rmdir but what the kernel knows of. */
static int freeze_closed(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze *freeze = context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    struct coordinator_request *question = freeze->question;
    struct dirid id = freeze->id;
    if (coordinator_is_left(shuntd, question)) {
        freeze->result = MESSAGE_NOT_LOADED;
        return freeze_thaw(shuntd, freeze);
    }
    free(freeze);
    dir->coordinator->closing = true;
    dir->coordinator->closed_for = question->member;
    dir->coordinator->in_request = false;
    int code = coordinator_result(shuntd, question, 0);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int freeze_leaves_forgotten(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    return freeze_thaw(shuntd, context);
}

/* One of its mirrors has something that no daemon knows: a file that was removed while it was open (NFS), or what is not
 * shunt's. The marker stays, and rmdir says that the directory is not empty, which is true on disk. Other leaves are gone: all
 * daemons hear of the marker once more while it is frozen, and make new ones (placement_part_record). */
static int freeze_not_bare(struct shuntd *shuntd, struct home_dir *dir, struct freeze *freeze)
{
    struct message record = {.type = MESSAGE_RECORD, .dir = freeze->id};
    log_warning("%s: its mirrors cannot be removed: %s", dir->path, strerror(-freeze->result));
    freeze->result = MESSAGE_NOT_EMPTY;
    coordinator_put_record(&record.record.record, dir);
    return collective_begin(shuntd, &record, NULL, freeze_leaves_forgotten, freeze);
}

static int freeze_finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct freeze *freeze = (struct freeze *)job;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    struct message record = {.type = MESSAGE_RECORD, .dir = freeze->id};
    coordinator_end_job(shuntd, freeze->epoch);
    /* It, or one above it, is being renamed, and its new place was not told yet: the client knows it, loads the directory by
     * it, and asks again. */
    if (freeze->result == MESSAGE_NOT_LOADED)
        return freeze_thaw(shuntd, freeze);
    if (freeze->result != 0 && freeze->result != -ENOENT) /* the marker may be gone already */
        return freeze_not_bare(shuntd, dir, freeze);
    dir->record.flags &= ~(uint32_t)RECORD_MARKED;
    dir->record.marker = 0;
    memset(dir->record.mirror, 0, sizeof dir->record.mirror);
    coordinator_number_decision(shuntd, dir);
    coordinator_put_record(&record.record.record, dir);
    return collective_begin(shuntd, &record, NULL, freeze_closed, freeze);
}

static int freeze_frozen(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct freeze *freeze = context;
    struct home_dir *dir = home_dir_find(shuntd->home, freeze->id);
    HOOK("freeze-answered");
    /* Names may have been nowhere while all were asked. Where a member is gone nobody says later that a name is free. */
    bool moved = freeze->epoch != shuntd->route.epoch || !dir->coordinator->loaded;
    dir->coordinator->retries_removal |= moved || end->lost;
    freeze->result = end->lost ? MESSAGE_BUSY : end->result;
    if (freeze->result != 0 || moved || route_lacks_home(&shuntd->route, &shuntd->session))
        return freeze_thaw(shuntd, freeze);
    if (!(dir->record.flags & RECORD_MARKED))
        return freeze_closed(shuntd, freeze, end);
    freeze->job = (struct disk_job){.carry_out = freeze_carry_out, .finish = freeze_finish};
    memcpy(freeze->mirror, dir->record.mirror, sizeof freeze->mirror);
    strcpy(freeze->path, dir->path);
    coordinator_begin_job(shuntd, &freeze->job);
    return 0;
}

int coordinator_freeze(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    const uint64_t now = clock_monotonic();
    question->began = question->began != 0 ? question->began : now;
    const struct message freeze_all = {.type = MESSAGE_FREEZE, .dir = dir->id, .freeze.tried = now - question->began};
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
    return collective_begin(shuntd, &freeze_all, NULL, freeze_frozen, freeze);
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
