/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* realpath and its kin, and getcwd beneath a root. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static long canon_told(const char *path)
{
    if (!path)
        return -1;
    detail_bytes(path, strlen(path));
    errno = 0;
    return 0;
}

static long by_realpath(const struct place *place, long unused)
{
    static char resolved[PATH_MAX];
    strcpy(resolved, "untouched");
    char *path = realpath(place->path, resolved);
    int error = errno;
    if (path && path != resolved)
        detail(" elsewhere");
    errno = error;
    return canon_told(path);
}

static long by_realpath_null(const struct place *place, long unused)
{
    char *path = realpath(place->path, NULL);
    long result = canon_told(path);
    free(path);
    return result;
}

static long by_canonicalize(const struct place *place, long unused)
{
    char *path = canonicalize_file_name(place->path);
    long result = canon_told(path);
    free(path);
    return result;
}

static long by_realpath_chk(const struct place *place, long unused)
{
    static char resolved[PATH_MAX];
    char *(*call)(const char *, char *, size_t) = dlsym(RTLD_DEFAULT, "__realpath_chk");
    return canon_told(call(place->path, resolved, sizeof resolved));
}

static long by_chdir(const struct place *place, long unused)
{
    static char cwd[PATH_MAX];
    struct stat st;
    if (stat(place->path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    if (chdir(place->path) < 0)
        return -1;
    return canon_told(getcwd(cwd, sizeof cwd));
}

static const struct call calls[] = {
    {"realpath", 0, by_realpath, 0},
    {"realpath(NULL buffer)", 0, by_realpath_null, 0},
    {"canonicalize_file_name", 0, by_canonicalize, 0},
    {"__realpath_chk", 0, by_realpath_chk, 0},
    {"chdir, getcwd", 0, by_chdir, 0},
};

void part_canon(void)
{
    CASES(calls, true);
}
