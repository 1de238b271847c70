/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "api/folder.h"

#include <errno.h>

#define FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int folder_of(struct folder *folder, int fd, const char *path)
{
    struct text t;
    text_init(&t, folder->path, sizeof folder->path);
    text_add(&t, path);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    folder->fd = fd;
    folder->listed = false;
    return 0;
}

int folder_open(struct folder *folder, int root_fd, const char *path)
{
    folder->fd = -1;
    folder->listed = false;
    int fd = sys_openat(root_fd, path, FOLDER_FLAGS, 0);
    if (fd < 0)
        return fd;
    int error = folder_of(folder, fd, path);
    if (error < 0)
        sys_close(fd);
    return error;
}

int folder_list(struct folder *folder, const struct union_root *root, unsigned flags)
{
    if (folder->listed)
        return 0;
    int error = listing_init(&folder->listing, root, folder->fd, folder->path, 0, flags);
    folder->listed = error == 0;
    return error;
}

void folder_unlist(struct folder *folder)
{
    if (folder->listed)
        listing_finish(&folder->listing);
    folder->listed = false;
}

void folder_close(struct folder *folder)
{
    if (folder->fd < 0)
        return;
    folder_unlist(folder);
    sys_close(folder->fd);
    folder->fd = -1;
}

int folder_path(const struct folder *folder, const char *name, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    if (strcmp(folder->path, ".") != 0) {
        text_add(&t, folder->path);
        text_add(&t, "/");
    }
    text_add(&t, name);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}

int folder_stat(const struct folder *folder, const struct union_root *root, const struct union_name *name, struct statx *to)
{
    const unsigned mask = STATX_BASIC_STATS | STATX_BTIME;
    char where[PATH_MAX];
    if (!name)
        return sys_statx(folder->fd, "", AT_EMPTY_PATH, mask, to);
    if (name->branch == 0)
        return sys_statx(folder->fd, name->on_disk, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, mask, to);
    int error = folder_where(folder, root, name, where, sizeof where);
    if (error == 0)
        error = sys_statx(AT_FDCWD, where, AT_SYMLINK_NOFOLLOW, mask, to);
    if (error == -ENOENT) /* an export, or its node, has moved it to the trunk since it was listed */
        error = sys_statx(folder->fd, name->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, mask, to);
    return error;
}

int folder_where(const struct folder *folder, const struct union_root *root, const struct union_name *name, char *to,
                 size_t size)
{
    if (name)
        return listing_where(&folder->listing, root, folder->path, name, to, size);
    struct text t;
    text_init(&t, to, size);
    text_add(&t, root->path);
    if (strcmp(folder->path, ".") != 0) {
        text_add(&t, "/");
        text_add(&t, folder->path);
    }
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}
