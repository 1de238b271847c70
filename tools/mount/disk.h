/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A root without a session of this user's on this host, to be read: the names are those of its plain directories, as `shunt ls`
 * reads them, with catalogues where they prove a directory. Whoever has the permissions may do that.
 *
 * A listing is kept. A name that is in it is where it was, or is looked for again. That a name is absent is believed as long as
 * the times of all physical directories of that one are those from before the listing (stamps.h).
 *
 * Thread-safe: one lock. Its calls go by the library, if that is in this process. */

struct disk;
struct listing;

/* `root` is canonical. 0 or -errno; to be destroyed by disk_destroy, which takes NULL. */
int disk_create(struct disk **, const char *root);
void disk_destroy(struct disk *);
/* O_PATH of what an open directory of the root has under that name; -ENOENT, another -errno. */
int disk_open_name(struct disk *, int directory, const char *name);
/* Lists it now; listing_finish is the caller's. 0 or -errno. */
int disk_list(struct disk *, int directory, struct listing *);
