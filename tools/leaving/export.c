/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/export.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/stopping.h"
#include "leaving/client_requests.h"
#include "leaving/export_state.h"
#include "serving/hold.h"
#include "union/layout.h"

/* Only to say how much there is to do. */
static void export_count_prefetch(struct export *export)
{
    struct mirror_names none = {0};
    struct mirrors mirrors;
    if (!export->progress.on)
        return;
    mirrors_init(&mirrors, &export->root, &none);
    for (size_t i = 0; i < mirrors.count; i++)
        export->about += mirrors.all[i].files;
    mirrors_finish(&mirrors);
}

static int export_interrupted(const struct export *export, int signal)
{
    if (signal == STOPPING_LEASE) {
        error_report("%s: the claim on it ran out, since this process, or the file system, stood still; nothing is lost (run "
                     "'shunt export %s' to go on)",
                     export->root.path, export->root.path);
        return STATUS_FAILED;
    }
    error_report("%s: the export was interrupted, nothing is lost (run 'shunt export %s' to go on)", export->root.path,
                 export->root.path);
    return 128 + signal;
}

static int export_finish(struct export *export, int signal)
{
    if (!signal)
        export_look_at_mirrors(export);
    if (!signal && !export->failed && !export->options->dry_run)
        export_remove_shunt(export);
    export_tell(export, !signal && !export->failed);
    mirror_names_finish(&export->left);
    return signal ? export_interrupted(export, signal) : export->failed ? STATUS_FAILED : STATUS_OK;
}

/* Without the marker that goes, what comes back to its place would be an orphan. */
static bool export_complain_stray(struct export *export)
{
    char stray[MIRRORS_STRAY_MAX];
    const int found = mirrors_find_stray(&export->root, true, stray);
    if (found < 0)
        export_complain_own(export, found);
    if (found <= 0)
        return found < 0;
    error_report("%s/" LAYOUT_BRANCHES
                 "/%s: is not a %s, and what may be in it is not seen (move it back to its place if it was one, "
                 "else elsewhere, and run this again)",
                 export->root.path, stray, mirrors_stray_kind(stray));
    return true;
}

static int export_held(struct export *export)
{
    progress_init(&export->progress, export->options->progress);
    if (export_complain_stray(export)) {
        export_tell(export, false);
        return STATUS_FAILED;
    }
    export_count_prefetch(export);
    export_loosen_mirrors(export);
    const int error = opened_init(&export->opened, export->root.path);
    if (error < 0)
        export_complain_own(export, error);
    else
        export_trunk(export);
    export->blind |= error < 0;
    opened_finish(&export->opened);
    return export_finish(export, stopping());
}

/* 0 or -errno; -ENOENT: it has none. */
static int export_look_for_own(const char *root)
{
    struct statx stat;
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int error = sys_statx(fd, LAYOUT_OWN, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    sys_close(fd);
    return error;
}

/* Nothing of shunt's in it: it is plain already, unless it is a part of a root. */
static int export_plain(struct export *export, const char *root)
{
    struct union_root above;
    const int error = union_root_init(&above, root, LISTING_FIND_ROOT);
    if (error < 0 && error != -ENOTUNIQ && error != -EACCES) {
        error_report_path(root, error);
        return STATUS_FAILED;
    }
    if (error == 0) {
        error_report("%s: only a whole root can be exported, and this is a part of %s (run 'shunt export %s')", root,
                     above.path, above.path);
        union_root_finish(&above);
        return STATUS_FAILED;
    }
    if (export->options->json) {
        export_tell_json(export, true);
    } else if (!export->options->quiet) {
        describe_print(root);
        puts(" is a plain directory already");
    }
    return STATUS_OK;
}

static int export_yield(const struct export *export)
{
    if (export->options->sum != NULL)
        export->options->sum->yielded++;
    error_report("%s: not exported yet, others of your jobs use it (the last one exports it, else run 'shunt export %s')",
                 export->root.path, export->root.path);
    return STATUS_OK;
}

static int export_claimed(struct export *export)
{
    struct hold hold;
    if (export->options->dry_run)
        return hold_is_taken(export->root.path) ? STATUS_FAILED : export_held(export);
    const int taken = export->options->yields ? hold_take_or_yield(&hold, export->root.path, "export")
                                              : hold_take(&hold, export->root.path, "export");
    if (taken > 0)
        return export_yield(export);
    if (taken < 0)
        return stopping() ? export_interrupted(export, stopping()) : STATUS_FAILED;
    int error = hold_look_at_root(&export->root);
    export_owners_init(&export->owners, export->options->careful ? NULL : export->options->owners, &export->root);
    int status = error < 0 ? STATUS_FAILED : export_held(export);
    export_owners_finish(&export->owners);
    hold_release(&hold);
    return status;
}

static int export_look(struct export *export)
{
    const int error = export_look_for_own(export->root.path);
    if (error == -ENOENT)
        return export_plain(export, export->root.path);
    if (error == 0)
        return export_claimed(export);
    error_report_path(export->root.path, error);
    return STATUS_FAILED;
}

int export_root(const char *root, const struct export_options *options)
{
    struct export export = {
        .options = options, .leaf_fd = -1, .renaming.careful = options->careful, .began = clock_monotonic()};
    int error = union_root_init(&export.root, root, 0);
    if (error < 0) {
        error_report_path(root, error);
        return STATUS_FAILED;
    }
    export.has_requests = client_requests_read(export.root.path, &export.requests);
    stopping_catch_pipe(); /* while it is claimed, too: other hosts take it for the claim of a process that lives */
    int status = export_look(&export);
    int signal = stopping_release();
    union_root_finish(&export.root);
    return status == STATUS_OK && signal != 0 ? 128 + signal : status;
}
