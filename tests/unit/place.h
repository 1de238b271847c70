/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A directory of its own for each test that needs the disk, and short ways to fill it. Everything is relative
 * to it and asserts that it works. */

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[PATH_MAX / 4];

static inline void place_init(void)
{
    const char *base = getenv("TMPDIR");
    char template[PATH_MAX / 4];
    snprintf(template, sizeof template, "%s/shunt-unit-XXXXXX", base && *base ? base : "/tmp");
    cr_assert(mkdtemp(template), "mkdtemp %s: %m", template);
    cr_assert(realpath(template, place));
    umask(022);
}

static inline int place_remove_one(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
    return remove(path);
}

static inline int place_open_one(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
    return S_ISDIR(stat->st_mode) ? chmod(path, 0700) : 0;
}

static inline void place_finish(void)
{
    nftw(place, place_open_one, 32, FTW_PHYS);
    nftw(place, place_remove_one, 32, FTW_PHYS | FTW_DEPTH);
}

/* One of a few buffers in turn. */
static inline const char *place_path(const char *format, ...)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    int length = snprintf(path, PATH_MAX, "%s/", place);
    va_list list;
    va_start(list, format);
    length += vsnprintf(path + length, PATH_MAX - (size_t)length, format, list);
    va_end(list);
    cr_assert(length < PATH_MAX);
    return path;
}

static inline void place_directory(const char *path)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s", place_path("%s", path));
    for (char *slash = whole + strlen(place) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        cr_assert(mkdir(whole, 0755) == 0 || errno == EEXIST, "%s: %m", whole);
    }
    cr_assert(mkdir(whole, 0755) == 0 || errno == EEXIST, "%s: %m", whole);
}

static inline void place_file(const char *path, const char *words)
{
    FILE *file = fopen(place_path("%s", path), "w");
    cr_assert(file, "%s: %m", path);
    cr_assert(fputs(words, file) >= 0 && fclose(file) == 0);
}

static inline bool place_has(const char *path)
{
    return access(place_path("%s", path), F_OK) == 0;
}

static inline int place_open(const char *path)
{
    int fd = open(place_path("%s", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert(fd >= 0, "%s: %m", path);
    return fd;
}

static inline struct stat place_stat(const char *path)
{
    struct stat stat;
    cr_assert(lstat(place_path("%s", path), &stat) == 0, "%s: %m", path);
    return stat;
}

static inline size_t place_count(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(place_path("%s", path));
    cr_assert(dir, "%s: %m", path);
    for (struct dirent *one; (one = readdir(dir));)
        count += strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0;
    closedir(dir);
    return count;
}

/* A small generator, the same in every run. */
static inline unsigned place_next(unsigned *seed)
{
    return *seed = *seed * 1664525u + 1013904223u, *seed >> 8;
}

/* Feeds a parser with each prefix of a good text, with single bytes changed, and with plain noise, each in
 * memory of exactly its size, so that a sanitizer sees any read beyond. `parse` answers 0 or -EBADMSG. */
static inline void place_mutate(const char *good, size_t length, void (*parse)(const char *text, size_t length))
{
    unsigned seed = 1;
    for (size_t cut = 0; cut <= length; cut++) {
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, good, cut);
        parse(copy, cut);
        free(copy);
    }
    for (int round = 0; round < 50000; round++) {
        size_t size = round % 5 ? length : place_next(&seed) % 200;
        char *copy = malloc(size ? size : 1);
        memcpy(copy, good, size < length ? size : length);
        for (unsigned i = 0, changes = 1 + place_next(&seed) % 4; size > 0 && i < changes; i++)
            copy[place_next(&seed) % size] = (char)place_next(&seed);
        parse(copy, size);
        free(copy);
    }
}
