/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LOAD: the first operation in a directory. Trunk and mirrors are listed by a job; whoever asks about the
 * directory meanwhile waits; then this index may answer "absent". */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "serve/serve.h"

struct load_job {
    struct disk_job job;
    struct listen_request request;
    struct dirid id;
    uint16_t branch;
    struct listing listing;
    int result;
    char path[PATH_MAX];
};

static void carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct load_job *load = (struct load_job *)job;
    HOOK("load-begun");
    int fd = disk_open_trunk(shuntd, load->path, load->id);
    load->result = fd;
    if (fd < 0)
        return;
    load->result = listing_init(&load->listing, &shuntd->root, fd, load->path, load->branch, LISTING_SETTLE);
    sys_close(fd);
    HOOK("load-listed");
}

static int store_names(struct shuntd *shuntd, const struct listing *listing, struct dirid id)
{
    int code = 0;
    for (size_t i = 0; i < listing->count && code == 0 && !BROKEN("absent-unloaded"); i++) {
        const struct union_name *name = &listing->names[i];
        struct record_entry entry = {.type = name->type,
                                     .state = RECORD_LIVE,
                                     .branch = name->branch,
                                     .leaf = name->leaf,
                                     .ino = name->ino};
        code = index_put_entry(shuntd->index, id, name->name, strlen(name->name), &entry);
    }
    return code;
}

static int take_leaves(struct home_dir *dir, const struct listing *listing, uint16_t branch)
{
    struct home_share *share = home_share(dir, branch);
    int code = share != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < listing->leaves && code == 0; i++)
        code = home_leaf_count(share, (uint32_t)i, (int32_t)listing->leaf_counts[i]);
    for (size_t i = 0; i < listing->count && code == 0; i++) {
        const struct union_name *name = &listing->names[i];
        if (name->branch != 0 && name->branch != branch)
            code = (share = home_share(dir, name->branch)) != NULL ? home_leaf_count(share, name->leaf, 1)
                                                                   : -ENOMEM;
    }
    return code;
}

static int store(struct shuntd *shuntd, struct home_dir *dir, const struct listing *listing)
{
    struct record_dir record = {.flags = RECORD_LOADED};
    if (listing->trunk_unlisted)
        record.flags |= RECORD_UNLISTED;
    if (listing->marked) {
        record.flags |= RECORD_MARKED;
        record.marker = listing->marker.id;
        memcpy(record.mirror, listing->marker.mirror, sizeof record.mirror);
    }
    int code = store_names(shuntd, listing, dir->id);
    if (code == 0)
        code = take_leaves(dir, listing, shuntd->branch);
    if (code != 0)
        return code;
    dir->record = record;
    shuntd->counts.loads++;
    return home_dir_store(shuntd, dir);
}

static int finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct load_job *load = (struct load_job *)job;
    struct message answer = {.type = MESSAGE_ANSWER, .result = load->result < 0 ? load->result : 0};
    struct home_dir *dir = home_dir_find(shuntd->home, load->id);
    int code = 0;
    dir->working = false;
    if (load->result == 0) {
        code = store(shuntd, dir, &load->listing);
        listing_finish(&load->listing);
        home_wake(shuntd->home, &dir->waiting);
    } else {
        home_dir_drop(shuntd->home, dir);
    }
    if (code == 0)
        code = serve_answer(shuntd, &load->request, &answer);
    free(load);
    return code;
}

/* `path` comes from a client: it must stay beneath the root and out of shunt's own directory. */
static bool path_is_inside(const char *path)
{
    if (path[0] == '/' || strncmp(path, LAYOUT_OWN "/", sizeof LAYOUT_OWN) == 0 ||
        strcmp(path, LAYOUT_OWN) == 0)
        return false;
    for (const char *at = path; at != NULL; at = strchr(at, '/'), at += at != NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    return true;
}

static int submit(struct shuntd *shuntd, const struct listen_request *request, const char *path)
{
    struct load_job *load = calloc(1, sizeof *load);
    struct home_dir *dir = load != NULL ? home_dir_add(shuntd->home, request->message.dir[0], path) : NULL;
    if (dir == NULL) {
        free(load);
        return -ENOMEM;
    }
    load->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    load->request = *request;
    load->id = dir->id;
    load->branch = shuntd->branch;
    strcpy(load->path, path);
    dir->working = true;
    if (BROKEN("loads-late"))
        dir->record.flags |= RECORD_LOADED;
    disk_submit(shuntd->disk, &load->job);
    return SERVE_PARKED;
}

int serve_load(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    char path[PATH_MAX];
    memcpy(path, message->text, message->text_length);
    path[message->text_length] = '\0';
    if (!path_is_inside(path)) {
        answer->result = -EXDEV;
        return SERVE_ANSWER;
    }
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (home_dir_is_loaded(dir))
        return home_dir_set_path(dir, path) == 0 ? SERVE_ANSWER : -ENOMEM;
    if (dir != NULL && dir->working)
        return serve_park(shuntd, &dir->waiting, request);
    return submit(shuntd, request, path);
}
