/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a daemon says of itself: its counters, the members that do not answer it, and the directories whose
 * creates stay in the trunk although the placement says otherwise. Asked over the channel of this node. */

#include "cli/json.h"
#include "request/request.h"

struct counters {
    struct request_answer answer; /* its text: `key value` a line, then `silent NODE`, `pinned REASON PATH` */
};

/* 0, or -errno: the daemon cannot be asked (another user's, gone). With `all` those of all daemons of its session are
 * added up; -ETIMEDOUT: not all have answered. */
int counters_ask(struct counters *, const char *run_dir, bool all);
void counters_print(const struct counters *);
/* One of them. False: the daemon has none of that name. */
bool counters_value(const struct counters *, const char *key, uint64_t *);
/* KEY: {...} */
void counters_json(const struct counters *, struct json *, const char *key);
/* "silent": [NODE ...], "pinned": [{"path", "reason"} ...] */
void counters_json_lists(const struct counters *, struct json *);
