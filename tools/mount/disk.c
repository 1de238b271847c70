/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "catalogue/known.h"
#include "catalogue/take.h"
#include "stamps.h"
#include "union/disk.h"
#include "union/listing.h"

#define DISK_KEPT 64 /* listings */
#define DISK_NAME (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* A directory that was listed. */
struct disk_folder {
    struct dirid id;
    bool is_listed;
    bool is_proven;       /* as long as its times are `stamps`, its names are those of the listing */
    struct stamps stamps; /* from before the listing */
    uint64_t stand_since; /* by clock_monotonic: they were seen first before that */
    uint64_t used;
    char path[PATH_MAX]; /* relative to the root */
    struct listing listing;
};

struct disk {
    pthread_mutex_t lock; /* of all that follows */
    struct union_root root;
    struct known *known;
    uint64_t uses;
    struct disk_folder folders[DISK_KEPT];
};

int disk_create(struct disk **made, const char *root)
{
    struct disk *disk = *made = calloc(1, sizeof *disk);
    if (!disk)
        return -ENOMEM;
    pthread_mutex_init(&disk->lock, NULL);
    const int error = union_root_init(&disk->root, root, 0);
    if (error == 0 && known_create(&disk->known, &disk->root, NULL, 0) == 0) {
        disk->root.source = known_source(disk->known);
        return 0;
    }
    if (error == 0)
        union_root_finish(&disk->root);
    free(disk);
    *made = NULL;
    return error ? error : -ENOMEM;
}

static void disk_folder_forget(struct disk_folder *folder)
{
    if (folder->is_listed)
        listing_finish(&folder->listing);
    folder->is_listed = false;
}

static void disk_folder_give(struct disk_folder *folder)
{
    disk_folder_forget(folder);
    stamps_finish(&folder->stamps);
}

void disk_destroy(struct disk *disk)
{
    if (!disk)
        return;
    for (size_t i = 0; i < DISK_KEPT; i++)
        disk_folder_give(&disk->folders[i]);
    known_destroy(disk->known);
    union_root_finish(&disk->root);
    free(disk);
}

/* Where a directory is now, relative to the root. 0; -ESTALE: not in it any more; another -errno. */
static int disk_path(const struct disk *disk, int directory, char to[PATH_MAX])
{
    const size_t root = strcmp(disk->root.path, "/") ? strlen(disk->root.path) : 0;
    const int length = disk_canonical(directory, to, PATH_MAX);
    if (length < 0)
        return length;
    if ((size_t)length < root || memcmp(to, disk->root.path, root) != 0 || (to[root] && to[root] != '/'))
        return -ESTALE;
    if (!to[root] || !to[root + 1])
        strcpy(to, ".");
    else
        memmove(to, to + root + 1, (size_t)length - root);
    return 0;
}

static int disk_list_locked(struct disk *disk, int directory, char path[PATH_MAX], struct listing *listing)
{
    const int error = disk_path(disk, directory, path);
    return error < 0 ? error : listing_init(listing, &disk->root, directory, path, 0, 0);
}

int disk_list(struct disk *disk, int directory, struct listing *listing)
{
    char path[PATH_MAX];
    pthread_mutex_lock(&disk->lock);
    union_root_look(&disk->root);
    const int error = disk_list_locked(disk, directory, path, listing);
    pthread_mutex_unlock(&disk->lock);
    return error;
}

/* Its times now, for those it had. 1: they prove what is listed after this; 0: not yet, since what changes it within a tick of
 * the clock leaves them as they are (catalogue/take.h), or never on this file system; -errno. */
static int disk_folder_stamp(struct disk *disk, struct disk_folder *folder, int directory)
{
    const uint64_t before = clock_monotonic();
    struct stamps stamps;
    const int code = stamps_take(&stamps, &disk->root, directory);
    if (code != 1 || !stamps_equal(&stamps, &folder->stamps))
        folder->stand_since = clock_monotonic();
    stamps_finish(&folder->stamps);
    folder->stamps = stamps;
    return code == 1 ? before >= folder->stand_since + TAKE_STANDS : code;
}

static int disk_folder_list(struct disk *disk, struct disk_folder *folder, int directory)
{
    disk_folder_forget(folder);
    union_root_look(&disk->root); /* branches that were made meanwhile; a root that was exported has none to look for */
    folder->is_proven = disk_folder_stamp(disk, folder, directory) == 1;
    const int error = disk_list_locked(disk, directory, folder->path, &folder->listing);
    folder->is_listed = error == 0;
    return error;
}

static bool disk_folder_is_as_listed(struct disk *disk, const struct disk_folder *folder, int directory)
{
    struct stamps stamps;
    const bool is_same =
        folder->is_proven && stamps_take(&stamps, &disk->root, directory) == 1 && stamps_equal(&stamps, &folder->stamps);
    if (folder->is_proven)
        stamps_finish(&stamps);
    return is_same;
}

/* The one of that directory, or the one that was not used for the longest. */
static struct disk_folder *disk_folder_find(struct disk *disk, const struct dirid *id)
{
    struct disk_folder *found = &disk->folders[0];
    for (size_t i = 0; i < DISK_KEPT; i++) {
        struct disk_folder *folder = &disk->folders[i];
        if (folder->is_listed && dirid_equal(folder->id, *id)) {
            found = folder;
            break;
        }
        if (folder->used < found->used)
            found = folder;
    }
    if (!dirid_equal(found->id, *id))
        disk_folder_give(found);
    found->id = *id;
    found->used = ++disk->uses;
    return found;
}

static int disk_folder_open(const struct disk *disk, const struct disk_folder *folder, int directory, const char *name)
{
    char where[PATH_MAX];
    const size_t length = strlen(name);
    const struct union_name *found = listing_find(&folder->listing, name, length);
    if (!found && folder->listing.trunk_unlisted && !layout_is_ours(name, length, !strcmp(folder->path, ".")))
        return sys_openat(directory, name, DISK_NAME, 0);
    if (!found)
        return -ENOENT;
    if (found->branch == 0)
        return sys_openat(directory, found->on_disk, DISK_NAME, 0);
    const int error = listing_where(&folder->listing, &disk->root, folder->path, found, where, sizeof where);
    return error < 0 ? error : sys_openat(AT_FDCWD, where, DISK_NAME, 0);
}

static int disk_open_name_locked(struct disk *disk, const struct dirid *id, int directory, const char *name)
{
    struct disk_folder *folder = disk_folder_find(disk, id);
    bool is_new = !folder->is_listed;
    int fd = is_new ? disk_folder_list(disk, folder, directory) : 0;
    if (fd == 0)
        fd = disk_folder_open(disk, folder, directory, name);
    if (fd != -ENOENT || is_new)
        return fd;
    /* What is gone from where it was has gone elsewhere, or for good. */
    if (!listing_find(&folder->listing, name, strlen(name)) && disk_folder_is_as_listed(disk, folder, directory))
        return -ENOENT;
    fd = disk_folder_list(disk, folder, directory);
    return fd == 0 ? disk_folder_open(disk, folder, directory, name) : fd;
}

int disk_open_name(struct disk *disk, int directory, const char *name)
{
    struct statx stat;
    const int error = sys_statx(directory, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stat);
    if (error < 0)
        return error;
    const struct dirid id = dirid_of(&stat);
    pthread_mutex_lock(&disk->lock);
    const int fd = disk_open_name_locked(disk, &id, directory, name);
    pthread_mutex_unlock(&disk->lock);
    return fd;
}
