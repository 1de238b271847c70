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
/* Left alone where no launcher says how many they are. */
void rank_find(char *const environment[], uint32_t most, struct rank *);
/* The number alone, which a launcher may tell without how many they are; -1: none does. */
long rank_number(char *const environment[]);
