/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "acl.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <string.h>
#include <sys/xattr.h>

#include "same.h"
#include "../old_libc.h"

const struct acl default_acl = {
    {POSIX_ACL_XATTR_VERSION},
    {{ACL_USER_OBJ, 7, ACL_UNDEFINED_ID},
     {ACL_USER, 6, 42},
     {ACL_GROUP_OBJ, 5, ACL_UNDEFINED_ID},
     {ACL_MASK, 7, ACL_UNDEFINED_ID},
     {ACL_OTHER, 0, ACL_UNDEFINED_ID}},
};

void detail_acl(const char *path)
{
    unsigned char value[256];
    ssize_t length = getxattr(path, "system.posix_acl_access", value, sizeof value);
    if (length < 0) {
        detail(" no ACL (%s)", strerrorname_np(errno));
        return;
    }
    detail(" ACL");
    for (ssize_t i = 0; i < length; i++)
        detail(" %02x", value[i]);
}
