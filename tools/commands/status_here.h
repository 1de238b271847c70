/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* `shunt status` without a root: the sessions of this host. */

#include <stdbool.h>

enum status_here_form { STATUS_HERE_TABLE, STATUS_HERE_JSON, STATUS_HERE_METRICS };

/* The exit status. `counts`: with the counters of each daemon. */
int status_here(enum status_here_form, bool counts);
