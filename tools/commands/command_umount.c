/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cli/command.h"
#include "programs/capture.h"
#include "commands.h"

#define FUSE_TYPE "fuse.shunt"

#define LINKS_MOST 40 /* as the kernel follows */

/* The mount itself is not looked at: its server may have been killed. */
static int command_umount_unfollowed(const char *word, char to[PATH_MAX])
{
    char text[PATH_MAX], above[PATH_MAX];
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    if (snprintf(text, sizeof text, "%.*s", (int)length, word) >= (int)sizeof text)
        return -ENAMETOOLONG;
    char *slash = strrchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return realpath(text, to) ? 0 : -errno;
    if (slash)
        *slash = '\0';
    if (!realpath(!slash ? "." : slash == text ? "/" : text, above))
        return -errno;
    const int used = snprintf(to, PATH_MAX, "%s/%s", strcmp(above, "/") ? above : "", name);
    return used < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* What a link says, as a path from its own directory. 1, 0: it is none (a mount is none to the kernel without the server), or
 * -errno. */
static int command_umount_follow(const char *path, char to[PATH_MAX])
{
    const int above = (int)(strrchr(path, '/') - path) + 1;
    char target[PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return 0;
    target[length] = '\0';
    const int used = snprintf(to, PATH_MAX, "%.*s%s", target[0] == '/' ? 0 : above, path, target);
    return used < PATH_MAX ? 1 : -ENAMETOOLONG;
}

static int command_umount_canonical(const char *word, char to[PATH_MAX])
{
    char next[PATH_MAX];
    int links = 0, code, error = command_umount_unfollowed(word, to);
    while (error == 0 && (code = command_umount_follow(to, next)) != 0)
        error = code < 0 ? code : ++links > LINKS_MOST ? -ELOOP : command_umount_unfollowed(next, to);
    return error;
}

bool command_umount_is_mount(const char *path)
{
    const struct mntent *mount;
    bool is_ours = false;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    while (mounts && (mount = getmntent(mounts)))
        if (!strcmp(mount->mnt_dir, path)) /* the last one is on top */
            is_ours = !strcmp(mount->mnt_type, FUSE_TYPE);
    if (mounts)
        endmntent(mounts);
    return is_ours;
}

/* 0 or -errno. Without privileges fusermount3 does it, which says why it did not. */
static int command_umount_one(const char *path)
{
    char said[1024];
    char *const words[] = {"fusermount3", "-u", "--", (char *)path, NULL};
    if (umount2(path, UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    const int status = capture_all(words, said, sizeof said);
    if (status <= 0)
        return status;
    return strstr(said, "busy") ? -EBUSY : -EPERM;
}

static int command_umount_word(const char *word)
{
    char path[PATH_MAX];
    int error = command_umount_canonical(word, path);
    if (error == 0 && !command_umount_is_mount(path)) {
        error_report("%s: is not a mount of 'shunt mount' (list those with 'findmnt -t " FUSE_TYPE "')", word);
        return STATUS_FAILED;
    }
    if (error == 0)
        error = command_umount_one(path);
    if (error == -EBUSY)
        error_report("%s: is in use (see by which process with 'fuser -vm %s', and run this again)", word, path);
    else if (error < 0)
        error_report("%s: cannot be unmounted: %s (check the path, and that fusermount3 is installed)", error_name(word),
                     strerror(-error));
    return error < 0 ? STATUS_FAILED : STATUS_OK;
}

int command_umount(const struct command *command, int argc, char **argv)
{
    const int end = command_option(command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (optind == argc)
        return error_usage(command, "no directory is given");
    int status = STATUS_OK;
    for (; optind < argc; optind++)
        if (command_umount_word(argv[optind]) != STATUS_OK)
            status = STATUS_FAILED;
    return status;
}
