/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/client_requests.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The kernel writes a space, a tab, a line's end and a backslash of a path as \ and three octal digits. */
static void client_requests_unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned byte;
        if (*at == '\\' && sscanf(at + 1, "%3o", &byte) == 1) {
            *to++ = (char)byte;
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* How much of the path leads to a mount; 0: it is not in there. */
static size_t client_requests_depth(const char *path, const char *mount)
{
    const size_t length = strcmp(mount, "/") == 0 ? 0 : strlen(mount);
    return strncmp(path, mount, length) == 0 && (path[length] == '/' || path[length] == '\0') ? length + 1 : 0;
}

/* Where a mount's part of the text begins. False: it is another line. */
static bool client_requests_take_mount(const char *line, char mount[PATH_MAX])
{
    if (sscanf(line, "device %*s mounted on %4095s with fstype", mount) != 1 &&
        sscanf(line, "no device mounted on %4095s with fstype", mount) != 1)
        return false;
    client_requests_unescape(mount);
    return true;
}

/* `GETATTR: 17 17 0 ...`: how many were made, sent, timed out ... of one kind. */
static bool client_requests_take_kind(const char *line, uint64_t *count)
{
    uint64_t sent;
    return sscanf(line, " %*[A-Z_0-9]: %" SCNu64 " %" SCNu64, count, &sent) == 2;
}

/* A mount hides those before it at the same path. */
bool client_requests_parse(FILE *file, const char *path, uint64_t *count)
{
    char *line = NULL, mount[PATH_MAX];
    size_t size = 0, deepest = 0;
    bool is_within = false, is_counted = false, is_told = false;
    while (getline(&line, &size, file) > 0) {
        uint64_t of_kind;
        if (client_requests_take_mount(line, mount)) {
            const size_t depth = client_requests_depth(path, mount);
            is_within = depth > 0 && depth >= deepest;
            is_counted = false;
            if (!is_within)
                continue;
            deepest = depth;
            is_told = false;
            *count = 0;
        } else if (is_within && strstr(line, "per-op statistics") != NULL) {
            is_counted = is_told = true;
        } else if (is_counted && client_requests_take_kind(line, &of_kind)) {
            *count += of_kind;
        }
    }
    free(line);
    return is_told;
}

bool client_requests_read(const char *path, uint64_t *count)
{
    FILE *file = fopen("/proc/self/mountstats", "re");
    if (file == NULL)
        return false;
    const bool is_told = client_requests_parse(file, path, count);
    fclose(file);
    return is_told;
}
