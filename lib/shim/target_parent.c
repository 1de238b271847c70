/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The directory in which a target's name is, as the path reaches it. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/kernel_abi.h"
#include "base/sys.h"
#include "path/path.h"
#include "shim/process.h"
#include "shim/root_of.h"

/* Does its path lead to another directory by now, or to none? */
bool target_parent_has_changed(struct target *t)
{
    struct statx stat;
    char *text = t->scratch->text[0];
    return path_parent_text(t->path, t->parent_length, text) != 0 || root_of_identify(t->at, text, 0, &stat) != 0 ||
           !dirid_equal(dirid_of(&stat), t->dir) || mount_of(&stat) != t->mount;
}

static bool target_parent_some_are_kept(void)
{
    bool some = false;
    for (unsigned i = 0; i < shim_state.process.count; i++)
        some |= names_are_kept(&shim_state.roots[i]);
    return some;
}

bool target_refresh_way(int at, char *text)
{
    struct statx stat;
    if (!target_parent_some_are_kept())
        return false;
    sys_statx(at, text[0] == '/' ? "/" : ".", AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &stat);
    for (char *end = text; *end != '\0' && (end = strchr(end + 1, '/')) != NULL;) {
        *end = '\0';
        sys_statx(at, text, AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &stat);
        *end = '/';
    }
    return true;
}

bool target_way_changes(void)
{
    bool changes = false;
    for (unsigned i = 0; i < shim_state.process.count; i++)
        changes |= names_are_kept(&shim_state.roots[i]) && !request_are_places_kept(names_places(&shim_state.roots[i]));
    return changes;
}

/* Not inlined: what it has on the stack is not on that of a call elsewhere. */
__attribute__((noinline)) static void target_parent_refresh_way_to(int at, const char *path)
{
    struct names_root *root;
    struct path_parts parts;
    struct dirid id;
    const int code = root_of_directory(at, path, 0, &root, &id, NULL);
    struct scratch *scratch = code == -ESTALE || code == -ENOENT ? scratch_take() : NULL;
    if (scratch == NULL)
        return;
    path_split(&parts, path);
    if (path_parent_text(path, parts.parent_length, scratch->text[0]) == 0)
        target_refresh_way(at, scratch->text[0]);
    scratch_give(scratch);
}

void target_refresh_way_to(int at, const char *path)
{
    process_attach_roots(); /* a daemon says which names are kept */
    if (target_parent_some_are_kept())
        target_parent_refresh_way_to(at, path);
}

#define CLAIMS_LIKELY 4

bool target_pin_is_likely(void)
{
    return __atomic_load_n(&shim_state.process.claims_in_trunk, __ATOMIC_RELAXED) >= CLAIMS_LIKELY;
}

static void target_pin_learn(bool is_in_trunk)
{
    const uint32_t claims = __atomic_load_n(&shim_state.process.claims_in_trunk, __ATOMIC_RELAXED);
    const uint32_t next = !is_in_trunk ? 0 : claims < CLAIMS_LIKELY ? claims + 1 : claims;
    if (next != claims)
        __atomic_store_n(&shim_state.process.claims_in_trunk, next, __ATOMIC_RELAXED);
}

static int target_pin_astray(struct target *t)
{
    t->unseen = true;
    return TARGET_RETRY;
}

/* Of the parent. -ESTALE: its path leads to another directory; another error: no descriptor is to be had, or it leads to none.
 */
static int target_pin_open(struct target *t)
{
    struct statx stat;
    char *text = t->scratch->text[0];
    if (path_parent_text(t->path, t->parent_length, text) != 0)
        return -ENAMETOOLONG;
    int fd = sys_openat(t->at, text, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    if (root_of_identify(fd, "", AT_EMPTY_PATH, &stat) == 0 && dirid_equal(dirid_of(&stat), t->dir) &&
        mount_of(&stat) == t->mount)
        return fd;
    sys_close(fd);
    return -ESTALE;
}

bool target_pin_see(struct target *t)
{
    int fd = target_pin_open(t);
    t->pin = fd < 0 ? -1 : fd;
    return fd == -ESTALE || (fd < 0 && target_parent_has_changed(t));
}

int target_pin_in_trunk(struct target *t, int *at, const char **path)
{
    if (t->pin < 0 && !BROKEN("unpinned") && target_pin_see(t))
        return target_pin_astray(t);
    *at = t->pin >= 0 ? t->pin : t->at;
    *path = t->pin >= 0 ? t->path + t->parent_length : t->path;
    return 0;
}

int target_pin(struct target *t)
{
    target_pin_learn(!target_was_away(t));
    return target_was_away(t) ? 0 : target_pin_in_trunk(t, &t->real_at, &t->real_path);
}

int target_pin_both(struct target *t, struct target *other)
{
    int code = target_pin(t);
    if (code != 0 || t->pin < 0 || target_was_away(t) || target_was_away(other) || other->pin >= 0 ||
        !dirid_equal(t->dir, other->dir) || t->mount != other->mount)
        return code == 0 ? target_pin(other) : code;
    other->real_at = t->pin;
    other->real_path = other->path + other->parent_length;
    return 0;
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
