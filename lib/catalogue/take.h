/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Puts a physical directory, or a marker, into the catalogue as it is on disk. FORMAT.md says why this proves it. Allocates. */

#include "catalogue/catalogue.h"

/* Within a tick of a kernel's clock (10 ms at HZ=100, the coarsest there is) a directory may change twice and have the same
 * times: so long, in ns, a stamp must have stood before the names are read. */
#define TAKE_STANDS (50 * 1000 * 1000)

/* The stamp that an open directory or marker has now. 1; 0: it proves nothing on this file system; -errno. */
int take_stamp(int directory, struct catalogue_stamp *);
/* The same of what has a name in a directory; a symbolic link's is its own. */
int take_stamp_at(int directory, const char *name, struct catalogue_stamp *);

enum {
    TAKE_IN_ROOT = 1, /* it is the root's trunk, in which `.shunt` is not a name */
    TAKE_PUBLIC = 2,  /* CATALOGUE_PUBLIC, if its own permissions say so as well */
};
/* `directory` is open for reading, at its beginning; it had the stamp `stood` TAKE_STANDS ago, or that one is old
 * (catalogue_stamp_is_old). 1: its names are put; 0: it has been changed, cannot be read, or something in it is being written
 * by shunt, and nothing is put; -errno of catalogue_put. */
int take(struct catalogue *, int directory, const struct catalogue_stamp *stood, unsigned flags);
/* As `take`, of what a marker says. `file` is open for reading, at its beginning. */
int take_marker(struct catalogue *, int file, const struct catalogue_stamp *stood);
