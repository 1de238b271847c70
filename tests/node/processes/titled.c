/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* titled DIRECTORY PROGRAM...: writes a title over its arguments and the environment that it was executed with, as sshd and
 * PostgreSQL do, and executes programs with the file "kept" of the directory, with nothing in their environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the texts that follow each other from `at` on end. */
static char *titled_end(char *at, char *const texts[])
{
    for (; *texts != NULL && *texts == at; texts++)
        at += strlen(at) + 1;
    return at;
}

static void titled_write(char *argv[])
{
    static char *nothing[] = {NULL};
    char *end = titled_end(titled_end(argv[0], argv), environ);
    environ = nothing;
    memset(argv[0], 't', (size_t)(end - argv[0] - 1));
}

int main(int argc, char **argv)
{
    char *programs[8], kept[4096];
    snprintf(kept, sizeof kept, "%s/kept", argv[1]);
    const int count = argc - 2;
    for (int i = 0; i < count; i++)
        programs[i] = strdup(argv[i + 2]);
    titled_write(argv);
    for (int i = 0; i < count; i++) {
        const pid_t child = fork();
        if (child == 0) {
            execve(programs[i], (char *[]){"program", kept, NULL}, environ);
            _exit(99);
        }
        int status = -1;
        waitpid(child, &status, 0);
        printf("%d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
    return 0;
}
