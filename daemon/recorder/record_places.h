/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where the physical directories are that this daemon has put into the catalogue or found proven there, so that those that are
 * gone can be dropped. The recorder's thread alone uses it. */

#include <stdbool.h>
#include <stddef.h>

#include "index/record.h"

struct record_places;

struct record_places *record_places_create(void); /* NULL: out of memory */
/* Takes NULL. */
void record_places_destroy(struct record_places *);

/* A look at all of them begins: none has been seen. */
void record_places_begin(struct record_places *);
/* This one has been seen, there. 0 or -ENOMEM. */
int record_places_see(struct record_places *, struct dirid, const char *path);
/* Those that have not been seen in this look: `is_gone` answers whether it is to be forgotten. */
void record_places_sweep(struct record_places *, bool (*is_gone)(void *context, struct dirid, const char *path), void *context);
