/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which of several processes this one is, if somebody has started several: a launcher of MPI, Slurm or Flux,
 * which says so in the environment, or a person with --rank. Nothing of MPI is linked. Pure. */

#include <stdint.h>

struct rank {
    uint32_t number, count; /* count 0: nobody says */
};

/* I/N. 0 or -EINVAL. */
int rank_parse(const char *text, uint32_t most, struct rank *);
/* Left alone where no launcher says. */
void rank_find(char *const environment[], uint32_t most, struct rank *);

/* Whose files are the neighbour's: of the process that stands on the next node in the same place, as far as
 * nodes have equally many, so that every process is the neighbour of one. `node` is each rank's, `next` gets
 * each rank's neighbour. 0 or -ENOMEM. */
int rank_neighbours(const uint32_t *node, uint32_t count, uint32_t *next);
