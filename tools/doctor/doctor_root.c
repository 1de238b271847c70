/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/doctor.h"
#include "union/disk.h"

#define DOCTOR_TRIAL "shunt-doctor.XXXXXX"

/* What mountinfo says of the mount that a path is on. */
struct doctor_mount {
    char type[64];
    char options[1024]; /* of the mount and of its file system */
};

/* A line of it: ID PARENT MAJOR:MINOR ROOT PATH OPTIONS [FIELD]... - TYPE SOURCE OPTIONS. False: another device's. */
static bool doctor_take_mount(char *line, unsigned major, unsigned minor, struct doctor_mount *mount)
{
    char *words[6], *rest = line, *after = strstr(line, " - ");
    unsigned found_major, found_minor;
    if (after == NULL)
        return false;
    *after = '\0';
    for (size_t i = 0; i < 6; i++)
        if ((words[i] = strsep(&rest, " ")) == NULL)
            return false;
    if (sscanf(words[2], "%u:%u", &found_major, &found_minor) != 2 || found_major != major || found_minor != minor)
        return false;
    after += 3;
    const char *type = strsep(&after, " "), *source = strsep(&after, " "), *super = after != NULL ? after : "";
    if (source == NULL)
        return false;
    snprintf(mount->type, sizeof mount->type, "%s", type);
    snprintf(mount->options, sizeof mount->options, ",%s,%.*s,", words[5], (int)strcspn(super, "\n"), super);
    return true;
}

static bool doctor_find_mount(const char *root, struct doctor_mount *mount)
{
    struct statx stat;
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (mounts != NULL && sys_statx(AT_FDCWD, root, 0, STATX_TYPE, &stat) == 0)
        while (getline(&line, &size, mounts) > 0) /* the last one covers the others */
            found |= doctor_take_mount(line, stat.stx_dev_major, stat.stx_dev_minor, mount);
    free(line);
    if (mounts != NULL)
        fclose(mounts);
    return found;
}

static bool doctor_has_option(const struct doctor_mount *mount, const char *option)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", option);
    return strstr(mount->options, wanted) != NULL;
}

/* An NFS client that keeps names is asked past them (daemon/name_cache.h), at the price of a question for each call. */
static bool doctor_keeps_names(const struct doctor_mount *mount)
{
    return strncmp(mount->type, "nfs", 3) == 0 && !doctor_has_option(mount, "lookupcache=none") &&
           !doctor_has_option(mount, "noac");
}

/* What is asked of the file system's server depends on it. */
static void doctor_check_mount(struct doctor *doctor, const char *root)
{
    struct doctor_mount mount = {{0}, {0}};
    const int directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool has_server = directory >= 0 && disk_has_server(directory);
    if (directory >= 0)
        close(directory);
    if (!doctor_find_mount(root, &mount))
        doctor_say(doctor, DOCTOR_WARNING, "mount", "%s: its mount is not in /proc/self/mountinfo", root);
    else if (doctor_has_option(&mount, "ro"))
        doctor_say(doctor, DOCTOR_PROBLEM, "mount", "%s: %s, mounted read-only (remount it writable, or read with 'shunt ls')",
                   root, mount.type);
    else if (doctor_keeps_names(&mount))
        doctor_say(
            doctor, DOCTOR_OK, "mount",
            "%s: %s, with several nodes each call asks the server for its directory first, and names that nodes use at once "
            "may be missed for a moment (mount it with lookupcache=none to have them strict)",
            root, mount.type);
    else if (!has_server)
        doctor_say(doctor, DOCTOR_OK, "mount", "%s: %s, a file system of this host", root, mount.type);
    else
        doctor_say(doctor, DOCTOR_OK, "mount", "%s: %s, mounted %.*s", root, mount.type, (int)strcspn(mount.options + 1, ","),
                   mount.options + 1);
}

/* What shunt needs of a file system, tried: answers 0 or -errno, and which step it was. */
static int doctor_try(int top, const char **step, bool *has_noreplace)
{
    struct statx before, after;
    *step = "a file cannot be made";
    int code = disk_write_new(top, "a", "shunt", 5, 0600);
    if (code == 0)
        code = sys_statx(top, "a", 0, STATX_INO, &before);
    if (code != 0)
        return code;
    *step = "hard links do not work";
    if (linkat(top, "a", top, "b", 0) != 0)
        return -errno;
    *step = "a file cannot be renamed";
    if (renameat(top, "a", top, "c") != 0 || sys_statx(top, "c", 0, STATX_INO, &after) != 0)
        return -errno;
    *step = "inode numbers change";
    if (before.stx_ino != after.stx_ino || sys_statx(top, "b", 0, STATX_INO, &after) != 0 || before.stx_ino != after.stx_ino)
        return -ESTALE;
    *has_noreplace = renameat2(top, "b", top, "d", RENAME_NOREPLACE) == 0;
    return 0;
}

static void doctor_remove_trial(int top, const char *path)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlinkat(top, names[i], 0);
    rmdir(path);
}

static void doctor_check_calls(struct doctor *doctor, const char *root)
{
    char path[PATH_MAX + sizeof DOCTOR_TRIAL + 1];
    const char *step = "a directory cannot be made";
    bool has_noreplace = false;
    snprintf(path, sizeof path, "%s/" DOCTOR_TRIAL, root);
    int code = mkdtemp(path) == NULL ? -errno : 0;
    int top = code == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (code == 0)
        code = top < 0 ? -errno : doctor_try(top, &step, &has_noreplace);
    if (top >= 0) {
        doctor_remove_trial(top, path);
        close(top);
    }
    if (code != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "file system",
                   "%s: %s: %s (use a directory that you may write to, on another file system)", root, step, strerror(-code));
    else if (!has_noreplace)
        doctor_say(doctor, DOCTOR_WARNING, "file system",
                   "%s: has no rename that replaces nothing, so that an export looks at each name before it renames a file "
                   "(with --careful it links and removes, so that no program without shunt has a file replaced)",
                   root);
    else
        doctor_say(doctor, DOCTOR_OK, "file system",
                   "%s: has hard links, stable inode numbers, and a rename that replaces nothing", root);
}

void doctor_check_root(struct doctor *doctor, const char *root)
{
    struct stat stat_of;
    if (strcmp(root, "/") == 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "root", "%s: cannot be a root (give the directory to be shared)", root);
    else if (stat(root, &stat_of) != 0 || !S_ISDIR(stat_of.st_mode))
        doctor_say(doctor, DOCTOR_PROBLEM, "root", "%s: not a directory (make it first)", root);
    else {
        doctor_check_mount(doctor, root);
        doctor_check_calls(doctor, root);
    }
}
