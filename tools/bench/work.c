/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/site.h"
#include "bench/plan.h"

#define LOOK_UP (20 * CLOCK_MILLISECOND) /* between two looks whether to go on */
#define DIGITS 7
#define BLOCK 65536

struct work {
    const struct talk_order *order;
    struct talk_answer *answer;
    int calls;
    uint64_t looked;
    char pass[PATH_MAX], own[PATH_MAX]; /* the directory of all, and that of the files */
    char path[PATH_MAX], renamed[PATH_MAX];
    char *digits, *renamed_digits;
};

static void work_name_directories(struct work *work, const char *top)
{
    const struct talk_order *order = work->order;
    int length = snprintf(work->pass, sizeof work->pass, "%s/%s/p%u", top,
                          plan_is_shunt(order->configuration) ? SITE_ROOT : SITE_NATIVE, order->pass);
    memcpy(work->own, work->pass, sizeof work->own);
    if (plan_is_private(order->configuration))
        snprintf(work->own + length, sizeof work->own - (size_t)length, "/r%u", order->owner);
}

/* f7-0000012 is the twelfth of rank 7, and r7-0000012 after its renaming. */
static char *work_name_files(const struct work *work, char letter, char to[PATH_MAX])
{
    int length = snprintf(to, PATH_MAX, "%s/%c%u-%0*u", work->own, letter, work->order->owner, DIGITS, 0u);
    return to + length - DIGITS;
}

static void work_write_number(char *digits, uint64_t number)
{
    for (int i = DIGITS; i-- > 0; number /= 10)
        digits[i] = (char)('0' + number % 10);
}

/* The calls: 0 or -1 with errno. */

static int work_fill(int fd, uint64_t size)
{
    static const char zeros[BLOCK];
    while (size > 0) {
        ssize_t written = write(fd, zeros, size < BLOCK ? (size_t)size : BLOCK);
        if (written < 0 && errno != EINTR)
            return -1;
        size -= written > 0 ? (uint64_t)written : 0;
    }
    return 0;
}

static int work_do_create(struct work *work)
{
    int fd = open(work->path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd < 0)
        return -1;
    int error = work_fill(fd, work->order->size);
    return close(fd) < 0 ? -1 : error;
}

static int work_do_open(struct work *work)
{
    int fd = open(work->path, O_RDONLY);
    return fd < 0 ? -1 : close(fd);
}

static int work_do_stat(struct work *work)
{
    struct stat found;
    return stat(work->path, &found);
}

static int work_do_utime(struct work *work)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    return utimensat(AT_FDCWD, work->path, times, 0);
}

static int work_do_rename(struct work *work)
{
    return rename(work->path, work->renamed);
}

static int work_do_unlink(struct work *work)
{
    return unlink(work->path);
}

static int (*const calls[PLAN_OPERATIONS])(struct work *) = {
    [PLAN_CREATE] = work_do_create, [PLAN_OPEN] = work_do_open,     [PLAN_STAT] = work_do_stat,
    [PLAN_UTIME] = work_do_utime,   [PLAN_RENAME] = work_do_rename, [PLAN_UNLINK] = work_do_unlink,
};

static bool work_is_called(struct work *work, uint64_t now)
{
    char byte;
    if (now < work->looked + LOOK_UP)
        return false;
    work->looked = now;
    return recv(work->calls, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static int work_do_files(struct work *work)
{
    int (*const call)(struct work *) = calls[work->order->operation];
    uint64_t before = clock_monotonic();
    for (uint64_t i = 0; i < work->order->files; i++) {
        work_write_number(work->digits, i);
        work_write_number(work->renamed_digits, i);
        if (call(work) < 0)
            return -errno;
        uint64_t now = clock_monotonic();
        histogram_add(&work->answer->latency, now - before);
        work->answer->done++;
        if (work_is_called(work, now))
            return -ECANCELED;
        before = now;
    }
    return 0;
}

static bool work_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int work_read_names(struct work *work, DIR *dir)
{
    errno = 0;
    for (struct dirent *one; (one = readdir(dir));) {
        work->answer->done += !work_is_dots(one->d_name);
        if (work->answer->done % 256 == 0 && work_is_called(work, clock_monotonic()))
            return -ECANCELED;
        errno = 0;
    }
    return -errno;
}

static int work_do_listing(struct work *work)
{
    uint64_t before = clock_monotonic();
    DIR *dir = opendir(work->own);
    if (!dir)
        return -errno;
    int error = work_read_names(work, dir);
    if (closedir(dir) < 0 && error == 0)
        error = -errno;
    histogram_add(&work->answer->latency, clock_monotonic() - before);
    return error;
}

static int work_do_work(struct work *work)
{
    uint64_t began = work->looked = clock_monotonic();
    int error = work->order->operation == PLAN_READDIR ? work_do_listing(work) : work_do_files(work);
    work->answer->elapsed = clock_monotonic() - began;
    return error;
}

static int work_do_order(struct work *work)
{
    switch (work->order->what) {
    case TALK_MAKE:
        return mkdir(work->pass, 0755) < 0 ? -errno : 0;
    case TALK_MAKE_OWN:
        return mkdir(work->own, 0755) < 0 ? -errno : 0;
    case TALK_WORK:
        return work_do_work(work);
    case TALK_REMOVE_OWN:
        return rmdir(work->own) < 0 ? -errno : 0;
    case TALK_REMOVE:
        return rmdir(work->pass) < 0 ? -errno : 0;
    }
    return -EPROTO;
}

static const char *work_name_order(const struct talk_order *order)
{
    if (order->what == TALK_WORK && order->operation < PLAN_OPERATIONS)
        return plan_operations[order->operation];
    return order->what == TALK_MAKE || order->what == TALK_MAKE_OWN ? "mkdir" : "rmdir";
}

static void work_say_what(const struct work *work)
{
    const char *path = work->pass;
    if (work->order->what == TALK_WORK)
        path = work->order->operation == PLAN_READDIR ? work->own : work->path;
    else if (work->order->what == TALK_MAKE_OWN || work->order->what == TALK_REMOVE_OWN)
        path = work->own;
    snprintf(work->answer->words, sizeof work->answer->words, "%s of %.*s", work_name_order(work->order), TALK_WORDS_MAX - 16,
             path);
}

int work_do(const char *top, int socket, const struct talk_order *order, struct talk_answer *answer)
{
    struct work work = {.order = order, .answer = answer, .calls = socket};
    memset(answer, 0, sizeof *answer);
    work_name_directories(&work, top);
    work.digits = work_name_files(&work, order->renamed ? 'r' : 'f', work.path);
    work.renamed_digits = work_name_files(&work, 'r', work.renamed);
    answer->error = work_do_order(&work);
    if (answer->error < 0)
        work_say_what(&work);
    return answer->error;
}
