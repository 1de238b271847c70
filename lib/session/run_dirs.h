/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The run directories of a host, and what a daemon says of itself in its own. Blocking; not for signal handlers. */

#include "session/job.h"
#include "session/session.h"

/* Calls for each path that begins with this text, which goes on in the last component: that of session_run_dirs for all of a
 * user's, of session_run_dir without a node for those of one root. It ends with the first answer that is not 0, and gives that;
 * 0; -errno: the directory cannot be listed, -ENOENT if there is none. */
int run_dirs_each(const char *beginning, int (*each)(void *context, const char *run_dir), void *context);

#define RUN_DIRS_ABOUT "about"

/* RUN_DIR/about: what is served there, for the reader who finds it. */
struct run_dirs_about {
    char root[PATH_MAX];
    char node[LAYOUT_NODE_MAX + 1];
    uint64_t since; /* ns since 1970 */
    char scheduler[16];
    char job[SESSION_JOB_ID_MAX]; /* of the process that started the daemon; empty: none */
    char step[24];
};

/* Pure. -EBADMSG: it is none. */
int run_dirs_about_parse(struct run_dirs_about *, const char *text, size_t length);
/* Of a directory that was opened, which may be another user's. 0 or -errno. */
int run_dirs_about_read(int run_dir, struct run_dirs_about *);
/* Takes the place of one that is there. 0 or -errno. */
int run_dirs_about_write(const char *run_dir, const struct run_dirs_about *);
