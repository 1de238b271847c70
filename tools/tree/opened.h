/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Directories that an export opens to their owner for as long as it works there, and their modes: what it writes down before,
 * so that the next one, or fsck, can close what one that was killed has left open. The holder of the root alone writes it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/sys.h"
#include "index/record.h"

struct opened_directory;

struct opened {
    size_t count;
    struct opened_directory *all; /* owned */
};

/* ROOT/.shunt/opened-INO-BIRTH, a symbolic link to the mode, in octal digits: it is there as a whole or not at all. 0 or
 * -errno. */
int opened_write(const char *root, struct dirid, mode_t mode);
void opened_remove(const char *root, struct dirid);
/* Pure. Is it called so? */
bool opened_is_one(const char *name);

/* All that a root has: 0 or -errno, with which it is not known what a root has. */
int opened_init(struct opened *, const char *root);
void opened_finish(struct opened *);
/* Is it one of them that nobody has given another mode since it was opened? Its mode before, without its type. */
bool opened_find(const struct opened *, struct dirid, mode_t now, mode_t *before);
/* Is it closed to this process, which is its owner and no superuser? Others who are refused are refused by the kernel. */
bool opened_has_to(const struct statx *);
/* What the owner of a directory of that mode opens it to. */
mode_t opened_mode(mode_t);
/* The descriptor may be O_PATH. 0 or -errno. */
int opened_give_mode(int directory, mode_t);
/* Opens a mirror that is to go, with its leaves, which have the mode that its directory had once. */
void opened_open_mirror(int branch, const char *mirror);
