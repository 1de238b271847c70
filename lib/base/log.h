/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One line on standard error, with the time, for the daemon (whose standard error is its log file), and perhaps to syslog.
 * Thread-safe: a line is one write. Not for signal handlers, not for the shim. */

#include <stdbool.h>

#define LOG_LINE_MOST (1u << 20)                      /* bytes of a file: then it takes no line more, */
#define LOG_WARNING_MOST (LOG_LINE_MOST + (1u << 17)) /* and then no warning */
#define LOG_WARNING_WORD " warning: "                 /* after the time */

__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);
/* Something went wrong: a log with such a line is kept when the daemon ends (session/kept_log.h). */
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
/* From now on lines go to syslog(3) as well, and name what they are about; kept by reference. */
void log_to_syslog(const char *about);
/* May standard error take more: is it no file, or one of less than that many bytes? Async-signal-safe. */
bool log_has_room(unsigned most);
