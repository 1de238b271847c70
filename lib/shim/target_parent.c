/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The directory in which a target's name is, as the path reaches it. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/kernel_abi.h"
#include "base/sys.h"
#include "path/path.h"
#include "shim/root_of.h"

/* Does its path lead to another directory by now, or to none? */
bool target_parent_has_changed(struct target *t)
{
    struct statx stat;
    char *text = t->scratch->text[0];
    return path_parent_text(t->path, t->parent_length, text) != 0 || root_of_identify(t->at, text, 0, &stat) != 0 ||
           !dirid_equal(dirid_of(&stat), t->dir) || mount_of(&stat) != t->mount;
}

/* The kernel says that a directory may not be changed before it says what is in it. */
bool target_parent_is_writable(struct target *t)
{
    char *text = t->scratch->text[0];
    if (path_parent_text(t->path, t->parent_length, text) != 0)
        return true;
    return SYS4(SYS_faccessat2, t->at, text, W_OK | X_OK, AT_EACCESS) != -EACCES;
}

bool target_parent_is_read_only(struct target *t)
{
    char *text = t->scratch->text[0];
    return path_parent_text(t->path, t->parent_length, text) == 0 &&
           SYS4(SYS_faccessat2, t->at, text, W_OK, AT_EACCESS) == -EROFS;
}
