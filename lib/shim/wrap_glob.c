/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* glob does the matching in libc, and reads directories through functions that its caller may give
 * (GLOB_ALTDIRFUNC): where there are roots, those are this library's own. What the caller has in these fields
 * is put back, so nothing shows. A caller that gives functions of its own has libc's glob with them.
 *
 * libc has two versions of glob; the real one is the newer (2.27). A program that was linked before that has
 * it, too: a dangling link then matches a pattern without magic. */

#include <glob.h>

#include "shim/wrap.h"

_Static_assert(sizeof(glob_t) == sizeof(glob64_t) && offsetof(glob_t, gl_stat) == offsetof(glob64_t, gl_stat),
               "64-bit Linux only");

typedef int glob_function(const char *, int, shim_glob_error *, glob_t *);

static void *wrap_glob_open_directory(const char *path)
{
    return opendir(path);
}

static struct dirent *wrap_glob_read_directory(void *stream)
{
    return readdir(stream);
}

static void wrap_glob_close_directory(void *stream)
{
    closedir(stream);
}

static void wrap_glob_give_functions(glob_t *to)
{
    to->gl_opendir = wrap_glob_open_directory;
    to->gl_readdir = wrap_glob_read_directory;
    to->gl_closedir = wrap_glob_close_directory;
    to->gl_stat = stat;
    to->gl_lstat = lstat;
}

static void wrap_glob_give_back(glob_t *to, const glob_t *before)
{
    to->gl_opendir = before->gl_opendir;
    to->gl_readdir = before->gl_readdir;
    to->gl_closedir = before->gl_closedir;
    to->gl_stat = before->gl_stat;
    to->gl_lstat = before->gl_lstat;
    /* libc writes gl_flags on some of its ways only; where it did, the flag that it was called with is there.
     */
    if (to->gl_flags & GLOB_ALTDIRFUNC)
        to->gl_flags &= ~GLOB_ALTDIRFUNC;
    else
        to->gl_flags = before->gl_flags;
}

static int wrap_glob_union(const char *pattern, int flags, shim_glob_error *error, glob_t *to, glob_function *libc)
{
    WRAPPER_LAUNDER(to);
    if (!process_has_roots() || to == NULL || (flags & GLOB_ALTDIRFUNC))
        return libc(pattern, flags, error, to);
    glob_t before = *to;
    wrap_glob_give_functions(to);
    to->gl_flags &= ~GLOB_ALTDIRFUNC;
    int result = libc(pattern, flags | GLOB_ALTDIRFUNC, error, to);
    wrap_glob_give_back(to, &before);
    return result;
}

WRAPPER int glob(const char *restrict pattern, int flags, shim_glob_error *error, glob_t *restrict to)
{
    return wrap_glob_union(pattern, flags, error, to, REAL(glob));
}

WRAPPER int glob64(const char *restrict pattern, int flags, shim_glob_error *error, glob64_t *restrict to)
{
    return wrap_glob_union(pattern, flags, error, (glob_t *)to, (glob_function *)REAL(glob64));
}
