/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* handed DIRECTORY PROGRAM...: executes each program of the directory by a descriptor of it, in the ways there are to have one,
 * with this environment and with none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *nothing[] = {"PATH=/usr/bin:/bin", NULL};

static void handed_execute(int directory, const char *name, int flags, char **environment)
{
    char *words[] = {(char *)name, "word", NULL};
    const int fd = openat(directory, name, flags);
    fchdir(directory);
    if (fd >= 0)
        fexecve(fd, words, environment);
    printf("%s\n", strerror(errno));
    fflush(stdout);
    _exit(99);
}

static void handed_report(const char *name, int flags, const char *what, pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    printf("%s, flags %o, %s: status %d\n", name, flags, what, WEXITSTATUS(status));
    fflush(stdout);
}

/* What is at the name when it is executed is not what was opened. */
static void handed_execute_replaced(int directory, const char *name)
{
    char *words[] = {(char *)name, "word", NULL};
    const int fd = openat(directory, name, O_RDONLY);
    renameat(directory, name, directory, "away");
    close(openat(directory, name, O_WRONLY | O_CREAT, 0755));
    const pid_t child = fork();
    if (child == 0) {
        fexecve(fd, words, environ);
        _exit(99);
    }
    handed_report(name, O_RDONLY, "replaced", child);
    close(fd);
    renameat(directory, "away", directory, name);
}

int main(int argc, char **argv)
{
    static const int ways[] = {O_RDONLY, O_RDONLY | O_CLOEXEC, O_PATH};
    const int directory = open(argv[1], O_RDONLY | O_DIRECTORY);
    for (int i = 2; i < argc; i++) {
        for (unsigned way = 0; way < 2 * sizeof ways / sizeof *ways; way++) {
            const pid_t child = fork();
            if (child == 0)
                handed_execute(directory, argv[i], ways[way / 2], way % 2 ? nothing : environ);
            handed_report(argv[i], ways[way / 2], way % 2 ? "no environment" : "with it", child);
        }
        handed_execute_replaced(directory, argv[i]);
    }
    return 0;
}
