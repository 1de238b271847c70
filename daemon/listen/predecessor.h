/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The channel of a daemon that served here before and crashed (lib/request/channel.h). Its processes may be about to change
 * the file system by its leave, and nobody but that channel knows of it. */

#include <stdbool.h>
#include <sys/types.h>

#include "index/record.h"

/* A process that is about to, or 0: what is on disk is all that was done. 0, too, where there is no such channel. */
pid_t predecessor_holder(const char *run_dir);
/* The same of all run directories that begin with that text: those of the root's other nodes on this host, too. */
pid_t predecessor_holder_of_any(const char *beginning);
/* Does a daemon live whose run directory that is? */
bool predecessor_is_served(const char *run_dir);
/* Is there a process of this user's, besides this one, that has the channel of that run directory? */
bool predecessor_is_used(const char *run_dir);
/* Did the last one serve that root? True if it cannot be told. */
bool predecessor_served_root(const char *run_dir, struct dirid root);
/* No daemon will follow it: processes that wait for one are told so. */
void predecessor_abandon(const char *run_dir);
