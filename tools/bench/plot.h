/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The rates as a picture, by gnuplot. */

#include <stdio.h>

#include "bench/results.h"

/* Is there a gnuplot, and a directory for each picture, as far as the plan needs them? To be asked before hours of measuring.
 * 0, or -1 after a complaint. */
int plot_check(const struct plan *);
/* All that the plan names. 0, or -1 after a complaint. */
int plot_all(struct results *);
/* The words for gnuplot, for one picture. */
void plot_write(struct results *, const char *path, FILE *to);
