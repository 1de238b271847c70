/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Every failure to start is one sentence on standard error, with its remedy in parentheses. */

/* The sentence without its end of line. Returns `code`. */
__attribute__((format(printf, 2, 3))) int complain(int code, const char *format, ...);
/* It was told to end before it served: -EINTR. */
int complain_interrupted(void);
