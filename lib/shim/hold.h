/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Holding a name at its home while the file system is changed. */

#include "base/sys.h"
#include "shim/target.h"

/* While a thread holds a name it takes no signal: a handler that wants the same name would wait for the end
 * of what it has interrupted. Runs CALL, from the question that holds the name to the word that gives it
 * back. */
#define HOLD_UNDISTURBED(CALL)                                                                                                 \
    ({                                                                                                                         \
        uint64_t before_ = sys_block_signals();                                                                                \
        int code_ = (CALL);                                                                                                    \
        sys_set_signals(before_);                                                                                              \
        code_;                                                                                                                 \
    })

/* A file that the home does not know is not removed without its knowledge: somebody may have made it just now, or be at work
 * on the name. It is adopted first: 0, it is known now; -ENOENT: there is none; or another -errno. */
int hold_know(struct target *);
/* MESSAGE_UNLINK or MESSAGE_PROMOTE: 0, it is held and real_at/real_path is where it is; MESSAGE_ABSENT; or
 * -errno. */
int hold_name(struct target *, uint16_t type);
/* Before the directory that the target names goes: 0, it is held and bare; MESSAGE_NOT_EMPTY, MESSAGE_ABSENT;
 * or -errno. stat is the directory's, with inode number and birth time. */
int hold_directory(struct target *, const struct statx *stat);
/* Moves it to the trunk unless it is there; looks it up again. 0 or -errno. */
int promote_target(struct target *);
