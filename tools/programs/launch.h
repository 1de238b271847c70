/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Bringing a command under the shim: its environment, and the proof that the shim gets loaded.
 *
 * The tool executes itself under the shim, as the hidden subcommand LAUNCH_PROVE. That looks for the shim in its
 * own memory map and only then executes the command: by then through the shim, which finds commands in a
 * branch, too. */

#include <stdbool.h>

#include "cli/roots.h"
#include "session/session.h"

#define LAUNCH_PROVE "prove"
enum { LAUNCH_NO_SHIM = 125, LAUNCH_NOT_EXECUTABLE = 126, LAUNCH_NOT_FOUND = 127 };

/* Replaces this process. Returns only on failure: LAUNCH_NO_SHIM, after a complaint. `asks`: a command is run only if all roots
 * are served. */
int launch_exec(const struct roots *, const char *node, char **command, bool asks);
#define LAUNCH_SERVED "served"

/* What is served in a command: `own`, and what the shim in this process serves, which it serves in the command as well. A node
 * of that name must find the daemons of the latter; NULL: that is proved later. 0, or -1 after a complaint; `all` is to be
 * finished. */
int launch_roots_for(const struct roots *own, const char *node, struct roots *all);
/* Makes this process's environment that of a command under the shim. 0, or -1 after a complaint. */
int launch_set_environment(const struct roots *, const char *node);
/* Says in this process's environment what the roots are, for programs in other mount namespaces (names/origin.h). 0, or -1
 * after a complaint. */
int launch_set_root_ids(const struct roots *);

/* What LD_PRELOAD must be: the list `others` (NULL: none) and the shim after it. To be freed; NULL after a
 * complaint. Where the helper of static programs is goes into this process's environment. */
char *launch_preload(const char *others);

/* Is the shim in this process? */
#define LAUNCH_PRELOAD_NAME "libshunt_preload.so"
bool launch_shim_is_loaded(void);

/* Has a root nothing of shunt's? Asked of the kernel, since the shim may be in this process. */
bool launch_is_plain(const char *root);

/* Does a daemon of this host serve as that member? Also one that has crashed and is about to be started again, for which
 * programs wait. */
bool launch_has_daemon(const struct session_member *);

/* Replaces this process by a command. Returns only on failure, after a complaint: LAUNCH_NOT_EXECUTABLE or
 * LAUNCH_NOT_FOUND. */
int launch_command(char **words);

/* The same for what is shunt's own, with errno: where the shim is in this process, it hands the settings of its session on to
 * each program that is executed through it, also those that are taken out of the environment. */
void launch_natively(char **words);

/* Takes the shim out of this process's LD_PRELOAD. */
void launch_without_shim(void);
