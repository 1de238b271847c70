/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Where a directory is, and that its names are loaded. */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "names/climb.h"
#include "names/mounts.h"
#include "names/state.h"
#include "path/path.h"
#include "union/identity.h"
#include "union/layout.h"

#define LOAD_DEADLINE (600 * CLOCK_SECOND) /* a directory of ten million names on a busy file system */

/* Is a directory whose place is too long to be told beneath the root? Every step of the way up is asked; one
 * that may not be taken counts as leading there. */
static bool place_leads_up_to(const struct names_root *root, int directory)
{
    struct statx below = {0}, stat = {0};
    bool found = false, is_top = false;
    int at = directory;
    while (!found && !is_top) {
        int above = sys_openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (at != directory)
            sys_close(at);
        at = above;
        found = above < 0 || identity_stat(root->id, above, "", AT_EMPTY_PATH, &stat) != 0 ||
                (names_device(&stat) == root->device && dirid_equal(dirid_of(&stat), root->id));
        is_top = !found && stat.stx_ino == below.stx_ino && names_device(&stat) == names_device(&below);
        below = stat;
    }
    if (at >= 0)
        sys_close(at);
    return found;
}

/* The kernel does not say where the directory is; as names_place_of, but that it tells the place in `text`. Where it leads up
 * to the root, but cannot be named, nothing is to be done there. */
static int place_by_climbing(struct names_root *root, int directory, char *text)
{
    int code = climb_place(root, directory, text);
    if (code >= 0 || !place_leads_up_to(root, directory))
        return code > 0;
    return names_fail(root, -ESRCH);
}

/* `text` is the kernel's path of it. In a chroot the root's own leads nowhere, and nothing is told of the mounts outside. */
static int place_by_mounts(struct names_root *root, int directory, char *text)
{
    struct statx stat;
    int code = -ENOENT;
    if (root->sight != NAMES_SEEN && root->within[0] != '\0')
        code = mounts_place_within(root->within, directory, text);
    else if (root->sight == NAMES_SEEN && sys_statx(AT_FDCWD, root->path, 0, STATX_TYPE, &stat) == 0)
        code = mounts_place(root->path, directory, text);
    return code == -ENOENT ? place_by_climbing(root, directory, text) : code;
}

int names_place_of(struct names_root *root, int directory, char *text, const char **relative)
{
    int code = names_read_place(directory, text);
    if (code == -ENAMETOOLONG && !place_leads_up_to(root, directory))
        return 0;
    if (code != 0 && code != -ENOENT)
        return code;
    enum path_verdict verdict = code == 0 && root->sight == NAMES_SEEN ? path_verdict(root->path, NULL, text) : PATH_FOREIGN;
    size_t length = strlen(root->path);
    *relative = verdict == PATH_IS_ROOT ? "." : text + (length == 1 ? 1 : length + 1);
    const bool is_covered =
        root->sight == NAMES_SEEN && mounts_are_two(root->path, directory); /* another may be mounted over it */
    if (verdict == PATH_FOREIGN || is_covered) {
        code = code == 0 ? place_by_mounts(root, directory, text) : place_by_climbing(root, directory, text);
        if (code != 1)
            return code;
        *relative = text;
    }
    size_t own = sizeof LAYOUT_OWN - 1;
    bool is_own = strncmp(*relative, LAYOUT_OWN, own) == 0 && ((*relative)[own] == '/' || (*relative)[own] == '\0');
    return is_own ? 0 : layout_is_in_reach(length + 1 + strlen(*relative)) ? 1 : -ENAMETOOLONG;
}

/* It may take long while everybody is there; if another node is silent, the daemon says so. */
static int place_load_patiently(struct names_root *root, const struct message *load, int *result)
{
    int code = -ETIMEDOUT;
    for (uint64_t waited = 0; code == -ETIMEDOUT && waited < LOAD_DEADLINE; waited += root->deadline + 1) {
        code = request_result(root->channel, load, result, root->deadline);
        if (code == -ETIMEDOUT && names_ping(root->channel, root->deadline) != 0)
            return code;
    }
    return code;
}

static int place_load_as(struct names_root *root, struct dirid dir, const char *relative, uint16_t flags)
{
    const struct message load = {
        .type = MESSAGE_LOAD, .flags = flags, .dir = dir, .load.path = message_text(relative, strlen(relative))};
    int result = 0, code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = place_load_patiently(root, &load, &result);
    while (code == -EHOSTDOWN && names_attach_patiently(root) == 0);
    if (code == 0 && result == -ETIMEDOUT) /* a node is silent */
        code = result;
    return code == 0 ? result : names_fail(root, code);
}

int names_load(struct names_root *root, struct dirid dir, const char *relative)
{
    return place_load_as(root, dir, relative, 0);
}

int names_load_misplaced(struct names_root *root, struct dirid dir, const char *relative)
{
    return place_load_as(root, dir, relative, MESSAGE_MISPLACED);
}
