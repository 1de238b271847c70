/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "union/disk.h"
#include "union/layout.h"

#define TAKE_BUFFER (256 * 1024)
#define TAKE_BLOCK (1 << 20)
#define TAKE_ATTRIBUTES 4096 /* bytes of the names of extended attributes; a directory with more is taken for private */

/* Where the bytes of names stand. */
struct take_block {
    struct take_block *next;
    size_t used;
    char bytes[TAKE_BLOCK];
};

struct take {
    struct take_block *blocks;
    struct catalogue_name *names;
    size_t count, room;
};

int take_stamp_at(int directory, const char *name, struct catalogue_stamp *to)
{
    struct statx stat;
    const int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_FORCE_SYNC;
    int code = sys_statx(directory, name, flags, CATALOGUE_STAMP_MASK, &stat);
    return code == 0 ? catalogue_stamp_of(&stat, to) : code;
}

int take_stamp(int directory, struct catalogue_stamp *to)
{
    return take_stamp_at(directory, "", to);
}

static const char *take_keep(struct take *take, const char *name, size_t length)
{
    struct take_block *block = take->blocks;
    if (block == NULL || TAKE_BLOCK - block->used <= length) {
        if ((block = malloc(sizeof *block)) == NULL)
            return NULL;
        block->next = take->blocks;
        block->used = 0;
        take->blocks = block;
    }
    char *kept = memcpy(block->bytes + block->used, name, length + 1);
    block->used += length + 1;
    return kept;
}

static int take_add(struct take *take, const struct disk_name *one, size_t length)
{
    if (take->count == take->room) {
        const size_t room = take->room > 0 ? 2 * take->room : 256;
        struct catalogue_name *more = realloc(take->names, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        take->names = more;
        take->room = room;
    }
    const char *name = take_keep(take, one->name, length);
    if (name == NULL)
        return -ENOMEM;
    take->names[take->count++] = (struct catalogue_name){.name = name, .ino = one->ino, .type = one->type};
    return 0;
}

static void take_finish(struct take *take)
{
    while (take->blocks != NULL) {
        struct take_block *block = take->blocks;
        take->blocks = block->next;
        free(block);
    }
    free(take->names);
}

/* 1: all names; 0: one of them is being written, or the directory cannot be read. */
static int take_read(struct take *take, struct disk_scan *scan, bool in_root)
{
    const struct disk_name *one;
    int more, code = 0;
    while (code == 0 && (more = disk_scan_next(scan, &one)) != 0) {
        const size_t length = more > 0 ? strlen(one->name) : 0;
        const bool is_ours = more > 0 && layout_is_ours(one->name, length, in_root);
        if (more < 0 || (is_ours && length == LAYOUT_UNFINISHED))
            return 0;
        if (!is_ours)
            code = take_add(take, one, length);
    }
    return code == 0 ? 1 : code;
}

/* Has everybody every permission to list it? Access control lists, whichever a file system has, may except somebody. */
static bool take_is_public(int directory)
{
    const mode_t all = S_IRUSR | S_IXUSR | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
    struct statx stat;
    char names[TAKE_ATTRIBUTES];
    if (sys_statx(directory, "", AT_EMPTY_PATH, STATX_MODE, &stat) != 0 || (stat.stx_mode & all) != all)
        return false;
    const long length = SYS3(SYS_flistxattr, directory, names, sizeof names);
    if (length < 0)
        return length == -ENOTSUP;
    for (const char *name = names; name < names + length; name += strlen(name) + 1)
        if (strncmp(name, "system.", strlen("system.")) == 0 && strstr(name, "acl") != NULL)
            return false;
    return true;
}

static int take_put(struct catalogue *catalogue, int directory, const struct catalogue_stamp *stood, struct take *take,
                    bool is_public)
{
    struct catalogue_stamp now;
    const unsigned flags = is_public && take_is_public(directory) ? CATALOGUE_PUBLIC : 0;
    int code = take_stamp(directory, &now);
    if (code <= 0)
        return 0;
    if (!catalogue_stamp_equal(&now, stood))
        return 0;
    code = catalogue_put(catalogue, stood, take->names, take->count, flags);
    return code == 0 ? 1 : code;
}

int take(struct catalogue *catalogue, int directory, const struct catalogue_stamp *stood, unsigned flags)
{
    struct take take = {0};
    struct disk_scan scan;
    char *buffer = malloc(TAKE_BUFFER);
    if (buffer == NULL)
        return -ENOMEM;
    disk_scan_of(&scan, directory, buffer, TAKE_BUFFER);
    int code = take_read(&take, &scan, (flags & TAKE_IN_ROOT) != 0);
    if (code == 1)
        code = take_put(catalogue, directory, stood, &take, (flags & TAKE_PUBLIC) != 0);
    take_finish(&take);
    free(buffer);
    return code;
}

int take_marker(struct catalogue *catalogue, int file, const struct catalogue_stamp *stood)
{
    char text[MARKER_SIZE_MAX];
    struct marker marker;
    struct catalogue_stamp now;
    ssize_t length = disk_read_all(file, text, sizeof text);
    if (length < 0 || marker_parse(&marker, text, (size_t)length) < 0)
        return 0;
    if (take_stamp(file, &now) != 1 || !catalogue_stamp_equal(&now, stood))
        return 0;
    int code = catalogue_put_marker(catalogue, stood, &marker);
    return code == 0 ? 1 : code;
}
