/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A working directory whose own path comes near PATH_MAX and goes beyond: only relative names reach what is in it. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define LEVELS 20
#define LEVEL_LENGTH 230

static void deep_told(const char *name, unsigned level, long result, int error)
{
    char where[64];
    snprintf(where, sizeof where, "level %u", level);
    case_told(name, where, result, error, false);
}

static void files_at(unsigned level)
{
    struct stat st;
    char content[16];
    errno = 0;
    int fd = open("made", O_RDWR | O_CREAT | O_EXCL, 0640);
    deep_told("deep create", level, fd < 0 ? -1 : write(fd, "deep", 4), errno);
    close(fd);
    errno = 0;
    detail_stat(stat("made", &st), &st);
    deep_told("deep stat", level, 0, errno);
    deep_told("deep rename", level, rename("made", "renamed"), errno);
    deep_told("deep link", level, link("renamed", "linked"), errno);
    deep_told("deep lstat", level, detail_stat(lstat("linked", &st), &st), errno);
    deep_told("deep truncate", level, truncate("linked", 2), errno);
    fd = open("renamed", O_RDONLY);
    ssize_t count = fd < 0 ? -1 : read(fd, content, sizeof content);
    if (count > 0)
        detail_bytes(content, (size_t)count);
    deep_told("deep read", level, count, errno);
    close(fd);
    deep_told("deep symlink", level, symlink("renamed", "pointer"), errno);
    errno = 0;
    deep_told("deep access", level, access("pointer", R_OK), errno);
    deep_told("deep unlink", level, unlink("linked"), errno);
    errno = 0;
    deep_told("deep absent", level, stat("linked", &st), errno);
}

static void list_at(unsigned level)
{
    struct dirent **found = NULL;
    errno = 0;
    int count = scandir(".", &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strlen(found[i]->d_name) < LEVEL_LENGTH)
            detail_bytes(found[i]->d_name, strlen(found[i]->d_name));
        free(found[i]);
    }
    if (count >= 0)
        free(found);
    deep_told("deep scandir", level, count, errno);
}

static void canon_at(unsigned level)
{
    static char resolved[PATH_MAX];
    errno = 0;
    char *path = realpath("renamed", resolved);
    deep_told("deep realpath", level, path ? (long)strlen(path) : -1, errno);
}

void part_deep(void)
{
    char level_name[LEVEL_LENGTH + 1];
    memset(level_name, 'd', LEVEL_LENGTH);
    level_name[LEVEL_LENGTH] = '\0';
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    for (unsigned level = 0; level < LEVELS; level++) {
        if (mkdir(level_name, 0755) < 0 || chdir(level_name) < 0)
            give_up("cannot enter", level_name);
        files_at(level);
        list_at(level);
        canon_at(level);
    }
    for (unsigned level = LEVELS; level-- > 0;) {
        errno = 0;
        deep_told("deep last unlink", level, unlink("renamed") | unlink("pointer"), errno);
        if (chdir("..") < 0)
            give_up("cannot leave", level_name);
        errno = 0;
        deep_told("deep rmdir", level, rmdir(level_name), errno);
    }
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    case_told("deep", "is gone", 0, 0, true);
}
