/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* SIGINT, SIGTERM and SIGHUP ask long work to end between two steps. */

void stopping_catch(void);
/* The signal that came, or 0. */
int stopping(void);
/* Back to what the signals did before, the one that came forgotten. */
void stopping_release(void);
