/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the server in the background has to say, and the preload library in it: standard error goes to the end of a file, or
 * line by line to syslog(3) if there is none. Standard input and output are /dev/null from then on. 0 or -errno. */
int log_redirect(const char *file);
