/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Agents: processes that make calls when they are told to, and say what that took.
 *
 * Their program is started as `PROGRAM DIRECTORY PROCESSES [WORD]...`, prints `ready`, and then reads lines
 *
 *     CALL PREFIX FIRST COUNT ACTIVE
 *
 * Processes 0 to ACTIVE - 1 make the call, at the same time, for DIRECTORY/PREFIX-PROCESS-NUMBER, NUMBER from
 * FIRST on, COUNT times; the others sleep. For each of them a line tells nanoseconds, those on a processor,
 * and how often it was taken off one. It ends with its input; when a call fails, with a status and a word
 * about it. */

struct agents_call {
    const char *name;
    /* -1 and errno when it failed. */
    int (*make)(const char *directory, const char *path);
};

/* `calls` end with one without a name. `begin` (may be NULL) is called first in every process. The status of
 * main. */
int agents_main(int argc, char *argv[], const struct agents_call *calls, void (*begin)(int argc, char *argv[]));
