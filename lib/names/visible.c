/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "names/visible.h"

#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "names/mounts.h"
#include "union/identity.h"
#include "union/layout.h"

/* Nothing may be mounted over what is shunt's own. A root that is plain has none. */
static bool visible_has_its_own(int fd, const struct statx *root)
{
    struct statx own;
    return sys_statx(fd, LAYOUT_OWN, AT_SYMLINK_NOFOLLOW, STATX_INO, &own) != 0 || names_device(&own) == names_device(root);
}

static bool visible_is_root(const struct names_root *root, int at, const char *path, int flags, struct statx *stat)
{
    return identity_stat(root->id, at, path, flags, stat) == 0 && names_device(stat) == root->device &&
           dirid_equal(dirid_of(stat), root->id);
}

/* A process that has no descriptor left, or may open nothing, sees it by its path alone. */
bool visible_is_at(const struct names_root *root, const char *path)
{
    struct statx stat;
    int fd = sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return visible_is_root(root, AT_FDCWD, path, 0, &stat);
    const bool is_it = visible_is_root(root, fd, "", AT_EMPTY_PATH, &stat) && visible_has_its_own(fd, &stat);
    sys_close(fd);
    return is_it;
}

struct looking {
    const struct names_root *root;
    char *to;
    bool has_part;
};

/* A mount may lie under another one. */
static bool visible_is_part(const struct names_root *root, uint64_t mount, const char *path)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, path, 0, STATX_TYPE | STATX_MNT_ID, &stat) == 0 && (stat.stx_mode & S_IFMT) == S_IFDIR &&
           names_device(&stat) == root->device && (!(stat.stx_mask & STATX_MNT_ID) || stat.stx_mnt_id == mount);
}

static int visible_look(void *context, uint64_t mount, const char *path, bool is_part)
{
    struct looking *looking = context;
    if (is_part) {
        looking->has_part = looking->has_part || visible_is_part(looking->root, mount, path);
        return 0;
    }
    if (!visible_is_at(looking->root, path))
        return 0;
    strcpy(looking->to, path);
    return 1;
}

enum names_sight visible_find(const struct names_root *root, char to[PATH_MAX])
{
    struct looking looking = {.root = root, .to = to};
    if (root->within[0] == '\0')
        return NAMES_PART;
    const int code = mounts_lead_to(root->within, visible_look, &looking);
    return code == 1 ? NAMES_SEEN : code < 0 || looking.has_part ? NAMES_PART : NAMES_HIDDEN;
}

bool visible_find_above(const struct names_root *root, const char *path, char to[PATH_MAX])
{
    const size_t length = strlen(path);
    if (path[0] != '/' || length >= PATH_MAX)
        return false;
    memcpy(to, path, length + 1);
    for (char *end; (end = strrchr(to, '/')) != NULL && end > to;) {
        *end = '\0';
        if (visible_is_at(root, to))
            return true;
    }
    return false;
}
