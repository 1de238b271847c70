/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "deeper.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static char name[DEEPER_LENGTH + 1];

static void deeper_enter(const char *directory)
{
    if (chdir(directory) < 0)
        give_up("cannot enter", directory);
}

static void come_back(int home)
{
    if (fchdir(home) < 0)
        give_up("cannot enter", "where it began");
    close(home);
}

void deeper_make(const char *directory)
{
    int home = open(".", O_RDONLY | O_DIRECTORY);
    memset(name, 'd', DEEPER_LENGTH);
    deeper_enter(directory);
    make_directory("deep", 0755);
    deeper_enter("deep");
    for (int i = 0; i < DEEPER_LEVELS; i++) {
        make_file("in", 0644, "", 0);
        make_directory(name, 0755);
        deeper_enter(name);
    }
    come_back(home);
}

void deeper_remove(const char *directory)
{
    int home = open(".", O_RDONLY | O_DIRECTORY);
    deeper_enter(directory);
    deeper_enter("deep");
    for (int i = 0; i < DEEPER_LEVELS; i++)
        deeper_enter(name);
    for (int i = 0; i < DEEPER_LEVELS; i++) {
        deeper_enter("..");
        if (rmdir(name) < 0 || unlink("in") < 0)
            give_up("cannot remove", name);
    }
    deeper_enter("..");
    if (rmdir("deep") < 0)
        give_up("cannot remove", "deep");
    come_back(home);
}
