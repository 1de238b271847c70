/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* bench_remote DIRECTORY PROCESSES MEMBER: agents (workers.h) that make files whose names have that member, 1 or 2, as their
 * home in a session of these two: the agents's own name of a file, a point, and the first number with which that is so, from
 * one on that nobody foresees. MEMBER 0: the agents's own names, which come in a row; half of them are at home with each. It
 * knows how homes are found, and nothing else of shunt; natively it makes the same names. */

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "workers.h"
#include "home/route.h"

static struct dirid directory_id;
static uint16_t wanted;

static void remote_begin(int argc, char *argv[])
{
    struct statx stat;
    wanted = argc > 3 ? (uint16_t)atoi(argv[3]) : 3;
    if (wanted > 2)
        errx(2, "usage: %s DIRECTORY PROCESSES MEMBER", argv[0]);
    if (sys_statx(AT_FDCWD, argv[1], 0, STATX_INO | STATX_BTIME, &stat) != 0)
        errx(1, "%s is not there", argv[1]);
    directory_id = dirid_of(&stat);
}

static uint16_t home_of(const char *name)
{
    static const uint16_t members[] = {1, 2};
    return route_rendezvous(record_shard(directory_id, record_hash(name, strlen(name))), members, 2);
}

static int make_create(const char *directory, const char *path)
{
    char name[PATH_MAX + 16];
    unsigned number = (unsigned)record_hash(path, strlen(path)) % 100000;
    do
        snprintf(name, sizeof name, "%s.%u", path, number++);
    while (home_of(strrchr(name, '/') + 1) != wanted && wanted != 0);
    int fd = open(wanted != 0 ? name : path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd >= 0 ? close(fd) : -1;
}

int main(int argc, char *argv[])
{
    static const struct agents_call calls[] = {{"create", make_create}, {0}};
    return agents_main(argc, argv, calls, remote_begin);
}
