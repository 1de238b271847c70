/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Stands in for a few functions of libc, after the shim's: what the real ones do too seldom to be waited
 * for, or do not do yet. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAND_IN __attribute__((visibility("default")))

/* The names of $STAND_IN_NAMES in turn, separated by colons, then none. */
STAND_IN char *tempnam(const char *directory, const char *prefix)
{
    static const char *next;
    if (next == NULL)
        next = getenv("STAND_IN_NAMES");
    if (next == NULL || *next == '\0')
        return NULL;
    size_t length = strcspn(next, ":");
    char *name = strndup(next, length);
    next += length + (next[length] == ':');
    return name;
}

/* A libc that notes actions in a way of its own. */
STAND_IN int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd, const char *path, int flags,
                                              mode_t mode)
{
    return posix_spawn_file_actions_addclose(actions, fd);
}
