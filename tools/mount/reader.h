/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A root without a session of this user's on this host, to be read: the names are those of its plain directories, as `shunt ls`
 * reads them, with catalogues where they prove a directory. The permissions of the files decide who may read them.
 *
 * A listing is kept. A name that is in it is where it was, or is looked for again. That a name is absent is believed as long as
 * the times of all physical directories of that one are those from before the listing (stamps.h).
 *
 * Thread-safe: one lock. Its calls go by the library, if that is in this process. */

#include <stddef.h>

struct reader;
struct listing;

/* `root` is canonical. It lasts as long as the process. 0 or -errno. */
int reader_create(struct reader **, const char *root);
/* O_PATH of what an open directory of the root has under that name; -ENOENT, another -errno. */
int reader_open_name(struct reader *, int directory, const char *name);
/* Lists it now; listing_finish is the caller's. 0 or -errno. */
int reader_list(struct reader *, int directory, struct listing *);
