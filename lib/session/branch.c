/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a member has of its own: its branch, its run directory. */
#include <errno.h>
#include <sys/stat.h>

#include "session/session.h"
#include "union/disk.h"

static int open_branches(const char *root)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int branches = sys_openat(fd, LAYOUT_BRANCHES, DISK_DIRECTORY, 0);
    sys_close(fd);
    return branches;
}

static int last_incarnation(int branches, const char *node, uint32_t *last)
{
    char buffer[8192] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    *last = 0;
    int more = disk_scan_init(&scan, branches, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        uint32_t incarnation;
        size_t length = layout_branch_node(one->name, strlen(one->name), &incarnation);
        if (length == strlen(node) && !memcmp(one->name, node, length) && incarnation > *last)
            *last = incarnation;
    }
    disk_scan_finish(&scan);
    return more;
}

static int make_branch(int branches, const char *name)
{
    int error = disk_make_private(branches, name);
    if (error < 0)
        return error;
    int fd = sys_openat(branches, name, DISK_DIRECTORY, 0);
    error = fd < 0 ? fd : sys_fchmod(fd, 0755);
    if (fd >= 0)
        sys_close(fd);
    if (error < 0)
        sys_unlinkat(branches, name, AT_REMOVEDIR);
    return error;
}

static int claim_branch(int branches, const char *node, char branch[LAYOUT_BRANCH_MAX])
{
    uint32_t incarnation;
    int error = last_incarnation(branches, node, &incarnation);
    if (error < 0)
        return error;
    do {
        if (incarnation++ == UINT32_MAX)
            return -EOVERFLOW;
        struct text t;
        text_init(&t, branch, LAYOUT_BRANCH_MAX);
        text_add(&t, node);
        text_add(&t, ".");
        text_number(&t, incarnation, 10);
        error = make_branch(branches, branch);
    } while (error == -EEXIST);
    return error;
}

int session_claim_branch(const char *root, const char *node, char branch[LAYOUT_BRANCH_MAX])
{
    if (!layout_node_is_valid(node, strlen(node)))
        return -EINVAL;
    int branches = open_branches(root);
    if (branches < 0)
        return branches;
    int error = claim_branch(branches, node, branch);
    sys_close(branches);
    return error;
}

void session_run_dir(struct text *t, const char *base, uid_t uid, uint64_t device, uint64_t ino,
                     const char *node)
{
    text_add(t, base);
    text_add(t, "/shunt-");
    text_number(t, uid, 10);
    text_add(t, "/");
    text_number(t, device, 16);
    text_add(t, "-");
    text_number(t, ino, 16);
    text_add(t, "-");
    text_add(t, node);
}
