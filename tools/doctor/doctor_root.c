/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
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

/* Is that the mount that `stat` is of? Before Linux 5.8 only the device is known, which may have several. */
static bool doctor_is_mount(const char *id, const char *device, const struct statx *stat)
{
    unsigned major, minor;
    if (stat->stx_mask & STATX_MNT_ID)
        return strtoull(id, NULL, 10) == stat->stx_mnt_id;
    return sscanf(device, "%u:%u", &major, &minor) == 2 && major == stat->stx_dev_major && minor == stat->stx_dev_minor;
}

/* A line of it: ID PARENT MAJOR:MINOR ROOT PATH OPTIONS [FIELD]... - TYPE SOURCE OPTIONS. False: another mount's. */
static bool doctor_take_mount(char *line, const struct statx *stat, struct doctor_mount *mount)
{
    char *words[6], *rest = line, *after = strstr(line, " - ");
    if (after == NULL)
        return false;
    *after = '\0';
    for (size_t i = 0; i < 6; i++)
        if ((words[i] = strsep(&rest, " ")) == NULL)
            return false;
    if (!doctor_is_mount(words[0], words[2], stat))
        return false;
    after += 3;
    const char *type = strsep(&after, " "), *source = strsep(&after, " "), *super = after != NULL ? after : "";
    if (source == NULL)
        return false;
    snprintf(mount->type, sizeof mount->type, "%s", type);
    snprintf(mount->options, sizeof mount->options, ",%s,%.*s,", words[5], (int)strcspn(super, "\n"), super);
    return true;
}

/* 1, 0: it is not there, or -errno. */
static int doctor_find_mount(const char *root, struct doctor_mount *mount)
{
    struct statx stat;
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    const int code = sys_statx(AT_FDCWD, root, 0, STATX_TYPE | STATX_MNT_ID, &stat);
    FILE *mounts = code == 0 ? fopen("/proc/self/mountinfo", "re") : NULL;
    if (mounts == NULL)
        return code != 0 ? code : -errno;
    while (getline(&line, &size, mounts) > 0) /* the last one covers the others */
        found |= doctor_take_mount(line, &stat, mount);
    const bool failed = ferror(mounts) != 0;
    free(line);
    fclose(mounts);
    return failed ? -EIO : found;
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
    const int has_server = doctor_has_server(root), found = has_server < 0 ? has_server : doctor_find_mount(root, &mount);
    if (found < 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "mount", "%s: its mount cannot be looked at: %s (%s)", root, strerror(-found),
                   doctor_remedy(found, "mount /proc"));
    else if (found == 0)
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

/* What shunt needs of a file system, tried. */
struct doctor_trial {
    int code;         /* 0 or -errno */
    const char *step; /* that failed */
    bool has_noreplace;
};

/* The file's inode number, by that name. 0 or -errno. */
static int doctor_try_number(int top, const char *name, struct doctor_trial *trial, uint64_t *number)
{
    struct statx stat;
    const int code = sys_statx(top, name, 0, STATX_INO, &stat);
    if (code != 0)
        trial->step = "a file cannot be looked at";
    *number = stat.stx_ino;
    return code;
}

static int doctor_try_noreplace(int top, struct doctor_trial *trial)
{
    trial->step = "a file cannot be renamed";
    trial->has_noreplace = renameat2(top, "b", top, "d", RENAME_NOREPLACE) == 0;
    return trial->has_noreplace || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
}

static int doctor_try(int top, struct doctor_trial *trial)
{
    uint64_t before, after;
    trial->step = "a file cannot be made";
    int code = disk_write_new(top, "a", "shunt", 5, 0600);
    if (code != 0 || (code = doctor_try_number(top, "a", trial, &before)) != 0)
        return code;
    if (linkat(top, "a", top, "b", 0) != 0) {
        const int error = errno;
        const bool is_missing = error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
        trial->step = is_missing ? "hard links do not work" : "a hard link cannot be made";
        return -error;
    }
    trial->step = "a file cannot be renamed";
    if (renameat(top, "a", top, "c") != 0)
        return -errno;
    static const char *const names[] = {"c", "b"};
    for (size_t i = 0; i < 2; i++) {
        if ((code = doctor_try_number(top, names[i], trial, &after)) != 0)
            return code;
        if (before != after) {
            trial->step = "inode numbers change";
            return -ENOTSUP;
        }
    }
    return doctor_try_noreplace(top, trial);
}

static void doctor_remove_trial(int top, const char *path)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < sizeof names / sizeof *names && top >= 0; i++)
        unlinkat(top, names[i], 0);
    rmdir(path);
}

static void doctor_try_in(const char *root, struct doctor_trial *trial)
{
    char path[PATH_MAX + sizeof DOCTOR_TRIAL + 1];
    *trial = (struct doctor_trial){.step = "a directory cannot be made"};
    snprintf(path, sizeof path, "%s/" DOCTOR_TRIAL, root);
    if (mkdtemp(path) == NULL) {
        trial->code = -errno;
        return;
    }
    trial->step = "a directory cannot be opened";
    int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    trial->code = top < 0 ? -errno : doctor_try(top, trial);
    doctor_remove_trial(top, path);
    if (top >= 0)
        close(top);
}

/* The process of the trial. What waits for the end of this command's output does not wait for it. */
static void doctor_try_and_tell(const char *root, int to)
{
    struct doctor_trial trial;
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    doctor_try_in(root, &trial);
    _exit(write(to, &trial, sizeof trial) != sizeof trial);
}

/* With the signals that end a command blocked, also from the beginning of its process. */
static pid_t doctor_begin_trial(const char *root, int to)
{
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    pid_t child = fork();
    if (child == 0)
        doctor_try_and_tell(root, to);
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child < 0 ? -error : child;
}

/* In a process of its own: a signal ends this one at once, also while the file system hangs, and what was made is removed. */
static void doctor_try_apart(const char *root, struct doctor_trial *trial)
{
    int ends[2];
    *trial = (struct doctor_trial){.code = -EIO, .step = "it could not be tried"};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        trial->code = -errno;
        return;
    }
    pid_t child = doctor_begin_trial(root, ends[1]);
    close(ends[1]);
    if (child < 0)
        trial->code = child;
    else if (read(ends[0], trial, sizeof *trial) != sizeof *trial)
        *trial = (struct doctor_trial){.code = -EIO, .step = "it could not be tried"};
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void doctor_check_calls(struct doctor *doctor, const char *root)
{
    struct doctor_trial trial;
    doctor_try_apart(root, &trial);
    if (trial.code != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "file system", "%s: %s: %s (%s)", root, trial.step, strerror(-trial.code),
                   doctor_remedy(trial.code, "use a directory that you may write to, on another file system"));
    else if (!trial.has_noreplace)
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
    const int error = stat(root, &stat_of) != 0 ? errno : 0;
    if (strcmp(root, "/") == 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "root", "%s: cannot be a root (give the directory to be shared)", root);
    else if (error != 0 && error != ENOENT && error != ENOTDIR)
        doctor_say(doctor, DOCTOR_PROBLEM, "root", "%s: cannot be looked at: %s (%s)", root, strerror(error),
                   doctor_remedy(-error, "use a directory that you may enter"));
    else if (error != 0 || !S_ISDIR(stat_of.st_mode))
        doctor_say(doctor, DOCTOR_PROBLEM, "root", "%s: not a directory (make it first)", root);
    else {
        doctor_check_mount(doctor, root);
        doctor_check_calls(doctor, root);
    }
}
