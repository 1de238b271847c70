/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* bench_worker DIRECTORY PROCESSES: agents (workers.h) that make calls on files. Knows nothing of shunt. */

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workers.h"

static int open_and_close(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    return fd >= 0 ? close(fd) : -1;
}

static int make_create(const char *directory, const char *path)
{
    return open_and_close(path, O_WRONLY | O_CREAT | O_EXCL);
}

static int make_open(const char *directory, const char *path)
{
    return open_and_close(path, O_RDONLY);
}

static int make_stat(const char *directory, const char *path)
{
    struct stat stat_of;
    return stat(path, &stat_of);
}

static int make_utime(const char *directory, const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0);
}

static const char *with_suffix(const char *path, const char *suffix)
{
    static char other[PATH_MAX];
    if (snprintf(other, sizeof other, "%s%s", path, suffix) >= (int)sizeof other)
        errx(2, "%s: a path that is too long", path);
    return other;
}

static int make_rename(const char *directory, const char *path)
{
    return rename(path, with_suffix(path, ".renamed"));
}

/* There and back: the next call finds the file under its name. */
static int make_renames(const char *directory, const char *path)
{
    return make_rename(directory, path) == 0 ? rename(with_suffix(path, ".renamed"), path) : -1;
}

static int make_checkpoint(const char *directory, const char *path)
{
    const char *temporary = with_suffix(path, ".tmp");
    return make_create(directory, temporary) == 0 ? rename(temporary, path) : -1;
}

static int make_unlink(const char *directory, const char *path)
{
    return unlink(path);
}

static int make_unlink_renamed(const char *directory, const char *path)
{
    return unlink(with_suffix(path, ".renamed"));
}

static int make_list(const char *directory, const char *path)
{
    DIR *stream = opendir(directory);
    if (stream == NULL)
        return -1;
    errno = 0;
    while (readdir(stream) != NULL)
        continue;
    return errno == 0 ? closedir(stream) : -1;
}

int main(int argc, char *argv[])
{
    static const struct agents_call calls[] = {{"create", make_create},
                                               {"open", make_open},
                                               {"stat", make_stat},
                                               {"utime", make_utime},
                                               {"rename", make_rename},
                                               {"renames", make_renames},
                                               {"checkpoint", make_checkpoint},
                                               {"unlink", make_unlink},
                                               {"unlink-renamed", make_unlink_renamed},
                                               {"list", make_list},
                                               {0}};
    return agents_main(argc, argv, calls, NULL);
}
