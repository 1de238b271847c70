/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A library that works on files before main: in its first malloc, as allocators read their settings, and in
 * its constructor, which reads and makes files where EARLY says. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *__libc_malloc(size_t size);

static int allocated;

/* Whatever comes of these calls: they must come back, and not by way of malloc. */
static void read_settings(void)
{
    char text[64];
    struct stat st;
    int fd = open("/etc/malloc.conf", O_RDONLY);
    if (fd >= 0)
        close(fd);
    if (readlink("/etc/malloc.conf", text, sizeof text) >= 0 || stat("/etc/malloc.conf", &st) == 0)
        allocated++;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    if (allocated++ == 0)
        read_settings();
    return __libc_malloc(size);
}

static void early_make(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/early.%d", directory, getpid() > 0);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || write(fd, "early\n", 6) != 6)
        printf("early cannot make a file: %s\n", strerror(errno));
    close(fd);
}

__attribute__((constructor)) static void early_begin(void)
{
    char path[4096], text[64] = "";
    const char *directory = getenv("EARLY");
    if (directory == NULL)
        return;
    snprintf(path, sizeof path, "%s/kept", directory);
    FILE *file = fopen(path, "r");
    printf("early reads: %s\n", file != NULL && fgets(text, sizeof text, file) ? text : strerror(errno));
    if (file != NULL)
        fclose(file);
    early_make(directory);
    printf("early has allocated: %d\n", allocated > 0);
    fflush(stdout);
}

int early_answer(void);
__attribute__((visibility("default"))) int early_answer(void)
{
    return 42;
}
