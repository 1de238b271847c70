/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Which calls change the times of a directory and of a file. Each time is set to long ago before the call;
 * afterwards it is that, or new. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static const char *const watched[] = {".", "dir", "bare", "file", "dir/inner"};
#define WATCHED (sizeof watched / sizeof *watched)

static struct timespec changed_before[WATCHED];

/* The clock of a file system ticks in milliseconds. */
static void wait_a_tick(void)
{
    const struct timespec tick = {.tv_nsec = 12 * 1000 * 1000};
    nanosleep(&tick, NULL);
}

static void set_long_ago(void)
{
    const struct timespec long_ago[2] = {{1000, 1}, {2000, 2}};
    struct stat st;
    for (size_t i = 0; i < WATCHED; i++) {
        const char *path = joined(fixture.work, watched[i]);
        if (i == WATCHED - 1) /* what changes places with another differs from it: XFS lets an exchange pass unmarked */
            wait_a_tick();
        if (utimensat(AT_FDCWD, path, long_ago, 0) < 0 || stat(path, &st) < 0)
            give_up("cannot set the times of", path);
        changed_before[i] = st.st_ctim;
    }
    wait_a_tick();
}

static void detail_watched(void)
{
    struct stat st;
    for (size_t i = 0; i < WATCHED; i++) {
        if (stat(joined(fixture.work, watched[i]), &st) < 0) {
            detail(" [%s gone]", watched[i]);
            continue;
        }
        bool is_changed = st.st_ctim.tv_sec != changed_before[i].tv_sec || st.st_ctim.tv_nsec != changed_before[i].tv_nsec;
        bool is_modified = st.st_mtim.tv_sec != 2000 || st.st_mtim.tv_nsec != 2;
        if (is_changed || is_modified)
            detail(" [%s%s%s]", watched[i], is_modified ? " modified" : "", is_changed ? " changed" : "");
    }
}

static long do_create(const char *a, const char *b)
{
    int fd = open(a, O_WRONLY | O_CREAT, 0644);
    return fd < 0 ? -1 : close(fd);
}

static long do_truncate(const char *a, const char *b)
{
    int fd = open(a, O_WRONLY | O_TRUNC, 0644);
    return fd < 0 ? -1 : close(fd);
}

static long do_append(const char *a, const char *b)
{
    int fd = open(a, O_WRONLY | O_APPEND);
    if (fd < 0)
        return -1;
    long result = write(fd, "+", 1);
    return close(fd) < 0 ? -1 : result;
}

static long do_list(const char *a, const char *b)
{
    DIR *stream = opendir(a);
    while (stream && readdir(stream))
        ;
    return stream ? closedir(stream) : -1;
}

static long do_unlink(const char *a, const char *b)
{
    return unlink(a);
}

static long do_rename(const char *a, const char *b)
{
    return rename(a, b);
}

static long do_exchange(const char *a, const char *b)
{
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static long do_link(const char *a, const char *b)
{
    return link(a, b);
}

static long do_symlink(const char *a, const char *b)
{
    return symlink(a, b);
}

static long do_mkdir(const char *a, const char *b)
{
    return mkdir(a, 0755);
}

static long do_rmdir(const char *a, const char *b)
{
    return rmdir(a);
}

static long do_chmod(const char *a, const char *b)
{
    return chmod(a, 0700);
}

static const struct {
    const char *name;
    long (*run)(const char *, const char *);
    const char *a, *b;
} changes[] = {
    {"create absent", do_create, "dir/absent", NULL},
    {"create present", do_create, "dir/inner", NULL},
    {"create in the top", do_create, "absent", NULL},
    {"create beneath a file", do_create, "file/x", NULL},
    {"truncate", do_truncate, "dir/inner", NULL},
    {"append", do_append, "dir/inner", NULL},
    {"list", do_list, "dir", NULL},
    {"unlink", do_unlink, "dir/inner", NULL},
    {"unlink one of two", do_unlink, "hard", NULL},
    {"unlink absent", do_unlink, "dir/absent", NULL},
    {"rename inside", do_rename, "dir/inner", "dir/other"},
    {"rename across", do_rename, "dir/inner", "bare/inner"},
    {"rename onto", do_rename, "dir/inner", "file"},
    {"rename onto itself", do_rename, "file", "file"},
    {"rename of links to one file", do_rename, "file", "hard"},
    {"rename a directory", do_rename, "bare", "dir/bare"},
    {"rename absent", do_rename, "dir/absent", "bare/x"},
    {"exchange", do_exchange, "dir/inner", "file"},
    {"exchange with a directory", do_exchange, "dir/inner", "bare"},
    {"link", do_link, "file", "dir/linked"},
    {"link onto", do_link, "file", "dir/inner"},
    {"symlink", do_symlink, "file", "dir/linked"},
    {"mkdir", do_mkdir, "dir/made", NULL},
    {"mkdir present", do_mkdir, "dir/sub", NULL},
    {"rmdir", do_rmdir, "dir/sub", NULL},
    {"rmdir occupied", do_rmdir, "dir", NULL},
    {"chmod of a directory", do_chmod, "dir", NULL},
    {"chmod of a file", do_chmod, "dir/inner", NULL},
};

void part_times(void)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        set_long_ago();
        if (chdir(fixture.work) < 0)
            give_up("cannot enter", fixture.work);
        errno = 0;
        long result = changes[i].run(changes[i].a, changes[i].b);
        int error = errno;
        detail_watched();
        if (chdir("/") < 0)
            give_up("cannot enter", "/");
        case_told("times after", changes[i].name, result, error, true);
        fixture_rebuild();
    }
}
