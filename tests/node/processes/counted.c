/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* counted DIRECTORY: makes, looks at, renames and removes files there, whose paths are on the stack, and then on the heap.
 * Between the first and the second half of each it calls getppid, and after it, for who counts the calls. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 20
#define ROOM 4096

static void create_file(const char *path, const char *to)
{
    (void)to;
    close(open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
}

static void look_file(const char *path, const char *to)
{
    struct stat seen;
    (void)to;
    if (stat(path, &seen) != 0)
        perror(path);
}

static void move_file(const char *path, const char *to)
{
    if (rename(path, to) != 0)
        perror(path);
}

static void drop_file(const char *path, const char *to)
{
    (void)path;
    if (unlink(to) != 0)
        perror(to);
}

static void check_all(const char *directory, char *path, char *to)
{
    static void (*const calls[])(const char *, const char *) = {create_file, look_file, move_file, drop_file};
    for (size_t call = 0; call < sizeof calls / sizeof *calls; call++) {
        for (int i = 0; i < ROUNDS; i++) {
            if (i == ROUNDS / 2)
                getppid();
            snprintf(path, ROOM, "%s/f.%05d", directory, i);
            snprintf(to, ROOM, "%s/g.%05d", directory, i);
            calls[call](path, to);
        }
        getppid();
    }
}

int main(int count, char *arguments[])
{
    char path[ROOM], to[ROOM];
    char *heap = malloc(2 * ROOM);
    if (count != 2 || heap == NULL)
        return 1;
    check_all(arguments[1], path, to);
    check_all(arguments[1], heap, heap + ROOM);
    free(heap);
    return 0;
}
