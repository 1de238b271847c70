/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* moving DIRECTORY OUTSIDE: directories come, go and are exchanged while another thread uses names in them. Prints how often
 * each of these was wrong, and exits 1 if one was:
 *
 *   come      two threads want one name with O_EXCL in a directory that one of them has just made: one has it, and it is listed
 *   go        a name is opened with O_CREAT, or made with mkdir, until its directory is renamed away: that ends
 *   exchange  a name that is in both of two directories, and a link to it, is always there
 *   out       a rename onto another name of the same file, outside, changes nothing */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 300
#define PATIENCE 60 /* seconds, then it does not end */

static pthread_barrier_t barrier;
static int wins, ended;

static int moving_make(const char *path, int flags)
{
    int fd = open(path, O_CREAT | O_RDWR | flags, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : errno;
}

static int is_listed(const char *directory, const char *name)
{
    DIR *dir = opendir(directory);
    int found = 0;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        found += strcmp(entry->d_name, name) == 0;
    if (dir != NULL)
        closedir(dir);
    return found == 1;
}

static void moving_want(unsigned round)
{
    char path[32];
    int code;
    snprintf(path, sizeof path, "c%u/f", round);
    while ((code = moving_make(path, O_EXCL)) == ENOENT)
        continue;
    __atomic_add_fetch(&wins, code == 0, __ATOMIC_SEQ_CST);
}

static void *want_all(void *unused)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        moving_want(round);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static unsigned moving_come(void)
{
    pthread_t other;
    char path[32];
    unsigned wrong = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&other, NULL, want_all, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        snprintf(path, sizeof path, "c%u", round);
        wins = 0;
        pthread_barrier_wait(&barrier);
        usleep(round % 5);
        mkdir(path, 0755);
        moving_want(round);
        pthread_barrier_wait(&barrier);
        wrong += wins != 1 || !is_listed(path, "f");
    }
    pthread_join(other, NULL);
    return wrong;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

static void *use_until_gone(void *round)
{
    const unsigned which = *(const unsigned *)round % 3;
    int code;
    do
        code = which == 2 ? make_directory("p/d") : moving_make("p/f", which == 1 ? O_EXCL : 0);
    while (code == 0 || code == EEXIST);
    return code == ENOENT ? NULL : round;
}

static unsigned moving_go(void)
{
    unsigned wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        char path[32];
        pthread_t other;
        void *failed;
        snprintf(path, sizeof path, "gone%u", round);
        mkdir("p", 0755);
        moving_make("p/f", 0);
        pthread_create(&other, NULL, use_until_gone, &round);
        usleep(200 + round % 7 * 50);
        wrong += rename("p", path) != 0;
        pthread_join(other, &failed);
        wrong += failed != NULL;
    }
    return wrong;
}

static void *exchange_all(void *unused)
{
    while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) {
        renameat2(AT_FDCWD, "p", AT_FDCWD, "q", RENAME_EXCHANGE);
        usleep(20);
    }
    return NULL;
}

static unsigned moving_exchange(void)
{
    pthread_t other;
    struct stat stat_;
    unsigned wrong = 0;
    for (const char *name = "p"; name != NULL; name = *name == 'p' ? "q" : NULL) {
        char file[8], link[8];
        snprintf(file, sizeof file, "%s/f", name);
        snprintf(link, sizeof link, "%s/l", name);
        mkdir(name, 0755);
        wrong += moving_make(file, 0) != 0 || symlink("f", link) != 0;
    }
    pthread_create(&other, NULL, exchange_all, NULL);
    for (unsigned round = 0; round < 5 * ROUNDS; round++) {
        int fd = open("p/f", O_RDONLY), by_link = open("p/l", O_RDONLY);
        wrong += fd < 0 || by_link < 0 || stat("p/f", &stat_) != 0 || chmod("p/f", 0644) != 0 || access("p/f", F_OK) != 0 ||
                 utimensat(AT_FDCWD, "p/f", NULL, 0) != 0 || moving_make("p/f", O_EXCL) != EEXIST || moving_make("p/f", 0) != 0;
        close(fd);
        close(by_link);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
    pthread_join(other, NULL);
    return wrong;
}

static unsigned moving_out(const char *outside)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/l", outside);
    return moving_make("f", 0) != 0 || link("f", path) != 0 || rename("f", path) != 0 || !is_listed(".", "f") ||
           access("f", F_OK) != 0 || moving_make("f", O_EXCL) != EEXIST || unlink("f") != 0 || access(path, F_OK) != 0;
}

int main(int argc, char *argv[])
{
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    alarm(PATIENCE);
    const unsigned wrong[] = {moving_come(), moving_go(), moving_exchange(), moving_out(argv[2])};
    printf("come %u, go %u, exchange %u, out %u\n", wrong[0], wrong[1], wrong[2], wrong[3]);
    return wrong[0] + wrong[1] + wrong[2] + wrong[3] != 0;
}
