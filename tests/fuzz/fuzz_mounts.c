/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a line each of a root and of a place in another mount; what follows is /proc/self/mountinfo, of which mounts 1
 * and 2 are looked at. Its reader is nobody else's: the source stands here. */

#include <unistd.h>

#include "fuzz.h"
#include "names/mounts.c" /* NOLINT */

static int memory = -1;

/* As mounts_find_both does, from a file of these bytes. */
static bool fuzz_mounts_find(struct search *s, const uint8_t *bytes, size_t size)
{
    int missing = 2;
    if (memory < 0)
        memory = memfd_create("mountinfo", MFD_CLOEXEC);
    fuzz_must(ftruncate(memory, 0) == 0 && pwrite(memory, bytes, size, 0) == (ssize_t)size);
    lseek(memory, 0, SEEK_SET);
    s->reader = (struct reader){.fd = memory};
    while (missing > 0 && mounts_take_line(&s->reader, &s->read)) {
        struct mount *wanted = s->read.id == 1 ? &s->own : s->read.id == 2 ? &s->other : NULL;
        fuzz_must(strlen(s->read.root) < PATH_MAX && strlen(s->read.point) < PATH_MAX);
        if (wanted != NULL)
            *wanted = s->read, missing--;
    }
    return missing == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    char *root = fuzz_line(&at, end), *text = fuzz_line(&at, end);
    struct search *s = calloc(1, sizeof *s);
    if (fuzz_mounts_find(s, at, (size_t)(end - at)) && mounts_path_within(&s->own, root, s->own_path) &&
        mounts_path_within(&s->other, text, s->other_path)) {
        const char *rest = mounts_behind(s->other_path, s->own_path);
        fuzz_must(rest == NULL || *rest == '\0' || *rest == '/');
    }
    free(s);
    free(root);
    free(text);
    return 0;
}
