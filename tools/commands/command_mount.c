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

#include "cli/command.h"
#include "config/config.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "serving/daemon.h"
#include "serving/reach.h"
#include "session/session.h"
#include "commands.h"

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
    bool is_for_others;
    char mountpoint[PATH_MAX]; /* canonical */
};

static bool command_mount_is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool command_mount_is_directory(const struct stat *stat)
{
    errno = ENOTDIR;
    return S_ISDIR(stat->st_mode);
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
    struct config config;
    if (!realpath(word, mount->mountpoint) || stat(mount->mountpoint, &of_mountpoint) < 0 ||
        !command_mount_is_directory(&of_mountpoint)) {
        error_report(errno == ENOTCONN ? "%s: is a mount whose server has ended: %s (run 'shunt umount' on it first)"
                                       : "%s: cannot be mounted on: %s (make the directory first)",
                     error_name(word), strerror(errno));
        return -1;
    }
    if (command_umount_is_mount(mount->mountpoint)) {
        error_report("%s: something is mounted there already (run 'shunt umount' on it first)", word);
        return -1;
    }
    config_read(&config, environ);
    if (command_mount_is_below(config.run_base, &of_mountpoint)) {
        error_report("%s: holds the run directory %s (give a directory that is apart from it)", word, config.run_base);
        return -1;
    }
    if (stat(root, &of_root) < 0 || command_mount_is_below(mount->mountpoint, &of_root) ||
        command_mount_is_below(root, &of_mountpoint)) {
        error_report("%s: is in the root %s or holds it (give a directory that is apart from the root)", word, root);
        return -1;
    }
    return 0;
}

static bool command_mount_has_option(const char *options, const char *wanted)
{
    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == strlen(wanted) && !strncmp(at, wanted, strlen(wanted)))
            return true;
    return false;
}

static int command_mount_read(const struct command *command, struct mount *mount, int argc, char **argv)
{
    int end;
    while ((end = command_option(command, argc, argv)) >= 0)
        if (end == 'n')
            mount->node = optarg;
        else if (end == 'f')
            mount->in_foreground = true;
        else if (end == 'l')
            mount->log = optarg;
        else
            mount->options = optarg;
    mount->is_for_others = command_mount_has_option(mount->options, "allow_other");
    if (end == COMMAND_END && mount->is_for_others && geteuid() != 0) {
        error_usage(command, "-o allow_other: is for root alone, others make a mount of their own");
        return COMMAND_WRONG;
    }
    if (end == COMMAND_END && argc - optind != 2) {
        error_usage(command, "a root and a directory to mount it on are needed");
        return COMMAND_WRONG;
    }
    return end;
}

/* Does a daemon of this user's on this host serve it? */
static bool command_mount_is_served(const char *root)
{
    struct session session;
    bool is_served = false;
    if (session_read(root, &session) != 0)
        return false;
    for (size_t i = 0; i < session.count && session.uid == geteuid() && !session_is_held(&session); i++)
        is_served |= launch_has_daemon(&session.members[i]);
    session_finish(&session);
    return is_served;
}

/* Replaces this process by the server. `node` is NULL: it reads the root from disk. */
static int command_mount_serve(const struct mount *mount, const struct roots *roots, const char *node)
{
    char server[PATH_MAX];
    char *words[10] = {server};
    size_t at = 1;
    if (places_mount(server) < 0)
        return STATUS_FAILED;
    if (!node && mount->is_for_others) {
        error_report("%s: cannot be shown to others without a session of root's (run 'shunt start', and mount it again)",
                     roots->paths[0]);
        return STATUS_FAILED;
    }
    if (!node && !command_mount_has_option(mount->options, "ro"))
        error_report("%s: no daemon of yours serves it on this host, so it is mounted to be read only (run 'shunt start', and "
                     "mount it again, to write)",
                     roots->paths[0]);
    if (!node)
        words[at++] = "-d";
    if (mount->is_for_others)
        words[at++] = "-a";
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
    if (node)
        return launch_exec(roots, node, words, true);
    launch_without_shim();
    return launch_command(words);
}

/* Without a session, or another user's: as others read it. */
static int command_mount_root(const struct mount *mount, const struct roots *roots)
{
    struct daemon_options daemon = {0};
    if (!mount->node && !command_mount_is_served(roots->paths[0]))
        return command_mount_serve(mount, roots, NULL);
    const int status = reach_node(roots, &daemon, mount->node);
    return status ? status : command_mount_serve(mount, roots, daemon.node);
}

int command_mount(const struct command *command, int argc, char **argv)
{
    struct mount mount = {0};
    struct roots roots;
    const int end = command_mount_read(command, &mount, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    roots_init(&roots);
    int status = STATUS_USAGE;
    if (roots_add(&roots, argv[optind]) == 0 && command_mount_check(&mount, roots.paths[0], argv[optind + 1]) == 0)
        status = command_mount_root(&mount, &roots);
    roots_finish(&roots);
    return status;
}
