/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a member has of its own: its branch, its run directory. */
#include <errno.h>
#include <sys/stat.h>

#include "session/session.h"
#include "union/disk.h"

static int branch_open_branches(const char *root)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int branches = sys_openat(fd, LAYOUT_BRANCHES, DISK_DIRECTORY, 0);
    sys_close(fd);
    return branches;
}

static int branch_last_incarnation(int branches, const char *node, uint32_t *last)
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

/* The branch of a member may be gone, since it was empty; it is the member's still, until it is fenced. */
static void branch_last_member(const char *root, const char *node, uint32_t *last)
{
    struct session session;
    uint32_t incarnation;
    if (session_read(root, &session) == 0)
        for (size_t i = 0; i < session.count; i++) {
            const char *branch = session.members[i].branch;
            size_t length = layout_branch_node(branch, strlen(branch), &incarnation);
            if (length == strlen(node) && !memcmp(branch, node, length) && incarnation > *last)
                *last = incarnation;
        }
    session_finish(&session);
}

static int branch_make_branch(int branches, const char *name)
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

static void branch_add_name(struct text *t, const char *node, size_t length, uint32_t incarnation)
{
    text_bytes(t, node, length);
    text_add(t, ".");
    text_number(t, incarnation, 10);
}

/* Even incarnations are branches that were fenced. */
static int branch_claim_branch(const char *root, int branches, const char *node, char branch[LAYOUT_BRANCH_MAX])
{
    uint32_t last;
    int error = branch_last_incarnation(branches, node, &last);
    if (error < 0)
        return error;
    branch_last_member(root, node, &last);
    uint64_t incarnation = (last + 1ull) | 1;
    do {
        if (incarnation >= UINT32_MAX)
            return -EOVERFLOW;
        struct text t;
        text_init(&t, branch, LAYOUT_BRANCH_MAX);
        branch_add_name(&t, node, strlen(node), (uint32_t)incarnation);
        error = branch_make_branch(branches, branch);
        incarnation += 2;
    } while (error == -EEXIST);
    return error;
}

int session_claim_branch(const char *root, const char *node, char branch[LAYOUT_BRANCH_MAX])
{
    if (!layout_node_is_valid(node, strlen(node)))
        return -EINVAL;
    int branches = branch_open_branches(root);
    if (branches < 0)
        return branches;
    int error = branch_claim_branch(root, branches, node, branch);
    sys_close(branches);
    return error;
}

bool session_fenced_name(const char *branch, char fenced[LAYOUT_BRANCH_MAX])
{
    uint32_t incarnation;
    struct text t;
    size_t node = layout_branch_node(branch, strlen(branch), &incarnation);
    if (node == 0 || incarnation % 2 == 0 || incarnation == UINT32_MAX)
        return false;
    text_init(&t, fenced, LAYOUT_BRANCH_MAX);
    branch_add_name(&t, branch, node, incarnation + 1);
    return text_ok(&t);
}

int session_fence(const char *root, const char *branch)
{
    char fenced[LAYOUT_BRANCH_MAX];
    if (!session_fenced_name(branch, fenced))
        return -EINVAL;
    int branches = branch_open_branches(root);
    if (branches < 0)
        return branches;
    int error = sys_renameat2(branches, branch, branches, fenced, 0);
    sys_close(branches);
    return error == -ENOENT ? 0 : error;
}

bool session_is_fenced(const char *root, const char *branch)
{
    char fenced[LAYOUT_BRANCH_MAX];
    struct statx stat;
    int branches = session_fenced_name(branch, fenced) ? branch_open_branches(root) : -EINVAL;
    if (branches < 0)
        return false;
    int error = sys_statx(branches, fenced, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_TYPE, &stat);
    sys_close(branches);
    return error == 0;
}

void session_run_dirs(struct text *t, const char *base, uid_t uid)
{
    text_add(t, base);
    text_add(t, "/shunt-");
    text_number(t, uid, 10);
    text_add(t, "/");
}

void session_run_dir(struct text *t, const char *base, uid_t uid, uint64_t device, uint64_t ino, const char *node)
{
    session_run_dirs(t, base, uid);
    text_number(t, device, 16);
    text_add(t, "-");
    text_number(t, ino, 16);
    text_add(t, "-");
    text_add(t, node);
}
