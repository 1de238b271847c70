/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* rename, RENAME_NOREPLACE, RENAME_EXCHANGE and link between all kinds of things in two directories: one as
 * it is, and one that is watched, where files are born in the trunk. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static const char *const kinds[] = {"file", "other", "link", "fifo", "void", "full", "absent"};
#define KINDS (sizeof kinds / sizeof *kinds)

static const char *const directories[] = {"as-it-is", "watched"};

static void make_kinds(const char *directory)
{
    char text[64];
    if (chdir(directory) < 0)
        give_up("cannot enter", directory);
    make_file("file", 0644, directory, strlen(directory));
    make_file("other", 0600, "other", 5);
    snprintf(text, sizeof text, "../%s/file", directory);
    make_link(text, "link");
    if (mkfifo("fifo", 0644) < 0)
        give_up("cannot mkfifo in", directory);
    make_directory("void", 0755);
    make_directory("full", 0700);
    make_file("full/inner", 0644, directory, strlen(directory));
    if (chdir("..") < 0)
        give_up("cannot leave", directory);
}

static void kinds_begin(void)
{
    static int events = -1;
    if (events < 0)
        events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    for (int i = 0; i < 2; i++) {
        make_directory(directories[i], 0755);
        if (i == 1 && inotify_add_watch(events, directories[i], IN_DELETE_SELF) < 0)
            give_up("cannot watch", directories[i]);
        make_kinds(directories[i]);
    }
}

static long by_rename(const char *from, const char *to)
{
    return rename(from, to);
}

static long by_noreplace(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

static long by_exchange(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
}

static long by_link(const char *from, const char *to)
{
    return link(from, to);
}

static const struct {
    const char *name;
    long (*run)(const char *from, const char *to);
} ways[] = {
    {"rename", by_rename},
    {"NOREPLACE", by_noreplace},
    {"EXCHANGE", by_exchange},
    {"link", by_link},
};

static void one_pair(size_t way, const char *from, const char *to)
{
    char where[160];
    if (!case_is_due())
        return;
    kinds_begin();
    snprintf(where, sizeof where, "%s %s", from, to);
    errno = 0;
    long result = ways[way].run(from, to);
    int error = errno;
    if (chdir("/") < 0)
        give_up("cannot leave", fixture.work);
    case_told(ways[way].name, where, result, error, true);
}

void part_kinds(void)
{
    char from[64], to[64];
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int which = 0; which < 3; which++)
            for (size_t i = 0; i < KINDS; i++)
                for (size_t j = 0; j < KINDS; j++) {
                    snprintf(from, sizeof from, "%s/%s", directories[which == 1], kinds[i]);
                    snprintf(to, sizeof to, "%s/%s", directories[which != 1], kinds[j]);
                    if (which == 2)
                        snprintf(from, sizeof from, "%s/%s", directories[1], kinds[i]);
                    one_pair(way, from, to);
                }
}
