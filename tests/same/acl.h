/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Access control lists, as the bytes of the attributes they are: the program stays without libraries. */

#include <linux/posix_acl_xattr.h>

struct acl {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[5];
};

/* user::rwx user:42:rw- group::r-x mask::rwx other::--- */
extern const struct acl default_acl;

/* A detail: the access ACL of a file, or why there is none. */
void detail_acl(const char *path);
