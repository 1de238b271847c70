/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "programs/launch.h"

static void capture_become(char *const words[], int out, bool with_errors)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    launch_without_shim();
    dup2(none, STDIN_FILENO);
    dup2(with_errors ? out : none, STDERR_FILENO);
    if (with_errors)
        setenv("LC_ALL", "C", 1);
    dup2(out, STDOUT_FILENO);
    launch_natively((char **)words);
    _exit(127);
}

/* To the end of it, so that nobody writes into a closed pipe. */
static void capture_read_all(int from, char *to, size_t size)
{
    char rest[4096];
    size_t length = 0;
    for (ssize_t more = 1; more > 0 || (more < 0 && errno == EINTR);) {
        bool room = length + 1 < size;
        more = read(from, room ? to + length : rest, room ? size - 1 - length : sizeof rest);
        if (more > 0 && room)
            length += (size_t)more;
    }
    to[length] = '\0';
}

static int capture_run(char *const words[], char *to, size_t size, bool with_errors)
{
    int ends[2], status = 0;
    to[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fflush(NULL);
    pid_t child = fork();
    int error = child < 0 ? -errno : 0;
    if (child == 0)
        capture_become(words, ends[1], with_errors);
    close(ends[1]);
    if (child > 0)
        capture_read_all(ends[0], to, size);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (error < 0)
        return error;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int capture(char *const words[], char *to, size_t size)
{
    return capture_run(words, to, size, false);
}

int capture_all(char *const words[], char *to, size_t size)
{
    return capture_run(words, to, size, true);
}
