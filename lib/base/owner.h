/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The process whose memory this is. A vfork child has its parent's: what it puts there stays when it has
 * gone, and must not be booked under its own id. Only the process itself can say so: owner_is_me, in a
 * process that was executed or forked, before it makes vfork children. Async-signal-safe. */

#include <sys/types.h>

/* Where nobody has said so: the process that asks. */
pid_t owner_pid(void);
void owner_is_me(void);
/* The effective user that it was when it, or one that forked it, first said so: a process that has restricted its system calls
 * may not ask. Where nobody has said so: that of the process that asks. */
uid_t owner_uid(void);
