/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Several processes take turns, each on a node of its own. All of them run through the same cases in the same
 * order; of each case one makes the call, and another one tells what it changed, and repairs the fixture: so
 * what one node did is looked at from another, and the next case finds what a third has made. Who does which
 * follows from the case's number alone. One process at a time is at work; all share one output. */

#include <stdbool.h>
#include <stddef.h>

/* `ring` is "ME/COUNT:READ,WRITE,READ,WRITE...": which of how many this is, and the ends of a pipe for each,
 * by which it is told that it is its turn. 0, or -1: that is none. */
int spread_join(const char *ring);
/* Is there more than this process? */
bool spread_is_on(void);

/* The fixture is made by the first process; all others look at it before the first case. */
void spread_begin(void);
/* After the last case: true in the first process, when all others are done. */
bool spread_end(void);

/* The next case: is its call this process's to make? Then spread_told is to be called. If the look at it is
 * this process's, that was done when this returns. */
bool spread_case(void);

/* How many there were, for all processes together. */
unsigned spread_cases(void);

/* What is to be done about a case when its line is told. */
enum spread_after {
    SPREAD_NOTHING,
    SPREAD_REPAIR,  /* tell what it changed, repair that */
    SPREAD_REBUILD, /* tell what it and those before it changed, make all again */
};
void spread_told(enum spread_after, long result);
/* The same for a process that is alone. */
void spread_look(enum spread_after, long result);
