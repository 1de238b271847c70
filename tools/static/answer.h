/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One call: it goes on in the kernel, or is done here, by the function of libc's that the shim stands before. */

#include <linux/seccomp.h>

#include "arguments.h"

enum answer_way {
    ANSWER_RESULT,     /* or -errno */
    ANSWER_DESCRIPTOR, /* of ours, to be the caller's and its result; within answer_find alone */
    ANSWER_GOES_ON     /* in the kernel */
};
struct answer {
    enum answer_way way;
    long value;
    uint64_t flags; /* with which the descriptor was opened */
};

/* True: what is to be answered, found without waiting for anything. False: it is ours, with the arguments as they were looked
 * at. */
bool answer_at_once(const struct seccomp_notif *, struct arguments *, struct answer *);
/* Does it; waits for the caller, which takes its descriptor. Nothing of the caller's is held afterwards. From several threads,
 * each with arguments, a working directory and a umask of its own (unshare(CLONE_FS)). */
struct answer answer_find(int listener, const struct seccomp_notif *, struct arguments *);
void answer_give(int listener, uint64_t id, const struct answer *);
/* Before the first answer: the caller that is answered gets what this descriptor, which does not block, holds by then. */
void answer_listen(int said);
/* Callers may have other rights than this process, another root, or be hidden from it: each is looked at. */
void answer_trust_nobody(void);
/* With EIO, since nothing does it any more; the caller of the first one is told so. */
void answer_refuse(int listener, const struct seccomp_notif *);
