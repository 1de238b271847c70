/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/step.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "programs/rank.h"
#include "serving/kept.h"

bool step_is_tracked(const char *cgroups)
{
    static const char step[] = "/step_";
    for (const char *at = cgroups; (at = strstr(at, step)) != NULL; at += strlen(step))
        if (at[strlen(step)] >= '0' && at[strlen(step)] <= '9')
            return true;
    return false;
}

static void step_read(const char *path, char *to, size_t size)
{
    FILE *file = fopen(path, "re");
    to[file != NULL ? fread(to, 1, size - 1, file) : 0] = '\0';
    if (file != NULL)
        fclose(file);
}

bool step_is_mine(void)
{
    char path[64], parent[32], cgroups[8192];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
    step_read(path, parent, sizeof parent);
    step_read("/proc/self/cgroup", cgroups, sizeof cgroups);
    return strcmp(parent, "slurmstepd\n") == 0 && step_is_tracked(cgroups);
}

static void step_say(const char *root)
{
    if (rank_number(environ) <= 0) /* for all of its tasks */
        error_report(
            "%s: is served as long as this step runs, which stays until its daemons end (run 'shunt stop --all --root %s' "
            "to end them; in a script put it in the background: 'srun --overlap shunt start ... &')",
            root, root);
}

int step_stay(const struct roots *roots, const char *node)
{
    struct kept kept = {0};
    struct signal_wait watch;
    uint64_t end = 0;
    if (signal_wait_init(&watch) < 0)
        return STATUS_FAILED;
    kept_find(&kept);
    step_say(roots->paths[0]);
    while (kept.count > 0 && (end == 0 || clock_monotonic() < end)) {
        const int signal = signal_wait_next(&watch, NULL, 0, end != 0 ? 1000 : -1);
        if (signal == SIGINT || (signal > 0 && end != 0))
            break;
        if (signal > 0)
            end = clock_monotonic() + KEPT_GRACE * CLOCK_SECOND;
        kept_reap(&kept);
    }
    kept_end(&kept, &watch, node);
    signal_wait_finish(&watch);
    return kept.count == 0 ? STATUS_OK : STATUS_FAILED;
}
