/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "repair/fsck.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "tree/walk.h"
#include "union/disk.h"

#define FSCK_DAMAGED "shunt-dir.damaged"

/* Does a directory still have what is to be settled? What cannot be looked at may. */
static bool fsck_trunk_is_settled(const struct fsck *fsck, const struct folder *folder)
{
    struct listing now;
    struct marker marker;
    if (listing_init(&now, &fsck->root, folder->fd, folder->path, 0, 0) < 0)
        return false;
    const int read = marker_read(folder->fd, &marker);
    bool is_settled = !now.unfinished && (read == -ENOENT || (read == 0 && dirid_equal(marker.directory, now.id)));
    for (size_t i = 0; i < now.count && is_settled; i++)
        is_settled = strcmp(now.names[i].name, now.names[i].on_disk) == 0;
    listing_finish(&now);
    return is_settled;
}

/* The listing only assumed what is to be done; listed once more, with LISTING_SETTLE, it is done, as far as the file system
 * let it. */
static bool fsck_trunk_settle(const struct fsck *fsck, const struct folder *folder)
{
    struct listing again;
    if (!fsck->repair || listing_init(&again, &fsck->root, folder->fd, folder->path, 0, LISTING_SETTLE) < 0)
        return false;
    listing_finish(&again);
    return fsck_trunk_is_settled(fsck, folder);
}

/* `marker` is what stood there before anything was settled. */
static void fsck_trunk_tell_marker(struct fsck *fsck, const struct folder *folder, const struct marker *marker, bool settled)
{
    if (!folder->listing.marked)
        fsck_tell(fsck, FSCK_REPAIRABLE, settled, "copied-marker", folder->path,
                  "its .shunt-dir was copied from %s, whose files are not in this directory", marker->path);
    else if (!dirid_equal(marker->directory, folder->listing.id))
        fsck_tell(fsck, FSCK_REPAIRABLE, settled, "restored-marker", folder->path,
                  "its .shunt-dir belongs to a directory that is gone, which this one replaces");
}

static void fsck_trunk_tell_conflicts(struct fsck *fsck, const struct folder *folder, bool settled)
{
    for (size_t i = 0; i < folder->listing.count; i++) {
        const struct union_name *name = &folder->listing.names[i];
        char path[PATH_MAX];
        if (strcmp(name->name, name->on_disk) != 0 && folder_path(folder, name->on_disk, path, sizeof path) == 0)
            fsck_tell(fsck, FSCK_REPAIRABLE, settled, "conflict", path, "exists twice, the other file is renamed to %s",
                      name->name);
    }
}

/* Its mirrors are orphans from then on, as --restore is to leave them; until they are restored, a damaged marker would
 * not have said more. */
static bool fsck_trunk_set_aside(const struct fsck *fsck, const char *path)
{
    if (!fsck->restore || fsck->blind)
        return false;
    int at = sys_openat(AT_FDCWD, fsck->root.path, DISK_DIRECTORY, 0);
    int fd = at < 0 ? at : sys_openat(at, path, DISK_DIRECTORY, 0);
    int error = fd < 0 ? fd : disk_rename_new(fd, LAYOUT_MARKER, fd, FSCK_DAMAGED);
    if (fd >= 0)
        sys_close(fd);
    if (at >= 0)
        sys_close(at);
    return error == 0;
}

static void fsck_trunk_tell_bad_marker(struct fsck *fsck, const char *path)
{
    if (fsck_trunk_set_aside(fsck, path)) {
        fsck_tell(fsck, FSCK_REPAIRABLE, true, "bad-marker", path, "its .shunt-dir was damaged, it is " FSCK_DAMAGED " now");
        return;
    }
    fsck->markers_bad++;
    fsck_tell(fsck, FSCK_TROUBLE, false, "bad-marker", path,
              "its .shunt-dir is damaged, so its mirrors look like orphans (get it from a backup, or run 'shunt fsck "
              "--restore', which renames it to " FSCK_DAMAGED ")");
}

static void fsck_trunk_tell_unlisted(struct fsck *fsck, const char *path, int error)
{
    if (error == -EBADMSG) {
        fsck_trunk_tell_bad_marker(fsck, path);
        return;
    }
    if (error == -EMULTIHOP) {
        fsck_tell(fsck, FSCK_TROUBLE, false, "root", path,
                  "a root inside this root (run 'shunt fsck' on it, and give only one of the two to 'shunt start')");
        return;
    }
    fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", path, "cannot be read, nor what is below: %s", error_words(error));
}

static void fsck_trunk_tell_hidden(struct fsck *fsck, const struct folder *folder)
{
    char name[LAYOUT_UNFINISHED + 1], path[PATH_MAX];
    if (listing_find_hidden(folder->fd, name) && folder_path(folder, name, path, sizeof path) == 0)
        fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", path,
                  "a directory by a name that shunt keeps for itself, so it is not looked into (rename it)");
}

static void fsck_trunk_tell_unread(struct fsck *fsck, const char *path, const char *what, int error)
{
    fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", path, "its %s cannot be read: %s", what, error_words(error));
}

/* With its mode before. */
static bool fsck_trunk_close(const struct fsck *fsck, const struct folder *folder, mode_t before)
{
    if (!fsck->repair || opened_give_mode(folder->fd, before) < 0)
        return false;
    opened_remove(fsck->root.path, folder->listing.id);
    return true;
}

static void fsck_trunk_look_at_mode(struct fsck *fsck, const struct folder *folder)
{
    struct statx stat;
    mode_t before;
    if (fsck->served || fsck->opened.count == 0)
        return;
    const int error = sys_statx(folder->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat);
    if (error < 0)
        fsck_trunk_tell_unread(fsck, folder->path, "mode", error);
    if (error < 0 || !opened_find(&fsck->opened, folder->listing.id, stat.stx_mode, &before))
        return;
    fsck_tell(fsck, FSCK_REPAIRABLE, fsck_trunk_close(fsck, folder, before), "opened", folder->path,
              "an export that was killed gave it mode %04o, it had %04o", stat.stx_mode & 07777u, (unsigned)before);
}

static void fsck_trunk_look_at_folder(struct fsck *fsck, const struct folder *folder)
{
    struct marker marker;
    const struct listing *listing = &folder->listing;
    fsck->directories++;
    fsck_trunk_look_at_mode(fsck, folder);
    if (listing->trunk_unlisted)
        fsck_trunk_tell_unlisted(fsck, folder->path, -EACCES);
    if (listing->hides)
        fsck_trunk_tell_hidden(fsck, folder);
    if (listing->marked && mirror_names_add(&fsck->known, listing->marker.mirror) < 0)
        fsck->blind = true;
    const int read = marker_read(folder->fd, &marker);
    const bool marked = read == 0, unfinished = listing->unfinished && !fsck->served;
    if (read < 0 && read != -ENOENT)
        fsck_trunk_tell_unread(fsck, folder->path, LAYOUT_MARKER, read);
    if (!marked && !unfinished)
        return;
    bool settled = fsck_trunk_settle(fsck, folder);
    if (unfinished)
        fsck_tell(fsck, FSCK_REPAIRABLE, settled, "unfinished", folder->path,
                  "an incomplete .shunt-dir or copy of a file is in it");
    if (!marked)
        return;
    fsck_trunk_tell_marker(fsck, folder, &marker, settled);
    fsck_trunk_tell_conflicts(fsck, folder, settled);
}

void fsck_trunk(struct fsck *fsck)
{
    struct walk walk;
    int more = walk_init(&walk, &fsck->root, ".", WALK_ONE_DEVICE | WALK_AHEAD);
    if (more < 0) {
        fsck_trunk_tell_unlisted(fsck, ".", more);
        fsck->blind = true;
    }
    for (; more == 0 && !stopping() && (more = walk_next(&walk)) != 0; more = 0)
        if (more < 0)
            fsck_trunk_tell_unlisted(fsck, walk.folder.path, more);
        else
            fsck_trunk_look_at_folder(fsck, &walk.folder);
    /* A bad marker is known to be one, and what is below it was seen. */
    fsck->blind |= walk.partial;
    walk_finish(&walk);
}
