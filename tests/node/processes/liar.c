/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A library that lies about the time, as libfaketime does: LIE is so many seconds off, or `frozen`. */

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LIAR __attribute__((visibility("default")))
#define FROZEN_AT 1000000

LIAR int clock_gettime(clockid_t which, struct timespec *to)
{
    const char *lie = getenv("LIE");
    if (syscall(SYS_clock_gettime, which, to) != 0)
        return -1;
    if (lie != NULL && strcmp(lie, "frozen") == 0)
        *to = (struct timespec){.tv_sec = FROZEN_AT};
    else if (lie != NULL)
        to->tv_sec += atol(lie);
    return 0;
}

LIAR int gettimeofday(struct timeval *to, void *zone)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *to = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

LIAR time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to != NULL)
        *to = now.tv_sec;
    return now.tv_sec;
}
