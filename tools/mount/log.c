/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static void *log_syslog_thread(void *context)
{
    char line[4096];
    FILE *from = fdopen((int)(intptr_t)context, "r");
    openlog("shunt-mount", LOG_PID, LOG_USER);
    while (from && fgets(line, sizeof line, from)) {
        line[strcspn(line, "\n")] = '\0';
        syslog(LOG_WARNING, "%s", line);
    }
    return NULL;
}

/* The descriptor to write to. */
static int log_to_syslog_thread(void)
{
    int ends[2];
    pthread_t thread;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    const int error = pthread_create(&thread, NULL, log_syslog_thread, (void *)(intptr_t)ends[0]);
    return error ? -error : ends[1];
}

int log_open(const char *file)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int log_redirect(int to)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    if (to < 0)
        to = log_to_syslog_thread();
    if (to >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(to, STDERR_FILENO);
        close(to);
    }
    close(null);
    return to < 0 ? to : 0;
}
