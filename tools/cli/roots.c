/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cli/command.h"
#include "union/disk.h"

void roots_init(struct roots *roots)
{
    roots->count = 0;
}

void roots_finish(struct roots *roots)
{
    while (roots->count > 0)
        free(roots->paths[--roots->count]);
}

static int roots_complain_root(const char *path, int error)
{
    if (*path == '\0') /* the value of a variable that is not set, as a rule */
        error_report("a root is given as an empty word (name the shared directory, and check what the word is made of)");
    else if (error == -ENOENT)
        error_report("%s: does not exist (make the directory first, or name another one)", path);
    else if (error == -ENOTDIR)
        error_report("%s: not a directory (name a directory)", path);
    else
        error_report("%s: cannot be opened: %s (check its path and permissions)", path, strerror(-error));
    return -1;
}

/* Through the kernel itself: the same answer with and without the shim. */
static int roots_canonical(const char *path, char to[PATH_MAX])
{
    int fd = sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int length = disk_canonical(fd, to, PATH_MAX);
    sys_close(fd);
    return length < 0 ? length : 0;
}

bool roots_has(const struct roots *roots, const char *canonical)
{
    for (size_t i = 0; i < roots->count; i++)
        if (!strcmp(roots->paths[i], canonical))
            return true;
    return false;
}

int roots_add(struct roots *roots, const char *path)
{
    char at[PATH_MAX];
    int error = roots_canonical(path, at);
    if (error < 0)
        return roots_complain_root(path, error);
    if (strchr(at, ':')) {
        error_report("%s: its path has a colon, which separates roots in SHUNT_ROOT (rename it)", at);
        return -1;
    }
    if (roots_has(roots, at))
        return 0;
    if (roots->count == ROOTS_MAX) {
        error_report("--root: more than %d roots (use a directory further up)", ROOTS_MAX);
        return -1;
    }
    roots->paths[roots->count] = strdup(at);
    if (!roots->paths[roots->count])
        return roots_complain_root(path, -ENOMEM);
    roots->count++;
    return 0;
}

int roots_default(struct roots *roots)
{
    if (roots->count > 0)
        return 0;
    const char *from = getenv("SHUNT_ROOT");
    char *copy = from ? strdup(from) : NULL, *rest = copy;
    int error = 0;
    for (char *path; error == 0 && (path = strsep(&rest, ":"));)
        if (*path)
            error = roots_add(roots, path);
    free(copy);
    if (error == 0 && roots->count == 0) {
        error_report("no root is given (name the shared directory with --root DIR or in SHUNT_ROOT)");
        error = -1;
    }
    return error;
}

void roots_served(struct roots *roots)
{
    char at[PATH_MAX];
    const char *from = getenv("SHUNT_ROOT");
    char *copy = from ? strdup(from) : NULL, *rest = copy;
    for (char *path; (path = strsep(&rest, ":"));)
        if (*path && roots->count < ROOTS_MAX && roots_canonical(path, at) == 0)
            roots_add(roots, at);
    free(copy);
}

char *roots_join(const struct roots *roots)
{
    size_t size = 1;
    for (size_t i = 0; i < roots->count; i++)
        size += strlen(roots->paths[i]) + 1;
    char *joined = malloc(size), *at = joined;
    if (!joined)
        return NULL;
    *at = '\0';
    for (size_t i = 0; i < roots->count; i++)
        at = stpcpy(stpcpy(at, i > 0 ? ":" : ""), roots->paths[i]);
    return joined;
}
