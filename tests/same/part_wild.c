/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Paths at addresses that cannot be read, and paths without an end. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static struct stat buffer;
static const char *other; /* a path that can be read */

static long open_it(const char *path)
{
    return open(path, O_RDONLY);
}

static long create_it(const char *path)
{
    return open(path, O_WRONLY | O_CREAT, 0644);
}

static long stat_it(const char *path)
{
    return stat(path, &buffer);
}

static long access_it(const char *path)
{
    return access(path, F_OK);
}

static long rename_from(const char *path)
{
    return rename(path, other);
}

static long rename_to(const char *path)
{
    return rename(other, path);
}

static long link_from(const char *path)
{
    return link(path, "new");
}

static long link_to(const char *path)
{
    return link(other, path);
}

static long symlink_text(const char *path)
{
    return symlink(path, "new");
}

static long symlink_to(const char *path)
{
    return symlink("text", path);
}

static long mkdir_it(const char *path)
{
    return mkdir(path, 0755);
}

static long mknod_it(const char *path)
{
    return mknod(path, S_IFIFO | 0644, 0);
}

static long chmod_it(const char *path)
{
    return chmod(path, 0600);
}

static long chown_it(const char *path)
{
    return chown(path, (uid_t)-1, (gid_t)-1);
}

static long truncate_it(const char *path)
{
    return truncate(path, 0);
}

static long times_of(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0);
}

static long times_from(const char *path)
{
    return utimensat(AT_FDCWD, other, (const struct timespec *)path, 0);
}

static long xattr_of(const char *path)
{
    char value[8];
    return getxattr(path, "user.name", value, sizeof value);
}

static long readlink_it(const char *path)
{
    char text[8];
    return readlink(path, text, sizeof text);
}

static long exec_it(const char *path)
{
    char *const none[] = {NULL};
    return execve(path, none, none);
}

static long bind_it(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    long result = bind(fd, (const struct sockaddr *)path, 20);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static long watch_it(const char *path)
{
    int fd = inotify_init();
    long result = inotify_add_watch(fd, path, IN_CREATE);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static long unlink_it(const char *path)
{
    return unlink(path);
}

static long rmdir_it(const char *path)
{
    return rmdir(path);
}

static long chdir_it(const char *path)
{
    return chdir(path);
}

static const struct {
    const char *name;
    long (*run)(const char *path);
} calls[] = {{"open", open_it},
             {"open(O_CREAT)", create_it},
             {"stat", stat_it},
             {"access", access_it},
             {"rename from", rename_from},
             {"rename to", rename_to},
             {"link from", link_from},
             {"link to", link_to},
             {"symlink text", symlink_text},
             {"symlink to", symlink_to},
             {"mkdir", mkdir_it},
             {"mknod", mknod_it},
             {"chmod", chmod_it},
             {"chown", chown_it},
             {"truncate", truncate_it},
             {"utimensat", times_of},
             {"utimensat from", times_from},
             {"getxattr", xattr_of},
             {"readlink", readlink_it},
             {"execve", exec_it},
             {"bind", bind_it},
             {"inotify_add_watch", watch_it},
             {"unlink", unlink_it},
             {"rmdir", rmdir_it},
             {"chdir", chdir_it}};

static void wild_all(const char *where, const char *path)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        errno = 0;
        long result = calls[i].run(path);
        case_told(calls[i].name, where, result, errno, false);
    }
}

void part_wild(void)
{
    const size_t page = 4096;
    char *pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chdir(fixture.work) < 0 || pages == MAP_FAILED)
        give_up("cannot enter", fixture.work);
    other = joined(fixture.work, "file");
    memset(pages, 'a', 4 * page);
    mprotect(pages + 2 * page, 2 * page, PROT_NONE);
    wild_all("at a page that cannot be read", pages + 3 * page);
    wild_all("at an address that is none", (const char *)8);
    wild_all("in the first word of memory", (const char *)1);
    wild_all("without an end", pages + 2 * page - PATH_MAX - 2);
    errno = 0;
    long half = times_from(pages + 2 * page - sizeof(struct timespec));
    case_told("utimensat from", "half of which cannot be read", half, errno, false);
    munmap(pages, 4 * page);
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    case_told("wild", "is over", 0, 0, true);
}
