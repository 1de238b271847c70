/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* permissions PATH PROGRAM [known]: a watcher that is asked whether the file, or what is in the directory, may be opened and
 * read (fanotify), has the program executed in each way that there is, and lists the directory. A thread allows all, after a
 * look at what it is about. Prints how each ended, and of a file, how often the thread was asked. With `known` the program is
 * executed once before it is watched. */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int events;
static unsigned asked;

static void permissions_look(int fd)
{
    char link[32], path[4096];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = '\0';
    if (stat(path, &st) != 0)
        printf("%s: is not there\n", path);
}

static void *permissions_allow(void *unused)
{
    char buffer[4096] __attribute__((aligned(8)));
    for (ssize_t size; (size = read(events, buffer, sizeof buffer)) > 0;) {
        const struct fanotify_event_metadata *event = (const void *)buffer;
        for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size)) {
            const struct fanotify_response response = {event->fd, FAN_ALLOW};
            __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
            permissions_look(event->fd);
            if (write(events, &response, sizeof response) != sizeof response)
                exit(4);
            close(event->fd);
        }
    }
    return NULL;
}

static int by_exec(char *program)
{
    int status = -1;
    char *const words[] = {program, NULL};
    const pid_t child = fork();
    if (child == 0) {
        execv(program, words);
        _exit(2);
    }
    waitpid(child, &status, 0);
    return status;
}

static int by_spawn(char *program)
{
    pid_t child;
    int status = -1;
    char *const words[] = {program, NULL};
    if (posix_spawn(&child, program, NULL, NULL, words, environ) == 0)
        waitpid(child, &status, 0);
    return status;
}

static int by_shell(char *program)
{
    return system(program);
}

static int by_listing(char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count;
}

static void permissions_tell(const char *way, int (*call)(char *), char *argument, int counts)
{
    const unsigned before = __atomic_load_n(&asked, __ATOMIC_RELAXED);
    const int status = call(argument);
    printf("%s: %d", way, status);
    if (counts)
        printf(", asked %u times", __atomic_load_n(&asked, __ATOMIC_RELAXED) - before);
    puts("");
    fflush(stdout);
}

int main(int count, char *arguments[])
{
    struct stat st;
    pthread_t thread;
    events = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_LARGEFILE);
    if (count < 3 || stat(arguments[1], &st) != 0 || events < 0)
        return 3;
    const int is_file = S_ISREG(st.st_mode);
    if (count > 3)
        by_exec(arguments[2]);
    if (fanotify_mark(events, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ACCESS_PERM | (is_file ? 0 : FAN_EVENT_ON_CHILD | FAN_ONDIR),
                      AT_FDCWD, arguments[1]) != 0 ||
        pthread_create(&thread, NULL, permissions_allow, NULL) != 0)
        return 3;
    alarm(60);
    for (int i = 0; i < 2; i++) {
        permissions_tell("execve", by_exec, arguments[2], is_file);
        permissions_tell("posix_spawn", by_spawn, arguments[2], is_file);
        permissions_tell("system", by_shell, arguments[2], is_file);
        if (!is_file)
            permissions_tell("listing", by_listing, arguments[1], 0);
    }
    return 0;
}
