/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The benchmark itself: passes over the configurations by turns. */

#include "bench/conductor.h"
#include "bench/results.h"

/* Fills the results. 0, or -1 after a complaint or with the conductor's signal. Workers and daemons have
 * ended then, in order if it is 0. */
int run_all(struct conductor *, const struct site *, struct results *);
