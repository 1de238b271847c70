/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* libshunt: what a program may ask of shunt.
 *
 * A program needs none of this to run under shunt. It is for programs that want to know: where a file really
 * lives (for a tool of the file system that must be given the real path), what a directory's union holds, and
 * to make it durable. It reads the plain trees, with no daemon and with or without the shim; what a running
 * session has promised but not yet made is not in it.
 *
 * Paths are relative to the working directory; symbolic links are followed as the kernel would. Every
 * function that answers int answers 0 or a positive value, or a negative errno:
 *
 *     -ENOTUNIQ   the path lies in no root of shunt (there is no .shunt in a directory above it)
 *     -EINVAL     it lies in shunt's own .shunt
 *     -EBADMSG    a directory's .shunt-dir is no marker: see `shunt fsck`
 *
 * All are thread-safe, and take up to 64 KiB of stack; none may be called in a signal handler. A list that is open at a fork is
 * open in the child as well, and each of the two closes its own. errno is not touched. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHUNT_API __attribute__((visibility("default")))

/* "0.1.0". */
SHUNT_API const char *shunt_version(void);

/* The real path of a file or directory, terminated. 0; -ENAMETOOLONG: it does not fit into `size` bytes. */
SHUNT_API int shunt_where(const char *path, char *to, size_t size);

/* A directory's union, as it was when it was opened. One thread at a time may use one. */
struct shunt_list;

struct shunt_entry {
    const char *name;   /* in the union; valid until shunt_list_close, as the other texts are */
    const char *branch; /* NODE.N, the branch that holds it; NULL: the trunk */
    uint64_t ino;
    uint32_t leaf;      /* of the mirror in the branch; 0 in the trunk */
    unsigned char type; /* DT_REG and so on, of <dirent.h> */
};

/* *list is to be closed by the caller; NULL on failure. */
SHUNT_API int shunt_list_open(struct shunt_list **list, const char *path);
/* 1 with an entry, 0 at the end. Sorted by name, without `.` and `..`. -EACCES at the end: these are the names in branches; the
 * trunk's directory may be searched, but not read. */
SHUNT_API int shunt_list_next(struct shunt_list *, struct shunt_entry *);
/* Takes NULL. */
SHUNT_API void shunt_list_close(struct shunt_list *);

/* fsync of a directory and of its mirrors in every branch: its names are then as durable as the file system
 * makes them. Of a file, the directory that holds it. 0, or the first failure. */
SHUNT_API int shunt_sync(const char *path);

#ifdef __cplusplus
}
#endif
