/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a root is, apart from its path: SHUNT_ROOT_ID, which the commands set next to SHUNT_ROOT and every program hands on, so
 * that one in another mount namespace knows the root wherever that is to be seen. For each root, separated by `:`,
 *
 *     DEVICE-INODE-BIRTH-USER-NAMESPACE-BOOT/PATH
 *
 * in hexadecimal: the directory's identity; whose session it is; the mount namespace in which the root's path leads to it; a
 * number for this boot of this host, on another one it says nothing; and where it is within its file system, or nothing. An
 * empty one is not known. Async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "index/record.h"

struct origin {
    uint64_t device;
    struct dirid id;
    uint64_t user, namespace, boot;
    const char *within; /* into the text that was read, not terminated */
    size_t within_length;
};

/* Pure: the text of the `number`-th root, from 0. False: it is not known. */
bool origin_read(struct origin *, const char *text, unsigned number);
/* That of an open directory. `room`, of PATH_MAX bytes, is scratch memory. Adds nothing where it cannot be told. */
void origin_write(struct text *, int directory, char *room);
/* Is this process in another mount namespace than that one, on the same host? True where that cannot be told. */
bool origin_is_elsewhere(const struct origin *);
