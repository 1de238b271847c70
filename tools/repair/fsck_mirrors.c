/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "repair/fsck.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/stopping.h"
#include "union/disk.h"
#include "union/mirror.h"

/* To their owner, if they are closed to it. */
static void fsck_mirrors_open(const char *branch_path, const char *mirror)
{
    const int branch = sys_openat(AT_FDCWD, branch_path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (branch < 0)
        return;
    opened_open_mirror(branch, mirror);
    sys_close(branch);
}

static int fsck_mirrors_remove_mirror(const struct fsck *fsck, const struct mirror_found *mirror)
{
    char path[PATH_MAX];
    int error = mirrors_branch_path(&fsck->root, mirror->branch, path, sizeof path);
    if (error < 0)
        return error;
    fsck_mirrors_open(path, mirror->name);
    return mirror_remove(path, mirror->name);
}

/* One pass would do but on file systems that skip names when others go meanwhile. */
static bool fsck_mirrors_remove_unfinished(const struct fsck *fsck, const struct mirror_found *mirror)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int fd = mirrors_open(&fsck->root, mirror), error = 0;
    if (fd < 0)
        return false;
    disk_scan_of(&scan, fd, buffer, sizeof buffer);
    while (disk_scan_next(&scan, &one) > 0)
        if (mirrors_is_unfinished(one->name) && sys_unlinkat(fd, one->name, AT_REMOVEDIR) < 0)
            error = -1;
    disk_scan_finish(&scan);
    return error == 0;
}

static void fsck_mirrors_look_at_known(struct fsck *fsck, const struct mirror_found *mirror, const char *path)
{
    if (fsck->served)
        return;
    if (mirror->unfinished > 0)
        fsck_tell(fsck, FSCK_REPAIRABLE, fsck->repair && fsck_mirrors_remove_unfinished(fsck, mirror), "unfinished-leaf", path,
                  "a leaf is incomplete (%zu)", mirror->unfinished);
    if (mirror->files > 0)
        return;
    const int error = fsck->repair ? fsck_mirrors_remove_mirror(fsck, mirror) : 0;
    if (error < 0)
        fsck_tell(fsck, FSCK_REPAIRABLE, false, "empty-mirror", path, "empty, and cannot be removed: %s", error_words(error));
    else
        fsck_tell(fsck, FSCK_NOTE, fsck->repair, "empty-mirror", path, "empty");
}

/* Without reading every marker, or with a bad one, it is unknown whose files would be deleted. */
static bool fsck_mirrors_may_delete(const struct fsck *fsck)
{
    return fsck->discard && !fsck->blind && fsck->markers_bad == 0;
}

static void fsck_mirrors_tell_orphan(struct fsck *fsck, const struct mirror_found *mirror, const char *path, const char *why)
{
    fsck_tell(fsck, FSCK_TROUBLE, false, "orphan", path, "%zu file%s of a directory that is gone%s", mirror->files,
              mirror->files == 1 ? "" : "s", why);
}

static void fsck_mirrors_tell_refused(struct fsck *fsck, const struct mirror_found *mirror, const char *path,
                                      const struct fsck_refused *refused, int error)
{
    const char *done = fsck->restore ? "restored" : "deleted";
    const size_t files = mirror->files - refused->count;
    if (refused->count > 0)
        fsck_tell(fsck, FSCK_TROUBLE, false, "orphan", path, "%zu file%s %s, %s cannot be %s: %s (%s)", files,
                  files == 1 ? "" : "s", done, refused->name, done, strerror(-error),
                  error == -EPERM ? "run 'chattr -i -a' on it, or this as its owner" : "move it elsewhere");
    else
        fsck_tell(fsck, FSCK_TROUBLE, false, "orphan", path, "cannot be %s: %s", done, error_words(error));
}

static void fsck_mirrors_look_at_orphan(struct fsck *fsck, const struct mirror_found *mirror, const char *path)
{
    if (mirror->files == 0) {
        fsck_tell(fsck, FSCK_REPAIRABLE,
                  !fsck->blind && (fsck->repair || fsck->restore || fsck->discard) &&
                      fsck_mirrors_remove_mirror(fsck, mirror) == 0,
                  "empty-orphan", path, "an empty mirror of a directory that is gone%s",
                  fsck->blind ? ", or hidden by its permissions or a mount, or cannot be read" : "");
        return;
    }
    if (fsck->blind) {
        fsck_mirrors_tell_orphan(
            fsck, mirror, path,
            ", or hidden by its permissions or a mount, so nothing is done (make the whole root visible and run this again)");
        return;
    }
    if (!fsck->restore && !fsck->discard) {
        fsck_mirrors_tell_orphan(fsck, mirror, path, " (use --restore to restore them, --delete to remove them)");
        return;
    }
    if (fsck->discard && !fsck_mirrors_may_delete(fsck)) {
        fsck_mirrors_tell_orphan(fsck, mirror, path,
                                 ", or of the one with the damaged .shunt-dir, so they are not deleted (use --restore)");
        return;
    }
    struct fsck_refused refused;
    int error = fsck->restore ? fsck_restore(&fsck->root, mirror, &refused) : fsck_delete(&fsck->root, mirror, &refused);
    if (error < 0) {
        fsck_mirrors_tell_refused(fsck, mirror, path, &refused, error);
        return;
    }
    fsck_tell(fsck, FSCK_REPAIRABLE, true, "orphan", path, "%zu file%s %s%s", mirror->files, mirror->files == 1 ? "" : "s",
              fsck->restore ? "moved to shunt-restored/" : "deleted", fsck->restore ? mirror->name : "");
}

static void fsck_mirrors_look_at(struct fsck *fsck, const struct mirror_found *mirror)
{
    char path[sizeof LAYOUT_BRANCHES + 1 + LAYOUT_BRANCH_MAX + NAME_MAX + 1];
    snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s/%s", fsck->root.branches[mirror->branch - 1], mirror->name);
    if (mirror->foreign)
        fsck_tell(fsck, FSCK_TROUBLE, false, "foreign", path, "does not belong to shunt (move it elsewhere)");
    else if (mirror->known)
        fsck_mirrors_look_at_known(fsck, mirror, path);
    else
        fsck_mirrors_look_at_orphan(fsck, mirror, path);
}

static void fsck_mirrors_tell_stray(struct fsck *fsck)
{
    char stray[MIRRORS_STRAY_MAX], path[sizeof LAYOUT_BRANCHES + 1 + sizeof stray];
    const int found = mirrors_find_stray(&fsck->root, false, stray);
    if (found < 0)
        fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", LAYOUT_BRANCHES, "cannot be read: %s", error_words(found));
    if (found <= 0)
        return;
    snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s", stray);
    fsck_tell(fsck, FSCK_TROUBLE, false, "foreign", path,
              "is not a branch, and what may be in it is not seen (move it back to its place if it was one, else elsewhere)");
}

static void fsck_mirrors_open_orphans_of(const struct fsck *fsck, uint16_t branch)
{
    char path[PATH_MAX], buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    if (mirrors_branch_path(&fsck->root, branch, path, sizeof path) < 0 ||
        disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer) < 0)
        return;
    while (!stopping() && disk_scan_next(&scan, &one) > 0)
        if (!layout_is_catalogue(one->name) && !mirror_names_have(&fsck->known, one->name))
            opened_open_mirror(scan.fd, one->name);
    disk_scan_finish(&scan);
}

/* They have the mode that their directory had, as 0555, and are to be emptied. */
static void fsck_mirrors_open_orphans(struct fsck *fsck)
{
    if (fsck->blind || !(fsck->restore || fsck->discard))
        return;
    mirror_names_sort(&fsck->known);
    for (size_t i = 1; i <= fsck->root.branch_count; i++)
        fsck_mirrors_open_orphans_of(fsck, (uint16_t)i);
}

void fsck_mirrors(struct fsck *fsck)
{
    fsck_mirrors_tell_stray(fsck);
    fsck_mirrors_open_orphans(fsck);
    struct mirrors mirrors;
    int error = mirrors_init(&mirrors, &fsck->root, &fsck->known);
    if (error < 0) {
        char path[sizeof LAYOUT_BRANCHES + 1 + sizeof mirrors.unread];
        snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s", mirrors.unread);
        fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", path, "cannot be read: %s", error_words(error));
    }
    for (size_t i = 0; i < mirrors.count && !stopping(); i++)
        fsck_mirrors_look_at(fsck, &mirrors.all[i]);
    mirrors_finish(&mirrors);
}
