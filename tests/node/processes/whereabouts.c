/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* whereabouts DIRECTORY: uses relative paths next to the directory and in it by turns, where the working directory changes
 * in each way that there is: by path, by descriptor, by a system call, by the instruction of one, by a walk of a tree, in
 * children that share the program's memory, in those of fork, in threads that have one of their own, in a signal's handler.
 * Prints what went wrong: where a file is that is in the directory alone, it must be found, and nowhere else. */

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define ROUNDS 200
#define SHORT_ROUNDS 20

static char beside[PATH_MAX];
static const char *within;
static int beside_fd, within_fd;

/* Twice: what was seen of the working directory the first time may be believed the second time. */
static void must_be(int inside, const char *what)
{
    struct stat st;
    for (int i = 0; i < 2; i++)
        if ((stat("here", &st) == 0) != inside || (access("here", F_OK) == 0) != inside || stat("both", &st) != 0)
            printf("%s: taken to be %s\n", what, inside ? "outside" : "inside");
}

static void by_path(void)
{
    must_be(0, "before");
    chdir(within);
    must_be(1, "chdir");
    chdir(beside);
    must_be(0, "chdir back");
}

static void by_descriptor(void)
{
    fchdir(within_fd);
    must_be(1, "fchdir");
    fchdir(beside_fd);
    must_be(0, "fchdir back");
}

static void by_system_call(void)
{
    syscall(SYS_chdir, within);
    must_be(1, "SYS_chdir");
    syscall(SYS_fchdir, beside_fd);
    must_be(0, "SYS_fchdir");
}

/* Which no library sees. */
static void by_instruction(void)
{
    sys_call(SYS_chdir, (long)within, 0, 0, 0, 0, 0);
    must_be(1, "the instruction of chdir");
    sys_call(SYS_fchdir, beside_fd, 0, 0, 0, 0, 0);
    must_be(0, "the instruction of fchdir");
}

/* One that fails changes nothing. */
static void by_nothing(void)
{
    chdir("absent");
    fchdir(-1);
    must_be(0, "failed");
}

static int visited;

static int whereabouts_visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    visited++;
    if (at->level == 1 && type == FTW_F)
        must_be(1, "nftw");
    return 0;
}

static void by_nftw(void)
{
    if (nftw(within, whereabouts_visit, 8, FTW_CHDIR | FTW_PHYS) != 0)
        printf("nftw: %s\n", strerror(errno));
    must_be(0, "after nftw");
}

static void by_fts(void)
{
    char *const roots[] = {(char *)within, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL, NULL);
    for (FTSENT *entry; tree != NULL && (entry = fts_read(tree)) != NULL;)
        if (entry->fts_level == 1 && entry->fts_info == FTS_F)
            must_be(1, "fts");
    if (tree == NULL || fts_close(tree) != 0)
        printf("fts: %s\n", strerror(errno));
    must_be(0, "after fts");
}

/* Nothing here returns to the caller's frame: the parent goes on with it. */
static void in_vfork_child(void)
{
    pid_t child = vfork();
    if (child == 0) {
        must_be(0, "vfork child, before");
        chdir(within);
        must_be(1, "vfork child");
        _exit(0);
    }
    must_be(0, "vfork's parent");
    waitpid(child, NULL, 0);
    chdir(within);
    must_be(1, "vfork's parent inside");
    if ((child = vfork()) == 0) {
        fchdir(beside_fd);
        must_be(0, "vfork child outside");
        _exit(0);
    }
    must_be(1, "vfork's parent still inside");
    waitpid(child, NULL, 0);
    chdir(beside);
}

static void in_fork_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        must_be(0, "child, before");
        chdir(within);
        must_be(1, "child");
        fflush(stdout);
        _exit(0);
    }
    must_be(0, "parent");
    waitpid(child, NULL, 0);
}

/* libc changes the directory to / here, after every wrapper: from there `within` is to be had without its first slash. */
static void as_daemon(void)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/here", within + 1);
    pid_t child = fork();
    if (child == 0) {
        int pipe_ends[2], status;
        char word;
        pipe(pipe_ends);
        pid_t parent = fork();
        if (parent == 0) {
            for (int i = 0; i < 2; i++)
                if (stat(path, &st) == 0)
                    puts("daemon: found too early");
            daemon(0, 1);
            status = stat(path, &st);
            write(pipe_ends[1], status == 0 ? "y" : "n", 1);
            _exit(0);
        }
        if (read(pipe_ends[0], &word, 1) != 1 || word != 'y')
            puts("daemon: not found");
        waitpid(parent, &status, 0);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static pthread_barrier_t turn;

static void *whereabouts_apart(void *inside)
{
    unshare(CLONE_FS);
    for (int i = 0; i < ROUNDS; i++) {
        chdir(inside != NULL ? within : beside);
        pthread_barrier_wait(&turn);
        must_be(inside != NULL, "thread of its own");
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static void in_threads(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&threads[0], NULL, whereabouts_apart, NULL);
    pthread_create(&threads[1], NULL, whereabouts_apart, "inside");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    must_be(0, "after threads");
}

/* Threads that share one: what one has seen, another one's change makes old. */
static void *look_when_told(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&turn);
        must_be(i % 2, "shared by threads");
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static void shared_by_threads(void)
{
    pthread_t other;
    pthread_create(&other, NULL, look_when_told, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        chdir(i % 2 ? within : beside);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    pthread_join(other, NULL);
    chdir(beside);
}

/* A handler comes in the middle of changes and of looks, and leaves things as they were. */
static void whereabouts_handle(int signal)
{
    int saved = errno;
    int before = open(".", O_PATH | O_DIRECTORY);
    chdir(within);
    must_be(1, "handler");
    chdir(beside);
    must_be(0, "handler outside");
    fchdir(before);
    close(before);
    errno = saved;
}

/* ... or just looks: right after the system call, often. */
static void whereabouts_look(int signal)
{
    int saved = errno;
    char now[PATH_MAX];
    getcwd(now, sizeof now);
    must_be(strcmp(now, beside) != 0, "looking handler");
    errno = saved;
}

static void with_handler(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    for (int i = 0; i < ROUNDS; i++) {
        chdir(within);
        must_be(1, "between handlers");
        chdir(beside);
        must_be(0, "between handlers");
    }
    ualarm(0, 0);
}

static void with_handlers(void)
{
    with_handler(whereabouts_handle);
    with_handler(whereabouts_look);
}

int main(int argc, char **argv)
{
    within = argv[1];
    if (argc != 2 || getcwd(beside, sizeof beside) == NULL)
        return 2;
    beside_fd = open(beside, O_PATH | O_DIRECTORY);
    within_fd = open(within, O_RDONLY | O_DIRECTORY);
    void (*const ways[])(void) = {by_path, by_descriptor, by_system_call, by_instruction, by_nothing,
                                  by_nftw, by_fts,        in_vfork_child, in_fork_child,  with_handlers};
    for (int i = 0; i < SHORT_ROUNDS; i++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            ways[way]();
    in_threads();
    shared_by_threads();
    as_daemon();
    puts(visited > 0 ? "done" : "nothing was visited");
    return 0;
}
