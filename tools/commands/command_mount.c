/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "commands.h"
#include "daemon.h"
#include "launch.h"
#include "places.h"
#include "reach.h"
#include "site.h"

const struct choice command_mount_choices[] = {
    {'n', "node", "NAME", "what this node is called (default: the name of its daemon)"},
    {'f', "foreground", NULL, "stay until it is unmounted, and say on standard error what goes wrong"},
    {'l', "log", "FILE", "say that at the end of FILE (default: to syslog)"},
    {'o', "options", "OPTION,...", "as those of mount.fuse3: ro, noexec, noatime ..."},
    {0},
};

struct mount {
    const char *node, *log, *options;
    bool in_foreground;
    char mountpoint[PATH_MAX]; /* canonical */
};

static bool command_mount_is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Is `directory` the one of `stat`, or below it, by whatever path? */
static bool command_mount_is_below(const char *directory, const struct stat *stat)
{
    struct stat at = {0}, above;
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_below = false, is_top = fd < 0 || fstat(fd, &at) < 0;
    while (!is_top && !(is_below = command_mount_is_same(&at, stat))) {
        const int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = up;
        is_top = fd < 0 || fstat(fd, &above) < 0 || command_mount_is_same(&at, &above);
        at = above;
    }
    if (fd >= 0)
        close(fd);
    return is_below;
}

/* The server would wait for itself if what it reads were below its mount. */
static int command_mount_check(struct mount *mount, const char *root, const char *word)
{
    struct stat of_root, of_mountpoint;
    if (!realpath(word, mount->mountpoint) || stat(mount->mountpoint, &of_mountpoint) < 0) {
        error_report(errno == ENOTCONN ? "%s: is a mount whose server has ended: %s (run 'shunt umount' on it first)"
                                       : "%s: cannot be mounted on: %s (make the directory first)",
                     word, strerror(errno));
        return -1;
    }
    if (stat(root, &of_root) < 0 || command_mount_is_below(mount->mountpoint, &of_root) ||
        command_mount_is_below(root, &of_mountpoint)) {
        error_report("%s: is in the root %s or holds it (give a directory that is apart from the root)", word, root);
        return -1;
    }
    return 0;
}

/* What other users may do would be decided by the rights of the one that the server is run by. */
static int command_mount_check_options(const struct command *command, const char *options)
{
    for (const char *at = options; at && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (length == strlen("allow_other") && !strncmp(at, "allow_other", length)) {
            error_usage(command, "-o allow_other: a mount is for one user alone, others make their own");
            return COMMAND_WRONG;
        }
        at += length;
    }
    return 0;
}

static int command_mount_read(const struct command *command, struct mount *mount, int argc, char **argv)
{
    int end, wrong = 0;
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'n')
            mount->node = optarg;
        else if (end == 'f')
            mount->in_foreground = true;
        else if (end == 'l')
            mount->log = optarg;
        else
            wrong = command_mount_check_options(command, mount->options = optarg);
    if (wrong)
        return COMMAND_WRONG;
    if (end == COMMAND_END && argc - optind != 2) {
        error_usage(command, "a root and a directory to mount it on are needed");
        return COMMAND_WRONG;
    }
    return end;
}

static int command_mount_serve(const struct mount *mount, const struct roots *roots, const char *node)
{
    char server[PATH_MAX];
    char *words[10] = {server};
    size_t at = 1;
    if (places_mount(server) < 0)
        return STATUS_FAILED;
    if (mount->in_foreground)
        words[at++] = "-f";
    if (mount->log) {
        words[at++] = "-l";
        words[at++] = (char *)mount->log;
    }
    if (mount->options) {
        words[at++] = "-o";
        words[at++] = (char *)mount->options;
    }
    words[at++] = "--";
    words[at++] = roots->paths[0];
    words[at] = (char *)mount->mountpoint;
    return launch_exec(roots, node, words, true);
}

int command_mount(const struct command *command, int argc, char **argv)
{
    struct mount mount = {0};
    struct roots roots;
    struct daemon_options daemon = {0};
    const int end = command_mount_read(command, &mount, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    roots_init(&roots);
    int status = STATUS_USAGE;
    if (roots_add(&roots, argv[optind]) == 0 && command_mount_check(&mount, roots.paths[0], argv[optind + 1]) == 0) {
        if (site_is_off() && !site_is_served(&roots)) {
            error_report("%s: shunt is off on this host (mount it with bindfs, or use it as it is)", roots.paths[0]);
            status = STATUS_FAILED;
        } else if ((status = reach_node(&roots, &daemon, mount.node)) == 0) {
            status = command_mount_serve(&mount, &roots, daemon.node);
        }
    }
    roots_finish(&roots);
    return status;
}
