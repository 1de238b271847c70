/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const char *log_about; /* NULL: not to syslog */

bool log_has_room(unsigned most)
{
    struct stat stat;
    return fstat(STDERR_FILENO, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size < most;
}

void log_to_syslog(const char *about)
{
    log_about = about;
    openlog("shuntd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

__attribute__((format(printf, 3, 0))) static void log_write(const char *word, unsigned most, const char *format, va_list more)
{
    char line[4096 + 256];
    struct tm day;
    time_t now = (time_t)(clock_of(CLOCK_REALTIME) / CLOCK_SECOND);
    localtime_r(&now, &day);
    size_t length = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S", &day);
    length = (size_t)(stpcpy(line + length, word) - line);
    const size_t text = length;
    int added = vsnprintf(line + length, sizeof line - length - 1, format, more);
    if (added > 0)
        length += (size_t)added < sizeof line - length - 1 ? (size_t)added : sizeof line - length - 2;
    if (log_about != NULL)
        syslog(strcmp(word, " ") == 0 ? LOG_NOTICE : LOG_WARNING, "%s: %.*s", log_about, (int)(length - text), line + text);
    line[length++] = '\n';
    if (log_has_room(most) && write(STDERR_FILENO, line, length) < 0)
        return; /* nowhere to say it */
}

void log_line(const char *format, ...)
{
    va_list more;
    va_start(more, format);
    log_write(" ", LOG_LINE_MOST, format, more);
    va_end(more);
}

void log_warning(const char *format, ...)
{
    va_list more;
    va_start(more, format);
    log_write(LOG_WARNING_WORD, LOG_WARNING_MOST, format, more);
    va_end(more);
}
