/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Asks the scheduler. */

#include <stdbool.h>

/* Has that job ended? False, too, if it cannot be told: the scheduler has no command here that is known, or does not answer. */
bool job_state_has_ended(const char *scheduler, const char *job);
