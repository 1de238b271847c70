/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the kernel says of a file, in the words of this room. */

#include <errno.h>
#include <sys/sysmacros.h>

#include "base/sys.h"
#include "base/text.h"
#include "names/names.h"

uint64_t names_device(const struct statx *stat)
{
    return makedev(stat->stx_dev_major, stat->stx_dev_minor); /* as st_dev has it */
}

/* The kernel's own name for what a descriptor stands for. */
int names_read_place(int fd, char to[PATH_MAX])
{
    char link[40];
    struct text t;
    text_init(&t, link, sizeof link);
    text_descriptor(&t, fd);
    ssize_t length = sys_readlinkat(AT_FDCWD, link, to, PATH_MAX - 1);
    if (length < 0)
        return (int)length;
    to[length] = '\0';
    return to[0] == '/' ? 0 : -ENOENT;
}
