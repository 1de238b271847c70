/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What Slurm knows of a job that has ended, or not. */

#include <stdbool.h>
#include <stddef.h>

#include "batch/scheduler.h"

/* What `scontrol -o show job ID` said of that job in that run (a job that is requeued keeps its id). GONE means that it has
 * ended; whether its processes have depends on nodes and settings. Pure. */
enum scheduler_word slurm_of_job(const char *said, int status, const char *id, unsigned long run);
/* `scontrol show config`: is this the cluster, and does it end all processes of a job, as with cgroups? Pure. */
bool slurm_is_cluster(const char *said, const char *cluster);
bool slurm_tracks_all(const char *said);
/* `scontrol -o show node`: has that node answered lately, and could it end all processes of its jobs? Pure. */
bool slurm_node_is_well(const char *said, const char *node);

/* Asks for a job, and then for the nodes of those members whose `mine` is set. One word for each of these. */
void slurm_ask(const struct scheduler_job *, const struct session *, const bool *mine, enum scheduler_word *words);
