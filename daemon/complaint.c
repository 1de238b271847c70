/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "complaint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int complain(int code, const char *format, ...)
{
    va_list more;
    va_start(more, format);
    fputs("shuntd: ", stderr);
    vfprintf(stderr, format, more);
    fputc('\n', stderr);
    va_end(more);
    return code;
}

int complain_interrupted(void)
{
    return complain(-EINTR, "interrupted before it served (start it again)");
}
