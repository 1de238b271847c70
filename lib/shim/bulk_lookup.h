/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that other nodes are home of: many are asked for at once, before this process looks at them. Async-signal-safe,
 * thread-safe. */

#include <stdbool.h>
#include <stdint.h>

struct target;

/* How the names of the directory that was looked at last were asked for: a guess at what comes next. It decides how many names
 * are asked for in one question, and never what is answered of one, so nothing has to invalidate it. What is told is remembered
 * by names_remember, with what invalidates that. */
struct bulk_lookup_state {
    uint64_t dir, last, prefetched;
    uint32_t count, asked, enough;
};

/* This process looks at a name of which this node knows nothing. True: many were asked for, and it may be remembered by now
 * (names_recall). Uses scratch->answer. */
bool bulk_lookup(struct target *);
