/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* shunt doctor: checks of a host and of a root before a job meets what is wrong. Each check says what it found in a sentence.
 */

#include <stdbool.h>
#include <stddef.h>

#include "cli/json.h"

enum doctor_finding { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM };

struct doctor {
    bool as_json;
    struct json json;
    bool has_problem;
};

void doctor_begin(struct doctor *, bool as_json);
void doctor_end(struct doctor *);
/* One finding: which check, of what, and the sentence. */
void doctor_say(struct doctor *, enum doctor_finding, const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What to do about an error (-errno) that says nothing of what was looked for, since this host or a file system was short of
 * something, or failed; else `other`. */
const char *doctor_remedy(int error, const char *other);
/* Is the file system of that directory another host's? 1; 0; -errno: it cannot be told. */
int doctor_has_server(const char *path);

/* doctor_host.c: kernel, libc, run directory, shuntd, preload, FUSE. */
void doctor_check_host(struct doctor *);
/* doctor_root.c: a directory, its file system and its mount. It makes a directory of its own there, and removes it. */
void doctor_check_root(struct doctor *, const char *root);
/* doctor_network.c: interfaces, and whether these hosts answer. */
void doctor_check_network(struct doctor *, char *const *hosts, size_t count);
