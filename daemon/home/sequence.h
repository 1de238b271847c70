/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that come one after the other and differ in one number (ckpt.0001, ckpt.0002; rank7-10.h5, rank7-20.h5): which come
 * next. A number that began with a zero is at least as wide from then on, as printf has it.
 *
 * Pure; names are any bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

/* All zero: no name has come yet. */
struct sequence {
    int64_t number;              /* of the last name */
    int64_t step;                /* from the one before to it; 0: they are no sequence */
    unsigned run;                /* how often in a row it was the step before */
    uint16_t length, at, digits; /* of the last name: its length; where its number is, and how wide */
    bool padded;
    char name[RECORD_NAME_MAX];
};

/* The next name has come (of 1 to RECORD_NAME_MAX bytes): sequence->run. */
unsigned sequence_add(struct sequence *, const char *name, size_t length);
/* What comes `ahead` (1: the next) names later, if it goes on like that: its length, or 0, if none can be told. */
size_t sequence_predict(const struct sequence *, unsigned ahead, char to[RECORD_NAME_MAX]);
