/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/mirrors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "union/disk.h"

#define MIRRORS_BUFFER 32768
#define MIRRORS_UNFINISHED ".new-"

static int mirrors_compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

int mirror_names_add(struct mirror_names *known, const char *mirror)
{
    if (known->count == known->room) {
        size_t room = known->room ? 2 * known->room : 64;
        void *more = realloc(known->names, room * sizeof *known->names);
        if (!more)
            return -ENOMEM;
        known->names = more;
        known->room = room;
    }
    strcpy(known->names[known->count++], mirror);
    return 0;
}

void mirror_names_finish(struct mirror_names *known)
{
    free(known->names);
    *known = (struct mirror_names){0};
}

void mirror_names_sort(struct mirror_names *known)
{
    if (known->count > 0)
        qsort(known->names, known->count, sizeof *known->names, mirrors_compare_names);
}

bool mirror_names_have(const struct mirror_names *known, const char *name)
{
    return known->count > 0 && bsearch(name, known->names, known->count, sizeof *known->names, mirrors_compare_names);
}

bool mirrors_is_unfinished(const char *leaf)
{
    return !strncmp(leaf, MIRRORS_UNFINISHED, sizeof MIRRORS_UNFINISHED - 1);
}

int mirrors_branch_path(const struct union_root *root, uint16_t branch, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, root->path);
    text_add(&t, "/" LAYOUT_BRANCHES "/");
    text_add(&t, root->branches[branch - 1]);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}

int mirrors_open(const struct union_root *root, const struct mirror_found *mirror)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    layout_mirror(&t, root->path, root->branches[mirror->branch - 1], mirror->name);
    return text_ok(&t) ? sys_openat(AT_FDCWD, path, DISK_DIRECTORY, 0) : -ENAMETOOLONG;
}

static int mirrors_leaf_files(int mirror, const char *leaf, mirrors_each *each, void *argument)
{
    char buffer[MIRRORS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int answer = disk_scan_init(&scan, mirror, leaf, buffer, sizeof buffer);
    while (answer >= 0 && (answer = disk_scan_next(&scan, &one)) > 0) {
        answer = each(scan.fd, one->name, argument);
        if (answer != 0)
            break;
    }
    disk_scan_finish(&scan);
    return answer;
}

int mirrors_files(int mirror, mirrors_each *each, void *argument)
{
    char buffer[MIRRORS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t leaf;
    int answer = disk_scan_init(&scan, mirror, ".", buffer, sizeof buffer);
    while (answer >= 0 && (answer = disk_scan_next(&scan, &one)) > 0) {
        if (!layout_number(one->name, strlen(one->name), &leaf))
            continue;
        answer = mirrors_leaf_files(mirror, one->name, each, argument);
        if (answer != 0)
            break;
    }
    disk_scan_finish(&scan);
    return answer;
}

static int mirrors_count_one(int leaf, const char *name, void *count)
{
    ++*(size_t *)count;
    return 0;
}

/* What is neither a leaf nor going to be one counts as a file: it is in the way of removing the mirror. */
static int mirrors_look_into(int fd, struct mirror_found *found)
{
    char buffer[MIRRORS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t leaf;
    int answer = disk_scan_init(&scan, fd, ".", buffer, sizeof buffer);
    while (answer >= 0 && (answer = disk_scan_next(&scan, &one)) > 0) {
        bool is_leaf = layout_number(one->name, strlen(one->name), &leaf);
        found->unfinished += mirrors_is_unfinished(one->name);
        found->files += !is_leaf && !mirrors_is_unfinished(one->name);
    }
    disk_scan_finish(&scan);
    return answer < 0 ? answer : mirrors_files(fd, mirrors_count_one, &found->files);
}

/* LABEL-ID, with 12 hexadecimal digits. */
static bool mirrors_is_mirror_name(const char *name)
{
    size_t length = strlen(name);
    if (length < 14 || length >= RECORD_MIRROR_MAX || name[length - 13] != '-')
        return false;
    return strspn(name + length - 12, "0123456789abcdef") == 12;
}

/* 1, 0 or -errno. */
static int mirrors_is_stray(int at, const struct disk_name *one, bool is_called_so)
{
    struct statx stat = {.stx_mode = DTTOIF(one->type)};
    const int error = one->type == DT_UNKNOWN ? sys_statx(at, one->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) : 0;
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    return S_ISLNK(stat.stx_mode) || (S_ISDIR(stat.stx_mode) && !is_called_so);
}

/* In a branch, or if that is empty in the directory of all. */
static int mirrors_find_stray_in(const struct union_root *root, const char *branch, char stray[MIRRORS_STRAY_MAX])
{
    char path[PATH_MAX], buffer[MIRRORS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t incarnation;
    struct text t;
    text_init(&t, path, sizeof path);
    layout_branch(&t, root->path, branch);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    int found = 0, more = disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer);
    while (more >= 0 && found == 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        const bool is_branch = layout_branch_node(one->name, strlen(one->name), &incarnation) > 0;
        found = mirrors_is_stray(scan.fd, one, *branch != '\0' ? mirrors_is_mirror_name(one->name) : is_branch);
        if (found > 0)
            snprintf(stray, MIRRORS_STRAY_MAX, "%s%s%s", branch, *branch != '\0' ? "/" : "", one->name);
    }
    disk_scan_finish(&scan);
    return found != 0 || more == -ENOENT || more > 0 ? found : more;
}

int mirrors_find_stray(const struct union_root *root, bool in_branches, char stray[MIRRORS_STRAY_MAX])
{
    int found = mirrors_find_stray_in(root, "", stray);
    for (size_t i = 0; in_branches && found == 0 && i < root->branch_count; i++)
        found = mirrors_find_stray_in(root, root->branches[i], stray);
    return found;
}

const char *mirrors_stray_kind(const char *stray)
{
    return strchr(stray, '/') != NULL ? "mirror" : "branch";
}

static int mirrors_add(struct mirrors *mirrors, const struct union_root *root, const struct mirror_names *known,
                       uint16_t branch, const char *name)
{
    if (mirrors->count == mirrors->room) {
        size_t room = mirrors->room ? 2 * mirrors->room : 64;
        void *more = realloc(mirrors->all, room * sizeof *mirrors->all);
        if (!more)
            return -ENOMEM;
        mirrors->all = more;
        mirrors->room = room;
    }
    struct mirror_found *found = &mirrors->all[mirrors->count];
    *found = (struct mirror_found){.branch = branch, .known = mirror_names_have(known, name)};
    strcpy(found->name, name);
    int fd = mirrors_is_mirror_name(name) ? mirrors_open(root, found) : -ENOTDIR;
    found->foreign = fd == -ENOTDIR || fd == -ELOOP;
    int error = fd >= 0 ? mirrors_look_into(fd, found) : found->foreign ? 0 : fd;
    if (fd >= 0)
        sys_close(fd);
    mirrors->count += error == 0; /* of what cannot be read nobody knows whether it is empty */
    return error;
}

/* The first of what could not be read is what is told. */
static int mirrors_note_unread(struct mirrors *mirrors, const struct union_root *root, uint16_t branch, const char *mirror,
                               int error)
{
    if (error < 0 && mirrors->unread[0] == '\0')
        snprintf(mirrors->unread, sizeof mirrors->unread, "%s%s%s", root->branches[branch - 1], mirror[0] ? "/" : "", mirror);
    return error;
}

static int mirrors_read_branch(struct mirrors *mirrors, const struct union_root *root, const struct mirror_names *known,
                               uint16_t branch)
{
    char path[PATH_MAX], buffer[MIRRORS_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int more = mirrors_branch_path(root, branch, path, sizeof path), first = 0;
    if (more < 0)
        return mirrors_note_unread(mirrors, root, branch, "", more);
    more = disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        if (layout_is_catalogue(one->name))
            continue;
        const int error =
            mirrors_note_unread(mirrors, root, branch, one->name, mirrors_add(mirrors, root, known, branch, one->name));
        first = first == 0 ? error : first;
    }
    disk_scan_finish(&scan);
    return more < 0 && more != -ENOENT ? mirrors_note_unread(mirrors, root, branch, "", more) : first;
}

int mirrors_init(struct mirrors *mirrors, const struct union_root *root, struct mirror_names *known)
{
    *mirrors = (struct mirrors){0};
    mirror_names_sort(known);
    int first = 0;
    for (size_t i = 1; i <= root->branch_count; i++) {
        int error = mirrors_read_branch(mirrors, root, known, (uint16_t)i);
        if (first == 0)
            first = error;
    }
    return first;
}

void mirrors_finish(struct mirrors *mirrors)
{
    free(mirrors->all);
    *mirrors = (struct mirrors){0};
}
