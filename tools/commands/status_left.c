/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "status_left.h"

#include <stdio.h>

#include "base/clock.h"
#include "tree/mirrors.h"
#include "union/disk.h"

#define LOOKS 16
/* What an export asks a server for a file was counted on CephFS (docs/performance.md). Where there is none, a look costs next
 * to nothing, but a rename does not. */
#define REQUESTS 4
#define RENAME (30 * CLOCK_MILLISECOND / 1000)

/* By looking for names that are not there, which no client remembers. */
static uint64_t status_left_time_of_file(const struct union_root *root)
{
    struct statx stat;
    struct text t;
    char name[64];
    int fd = sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return RENAME;
    const uint64_t began = clock_monotonic();
    for (int i = 0; i < LOOKS; i++) {
        text_init(&t, name, sizeof name);
        disk_temporary(&t, ".shunt-look-");
        sys_statx(fd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    }
    const uint64_t look = (clock_monotonic() - began) / LOOKS;
    const bool has_server = disk_has_server(fd);
    sys_close(fd);
    return has_server ? REQUESTS * look : look + RENAME;
}

int status_left_look(struct status_left *left, const struct union_root *root)
{
    struct mirror_names none = {0};
    struct mirrors mirrors;
    *left = (struct status_left){0};
    int error = mirrors_init(&mirrors, root, &none);
    for (size_t i = 0; i < mirrors.count; i++)
        left->files += mirrors.all[i].foreign ? 0 : mirrors.all[i].files;
    mirrors_finish(&mirrors);
    if (error == 0 && left->files > 0)
        left->seconds = (double)left->files * (double)status_left_time_of_file(root) / CLOCK_SECOND;
    return error;
}

void status_left_print(const struct status_left *left)
{
    const bool in_minutes = left->seconds >= 90, in_hours = left->seconds >= 90 * 60;
    const double time = left->seconds / (in_hours ? 3600 : in_minutes ? 60 : 1);
    if (left->files > 0)
        printf("  left     %zu file%s in branches; export takes about %.0f %s from here\n", left->files,
               left->files == 1 ? "" : "s", time < 1 ? 1 : time,
               in_hours     ? "h"
               : in_minutes ? "min"
                            : "s");
}
