/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/kept.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"

#define PATIENCE 60 /* seconds for a daemon to write down its work */

void kept_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static pid_t kept_parent_of(const char *pid)
{
    char path[64], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) != 2)
        parent = 0;
    fclose(file);
    return parent;
}

void kept_find(struct kept *kept)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    for (struct dirent *entry; (entry = readdir(processes)) && kept->count < ROOTS_MAX;)
        if (atoi(entry->d_name) > 0 && kept_parent_of(entry->d_name) == getpid())
            kept->daemons[kept->count++] = atoi(entry->d_name);
    closedir(processes);
}

void kept_reap(struct kept *kept)
{
    for (size_t i = 0; i < kept->count;)
        if (waitpid(kept->daemons[i], NULL, WNOHANG) != 0)
            kept->daemons[i] = kept->daemons[--kept->count];
        else
            i++;
}

void kept_end(struct kept *kept, struct signal_wait *watch, const char *node)
{
    uint64_t end = clock_monotonic() + PATIENCE * CLOCK_SECOND;
    for (size_t i = 0; i < kept->count; i++)
        kill(kept->daemons[i], SIGTERM);
    for (kept_reap(kept); kept->count > 0 && clock_monotonic() < end; kept_reap(kept))
        signal_wait_next(watch, NULL, 0, 1000);
    for (size_t i = 0; i < kept->count; i++)
        error_report("%s: shuntd (process %d) has not ended after %d s (see its log; if it hangs, run 'kill -KILL %d')", node,
                     (int)kept->daemons[i], PATIENCE, (int)kept->daemons[i]);
}
