/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* open and its kin: every combination of flags that has a meaning of its own. What is opened is written to
 * and read from, so that the tree shows whether O_APPEND and O_TRUNC did their work. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_DIRECTORY | O_NOFOLLOW | O_PATH | O_NONBLOCK)

static void use_descriptor(int fd)
{
    struct stat st;
    char text[4];
    int flags = fcntl(fd, F_GETFL), cloexec = fcntl(fd, F_GETFD);
    detail_stat(fstat(fd, &st), &st);
    detail(" flags %o fd-flags %d", flags & KEPT_FLAGS, cloexec);
    if (flags & O_PATH || !S_ISREG(st.st_mode))
        return;
    if ((flags & O_ACCMODE) != O_RDONLY)
        detail(" wrote %zd", write(fd, "+", 1));
    if ((flags & O_ACCMODE) != O_WRONLY) {
        ssize_t count = pread(fd, text, sizeof text, 0);
        detail(" read");
        detail_bytes(text, count > 0 ? (size_t)count : 0);
    }
}

static long open_opened(int fd)
{
    if (fd < 0)
        return -1;
    int error = errno;
    use_descriptor(fd);
    close(fd);
    errno = error;
    return 0;
}

static long by_open(const struct place *place, long flags)
{
    return open_opened(open(place->path, (int)flags | O_NONBLOCK, 0764));
}

static long by_open64(const struct place *place, long flags)
{
    return open_opened(open64(place->path, (int)flags | O_NONBLOCK, 0764));
}

static long by_openat(const struct place *place, long flags)
{
    return open_opened(openat(place->at, place->path, (int)flags | O_NONBLOCK, 0604));
}

static long by_openat64(const struct place *place, long flags)
{
    return open_opened(openat64(place->at, place->path, (int)flags | O_NONBLOCK, 0604));
}

static long by_creat(const struct place *place, long unused)
{
    return open_opened(creat(place->path, 0640));
}

static long by_creat64(const struct place *place, long unused)
{
    return open_opened(creat64(place->path, 0640));
}

/* The spellings that headers do not declare, or only after macros. */
static long by_open_2(const struct place *place, long flags)
{
    int (*call)(const char *, int) = dlsym(RTLD_DEFAULT, "__open_2");
    return open_opened(call(place->path, (int)flags));
}

static long by_openat_2(const struct place *place, long flags)
{
    int (*call)(int, const char *, int) = dlsym(RTLD_DEFAULT, "__openat64_2");
    return open_opened(call(place->at, place->path, (int)flags));
}

static long by_underscored(const struct place *place, long flags)
{
    int (*call)(const char *, int, ...) = dlsym(RTLD_DEFAULT, "__open64");
    return open_opened(call(place->path, (int)flags | O_NONBLOCK, 0700));
}

/* An unnamed file in the directory at the place, given a name there. */
static long by_tmpfile(const struct place *place, long empty_path)
{
    char link_text[64];
    int fd = openat(place->at, place->path, O_TMPFILE | O_RDWR, 0640);
    if (fd < 0)
        return -1;
    use_descriptor(fd);
    snprintf(link_text, sizeof link_text, "/proc/self/fd/%d", fd);
    const char *name = joined(fixture.work, "dir/from-tmpfile");
    long result = empty_path ? linkat(fd, "", AT_FDCWD, name, AT_EMPTY_PATH)
                             : linkat(AT_FDCWD, link_text, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static const struct call reading[] = {
    {"open(RDONLY)", 0, by_open, O_RDONLY},
    {"open(RDONLY|CLOEXEC)", 0, by_open, O_RDONLY | O_CLOEXEC},
    {"open(RDONLY|DIRECTORY)", 0, by_open, O_RDONLY | O_DIRECTORY},
    {"open(RDONLY|NOFOLLOW)", 0, by_open, O_RDONLY | O_NOFOLLOW},
    {"open(RDONLY|DIRECTORY|NOFOLLOW)", 0, by_open, O_RDONLY | O_DIRECTORY | O_NOFOLLOW},
    {"open(PATH)", 0, by_open, O_PATH},
    {"open(PATH|NOFOLLOW)", 0, by_open, O_PATH | O_NOFOLLOW},
    {"open(PATH|DIRECTORY)", 0, by_open, O_PATH | O_DIRECTORY},
    {"openat(RDONLY)", CALL_AT, by_openat, O_RDONLY},
    {"openat(PATH|NOFOLLOW)", CALL_AT, by_openat, O_PATH | O_NOFOLLOW},
    {"__open_2", CALL_WAITS, by_open_2, O_RDONLY},
};

static const struct call changing[] = {
    {"open(WRONLY)", CALL_CHANGES, by_open, O_WRONLY},
    {"open(RDWR)", CALL_CHANGES, by_open, O_RDWR},
    {"open(RDWR|DIRECTORY)", CALL_CHANGES, by_open, O_RDWR | O_DIRECTORY},
    {"open(WRONLY|APPEND)", CALL_CHANGES, by_open, O_WRONLY | O_APPEND},
    {"open(RDWR|TRUNC)", CALL_CHANGES, by_open, O_RDWR | O_TRUNC},
    {"open(RDONLY|TRUNC)", CALL_CHANGES, by_open, O_RDONLY | O_TRUNC},
    {"open(RDONLY|CREAT)", CALL_CHANGES, by_open, O_RDONLY | O_CREAT},
    {"open(WRONLY|CREAT)", CALL_CHANGES, by_open, O_WRONLY | O_CREAT},
    {"open(RDWR|CREAT|CLOEXEC)", CALL_CHANGES, by_open, O_RDWR | O_CREAT | O_CLOEXEC},
    {"open(WRONLY|CREAT|EXCL)", CALL_CHANGES, by_open, O_WRONLY | O_CREAT | O_EXCL},
    {"open(WRONLY|CREAT|TRUNC)", CALL_CHANGES, by_open, O_WRONLY | O_CREAT | O_TRUNC},
    {"open(WRONLY|CREAT|APPEND)", CALL_CHANGES, by_open, O_WRONLY | O_CREAT | O_APPEND},
    {"open(WRONLY|CREAT|NOFOLLOW)", CALL_CHANGES, by_open, O_WRONLY | O_CREAT | O_NOFOLLOW},
    {"open(RDONLY|CREAT|DIRECTORY)", CALL_CHANGES, by_open, O_RDONLY | O_CREAT | O_DIRECTORY},
    {"open(PATH|CREAT)", CALL_CHANGES, by_open, O_PATH | O_CREAT},
    {"open(WRONLY|EXCL)", CALL_CHANGES, by_open, O_WRONLY | O_EXCL},
    {"open(NOATIME)", CALL_CHANGES, by_open, O_RDONLY | O_NOATIME},
    {"open(ACCMODE 3)", CALL_CHANGES, by_open, O_ACCMODE},
    {"open64(RDWR|CREAT|EXCL)", CALL_CHANGES, by_open64, O_RDWR | O_CREAT | O_EXCL},
    {"openat(WRONLY|CREAT)", CALL_CHANGES | CALL_AT, by_openat, O_WRONLY | O_CREAT},
    {"openat(RDWR|CREAT|EXCL)", CALL_CHANGES | CALL_AT, by_openat, O_RDWR | O_CREAT | O_EXCL},
    {"openat64(RDWR|CREAT|TRUNC)", CALL_CHANGES | CALL_AT, by_openat64, O_RDWR | O_CREAT | O_TRUNC},
    {"creat", CALL_CHANGES | CALL_WAITS, by_creat, 0},
    {"creat64", CALL_CHANGES | CALL_WAITS, by_creat64, 0},
    {"__openat64_2", CALL_CHANGES | CALL_AT | CALL_WAITS, by_openat_2, O_WRONLY},
    {"__open64(WRONLY|CREAT)", CALL_CHANGES, by_underscored, O_WRONLY | O_CREAT},
    {"open(TMPFILE) linkat(/proc)", CALL_CHANGES | CALL_AT, by_tmpfile, 0},
    {"open(TMPFILE) linkat(EMPTY_PATH)", CALL_CHANGES | CALL_AT, by_tmpfile, 1},
};

void part_open(void)
{
    CASES(reading, true);
    CASES(changing, false);
}
