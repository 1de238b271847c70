/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/beside.h"

#include <fcntl.h>

#include "base/sys.h"
#include "shim/prefilter.h"
#include "shim/process.h"
#include "shim/root_of.h"

bool beside_is_on_a_root_device(uint64_t device)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (shim_state.roots[i].device == device)
            return true;
    return false;
}

/* Not inlined, as what comes next: neither is on the stack of the other. */
__attribute__((noinline)) bool beside_is_mount_of_roots(struct scratch *s, uint64_t device, uint64_t mount)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (shim_state.roots[i].device == device &&
            (sys_statx(AT_FDCWD, shim_state.roots[i].path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &s->end.seen) != 0 ||
             mount_of(&s->end.seen) != mount))
            return false;
    return mount != 0;
}

__attribute__((noinline)) bool beside_has_place(struct scratch *s, int fd)
{
    return names_read_place(fd, s->real) == 0 && prefilter_text(NULL, s->real) == PATH_FOREIGN;
}

/* Nor are these two, which come one after the other. The index of an attached root alone is asked, without waiting.
 */
__attribute__((noinline)) bool beside_is_known(const struct scratch_seen *seen)
{
    for (const struct names_root *root = shim_state.roots; root < shim_state.roots + shim_state.process.count; root++)
        if (root->device == seen->device && names_knows(root, &seen->dir))
            return true;
    return false;
}

__attribute__((noinline)) bool beside_is_placed(struct scratch *s, int at, const char *path, int flags)
{
    if (!beside_is_mount_of_roots(s, s->seen.device, s->seen.mount))
        return false;
    const int fd = path[0] == '\0' ? at : sys_openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC | flags, 0);
    if (fd < 0)
        return false;
    const bool is_beside = beside_has_place(s, fd);
    if (fd != at)
        sys_close(fd);
    return is_beside;
}
