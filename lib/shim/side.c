/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/side.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "shim/root_of.h"

void side_done(struct side *side)
{
    if (side->is_managed)
        target_done(&side->target);
}

int side_follow_again(struct side *side, int code)
{
    int how = side->is_managed ? target_follow_again(&side->target) : TARGET_MANAGED;
    if (how == TARGET_MANAGED)
        return code;
    target_done(&side->target);
    side->is_managed = false;
    return how < 0 ? how : SIDE_FOREIGN;
}

int side_parent_outside(const struct side *side)
{
    const int code = process_check_path(side->path);
    if (code != 0)
        return code;
    return side->path[0] == '\0' ? -ENOENT : target_outside(side->at, side->path);
}

bool side_ends_in_dots(const struct side *side)
{
    struct path_parts parts;
    path_split(&parts, side->path);
    return parts.last != PATH_NAME;
}

int side_stat_outside(const struct side *side, char *text, bool *slash, struct statx *stat)
{
    struct path_parts parts;
    path_split(&parts, side->path);
    size_t length = parts.parent_length + parts.length;
    if (length >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(text, side->path, length);
    text[length] = '\0';
    *slash = parts.slash;
    return sys_statx(side->at, text, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, stat);
}

/* The parent's path, as text. False: it is too long to be one. */
static bool side_parent_text(const struct side *side, char *text)
{
    struct path_parts parts;
    if (strnlen(side->path, PATH_MAX) == PATH_MAX)
        return false;
    path_split(&parts, side->path);
    return path_parent_text(side->path, parts.parent_length, text) == 0;
}

/* The mount through which the parent is reached; 0: the kernel does not say. */
static uint64_t side_mount(const struct side *side, char *text)
{
    struct statx stat;
    if (side->is_managed)
        return side->target.mount;
    return side_parent_text(side, text) && sys_statx(side->at, text, 0, STATX_MNT_ID, &stat) == 0 ? mount_of(&stat) : 0;
}

bool side_are_across(const struct side *from, const struct side *to)
{
    char *text = (from->is_managed ? from : to)->target.scratch->text[0];
    uint64_t one = side_mount(from, text), two = side_mount(to, text);
    return one != 0 && two != 0 && one != two;
}

bool side_parent_is_writable(struct side *side, char *text)
{
    if (side->is_managed)
        return target_parent_is_writable(&side->target);
    return !side_parent_text(side, text) || SYS4(SYS_faccessat2, side->at, text, W_OK | X_OK, AT_EACCESS) != -EACCES;
}

bool side_parent_is_read_only(const struct side *side, char *text)
{
    return side_parent_text(side, text) && SYS4(SYS_faccessat2, side->at, text, W_OK, 0) == -EROFS;
}

/* That the rename came to nothing is told and not waited for: until the daemon has heard it the index shows the name as held,
 * which says nothing of where its file is. */
static bool side_has_moved(struct target *t, long *code)
{
    if (*code == -ENOENT && target_was_away(t) && target_look(t) == 0)
        target_settled(t);
    return target_has_moved(t, code);
}

int side_missed(struct target *from, struct target *to, long code)
{
    long of_to = code;
    bool moved = from != NULL && side_has_moved(from, &code);
    moved |= to != NULL && side_has_moved(to, &of_to);
    return moved ? TARGET_RETRY : code != -ENOENT ? (int)code : (int)of_to;
}
