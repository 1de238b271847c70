/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* asked: makes the call that each line of its input names, WORD PATH [PATH], and says how it ended: "done", what a file begins
 * with, or the error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int asked_open(const char *path, int flags)
{
    const int fd = open(path, flags, 0666);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : fd < 3 ? (errno = EBADF, -1) : 0;
}

static int asked_read(const char *path)
{
    char text[64];
    const int fd = open(path, O_RDONLY);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (length >= 0)
        printf("%.*s ", (int)length, text);
    if (fd >= 0)
        close(fd);
    return length < 0 ? -1 : 0;
}

static int asked_list(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    if (directory == NULL)
        return -1;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    const int error = errno;
    closedir(directory);
    if (error == 0)
        printf("%d ", count);
    return error != 0 ? (errno = error, -1) : 0;
}

static int asked_look(const char *path)
{
    struct stat stat_of;
    int code = 0;
    for (int i = 0; i < 1000 && code == 0; i++)
        code = stat(path, &stat_of);
    return code;
}

/* Directories that are named 022, 027 and 077, at once, each by a process with that umask. */
static int asked_make(const char *where)
{
    static const mode_t umasks[] = {022, 027, 077};
    char name[4096];
    int status, failed = 0;
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            snprintf(name, sizeof name, "%s/%03o", where, (unsigned)umasks[i]);
            umask(umasks[i]);
            _exit(mkdir(name, 0777) != 0);
        }
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0 ? (errno = ECHILD, -1) : 0;
}

static int asked_call(const char *word, const char *path, const char *other)
{
    struct stat stat_of;
    if (strcmp(word, "make") == 0)
        return asked_open(path, O_CREAT | O_WRONLY);
    if (strcmp(word, "exclusive") == 0)
        return asked_open(path, O_CREAT | O_EXCL | O_WRONLY);
    if (strcmp(word, "read") == 0)
        return asked_read(path);
    if (strcmp(word, "list") == 0)
        return asked_list(path);
    if (strcmp(word, "stat") == 0)
        return stat(path, &stat_of);
    if (strcmp(word, "mkdir") == 0)
        return mkdir(path, 0777);
    if (strcmp(word, "unlink") == 0)
        return unlink(path);
    if (strcmp(word, "rename") == 0)
        return rename(path, other);
    if (strcmp(word, "go") == 0)
        return chdir(path);
    if (strcmp(word, "many") == 0)
        return asked_look(path);
    if (strcmp(word, "umasks") == 0)
        return asked_make(path);
    return errno = ENOSYS, -1;
}

int main(void)
{
    char line[3 * 4096], word[32], path[4096], other[4096];
    while (fgets(line, sizeof line, stdin) != NULL) {
        other[0] = '\0';
        if (sscanf(line, "%31s %4095s %4095s", word, path, other) < 2)
            return 2;
        printf("%s\n", asked_call(word, path, other) == 0 ? "done" : strerror(errno));
        fflush(stdout);
    }
    return 0;
}
