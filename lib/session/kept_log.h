/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Logs of daemons that have ended, where something went wrong, in a directory of the user's:
 * shuntd-YYYYMMDDTHHMMSSZ-NODE-PID.log. The oldest go when there are more than KEPT_LOG_MOST. Blocking;
 * thread-safe; not for signal handlers. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEPT_LOG_MOST 100

/* The log of a run directory, to be read also after that is gone; -errno. */
int kept_log_open(const char *run_dir);
/* Copies such a log (which it closes) if there is a warning in it; makes the directory. 1: `path` says where it is; 0: there is
 * none; -errno. */
int kept_log_keep(const char *directory, int log, const char *node, pid_t pid, char path[PATH_MAX]);
/* Was that daemon's kept, not before `since` (ns since 1970)? `path` says where. */
bool kept_log_find(const char *directory, const char *node, pid_t pid, uint64_t since, char path[PATH_MAX]);
