/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One line on standard error, with the time, for the daemon (whose standard error is its log file).
 * Thread-safe: a line is one write. Not for signal handlers, not for the shim. */

__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);
