/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Stories: calls upon calls on a few names, each on what the ones before have left, drawn by lot, and the
 * same lot each time. When processes take turns, each call is another one's. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fixture.h"

#define STORIES 1000
#define CALLS 16

static const char *const paths[] = {
    "file",  "file",      "absent",    "absent",     "new",        "new",   "dir",      "dir/inner", "dir/new",
    "bare",  "bare/new",  "bare/file", "bare/inner", "ldir/inner", "lfile", "lchain",   "ldangling", "hard",
    "moved", "moved/new", "moved/one", "dir/sub",    "dir/sub/in", "fifo",  "new/deep", "nowhere",   "empty",
};
#define PATHS (sizeof paths / sizeof *paths)

/* Opens, writes what tells the call from others or reads all, closes. */
static long by_open(const char *path, long flags, const char *text)
{
    char bytes[64];
    int fd = open(path, (int)flags | O_NONBLOCK | O_CLOEXEC, 0640);
    if (fd < 0)
        return -1;
    ssize_t count = flags & (O_WRONLY | O_RDWR) ? write(fd, text, strlen(text)) : read(fd, bytes, sizeof bytes);
    int error = errno;
    if (count > 0 && !(flags & (O_WRONLY | O_RDWR)))
        detail_bytes(bytes, (size_t)count);
    close(fd);
    errno = error;
    return count < 0 ? -1 : 0;
}

static long stories_create(const char *path, const char *other)
{
    return by_open(path, O_WRONLY | O_CREAT | O_EXCL, other);
}

static long stories_overwrite(const char *path, const char *other)
{
    return by_open(path, O_WRONLY | O_CREAT | O_TRUNC, other);
}

static long stories_append(const char *path, const char *other)
{
    return by_open(path, O_WRONLY | O_APPEND, other);
}

static long open_nofollow(const char *path, const char *other)
{
    return by_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, other);
}

static long read_all(const char *path, const char *other)
{
    return by_open(path, O_RDONLY, other);
}

static long stat_it(const char *path, const char *other)
{
    struct stat st;
    return detail_stat(stat(path, &st), &st);
}

static long lstat_it(const char *path, const char *other)
{
    struct stat st;
    return detail_stat(lstat(path, &st), &st);
}

static long unlink_it(const char *path, const char *other)
{
    return unlink(path);
}

static long rmdir_it(const char *path, const char *other)
{
    return rmdir(path);
}

static long remove_it(const char *path, const char *other)
{
    return remove(path);
}

static long mkdir_it(const char *path, const char *other)
{
    return mkdir(path, 0750);
}

static long mkfifo_it(const char *path, const char *other)
{
    return mkfifo(path, 0600);
}

static long mknod_it(const char *path, const char *other)
{
    return mknod(path, S_IFREG | 0604, 0);
}

static long symlink_it(const char *path, const char *other)
{
    return symlink(other, path);
}

static long link_it(const char *path, const char *other)
{
    return link(path, other);
}

static long link_followed(const char *path, const char *other)
{
    return linkat(AT_FDCWD, path, AT_FDCWD, other, AT_SYMLINK_FOLLOW);
}

static long rename_it(const char *path, const char *other)
{
    return rename(path, other);
}

static long rename_to_none(const char *path, const char *other)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE);
}

static long stories_exchange(const char *path, const char *other)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
}

static long chmod_it(const char *path, const char *other)
{
    return chmod(path, strlen(other) % 2 ? 0711 : 0755);
}

static long chown_it(const char *path, const char *other)
{
    return chown(path, (uid_t)-1, getgid());
}

static long truncate_it(const char *path, const char *other)
{
    return truncate(path, (off_t)strlen(other));
}

static long set_times(const char *path, const char *other)
{
    struct stat st;
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000 + (long)strlen(other)}};
    if (utimensat(AT_FDCWD, path, times, 0) < 0 || stat(path, &st) < 0)
        return -1;
    detail(" at %lld", (long long)st.st_mtime);
    return 0;
}

static long set_attribute(const char *path, const char *other)
{
    return setxattr(path, "user.story", other, strlen(other), 0);
}

static long get_attribute(const char *path, const char *other)
{
    char bytes[64];
    ssize_t count = getxattr(path, "user.story", bytes, sizeof bytes);
    if (count > 0)
        detail_bytes(bytes, (size_t)count);
    return count;
}

static long access_it(const char *path, const char *other)
{
    return access(path, W_OK);
}

static long read_link(const char *path, const char *other)
{
    char bytes[64];
    ssize_t count = readlink(path, bytes, sizeof bytes);
    if (count > 0)
        detail_bytes(bytes, (size_t)count);
    return count;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static long list_it(const char *path, const char *other)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_shown, alphasort);
    for (int i = 0; i < count; i++) {
        if (strlen(entries[i]->d_name) < 20)
            detail_bytes(entries[i]->d_name, strlen(entries[i]->d_name));
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count;
}

static const struct {
    const char *name;
    long (*run)(const char *path, const char *other);
} calls[] = {
    {"create", stories_create},
    {"create", stories_create},
    {"overwrite", stories_overwrite},
    {"append", stories_append},
    {"NOFOLLOW", open_nofollow},
    {"read", read_all},
    {"stat", stat_it},
    {"lstat", lstat_it},
    {"unlink", unlink_it},
    {"unlink", unlink_it},
    {"rmdir", rmdir_it},
    {"remove", remove_it},
    {"mkdir", mkdir_it},
    {"mkfifo", mkfifo_it},
    {"mknod", mknod_it},
    {"symlink", symlink_it},
    {"link", link_it},
    {"link(FOLLOW)", link_followed},
    {"rename", rename_it},
    {"rename", rename_it},
    {"rename(NOREPLACE)", rename_to_none},
    {"exchange", stories_exchange},
    {"chmod", chmod_it},
    {"chown", chown_it},
    {"truncate", truncate_it},
    {"utimensat", set_times},
    {"setxattr", set_attribute},
    {"getxattr", get_attribute},
    {"access", access_it},
    {"readlink", read_link},
    {"list", list_it},
};

static size_t stories_drawn(uint64_t *state, size_t count)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)(*state >> 33) % count;
}

static void one_call(size_t which, const char *path, const char *other)
{
    char where[64];
    if (!case_is_mine())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    errno = 0;
    long result = calls[which].run(path, other);
    int error = errno;
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    snprintf(where, sizeof where, "%s %s", path, other);
    case_told(calls[which].name, where, result, error, false);
}

static void one_story(unsigned number)
{
    uint64_t state = (number + 1) * 0x9e3779b97f4a7c15;
    char name[32];
    for (unsigned i = 0; i < CALLS; i++) {
        size_t which = stories_drawn(&state, sizeof calls / sizeof *calls);
        const char *path = paths[stories_drawn(&state, PATHS)], *other = paths[stories_drawn(&state, PATHS)];
        one_call(which, path, other);
    }
    snprintf(name, sizeof name, "%u", number);
    if (case_is_mine())
        case_left("what is left by story", name);
}

void part_stories(void)
{
    for (unsigned number = 0; number < STORIES; number++)
        if (case_is_wanted())
            one_story(number);
}
