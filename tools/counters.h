/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a daemon says of itself: its counters, and the directories whose births stay in the trunk although the
 * placement says otherwise. Asked over the road of this node. */

#include "json.h"
#include "request/request.h"

struct counters {
    struct request_answer answer; /* its text: `key value` a line, then `stays REASON PATH` */
};

/* 0, or -errno: the daemon cannot be asked (another user's, gone). */
int counters_ask(struct counters *, const char *run_dir);
void counters_print(const struct counters *);
/* "counters": {...}, "stays": [{"path", "reason"} ...] */
void counters_json(const struct counters *, struct json *);
