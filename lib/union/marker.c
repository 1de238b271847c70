/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/marker.h"

#include <errno.h>
#include <stdbool.h>

#include "base/sys.h"
#include "union/disk.h"
#include "union/layout.h"
#include "union/lines.h"

#define MARKER_HEAD "shunt-dir 1"
#define MARKER_ID_DIGITS 12
#define MARKER_LABEL_MAX 64

static const char marker_words[] =
    "\n"
    "This directory is managed by shunt. More of its files live in .shunt/b/*/ under the mirror's name, in "
    "the\n"
    "directory above that holds .shunt. `shunt ls` lists all of them, `shunt export` makes this a plain "
    "directory\n"
    "again. Without this file they are not shown here; `shunt fsck --restore` brings them back.\n";

static bool marker_label_may_hold(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* LABEL-ID, in exactly the form that marker_name gives it: it becomes a component of paths. */
static bool marker_parse_mirror(struct marker *marker, struct lines_value value)
{
    if (value.length < MARKER_ID_DIGITS + 2 || value.length >= RECORD_MIRROR_MAX)
        return false;
    size_t label = value.length - MARKER_ID_DIGITS - 1;
    struct lines_value id = {value.at + label + 1, MARKER_ID_DIGITS};
    if (label > MARKER_LABEL_MAX || value.at[label] != '-' || !lines_number(id, 16, &marker->id) || !marker->id)
        return false;
    for (size_t i = 0; i < label; i++)
        if (!marker_label_may_hold(value.at[i]))
            return false;
    return lines_word(value, marker->mirror, sizeof marker->mirror);
}

/* It will be opened relative to the root: no empty component, no `.`, no `..`. */
static bool marker_path_stays_below(const char *path)
{
    if (!strcmp(path, "."))
        return true;
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}

int marker_parse(struct marker *marker, const char *text, size_t length)
{
    struct lines lines = {text, length};
    struct lines_value mirror, directory, path, root;
    if (!lines_expect(&lines, MARKER_HEAD) || !lines_take(&lines, "mirror", &mirror) ||
        !lines_take(&lines, "directory", &directory) || !lines_take(&lines, "path", &path))
        return -EBADMSG;
    if (!marker_parse_mirror(marker, mirror) || !lines_dirid(directory, &marker->directory) ||
        !lines_path(path, marker->path, sizeof marker->path) || !marker_path_stays_below(marker->path))
        return -EBADMSG;
    if (!lines_take(&lines, "root", &root) || !lines_dirid(root, &marker->root))
        marker->root = (struct dirid){0};
    return 0;
}

int marker_format(const struct marker *marker, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, MARKER_HEAD "\n");
    lines_add(&t, "mirror", marker->mirror);
    lines_add_dirid(&t, "directory", marker->directory);
    lines_add_path(&t, "path", marker->path);
    if (marker->root.ino != 0)
        lines_add_dirid(&t, "root", marker->root);
    text_add(&t, marker_words);
    return text_ok(&t) ? (int)t.length : -ENAMETOOLONG;
}

void marker_name(struct marker *marker)
{
    const char *slash = strrchr(marker->path, '/');
    const char *last = slash ? slash + 1 : marker->path;
    if (!strcmp(last, ".") || *last == '\0')
        last = "root";
    struct text t;
    text_init(&t, marker->mirror, sizeof marker->mirror);
    for (size_t i = 0; i < MARKER_LABEL_MAX && last[i]; i++)
        text_bytes(&t, marker_label_may_hold(last[i]) ? last + i : "_", 1);
    text_add(&t, "-");
    for (int shift = 4 * (MARKER_ID_DIGITS - 1); shift >= 0; shift -= 4)
        text_number(&t, marker->id >> shift & 15, 16);
}

int marker_read(int directory, struct marker *marker)
{
    char text[MARKER_SIZE_MAX];
    ssize_t length = disk_read(directory, LAYOUT_MARKER, text, sizeof text);
    return length < 0 ? (int)length : marker_parse(marker, text, (size_t)length);
}

/* The marker under a name of its own, to be given the real one, or to be removed: neither is for an append-only directory. */
static int marker_write_temporary(int directory, const struct marker *marker, char *name, size_t size)
{
    char text[MARKER_SIZE_MAX];
    int length = marker_format(marker, text, sizeof text);
    if (length < 0)
        return length;
    if (disk_is_fixed(directory, ""))
        return -EPERM;
    struct text t;
    text_init(&t, name, size);
    disk_temporary(&t, LAYOUT_MARKER ".");
    return disk_write_new(directory, name, text, (size_t)length, 0644);
}

int marker_write(int directory, const struct marker *marker)
{
    char name[LAYOUT_UNFINISHED + 1];
    int error = marker_write_temporary(directory, marker, name, sizeof name);
    if (error < 0)
        return error;
    error = disk_rename_new(directory, name, directory, LAYOUT_MARKER);
    if (error < 0)
        sys_unlinkat(directory, name, 0);
    return error;
}

static int marker_replace_anyhow(int directory, const struct marker *marker)
{
    char name[LAYOUT_UNFINISHED + 1];
    int error = marker_write_temporary(directory, marker, name, sizeof name);
    if (error < 0)
        return error;
    error = sys_renameat2(directory, name, directory, LAYOUT_MARKER, 0);
    if (error < 0)
        sys_unlinkat(directory, name, 0);
    return error;
}

/* A user who may not set it has changed a directory of another user, whose time it is then. */
static void marker_put_back_time(int directory, const struct statx *before)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {before->stx_mtime.tv_sec, before->stx_mtime.tv_nsec}};
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, directory);
    sys_utimensat(AT_FDCWD, proc, times, 0);
}

/* Another node may have changed it just now. */
static int marker_look_at(int directory, struct statx *stat)
{
    return sys_statx(directory, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_MODE, stat);
}

int marker_replace(int directory, const struct marker *marker)
{
    struct statx before;
    int error = marker_look_at(directory, &before);
    if (error < 0)
        return error;
    error = marker_replace_anyhow(directory, marker);
    marker_put_back_time(directory, &before);
    return error;
}

/* Of a directory that is closed to its owner, as rmdir does not mind. It has that mode again at once. */
static int marker_remove_from_closed(int directory, mode_t mode)
{
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, directory);
    if (SYS3(SYS_fchmodat, AT_FDCWD, proc, mode | 0300) != 0)
        return -EACCES;
    int error = sys_unlinkat(directory, LAYOUT_MARKER, 0);
    SYS3(SYS_fchmodat, AT_FDCWD, proc, mode);
    return error;
}

int marker_remove(int directory)
{
    struct statx before;
    int error = marker_look_at(directory, &before);
    if (error < 0)
        return error;
    error = sys_unlinkat(directory, LAYOUT_MARKER, 0);
    if (error == -EACCES)
        error = marker_remove_from_closed(directory, before.stx_mode & 07777);
    if (error == 0)
        marker_put_back_time(directory, &before);
    return error;
}
