/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Whose files are the neighbour's: of the process that stands on the next node in the same place, as far as
 * nodes have equally many, so that every process is the neighbour of one. Pure. */

#include <stdint.h>

/* `node` is each process's, `next` gets each one's neighbour. 0 or -ENOMEM. */
int neighbour_of(const uint32_t *node, uint32_t count, uint32_t *next);
