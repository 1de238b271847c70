/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leftover.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "request/request.h"
#include "session/session.h"

/* Is that process a shuntd which was told to serve that path? */
static bool leftover_serves(pid_t pid, const char *root, const char *node)
{
    char path[64], words[3 * PATH_MAX] = "";
    bool same_root = false, same_node = node == NULL;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = fread(words, 1, sizeof words - 1, file);
    fclose(file);
    const char *name = strrchr(words, '/');
    if (strcmp(name != NULL ? name + 1 : words, "shuntd") != 0)
        return false;
    for (const char *at = words; at < words + length;) {
        const char *next = at + strlen(at) + 1;
        same_root |= next < words + length && strcmp(at, "--root") == 0 && strcmp(next, root) == 0;
        same_node |= next < words + length && strcmp(at, "--node") == 0 && strcmp(next, node != NULL ? node : "") == 0;
        at = next;
    }
    return same_root && same_node;
}

static pid_t leftover_of(const char *run_dir)
{
    pid_t supervisor = request_supervisor(run_dir);
    return supervisor != 0 ? supervisor : request_daemon(run_dir);
}

int leftover_each(const char *root, const char *node, int (*each)(void *context, pid_t pid, const char *run_dir), void *context)
{
    struct config config;
    char above[PATH_MAX], run_dir[PATH_MAX + NAME_MAX + 2];
    int count = 0;
    bool failed = false;
    config_read(&config, environ);
    snprintf(above, sizeof above, "%s/shunt-%u", config.run_base, (unsigned)geteuid());
    DIR *all = opendir(above);
    for (struct dirent *one; all != NULL && (one = readdir(all)) != NULL;) {
        snprintf(run_dir, sizeof run_dir, "%s/%s", above, one->d_name);
        pid_t pid = one->d_name[0] != '.' ? leftover_of(run_dir) : 0;
        if (pid == 0 || !leftover_serves(pid, root, node))
            continue;
        failed |= each(context, pid, run_dir) < 0;
        count++;
    }
    if (all != NULL)
        closedir(all);
    return failed ? -1 : count;
}
