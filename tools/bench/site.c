/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/site.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/command.h"
#include "union/listing.h"

#define OPEN_DIRECTORIES 32

static const struct {
    long type;
    const char *name;
} kinds[] = {{0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"}, {0x00c36400, "ceph"}, {0x19830326, "beegfs"},
             {0x6969, "nfs"},        {0xef53, "ext4"},     {0x58465342, "xfs"},  {0x9123683e, "btrfs"},
             {0x01021994, "tmpfs"},  {0x65735546, "fuse"}, {0x2fc12fc1, "zfs"},  {0x794c7630, "overlay"},
             {0x7461636f, "ocfs2"},  {0x01161970, "gfs2"}, {0x01021997, "9p"},   {0xaad7aaea, "panfs"}};

/* By the numbers of statfs(2), some of which are in no header. */
static void site_name_kind(const char *path, char *to, size_t size)
{
    struct statfs found;
    if (statfs(path, &found) < 0)
        found.f_type = 0;
    snprintf(to, size, "type 0x%lx", (unsigned long)found.f_type & 0xffffffff);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == ((long)found.f_type & 0xffffffff))
            snprintf(to, size, "%s", kinds[i].name);
}

/* What lies in a root would be measured as shunt's in the native runs, too, and a root can be in no other. */
static int site_refuse_root(const char *path)
{
    struct union_root root;
    int error = union_root_init(&root, path, LISTING_FIND_ROOT);
    if (error == 0) {
        error_report("%s: inside a root of shunt, where native runs cannot be measured (give a directory outside it)", path);
        union_root_finish(&root);
    } else if (error != -ENOTUNIQ) {
        error_report_path(path, error);
    }
    return error == -ENOTUNIQ ? 0 : -1;
}

int site_check(const char *directory, char to[PATH_MAX])
{
    struct stat stat_of;
    if (!realpath(directory, to) || stat(to, &stat_of) < 0) {
        error_report("%s: cannot be measured: %s (give a directory of the file system to be measured)", error_name(directory),
                     strerror(errno));
        return -1;
    }
    if (!S_ISDIR(stat_of.st_mode)) {
        error_report("%s: not a directory (give a directory of the file system to be measured)", directory);
        return -1;
    }
    if (strchr(to, ':') || strlen(to) + sizeof SITE_NAME > SITE_TOP_MAX) {
        error_report("%s: cannot be a root, its path is too long or has a colon (give another directory)", to);
        return -1;
    }
    return site_refuse_root(to);
}

int site_make(struct site *site, const char *directory)
{
    char path[PATH_MAX + sizeof SITE_ROOT];
    snprintf(path, sizeof path, "%s/" SITE_NAME, strcmp(directory, "/") ? directory : "");
    if (!mkdtemp(path)) {
        error_report_path(directory, -errno);
        return -1;
    }
    strcpy(site->top, path);
    site->name = strrchr(site->top, '/') + 1;
    site_name_kind(site->top, site->kind, sizeof site->kind);
    const char *const parts[] = {SITE_NATIVE, SITE_ROOT};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", site->top, parts[i]);
        if (mkdir(path, 0755) == 0)
            continue;
        error_report_path(path, -errno);
        return -1;
    }
    return 0;
}

static int site_remove_one(const char *path, const struct stat *stat_of, int type, struct FTW *at)
{
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int site_remove(struct site *site)
{
    if (!site->top[0])
        return 0;
    int error = nftw(site->top, site_remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 ? -errno : 0;
    if (error < 0)
        error_report("%s: cannot be removed: %s (end what still uses it, then run 'rm -r %s')", site->top, strerror(-error),
                     site->top);
    site->top[0] = '\0';
    return error < 0 ? -1 : 0;
}
