/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Where a birth goes, and the making of leaves for it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "serve/relay.h"
#include "serve/serve.h"
#include "union/mirror.h"
#include "union/placement.h"

struct leaf_job {
    struct disk_job job;
    struct link link; /* on shuntd->far_leaves, while another daemon makes it */
    struct dirid id;
    uint16_t branch;
    uint32_t leaf;
    bool marked; /* before */
    struct marker marker;
    int result;
};

static int mark(int trunk, struct leaf_job *leaf)
{
    if (getrandom(&leaf->marker.id, sizeof leaf->marker.id, 0) != sizeof leaf->marker.id)
        return -EIO;
    leaf->marker.id &= (1ull << 48) - 1;
    leaf->marker.id |= leaf->marker.id == 0;
    leaf->marker.directory = leaf->id;
    marker_name(&leaf->marker);
    return marker_write(trunk, &leaf->marker);
}

/* Permission to write a marker that the file system refuses for good is a reason to stay in the trunk; a full
 * disk is not, it may have room again. */
static int marker_refused(int code)
{
    return code == -EACCES || code == -EPERM || code == -EROFS || code == -EEXIST ? RECORD_WHY_MARKER : code;
}

/* This node's own mirrors are made here; another's by its own daemon, since a directory that its maker's node
 * still holds costs every create in it four requests instead of one (measured on CephFS). */
static int make_mirror(const struct shuntd *shuntd, struct leaf_job *leaf, int trunk)
{
    if (leaf->branch != shuntd->branch)
        return 0;
    int code = mirror_make(trunk, shuntd->branch_path, leaf->marker.mirror, leaf->leaf);
    if (code != 0 && code != -EEXIST && !leaf->marked)
        sys_unlinkat(trunk, LAYOUT_MARKER, 0);
    return code == -EEXIST ? 0 : code;
}

static void carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct leaf_job *leaf = (struct leaf_job *)job;
    int trunk = disk_open_trunk(shuntd, leaf->marker.path, leaf->id);
    leaf->result = trunk;
    if (trunk < 0)
        return;
    leaf->result = leaf->marked ? 0 : marker_refused(mark(trunk, leaf));
    if (leaf->result == 0)
        leaf->result = make_mirror(shuntd, leaf, trunk);
    sys_close(trunk);
}

static int made(struct shuntd *shuntd, struct home_dir *dir, const struct leaf_job *leaf)
{
    dir->record.flags |= RECORD_MARKED;
    dir->record.marker = leaf->marker.id;
    memcpy(dir->record.mirror, leaf->marker.mirror, sizeof dir->record.mirror);
    struct home_share *share = home_share(dir, leaf->branch);
    int code = share != NULL ? home_leaf_open(share, leaf->leaf, shuntd->options.leaf_full) : -ENOMEM;
    return code == 0 ? home_dir_store(shuntd, dir) : code;
}

/* What could not be made: for good, and the directory stays in the trunk; or this time, and those who wait go
 * there. */
static int not_made(struct shuntd *shuntd, struct home_dir *dir, int result)
{
    if (result > 0) {
        dir->record.why = (uint32_t)result;
        log_line("births in %s stay in the trunk: reason %d", dir->path, result);
        return home_dir_store(shuntd, dir);
    }
    log_line("no leaf could be made for %s: %s", dir->path, strerror(-result));
    if ((result == -ESTALE || result == -ENOENT) && dir->flights == 0) {
        /* A native rename moved it: who waits is to tell its new place. */
        struct dirid id = dir->id;
        home_dir_drop(shuntd->home, dir);
        return index_del_dir(shuntd->index, id);
    }
    for (struct link *link = dir->waiting.next; link != &dir->waiting; link = link->next) {
        struct message *message = &LINK_OF(link, struct home_parked, link)->request.message;
        if (message->type == MESSAGE_RESERVE || message->type == MESSAGE_RENAME)
            message->flags |= MESSAGE_TRUNK;
    }
    return 0;
}

static int end_leaf(struct shuntd *shuntd, struct leaf_job *leaf)
{
    struct home_dir *dir = home_dir_find(shuntd->home, leaf->id);
    dir->working = false;
    int code = leaf->result == 0 ? made(shuntd, dir, leaf) : not_made(shuntd, dir, leaf->result);
    dir = home_dir_find(shuntd->home, leaf->id);
    if (dir != NULL)
        home_wake(shuntd->home, &dir->waiting);
    free(leaf);
    return code;
}

/* The marker is there: the mirror is asked for. */
static int finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct leaf_job *leaf = (struct leaf_job *)job;
    if (leaf->result != 0 || leaf->branch == shuntd->branch)
        return end_leaf(shuntd, leaf);
    list_append(&shuntd->far_leaves, &leaf->link);
    const struct message make = {.type = MESSAGE_PLACE,
                                 .dir[0] = leaf->id,
                                 .name[0] = leaf->marker.mirror,
                                 .name_length[0] = (uint16_t)strlen(leaf->marker.mirror),
                                 .text = leaf->marker.path,
                                 .text_length = (uint16_t)strlen(leaf->marker.path)};
    return relay_make_leaf(shuntd, leaf->branch, leaf->leaf, &make);
}

/* What another daemon says to that, or that it has gone (result < 0). */
int serve_leaf_made(struct shuntd *shuntd, uint16_t branch, struct dirid id, uint32_t number, int result)
{
    for (struct link *link = shuntd->far_leaves.next; link != &shuntd->far_leaves; link = link->next) {
        struct leaf_job *leaf = LINK_OF(link, struct leaf_job, link);
        if (leaf->branch != branch || leaf->leaf != number || !dirid_equal(leaf->id, id))
            continue;
        list_remove(&leaf->link);
        leaf->result = result;
        return end_leaf(shuntd, leaf);
    }
    return 0;
}

int serve_leaves_gone(struct shuntd *shuntd, uint16_t branch)
{
    struct link *link = shuntd->far_leaves.next;
    int code = 0;
    while (code == 0 && link != &shuntd->far_leaves) {
        struct leaf_job *leaf = LINK_OF(link, struct leaf_job, link);
        link = link->next;
        if (leaf->branch == branch)
            code = serve_leaf_made(shuntd, branch, leaf->id, leaf->leaf, -EHOSTDOWN);
    }
    return code;
}

static int finish_for_home(struct disk_job *job, struct shuntd *shuntd)
{
    struct leaf_job *leaf = (struct leaf_job *)job;
    const struct message made = {.type = MESSAGE_ANSWER, .dir[0] = leaf->id, .result = leaf->result};
    int code = relay_leaf_made(shuntd, leaf->leaf, &made);
    free(leaf);
    return code;
}

/* At the other end: a leaf of this node's own mirror, which its home asks for. The marker is there. */
int serve_make_leaf(struct shuntd *shuntd, uint32_t number, const struct message *make)
{
    struct leaf_job *leaf = calloc(1, sizeof *leaf);
    if (leaf == NULL)
        return -ENOMEM;
    leaf->job = (struct disk_job){.carry_out = carry_out, .finish = finish_for_home};
    leaf->id = make->dir[0];
    leaf->branch = shuntd->branch;
    leaf->marked = true;
    leaf->leaf = number;
    if (make->name_length[0] < sizeof leaf->marker.mirror)
        memcpy(leaf->marker.mirror, make->name[0], make->name_length[0]);
    memcpy(leaf->marker.path, make->text, make->text_length);
    disk_submit(shuntd->disk, &leaf->job);
    return 0;
}

static int make_leaf(struct shuntd *shuntd, struct home_dir *dir, uint16_t branch, uint32_t number)
{
    struct leaf_job *leaf = calloc(1, sizeof *leaf);
    if (leaf == NULL)
        return -ENOMEM;
    leaf->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    leaf->id = dir->id;
    leaf->branch = branch;
    leaf->leaf = number;
    leaf->marked = (dir->record.flags & RECORD_MARKED) != 0;
    leaf->marker.id = dir->record.marker;
    memcpy(leaf->marker.mirror, dir->record.mirror, sizeof leaf->marker.mirror);
    strcpy(leaf->marker.path, dir->path);
    dir->working = true;
    disk_submit(shuntd->disk, &leaf->job);
    return -EAGAIN;
}

int serve_choose(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length, uint64_t maker,
                 struct record_entry *place)
{
    struct home_share *share = home_share(dir, serve_branch(shuntd, maker));
    uint32_t leaf, fresh;
    place->branch = 0;
    place->leaf = 0;
    if (share == NULL)
        return -ENOMEM;
    if (dir->record.why != RECORD_WHY_NOT ||
        !placement_redirects(shuntd->options.placement, home_share_count(dir), share->births))
        return 0;
    if (home_leaf_pick(share, record_hash(name, length), maker, shuntd->options.leaf_full, &leaf, &fresh) !=
        0)
        return dir->working ? -EAGAIN : make_leaf(shuntd, dir, share->branch, fresh);
    place->branch = share->branch;
    place->leaf = leaf;
    return 0;
}
