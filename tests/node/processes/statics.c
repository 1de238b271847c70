/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* statics ROOT WHAT: a program to be linked statically. It prints nothing that two runs could not agree on. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

struct statics_handle {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
};

static long statics_told(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
    return result;
}

static void statics_modes(void)
{
    struct stat st;
    umask(027);
    close(open("masked", O_CREAT | O_WRONLY, 0666));
    mkdir("directory", 0777);
    umask(0);
    close(open("open", O_CREAT | O_WRONLY, 0666));
    for (const char **name = (const char *[]){"masked", "directory", "open", NULL}; *name != NULL; name++)
        printf("%s %o\n", *name, stat(*name, &st) == 0 ? st.st_mode : 0);
    umask(022);
}

static bool statics_handle(int at, const char *name, int flags, struct statics_handle *handle)
{
    int mount;
    *handle = (struct statics_handle){.head.handle_bytes = MAX_HANDLE_SZ};
    return statics_told(name, name_to_handle_at(at, name, &handle->head, &mount, flags)) == 0;
}

/* Of a directory and a file: by a name, and by a descriptor that the name led to. */
static void statics_handles(void)
{
    struct statics_handle named, opened;
    for (const char **name = (const char *[]){"directory", "masked", NULL}; *name != NULL; name++) {
        const int fd = open(*name, O_PATH);
        if (statics_handle(AT_FDCWD, *name, 0, &named) && statics_handle(fd, "", AT_EMPTY_PATH, &opened))
            printf("one handle: %d\n", memcmp(&named, &opened, sizeof named) == 0);
        close(fd);
    }
    statics_handle(AT_FDCWD, "none", 0, &named);
    statics_handle(AT_FDCWD, "none", 1 << 20, &named);
}

static void statics_paths(const char *root)
{
    char link[64] = "", cwd[4096];
    const int at = open(root, O_RDONLY | O_DIRECTORY);
    statics_told("exclusive", openat(at, "masked", O_CREAT | O_EXCL | O_WRONLY, 0600));
    statics_told("symlink", symlinkat("../masked", at, "directory/link"));
    statics_told("through it", open("directory/link", O_RDONLY));
    statics_told("no link", open("directory/link", O_RDONLY | O_NOFOLLOW));
    printf("leads to %ld %s\n", (long)readlinkat(at, "directory/link", link, sizeof link - 1), link);
    statics_told("link", linkat(at, "masked", at, "hard", 0));
    statics_told("rename", renameat(at, "hard", at, "directory/moved"));
    statics_told("into a file", open("open/below", O_RDONLY));
    statics_told("chdir into a file", chdir("open"));
    statics_told("chdir", chdir("directory"));
    printf("is there: %d\n", strcmp(getcwd(cwd, sizeof cwd) + strlen(root), "/directory") == 0);
    statics_told("above", open("../open", O_WRONLY | O_TRUNC));
    statics_told("truncate", truncate("moved", 10));
    statics_told("path only", open("moved", O_PATH));
    statics_told("times", utimensat(AT_FDCWD, "moved", (struct timespec[]){{1000, 5}, {2000, 7}}, 0));
    statics_told("mode", chmod("moved", 0604));
    statics_told("statfs", pathconf("moved", _PC_NAME_MAX));
    statics_told("unlink", unlinkat(at, "open", 0));
    statics_told("again", unlinkat(at, "open", 0));
    statics_told("directory", unlinkat(at, "directory", 0));
    statics_told("not empty", unlinkat(at, "directory", AT_REMOVEDIR));
    statics_told("bad descriptor", openat(1000, "name", O_RDONLY));
    statics_told("to a bad descriptor", renameat(AT_FDCWD, "moved", 1000, "name"));
    statics_told("to nothing", renameat(AT_FDCWD, "moved", 1000, ""));
    statics_told("from nothing", renameat(1000, "", AT_FDCWD, "name"));
    statics_told("from a bad descriptor to nothing", renameat(1000, "name", AT_FDCWD, ""));
    statics_told("bad pointer", open((char *)8, O_RDONLY));
    statics_told("back", fchdir(at));
}

#define STATICS_FILES 2000

static int statics_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A listing is taken up where it was left, also after a rewind and through a duplicate. */
static void statics_listing(void)
{
    static char *names[STATICS_FILES + 64];
    char name[32];
    struct dirent *entry;
    size_t count = 0, first = 0, again = 0;
    mkdir("many", 0777);
    for (int i = 0; i < STATICS_FILES; i++) {
        snprintf(name, sizeof name, "many/file%d", i);
        close(open(name, O_CREAT | O_WRONLY, 0666));
    }
    DIR *stream = opendir("many");
    while (first < 100 && readdir(stream) != NULL)
        first++;
    const long here = telldir(stream);
    while ((entry = readdir(stream)) != NULL)
        again++;
    seekdir(stream, here);
    while ((entry = readdir(stream)) != NULL)
        again--;
    printf("first %zu, more after than before the way back: %zu\n", first, again);
    rewinddir(stream);
    while ((entry = readdir(stream)) != NULL && count < STATICS_FILES + 64)
        names[count++] = strdup(entry->d_name);
    qsort(names, count, sizeof *names, statics_by_name);
    for (size_t i = 1; i < count; i++)
        again += strcmp(names[i - 1], names[i]) == 0;
    printf("%zu names, %zu twice, the last %s\n", count, again, names[count - 1]);
    closedir(stream);
}

#define STATICS_THREADS 1000
static int statics_won[STATICS_THREADS], statics_failed;

static void *statics_thread(void *number)
{
    char name[32], own[32];
    snprintf(own, sizeof own, "own%ld", (long)number);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "shared%d", i);
        const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0666);
        statics_won[(long)number] += fd >= 0;
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST)
            __atomic_fetch_add(&statics_failed, 1, __ATOMIC_RELAXED);
        if (mkdir(own, 0777) != 0 || rmdir(own) != 0)
            __atomic_fetch_add(&statics_failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* All at once: each name is made once. */
static void statics_threads(void)
{
    pthread_t threads[STATICS_THREADS];
    pthread_attr_t small;
    int won = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long i = 0; i < STATICS_THREADS; i++)
        pthread_create(&threads[i], &small, statics_thread, (void *)i);
    for (int i = 0; i < STATICS_THREADS; i++) {
        pthread_join(threads[i], NULL);
        won += statics_won[i];
    }
    printf("made %d, failed %d\n", won, statics_failed);
}

static void statics_on_alarm(int signal)
{
}

static void *statics_open_fifo(void *unused)
{
    return (void *)(long)open("fifo", O_RDONLY);
}

/* An open that waits holds nothing up; a signal ends it. */
static void statics_fifo(void)
{
    pthread_t reader;
    sigset_t alarms;
    statics_told("fifo", mkfifo("fifo", 0666));
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&reader, NULL, statics_open_fifo, NULL);
    statics_told("meanwhile", open("meanwhile", O_CREAT | O_WRONLY, 0666));
    statics_told("writer", open("fifo", O_WRONLY));
    pthread_join(reader, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    statics_told("another", mkfifo("another", 0666));
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = statics_on_alarm}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 10000}, {0, 10000}}, NULL);
    statics_told("interrupted", open("another", O_RDONLY));
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

/* A call that a signal comes into is done once. */
static void statics_signals(void)
{
    char name[32];
    int failed = 0;
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = statics_on_alarm, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "once%d", i);
        failed += mkdir(name, 0777) != 0;
        failed += rmdir(name) != 0;
        const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0666);
        failed += fd < 0;
        close(fd);
        failed += unlink(name) != 0;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("failed %d\n", failed);
}

static void statics_children(void)
{
    char name[32];
    int status, failed = 0;
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "child%d", i);
        if (fork() == 0)
            _exit(open(name, O_CREAT | O_EXCL | O_WRONLY, 0666) < 0);
    }
    while (wait(&status) > 0)
        failed += status != 0;
    printf("failed %d, no child is left: %d\n", failed, errno == ECHILD);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    statics_told("without a descriptor", open("child0", O_RDONLY));
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2 || chdir(arguments[1]) != 0)
        return 2;
    statics_modes();
    statics_handles();
    statics_paths(arguments[1]);
    statics_listing();
    statics_threads();
    statics_fifo();
    statics_signals();
    statics_children();
    return 0;
}
