/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "union/census.h"
#include "union/disk.h"
#include "union/identity.h"

#define BRANCHES_MAX (UINT16_MAX - 1)

/* 0, or -errno. */
static int root_check_directory(const char *path)
{
    struct statx stat;
    int code = sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    return code == 0 && !S_ISDIR(stat.stx_mode) ? -ENOTDIR : code;
}

/* The directory that holds what `path` names: its text without the last component. */
static int root_open_parent(const char *path)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    char parent[PATH_MAX];
    struct text t;
    text_init(&t, parent, sizeof parent);
    text_bytes(&t, path, length);
    text_add(&t, length > 0 ? "" : ".");
    return text_ok(&t) ? sys_openat(AT_FDCWD, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -ENAMETOOLONG;
}

/* What is looked for beneath a root may be a file, and one in a branch is not there by this name at all. */
static int root_open_start(const char *path, unsigned flags)
{
    int fd = sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (!(flags & LISTING_FIND_ROOT) || (fd != -ENOENT && fd != -ENOTDIR) || *path == '\0')
        return fd;
    int parent = root_open_parent(path);
    return parent < 0 ? fd : parent;
}

/* Cuts `path` to the nearest directory upwards that holds `.shunt`. -ENOTUNIQ: there is none; another -errno: there may be one.
 */
static int root_find_upwards(char path[PATH_MAX])
{
    for (int none = -ENOTUNIQ;;) {
        char own[PATH_MAX + sizeof LAYOUT_OWN];
        struct text t;
        text_init(&t, own, sizeof own);
        text_add(&t, path);
        text_add(&t, "/" LAYOUT_OWN);
        const int code = text_ok(&t) ? root_check_directory(own) : -ENOENT;
        if (code == 0)
            return 0;
        if (code != -ENOENT && code != -ENOTDIR)
            none = code;
        char *slash = strrchr(path, '/');
        if (!slash || path[1] == '\0')
            return none;
        slash[slash == path] = '\0';
    }
}

static int root_compare_branches(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Room for all at once (of which no page is touched before it is used): threads read names while one is added. */
static int root_make_room(struct union_root *root)
{
    if (root->names == NULL)
        root->names = malloc(BRANCHES_MAX * sizeof *root->names);
    if (root->branches == NULL)
        root->branches = malloc(BRANCHES_MAX * sizeof *root->branches);
    return root->names != NULL && root->branches != NULL ? 0 : -ENOMEM;
}

int union_root_add(struct union_root *root, const char *branch)
{
    if (root->branch_count == BRANCHES_MAX)
        return -EOVERFLOW;
    size_t count = root->branch_count;
    if (root_make_room(root) != 0)
        return -ENOMEM;
    struct text t;
    text_init(&t, root->names[count][0], LAYOUT_BRANCH_MAX);
    text_add(&t, branch);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    root->branches[count] = root->names[count][0];
    return (int)++root->branch_count;
}

void union_root_rename(struct union_root *root, uint16_t number, const char *branch)
{
    /* The slot that the name stands in, which its number is not where the names were sorted. */
    const char *name = root->branches[number - 1];
    char(*slot)[LAYOUT_BRANCH_MAX] = root->names[(size_t)(name - root->names[0][0]) / sizeof *root->names];
    struct text t;
    text_init(&t, slot[1], LAYOUT_BRANCH_MAX);
    text_add(&t, branch);
    __atomic_store_n(&root->branches[number - 1], slot[1], __ATOMIC_RELEASE);
}

int union_root_settles(const struct union_root *root, unsigned flags)
{
    if (!(flags & LISTING_SETTLE))
        return 0;
    return root->may_settle == NULL || root->may_settle(root->settle_context) ? 1 : -ECANCELED;
}

uint16_t union_root_branch(const struct union_root *root, const char *branch)
{
    for (size_t i = 0; i < root->branch_count; i++)
        if (strcmp(root->branches[i], branch) == 0)
            return (uint16_t)(i + 1);
    return 0;
}

static int root_read_branches(struct union_root *root, int fd)
{
    char buffer[16384] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t incarnation;
    int more = disk_scan_init(&scan, fd, LAYOUT_BRANCHES, buffer, sizeof buffer);
    if (more < 0)
        return more == -ENOENT ? 0 : more;
    while ((more = disk_scan_next(&scan, &one)) > 0) {
        if (layout_branch_node(one->name, strlen(one->name), &incarnation) == 0 ||
            (one->type != DT_DIR && one->type != DT_UNKNOWN) || union_root_branch(root, one->name) != 0)
            continue;
        more = union_root_add(root, one->name);
        if (more < 0)
            break;
    }
    disk_scan_finish(&scan);
    return more;
}

int union_root_look(struct union_root *root)
{
    int fd = sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int code = root_read_branches(root, fd);
    sys_close(fd);
    return code;
}

static int root_identify(struct union_root *root, int fd)
{
    struct statx stat;
    int error = identity_stat_root(fd, &stat);
    if (error < 0)
        return error;
    root->id = dirid_of(&stat);
    root->device = disk_device(&stat);
    return 0;
}

static int root_locate(struct union_root *root, const char *path, unsigned flags)
{
    int fd = root_open_start(path, flags);
    if (fd < 0)
        return fd;
    int length = disk_canonical(fd, root->path, sizeof root->path);
    sys_close(fd);
    if (length < 0)
        return length;
    return flags & LISTING_FIND_ROOT ? root_find_upwards(root->path) : 0;
}

int union_root_init(struct union_root *root, const char *path, unsigned flags)
{
    *root = (struct union_root){0};
    int error = root_locate(root, path, flags);
    if (error < 0)
        return error;
    int fd = sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    root->keeps_names = disk_keeps_names(fd);
    error = root_identify(root, fd);
    if (error == 0)
        error = root_read_branches(root, fd);
    sys_close(fd);
    if (root->branch_count > 0)
        qsort(root->branches, root->branch_count, sizeof *root->branches, root_compare_branches);
    if (error == 0 && !(root->census = census_create()))
        error = -ENOMEM;
    if (error < 0)
        union_root_finish(root);
    return error;
}

void union_root_finish(struct union_root *root)
{
    census_destroy(root->census);
    free(root->branches);
    free(root->names);
    root->census = NULL;
    root->branches = NULL;
    root->names = NULL;
    root->branch_count = 0;
}
