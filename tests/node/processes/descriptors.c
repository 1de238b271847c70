/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* descriptors DIRECTORY MODE: a program that closes, overwrites or uses up all descriptors, and goes on.
 * Prints what became of each call. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT 1500
#define FEW 40

static void tell(const char *what, long result)
{
    printf("%s = %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static long make(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        return -1;
    ssize_t written = write(fd, "text", 4);
    close(fd);
    return written == 4 ? 0 : -1;
}

static long count_names(void)
{
    long count = 0;
    DIR *directory = opendir(".");
    if (directory == NULL)
        return -1;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* All that needs no descriptor of its own, and all that does. */
static void work(const char *when)
{
    struct stat st;
    printf("-- %s\n", when);
    tell("stat", stat("kept", &st));
    tell("stat of what is absent", stat("absent", &st));
    tell("access", access("kept", R_OK));
    tell("chmod", chmod("kept", 0640));
    tell("rename", rename("kept", "moved"));
    tell("rename back", rename("moved", "kept"));
    tell("link", link("kept", "linked"));
    tell("unlink", unlink("linked"));
    tell("mkdir", mkdir("made", 0755));
    tell("rmdir", rmdir("made"));
    tell("open of what is absent", open("absent", O_RDONLY));
    tell("make", make("fresh"));
    tell("stat of it", stat("fresh", &st));
    tell("unlink it", unlink("fresh"));
    printf("names: %ld\n", count_names());
}

static void close_each(void)
{
    work("before");
    for (int fd = 3; fd < LIMIT; fd++)
        close(fd);
    work("after close of each");
}

static void close_from(void)
{
    work("before");
    closefrom(3);
    work("after closefrom");
}

static void close_ranges(void)
{
    work("before");
    tell("close_range", close_range(3, ~0u, 0));
    work("after close_range");
    tell("CLOSE_RANGE_CLOEXEC", close_range(3, ~0u, CLOSE_RANGE_CLOEXEC));
    tell("CLOSE_RANGE_UNSHARE", close_range(3, ~0u, CLOSE_RANGE_UNSHARE));
    work("after all of them");
}

/* Even the three that everybody has: what is opened next is one of them. */
static void close_all(void)
{
    struct stat st;
    work("before");
    int out = fcntl(1, F_DUPFD, 100);
    for (int fd = 0; fd < 10; fd++)
        close(fd);
    int first = open("kept", O_RDONLY), second = open("second", O_WRONLY | O_CREAT, 0644);
    int third = open("absent", O_RDONLY);
    int found = stat("kept", &st);
    close(0);
    close(1);
    dup2(out, 1);
    printf("opened as %d, %d, %d; stat %d\n", first, second, third, found);
    work("after close of 0, 1 and 2");
}

static void dup_high(void)
{
    work("before");
    for (int to = LIMIT - 70; to < LIMIT; to++)
        if (dup2(0, to) != to || (to % 2 == 0 && dup3(0, to, O_CLOEXEC) != to))
            printf("dup2 to %d: %s\n", to, strerror(errno));
    tell("dup2 beyond the limit", dup2(0, LIMIT));
    work("after dup2 onto the highest");
}

static int fill(void)
{
    int count = 0;
    while (dup(0) >= 0)
        count++;
    return count;
}

static void dup_every(void)
{
    work("before");
    for (int to = 3; to < LIMIT; to++)
        if (dup2(0, to) != to)
            printf("dup2 to %d: %s\n", to, strerror(errno));
    work("after dup2 onto every number");
    closefrom(3);
    work("after closefrom");
}

static void set_limit(rlim_t limit)
{
    struct rlimit now;
    getrlimit(RLIMIT_NOFILE, &now);
    tell("setrlimit", setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, limit < now.rlim_max ? limit : now.rlim_max}));
}

/* The limit falls to what is open: neither a child nor the program itself gets another descriptor. */
static void lowered(void)
{
    work("before");
    fill();
    set_limit(FEW);
    work("after the limit fell");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work("in a child");
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* As above, but nothing under the directory was touched yet. */
static void lowered_first(void)
{
    set_limit(FEW);
    printf("filled %d\n", fill() > 0);
    work("with no descriptor left");
    closefrom(3);
    work("with some again");
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"close each", close_each},    {"closefrom", close_from},
    {"close_range", close_ranges}, {"close all", close_all},
    {"dup high", dup_high},        {"dup every", dup_every},
    {"limit lowered", lowered},    {"limit lowered first", lowered_first},
};

int main(int argc, char **argv)
{
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, LIMIT});
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[2], modes[i].name) == 0)
            modes[i].run();
    return 0;
}
