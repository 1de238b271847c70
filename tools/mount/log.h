/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the server in the background has to say, and the preload library in it. */

/* The file to append it to, which is opened before anything is mounted over it. -errno. */
int log_open(const char *file);
/* Standard error goes there; or, if `to` is -1, line by line to syslog(3), by a thread. Standard input and output are /dev/null
 * from then on. 0 or -errno. */
int log_redirect(int to);
