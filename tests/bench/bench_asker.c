/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* bench_asker DIRECTORY PROCESSES RUN_DIR: a crew (crew.h) whose calls are questions to the daemon of that
 * run directory, about names that a process under shunt finds in the index by itself and so does not ask
 * about. */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "crew.h"
#include "request/request.h"

#define DEADLINE (30 * CLOCK_SECOND)

static struct request_road *road;
static struct dirid dir;

static void attach(int argc, char *argv[])
{
    struct statx stat;
    if (argc < 4)
        errx(2, "usage: bench_asker DIRECTORY PROCESSES RUN_DIR");
    errno = -request_attach(&road, argv[3]);
    if (errno == 0)
        errno = -sys_statx(AT_FDCWD, argv[1], 0, STATX_INO | STATX_BTIME, &stat);
    if (errno != 0)
        err(1, "%s", argv[3]);
    dir = dirid_of(&stat);
}

static int look_up(const char *name)
{
    const struct message lookup = {
        .type = MESSAGE_LOOKUP, .dir[0] = dir, .name[0] = name, .name_length[0] = (uint16_t)strlen(name)};
    int result, code = request_result(road, &lookup, &result, DEADLINE);
    errno = code != 0 ? -code : result == MESSAGE_EXISTS ? 0 : ENOENT;
    return errno == 0 ? 0 : -1;
}

static int make_lookup(const char *directory, const char *path)
{
    return look_up(strrchr(path, '/') + 1);
}

/* A process's first name, whatever the number. */
static int make_again(const char *directory, const char *path)
{
    char name[NAME_MAX + 1];
    const char *first = strrchr(path, '/') + 1;
    const size_t stem = (size_t)(strrchr(first, '-') - first);
    memcpy(name, first, stem);
    memcpy(name + stem, "-0", 3);
    return look_up(name);
}

int main(int argc, char *argv[])
{
    static const struct crew_call calls[] = {{"lookup", make_lookup}, {"again", make_again}, {0}};
    return crew_main(argc, argv, calls, attach);
}
