/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "config/config.h"
#include "session/session.h"
#include "union/disk.h"
#include "union/marker.h"

#define OWNER_LOOK 64 /* files between two looks at the claim */
#define OWNER_WORD "rename"

bool owner_shares_disk(const char *root)
{
    const int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    const bool shares = fd >= 0 && !disk_has_server(fd);
    if (fd >= 0)
        sys_close(fd);
    return shares;
}

/* The line: OWNER_WORD and the fields, a tab before each. */

static bool owner_is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            return false;
    return true;
}

int owner_order_format(const struct owner_order *order, char *to, size_t size)
{
    const char *const fields[] = {order->branch, order->mirror, order->root, order->path};
    struct text t;
    text_init(&t, to, size);
    text_add(&t, OWNER_WORD "\t");
    text_number(&t, order->epoch, 10);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!owner_is_plain(fields[i]))
            return -EINVAL;
        text_add(&t, "\t");
        text_add(&t, fields[i]);
    }
    return text_ok(&t) ? (int)strlen(to) : -EINVAL;
}

/* The next field, without an end of its own. False: it is missing or too long. */
static bool owner_take_field(const char **at, char *to, size_t size)
{
    const size_t length = strcspn(*at, "\t\n");
    if (length == 0 || length >= size)
        return false;
    memcpy(to, *at, length);
    to[length] = '\0';
    *at += length + ((*at)[length] == '\t');
    return true;
}

int owner_order_parse(struct owner_order *order, const char *line)
{
    char word[sizeof OWNER_WORD], number[24];
    uint32_t incarnation;
    const bool is_whole =
        owner_take_field(&line, word, sizeof word) && strcmp(word, OWNER_WORD) == 0 &&
        owner_take_field(&line, number, sizeof number) && config_number_parse(number, UINT64_MAX, &order->epoch) == 0 &&
        owner_take_field(&line, order->branch, sizeof order->branch) &&
        owner_take_field(&line, order->mirror, sizeof order->mirror) &&
        owner_take_field(&line, order->root, sizeof order->root) && owner_take_field(&line, order->path, sizeof order->path);
    if (!is_whole || *line != '\0' || line[-1] == '\t' ||
        layout_branch_node(order->branch, strlen(order->branch), &incarnation) == 0)
        return -EBADMSG;
    return strchr(order->mirror, '/') != NULL || *order->root != '/' ? -EBADMSG : 0;
}

/* On the owner's node. */

struct owner {
    const struct owner_order *order;
    struct owner_answer *answer;
    bool (*goes_on)(void *context, uint64_t files);
    void *context;
    struct disk_rename renaming;
    int trunk, mirror;
    unsigned since_look;
    bool ends;
};

static bool owner_is_held(const struct owner *owner)
{
    uint64_t epoch;
    return session_epoch(owner->order->root, &epoch) == 0 && epoch == owner->order->epoch;
}

static bool owner_may_go_on(struct owner *owner)
{
    owner->ends = owner->ends || !owner->goes_on(owner->context, owner->answer->files);
    if (!owner->ends && owner->since_look++ % OWNER_LOOK == 0)
        owner->ends = !owner_is_held(owner);
    return !owner->ends;
}

/* Is it no fault of this file alone? The export says it of one. */
static bool owner_is_hopeless(int error)
{
    return error == -EXDEV || error == -EROFS || error == -ENOSPC || error == -EDQUOT || error == -EACCES || error == -EIO;
}

/* Whether it has left. */
static bool owner_rename(struct owner *owner, int leaf, const char *name)
{
    if (!owner_may_go_on(owner))
        return false;
    HOOK("owner-renames");
    const int error = disk_rename_next(&owner->renaming, leaf, name, owner->trunk, name);
    owner->answer->files += error == 0;
    owner->answer->looked += error == 0 && owner->renaming.unknown;
    owner->ends |= owner_is_hopeless(error);
    return error == 0;
}

/* What a file system tells of a directory while files leave it may lack some: until none left it. */
static void owner_empty_leaf(struct owner *owner, const char *name)
{
    char buffer[16384] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    bool left = true;
    while (left && !owner->ends) {
        left = false;
        if (disk_scan_init(&scan, owner->mirror, name, buffer, sizeof buffer) < 0)
            return;
        while (!owner->ends && disk_scan_next(&scan, &one) > 0)
            left |= owner_rename(owner, scan.fd, one->name);
        disk_scan_finish(&scan);
    }
}

static void owner_empty_mirror(struct owner *owner)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    if (disk_scan_init(&scan, owner->mirror, ".", buffer, sizeof buffer) < 0)
        return;
    while (!owner->ends && disk_scan_next(&scan, &one) > 0)
        owner_empty_leaf(owner, one->name);
    disk_scan_finish(&scan);
}

/* It is the directory whose mirror that is, by what this node sees. */
static bool owner_open(struct owner *owner)
{
    const struct owner_order *order = owner->order;
    char path[2 * PATH_MAX];
    struct marker marker;
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, order->root);
    text_add(&t, "/");
    text_add(&t, order->path);
    owner->trunk = text_ok(&t) ? sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENAMETOOLONG;
    if (owner->trunk < 0 || marker_read(owner->trunk, &marker) < 0 || strcmp(marker.mirror, order->mirror) != 0)
        return false;
    text_init(&t, path, sizeof path);
    layout_mirror(&t, order->root, order->branch, order->mirror);
    owner->mirror = text_ok(&t) ? sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENAMETOOLONG;
    return owner->mirror >= 0;
}

void owner_carry_out(const struct owner_order *order, bool (*goes_on)(void *context, uint64_t files), void *context,
                     struct owner_answer *answer)
{
    struct owner owner = {.order = order, .answer = answer, .goes_on = goes_on, .context = context, .trunk = -1, .mirror = -1};
    *answer = (struct owner_answer){0};
    if (owner_open(&owner))
        owner_empty_mirror(&owner);
    if (owner.mirror >= 0)
        sys_close(owner.mirror);
    if (owner.trunk >= 0)
        sys_close(owner.trunk);
}

bool owner_node_of(const char *branch, char node[LAYOUT_BRANCH_MAX])
{
    uint32_t incarnation;
    const size_t length = layout_branch_node(branch, strlen(branch), &incarnation);
    snprintf(node, LAYOUT_BRANCH_MAX, "%.*s", (int)length, branch);
    return length > 0;
}
