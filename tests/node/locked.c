/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* locked FLAGS MIB [WHEN]: locks its memory by mlockall(FLAGS) under a limit of that many MiB, and then works in its working
 * directory. Prints what each call answers. With `after` it looks there before, with `only` it does nothing else. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int locked_say(const char *what, int answer)
{
    printf("%s: %s\n", what, answer < 0 ? strerror(errno) : "0");
    fflush(stdout);
    return answer;
}

static void locked_work(void)
{
    char name[16], buffer[4096] = "words";
    struct stat stat;
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "f%d", i);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        if (fd < 0 || close(fd) != 0 || lstat(name, &stat) != 0) {
            locked_say(name, -1);
            return;
        }
    }
    int names = 0;
    DIR *directory = opendir(".");
    while (directory != NULL && readdir(directory) != NULL)
        names++;
    locked_say("opendir", directory != NULL ? 0 : -1);
    printf("%d names\n", names);
    locked_say("rename", rename("f0", "g0"));
    locked_say("unlink", unlink("f1"));
    int fd = open("g0", O_RDWR);
    locked_say("write", (int)write(fd, buffer, sizeof buffer) == sizeof buffer ? 0 : -1);
    pid_t child = fork();
    if (child == 0)
        _exit(open("of-a-child", O_CREAT | O_WRONLY, 0644) < 0);
    int status = -1;
    waitpid(child, &status, 0);
    printf("child: %d\n", status);
}

int main(int argc, char *argv[])
{
    struct rlimit limit = {.rlim_cur = (rlim_t)(argc > 2 ? atoi(argv[2]) : 0) << 20};
    limit.rlim_max = limit.rlim_cur;
    const char *when = argc > 3 ? argv[3] : "";
    locked_say("setrlimit", setrlimit(RLIMIT_MEMLOCK, &limit));
    if (strcmp(when, "after") == 0)
        locked_say("before", access("of-nobody", F_OK));
    locked_say("mlockall", mlockall(argc > 1 ? atoi(argv[1]) : 0));
    if (strcmp(when, "only") != 0)
        locked_work();
    return 0;
}
