/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One call: it goes on in the kernel, or is done here, by the function of libc's that the shim stands before. */

#include <linux/seccomp.h>

#include "arguments.h"

/* Lets it go on, if it is not ours: true. Else it is to be done here, with the arguments as they were looked at. */
bool answer_at_once(int listener, const struct seccomp_notif *, struct arguments *);
/* Does it, and answers. From several threads, each with arguments, a working directory and a umask of its own
 * (unshare(CLONE_FS)). */
void answer_here(int listener, const struct seccomp_notif *, struct arguments *);
/* Before the first answer: the caller that is answered gets what this descriptor, which does not block, holds by then. */
void answer_listen(int said);
/* Callers may have other rights than this process, another root, or be hidden from it: each is looked at. */
void answer_trust_nobody(void);
/* With an error (negative). */
void answer_error(int listener, uint64_t id, int error);
