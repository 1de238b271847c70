/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* threads DIRECTORY [wait]: 300 threads begin at the same moment (with `wait`: when a line came on standard
 * input, which is answered once all of them have begun); each makes, looks at, renames and removes names of
 * its own, lists the directory, and contends with all others for one name. Prints what went wrong. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 300
#define ROUNDS 5

static pthread_barrier_t begin;
static unsigned wins[ROUNDS], begun;

static void threads_check(int holds, const char *what, unsigned me)
{
    if (!holds)
        printf("thread %u: %s: %s\n", me, what, strerror(errno));
}

static int threads_make(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
    return fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0;
}

static int threads_lists(const char *wanted)
{
    int found = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        found += strcmp(entry->d_name, wanted) == 0;
    if (directory != NULL)
        closedir(directory);
    return found == 1;
}

static void one_round(unsigned me, unsigned round)
{
    char first[32], second[32], contended[32];
    struct stat st;
    snprintf(first, sizeof first, "a%u.%u", me, round);
    snprintf(second, sizeof second, "b%u.%u", me, round);
    snprintf(contended, sizeof contended, "one.%u", round);
    threads_check(threads_make(first), "make", me);
    threads_check(stat(first, &st) == 0 && st.st_size == 4, "stat", me);
    threads_check(rename(first, second) == 0, "rename", me);
    threads_check(stat(first, &st) < 0 && errno == ENOENT, "the old name", me);
    threads_check(me % 20 != 0 || threads_lists(second), "the listing", me);
    threads_check(round % 2 == 0 || unlink(second) == 0, "unlink", me);
    if (threads_make(contended))
        __atomic_add_fetch(&wins[round], 1, __ATOMIC_RELAXED);
    else
        threads_check(errno == EEXIST, "the contended name", me);
}

static void *threads_live(void *number)
{
    pthread_barrier_wait(&begin);
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round((unsigned)(size_t)number, round);
    return NULL;
}

static void let_them_begin(int on_a_word)
{
    if (on_a_word)
        getchar();
    pthread_barrier_wait(&begin);
    while (on_a_word && __atomic_load_n(&begun, __ATOMIC_SEQ_CST) < THREADS)
        sched_yield();
    if (on_a_word)
        fprintf(stderr, "begun\n");
}

int main(int argc, char **argv)
{
    pthread_t all[THREADS];
    if (argc < 2 || chdir(argv[1]) != 0)
        return 2;
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&all[i], NULL, threads_live, (void *)i) != 0)
            return 3;
    let_them_begin(argc == 3);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    for (unsigned round = 0; round < ROUNDS; round++)
        printf("round %u: %u won\n", round, wins[round]);
    return 0;
}
