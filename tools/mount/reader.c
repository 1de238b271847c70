/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "reader.h"

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
#include "union/identity.h"
#include "union/listing.h"

#define READER_KEPT 64 /* listings */
#define READER_NAME (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* A directory that was listed. */
struct reader_folder {
    struct dirid id;
    bool is_listed;
    bool is_proven;       /* as long as its times are `stamps`, its names are those of the listing */
    struct stamps stamps; /* from before the listing */
    uint64_t stand_since; /* by clock_monotonic: they were seen first before that */
    uint64_t used;
    char path[PATH_MAX]; /* relative to the root */
    struct listing listing;
};

struct reader {
    pthread_mutex_t lock; /* of all that follows */
    struct union_root root;
    struct known *known;
    uint64_t uses;
    struct reader_folder folders[READER_KEPT];
};

int reader_create(struct reader **made, const char *root)
{
    struct reader *reader = *made = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    pthread_mutex_init(&reader->lock, NULL);
    const int error = union_root_init(&reader->root, root, 0);
    if (error == 0 && known_create(&reader->known, &reader->root, NULL, 0) == 0) {
        reader->root.source = known_source(reader->known);
        return 0;
    }
    if (error == 0)
        union_root_finish(&reader->root);
    free(reader);
    *made = NULL;
    return error ? error : -ENOMEM;
}

static void reader_folder_forget(struct reader_folder *folder)
{
    if (folder->is_listed)
        listing_finish(&folder->listing);
    folder->is_listed = false;
}

static void reader_folder_give(struct reader_folder *folder)
{
    reader_folder_forget(folder);
    stamps_finish(&folder->stamps);
}

/* Where a directory is now, relative to the root. 0; -ESTALE: not in it any more; another -errno. */
static int reader_path(const struct reader *reader, int directory, char to[PATH_MAX])
{
    const size_t root = strcmp(reader->root.path, "/") ? strlen(reader->root.path) : 0;
    const int length = disk_canonical(directory, to, PATH_MAX);
    if (length < 0)
        return length;
    if ((size_t)length < root || memcmp(to, reader->root.path, root) != 0 || (to[root] && to[root] != '/'))
        return -ESTALE;
    if (!to[root] || !to[root + 1])
        strcpy(to, ".");
    else
        memmove(to, to + root + 1, (size_t)length - root);
    return 0;
}

static int reader_list_locked(struct reader *reader, int directory, char path[PATH_MAX], struct listing *listing)
{
    const int error = reader_path(reader, directory, path);
    return error < 0 ? error : listing_init(listing, &reader->root, directory, path, 0, 0);
}

int reader_list(struct reader *reader, int directory, struct listing *listing)
{
    char path[PATH_MAX];
    pthread_mutex_lock(&reader->lock);
    union_root_look(&reader->root);
    const int error = reader_list_locked(reader, directory, path, listing);
    pthread_mutex_unlock(&reader->lock);
    return error;
}

/* Its times now, for those it had. 1: they prove what is listed after this; 0: not yet, since what changes it within a tick of
 * the clock leaves them as they are (catalogue/take.h), or never on this file system; -errno. */
static int reader_folder_stamp(struct reader *reader, struct reader_folder *folder, int directory)
{
    const uint64_t before = clock_monotonic();
    struct stamps stamps;
    const int code = stamps_take(&stamps, &reader->root, directory);
    if (code != 1 || !stamps_equal(&stamps, &folder->stamps))
        folder->stand_since = clock_monotonic();
    stamps_finish(&folder->stamps);
    folder->stamps = stamps;
    return code == 1 ? before >= folder->stand_since + TAKE_STANDS : code;
}

static int reader_folder_list(struct reader *reader, struct reader_folder *folder, int directory)
{
    reader_folder_forget(folder);
    union_root_look(&reader->root); /* branches that were made meanwhile; a root that was exported has none to look for */
    folder->is_proven = reader_folder_stamp(reader, folder, directory) == 1;
    const int error = reader_list_locked(reader, directory, folder->path, &folder->listing);
    folder->is_listed = error == 0;
    return error;
}

static bool reader_folder_is_as_listed(struct reader *reader, const struct reader_folder *folder, int directory)
{
    struct stamps stamps;
    const bool is_same =
        folder->is_proven && stamps_take(&stamps, &reader->root, directory) == 1 && stamps_equal(&stamps, &folder->stamps);
    if (folder->is_proven)
        stamps_finish(&stamps);
    return is_same;
}

/* The one of that directory, or the one that was not used for the longest. */
static struct reader_folder *reader_folder_find(struct reader *reader, const struct dirid *id)
{
    struct reader_folder *found = &reader->folders[0];
    for (size_t i = 0; i < READER_KEPT; i++) {
        struct reader_folder *folder = &reader->folders[i];
        if (folder->is_listed && dirid_equal(folder->id, *id)) {
            found = folder;
            break;
        }
        if (folder->used < found->used)
            found = folder;
    }
    if (!dirid_equal(found->id, *id))
        reader_folder_give(found);
    found->id = *id;
    found->used = ++reader->uses;
    return found;
}

static int reader_folder_open(const struct reader *reader, const struct reader_folder *folder, int directory, const char *name)
{
    char where[PATH_MAX];
    const size_t length = strlen(name);
    const struct union_name *found = listing_find(&folder->listing, name, length);
    if (!found && folder->listing.trunk_unlisted && !layout_is_ours(name, length, !strcmp(folder->path, ".")))
        return sys_openat(directory, name, READER_NAME, 0);
    if (!found)
        return -ENOENT;
    if (found->branch == 0)
        return sys_openat(directory, found->on_disk, READER_NAME, 0);
    const int error = listing_where(&folder->listing, &reader->root, folder->path, found, where, sizeof where);
    return error < 0 ? error : sys_openat(AT_FDCWD, where, READER_NAME, 0);
}

static int reader_open_name_locked(struct reader *reader, const struct dirid *id, int directory, const char *name)
{
    struct reader_folder *folder = reader_folder_find(reader, id);
    bool is_new = !folder->is_listed;
    int fd = is_new ? reader_folder_list(reader, folder, directory) : 0;
    if (fd == 0)
        fd = reader_folder_open(reader, folder, directory, name);
    if (fd != -ENOENT || is_new)
        return fd;
    /* What is gone from where it was has gone elsewhere, or for good. */
    if (!listing_find(&folder->listing, name, strlen(name)) && reader_folder_is_as_listed(reader, folder, directory))
        return -ENOENT;
    fd = reader_folder_list(reader, folder, directory);
    return fd == 0 ? reader_folder_open(reader, folder, directory, name) : fd;
}

int reader_open_name(struct reader *reader, int directory, const char *name)
{
    struct statx stat;
    const int error = identity_stat(reader->root.id, directory, "", AT_EMPTY_PATH, &stat);
    if (error < 0)
        return error;
    const struct dirid id = dirid_of(&stat);
    pthread_mutex_lock(&reader->lock);
    const int fd = reader_open_name_locked(reader, &id, directory, name);
    pthread_mutex_unlock(&reader->lock);
    return fd;
}
