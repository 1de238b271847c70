/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process that waits for events is told of them: of what is born in a directory, and of a file that is there. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

static const char *notify_beneath(const char *directory, const char *name)
{
    static char paths[2][2 * PATH_MAX];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* What happens to a file that was there before. */
static void be_busy_before(const char *directory, const char *name)
{
    int fd = open(notify_beneath(directory, name), O_WRONLY | O_APPEND);
    if (fd >= 0) {
        detail(" %s wrote %zd", name, write(fd, "more", 4));
        close(fd);
    }
    detail(" %s changed %d", name, chmod(notify_beneath(directory, name), 0606));
}

/* What is done in a directory that is watched: to older files, then beginning with a birth. */
static void be_busy_in(const char *directory)
{
    be_busy_before(directory, "file");
    be_busy_before(directory, "inner");
    int fd = open(notify_beneath(directory, "born"), O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd >= 0) {
        detail(" wrote %zd", write(fd, "born", 4));
        close(fd);
    }
    detail(" renamed %d", rename(notify_beneath(directory, "born"), notify_beneath(directory, "moved")));
    detail(" linked %d", link(notify_beneath(directory, "moved"), notify_beneath(directory, "second")));
    detail(" came %d", rename(joined(fixture.outside, "plain"), notify_beneath(directory, "came")));
    if (access(notify_beneath(directory, "hard"), F_OK) < 0)
        detail(" moved in %d", rename(joined(fixture.work, "hard"), notify_beneath(directory, "hard")));
    detail(" replaced %d", rename(notify_beneath(directory, "second"), notify_beneath(directory, "came")));
    detail(" changed %d", chmod(notify_beneath(directory, "moved"), 0600));
    detail(" made %d", mkdir(notify_beneath(directory, "made"), 0755));
    detail(" removed %d", unlink(notify_beneath(directory, "moved")));
}

static void be_busy_at(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK);
    if (fd >= 0) {
        detail(" wrote %zd", write(fd, "busy", 4));
        close(fd);
    }
    detail(" changed %d", chmod(path, 0604));
    detail(" truncated %d", truncate(path, 1));
    detail(" removed %d", unlink(path));
}

/* What is above the fixture is not cleared. */
static void be_busy(const char *path)
{
    struct stat st, above;
    int error = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (stat(fixture.above, &above) == 0 && above.st_ino != st.st_ino)
            be_busy_in(path);
    } else {
        be_busy_at(path);
    }
    errno = error;
}

static bool is_directory(const struct place *place)
{
    struct stat st;
    return place->path && fstatat(place->at, place->path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* One of each serves all cases: to close one takes the kernel ten milliseconds. */
static int notify_inotify(void)
{
    static int fd = -1;
    return fd >= 0 ? fd : (fd = inotify_init1(IN_NONBLOCK));
}

static int notify_fanotify(void)
{
    static int fd = -1;
    return fd >= 0 ? fd : (fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_NONBLOCK, O_RDONLY));
}

static char events[65536] __attribute__((aligned(8)));

static void tell_inotify(void)
{
    ssize_t length = read(notify_inotify(), events, sizeof events);
    for (ssize_t at = 0; at < length;) {
        const struct inotify_event *event = (const struct inotify_event *)(events + at);
        /* The daemon gives a directory in the watched one its times on disk after a while (shunt(7), Events). */
        if (event->mask != (IN_MODIFY | IN_ISDIR))
            detail(" | %x %s%s", event->mask, event->len ? event->name : "-", event->cookie ? " *" : "");
        at += (ssize_t)(sizeof *event + event->len);
    }
}

#define EVENTS (IN_CREATE | IN_DELETE | IN_MOVE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

/* Creates in a directory that was watched stay where the kernel sees them: later cases need another one. */
static long notify_unwatched(long watch, bool was_directory)
{
    int error = errno;
    if (watch >= 0)
        inotify_rm_watch(notify_inotify(), (int)watch);
    while (read(notify_inotify(), events, sizeof events) > 0)
        ;
    if (watch >= 0 && was_directory)
        fixture_rebuild();
    errno = error;
    return watch >= 0 ? 0 : -1;
}

static long by_inotify(const struct place *place, long flags)
{
    bool directory = is_directory(place);
    long watch = inotify_add_watch(notify_inotify(), place->path, EVENTS | (uint32_t)flags);
    if (watch >= 0) {
        be_busy(place->path);
        tell_inotify();
    }
    return notify_unwatched(watch, directory);
}

static long by_raw_inotify(const struct place *place, long mask)
{
    bool directory = is_directory(place);
    long watch = syscall(SYS_inotify_add_watch, notify_inotify(), place->path, (unsigned)mask);
    if (watch >= 0) {
        be_busy(place->path);
        tell_inotify();
    }
    return notify_unwatched(watch, directory);
}

/* A second watch of the same file, by another of its names, is the first one. */
static long by_inotify_twice(const struct place *place, long flags)
{
    bool directory = is_directory(place);
    int first = inotify_add_watch(notify_inotify(), joined(fixture.work, "hard"), IN_OPEN);
    long watch = inotify_add_watch(notify_inotify(), place->path, IN_MODIFY | (uint32_t)flags);
    int error = errno;
    if (watch >= 0)
        detail(" %s", watch == first ? "the first" : "another");
    inotify_rm_watch(notify_inotify(), first);
    errno = error;
    return notify_unwatched(watch, directory);
}

static long by_inotify_wrong(const struct place *place, long mask)
{
    bool directory = is_directory(place);
    return notify_unwatched(inotify_add_watch(mask ? notify_inotify() : 0, place->path, (uint32_t)mask), directory);
}

static void tell_fanotify(void)
{
    ssize_t length = read(notify_fanotify(), events, sizeof events);
    const struct fanotify_event_metadata *event = (const void *)events;
    for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
        const struct fanotify_event_info_fid *info = (const void *)(event + 1);
        const struct file_handle *handle = (const void *)info->handle;
        bool named = info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME;
        detail(" | %llx %s", (unsigned long long)event->mask,
               named ? (const char *)handle->f_handle + handle->handle_bytes : "-");
    }
}

#define MARKS (FAN_CREATE | FAN_DELETE | FAN_MOVE | FAN_MODIFY | FAN_EVENT_ON_CHILD | FAN_ONDIR)

static long notify_unmarked(long result, bool was_directory)
{
    int error = errno;
    if (result >= 0)
        fanotify_mark(notify_fanotify(), FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
    while (read(notify_fanotify(), events, sizeof events) > 0)
        ;
    if (result >= 0 && was_directory)
        fixture_rebuild();
    errno = error;
    return result;
}

/* With names, if the kernel gives them to this user; else the case shows its refusal. */
static long by_fanotify(const struct place *place, long flags)
{
    bool directory = is_directory(place);
    if (notify_fanotify() < 0)
        return -1;
    long result = fanotify_mark(notify_fanotify(), FAN_MARK_ADD | (unsigned)flags, directory ? MARKS : FAN_MODIFY, place->at,
                                place->path);
    if (result >= 0 && place->path && (place->at == AT_FDCWD || place->path[0] == '/')) {
        be_busy(place->path);
        tell_fanotify();
    }
    return notify_unmarked(result, directory);
}

/* Taking away what is not there; and all there is, for which the path is not looked at. */
static long by_fanotify_removal(const struct place *place, long flags)
{
    if (notify_fanotify() < 0)
        return -1;
    return notify_unmarked(syscall(SYS_fanotify_mark, notify_fanotify(), (unsigned)flags,
                                   flags & FAN_MARK_FLUSH ? 0 : FAN_MODIFY, place->at, place->path),
                           false);
}

static const struct call calls[] = {
    {"inotify", CALL_CHANGES, by_inotify, 0},
    {"inotify(ONLYDIR)", CALL_CHANGES, by_inotify, IN_ONLYDIR},
    {"inotify(DONT_FOLLOW)", CALL_CHANGES, by_inotify, IN_DONT_FOLLOW},
    {"SYS_inotify_add_watch", CALL_CHANGES, by_raw_inotify, IN_CREATE | IN_MODIFY | IN_DELETE},
    {"inotify(twice)", CALL_CHANGES, by_inotify_twice, 0},
    {"inotify(MASK_ADD)", CALL_CHANGES, by_inotify_twice, IN_MASK_ADD},
    {"inotify(MASK_CREATE)", CALL_CHANGES, by_inotify_twice, IN_MASK_CREATE},
    {"inotify(no event)", CALL_CHANGES, by_inotify_wrong, IN_ONLYDIR},
    {"inotify(no inotify)", CALL_CHANGES, by_inotify_wrong, 0},
    {"fanotify", CALL_CHANGES | CALL_AT, by_fanotify, 0},
    {"fanotify(ONLYDIR)", CALL_CHANGES | CALL_AT, by_fanotify, FAN_MARK_ONLYDIR},
    {"fanotify(DONT_FOLLOW)", CALL_CHANGES | CALL_AT, by_fanotify, FAN_MARK_DONT_FOLLOW},
    {"fanotify(REMOVE)", CALL_AT, by_fanotify_removal, FAN_MARK_REMOVE},
    {"fanotify(FLUSH)", CALL_AT, by_fanotify_removal, FAN_MARK_FLUSH},
};

void part_notify(void)
{
    CASES(calls, false);
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    fixture_rebuild();
}
