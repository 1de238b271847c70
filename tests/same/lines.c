/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "same.h"

#define LINES_MAX 1024

static char *lines[LINES_MAX];
static size_t count;

void lines_add(const char *format, ...)
{
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    if (count < LINES_MAX && vasprintf(&lines[count], format, arguments) >= 0)
        count++;
    va_end(arguments);
    errno = error;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void lines_forget(void)
{
    int error = errno;
    while (count > 0)
        free(lines[--count]);
    errno = error;
}

void lines_tell(bool sorted)
{
    if (sorted)
        qsort(lines, count, sizeof *lines, by_text);
    detail(" %zu:", count);
    for (size_t i = 0; i < count; i++)
        detail_bytes(lines[i], strlen(lines[i]));
    lines_forget();
}

const char *lines_path(const char *path, const char *start)
{
    static char text[16384];
    size_t common = strlen(start);
    bool begins = strncmp(path, start, common) == 0;
    snprintf(text, sizeof text, "%s%s", begins ? "^" : "", path + (begins ? common : 0));
    return text;
}
