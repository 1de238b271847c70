/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Extended attributes, and access control lists, which are such. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

static const char *const names_of_attributes[] = {"user.shunt", "user.", "nonsense", "trusted.shunt", "user.other"};

static long xattr_told(long length, const char *value)
{
    if (length > 0)
        detail_bytes(value, (size_t)length);
    return length;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Their order is the file system's own. */
static long told_list(long length, char *list)
{
    char *sorted[64];
    size_t count = 0;
    for (char *at = list; length > 0 && at < list + length && count < 64; at += strlen(at) + 1)
        sorted[count++] = at;
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++)
        detail(" %s", sorted[i]);
    return length;
}

static void xattr_then(const struct place *place, bool links)
{
    static char value[256], list[4096];
    long length = links ? lgetxattr(place->path, "user.shunt", value, sizeof value)
                        : getxattr(place->path, "user.shunt", value, sizeof value);
    detail(" then %s", length < 0 ? strerrorname_np(errno) : "");
    xattr_told(length, value);
    length = links ? llistxattr(place->path, list, sizeof list) : listxattr(place->path, list, sizeof list);
    told_list(length, list);
    errno = 0;
}

static long by_set(const struct place *place, long flags)
{
    long result = setxattr(place->path, "user.shunt", "a value", 7, (int)flags);
    if (result == 0)
        xattr_then(place, false);
    return result;
}

static long by_set_name(const struct place *place, long which)
{
    long result = setxattr(place->path, names_of_attributes[which], "v", 1, 0);
    if (result == 0)
        xattr_then(place, false);
    return result;
}

static long by_lset(const struct place *place, long which)
{
    long result = lsetxattr(place->path, names_of_attributes[which], "of a link", 9, 0);
    if (result == 0)
        xattr_then(place, true);
    return result;
}

static long by_get(const struct place *place, long size)
{
    char value[64];
    return xattr_told(getxattr(place->path, "user.shunt", size ? value : NULL, (size_t)size), size ? value : "");
}

static long by_lget(const struct place *place, long unused)
{
    char value[64];
    return xattr_told(lgetxattr(place->path, "user.shunt", value, sizeof value), value);
}

static long by_list(const struct place *place, long size)
{
    static char list[4096];
    return told_list(listxattr(place->path, list, (size_t)size), list);
}

static long by_llist(const struct place *place, long size)
{
    static char list[4096];
    return told_list(llistxattr(place->path, list, (size_t)size), list);
}

static long by_set_and_remove(const struct place *place, long links)
{
    setxattr(place->path, "user.shunt", "short", 5, 0);
    setxattr(place->path, "user.other", "lived", 5, 0);
    long result = links ? lremovexattr(place->path, "user.shunt") : removexattr(place->path, "user.shunt");
    if (result == 0)
        xattr_then(place, links);
    return result;
}

static long by_remove(const struct place *place, long unused)
{
    return removexattr(place->path, "user.absent");
}

static long by_set_twice(const struct place *place, long flags)
{
    char value[4];
    if (setxattr(place->path, "user.shunt", "first value", 11, 0) < 0)
        return -1;
    long result = setxattr(place->path, "user.shunt", "second", 6, (int)flags);
    int error = errno;
    detail(" short buffer %s,", getxattr(place->path, "user.shunt", value, sizeof value) < 0 ? strerrorname_np(errno) : "fits");
    xattr_then(place, false);
    errno = error;
    return result;
}

static long by_descriptor(const struct place *place, long removes)
{
    int fd = open(place->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    long result = fsetxattr(fd, "user.shunt", "by descriptor", 13, 0);
    if (result == 0 && removes)
        result = fremovexattr(fd, "user.shunt");
    int error = errno;
    close(fd);
    xattr_then(place, false);
    errno = error;
    return result;
}

static const struct call calls[] = {
    {"setxattr(0)", CALL_CHANGES, by_set, 0},
    {"setxattr(CREATE)", CALL_CHANGES, by_set, XATTR_CREATE},
    {"setxattr(REPLACE)", CALL_CHANGES, by_set, XATTR_REPLACE},
    {"setxattr(wrong flag)", CALL_CHANGES, by_set, 64},
    {"setxattr(user.)", CALL_CHANGES, by_set_name, 1},
    {"setxattr(nonsense)", CALL_CHANGES, by_set_name, 2},
    {"setxattr(trusted.)", CALL_CHANGES, by_set_name, 3},
    {"lsetxattr(user.)", CALL_CHANGES, by_lset, 0},
    {"lsetxattr(trusted.)", CALL_CHANGES, by_lset, 3},
    {"getxattr", 0, by_get, 64},
    {"getxattr(size)", 0, by_get, 0},
    {"lgetxattr", 0, by_lget, 0},
    {"listxattr", 0, by_list, 4096},
    {"llistxattr", 0, by_llist, 4096},
    {"setxattr, removexattr", CALL_CHANGES, by_set_and_remove, 0},
    {"setxattr, lremovexattr", CALL_CHANGES, by_set_and_remove, 1},
    {"removexattr(absent)", CALL_CHANGES, by_remove, 0},
    {"setxattr twice (CREATE)", CALL_CHANGES, by_set_twice, XATTR_CREATE},
    {"setxattr twice (REPLACE)", CALL_CHANGES, by_set_twice, XATTR_REPLACE},
    {"fsetxattr", CALL_CHANGES, by_descriptor, 0},
    {"fsetxattr, fremovexattr", CALL_CHANGES, by_descriptor, 1},
};

void part_xattr(void)
{
    CASES(calls, false);
}
