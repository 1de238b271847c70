/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Named points between the steps of an operation, where a test may stop, delay or end a process, and guards
 * that it may take away. In a build with the option `hooks` only; in any other they are nothing.
 *
 * SHUNT_HOOKS says what happens where, in the environment that a process was executed with:
 * PATTERN:ACTION[=VALUE], separated by commas; the pattern is a hook's name, or how names begin and a star.
 *
 *     delay=TIME   waits so long (us or ms)
 *     random=TIME  waits up to so long
 *     meet=PATH    the first one to come makes PATH.reached, and goes on when there is PATH.go
 *     tell=PATH    makes PATH.reached
 *     kill[=N[PATH]]   the process ends as by SIGKILL, when somebody comes there for the N-th time; but if there
 *                  is PATH.reached, which it makes: so one of several processes that follow each other dies
 *
 * SHUNT_BREAK names the guards that are taken away, separated by commas: a check of the tests breaks what
 * they test.
 *
 * Async-signal-safe; from any thread; a child of fork has what its parent had. */

#include <stdbool.h>

#ifdef WITH_HOOKS
void hook_reach(const char *name);
bool hook_breaks(const char *guard);
#define HOOK(NAME) hook_reach(NAME)
#define BROKEN(GUARD) hook_breaks(GUARD)
#else
#define HOOK(NAME) ((void)0)
#define BROKEN(GUARD) false
#endif
