/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a worker does when it is told to: the calls that are measured. They are libc's, by way of the dynamic
 * loader, as any program's: under the shim they are the shim's. */

#include <stdint.h>

#include "bench/talk.h"

/* Natively below TOP/SITE_NATIVE, under shunt below TOP/SITE_ROOT. Ends early, with -ECANCELED, if anything
 * can be read from `calls`, or nothing more. The answer's error is also returned. */
int work_do(const char *top, int calls, const struct talk_order *, struct talk_answer *);
