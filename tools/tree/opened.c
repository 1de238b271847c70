/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/opened.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "union/disk.h"
#include "union/layout.h"

#define OPENED_PREFIX "opened-"
#define OPENED_NAME_MAX (sizeof OPENED_PREFIX + 42)

struct opened_directory {
    struct dirid id;
    mode_t mode;
};

static void opened_name(char to[OPENED_NAME_MAX], struct dirid id)
{
    snprintf(to, OPENED_NAME_MAX, OPENED_PREFIX "%" PRIu64 "-%" PRIu64, id.ino, id.birth);
}

bool opened_is_one(const char *name)
{
    return strncmp(name, OPENED_PREFIX, sizeof OPENED_PREFIX - 1) == 0;
}

mode_t opened_mode(mode_t mode)
{
    return (mode & 07777) | 0700;
}

static int opened_open_own(const char *root)
{
    return disk_open_below(root, LAYOUT_OWN);
}

static bool opened_says(int own, const char *name, const char *digits)
{
    char now[8];
    const ssize_t length = sys_readlinkat(own, name, now, sizeof now);
    return length == (ssize_t)strlen(digits) && memcmp(now, digits, (size_t)length) == 0;
}

int opened_write(const char *root, struct dirid id, mode_t mode)
{
    char name[OPENED_NAME_MAX], digits[8];
    const int own = opened_open_own(root);
    if (own < 0)
        return own;
    opened_name(name, id);
    snprintf(digits, sizeof digits, "%o", (unsigned)(mode & 07777));
    int error = sys_symlinkat(digits, own, name);
    if (error == -EEXIST && !opened_says(own, name, digits)) /* it has been closed since */
        error = sys_unlinkat(own, name, 0) == 0 ? sys_symlinkat(digits, own, name) : error;
    sys_close(own);
    return error == -EEXIST ? 0 : error;
}

int opened_give_mode(int directory, mode_t mode)
{
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, directory);
    return (int)SYS3(SYS_fchmodat, AT_FDCWD, proc, mode & 07777);
}

void opened_remove(const char *root, struct dirid id)
{
    char name[OPENED_NAME_MAX];
    const int own = opened_open_own(root);
    if (own < 0)
        return;
    opened_name(name, id);
    sys_unlinkat(own, name, 0);
    sys_close(own);
}

/* Pure. False: shunt did not write it. */
static bool opened_parse(struct opened_directory *one, const char *name, const char *digits)
{
    char again[OPENED_NAME_MAX];
    unsigned mode;
    int end = 0;
    if (sscanf(name, OPENED_PREFIX "%" SCNu64 "-%" SCNu64, &one->id.ino, &one->id.birth) != 2 ||
        sscanf(digits, "%o%n", &mode, &end) != 1 || digits[end] != '\0' || mode > 07777)
        return false;
    one->mode = (mode_t)mode;
    opened_name(again, one->id);
    return strcmp(again, name) == 0;
}

static int opened_add(struct opened *opened, const struct opened_directory *one)
{
    struct opened_directory *more = realloc(opened->all, (opened->count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    opened->all = more;
    opened->all[opened->count++] = *one;
    return 0;
}

/* What is no link shunt did not write. */
static int opened_read(struct opened *opened, int own, const char *name)
{
    struct opened_directory one;
    char digits[8];
    if (!opened_is_one(name))
        return 0;
    const ssize_t length = sys_readlinkat(own, name, digits, sizeof digits - 1);
    if (length < 0)
        return length == -EINVAL || length == -ENOENT ? 0 : (int)length;
    digits[length] = '\0';
    return opened_parse(&one, name, digits) ? opened_add(opened, &one) : 0;
}

static int opened_read_all(struct opened *opened, int own)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int more = disk_scan_init(&scan, own, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0)
        more = opened_read(opened, own, one->name);
    disk_scan_finish(&scan);
    return more;
}

/* There is one for each export that was killed, or none. */
int opened_init(struct opened *opened, const char *root)
{
    *opened = (struct opened){0};
    const int own = opened_open_own(root);
    const int error = own < 0 ? own : opened_read_all(opened, own);
    if (own >= 0)
        sys_close(own);
    return error;
}

void opened_finish(struct opened *opened)
{
    free(opened->all);
    *opened = (struct opened){0};
}

bool opened_find(const struct opened *opened, struct dirid id, mode_t now, mode_t *before)
{
    for (size_t i = 0; i < opened->count; i++)
        if (dirid_equal(opened->all[i].id, id) && (now & 07777) == opened_mode(opened->all[i].mode)) {
            *before = opened->all[i].mode;
            return true;
        }
    return false;
}

bool opened_has_to(const struct statx *stat)
{
    return (stat->stx_mode & 0700) != 0700 && stat->stx_uid == geteuid() && geteuid() != 0;
}

static void opened_open_directory(int at, const char *name)
{
    struct statx stat;
    if (sys_statx(at, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stat) != 0 || !opened_has_to(&stat))
        return;
    const int fd = sys_openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    opened_give_mode(fd, opened_mode(stat.stx_mode));
    sys_close(fd);
}

void opened_open_mirror(int branch, const char *mirror)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    opened_open_directory(branch, mirror);
    if (disk_scan_init(&scan, branch, mirror, buffer, sizeof buffer) < 0)
        return;
    while (disk_scan_next(&scan, &one) > 0)
        opened_open_directory(scan.fd, one->name);
    disk_scan_finish(&scan);
}
