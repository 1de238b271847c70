/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One call: it goes on in the kernel, or is done here, by the function of libc's that the shim stands before. */

#include <linux/seccomp.h>

#include "arguments.h"

/* Answers it. From several threads, each with arguments of its own, and with a working directory and umask of its own
 * (unshare(CLONE_FS)). */
void answer_call(int listener, const struct seccomp_notif *, struct arguments *);
/* With an error (negative). */
void answer_error(int listener, uint64_t id, int error);
