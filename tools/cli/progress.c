/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define PROGRESS_PAUSE (200 * CLOCK_MILLISECOND)
#define PROGRESS_FIRST (500 * CLOCK_MILLISECOND)

void progress_init(struct progress *progress, bool asked)
{
    *progress = (struct progress){.on = asked || isatty(STDERR_FILENO)};
    if (progress->on && !asked)
        progress->last = clock_monotonic() + PROGRESS_FIRST - PROGRESS_PAUSE;
}

bool progress_due(struct progress *progress)
{
    if (!progress->on)
        return false;
    uint64_t now = clock_monotonic();
    if (now < progress->last + PROGRESS_PAUSE)
        return false;
    progress->last = now;
    return true;
}

void progress_line(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputc('\r', stderr);
    vfprintf(stderr, format, arguments);
    if (isatty(STDERR_FILENO))
        fputs("\033[K", stderr);
    fflush(stderr);
    va_end(arguments);
    progress->shown = true;
}

void progress_finish(struct progress *progress)
{
    if (!progress->shown)
        return;
    fputs(isatty(STDERR_FILENO) ? "\r\033[K" : "\n", stderr);
    fflush(stderr);
    progress->shown = false;
}
