/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Lines that a case collects, to be told when it is over: in an order that does not depend on the order of a
 * directory, or as they came. errno is kept. */

#include <stdbool.h>
#include <stddef.h>

void lines_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As details of the case at hand; then there are none. */
void lines_tell(bool sorted);
void lines_forget(void);

/* The path as it is told: what it has in common with the text it began with is left out. Static memory. */
const char *lines_path(const char *path, const char *start);
