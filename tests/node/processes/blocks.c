/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Paths in heap blocks that are longer than the path: nobody has written the bytes after it. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 32

static char *blocks_path(const char *text)
{
    char *block = malloc(BLOCK);
    return block != NULL ? strcpy(block, text) : NULL;
}

/* As many addresses as there are in 8 bytes. */
static void blocks_use(unsigned offset)
{
    char *block = malloc(BLOCK), *made = blocks_path("a.XXXXXX");
    struct stat stat_of;
    if (block == NULL || made == NULL)
        exit(2);
    char *path = strcpy(block + offset, "x");
    close(open(path, O_CREAT | O_WRONLY, 0600));
    if (stat(path, &stat_of) != 0 || unlink(path) != 0 || mkdir(path, 0700) != 0 || rmdir(path) != 0)
        exit(3);
    close(mkostemp(made, O_CLOEXEC));
    unlink(made);
    free(block);
    free(made);
}

int main(int count, char *arguments[])
{
    if (count < 2 || chdir(arguments[1]) != 0)
        return 1;
    for (unsigned offset = 0; offset < 8; offset++)
        blocks_use(offset);
    return 0;
}
