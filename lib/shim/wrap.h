/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How a wrapper is built. A wrapper is an exported function with libc's name. It finds the target; what is not ours
 * goes to the real function with the arguments as they came; what is ours goes to an operation, whose -errno
 * becomes errno. errno is set in wrappers only. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "shim/operations.h"
#include "shim/process.h"
#include "shim/real.h"

/* Not in the headers of glibc 2.31. */
int execveat(int at, const char *path, char *const arguments[], char *const environment[], int flags);

#define WRAPPER __attribute__((visibility("default")))

static inline long wrap_answer(long result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* The target_want of a call that does nothing but TARGET_CALL, and follows a link at the end unless its flags
 * say AT_SYMLINK_NOFOLLOW. */
static inline unsigned wrap_follow(int flags)
{
    return TARGET_LOOKS | (flags & AT_SYMLINK_NOFOLLOW ? 0 : TARGET_FOLLOW);
}

/* A call about one path. REAL is the original call; OURS is what to do with the target `t`, which it
 * consumes. A native ENOENT may be a path that reaches a root through a symbolic link from outside: then it
 * is ours after all. The target is on the stack only where the path may be ours. */
#define WRAPPER_PATH(AT, PATH, WANT, REAL, OURS)                                                                               \
    ({                                                                                                                         \
        struct target *t = NULL;                                                                                               \
        struct scratch *seen_ = NULL;                                                                                          \
        long answer_;                                                                                                          \
        int how_ = TARGET_FIND(t, seen_, AT, PATH, WANT);                                                                      \
        if (__builtin_expect(how_ == TARGET_MANAGED, 0)) {                                                                     \
            answer_ = wrap_answer(OURS);                                                                                       \
        } else if (__builtin_expect(how_ < 0 && how_ != -ENOTDIR && how_ != -ELOOP, 0)) {                                      \
            answer_ = wrap_answer(how_);                                                                                       \
        } else {                                                                                                               \
            answer_ = (REAL);                                                                                                  \
            if (__builtin_expect(answer_ == -1, 0) && errno == ENOENT) {                                                       \
                if (how_ >= 0 && !((WANT)&TARGET_MAKES) && !target_is_dead_end(AT, PATH, WANT))                                \
                    how_ = target_find_alias(t = t != NULL ? t : TARGET_ROOM, AT, PATH, WANT);                                 \
                if (how_ == TARGET_MANAGED)                                                                                    \
                    answer_ = wrap_answer(OURS);                                                                               \
                else if (how_ < 0) /* the kernel objects to nothing else */                                                    \
                    errno = -how_;                                                                                             \
            }                                                                                                                  \
        }                                                                                                                      \
        answer_;                                                                                                               \
    })

/* Runs CALL on the target's real place, and gives it back. */
#define WRAPPER_THERE(CALL) WRAPPER_DONE(TARGET_CALL(t, CALL))
/* The same where CALL uses both real_at and real_path, and does nothing but look. */
#define WRAPPER_LOOK(CALL) WRAPPER_DONE(TARGET_LOOK(t, CALL))
#define WRAPPER_DONE(CALLED)                                                                                                   \
    ({                                                                                                                         \
        long there_ = (CALLED);                                                                                                \
        target_done(t);                                                                                                        \
        there_;                                                                                                                \
    })

/* Pointers that glibc's headers declare nonnull may be NULL all the same, and then the kernel says EFAULT:
 * the compiler must not know. */
#define WRAPPER_LAUNDER(P) __asm__("" : "+r"(P))
