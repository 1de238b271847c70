/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process of root's becomes another user and goes on, and so do its children. (Where that is not root's, nothing
 * changes, and the same calls are made.) */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define OTHER 65533

static int by_setuid(void)
{
    return setuid(OTHER);
}

static int by_seteuid(void)
{
    return seteuid(OTHER);
}

static int by_setreuid(void)
{
    return setreuid((uid_t)-1, OTHER);
}

static int by_setresuid(void)
{
    return setresuid(OTHER, OTHER, 0);
}

static int by_number(void)
{
    return (int)syscall(SYS_setresuid, OTHER, OTHER, OTHER);
}

static const struct {
    const char *name;
    int (*change)(void);
} ways[] = {{"setuid", by_setuid},
            {"seteuid", by_seteuid},
            {"setreuid", by_setreuid},
            {"setresuid", by_setresuid},
            {"syscall", by_number}};

/* What the child saw: its memory is not the parent's, and the parent tells. */
enum { STEPS = 12 };
struct seen {
    int errors[STEPS];
    unsigned count;
};

static void seen_is(struct seen *seen, long result)
{
    seen->errors[seen->count++] = result < 0 ? errno : 0;
}

static long users_create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    return fd < 0 ? fd : close(fd);
}

/* 0, or -1: the directory's times are not what they were. */
static long fails_without_a_trace(const char *directory, long (*call)(const char *), const char *path)
{
    struct stat before, after;
    stat(directory, &before);
    long result = call(path);
    int error = errno;
    stat(directory, &after);
    bool same = memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) == 0 &&
                memcmp(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim) == 0;
    errno = same ? error : EPROTO;
    return result;
}

static long remove_name(const char *path)
{
    return unlink(path);
}

static long link_name(const char *path)
{
    return link("users/free/first", path);
}

static void users_work(struct seen *seen, const char *name)
{
    char path[64], moved[64];
    snprintf(path, sizeof path, "users/free/%s", name);
    snprintf(moved, sizeof moved, "users/free/%s.moved", name);
    seen_is(seen, users_create(path));
    seen_is(seen, rename(path, moved));
    seen_is(seen, access(moved, R_OK | W_OK));
    seen_is(seen, fails_without_a_trace("users/kept", users_create, "users/kept/new"));
    seen_is(seen, fails_without_a_trace("users/kept", remove_name, "users/kept/first"));
    seen_is(seen, fails_without_a_trace("users/kept", link_name, "users/kept/linked"));
    seen_is(seen, chmod("users/kept/first", 0600));
    seen_is(seen, unlink(moved));
    seen_is(seen, mkdir("users/free/made", 0755));
    seen_is(seen, rmdir("users/free/made"));
}

static void users_tell(const char *way, const char *who, const struct seen *seen)
{
    char where[64];
    for (unsigned i = 0; i < seen->count; i++) {
        snprintf(where, sizeof where, "%s, %s, step %u", way, who, i);
        case_told("users", where, seen->errors[i] == 0 ? 0 : -1, seen->errors[i], false);
    }
}

static void users_by(unsigned way)
{
    struct seen *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ways[way].change();
        users_work(&seen[0], "own");
        pid_t grandchild = fork();
        if (grandchild == 0) {
            users_work(&seen[1], "childs");
            _exit(0);
        }
        waitpid(grandchild, &status, 0);
        _exit(status);
    }
    waitpid(child, &status, 0);
    case_told("users", ways[way].name, status, 0, false);
    users_tell(ways[way].name, "itself", &seen[0]);
    users_tell(ways[way].name, "its child", &seen[1]);
    munmap(seen, 4096);
}

/* A process that is of another group from one call to the next, or may do less, is let through elsewhere: at once, also where
 * it has just been again and again. Its user is not the superuser's for files, so that the group counts. */
enum { HERS = 65531, NOT_HERS = 65532, AGAIN = 3000 };
static const gid_t hers = HERS, not_hers = NOT_HERS;

static int by_setgid(void)
{
    return setgid(NOT_HERS);
}

static int by_setegid(void)
{
    return setegid(NOT_HERS);
}

static int by_setregid(void)
{
    return setregid((gid_t)-1, NOT_HERS);
}

static int by_setresgid(void)
{
    return setresgid(NOT_HERS, NOT_HERS, 0);
}

static int by_setfsgid(void)
{
    return setfsgid(NOT_HERS);
}

static int by_setgid_number(void)
{
    return (int)syscall(SYS_setgid, NOT_HERS);
}

static int by_setgroups(void)
{
    return setgroups(1, &not_hers);
}

static int by_initgroups(void)
{
    return initgroups("nobody", NOT_HERS);
}

static int by_setgroups_number(void)
{
    return (int)syscall(SYS_setgroups, 0, NULL);
}

extern int capset(cap_user_header_t, const cap_user_data_t);
static struct __user_cap_header_struct capabilities = {.version = _LINUX_CAPABILITY_VERSION_3};
static const struct __user_cap_data_struct none[2];

static int by_capset(void)
{
    return capset(&capabilities, (cap_user_data_t)none);
}

static int by_capset_number(void)
{
    return (int)syscall(SYS_capset, &capabilities, none);
}

static int as_group(void)
{
    return setgroups(0, NULL) + setgid(HERS) + setfsuid(OTHER);
}

static int with_group(void)
{
    return setgroups(1, &hers) + setgid(NOT_HERS) + setfsuid(OTHER);
}

static int as_superuser(void)
{
    return setgroups(0, NULL);
}

static const struct {
    const char *name;
    int (*before)(void);
    int (*change)(void);
} groups[] = {{"setgid", as_group, by_setgid},
              {"setegid", as_group, by_setegid},
              {"setregid", as_group, by_setregid},
              {"setresgid", as_group, by_setresgid},
              {"setfsgid", as_group, by_setfsgid},
              {"setgid by number", as_group, by_setgid_number},
              {"setgroups", with_group, by_setgroups},
              {"initgroups", with_group, by_initgroups},
              {"setgroups by number", with_group, by_setgroups_number},
              {"capset", as_superuser, by_capset},
              {"capset by number", as_superuser, by_capset_number}};

static void look_before_and_after(unsigned way, struct seen *seen)
{
    struct stat found;
    groups[way].before();
    long all = 0;
    for (int i = 0; i < AGAIN; i++)
        all |= stat("users/hers/in/first", &found);
    seen_is(seen, all);
    groups[way].change();
    seen_is(seen, stat("users/hers/in/first", &found));
}

static void of_another_group(unsigned way)
{
    struct seen *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        look_before_and_after(way, seen);
        _exit(0);
    }
    waitpid(child, &status, 0);
    case_told("users", groups[way].name, status, 0, false);
    users_tell(groups[way].name, "before and after", seen);
    munmap(seen, 4096);
}

void part_users(void)
{
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_directory("users", 0755);
    make_directory("users/free", 0777);
    make_directory("users/kept", 0755);
    make_file("users/free/first", 0644, "first", 5);
    make_file("users/kept/first", 0644, "first", 5);
    for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++)
        users_by(way);
    make_directory("users/hers", 0750);
    make_directory("users/hers/in", 0755);
    make_file("users/hers/in/first", 0644, "first", 5);
    if (geteuid() == 0 && chown("users/hers", OTHER - 3, HERS) < 0)
        give_up("cannot give away", "users/hers");
    for (unsigned way = 0; way < sizeof groups / sizeof *groups; way++)
        of_another_group(way);
    remove_tree("users");
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    case_told("users", "are gone", 0, 0, true);
}
