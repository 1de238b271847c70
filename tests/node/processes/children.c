/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* children DIRECTORY KIND: 200 children, as many as 32 at once, look up and make names while their parent
 * makes more. KIND is the call they come from. Prints what went wrong, by child. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../old_libc.h"

#define CHILDREN 200
#define AT_ONCE 32

static int children_make(char kind, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "%c%u", kind, number);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        return -1;
    ssize_t written = write(fd, name, strlen(name));
    return close(fd) == 0 && written == (ssize_t)strlen(name) ? 0 : -1;
}

static int is_whole(char kind, unsigned number)
{
    char name[32], content[32] = "";
    snprintf(name, sizeof name, "%c%u", kind, number);
    int fd = open(name, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, content, sizeof content - 1);
    close(fd);
    return length > 0 && strcmp(content, name) == 0;
}

/* What a child does; its exit status is the number of the first thing that was wrong. */
static int children_live(unsigned me)
{
    char from[32], to[32];
    struct stat st;
    if (!is_whole('p', me) || !is_whole('p', me / 2))
        return 1;
    if (stat("absent", &st) == 0 || errno != ENOENT)
        return 2;
    if (children_make('c', me) < 0 || !is_whole('c', me))
        return 3;
    snprintf(from, sizeof from, "c%u", me);
    snprintf(to, sizeof to, "d%u", me);
    if (me % 2 == 0 && rename(from, to) < 0)
        return 4;
    if (me % 3 == 0 && unlink(me % 2 == 0 ? to : from) < 0)
        return 5;
    return stat(me % 2 == 0 || me % 3 == 0 ? from : to, &st) == 0 || errno != ENOENT ? 6 : 0;
}

static unsigned next;

static int children_start(void *unused)
{
    _exit(children_live(next));
}

static pid_t by_fork(void)
{
    return fork();
}

static pid_t by_raw_fork(void)
{
#ifdef SYS_fork
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

static pid_t by_raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t by_clone(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    return clone(children_start, stack + sizeof stack, SIGCHLD, NULL);
}

/* A grandchild: what a daemon is. Its parent hands its status on. */
static pid_t by_two_forks(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    struct stat st;
    if (stat("p0", &st) < 0)
        _exit(7);
    pid_t grandchild = fork();
    if (grandchild == 0)
        return 0;
    int status;
    waitpid(grandchild, &status, 0);
    _exit(WEXITSTATUS(status));
}

static const struct {
    const char *name;
    pid_t (*start)(void);
} kinds[] = {
    {"fork", by_fork},
    {"_Fork", _Fork},
    {"syscall(fork)", by_raw_fork},
    {"syscall(clone)", by_raw_clone},
    {"clone", by_clone},
    {"fork of fork", by_two_forks},
};

static pid_t (*kind_of(const char *name))(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].start;
    fprintf(stderr, "there is no kind %s\n", name);
    exit(2);
}

static unsigned children_reap(void)
{
    int status = 0;
    pid_t child = wait(&status);
    if (child > 0 && status != 0)
        printf("a child: %s %d\n", WIFSIGNALED(status) ? "signal" : "wrong at",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return child > 0;
}

int main(int argc, char **argv)
{
    unsigned alive = 0;
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    pid_t (*begin)(void) = kind_of(argv[2]);
    for (next = 0; next < CHILDREN; next++) {
        if (children_make('p', next) < 0)
            printf("p%u: %s\n", next, strerror(errno));
        fflush(stdout);
        pid_t child = begin();
        if (child == 0)
            children_start(NULL);
        if (child < 0)
            printf("no child %u: %s\n", next, strerror(errno));
        if (++alive == AT_ONCE)
            alive -= children_reap();
    }
    while (children_reap())
        continue;
    for (unsigned i = 0; i < CHILDREN; i++)
        if (!is_whole('p', i))
            printf("p%u is not whole\n", i);
    puts("done");
    return 0;
}
