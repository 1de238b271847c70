/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The order in which the names of a directory are put. */

#include <stddef.h>

#include "catalogue/catalogue.h"

/* By strcmp. Allocates, if it can, 32 bytes a name. */
void order_names(struct catalogue_name *, size_t count);
