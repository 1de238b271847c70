/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a byte that picks the root, then two lines: the directory it is seen from (a slash is put before
 * it), the path. */

#include "fuzz.h"
#include "path/path.h"

static void check_split(const char *path)
{
    struct path_parts parts;
    size_t length = strlen(path);
    path_split(&parts, path);
    fuzz_must(parts.name == path + parts.parent_length && parts.parent_length + parts.length <= length);
    fuzz_must(memchr(parts.name, '/', parts.length) == NULL);
    fuzz_must(parts.parent_length == 0 || path[parts.parent_length - 1] == '/');
    fuzz_must(parts.slash == (parts.name[parts.length] == '/' || (parts.length == 0 && length > 0)));
    fuzz_must((parts.last == PATH_NONE) == (parts.length == 0));
    for (const char *rest = parts.name + parts.length; *rest != '\0'; rest++)
        fuzz_must(*rest == '/');
}

/* A detour that leads back changes nothing. */
static void check_detour(const char *root, const char *base, const char *path, enum path_verdict verdict)
{
    char *longer = malloc(strlen(path) + 16);
    strcpy(longer, path);
    strcat(longer, *path != '\0' ? "//./x/.." : "./x/..");
    fuzz_must(path_verdict(root, base, longer) == verdict);
    fuzz_must(verdict == PATH_FOREIGN || !path_is_plainly_foreign(root, path));
    strcpy(longer, path);
    strcat(longer, *path != '\0' ? "/x" : "x");
    fuzz_must(verdict == PATH_FOREIGN || path_verdict(root, base, longer) == PATH_BENEATH);
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roots[] = {"/", "/a", "/a/b", "/scratch/run1", "/..a/.b", "/a/a/a"};
    const uint8_t *at = data + 1, *end = data + size;
    if (size == 0)
        return 0;
    const char *root = roots[data[0] % (sizeof roots / sizeof *roots)];
    char *base = fuzz_line(&at, end), *path = fuzz_line(&at, end);
    char *absolute = malloc(strlen(base) + 2);
    absolute[0] = '/';
    strcpy(absolute + 1, base);
    check_split(path);
    check_detour(root, absolute, path, path_verdict(root, absolute, path));
    free(absolute);
    free(path);
    free(base);
    return 0;
}
