/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* Slurm's last: mpirun's ranks inherit it from a batch script. Such a script itself has SLURM_PROCID and
 * SLURM_NTASKS, too, without being a rank; only srun says how many a step has. */
static const struct {
    const char *number, *count;
} variables[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                 {"PMIX_RANK", NULL},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

#define VARIABLES (sizeof variables / sizeof *variables)

static int rank_read_pair(const char *number, const char *count, uint32_t most, struct rank *rank)
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
    return rank_read_pair(number, slash + 1, most, rank);
}

void rank_find(char *const environment[], uint32_t most, struct rank *rank)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *number = config_value(environment, variables[i].number, NULL);
        const char *count = variables[i].count ? config_value(environment, variables[i].count, NULL) : NULL;
        if (number && count && rank_read_pair(number, count, most, rank) == 0)
            return;
    }
}

long rank_number(char *const environment[])
{
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = config_value(environment, variables[i].number, NULL);
        char *end;
        long number = value ? strtol(value, &end, 10) : -1;
        if (value && *end == '\0' && number >= 0)
            return number;
    }
    return -1;
}
