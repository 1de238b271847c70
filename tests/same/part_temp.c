/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* mkstemp and its kin: names that nobody can know before; their shape is told. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static char template[8192];

static void template_set(const struct place *place, const char *end)
{
    if (strlen(place->path) + strlen(end) < sizeof template)
        sprintf(template, "%s%s", place->path, end);
}

/* What stands in the place of the six letters, and what was made. It is removed again. */
static long told_made(const struct place *place, long result, const char *end)
{
    struct stat st;
    int error = errno;
    size_t at = strlen(place->path) + strcspn(end, "X");
    if (result < 0) {
        detail(" template %s", strcmp(template + strlen(place->path), end) == 0 ? "untouched" : "touched");
        errno = error;
        return -1;
    }
    detail(" letters %s, rest %s", strncmp(template + at, "XXXXXX", 6) != 0 ? "new" : "old",
           strcmp(template + at + 6, end + strcspn(end, "X") + 6) == 0 ? "kept" : "changed");
    detail_stat(lstat(template, &st), &st);
    detail(" removed %d", remove(template));
    return 0;
}

static long told_file(const struct place *place, int fd, const char *end)
{
    if (fd < 0)
        return told_made(place, -1, end);
    detail(" flags %o fd-flags %d wrote %zd", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND), fcntl(fd, F_GETFD),
           write(fd, "temporary", 9));
    long result = told_made(place, 0, end);
    close(fd);
    errno = 0;
    return result;
}

static long by_mkstemp(const struct place *place, long unused)
{
    template_set(place, "-XXXXXX");
    return told_file(place, mkstemp(template), "-XXXXXX");
}

static long by_mkstemp64(const struct place *place, long unused)
{
    template_set(place, "-XXXXXX");
    return told_file(place, mkstemp64(template), "-XXXXXX");
}

static long by_mkstemp_wrong(const struct place *place, long unused)
{
    template_set(place, "-XXXXX");
    return told_file(place, mkstemp(template), "-XXXXX");
}

static long by_mkstemps(const struct place *place, long length)
{
    template_set(place, "-XXXXXX.end");
    return told_file(place, mkstemps(template, (int)length), "-XXXXXX.end");
}

static long by_mkostemp(const struct place *place, long flags)
{
    template_set(place, "-XXXXXX");
    return told_file(place, mkostemp(template, (int)flags), "-XXXXXX");
}

static long by_mkostemps(const struct place *place, long flags)
{
    template_set(place, "-XXXXXX.c");
    return told_file(place, mkostemps(template, 2, (int)flags), "-XXXXXX.c");
}

static long by_mkdtemp(const struct place *place, long unused)
{
    template_set(place, "-XXXXXX");
    errno = 0;
    char *made = mkdtemp(template);
    if (made)
        errno = 0;
    return told_made(place, made ? 0 : -1, "-XXXXXX");
}

static long by_mktemp(const struct place *place, long unused)
{
    template_set(place, "-XXXXXX");
    char *made = mktemp(template);
    int error = errno;
    detail(" %s %s", made == template ? "given" : "none", template[0] ? "name" : "empty");
    errno = error;
    return template[0] ? 0 : -1;
}

#define TEMP (CALL_CHANGES | CALL_NO_NULL)

static const struct call calls[] = {
    {"mkstemp", TEMP, by_mkstemp, 0},
    {"mkstemp64", TEMP, by_mkstemp64, 0},
    {"mkstemp(5 letters)", TEMP, by_mkstemp_wrong, 0},
    {"mkstemps(4)", TEMP, by_mkstemps, 4},
    {"mkstemps(3)", TEMP, by_mkstemps, 3},
    {"mkstemps(-1)", TEMP, by_mkstemps, -1},
    {"mkstemps(90)", TEMP, by_mkstemps, 90},
    {"mkostemp(APPEND|CLOEXEC)", TEMP, by_mkostemp, O_APPEND | O_CLOEXEC},
    {"mkostemps(CLOEXEC)", TEMP, by_mkostemps, O_CLOEXEC},
    {"mkdtemp", TEMP, by_mkdtemp, 0},
    {"mktemp", TEMP, by_mktemp, 0},
};

void part_temp(void)
{
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    CASES(calls, false);
}
