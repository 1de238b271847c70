/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* Slurm's last: mpirun's ranks inherit it from a batch script. Such a script itself has SLURM_PROCID and
 * SLURM_NTASKS, too, without being a rank; only srun says how many a step has. */
static const struct {
    const char *number, *count;
} variables[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

static int read_pair(const char *number, const char *count, uint32_t most, struct rank *rank)
{
    uint64_t i = 0, n;
    if (config_number_parse(count, most, &n) < 0)
        return -EINVAL;
    if (strcmp(number, "0") != 0 && config_number_parse(number, n - 1, &i) < 0)
        return -EINVAL;
    *rank = (struct rank){(uint32_t)i, (uint32_t)n};
    return 0;
}

int rank_parse(const char *text, uint32_t most, struct rank *rank)
{
    char number[16] = "";
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (long)sizeof number)
        return -EINVAL;
    memcpy(number, text, (size_t)(slash - text));
    return read_pair(number, slash + 1, most, rank);
}

void rank_find(char *const environment[], uint32_t most, struct rank *rank)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *number = config_value(environment, variables[i].number, NULL);
        const char *count = config_value(environment, variables[i].count, NULL);
        if (number && count && read_pair(number, count, most, rank) == 0)
            return;
    }
}

struct seat {
    uint32_t place, node, rank; /* the place on the node */
};

static int compare_seats(const void *a, const void *b)
{
    const struct seat *one = a, *other = b;
    if (one->place != other->place)
        return one->place < other->place ? -1 : 1;
    return one->node < other->node ? -1 : one->node > other->node;
}

int rank_neighbours(const uint32_t *node, uint32_t count, uint32_t *next)
{
    struct seat *seats = calloc(count, sizeof *seats);
    if (!seats)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        seats[i] = (struct seat){0, node[i], i};
        for (uint32_t j = 0; j < i; j++)
            seats[i].place += node[j] == node[i];
    }
    qsort(seats, count, sizeof *seats, compare_seats);
    for (uint32_t i = 0; i < count; i++)
        next[seats[i].rank] = seats[(i + 1) % count].rank;
    free(seats);
    return 0;
}
