/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* traced PROGRAM ARGUMENT...: starts PROGRAM as a debugger does, by a shell, with itself as the tracer, and prints which
 * program it is each time it is told that the process has executed one: by SIGTRAP, since it asked for nothing else. */

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void traced_begin(char **words)
{
    char *all[64] = {"sh", "-c", "exec \"$@\"", "sh"};
    for (int i = 0; i < 59 && words[i] != NULL; i++)
        all[4 + i] = words[i];
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execv("/bin/sh", all);
    _exit(127);
}

static void traced_say(pid_t child)
{
    char link[40], name[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", child);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    printf("executes %s\n", strrchr(name, '/'));
    fflush(stdout);
}

int main(int count, char **words)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        traced_begin(words + 1);
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) == SIGTRAP)
            traced_say(child);
        ptrace(PTRACE_CONT, child, NULL, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
    }
    printf("status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
