/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The sessions of a host as OpenMetrics text (version 1.0.0), for the collector of a node exporter. */

#include "serving/sessions.h"

/* To standard output. Sessions that were counted (sessions_count) have their daemons' counters, too. */
void metrics_print(const struct sessions *);
