/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/stamp.h"

#include <errno.h>
#include <fcntl.h>

#include "union/disk.h"
#include "union/identity.h"
#include "union/lines.h"

#define STAMP_HEAD "shunt-root 1"

int stamp_parse(struct stamp *stamp, const char *text, size_t length)
{
    struct lines lines = {text, length};
    struct lines_value id, directory;
    if (!lines_expect(&lines, STAMP_HEAD) || !lines_take(&lines, "id", &id) || !lines_take(&lines, "directory", &directory))
        return -EBADMSG;
    if (!lines_number(id, 16, &stamp->id) || stamp->id == 0 || !lines_dirid(directory, &stamp->directory))
        return -EBADMSG;
    return lines.left == 0 ? 0 : -EBADMSG;
}

int stamp_format(const struct stamp *stamp, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, STAMP_HEAD "\n");
    lines_add_number(&t, "id", stamp->id, 16);
    lines_add_dirid(&t, "directory", stamp->directory);
    return text_ok(&t) ? (int)t.length : -ENAMETOOLONG;
}

int stamp_read(int own, struct stamp *stamp)
{
    char text[STAMP_SIZE_MAX];
    ssize_t length = disk_read(own, STAMP_NAME, text, sizeof text);
    return length < 0 ? (int)length : stamp_parse(stamp, text, (size_t)length);
}

int stamp_write(int own, const struct stamp *stamp)
{
    char text[STAMP_SIZE_MAX], name[32];
    int length = stamp_format(stamp, text, sizeof text);
    if (length < 0)
        return length;
    struct text t;
    text_init(&t, name, sizeof name);
    disk_temporary(&t, STAMP_TEMPORARY);
    int error = disk_write_new(own, name, text, (size_t)length, 0644);
    if (error < 0)
        return error;
    error = sys_renameat2(own, name, own, STAMP_NAME, 0);
    if (error < 0)
        sys_unlinkat(own, name, 0);
    return error;
}

int stamp_renew(int own, struct dirid directory)
{
    struct stamp stamp = {.directory = directory};
    do
        stamp.id = disk_random();
    while (stamp.id == 0);
    return stamp_write(own, &stamp);
}

int stamp_root_of(int own, struct dirid *id)
{
    struct statx stat;
    const int root = sys_openat(own, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (root < 0)
        return root;
    const int error = identity_stat_root(root, &stat);
    sys_close(root);
    if (error == 0)
        *id = dirid_of(&stat);
    return error;
}

int stamp_is_copied(int own)
{
    struct stamp stamp;
    struct dirid root;
    int error = stamp_read(own, &stamp);
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    error = stamp_root_of(own, &root);
    return error < 0 ? error : !dirid_equal(stamp.directory, root);
}
