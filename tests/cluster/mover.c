/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* mover ROOT: moves whatever is in a branch to the trunk, again and again, however much it is used, until it is killed or
 * standard input ends, and writes a byte for each file. It is a client of the daemon of the node that SHUNT_NODE names. */

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/process.h"
#include "shim/promote.h"
#include "shim/visible_path.h"

/* ROOT/.shunt/b/BRANCH/MIRROR/LEAF/NAME */
static void mover_move(char *place)
{
    char path[PATH_MAX + NAME_MAX + 1];
    struct promote_quiet order = {.quiet_since = UINT64_MAX};
    char *name = strrchr(place, '/');
    *name = '\0';
    *strrchr(place, '/') = '\0';
    if (!visible_path_of_mirror(&shim_state.roots[0], strrchr(place, '/') + 1, path))
        return;
    snprintf(path + strlen(path), NAME_MAX + 2, "/%s", name + 1);
    const int code = promote_quiet(path, &order);
    if (code < 0 && code != -EEXIST)
        fprintf(stderr, "%s: %s\n", path, strerror(-code));
    if (code == PROMOTE_MOVED && write(STDOUT_FILENO, "m", 1) < 0)
        perror("mover");
}

static void mover_move_all(const char *pattern)
{
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        mover_move(found.gl_pathv[i]);
    globfree(&found);
}

int main(int count, char *words[])
{
    char pattern[PATH_MAX];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (count != 2 || setenv("SHUNT_ROOT", words[1], 1) != 0)
        return 2;
    process_start(environ);
    if (!process_has_roots())
        return 1;
    snprintf(pattern, sizeof pattern, "%s/.shunt/b/*/*/*/*", words[1]);
    while (poll(&input, 1, 0) == 0)
        mover_move_all(pattern);
    return 0;
}
