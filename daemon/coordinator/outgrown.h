/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A directory in use cannot be evicted (evict.h), and grows. Above three quarters of SHUNT_INDEX_LIMIT the largest one is
 * spilled if it has an eighth or more: its names go to a file, and processes ask for them (home/entries.c). The limit holds
 * where directories that are smaller do not take it together. */

#include "shuntd.h"

/* Once a batch, after evict_step. 0 or a fatal -errno. */
int outgrown_step(struct shuntd *);
