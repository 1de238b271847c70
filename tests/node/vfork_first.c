/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* vfork_first NAME [fork]: the first that this program asks of the working directory is asked by a vfork
 * child, which then becomes another program and ends; meanwhile this one makes and removes files. With
 * `fork`, all of that is done by a child of fork. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 200

static int make_and_remove(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    return fd < 0 || close(fd) < 0 || unlink(name) < 0;
}

static int vfork_first_work(const char *name)
{
    char *const words[] = {"true", NULL};
    int status, failed = 0;
    pid_t child = vfork();
    if (child == 0) {
        if (access(name, R_OK) < 0)
            execv("/bin/true", words);
        _exit(99);
    }
    for (int i = 0; i < FILES && !failed; i++)
        failed = make_and_remove(name);
    if (failed)
        printf("%s: %s\n", name, strerror(errno));
    return child < 0 || waitpid(child, &status, 0) != child || status != 0 || failed;
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 2)
        return 2;
    if (argc == 2)
        return vfork_first_work(argv[1]);
    pid_t child = fork();
    if (child == 0)
        _exit(vfork_first_work(argv[1]));
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}
