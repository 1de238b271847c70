/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "cli/command.h"
#include "leaving/export_state.h"
#include "serving/hold.h"
#include "session/stamp.h"
#include "union/layout.h"
#include "union/mirror.h"

#define SESSION LAYOUT_OWN "/session"
#define SESSION_OVER LAYOUT_OWN "/session.over"

static void export_complain_left(struct export *export, const struct mirror_found *mirror)
{
    const char *root = export->root.path;
    char path[PATH_MAX + sizeof LAYOUT_BRANCHES + LAYOUT_BRANCH_MAX + NAME_MAX + 3];
    snprintf(path, sizeof path, "%s/" LAYOUT_BRANCHES "/%s/%s", root, export->root.branches[mirror->branch - 1], mirror->name);
    if (mirror->foreign)
        error_report("%s: does not belong to shunt (move it elsewhere and run this again)", path);
    else if (!export->blind)
        error_report("%s: %zu file%s of a directory that is gone (run 'shunt fsck --restore %s' to restore them or 'shunt fsck "
                     "--delete %s' to remove them)",
                     path, mirror->files, mirror->files == 1 ? "" : "s", root, root);
    else if (!export->failed)
        error_report(
            "%s: %zu file%s of a directory that is gone, or hidden by its permissions, its name, a long path or a mount%s%s%s "
            "(make all of %s visible and run this again)",
            path, mirror->files, mirror->files == 1 ? "" : "s", export->hidden[0] != '\0' ? ", as " : "", export->hidden,
            export->hidden[0] != '\0' ? " may be" : "", root);
    export->failed = true;
}

void export_look_at_mirrors(struct export *export)
{
    struct mirrors mirrors;
    char path[PATH_MAX];
    int error = mirrors_init(&mirrors, &export->root, &export->left);
    if (error < 0) {
        char unread[PATH_MAX + sizeof LAYOUT_BRANCHES + 1 + sizeof mirrors.unread];
        snprintf(unread, sizeof unread, "%s/" LAYOUT_BRANCHES "/%s", export->root.path, mirrors.unread);
        export_fail(export, unread, error);
    }
    for (size_t i = 0; i < mirrors.count; i++) {
        const struct mirror_found *mirror = &mirrors.all[i];
        if (mirror->known)
            continue;
        const bool is_empty = !mirror->foreign && mirror->files == 0 && !export->hides;
        if (is_empty && !export->options->dry_run &&
            mirrors_branch_path(&export->root, mirror->branch, path, sizeof path) == 0 &&
            mirror_remove(path, mirror->name) == 0)
            continue;
        if (is_empty)
            continue;
        export->orphans += !mirror->foreign && !export->blind;
        export_complain_left(export, mirror);
    }
    mirrors_finish(&mirrors);
}

/* What shunt made is gone. A directory in the place of a file is not shunt's, nor what is no directory, or not empty. */
static int export_unlink(int directory, const char *name, int flags)
{
    const int error = sys_unlinkat(directory, name, flags);
    return error == -ENOENT ? 0 : error == -EISDIR || error == -ENOTDIR ? -ENOTEMPTY : error;
}

/* The names in a directory that are meant; NULL: all of them. The first that stays is what is told. */
static int export_unlink_all(int directory, const char *name, bool (*is_meant)(const char *), int flags)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int first = 0, more = disk_scan_init(&scan, directory, name, buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        const int error = is_meant == NULL || is_meant(one->name) ? export_unlink(scan.fd, one->name, flags) : 0;
        first = first == 0 ? error : first;
    }
    disk_scan_finish(&scan);
    return first < 0 || more == -ENOENT ? first : more;
}

static int export_remove_branches(const struct export *export, int root)
{
    int error = 0;
    for (size_t i = 0; i < export->root.branch_count && error == 0; i++) {
        char path[sizeof LAYOUT_BRANCHES + 1 + LAYOUT_BRANCH_MAX];
        snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s", export->root.branches[i]);
        error = export_unlink_all(root, path, layout_is_catalogue, 0);
        if (error == 0)
            error = export_unlink(root, path, AT_REMOVEDIR);
    }
    if (error == 0) /* those of daemons that are about to start, which find that the root is held, or gone, and start again */
        error = export_unlink_all(root, LAYOUT_BRANCHES, NULL, AT_REMOVEDIR);
    return error < 0 ? error : export_unlink(root, LAYOUT_BRANCHES, AT_REMOVEDIR);
}

/* What a process left that ended while it wrote a stamp. */
static bool export_is_half_written(const char *name)
{
    return strncmp(name, STAMP_TEMPORARY, sizeof STAMP_TEMPORARY - 1) == 0;
}

/* What is in .shunt besides the claim; of a session that an export did not come to remove, too. */
static int export_remove_unclaimed(const struct export *export, int root)
{
    int error = export_remove_branches(export, root);
    if (error == 0)
        error = export_unlink_all(root, LAYOUT_OWN, export_is_half_written, 0);
    if (error == 0)
        error = export_unlink(root, LAYOUT_OWN "/README", 0);
    if (error == 0)
        error = export_unlink(root, LAYOUT_OWN "/root", 0);
    if (error == 0)
        error = export_unlink_all(root, SESSION_OVER, NULL, 0);
    return error < 0 ? error : export_unlink(root, SESSION_OVER, AT_REMOVEDIR);
}

/* Somebody began a session once the claim was gone. */
static bool export_is_begun(int root)
{
    struct statx stat;
    return sys_statx(root, SESSION, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0;
}

/* The claim on the root goes last, at once: a daemon that founds a session afterwards does so in a directory of its own. */
static int export_remove_own(const struct export *export, int root)
{
    int error = export_remove_unclaimed(export, root);
    if (error < 0)
        return error;
    error = sys_renameat2(root, SESSION, root, SESSION_OVER, 0);
    if (error < 0 && error != -ENOENT)
        return error;
    error = export_unlink_all(root, SESSION_OVER, NULL, 0);
    if (error == 0)
        error = export_unlink(root, SESSION_OVER, AT_REMOVEDIR);
    if (error == 0) /* the root's own, and of directories that are gone */
        error = export_unlink_all(root, LAYOUT_OWN, opened_is_one, 0);
    if (error == 0)
        error = export_unlink(root, LAYOUT_OWN, AT_REMOVEDIR);
    return error < 0 && export_is_begun(root) ? 0 : error;
}

static void export_complain_left_own(struct export *export, int error)
{
    const bool is_full = error == -ENOTEMPTY || error == -EEXIST;
    char own[2 * PATH_MAX];
    export_place(export, LAYOUT_OWN, own);
    export->failed = true;
    if ((is_full || error == -EPERM) && export_complain_fixed_below(export, own))
        return;
    if (is_full)
        error_report("%s: something in it does not belong to shunt (move it elsewhere and run this again)", own);
    else
        export_fail(export, own, error);
}

void export_remove_shunt(struct export *export)
{
    hold_rest();
    int root = sys_openat(AT_FDCWD, export->root.path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool loosened = root >= 0 && export_loosen(export, root, export->root.id, &export->root_before);
    int error = root < 0 ? root : export_remove_own(export, root);
    if (error < 0)
        export_complain_left_own(export, error);
    if (root >= 0) {
        export_put_back(export, root, ".", export->root.id, &export->root_before, loosened);
        sys_close(root);
    }
}
