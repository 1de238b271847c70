/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/attributes.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "index/record.h"
#include "union/disk.h"

#define ATTRIBUTES_LEVELS_MAX 256

/* A directory above another one. */
struct attributes_above {
    uint64_t ino, device;
};

/* From which path to which descriptor; two lists and two values, as large as the kernel lets them be, and what is above of
 * both. */
struct attributes {
    const char *from;
    int to;
    bool in_equal; /* what `to` lies in is equal */
    char from_list[XATTR_LIST_MAX], to_list[XATTR_LIST_MAX];
    char from_value[XATTR_SIZE_MAX], to_value[XATTR_SIZE_MAX];
    struct attributes_above from_above[ATTRIBUTES_LEVELS_MAX], to_above[ATTRIBUTES_LEVELS_MAX];
};

/* A default layout of Lustre and CephFS: asked for by name, since they are not listed. */
static const char *const attributes_unlisted[] = {"lustre.lov", "ceph.dir.layout"};

static bool attributes_starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool attributes_is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

bool attributes_carried(const char *name)
{
    /* Labels come from the policy; the identities of Lustre's objects are theirs alone. */
    static const char *const own[] = {
        "security.selinux", "security.ima", "security.evm",    "trusted.lma", "trusted.link", "trusted.fid", "trusted.lmv",
        "trusted.som",      "trusted.hsm",  "trusted.version", NULL};
    static const char *const others[] = {
        "system.posix_acl_access", "system.posix_acl_default", "system.nfs4_acl", "lustre.lov", "ceph.dir.layout", NULL};
    if (attributes_is_one_of(name, own) || attributes_starts_with(name, "trusted.overlay."))
        return false;
    return attributes_starts_with(name, "user.") || attributes_starts_with(name, "trusted.") ||
           attributes_starts_with(name, "security.") || attributes_is_one_of(name, others);
}

static ssize_t attributes_get_from(const char *from, const char *name, char *value)
{
    return SYS4(SYS_getxattr, from, name, value, XATTR_SIZE_MAX);
}

static ssize_t attributes_get_to(int to, const char *name, char *value)
{
    return SYS4(SYS_fgetxattr, to, name, value, XATTR_SIZE_MAX);
}

/* What is too large to be read is there. */
static bool attributes_is_there(ssize_t size)
{
    return size >= 0 || size == -ERANGE || size == -E2BIG;
}

/* CephFS: what a directory has none of its own of, its files have from the nearest one above that does. */
static bool attributes_is_from_above(const char *name)
{
    return strcmp(name, "ceph.dir.layout") == 0;
}

static bool attributes_is_same(const struct attributes_above *a, const struct attributes_above *b)
{
    return a->ino == b->ino && a->device == b->device;
}

/* The directories above `path`, the nearest first: how many, up to ATTRIBUTES_LEVELS_MAX. What a directory is no server is
 * asked for. */
static size_t attributes_list_above(const char *path, struct attributes_above *above)
{
    char at[PATH_MAX];
    struct text text;
    struct statx stat;
    size_t count = 0;
    text_init(&text, at, sizeof at);
    text_add(&text, path);
    while (count < ATTRIBUTES_LEVELS_MAX) {
        text_add(&text, "/..");
        if (!text_ok(&text) || sys_statx(AT_FDCWD, at, AT_STATX_DONT_SYNC, STATX_INO, &stat) != 0)
            break;
        above[count] = (struct attributes_above){stat.stx_ino, disk_device(&stat)};
        if (count > 0 && attributes_is_same(&above[count - 1], &above[count]))
            break;
        count++;
    }
    return count;
}

/* How many are above one alone, and above the other alone. */
static void attributes_count_apart(const struct attributes *room, size_t *from, size_t *to)
{
    for (size_t i = 0; i < *from; i++)
        for (size_t j = 0; j < *to; j++)
            if (attributes_is_same(&room->from_above[i], &room->to_above[j])) {
                *from = i;
                *to = j;
            }
}

/* As getxattr of the nearest of so many directories above `path`; -ENODATA: none has it. */
static ssize_t attributes_get_above(const char *path, size_t levels, const char *name, char *value)
{
    char above[PATH_MAX];
    struct text text;
    ssize_t size = -ENODATA;
    text_init(&text, above, sizeof above);
    text_add(&text, path);
    for (size_t i = 0; i < levels && size == -ENODATA; i++) {
        text_add(&text, "/..");
        size = text_ok(&text) ? attributes_get_from(above, name, value) : -ENAMETOOLONG;
    }
    return attributes_is_there(size) ? size : -ENODATA;
}

static bool attributes_are_equal(const struct attributes *room, ssize_t from, ssize_t to)
{
    return from == to && (from < 0 || memcmp(room->from_value, room->to_value, (size_t)from) == 0);
}

/* Neither has it from above, or both have the same; else `to` is given its own. What is above both counts only where one of
 * them has nothing nearer: each look is a request to a server. */
static bool attributes_match_above(struct attributes *room, const char *name, bool change)
{
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, room->to);
    const size_t from_all = attributes_list_above(room->from, room->from_above);
    const size_t to_all = attributes_list_above(proc, room->to_above);
    size_t from_alone = from_all, to_alone = to_all;
    attributes_count_apart(room, &from_alone, &to_alone);
    ssize_t wanted = attributes_get_above(room->from, from_alone, name, room->from_value);
    ssize_t now = attributes_get_to(room->to, name, room->to_value);
    const bool has_own = attributes_is_there(now);
    if (!has_own)
        now = attributes_get_above(proc, to_alone, name, room->to_value);
    if (wanted == -ENODATA && now != -ENODATA)
        wanted = attributes_get_above(room->from, from_all, name, room->from_value);
    if (now == -ENODATA && wanted != -ENODATA)
        now = attributes_get_above(proc, to_all, name, room->to_value);
    if (attributes_are_equal(room, wanted, now))
        return true;
    if (wanted >= 0)
        return change && SYS5(SYS_fsetxattr, room->to, name, room->from_value, wanted, 0) == 0;
    return change && has_own && SYS2(SYS_fremovexattr, room->to, name) == 0;
}

static bool attributes_match_absence(struct attributes *room, const char *name, bool change)
{
    if (!attributes_is_there(attributes_get_to(room->to, name, room->to_value)))
        return true;
    long error = change ? SYS2(SYS_fremovexattr, room->to, name) : -EPERM;
    return error == 0 || error == -ENODATA;
}

/* Makes one equal if it is not and `change` says so. True: it is equal, or there is nothing to be equal to. */
static bool attributes_match(struct attributes *room, const char *name, bool change)
{
    ssize_t wanted = attributes_get_from(room->from, name, room->from_value);
    if (wanted == -ENODATA && attributes_is_from_above(name) && !room->in_equal)
        return attributes_match_above(room, name, change);
    if (wanted == -ENODATA)
        return attributes_match_absence(room, name, change);
    if (wanted < 0)
        return !attributes_is_there(wanted);
    if (attributes_are_equal(room, wanted, attributes_get_to(room->to, name, room->to_value)))
        return true;
    return change && SYS5(SYS_fsetxattr, room->to, name, room->from_value, wanted, 0) == 0;
}

static bool attributes_match_list(struct attributes *room, const char *list, ssize_t size, bool change)
{
    bool equal = true;
    for (const char *name = list; size > 0 && name < list + size; name += strlen(name) + 1)
        equal = (!attributes_carried(name) || attributes_match(room, name, change)) && equal;
    return equal;
}

static bool attributes_match_all(struct attributes *room, bool change)
{
    ssize_t from_size = SYS3(SYS_listxattr, room->from, room->from_list, sizeof room->from_list);
    ssize_t to_size = SYS3(SYS_flistxattr, room->to, room->to_list, sizeof room->to_list);
    if (from_size == -E2BIG || from_size == -ERANGE)
        return false;
    bool equal = attributes_match_list(room, room->from_list, from_size, change);
    equal = attributes_match_list(room, room->to_list, to_size, change) && equal;
    for (size_t i = 0; i < sizeof attributes_unlisted / sizeof *attributes_unlisted; i++)
        equal = attributes_match(room, attributes_unlisted[i], change) && equal;
    return equal;
}

/* As a rule they are equal, and read once: on CephFS what is not listed is a request to the server each time. */
int attributes_copy(const char *from, int to, bool in_equal)
{
    struct attributes *room = malloc(sizeof *room);
    if (!room)
        return -ENOMEM;
    room->from = from;
    room->to = to;
    room->in_equal = in_equal;
    bool equal = attributes_match_all(room, false);
    if (!equal) {
        attributes_match_all(room, true);
        equal = attributes_match_all(room, false);
    }
    free(room);
    return equal ? 0 : RECORD_WHY_ATTRIBUTES;
}
