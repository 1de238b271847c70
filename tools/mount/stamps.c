/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "stamps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "catalogue/take.h"
#include "union/disk.h"
#include "union/layout.h"
#include "union/marker.h"

#define STAMPS_BUFFER 4096 /* for the names of leaves */

/* One that is not there has a stamp, too: none. 1, 0 or -errno, as all that follow. */
static int stamps_add(struct stamps *stamps, int directory, const char *name)
{
    if (stamps->count == stamps->room) {
        const size_t room = stamps->room > 0 ? 2 * stamps->room : 16;
        struct catalogue_stamp *more = realloc(stamps->all, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        stamps->all = more;
        stamps->room = room;
    }
    struct catalogue_stamp *to = &stamps->all[stamps->count++];
    *to = (struct catalogue_stamp){0};
    const int code = take_stamp_at(directory, name, to);
    return code == -ENOENT ? 1 : code;
}

static int stamps_add_leaves(struct stamps *stamps, const char *mirror)
{
    char buffer[STAMPS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *leaf;
    int more, code = disk_scan_init(&scan, AT_FDCWD, mirror, buffer, sizeof buffer);
    if (code < 0)
        return code == -ENOENT ? 1 : code;
    code = 1;
    while (code == 1 && (more = disk_scan_next(&scan, &leaf)) != 0)
        code = more < 0 ? more : stamps_add(stamps, scan.fd, leaf->name);
    disk_scan_finish(&scan);
    return code;
}

static int stamps_add_mirrors(struct stamps *stamps, const struct union_root *root, const char *mirror)
{
    int code = 1;
    for (size_t i = 0; i < root->branch_count && code == 1; i++) {
        char path[PATH_MAX];
        struct text t;
        text_init(&t, path, sizeof path);
        layout_mirror(&t, root->path, root->branches[i], mirror);
        code = text_ok(&t) ? stamps_add(stamps, AT_FDCWD, path) : -ENAMETOOLONG;
        if (code == 1)
            code = stamps_add_leaves(stamps, path);
    }
    return code;
}

static int stamps_add_branches(struct stamps *stamps, const struct union_root *root)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, root->path);
    text_add(&t, "/" LAYOUT_BRANCHES);
    return text_ok(&t) ? stamps_add(stamps, AT_FDCWD, path) : -ENAMETOOLONG;
}

int stamps_take(struct stamps *stamps, const struct union_root *root, int directory)
{
    struct marker marker;
    *stamps = (struct stamps){0};
    int code = stamps_add(stamps, directory, "");
    if (code == 1)
        code = stamps_add_branches(stamps, root);
    if (code != 1)
        return code;
    const int marked = marker_read(directory, &marker);
    return marked == 0 ? stamps_add_mirrors(stamps, root, marker.mirror) : marked == -ENOENT ? 1 : marked;
}

bool stamps_equal(const struct stamps *one, const struct stamps *other)
{
    if (one->count != other->count)
        return false;
    for (size_t i = 0; i < one->count; i++)
        if (!catalogue_stamp_equal(&one->all[i], &other->all[i]))
            return false;
    return true;
}

void stamps_finish(struct stamps *stamps)
{
    free(stamps->all);
    *stamps = (struct stamps){0};
}
