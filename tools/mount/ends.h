/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The signals that end the server: SIGHUP, SIGINT and SIGTERM, but those that are ignored (nohup). */

#include <sys/types.h>

struct fuse_session;

/* From here on they wait until it is known which process serves. Threads that begin meanwhile never get them. */
void ends_block(void);
/* In the process that leaves: ends it by a signal that has come, and the server with it; comes back if there was none. */
void ends_pass_to(pid_t server);
/* In the main thread: they end fuse_session_loop_mt, also such as have come. 0 or -errno. */
int ends_take(struct fuse_session *session);
/* When that is over. */
void ends_are_over(void);
