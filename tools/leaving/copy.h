/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Moving a redirected file into the trunk where no rename leads there: another file system, another mount,
 * another project quota.
 *
 * The copy has a name of shunt's own until it is whole: data with its holes, owner, mode, ACLs, extended
 * attributes and times, on disk, read back and compared. Then it gets its name by link(2), which replaces
 * nothing, and the original goes. Killed at any point, it leaves the original, or the copy, or both and a
 * sign that they are one file (listing_init). */

enum copy_refusal {
    COPY_LINKED = 1, /* the file has other names, which would keep the original */
    COPY_UNLIKE,     /* owner, mode, ACLs or extended attributes cannot be those of the original */
    COPY_CHANGED,    /* somebody wrote to the original meanwhile */
    COPY_DIFFERS,    /* what was read back is not what was written */
};

/* Moves the file `original` of a leaf into the directory (both may be O_PATH), under `name`. 0, a positive
 * enum copy_refusal, -EEXIST if that name is taken, -EINTR if the tool is to stop, or another -errno; in all
 * those cases everything is as it was. */
int copy_into(int leaf, const char *original, int directory, const char *name);

/* Why, as a part of a sentence about the file. */
const char *copy_words(enum copy_refusal);
