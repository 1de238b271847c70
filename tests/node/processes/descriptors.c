/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* descriptors DIRECTORY MODE: a program that closes, overwrites or uses up all descriptors, and goes on.
 * Prints what became of each call. */

#include <sys/syscall.h>
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

#include "../../old_libc.h"

#define LIMIT 1500
#define FEW 40

static void descriptors_tell(const char *what, long result)
{
    printf("%s = %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static long descriptors_make(const char *name)
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
static void descriptors_work(const char *when)
{
    struct stat st;
    printf("-- %s\n", when);
    descriptors_tell("stat", stat("kept", &st));
    descriptors_tell("stat of what is absent", stat("absent", &st));
    descriptors_tell("access", access("kept", R_OK));
    descriptors_tell("chmod", chmod("kept", 0640));
    descriptors_tell("rename", rename("kept", "moved"));
    descriptors_tell("link under its old name", link("moved", "kept"));
    descriptors_tell("unlink that", unlink("kept"));
    descriptors_tell("rename back", rename("moved", "kept"));
    descriptors_tell("link", link("kept", "linked"));
    descriptors_tell("unlink", unlink("linked"));
    descriptors_tell("mkdir", mkdir("made", 0755));
    descriptors_tell("rmdir", rmdir("made"));
    descriptors_tell("open of what is absent", open("absent", O_RDONLY));
    descriptors_tell("make", descriptors_make("fresh"));
    descriptors_tell("stat of it", stat("fresh", &st));
    descriptors_tell("unlink it", unlink("fresh"));
    printf("names: %ld\n", count_names());
}

static void close_each(void)
{
    descriptors_work("before");
    for (int fd = 3; fd < LIMIT; fd++)
        close(fd);
    descriptors_work("after close of each");
}

static void close_from(void)
{
    descriptors_work("before");
    closefrom(3);
    descriptors_work("after closefrom");
}

static void close_ranges(void)
{
    descriptors_work("before");
    descriptors_tell("close_range", close_range(3, ~0u, 0));
    descriptors_work("after close_range");
    descriptors_tell("CLOSE_RANGE_CLOEXEC", close_range(3, ~0u, CLOSE_RANGE_CLOEXEC));
    descriptors_tell("CLOSE_RANGE_UNSHARE", close_range(3, ~0u, CLOSE_RANGE_UNSHARE));
    descriptors_work("after all of them");
}

/* Even the three that everybody has: what is opened next is one of them. */
static void close_all(void)
{
    struct stat st;
    descriptors_work("before");
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
    descriptors_work("after close of 0, 1 and 2");
}

static void dup_high(void)
{
    descriptors_work("before");
    for (int to = LIMIT - 70; to < LIMIT; to++)
        if (dup2(0, to) != to || (to % 2 == 0 && dup3(0, to, O_CLOEXEC) != to))
            printf("dup2 to %d: %s\n", to, strerror(errno));
    descriptors_tell("dup2 beyond the limit", dup2(0, LIMIT));
    descriptors_work("after dup2 onto the highest");
}

static int descriptors_fill(void)
{
    int count = 0;
    while (dup(0) >= 0)
        count++;
    return count;
}

static void dup_every(void)
{
    descriptors_work("before");
    for (int to = 3; to < LIMIT; to++)
        if (dup2(0, to) != to)
            printf("dup2 to %d: %s\n", to, strerror(errno));
    descriptors_work("after dup2 onto every number");
    closefrom(3);
    descriptors_work("after closefrom");
}

static void set_limit(rlim_t limit)
{
    struct rlimit now;
    getrlimit(RLIMIT_NOFILE, &now);
    descriptors_tell("setrlimit",
                     setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, limit < now.rlim_max ? limit : now.rlim_max}));
}

/* The limit falls to what is open: neither a child nor the program itself gets another descriptor. */
static void descriptors_lowered(void)
{
    descriptors_work("before");
    descriptors_fill();
    set_limit(FEW);
    descriptors_work("after the limit fell");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        descriptors_work("in a child");
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* As above, but nothing under the directory was touched yet. */
static void lowered_first(void)
{
    set_limit(FEW);
    printf("filled %d\n", descriptors_fill() > 0);
    descriptors_work("with no descriptor left");
    closefrom(3);
    descriptors_work("with some again");
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"close each", close_each},
    {"closefrom", close_from},
    {"close_range", close_ranges},
    {"close all", close_all},
    {"dup high", dup_high},
    {"dup every", dup_every},
    {"limit lowered", descriptors_lowered},
    {"limit lowered first", lowered_first},
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
