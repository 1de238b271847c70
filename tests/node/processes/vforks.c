/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* vforks DIRECTORY: children that share this program's memory, but neither its working directory nor its
 * descriptors, change both and then execute a program of the directory, as Python's subprocess does. What the
 * parent has must stay as it was. */

#include <sys/syscall.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../old_libc.h"

#define CHILDREN 100

static void vforks_check(int holds, const char *what)
{
    if (!holds)
        printf("%s: %s\n", what, strerror(errno));
}

static int vforks_make(const char *name, const char *content)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    ssize_t written = fd < 0 ? -1 : write(fd, content, strlen(content));
    close(fd);
    return written == (ssize_t)strlen(content);
}

/* Nothing here returns to the caller's frame: the parent goes on with it. */
static void vforks_run(const char *program, char *const arguments[], char *const environment[])
{
    pid_t child = vfork();
    if (child == 0) {
        if (chdir("sub") == 0 && close_range(3, ~0u, 0) == 0 && access("here", R_OK) == 0)
            execve(program, arguments, environment);
        _exit(99);
    }
    int status = -1;
    vforks_check(child > 0 && waitpid(child, &status, 0) == child, "vfork");
    vforks_check(WIFEXITED(status) && WEXITSTATUS(status) == (strcmp(program, "absent") == 0 ? 99 : 0), program);
}

static void look_around(const char *before, int fd, unsigned round)
{
    char now[PATH_MAX], name[32];
    struct stat st;
    vforks_check(getcwd(now, sizeof now) != NULL && strcmp(now, before) == 0, "the working directory");
    vforks_check(fstat(fd, &st) == 0 && st.st_size == 4, "the descriptor");
    vforks_check(stat("kept", &st) == 0 && stat("sub/here", &st) == 0, "what was made before");
    vforks_check(stat("here", &st) < 0 && errno == ENOENT, "what is in the child's directory only");
    snprintf(name, sizeof name, "made.%u", round);
    vforks_check(vforks_make(name, "x"), name);
}

int main(int argc, char **argv)
{
    char *const as_is[] = {"cat", "here", "/dev/null", NULL};
    char *const nothing[] = {NULL};
    char before[PATH_MAX];
    if (argc != 2 || chdir(argv[1]) != 0 || mkdir("sub", 0755) != 0)
        return 2;
    vforks_check(vforks_make("kept", "kept") && vforks_make("sub/here", "here\n"), "the files");
    vforks_check(system("cp /bin/cat sub/program") == 0, "the program");
    int fd = open("kept", O_RDONLY);
    vforks_check(getcwd(before, sizeof before) != NULL, "getcwd");
    for (unsigned round = 0; round < CHILDREN; round++) {
        vforks_run(round % 3 == 0   ? "./program"
                   : round % 3 == 1 ? "/bin/cat"
                                    : "absent",
                   as_is, round % 2 == 0 ? environ : nothing);
        look_around(before, fd, round);
    }
    puts("done");
    return 0;
}
