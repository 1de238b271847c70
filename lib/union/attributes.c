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

/* Two lists and two values, as large as the kernel lets them be. */
struct attributes {
    char from_list[XATTR_LIST_MAX], to_list[XATTR_LIST_MAX];
    char from_value[XATTR_SIZE_MAX], to_value[XATTR_SIZE_MAX];
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

/* As getxattr of the nearest directory above `path`; -ENODATA: none has it. */
static ssize_t attributes_get_above(const char *path, const char *name, char *value)
{
    char above[PATH_MAX];
    struct text text;
    struct statx stat;
    uint64_t below = 0;
    ssize_t size = -ENODATA;
    text_init(&text, above, sizeof above);
    text_add(&text, path);
    while (size == -ENODATA) {
        text_add(&text, "/..");
        if (!text_ok(&text) || sys_statx(AT_FDCWD, above, 0, STATX_INO, &stat) != 0 || stat.stx_ino == below)
            break;
        below = stat.stx_ino;
        size = attributes_get_from(above, name, value);
    }
    return attributes_is_there(size) ? size : -ENODATA;
}

static bool attributes_are_equal(const struct attributes *room, ssize_t from, ssize_t to)
{
    return from == to && (from < 0 || memcmp(room->from_value, room->to_value, (size_t)from) == 0);
}

/* Neither has it from above, or both have the same; else `to` is given its own. */
static bool attributes_match_above(struct attributes *room, const char *from, int to, const char *name, bool change)
{
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, to);
    const ssize_t wanted = attributes_get_above(from, name, room->from_value);
    ssize_t now = attributes_get_to(to, name, room->to_value);
    const bool has_own = attributes_is_there(now);
    if (!has_own)
        now = attributes_get_above(proc, name, room->to_value);
    if (attributes_are_equal(room, wanted, now))
        return true;
    if (wanted >= 0)
        return change && SYS5(SYS_fsetxattr, to, name, room->from_value, wanted, 0) == 0;
    return change && has_own && SYS2(SYS_fremovexattr, to, name) == 0;
}

static bool attributes_match_absence(struct attributes *room, int to, const char *name, bool change)
{
    if (!attributes_is_there(attributes_get_to(to, name, room->to_value)))
        return true;
    long error = change ? SYS2(SYS_fremovexattr, to, name) : -EPERM;
    return error == 0 || error == -ENODATA;
}

/* Makes one equal if it is not and `change` says so. True: it is equal, or there is nothing to be equal to.
 */
static bool attributes_match(struct attributes *room, const char *from, int to, const char *name, bool change)
{
    ssize_t wanted = attributes_get_from(from, name, room->from_value);
    if (wanted == -ENODATA && attributes_is_from_above(name))
        return attributes_match_above(room, from, to, name, change);
    if (wanted == -ENODATA)
        return attributes_match_absence(room, to, name, change);
    if (wanted < 0)
        return !attributes_is_there(wanted);
    if (attributes_are_equal(room, wanted, attributes_get_to(to, name, room->to_value)))
        return true;
    return change && SYS5(SYS_fsetxattr, to, name, room->from_value, wanted, 0) == 0;
}

static bool attributes_match_list(struct attributes *room, const char *from, int to, const char *list, ssize_t size,
                                  bool change)
{
    bool equal = true;
    for (const char *name = list; size > 0 && name < list + size; name += strlen(name) + 1)
        equal = (!attributes_carried(name) || attributes_match(room, from, to, name, change)) && equal;
    return equal;
}

static bool attributes_match_lists(struct attributes *room, const char *from, int to, bool change)
{
    ssize_t from_size = SYS3(SYS_listxattr, from, room->from_list, sizeof room->from_list);
    ssize_t to_size = SYS3(SYS_flistxattr, to, room->to_list, sizeof room->to_list);
    if (from_size == -E2BIG || from_size == -ERANGE)
        return false;
    bool equal = attributes_match_list(room, from, to, room->from_list, from_size, change);
    equal = attributes_match_list(room, from, to, room->to_list, to_size, change) && equal;
    for (size_t i = 0; i < sizeof attributes_unlisted / sizeof *attributes_unlisted; i++)
        equal = attributes_match(room, from, to, attributes_unlisted[i], change) && equal;
    return equal;
}

/* All, or the one of that name. */
static bool attributes_match_some(struct attributes *room, const char *from, int to, const char *name, bool change)
{
    return name != NULL ? attributes_match(room, from, to, name, change) : attributes_match_lists(room, from, to, change);
}

/* As a rule they are equal, and read once: on CephFS a default layout is asked of each directory above, which is a request. */
static int attributes_copy_some(const char *from, int to, const char *name)
{
    struct attributes *room = malloc(sizeof *room);
    if (!room)
        return -ENOMEM;
    bool equal = attributes_match_some(room, from, to, name, false);
    if (!equal) {
        attributes_match_some(room, from, to, name, true);
        equal = attributes_match_some(room, from, to, name, false);
    }
    free(room);
    return equal ? 0 : RECORD_WHY_ATTRIBUTES;
}

int attributes_copy(const char *from, int to)
{
    return attributes_copy_some(from, to, NULL);
}

int attributes_copy_one(const char *from, int to, const char *name)
{
    return attributes_copy_some(from, to, name);
}
