/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* How often is a program's file opened when it is executed? The program is this one. */

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

static int opens_seen(int events)
{
    char buffer[8192] __attribute__((aligned(8)));
    int opened = 0;
    const long size = read(events, buffer, sizeof buffer);
    for (long at = 0; at < size;) {
        const struct inotify_event *event = (const void *)(buffer + at);
        opened += (event->mask & IN_OPEN) != 0;
        at += (long)(sizeof *event + event->len);
    }
    return opened;
}

int main(int count, char *arguments[])
{
    if (count > 1 && strcmp(arguments[1], "child") == 0)
        return 0;
    const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify_add_watch(events, "/proc/self/exe", IN_OPEN) < 0)
        return 1;
    for (int i = 0; i < 3; i++) {
        char *const words[] = {arguments[0], "child", NULL};
        if (fork() == 0) {
            execv(arguments[0], words);
            _exit(2);
        }
        int status;
        wait(&status);
        printf("%d %d\n", opens_seen(events), status);
    }
    return 0;
}
