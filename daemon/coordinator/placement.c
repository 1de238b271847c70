/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Where a create goes, and how leaves are made for it. */

#include "coordinator/placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hook.h"
#include "base/log.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "disk/disk.h"
#include "home/home.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "union/mirror.h"
#include "union/placement.h"
#include "union/quota.h"

/* What the coordinator does: a marker, and on its own node the leaf that is asked for with it, in one go. */

struct mark_job {
    struct disk_job job;
    struct coordinator_request *question;
    struct dirid id;
    bool own;
    uint32_t leaf;
    struct marker marker;
    int result;
    uint32_t began; /* in which epoch of the route, */
    uint32_t epoch; /* and in which all were told */
};

static int placement_mark(const struct shuntd *shuntd, int trunk, struct mark_job *job)
{
    const int refused = quota_of_directory(trunk, shuntd->root.path); /* before the marker, which it would count */
    if (refused != 0)
        return refused;
    if (getrandom(&job->marker.id, sizeof job->marker.id, 0) != sizeof job->marker.id)
        return -EIO;
    job->marker.id &= (1ull << 48) - 1;
    job->marker.id |= job->marker.id == 0;
    job->marker.directory = job->id;
    job->marker.root = shuntd->root.id;
    marker_name(&job->marker);
    return marker_write(trunk, &job->marker);
}

/* Permission to write a marker that the file system refuses for good is a reason to stay in the trunk; a full
 * disk is not, it may have room again. */
static int placement_marker_refused(int code)
{
    return code == -EACCES || code == -EPERM || code == -EROFS || code == -EEXIST ? RECORD_WHY_MARKER : code;
}

static int placement_make_mirror(const struct shuntd *shuntd, int trunk, const char *mirror, uint32_t leaf)
{
    int code = mirror_make(trunk, shuntd->branch_path, mirror, leaf);
    return code == -EEXIST ? 0 : code;
}

/* Without a lease it stays, since others may have made mirrors by it; then there is no leaf yet, as on any other node. */
static int placement_unmark(const struct shuntd *shuntd, int trunk, struct mark_job *job)
{
    job->own = coordinator_has_lease(shuntd);
    if (job->own)
        sys_unlinkat(trunk, LAYOUT_MARKER, 0);
    return job->own ? job->result : 0;
}

static void placement_carry_out_mark(struct disk_job *base, const struct shuntd *shuntd)
{
    struct mark_job *job = (struct mark_job *)base;
    int trunk = disk_open_trunk(shuntd, job->marker.path, job->id);
    HOOK("mark-begun");
    job->result = trunk < 0                       ? disk_stale_if_elsewhere(trunk)
                  : coordinator_has_lease(shuntd) ? placement_marker_refused(placement_mark(shuntd, trunk, job))
                                                  : -ESTALE; /* others may have loaded it since, and go by its having none */
    HOOK("marker-written");
    if (job->result == 0 && job->own) {
        job->result = placement_make_mirror(shuntd, trunk, job->marker.mirror, job->leaf);
        if (job->result != 0)
            job->result = placement_unmark(shuntd, trunk, job);
    }
    if (trunk >= 0)
        sys_close(trunk);
    HOOK("trunk-job-done");
}

static int placement_all_know(struct shuntd *, void *, const struct collective_end *);

static int placement_tell_record(struct shuntd *shuntd, struct home_dir *dir, struct mark_job *job)
{
    struct message record = {.type = MESSAGE_RECORD, .dir = dir->id};
    job->epoch = shuntd->route.epoch;
    coordinator_put_record(&record.record.record, dir);
    return collective_begin(shuntd, &record, NULL, placement_all_know, job);
}

/* Every daemon knows the marker, but for one that took over names meanwhile from a home that did not know it yet. The
 * question is answered like any that comes later. */
static int placement_all_know(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct mark_job *job = context;
    struct home_dir *dir = home_dir_find(shuntd->home, job->id);
    if (job->epoch != shuntd->route.epoch)
        return placement_tell_record(shuntd, dir, job);
    struct message answer = {.coordinator_answer.leaf_is_made = job->own};
    struct dirid id = job->id;
    coordinator_put_record(&answer.coordinator_answer.record, dir);
    dir->coordinator->in_request = false;
    int code = coordinator_answer(shuntd, job->question, &answer);
    free(job);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int placement_finish_mark(struct disk_job *base, struct shuntd *shuntd)
{
    struct mark_job *job = (struct mark_job *)base;
    struct home_dir *dir = home_dir_find(shuntd->home, job->id);
    coordinator_end_job(shuntd, job->began);
    if (job->result != 0) {
        struct message answer = {.result = job->result < 0 ? job->result : 0,
                                 .coordinator_answer.why = job->result > 0 ? (uint32_t)job->result : 0};
        struct dirid id = job->id;
        dir->coordinator->in_request = false;
        int code = coordinator_answer(shuntd, job->question, &answer);
        free(job);
        return code == 0 ? coordinator_resume(shuntd, id) : code;
    }
    dir->record.flags |= RECORD_MARKED;
    dir->record.marker = job->marker.id;
    memcpy(dir->record.mirror, job->marker.mirror, sizeof dir->record.mirror);
    coordinator_number_decision(shuntd, dir);
    return placement_tell_record(shuntd, dir, job);
}

int coordinator_mark(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    struct message answer = {.result = 0};
    if (dir->record.flags & RECORD_MARKED) {
        coordinator_put_record(&answer.coordinator_answer.record, dir);
        return coordinator_answer(shuntd, question, &answer);
    }
    if (dir->record.why == RECORD_WHY_WATCHED) { /* meanwhile; the watcher would see the marker come */
        answer.coordinator_answer.why = RECORD_WHY_WATCHED;
        return coordinator_answer(shuntd, question, &answer);
    }
    struct mark_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = placement_carry_out_mark, .finish = placement_finish_mark};
    job->question = question;
    job->id = dir->id;
    job->own = question->member == shuntd->me.number;
    job->leaf = question->message.leaf.leaf;
    job->began = shuntd->route.epoch;
    strcpy(job->marker.path, dir->path);
    dir->coordinator->in_request = true;
    coordinator_begin_job(shuntd, &job->job);
    return 0;
}

/* What every daemon is told: marker and mirror, and the place, if the coordinator has heard of another. */
int placement_part_record(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    char path[PATH_MAX];
    if (dir == NULL)
        return 0;
    message_copy_path(path, &message->record.path);
    if (path[0] != '\0' && home_dir_set_path(shuntd->home, dir, path) != 0)
        return -ENOMEM;
    if (!message->record.record.marked || dir->frozen) /* its rmdir has removed leaves (freeze.c) */
        home_leaves_forget(&dir->leaves);
    coordinator_adopt_record(dir, &message->record.record);
    return home_dir_store(shuntd->home, dir);
}

/* What the daemon of the maker's node does. Its mirrors are made by itself alone, since a directory that its
 * maker's node still holds costs every create in it four requests instead of one (measured on CephFS). */

struct leaf_job {
    struct disk_job job;
    struct dirid id;
    uint32_t leaf;
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

static void placement_carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct leaf_job *leaf = (struct leaf_job *)job;
    int trunk = disk_open_trunk(shuntd, leaf->path, leaf->id);
    leaf->result = trunk < 0 ? disk_stale_if_elsewhere(trunk) : quota_of_directory(trunk, shuntd->root.path);
    if (leaf->result == 0)
        leaf->result = placement_make_mirror(shuntd, trunk, leaf->mirror, leaf->leaf);
    if (trunk >= 0)
        sys_close(trunk);
}

static int placement_made(struct shuntd *shuntd, struct home_dir *dir, uint32_t leaf)
{
    int code = home_leaf_open(&dir->leaves, leaf, shuntd->options.leaf_full);
    return code == 0 ? home_dir_store(shuntd->home, dir) : code;
}

int placement_pin(struct shuntd *shuntd, struct home_dir *dir, enum record_why why)
{
    dir->record.why = why;
    int code = shuntd->coordinator_handlers->settle_grants(shuntd, dir);
    return code == 0 ? home_dir_store(shuntd->home, dir) : code;
}

/* What could not be made: for good, and this node's creates in the directory stay in the trunk; or this time, and
 * those who wait go there. */
static int placement_not_made(struct shuntd *shuntd, struct home_dir *dir, int result)
{
    if (result > 0) {
        log_line("%s: new files stay in the trunk, reason %d (run 'shunt status' to see it in words)", dir->path, result);
        return placement_pin(shuntd, dir, (enum record_why)result);
    }
    if (result == -ESTALE || result == -ENOENT) /* renamed or replaced: a waiting client is to tell its new place */
        return reply_forget_dir(shuntd, dir);
    log_warning("%s: no leaf can be made: %s", dir->path, strerror(-result));
    return home_pin_to_trunk(&dir->blocked);
}

static int placement_end_leaf(struct shuntd *shuntd, struct home_dir *dir, uint32_t leaf, int result)
{
    int code = result == 0               ? placement_made(shuntd, dir, leaf)
               : result == -EAGAIN       ? 0
               : home_dir_is_loaded(dir) ? placement_not_made(shuntd, dir, result)
                                         : 0;
    if (code == 0)
        code = home_dir_wake(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    return code;
}

static int placement_finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct leaf_job *leaf = (struct leaf_job *)job;
    struct home_dir *dir = home_dir_find(shuntd->home, leaf->id);
    dir->disk_jobs--;
    int code = placement_end_leaf(shuntd, dir, leaf->leaf, leaf->result);
    free(leaf);
    return code;
}

static int placement_make_leaf(struct shuntd *shuntd, struct home_dir *dir, uint32_t number)
{
    struct leaf_job *leaf = calloc(1, sizeof *leaf);
    if (leaf == NULL)
        return -ENOMEM;
    leaf->job = (struct disk_job){.carry_out = placement_carry_out, .finish = placement_finish};
    leaf->id = dir->id;
    leaf->leaf = number;
    memcpy(leaf->mirror, dir->record.mirror, sizeof leaf->mirror);
    strcpy(leaf->path, dir->path);
    dir->disk_jobs++;
    disk_submit(shuntd->disk, &leaf->job);
    return 0;
}

/* The coordinator's answer to MARK. A waiting request finds out by itself what it means, except for an error. */
static int placement_marked(struct shuntd *shuntd, const struct coordinator_call *coordinator_call,
                            const struct message *answer)
{
    struct home_dir *dir = home_dir_find(shuntd->home, answer->dir);
    struct message asked;
    const int why = (int)answer->coordinator_answer.why;
    message_decode(&asked, coordinator_call->bytes, coordinator_call->size);
    dir->awaits_coordinator = false;
    if (answer->result == 0 && why == 0)
        coordinator_adopt_answer(dir, &answer->coordinator_answer.record);
    if (answer->result == 0 && why == 0 && !answer->coordinator_answer.leaf_is_made)
        return placement_make_leaf(shuntd, dir, asked.leaf.leaf);
    int code = answer->result == MESSAGE_NOT_LOADED ? reply_forget_dir(shuntd, dir) : 0;
    return code == 0 ? placement_end_leaf(shuntd, dir, asked.leaf.leaf,
                                          answer->result == MESSAGE_NOT_LOADED ? -EAGAIN
                                          : why != 0                           ? why
                                                                               : answer->result)
                     : code;
}

static int placement_ask_for_leaf(struct shuntd *shuntd, struct home_dir *dir, uint32_t number)
{
    const struct message mark = {.type = MESSAGE_MARK, .dir = dir->id, .leaf.leaf = number};
    int code;
    if (dir->mirrored) {
        code = placement_make_leaf(shuntd, dir, number);
    } else {
        dir->awaits_coordinator = true;
        HOOK("mark-asked");
        code = coordinator_submit(shuntd, &mark, placement_marked, NULL);
    }
    return code == 0 ? -EAGAIN : code;
}

bool placement_dir_redirects(const struct shuntd *shuntd, const struct home_dir *dir)
{
    return dir->record.why == RECORD_WHY_NOT && placement_redirects(shuntd->options.placement, dir->nodes, dir->leaves.creates);
}

int placement_choose_prefetched(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length, uint64_t client,
                                struct record_entry *place, uint32_t *fresh)
{
    uint32_t leaf;
    if (!placement_dir_redirects(shuntd, dir))
        return 0;
    if (home_leaf_pick(&dir->leaves, record_hash(name, length), client, shuntd->options.leaf_full, &leaf, fresh) != 0)
        return -EAGAIN;
    place->branch = shuntd->branch;
    place->leaf = leaf;
    return 0;
}

/* No leaf is made in a frozen directory: its mirrors are gone, and another one would be left. */
int placement_choose(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length, uint64_t client,
                     struct record_entry *place)
{
    uint32_t fresh;
    int code = placement_choose_prefetched(shuntd, dir, name, length, client, place, &fresh);
    return code == -EAGAIN && !home_dir_is_busy(dir) && !dir->frozen ? placement_ask_for_leaf(shuntd, dir, fresh) : code;
}
