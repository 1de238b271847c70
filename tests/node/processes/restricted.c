/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* restricted FILE...: a program that allows itself only the system calls that looking at files needs, and is killed for others.
 * With EXECUTES in its environment it has another one look, which it executes by the same filter and what that takes. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "few_calls.h"

int main(int count, char *arguments[])
{
    static struct stat seen;
    static char bytes[16];
    const char *executes = getenv("EXECUTES");
    if (executes != NULL && strcmp(executes, "done") != 0) {
        const int refuses = strcmp(executes, "refusing") == 0;
        if (setenv("EXECUTES", "done", 1) == 0 && few_calls_begin_executing(refuses) == 0)
            execv(arguments[0], arguments);
        return 8;
    }
    if (executes == NULL && few_calls_begin() != 0)
        return 9;
    for (int i = 1; i < count; i++) {
        const int fd = open(arguments[i], O_RDONLY);
        printf("%d %ld\n", stat(arguments[i], &seen), (long)(fd < 0 ? -1 : read(fd, bytes, sizeof bytes)));
    }
    return 0;
}
