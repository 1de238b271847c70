/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CLOSE: a directory is about to be removed. If its union is empty its mirrors and its marker go, it takes no
 * births any more, and the client may rmdir it; GONE or WITHDRAW says how that went. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "serve/serve.h"
#include "union/mirror.h"

struct bare_job {
    struct disk_job job;
    struct dirid id;
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

static void carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct bare_job *bare = (struct bare_job *)job;
    char branch[2 * PATH_MAX];
    int trunk = disk_open_trunk(shuntd, bare->path, bare->id);
    bare->result = trunk < 0 ? trunk : 0;
    for (size_t i = 0; i < shuntd->root.branch_count && bare->result == 0; i++) {
        snprintf(branch, sizeof branch, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path,
                 shuntd->root.branches[i]);
        bare->result = mirror_remove(branch, bare->mirror);
    }
    if (bare->result == 0)
        bare->result = sys_unlinkat(trunk, LAYOUT_MARKER, 0);
    if (trunk >= 0)
        sys_close(trunk);
}

static int finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct bare_job *bare = (struct bare_job *)job;
    struct home_dir *dir = home_dir_find(shuntd->home, bare->id);
    dir->working = false;
    home_leaves_forget(dir);
    if (bare->result == 0 || bare->result == -ENOENT) {
        dir->record.flags &= ~(uint32_t)RECORD_MARKED;
        dir->record.marker = 0;
        memset(dir->record.mirror, 0, sizeof dir->record.mirror);
    } else {
        /* The marker stays, and rmdir will say that the directory is not empty, which is true on disk. */
        log_line("the mirrors of %s could not be removed: %s", dir->path, strerror(-bare->result));
        dir->record.flags |= RECORD_UNLISTED;
    }
    home_wake(shuntd->home, &dir->waiting);
    free(bare);
    return home_dir_store(shuntd, dir);
}

static int submit(struct shuntd *shuntd, struct home_dir *dir)
{
    struct bare_job *bare = calloc(1, sizeof *bare);
    if (bare == NULL)
        return -ENOMEM;
    bare->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    bare->id = dir->id;
    memcpy(bare->mirror, dir->record.mirror, sizeof bare->mirror);
    strcpy(bare->path, dir->path);
    dir->working = true;
    disk_submit(shuntd->disk, &bare->job);
    return 0;
}

static int close_child(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir,
                       struct home_dir *child)
{
    const struct message *message = &request->message;
    struct flight *flight =
        flight_begin(shuntd, FLIGHT_CLOSE, dir, message->name[0], message->name_length[0], request);
    if (flight == NULL)
        return -ENOMEM;
    flight->child = child;
    child->closing = true;
    int code = index_get_entry(shuntd->index, dir->id, flight->name, flight->length, &flight->before);
    flight->had_before = code == 0;
    if (code == -ENOENT)
        return SERVE_ANSWER;
    flight->place = flight->before;
    struct record_entry dying = flight->before;
    dying.state = RECORD_DYING;
    return code == 0 ? index_put_entry(shuntd->index, dir->id, flight->name, flight->length, &dying) : code;
}

int serve_close(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *busy = flight_find(shuntd->home, dir->id, message->name[0], message->name_length[0]);
    if (busy != NULL)
        return serve_park(shuntd, &busy->waiting, request);
    struct home_dir *child = home_dir_find(shuntd->home, message->child);
    if (child != NULL && (child->working || child->closing || child->flights > 0))
        return serve_park(shuntd, &child->waiting, request);
    answer->result = MESSAGE_NOT_LOADED;
    if (!home_dir_is_loaded(child))
        return SERVE_ANSWER;
    int names = index_has_names(shuntd->index, child->id);
    answer->result = names > 0 || (child->record.flags & RECORD_UNLISTED) ? MESSAGE_NOT_EMPTY : 0;
    if (names < 0 || answer->result != 0)
        return names < 0 ? names : SERVE_ANSWER;
    if (!(child->record.flags & RECORD_MARKED))
        return close_child(shuntd, request, dir, child);
    /* Parked first, so that it is served before the births that come meanwhile. */
    int code = serve_park(shuntd, &child->waiting, request);
    return code == SERVE_PARKED && submit(shuntd, child) != 0 ? -ENOMEM : code;
}
