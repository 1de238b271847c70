/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What `spaces` loads: code that makes files and looks at them, by the C library of its own namespace. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "few_calls.h"

#define PLUGIN __attribute__((visibility("default")))

int plugin_make(const char *prefix, int count);
PLUGIN int plugin_make(const char *prefix, int count)
{
    int made = 0;
    for (int i = 0; i < count; i++) {
        char name[64];
        struct stat st;
        snprintf(name, sizeof name, "%s%d", prefix, i);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        made += fd >= 0 && stat(name, &st) == 0;
        close(fd);
    }
    return made;
}

int plugin_see(const char *path);
PLUGIN int plugin_see(const char *path)
{
    return access(path, F_OK);
}

int plugin_go(const char *path);
PLUGIN int plugin_go(const char *path)
{
    return chdir(path);
}

int plugin_become(int user);
PLUGIN int plugin_become(int user)
{
    return setuid((uid_t)user);
}

int plugin_restrict(void);
PLUGIN int plugin_restrict(void)
{
    return few_calls_begin();
}
