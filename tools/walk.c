/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "catalogue/known.h"
#include "session/stamp.h"
#include "union/disk.h"

#define WALK_BUFFER 32768

static int walk_push(struct walk *walk, const char *path)
{
    if (walk->count == walk->room) {
        size_t room = walk->room ? 2 * walk->room : 64;
        char **more = realloc(walk->steps, room * sizeof *walk->steps);
        if (!more)
            return -ENOMEM;
        walk->steps = more;
        walk->room = room;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    walk->steps[walk->count++] = copy;
    return 0;
}

int walk_init(struct walk *walk, struct union_root *root, const char *from, unsigned flags)
{
    *walk = (struct walk){.root = root, .flags = flags, .folder.fd = -1, .source = root->source};
    walk->root_fd = sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (walk->root_fd < 0)
        return walk->root_fd;
    if (known_create(&walk->known, root, NULL, KNOWN_FIRST) == 0)
        root->source = known_source(walk->known);
    int error = walk_push(walk, from);
    if (error < 0)
        walk_finish(walk);
    return error;
}

void walk_finish(struct walk *walk)
{
    folder_close(&walk->folder);
    while (walk->count > 0)
        free(walk->steps[--walk->count]);
    free(walk->steps);
    walk->steps = NULL;
    if (walk->root_fd >= 0)
        sys_close(walk->root_fd);
    walk->root_fd = -1;
    walk->root->source = walk->source;
    known_destroy(walk->known);
    walk->known = NULL;
}

static int walk_push_below(struct walk *walk, const char *name)
{
    char path[PATH_MAX];
    int error = folder_path(&walk->folder, name, path, sizeof path);
    return error < 0 ? error : walk_push(walk, path);
}

/* Last first, so that the first is on top. */
static int walk_push_listed(struct walk *walk)
{
    const struct listing *listing = &walk->folder.listing;
    int error = 0;
    for (size_t i = listing->count; i-- > 0 && error == 0;)
        if (listing->names[i].type == DT_DIR && listing->names[i].branch == 0)
            error = walk_push_below(walk, listing->names[i].on_disk);
    return error;
}

/* A directory that cannot be listed as a union still has directories in it. */
static int walk_push_unlisted(struct walk *walk)
{
    char buffer[WALK_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    struct statx stat;
    bool in_root = !strcmp(walk->folder.path, ".");
    int more = disk_scan_init(&scan, walk->folder.fd, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0)
        if (!layout_is_ours(one->name, strlen(one->name), in_root) &&
            sys_statx(scan.fd, one->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0 && S_ISDIR(stat.stx_mode))
            more = walk_push_below(walk, one->name);
    disk_scan_finish(&scan);
    return more;
}

/* Another root that lies in this one: what its markers say is of its own `.shunt`. A copy of one is none. */
static bool walk_is_another_root(const struct walk *walk)
{
    if (!strcmp(walk->folder.path, "."))
        return false;
    int own = sys_openat(walk->folder.fd, LAYOUT_OWN, DISK_DIRECTORY, 0);
    if (own < 0)
        return false;
    struct stamp stamp;
    bool is_one = stamp_read(own, &stamp) == 0 && stamp_is_copied(own) == 0;
    sys_close(own);
    return is_one;
}

/* Nothing of it is open any more. */
static int walk_refuse(struct walk *walk, int error)
{
    char path[PATH_MAX];
    strcpy(path, walk->folder.path);
    folder_close(&walk->folder);
    folder_of(&walk->folder, -1, path);
    walk->partial = true;
    return error;
}

/* What the listing says; `error` is how it went. */
static bool walk_may_hold_root(const struct walk *walk, int error)
{
    const struct listing *listing = &walk->folder.listing;
    return error < 0 || listing->trunk_unlisted || listing_find(listing, LAYOUT_OWN, sizeof LAYOUT_OWN - 1) != NULL;
}

static int walk_list(struct walk *walk)
{
    int error = folder_list(&walk->folder, walk->root, walk->flags & WALK_SETTLE ? LISTING_SETTLE : 0);
    if (!(walk->flags & WALK_SETTLE) && walk_may_hold_root(walk, error) && walk_is_another_root(walk))
        return walk_refuse(walk, -EMULTIHOP);
    int pushed = error == 0 ? walk_push_listed(walk) : error == -EBADMSG ? walk_push_unlisted(walk) : error;
    walk->partial |= pushed < 0 || (error == 0 && walk->folder.listing.trunk_unlisted);
    return error < 0 ? error : pushed < 0 ? pushed : 1;
}

/* Opens a step's directory: 0, 1 if it is not to be walked (it went meanwhile, or it is on another device),
 * -errno. */
static int walk_take(struct walk *walk, const char *path)
{
    int error = folder_open(&walk->folder, walk->root_fd, path);
    if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP)
        return 1;
    if (error == 0)
        error = folder_stat(&walk->folder, walk->root, NULL, &walk->before);
    if (error == 0 && walk->flags & WALK_SETTLE && walk_is_another_root(walk))
        error = -EMULTIHOP; /* before it is settled; else its listing says whether it may be one */
    if (error < 0) {
        folder_of(&walk->folder, walk->folder.fd, path);
        return walk_refuse(walk, error);
    }
    if (!(walk->flags & WALK_ONE_DEVICE) || disk_device(&walk->before) == walk->root->device)
        return 0;
    walk->partial = true;
    return 1;
}

int walk_next(struct walk *walk)
{
    int taken = 1;
    while (taken == 1) {
        folder_close(&walk->folder);
        if (walk->count == 0)
            return 0;
        char *path = walk->steps[--walk->count];
        taken = walk_take(walk, path);
        free(path);
    }
    return taken < 0 ? taken : walk_list(walk);
}
