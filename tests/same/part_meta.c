/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Modes, owners, times and lengths. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "fixture.h"

static long by_chmod(const struct place *place, long mode)
{
    return chmod(place->path, (mode_t)mode);
}

/* In glibc before 2.32 it is there and never works (ENOSYS); under shunt it does what fchmodat does. */
#if __GLIBC_PREREQ(2, 32)
static long by_lchmod(const struct place *place, long mode)
{
    return lchmod(place->path, (mode_t)mode);
}
#endif

static long by_fchmodat(const struct place *place, long flags)
{
    return fchmodat(place->at, place->path, 0711, (int)flags);
}

static long by_chown(const struct place *place, long owner)
{
    return chown(place->path, (uid_t)owner, (gid_t)owner);
}

static long by_lchown(const struct place *place, long owner)
{
    return lchown(place->path, (uid_t)owner, (gid_t)-1);
}

static long by_fchownat(const struct place *place, long flags)
{
    return fchownat(place->at, place->path, (uid_t)-1, 7, (int)flags);
}

/* The times that a name then has, of its own or of what it leads to; a time that is now is told as "now". */
static void detail_times(const struct place *place, int flags)
{
    struct stat st;
    struct timespec now;
    if (fstatat(place->at, place->path, &st, flags) < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    /* A reader of a directory leaves no trace: shunt lists without reading it. */
    const struct timespec *times[] = {&st.st_atim, &st.st_mtim};
    for (int i = S_ISDIR(st.st_mode) ? 1 : 0; i < 2; i++)
        if (now.tv_sec - times[i]->tv_sec < 1000)
            detail(" now");
        else
            detail(" %lld.%09ld", (long long)times[i]->tv_sec, times[i]->tv_nsec);
}

static long meta_timed(const struct place *place, int flags, long result)
{
    if (result >= 0) {
        detail_times(place, flags);
        errno = 0;
    }
    return result;
}

static long by_utime(const struct place *place, long now)
{
    const struct utimbuf times = {.actime = 1000000, .modtime = 2000000};
    return meta_timed(place, 0, utime(place->path, now ? NULL : &times));
}

static const struct timeval microseconds[2] = {{1000001, 5}, {2000001, 7}};

static long by_utimes(const struct place *place, long now)
{
    return meta_timed(place, 0, utimes(place->path, now ? NULL : microseconds));
}

static long by_lutimes(const struct place *place, long unused)
{
    return meta_timed(place, AT_SYMLINK_NOFOLLOW, lutimes(place->path, microseconds));
}

static long by_futimesat(const struct place *place, long unused)
{
    return meta_timed(place, 0, futimesat(place->at, place->path, microseconds));
}

static const struct timeval no_microseconds[][2] = {{{1000001, 1000000}, {2000001, 7}}, {{1000001, 5}, {2000001, -1}}};

static long by_wrong_utimes(const struct place *place, long which)
{
    return meta_timed(place, 0, utimes(place->path, no_microseconds[which]));
}

static long by_wrong_lutimes(const struct place *place, long which)
{
    return meta_timed(place, AT_SYMLINK_NOFOLLOW, lutimes(place->path, no_microseconds[which]));
}

static long by_wrong_futimesat(const struct place *place, long which)
{
    return meta_timed(place, 0, futimesat(place->at, place->path, no_microseconds[which]));
}

static const struct timespec nanoseconds[][2] = {
    {{1000002, 123456789}, {2000002, 987654321}}, {{0, UTIME_OMIT}, {2000003, 1}},  {{1000004, 1}, {0, UTIME_OMIT}},
    {{0, UTIME_OMIT}, {0, UTIME_OMIT}},           {{0, UTIME_NOW}, {0, UTIME_NOW}}, {{0, 2000000000}, {0, 0}},
};

static long by_utimensat(const struct place *place, long which)
{
    return meta_timed(place, 0, utimensat(place->at, place->path, nanoseconds[which], 0));
}

static long by_lutimensat(const struct place *place, long which)
{
    return meta_timed(place, AT_SYMLINK_NOFOLLOW, utimensat(place->at, place->path, nanoseconds[which], AT_SYMLINK_NOFOLLOW));
}

static long by_truncate(const struct place *place, long length)
{
    return truncate(place->path, length);
}

static long by_truncate64(const struct place *place, long length)
{
    return truncate64(place->path, length);
}

/* The same through a descriptor; of a directory it must reach what belongs to it. */
static long by_descriptor(const struct place *place, long what)
{
    int fd = open(place->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct stat st;
    long result = what == 0   ? fchmod(fd, 0710)
                  : what == 1 ? fchown(fd, (uid_t)-1, 9)
                  : what == 2 ? futimens(fd, nanoseconds[0])
                  : what == 3 ? fsync(fd)
                  : what == 4 ? fdatasync(fd)
                              : futimes(fd, microseconds);
    int error = errno;
    if (fstat(fd, &st) == 0 && (what == 2 || what == 5))
        detail(" %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    close(fd);
    errno = error;
    return result;
}

/* Then a file is born in the directory: it is what its directory makes of it. */
static long by_change_and_birth(const struct place *place, long mode)
{
    if (chmod(place->path, (mode_t)mode) < 0)
        return -1;
    int fd = open(joined(place->path, "born"), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        return -1;
    detail_bytes("born", 4);
    close(fd);
    return 0;
}

static const struct call calls[] = {
    {"chmod(0600)", CALL_CHANGES, by_chmod, 0600},
    {"chmod(07777)", CALL_CHANGES, by_chmod, 07777},
    {"chmod(0)", CALL_CHANGES, by_chmod, 0},
#if __GLIBC_PREREQ(2, 32)
    {"lchmod", CALL_CHANGES, by_lchmod, 0640},
#endif
    {"fchmodat(0)", CALL_CHANGES | CALL_AT, by_fchmodat, 0},
    {"fchmodat(NOFOLLOW)", CALL_CHANGES | CALL_AT, by_fchmodat, AT_SYMLINK_NOFOLLOW},
    {"fchmodat(wrong flag)", CALL_CHANGES | CALL_AT, by_fchmodat, 64},
    {"chown(-1,-1)", CALL_CHANGES, by_chown, -1},
    {"chown(12,12)", CALL_CHANGES, by_chown, 12},
    {"lchown(13)", CALL_CHANGES, by_lchown, 13},
    {"fchownat(0)", CALL_CHANGES | CALL_AT, by_fchownat, 0},
    {"fchownat(NOFOLLOW)", CALL_CHANGES | CALL_AT, by_fchownat, AT_SYMLINK_NOFOLLOW},
    {"fchownat(EMPTY_PATH)", CALL_CHANGES | CALL_AT, by_fchownat, AT_EMPTY_PATH},
    {"fchownat(wrong flag)", CALL_CHANGES | CALL_AT, by_fchownat, 64},
    {"utime", CALL_CHANGES, by_utime, 0},
    {"utime(NULL)", CALL_CHANGES, by_utime, 1},
    {"utimes", CALL_CHANGES, by_utimes, 0},
    {"utimes(NULL)", CALL_CHANGES, by_utimes, 1},
    {"lutimes", CALL_CHANGES, by_lutimes, 0},
    {"futimesat", CALL_CHANGES | CALL_AT, by_futimesat, 0},
    {"utimes(1000000)", CALL_CHANGES, by_wrong_utimes, 0},
    {"utimes(-1)", CALL_CHANGES, by_wrong_utimes, 1},
    {"lutimes(1000000)", CALL_CHANGES, by_wrong_lutimes, 0},
    {"futimesat(-1)", CALL_CHANGES | CALL_AT, by_wrong_futimesat, 1},
    {"utimensat", CALL_CHANGES | CALL_AT, by_utimensat, 0},
    {"utimensat(OMIT,)", CALL_CHANGES, by_utimensat, 1},
    {"utimensat(,OMIT)", CALL_CHANGES, by_utimensat, 2},
    {"utimensat(OMIT,OMIT)", CALL_CHANGES, by_utimensat, 3},
    {"utimensat(NOW,NOW)", CALL_CHANGES, by_utimensat, 4},
    {"utimensat(wrong)", CALL_CHANGES, by_utimensat, 5},
    {"utimensat(NOFOLLOW)", CALL_CHANGES | CALL_AT, by_lutimensat, 0},
    {"truncate(0)", CALL_CHANGES, by_truncate, 0},
    {"truncate(5000)", CALL_CHANGES, by_truncate, 5000},
    {"truncate(-1)", CALL_CHANGES, by_truncate, -1},
    {"truncate64(3)", CALL_CHANGES, by_truncate64, 3},
    {"fchmod", CALL_CHANGES, by_descriptor, 0},
    {"fchown", CALL_CHANGES, by_descriptor, 1},
    {"futimens", CALL_CHANGES, by_descriptor, 2},
    {"fsync", 0, by_descriptor, 3},
    {"fdatasync", 0, by_descriptor, 4},
    {"futimes", CALL_CHANGES, by_descriptor, 5},
    {"chmod(02755), birth", CALL_CHANGES, by_change_and_birth, 02755},
    {"chmod(0300), birth", CALL_CHANGES, by_change_and_birth, 0300},
    {"chmod(0500), birth", CALL_CHANGES, by_change_and_birth, 0500},
};

void part_meta(void)
{
    CASES(calls, false);
}
