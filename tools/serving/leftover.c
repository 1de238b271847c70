/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/leftover.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "request/request.h"
#include "session/run_dirs.h"

bool leftover_serves(pid_t pid, const char *root, const char *node)
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

struct leftover {
    const char *root, *node;
    int (*each)(void *context, pid_t pid, const char *run_dir);
    void *context;
    int count;
    bool failed;
};

static int leftover_look_at(void *context, const char *run_dir)
{
    struct leftover *leftover = context;
    pid_t pid = request_serving_process(run_dir);
    if (pid == 0 || !leftover_serves(pid, leftover->root, leftover->node))
        return 0;
    leftover->failed |= leftover->each(leftover->context, pid, run_dir) < 0;
    leftover->count++;
    return 0;
}

int leftover_each(const char *root, const char *node, int (*each)(void *context, pid_t pid, const char *run_dir), void *context)
{
    struct leftover leftover = {root, node, each, context, 0, false};
    struct config config;
    char all[SESSION_RUN_MAX];
    struct text t;
    config_read(&config, environ);
    text_init(&t, all, sizeof all);
    session_run_dirs(&t, config.run_base, geteuid());
    if (text_ok(&t))
        run_dirs_each(all, leftover_look_at, &leftover);
    return leftover.failed ? -1 : leftover.count;
}
