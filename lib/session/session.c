/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/session.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "session/stamp.h"
#include "union/disk.h"
#include "union/lines.h"

#define HOLDER_NAME "holder"
#define HOLDER_SIZE_MAX (2 * PATH_MAX + 1024)
#define SESSION_DIRECTORY LAYOUT_OWN "/session"

static int open_in_root(const char *root, const char *name)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int directory = sys_openat(fd, name, DISK_DIRECTORY, 0);
    sys_close(fd);
    return directory;
}

static int read_holder(int directory, struct session *session)
{
    char text[HOLDER_SIZE_MAX];
    ssize_t length = disk_read(directory, HOLDER_NAME, text, sizeof text);
    return length < 0 ? (int)length : session_parse(session, text, (size_t)length);
}

/* The session that a copied root brought along is of the root that it was copied from. */
static bool is_copied(int directory)
{
    int own = sys_openat(directory, "..", DISK_DIRECTORY, 0);
    bool copied = own >= 0 && stamp_is_copied(own) == 1;
    if (own >= 0)
        sys_close(own);
    return copied;
}

int session_read(const char *root, struct session *session)
{
    int directory = open_in_root(root, SESSION_DIRECTORY);
    if (directory < 0)
        return directory;
    int error = is_copied(directory) ? -ENOENT : read_holder(directory, session);
    sys_close(directory);
    return error;
}

/* A small file of /proc, without the newline at its end; empty if it cannot be read. */
static size_t read_proc(const char *path, char *to, size_t size)
{
    int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t length = fd < 0 ? 0 : sys_read(fd, to, size - 1);
    if (fd >= 0)
        sys_close(fd);
    if (length < 0)
        length = 0;
    if (length > 0 && to[length - 1] == '\n')
        length--;
    to[length] = '\0';
    return (size_t)length;
}

/* State and start time of a process: fields 3 and 22, counted from the last parenthesis, since the name in
 * field 2 may hold anything. False: there is none, or it is not shown to us. */
static bool read_process(pid_t pid, char *state, uint64_t *started)
{
    char path[32], stat[1024];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, "/stat");
    size_t length = read_proc(path, stat, sizeof stat);
    const char *at = memrchr(stat, ')', length);
    if (!at || at[1] != ' ')
        return false;
    *state = at[2];
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (!at)
            return false;
    }
    struct lines_value value = {at + 1, strcspn(at + 1, " ")};
    return lines_number(value, 10, started);
}

uint64_t session_process_started(pid_t pid)
{
    char state;
    uint64_t started;
    return pid > 0 && read_process(pid, &state, &started) ? started : 0;
}

/* -ESRCH from kill(2) is certain; a process hidden by the mount options of /proc is taken for alive. */
static bool process_lives(pid_t pid, uint64_t expected)
{
    char state;
    uint64_t started;
    if (pid <= 0)
        return false;
    if (!read_process(pid, &state, &started))
        return SYS2(SYS_kill, pid, 0) != -ESRCH;
    return state != 'Z' && state != 'X' && (expected == 0 || started == expected);
}

/* One boot is one machine, whatever it calls itself in its containers; in another of those the process may
 * have another number, so that only a match says something there. */
int session_lives(const struct session *session)
{
    char boot[64];
    struct utsname host = {0};
    read_proc("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    SYS1(SYS_uname, &host);
    bool same_boot = boot[0] && !strcmp(boot, session->boot);
    bool same_host = !strncmp(host.nodename, session->host, SESSION_HOST_MAX - 1);
    if (same_boot && process_lives(session->pid, session->started))
        return 1;
    if (!same_host)
        return -EREMOTE;
    /* Without a boot id on either side, the start time has to do. */
    if (boot[0] && session->boot[0])
        return 0;
    return process_lives(session->pid, session->started);
}

/* link(2) lets one of all hosts in. Only this host can tell that a session of this host is dead, so its own
 * processes are all that must agree on who replaces it. */
static int publish(int directory, const char *temporary, struct session *holder)
{
    int error = sys_linkat(directory, temporary, directory, HOLDER_NAME, 0);
    if (error != -EEXIST)
        return error;
    error = read_holder(directory, holder);
    if (error < 0)
        return error == -ENOENT ? -EAGAIN : error;
    if (session_lives(holder) != 0)
        return -EBUSY;
    return sys_renameat2(directory, temporary, directory, HOLDER_NAME, 0);
}

/* Where flock(2) is not supported, two that replace one dead session at the same time find out here. */
static int confirm(int directory, const struct session *mine, struct session *holder)
{
    int error = read_holder(directory, holder);
    if (error < 0)
        return error;
    return holder->id == mine->id ? 0 : -EBUSY;
}

static int claim(int directory, const char *text, size_t length, const struct session *mine,
                 struct session *holder)
{
    char temporary[40];
    struct text t;
    text_init(&t, temporary, sizeof temporary);
    disk_temporary(&t, ".holder-");
    int error = disk_write_new(directory, temporary, text, length, 0644);
    if (error < 0)
        return error;
    do
        error = publish(directory, temporary, holder);
    while (error == -EAGAIN);
    sys_unlinkat(directory, temporary, 0);
    return error < 0 ? error : confirm(directory, mine, holder);
}

/* Who claims a copy parts it from the root that it was copied from. */
static int part(int directory)
{
    struct statx stat;
    int own = sys_openat(directory, "..", DISK_DIRECTORY, 0);
    if (own < 0)
        return own;
    int error = sys_statx(own, "..", 0, STATX_INO | STATX_BTIME, &stat);
    if (error == 0)
        error = sys_unlinkat(directory, HOLDER_NAME, 0);
    if (error == 0 || error == -ENOENT)
        error = stamp_renew(own, dirid_of(&stat));
    sys_close(own);
    return error;
}

int session_claim(const char *root, const struct session *mine, struct session *holder)
{
    char text[HOLDER_SIZE_MAX];
    struct session same;
    int length = session_format(mine, text, sizeof text);
    if (length < 0)
        return length;
    if (session_parse(&same, text, (size_t)length) < 0)
        return -EINVAL;
    int directory = open_in_root(root, SESSION_DIRECTORY);
    if (directory < 0)
        return directory;
    SYS2(SYS_flock, directory, LOCK_EX);
    int error = is_copied(directory) ? part(directory) : 0;
    if (error == 0)
        error = claim(directory, text, (size_t)length, mine, holder);
    sys_close(directory);
    return error;
}

void session_release(const char *root, const struct session *mine)
{
    struct session holder;
    int directory = open_in_root(root, SESSION_DIRECTORY);
    if (directory < 0)
        return;
    SYS2(SYS_flock, directory, LOCK_EX);
    if (read_holder(directory, &holder) == 0 && holder.id == mine->id)
        sys_unlinkat(directory, HOLDER_NAME, 0);
    sys_close(directory);
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
    int branches = open_in_root(root, LAYOUT_BRANCHES);
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
