/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/stopping.h"
#include "leaving/export_state.h"
#include "union/layout.h"

bool export_loosen(const struct export *export, int fd, struct dirid id, const struct statx *before)
{
    if (!opened_has_to(before))
        return false;
    opened_write(export->root.path, id, before->stx_mode);
    return opened_give_mode(fd, opened_mode(before->stx_mode)) == 0;
}

/* Those of another user's directory, which only that user can set, stay as they are. */
void export_put_back_times(struct export *export, int fd, const char *path, const struct statx *before)
{
    char proc[DISK_PROC_SIZE];
    struct timespec times[2] = {{before->stx_atime.tv_sec, before->stx_atime.tv_nsec},
                                {before->stx_mtime.tv_sec, before->stx_mtime.tv_nsec}};
    disk_proc(proc, fd);
    const int error = sys_utimensat(AT_FDCWD, proc, times, 0);
    if (error < 0 && error != -EPERM && error != -EACCES)
        export_complain_times(export, path, before, error);
}

/* What is written of its mode stays until it has that again. */
void export_put_back(struct export *export, int fd, const char *path, struct dirid id, const struct statx *before,
                     bool loosened)
{
    const int error = loosened ? opened_give_mode(fd, before->stx_mode) : 0;
    if (error < 0)
        export_complain_mode(export, path, before->stx_mode, error);
    else if (loosened)
        opened_remove(export->root.path, id);
    export_put_back_times(export, fd, path, before);
}

void export_loosen_mirrors(const struct export *export)
{
    char path[PATH_MAX], buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    for (size_t i = 1; i <= export->root.branch_count && geteuid() != 0 && !export->options->dry_run; i++) {
        if (mirrors_branch_path(&export->root, (uint16_t)i, path, sizeof path) < 0 ||
            disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer) < 0)
            continue;
        while (!stopping() && disk_scan_next(&scan, &one) > 0)
            if (!layout_is_catalogue(one->name))
                opened_open_mirror(scan.fd, one->name);
        disk_scan_finish(&scan);
    }
}
