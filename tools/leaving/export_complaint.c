/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "leaving/export_state.h"
#include "tree/fixed.h"
#include "union/layout.h"

void export_fail(struct export *export, const char *path, int error)
{
    char fixed[PATH_MAX];
    progress_finish(&export->progress);
    if (error == -EPERM && fixed_find(export->root.path, path, fixed))
        fixed_complain(fixed);
    else
        error_report_path(path, error);
    export->failed = true;
}

bool export_complain_fixed_below(struct export *export, const char *path)
{
    char fixed[PATH_MAX];
    if (!fixed_find_below(path, fixed))
        return false;
    progress_finish(&export->progress);
    fixed_complain(fixed);
    export->failed = true;
    return true;
}

void export_complain_appeared(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: a file of that name appeared in the trunk during the export (stop the program that writes there and run "
                 "this again)",
                 where);
    export->failed = true;
}

void export_complain_loser(struct export *export, const char *where, const char *called)
{
    progress_finish(&export->progress);
    error_report(
        "%s: the trunk's file of that name, which lost a conflict, cannot be renamed to %s (look at the file system, then run "
        "this again)",
        where, called);
    export->failed = true;
}

void export_complain_across(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: cannot be renamed to another file system, mount or quota (run 'shunt export --copy %s' to copy "
                 "such files)",
                 where, export->root.path);
    export->failed = true;
}

void export_complain_own(struct export *export, int error)
{
    char own[2 * PATH_MAX];
    export_place(export, LAYOUT_OWN, own);
    export_fail(export, own, error);
}

void export_complain_mode(struct export *export, const char *path, unsigned before, int error)
{
    char where[2 * PATH_MAX];
    export_place(export, path, where);
    progress_finish(&export->progress);
    error_report("%s: its mode cannot be put back: %s (run 'chmod %04o' on it, then run this again)", where, strerror(-error),
                 before & 07777u);
    export->failed = true;
}

void export_complain_times(struct export *export, const char *path, const struct statx *before, int error)
{
    char where[2 * PATH_MAX];
    export_place(export, path, where);
    progress_finish(&export->progress);
    error_report("%s: its times cannot be put back: %s (run 'touch -m -d @%lld.%09u' on it, then run this again)", where,
                 strerror(-error), (long long)before->stx_mtime.tv_sec, before->stx_mtime.tv_nsec);
    export->failed = true;
}

int export_complain_fixed(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: immutable or append-only, so it cannot be renamed (run 'chattr -i -a' on it, then run this again)",
                 where);
    export->failed = true;
    return -ECANCELED;
}

void export_place(const struct export *export, const char *path, char where[2 * PATH_MAX])
{
    snprintf(where, 2 * PATH_MAX, "%s/%s", export->root.path, path);
}

void export_complain_fixed_directory(struct export *export, const struct folder *folder)
{
    char where[2 * PATH_MAX];
    export_place(export, folder->path, where);
    progress_finish(&export->progress);
    error_report("%s: immutable or append-only, so it cannot become a plain directory (run 'chattr -i -a' on it, then run this "
                 "again)",
                 where);
    export->failed = true;
}
