/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "session/kept_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define KEPT_LOG_PREFIX "shuntd-"
#define KEPT_LOG_SUFFIX ".log"
#define KEPT_LOG_READ (2 * LOG_LINE_MOST) /* of a log that crash reports have made longer than that, its end */

int kept_log_open(const char *run_dir)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/log", run_dir);
    const int log = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return log >= 0 ? log : -errno;
}

static void kept_log_time(char to[32], uint64_t ns)
{
    const time_t seconds = (time_t)(ns / CLOCK_SECOND);
    struct tm day;
    gmtime_r(&seconds, &day);
    strftime(to, 32, "%Y%m%dT%H%M%SZ", &day);
}

static bool kept_log_is_name(const char *name)
{
    const size_t length = strlen(name), least = strlen(KEPT_LOG_PREFIX) + strlen("YYYYMMDDTHHMMSSZ") + strlen(KEPT_LOG_SUFFIX);
    return length > least && strncmp(name, KEPT_LOG_PREFIX, strlen(KEPT_LOG_PREFIX)) == 0 &&
           strcmp(name + length - strlen(KEPT_LOG_SUFFIX), KEPT_LOG_SUFFIX) == 0;
}

static int kept_log_choose(const struct dirent *entry)
{
    return kept_log_is_name(entry->d_name);
}

/* In the order of their names, which is that of time. How many, or -errno. */
static int kept_log_list(const char *directory, struct dirent ***found)
{
    const int count = scandir(directory, found, kept_log_choose, alphasort);
    return count >= 0 ? count : -errno;
}

static void kept_log_forget(struct dirent **found, int count)
{
    for (int i = 0; i < count; i++)
        free(found[i]);
    free(found);
}

static void kept_log_drop_oldest(const char *directory)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct dirent **found;
    const int count = kept_log_list(directory, &found);
    for (int i = 0; i < count - KEPT_LOG_MOST; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, found[i]->d_name);
        unlink(path);
    }
    if (count >= 0)
        kept_log_forget(found, count);
}

/* With all above it. */
static int kept_log_make_directory(const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/", directory) >= (int)sizeof path || directory[0] != '/')
        return -EINVAL;
    for (char *slash = path; (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* Its last bytes. How many, or -errno. */
static ssize_t kept_log_read(int log, char *text)
{
    struct stat stat;
    ssize_t size = 0, got = 1;
    if (fstat(log, &stat) != 0)
        return -errno;
    const off_t from = stat.st_size > KEPT_LOG_READ ? stat.st_size - KEPT_LOG_READ : 0;
    while (size < KEPT_LOG_READ && got > 0 && (got = pread(log, text + size, (size_t)(KEPT_LOG_READ - size), from + size)) > 0)
        size += got;
    return got < 0 ? -errno : size;
}

static int kept_log_write(const char *path, const char *text, size_t size)
{
    const int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int code = to < 0 ? -errno : 0;
    for (ssize_t put; code == 0 && size > 0; text += put, size -= (size_t)put)
        if ((put = write(to, text, size)) < 0) {
            code = -errno;
            put = 0;
        }
    if (to >= 0 && close(to) != 0 && code == 0)
        code = -errno;
    if (to >= 0 && code != 0)
        unlink(path);
    return code;
}

int kept_log_keep(const char *directory, int log, const char *node, pid_t pid, char path[PATH_MAX])
{
    char time[32];
    char *text = malloc(KEPT_LOG_READ);
    const ssize_t size = text != NULL ? kept_log_read(log, text) : -ENOMEM;
    int code = size < 0 ? (int)size : memmem(text, (size_t)size, LOG_WARNING_WORD, strlen(LOG_WARNING_WORD)) != NULL;
    close(log);
    if (code == 1) {
        kept_log_time(time, clock_of(CLOCK_REALTIME));
        const int length =
            snprintf(path, PATH_MAX, "%s/" KEPT_LOG_PREFIX "%s-%s-%d" KEPT_LOG_SUFFIX, directory, time, node, (int)pid);
        code = length < PATH_MAX ? kept_log_make_directory(directory) : -ENAMETOOLONG;
        code = code == 0 ? kept_log_write(path, text, (size_t)size) : code;
        code = code == 0 ? 1 : code;
        kept_log_drop_oldest(directory);
    }
    free(text);
    return code;
}

bool kept_log_find(const char *directory, const char *node, pid_t pid, uint64_t since, char path[PATH_MAX])
{
    char first[64] = KEPT_LOG_PREFIX, end[NAME_MAX];
    struct dirent **found;
    bool is_there = false;
    kept_log_time(first + strlen(first), since);
    snprintf(end, sizeof end, "Z-%s-%d" KEPT_LOG_SUFFIX, node, (int)pid);
    const int count = kept_log_list(directory, &found);
    for (int i = count - 1; i >= 0 && !is_there; i--) {
        const char *name = found[i]->d_name, *z = strchr(name, 'Z');
        is_there = strcmp(name, first) >= 0 && z != NULL && strcmp(z, end) == 0;
        if (is_there)
            is_there = snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
    }
    if (count >= 0)
        kept_log_forget(found, count);
    return is_there;
}
