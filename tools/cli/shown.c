/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/shown.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

int visible_path_join(const char *spelling, const char *name, char *to, size_t size)
{
    struct text t;
    size_t length = strlen(spelling);
    text_init(&t, to, size);
    text_add(&t, spelling);
    if (*name && (length == 0 || spelling[length - 1] != '/'))
        text_add(&t, "/");
    text_add(&t, name);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}

int visible_path_below(const char *spelling, const char *from, const char *path, char *to, size_t size)
{
    size_t skip = strcmp(from, ".") ? strlen(from) : 0;
    if (!strcmp(path, "."))
        path = "";
    path += skip;
    return visible_path_join(spelling, *path == '/' ? path + 1 : path, to, size);
}
