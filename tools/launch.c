/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "places.h"
#include "verb.h"

#define PRELOAD_NAME "libshunt_preload.so"

static bool is_shim(const char *entry, size_t length)
{
    const size_t name = sizeof PRELOAD_NAME - 1;
    return length >= name && !memcmp(entry + length - name, PRELOAD_NAME, name) &&
           (length == name || entry[length - name - 1] == '/');
}

/* LD_PRELOAD with `first` in front and without any other shim; its entries are separated by colons or spaces.
 */
static char *preload_with(const char *first)
{
    const char *old = getenv("LD_PRELOAD");
    size_t size = strlen(first) + (old ? strlen(old) : 0) + 3;
    char *made = malloc(size), *at = made;
    if (!made)
        return NULL;
    at = stpcpy(at, first);
    while (old && *old) {
        size_t length = strcspn(old, ": ");
        if (length > 0 && !is_shim(old, length)) {
            at = stpcpy(at, at > made ? ":" : "");
            at = mempcpy(at, old, length);
        }
        old += length + (old[length] != '\0');
    }
    *at = '\0';
    return made;
}

static int set(const char *name, char *value)
{
    int error = value ? setenv(name, value, 1) : -1;
    free(value);
    if (error < 0)
        complain("no memory for the environment: make some free and run this again");
    return error;
}

void launch_without_shim(void)
{
    char *rest = preload_with("");
    if (rest && *rest)
        setenv("LD_PRELOAD", rest, 1);
    else
        unsetenv("LD_PRELOAD");
    free(rest);
}

static int set_environment(const struct roots *roots, const char *node)
{
    char shim[PATH_MAX];
    if (places_preload(shim) < 0)
        return -1;
    if (strpbrk(shim, ": ")) {
        complain("%s cannot be preloaded, since its path holds a colon or a space: install shunt elsewhere",
                 shim);
        return -1;
    }
    if (set("LD_PRELOAD", preload_with(shim)) < 0 || set("SHUNT_ROOT", roots_join(roots)) < 0)
        return -1;
    return set("SHUNT_NODE", strdup(node));
}

int launch_exec(const struct roots *roots, const char *node, char **command)
{
    size_t count = 0;
    while (command[count])
        count++;
    char **words = set_environment(roots, node) == 0 ? calloc(count + 4, sizeof *words) : NULL;
    if (!words)
        return LAUNCH_NO_SHIM;
    words[0] = "shunt";
    words[1] = LAUNCH_PROVE;
    words[2] = "--";
    memcpy(words + 3, command, count * sizeof *words);
    fflush(NULL);
    SYS3(SYS_execve, "/proc/self/exe", words, environ);
    complain("/proc/self/exe cannot be executed: mount /proc");
    free(words);
    return LAUNCH_NO_SHIM;
}
