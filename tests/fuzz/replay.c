/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A driver without libFuzzer: runs it over every file of a directory, and over every beginning of each. */

#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

static void replay_file(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* of exactly this size, so that a sanitizer sees a read beyond */
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char *argv[])
{
    static uint8_t bytes[1 << 16];
    struct dirent **names;
    int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1, replayed = 0;
    for (int i = 0; i < count; i++) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        FILE *file = names[i]->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
        for (size_t cut = 0; file != NULL && cut <= size; cut++)
            replay_file(bytes, cut);
        replayed += file != NULL && fclose(file) == 0;
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    printf("%d inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
