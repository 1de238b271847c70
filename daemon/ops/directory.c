/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* ATTRIBUTES, SYNC, WATCH, PLACE: what concerns a directory and its mirrors as a whole. Each daemon does it for
 * what its own node has. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "coordinator/placement.h"
#include "disk/disk.h"
#include "home/home.h"
#include "ops/look.h"
#include "ops/ops.h"
#include "reply/reply.h"
#include "request/request.h"
#include "rpc/collective.h"
#include "rpc/peer_rpc.h"
#include "union/mirror.h"
#include "union/quota.h"

struct directory_job {
    struct disk_job job;
    struct collective *collective; /* ATTRIBUTES and SYNC: goes on at the end */
    uint16_t type;
    bool all; /* of branches that are no member's, too */
    struct dirid id;
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

/* Branches that no daemon serves are looked after by the one that was asked. */
static bool directory_is_its_business(const struct directory_job *job, const struct shuntd *shuntd, size_t branch)
{
    return branch + 1 == shuntd->branch || (job->all && rpc_member_of(shuntd, (uint16_t)(branch + 1)) == 0);
}

static void directory_each_branch(struct directory_job *job, const struct shuntd *shuntd, int trunk)
{
    char branch[2 * PATH_MAX];
    for (size_t i = 0; i < shuntd->root.branch_count && job->result == 0; i++) {
        if (!directory_is_its_business(job, shuntd, i))
            continue;
        snprintf(branch, sizeof branch, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path, shuntd->root.branches[i]);
        job->result = job->type == MESSAGE_SYNC ? mirror_sync(branch, job->mirror) : mirror_follow(trunk, branch, job->mirror);
    }
}

static void directory_carry_out_on_mirrors(struct disk_job *base, const struct shuntd *shuntd)
{
    struct directory_job *job = (struct directory_job *)base;
    const bool follows = job->type != MESSAGE_SYNC; /* which is of the mirrors alone */
    int trunk = follows ? disk_open_trunk(shuntd, job->path, job->id) : -1;
    job->result = !follows || trunk >= 0 ? 0 : disk_stale_if_elsewhere(trunk);
    directory_each_branch(job, shuntd, trunk);
    if (trunk >= 0 && job->result == 0) /* what mirrors cannot have */
        job->result = quota_of_directory(trunk, shuntd->root.path);
    if (trunk >= 0)
        sys_close(trunk);
}

static int directory_finish_on_mirrors(struct disk_job *base, struct shuntd *shuntd)
{
    struct directory_job *job = (struct directory_job *)base;
    struct home_dir *dir = home_dir_find(shuntd->home, job->id);
    int code = 0;
    dir->disk_jobs--;
    if (job->result > 0)
        code = placement_pin(shuntd, dir, (enum record_why)job->result);
    if (code == 0)
        code = home_dir_wake(shuntd->home, dir);
    if (code == 0)
        code = collective_finish(shuntd, job->collective, job->result < 0 ? job->result : 0);
    home_dir_release(shuntd->home, dir);
    free(job);
    return code;
}

static struct directory_job *directory_new_job(struct home_dir *dir)
{
    struct directory_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->id = dir->id;
    memcpy(job->mirror, dir->record.mirror, sizeof job->mirror);
    strcpy(job->path, dir->path);
    return job;
}

int directory_part_sync(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    if (dir == NULL || !(dir->record.flags & RECORD_MARKED))
        return 0;
    if (dir->disk_jobs > 0) {
        collective_wait(collective, dir);
        return COLLECTIVE_LATER;
    }
    struct directory_job *job = directory_new_job(dir);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = directory_carry_out_on_mirrors, .finish = directory_finish_on_mirrors};
    job->collective = collective;
    job->type = message->type;
    job->all = collective_is_mine(collective);
    dir->disk_jobs++;
    disk_submit(shuntd->disk, &job->job);
    return COLLECTIVE_WORKS;
}

int directory_part_moved(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    char paths[MESSAGE_TEXT_MAX + 1];
    message_copy_path(paths, &message->moved.paths);
    size_t from = strlen(paths);
    if (from >= message->moved.paths.length)
        return 0;
    home_dirs_moved(shuntd->home, paths, paths + from + 1);
    look_refresh_parent(shuntd, paths);
    look_refresh_parent(shuntd, paths + from + 1);
    return 0;
}

/* What a daemon knows of a place is a hint, which each use checks by the directory's identity, and LOAD corrects: two places
 * that are too long for one message are told by nobody, and this message may come to a daemon whose processes have seen that
 * directory, or the next one that came to its old place, before. */
int directory_tell_moved(struct shuntd *shuntd, const char *from, const char *to, collective_done *done, void *context)
{
    static const struct collective_end alone;
    char paths[MESSAGE_TEXT_MAX];
    int length = snprintf(paths, sizeof paths, "%s%c%s", from, '\0', to);
    const struct message moved = {.type = MESSAGE_MOVED, .moved.paths = message_text(paths, length)};
    if (length < (int)sizeof paths)
        return collective_begin(shuntd, &moved, NULL, done, context);
    home_dirs_moved(shuntd->home, from, to);
    return done != NULL ? done(shuntd, context, &alone) : 0;
}

int ops_about_directory(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    return dir != NULL ? coordinator_submit_for(shuntd, &request->message, request) : how;
}

/* The times that are still to be written to the trunk would be an event of their own, after the fact: they
 * are written first. A second watcher finds that done, or the job under way. */
int directory_part_watch(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    int code = 0;
    if (dir == NULL)
        return 0;
    if (dir->record.why == RECORD_WHY_NOT) {
        code = placement_pin(shuntd, dir, RECORD_WHY_WATCHED);
        if (code == 0 && !list_empty(&dir->unwritten) && !dir->writing)
            code = dir_times_write(shuntd, dir);
    }
    if (code != 0 || !dir->writing)
        return code;
    collective_wait(collective, dir);
    return COLLECTIVE_LATER;
}

int ops_place_of(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *m = &request->message;
    struct home_dir *dir = home_dir_of_mirror(shuntd->home, m->name.text, m->name.length);
    if (dir == NULL)
        answer->result = MESSAGE_ABSENT;
    else if (strlen(dir->path) > REQUEST_TEXT_MAX)
        answer->result = -ENAMETOOLONG;
    if (answer->result != 0)
        return REPLY_ANSWER;
    answer->dir = dir->id;
    answer->text_answer.text = message_text(dir->path, strlen(dir->path));
    int code = reply_answer(shuntd, request, answer);
    return code == 0 ? REPLY_SILENT : code;
}
