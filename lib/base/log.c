/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void log_line(const char *format, ...)
{
    char line[4096 + 256];
    struct tm day;
    time_t now = (time_t)(clock_of(CLOCK_REALTIME) / CLOCK_SECOND);
    localtime_r(&now, &day);
    size_t length = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S ", &day);
    va_list more;
    va_start(more, format);
    int added = vsnprintf(line + length, sizeof line - length - 1, format, more);
    va_end(more);
    if (added > 0)
        length += (size_t)added < sizeof line - length - 1 ? (size_t)added : sizeof line - length - 2;
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* nowhere to say it */
}
