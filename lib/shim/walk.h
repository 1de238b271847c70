/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Walks down a tree, for processes that have roots: libc's own read directories by themselves and cannot be
 * told to do otherwise. These go through the wrappers of this library, so they walk outside of all roots, too,
 * and see the union wherever they come to one. They behave as glibc's do, down to errno and to where they
 * leave the working directory. Not for signal handlers. */

#include <fts.h>
#include <ftw.h>

#include "shim/real.h"

/* The visitor: one of the two. */
struct walk_visitor {
    __nftw_func_t nftw;
    __ftw_func_t ftw; /* knows FTW_F, FTW_D, FTW_DNR and FTW_NS only */
};

/* nftw, whose flags are all known. At most `descriptors` are open at once, but at least one. */
int walk_nftw(const char *start, struct walk_visitor, int descriptors, int flags);

/* The functions of <fts.h>. What one of them opened is for these to use and to close. */
FTS *walk_fts_open(char *const *paths, int options, shim_fts_order *);
FTSENT *walk_fts_read(FTS *);
FTSENT *walk_fts_children(FTS *, int options);
int walk_fts_set(FTSENT *, int instruction);
int walk_fts_close(FTS *);
