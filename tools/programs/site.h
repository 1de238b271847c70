/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the site and the user have set for this host (config/settings.h), and what a command does where shunt is off. */

#include "cli/roots.h"
#include "config/settings.h"

/* Reads the files, once, and hands what they say on by this process's environment. `doubts`: settings that are not known are
 * named. 0; -1 after complaints. */
int site_read(bool doubts);
/* ... of what was read, also where that failed. */
const struct settings *site_settings(void);

/* The first variable of the environment whose value means nothing to the daemon or to the preloaded library, or NULL. */
const char *site_bad_variable(void);
void site_complain_variable(const char *name);
/* 0; -1 after a complaint about that one. A daemon that is started checks by itself; the library, in a program, says nothing.
 */
int site_check_variables(void);

bool site_is_off(void);
/* Where shunt is off: says so, and that `what` happens instead. 0, if no root has anything that only shunt shows; else -1,
 * after a complaint. */
int site_do_without(const struct roots *, const char *what);
/* ... and replaces this process by the command. The status: LAUNCH_NO_SHIM if it is refused, else as launch_command. */
int site_command(const struct roots *, char **words);
/* Is a root served by a session that began before? It goes on. */
bool site_is_served(const struct roots *);
