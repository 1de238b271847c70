/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is written to standard output and standard error between hear() and hear_end(), whether by stdio or by
 * the kernel's write. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct heard {
    int before;
    size_t length;
    char *words; /* terminated; until the next hear() */
};

static struct heard heard_out, heard_error;

static inline void heard_begin(struct heard *heard, int fd)
{
    int to = memfd_create("heard", MFD_CLOEXEC);
    free(heard->words);
    heard->words = NULL;
    heard->before = dup(fd);
    cr_assert(to >= 0 && heard->before >= 0 && dup2(to, fd) == fd);
    close(to);
}

static inline void heard_finish(struct heard *heard, int fd)
{
    struct stat stat;
    cr_assert_eq(fstat(fd, &stat), 0);
    heard->length = (size_t)stat.st_size;
    heard->words = calloc(heard->length + 1, 1);
    cr_assert_eq(pread(fd, heard->words, heard->length, 0), stat.st_size);
    cr_assert_eq(dup2(heard->before, fd), fd);
    close(heard->before);
}

static inline void hear(void)
{
    fflush(NULL);
    heard_begin(&heard_out, STDOUT_FILENO);
    heard_begin(&heard_error, STDERR_FILENO);
}

static inline void hear_end(void)
{
    fflush(NULL);
    heard_finish(&heard_error, STDERR_FILENO);
    heard_finish(&heard_out, STDOUT_FILENO);
}

static inline size_t heard_lines(const char *words)
{
    size_t lines = 0;
    for (; *words; words++)
        lines += *words == '\n';
    return lines;
}
