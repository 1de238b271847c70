/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Claiming a name at its home while the file system is changed. */

#include "base/sys.h"
#include "shim/interrupts.h"
#include "shim/target.h"

/* Runs CALL, from the request that claims the name to the notice that gives it back, without a signal that could do harm. */
#define CLAIM_UNINTERRUPTED(CALL)                                                                                              \
    ({                                                                                                                         \
        const struct interrupts_held held_ = interrupts_hold();                                                                \
        int code_ = (CALL);                                                                                                    \
        interrupts_let(held_);                                                                                                 \
        code_;                                                                                                                 \
    })

/* A file that the home does not know is not removed without its knowledge: somebody may have made it just now, or be at work
 * on the name. It is adopted first: 0, it is known now; -ENOENT: there is none; or another -errno. */
int claim_know(struct target *);
/* MESSAGE_UNLINK or MESSAGE_PROMOTE: 0, it is held and real_at/real_path is where it is; MESSAGE_ABSENT; TARGET_RETRY: the path
 * leads elsewhere (target_follow_again); or -errno. */
int claim_name(struct target *, uint16_t type);
/* The same, whatever is there, made known first: 0; -ENOENT: nothing is; TARGET_RETRY; or another -errno. */
int claim_found(struct target *);
/* The name alone of the directory that was seen at real_at/real_path: 0; -ESTALE: it has gone, or another one is there;
 * TARGET_RETRY; or another -errno. */
int claim_name_of_directory(struct target *, struct dirid);
/* Before the directory that the target names at real_at/real_path goes: 0, it is held and bare; MESSAGE_NOT_EMPTY; or as
 * claim_name_of_directory. stat is the directory's, with inode number and birth time. */
int claim_directory(struct target *, const struct statx *stat);
