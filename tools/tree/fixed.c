/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/fixed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "union/disk.h"

#define FIXED_DEPTH 5 /* .shunt/b/BRANCH/MIRROR/LEAF: what is in a leaf is not gone into */

bool fixed_find(const char *root, const char *path, char fixed[PATH_MAX])
{
    const size_t least = strlen(root);
    if (snprintf(fixed, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    while (strlen(fixed) >= least) {
        if (disk_is_fixed(AT_FDCWD, fixed))
            return true;
        char *slash = strrchr(fixed, '/');
        if (slash == NULL || slash == fixed)
            return false;
        *slash = '\0';
    }
    return false;
}

/* `fixed` has the path, to which names are added. */
static bool fixed_find_in(char fixed[PATH_MAX], unsigned depth)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    const size_t length = strlen(fixed);
    bool is_found = disk_is_fixed(AT_FDCWD, fixed);
    if (is_found || depth == 0 || disk_scan_init(&scan, AT_FDCWD, fixed, buffer, sizeof buffer) < 0)
        return is_found;
    while (!is_found && disk_scan_next(&scan, &one) > 0)
        if (snprintf(fixed + length, PATH_MAX - length, "/%s", one->name) < (int)(PATH_MAX - length))
            is_found = fixed_find_in(fixed, depth - 1);
    disk_scan_finish(&scan);
    if (!is_found)
        fixed[length] = '\0';
    return is_found;
}

bool fixed_find_below(const char *path, char fixed[PATH_MAX])
{
    return snprintf(fixed, PATH_MAX, "%s", path) < PATH_MAX && fixed_find_in(fixed, FIXED_DEPTH);
}

void fixed_complain(const char *fixed)
{
    error_report("%s: immutable or append-only (run 'chattr -i -a' on it, then run this again)", fixed);
}
