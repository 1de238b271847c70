/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A directory is changed after files were born in it, by all the ways there are; what is born then is what
 * the directory makes of it now. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "acl.h"
#include "fixture.h"
#include "../old_libc.h"

static const char acl_name[] = "system.posix_acl_default";

/* Each way is given the directory's path and a descriptor of it. */
static long mode_by_path(const char *path, int fd, long mode)
{
    return chmod(path, (mode_t)mode);
}

static long mode_by_descriptor(const char *path, int fd, long mode)
{
    return fchmod(fd, (mode_t)mode);
}

static long mode_from_within(const char *path, int fd, long mode)
{
    return fchmodat(fd, ".", (mode_t)mode, 0);
}

static long mode_by_number(const char *path, int fd, long mode)
{
    return syscall(SYS_fchmod, fd, mode);
}

static long mode_through_proc(const char *path, int fd, long mode)
{
    char text[64];
    snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
    return chmod(text, (mode_t)mode);
}

static long group_by_path(const char *path, int fd, long group)
{
    return chown(path, (uid_t)-1, (gid_t)group);
}

static long group_by_descriptor(const char *path, int fd, long group)
{
    return fchown(fd, (uid_t)-1, (gid_t)group);
}

static long group_by_empty_path(const char *path, int fd, long group)
{
    return fchownat(fd, "", (uid_t)-1, (gid_t)group, AT_EMPTY_PATH);
}

static long owner_by_descriptor(const char *path, int fd, long owner)
{
    return fchown(fd, (uid_t)owner, (gid_t)owner);
}

static long acl_by_path(const char *path, int fd, long unused)
{
    return setxattr(path, acl_name, &default_acl, sizeof default_acl, 0);
}

static long acl_by_descriptor(const char *path, int fd, long unused)
{
    return fsetxattr(fd, acl_name, &default_acl, sizeof default_acl, 0);
}

static long acl_taken_by_path(const char *path, int fd, long unused)
{
    return acl_by_path(path, fd, 0) < 0 ? -1 : removexattr(path, acl_name);
}

static long acl_taken_by_descriptor(const char *path, int fd, long unused)
{
    return acl_by_path(path, fd, 0) < 0 ? -1 : fremovexattr(fd, acl_name);
}

static const struct way {
    const char *name;
    long (*run)(const char *path, int fd, long argument);
    long argument;
} ways[] = {
    {"chmod(02775)", mode_by_path, 02775},
    {"chmod(0700)", mode_by_path, 0700},
    {"fchmod(02771)", mode_by_descriptor, 02771},
    {"fchmod(01777)", mode_by_descriptor, 01777},
    {"fchmod(0555)", mode_by_descriptor, 0555},
    {"fchmod(0)", mode_by_descriptor, 0},
    {"fchmodat(.)", mode_from_within, 03755},
    {"SYS_fchmod", mode_by_number, 02750},
    {"chmod(/proc)", mode_through_proc, 02755},
    {"chown(group)", group_by_path, 23},
    {"fchown(group)", group_by_descriptor, 23},
    {"fchownat(EMPTY_PATH, group)", group_by_empty_path, 23},
    {"fchown(owner)", owner_by_descriptor, 23},
    {"setxattr(ACL)", acl_by_path, 0},
    {"fsetxattr(ACL)", acl_by_descriptor, 0},
    {"removexattr(ACL)", acl_taken_by_path, 0},
    {"fremovexattr(ACL)", acl_taken_by_descriptor, 0},
};

static void tell_birth(const char *directory)
{
    struct stat st;
    const char *path = joined(directory, "born");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    detail(" born %s", fd < 0 ? strerrorname_np(errno) : "");
    if (fd < 0)
        return;
    detail_stat(fstat(fd, &st), &st);
    detail_acl(path);
    close(fd);
    detail(" renamed %d, removed %d", rename(path, joined(directory, "renamed")), unlink(joined(directory, "early")));
}

/* A setgid directory shows in its files only if it is of a group that is not the process's. */
static void one_way(const struct way *way, const char *directory, const char *spelling)
{
    struct stat st;
    char where[128];
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_file(joined(directory, "early"), 0644, "early", 5);
    if (way->run == mode_by_descriptor || way->run == mode_by_path)
        detail(" of a group %d", chown(directory, (uid_t)-1, 17));
    int fd = open(directory, O_RDONLY | O_DIRECTORY);
    long result = way->run(spelling, fd, way->argument);
    int error = errno;
    detail_stat(fstat(fd, &st), &st);
    close(fd);
    tell_birth(directory);
    if (chdir("/") < 0)
        give_up("cannot leave", fixture.work);
    snprintf(where, sizeof where, "%s as %s", directory, spelling);
    case_told(way->name, where, result, error, true);
}

/* Times that were set stand until something is born or removed, then they are new. */
static void tell_time(const char *when, const char *directory)
{
    struct stat st;
    if (stat(directory, &st) == 0)
        detail(" %s %s", when, st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 5 ? "as set" : "new");
}

static long time_by_path(const char *path, int fd, const struct timespec times[2])
{
    return utimensat(AT_FDCWD, path, times, 0);
}

static long time_by_descriptor(const char *path, int fd, const struct timespec times[2])
{
    return futimens(fd, times);
}

static long time_by_empty_path(const char *path, int fd, const struct timespec times[2])
{
    return utimensat(fd, "", times, AT_EMPTY_PATH);
}

static void times_of(const char *name, const char *path, long (*run)(const char *path, int fd, const struct timespec times[2]))
{
    const struct timespec times[2] = {{1000, 3}, {2000, 5}};
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_file("bare/early", 0644, "early", 5);
    int fd = open("bare", O_RDONLY | O_DIRECTORY);
    long result = run(path, fd, times);
    int error = errno;
    tell_time("then", path);
    truncate("bare/early", 1);
    tell_time("after a write", path);
    make_file("bare/born", 0644, "", 0);
    tell_time("after a birth", path);
    run(path, fd, times);
    rename("bare/born", "bare/renamed");
    tell_time("after a rename", path);
    run(path, fd, times);
    unlink("bare/renamed");
    tell_time("after a removal", path);
    close(fd);
    if (chdir("/") < 0)
        give_up("cannot leave", fixture.work);
    case_told(name, path, result, error, true);
}

void part_follow(void)
{
    static const char *const spellings[] = {"bare", "../../out/to-bare", "dir/../bare/."};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t s = 0; s < sizeof spellings / sizeof *spellings; s++)
            one_way(&ways[i], "bare", spellings[s]);
    for (size_t s = 0; s < sizeof spellings / sizeof *spellings; s++) {
        times_of("utimensat", spellings[s], time_by_path);
        times_of("futimens", spellings[s], time_by_descriptor);
        times_of("utimensat(EMPTY_PATH)", spellings[s], time_by_empty_path);
    }
}
