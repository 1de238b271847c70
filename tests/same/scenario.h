/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Cases that are a little story each: several calls in the fixture's directory, told as details. Each begins
 * with the fixture as it was made; its answer is told like that of a call. */

#include <stddef.h>

struct scenario {
    const char *name;
    long (*run)(void);
};

void scenarios_run(const char *part, const struct scenario *, size_t count);
#define SCENARIOS(PART, TABLE) scenarios_run(PART, TABLE, sizeof(TABLE) / sizeof *(TABLE))

/* Runs it in a child and answers what it answered there, errno too. Details do not come back. */
long in_child(long (*run)(void *), void *argument);
/* How a call ended, in a word: "done", or the name of its error. */
const char *ended(long result);
