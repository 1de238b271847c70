/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <fcntl.h>
#include <stdarg.h>

#include "shim/wrap.h"
#include "shim/wrap_open.h"

unsigned wrap_open_want(int flags)
{
    /* O_PATH makes little of other flags, and a directory is made by none. */
    bool creates = (flags & O_CREAT) && !(flags & (O_PATH | O_DIRECTORY));
    unsigned want = creates ? TARGET_MAKES | TARGET_ASKS | TARGET_LATER : TARGET_LOOKS;
    if (!(flags & O_NOFOLLOW) && !(creates && (flags & O_EXCL)))
        want |= TARGET_FOLLOW;
    return want;
}

/* The mode is there only if the flags say so; reading it otherwise would read rubbish, which is harmless, but
 * sanitizers are right to complain. */
#define MODE_OF(FLAGS)                                                                                                         \
    ({                                                                                                                         \
        mode_t mode_ = 0;                                                                                                      \
        if (((FLAGS)&O_CREAT) || ((FLAGS)&O_TMPFILE) == O_TMPFILE) {                                                           \
            va_list more_;                                                                                                     \
            va_start(more_, flags);                                                                                            \
            mode_ = va_arg(more_, mode_t);                                                                                     \
            va_end(more_);                                                                                                     \
        }                                                                                                                      \
        mode_;                                                                                                                 \
    })

#define OPEN(REAL)                                                                                                             \
    mode_t mode = MODE_OF(flags);                                                                                              \
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_open_want(flags), REAL(path, flags, mode), operate_open(t, flags, mode))

long wrap_openat(int at, const char *path, int flags, mode_t mode)
{
    return WRAPPER_PATH(at, path, wrap_open_want(flags), REAL(openat)(at, path, flags, mode), operate_open(t, flags, mode));
}

WRAPPER int open(const char *path, int flags, ...)
{
    WRAPPER_LAUNDER(path);
    OPEN(REAL(open));
}

WRAPPER int open64(const char *path, int flags, ...)
{
    WRAPPER_LAUNDER(path);
    OPEN(REAL(open64));
}

int __open(const char *path, int flags, ...);
WRAPPER int __open(const char *path, int flags, ...)
{
    OPEN(REAL(__open));
}

int __open64(const char *path, int flags, ...);
WRAPPER int __open64(const char *path, int flags, ...)
{
    OPEN(REAL(__open64));
}

/* openat and openat64, which are declared with `...`, without it: as syscall (wrap_syscall.c). The mode, if none was passed, is
 * what the register has, which nobody reads. */
int wrap_open_openat(int at, const char *path, int flags, mode_t mode) __asm__("openat");
WRAPPER int wrap_open_openat(int at, const char *path, int flags, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_open_want(flags), REAL(openat)(at, path, flags, mode),
                             operate_open(t, flags, mode));
}

int wrap_open_openat64(int at, const char *path, int flags, mode_t mode) __asm__("openat64");
WRAPPER int wrap_open_openat64(int at, const char *path, int flags, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_open_want(flags), REAL(openat64)(at, path, flags, mode),
                             operate_open(t, flags, mode));
}

/* The fortified spellings have no mode, and abort if one were needed: the real ones do that. */
static int wrap_open_needs_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int __open_2(const char *path, int flags);
WRAPPER int __open_2(const char *path, int flags)
{
    if (wrap_open_needs_mode(flags))
        return REAL(__open_2)(path, flags);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_open_want(flags), REAL(__open_2)(path, flags), operate_open(t, flags, 0));
}

int __open64_2(const char *path, int flags);
WRAPPER int __open64_2(const char *path, int flags)
{
    if (wrap_open_needs_mode(flags))
        return REAL(__open64_2)(path, flags);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_open_want(flags), REAL(__open64_2)(path, flags), operate_open(t, flags, 0));
}

int __openat_2(int at, const char *path, int flags);
WRAPPER int __openat_2(int at, const char *path, int flags)
{
    if (wrap_open_needs_mode(flags))
        return REAL(__openat_2)(at, path, flags);
    return (int)WRAPPER_PATH(at, path, wrap_open_want(flags), REAL(__openat_2)(at, path, flags), operate_open(t, flags, 0));
}

int __openat64_2(int at, const char *path, int flags);
WRAPPER int __openat64_2(int at, const char *path, int flags)
{
    if (wrap_open_needs_mode(flags))
        return REAL(__openat64_2)(at, path, flags);
    return (int)WRAPPER_PATH(at, path, wrap_open_want(flags), REAL(__openat64_2)(at, path, flags), operate_open(t, flags, 0));
}

#define CREAT (O_CREAT | O_WRONLY | O_TRUNC)

WRAPPER int creat(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_open_want(CREAT), REAL(creat)(path, mode), operate_open(t, CREAT, mode));
}

WRAPPER int creat64(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_open_want(CREAT), REAL(creat64)(path, mode), operate_open(t, CREAT, mode));
}
