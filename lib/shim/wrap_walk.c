/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* ftw, nftw and fts: libc's in a process without roots, walk.h's in one with roots, which a process has or
 * has not from its start.
 *
 * libc keeps an older version of nftw for programs linked before 2004, which ignored flags that it did not
 * know. They get the newer one, like everybody, and EINVAL for such flags. */

#include "shim/wrap.h"
#include "shim/walk.h"

#define SAME_FIELD(FIELD) (offsetof(FTSENT, FIELD) == offsetof(FTSENT64, FIELD))

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(FTS) == sizeof(FTS64) &&
                   sizeof(FTSENT) == sizeof(FTSENT64) && SAME_FIELD(fts_level) && SAME_FIELD(fts_statp) && SAME_FIELD(fts_name),
               "64-bit Linux only");

#define FTW_ALL (FTW_PHYS | FTW_MOUNT | FTW_CHDIR | FTW_DEPTH | FTW_ACTIONRETVAL)

WRAPPER int ftw(const char *path, __ftw_func_t visit, int descriptors)
{
    if (!process_has_roots())
        return REAL(ftw)(path, visit, descriptors);
    return walk_nftw(path, (struct walk_visitor){.ftw = visit}, descriptors, 0);
}

WRAPPER int ftw64(const char *path, __ftw64_func_t visit, int descriptors)
{
    if (!process_has_roots())
        return REAL(ftw64)(path, visit, descriptors);
    return walk_nftw(path, (struct walk_visitor){.ftw = (__ftw_func_t)visit}, descriptors, 0);
}

WRAPPER int nftw(const char *path, __nftw_func_t visit, int descriptors, int flags)
{
    if (!process_has_roots())
        return REAL(nftw)(path, visit, descriptors, flags);
    if (flags & ~FTW_ALL)
        return (int)wrap_answer(-EINVAL);
    return walk_nftw(path, (struct walk_visitor){.nftw = visit}, descriptors, flags);
}

WRAPPER int nftw64(const char *path, __nftw64_func_t visit, int descriptors, int flags)
{
    if (!process_has_roots())
        return REAL(nftw64)(path, visit, descriptors, flags);
    return nftw(path, (__nftw_func_t)visit, descriptors, flags);
}

WRAPPER FTS *fts_open(char *const *paths, int options, shim_fts_order *order)
{
    return process_has_roots() ? walk_fts_open(paths, options, order) : REAL(fts_open)(paths, options, order);
}

WRAPPER FTSENT *fts_read(FTS *tree)
{
    return process_has_roots() ? walk_fts_read(tree) : REAL(fts_read)(tree);
}

WRAPPER FTSENT *fts_children(FTS *tree, int options)
{
    return process_has_roots() ? walk_fts_children(tree, options) : REAL(fts_children)(tree, options);
}

WRAPPER int fts_set(FTS *tree, FTSENT *entry, int instruction)
{
    return process_has_roots() ? walk_fts_set(entry, instruction) : REAL(fts_set)(tree, entry, instruction);
}

WRAPPER int fts_close(FTS *tree)
{
    return process_has_roots() ? walk_fts_close(tree) : REAL(fts_close)(tree);
}

WRAPPER FTS64 *fts64_open(char *const *paths, int options, shim_fts64_order *order)
{
    return process_has_roots() ? (FTS64 *)walk_fts_open(paths, options, (shim_fts_order *)order)
                               : REAL(fts64_open)(paths, options, order);
}

WRAPPER FTSENT64 *fts64_read(FTS64 *tree)
{
    return process_has_roots() ? (FTSENT64 *)walk_fts_read((FTS *)tree) : REAL(fts64_read)(tree);
}

WRAPPER FTSENT64 *fts64_children(FTS64 *tree, int options)
{
    return process_has_roots() ? (FTSENT64 *)walk_fts_children((FTS *)tree, options) : REAL(fts64_children)(tree, options);
}

WRAPPER int fts64_set(FTS64 *tree, FTSENT64 *entry, int instruction)
{
    return process_has_roots() ? walk_fts_set((FTSENT *)entry, instruction) : REAL(fts64_set)(tree, entry, instruction);
}

WRAPPER int fts64_close(FTS64 *tree)
{
    return process_has_roots() ? walk_fts_close((FTS *)tree) : REAL(fts64_close)(tree);
}
