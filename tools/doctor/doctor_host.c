/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "config/config.h"
#include "doctor/doctor.h"
#include "programs/capture.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "programs/site.h"
#include "session/session.h"
#include "union/disk.h"

#define DOCTOR_LEAST (2ull << 20)   /* of the run directory, for one root */
#define DOCTOR_ENOUGH (64ull << 20) /* ... with a million names */

static bool doctor_is_before(const char *version, unsigned major, unsigned minor)
{
    unsigned found_major = 0, found_minor = 0;
    if (sscanf(version, "%u.%u", &found_major, &found_minor) != 2)
        return true;
    return found_major < major || (found_major == major && found_minor < minor);
}

/* The version, and the call without which nothing goes: some containers refuse it whatever the kernel is. */
static void doctor_check_kernel(struct doctor *doctor)
{
    struct utsname host;
    uname(&host);
    int pidfd = (int)SYS2(SYS_pidfd_open, getpid(), 0);
    if (pidfd >= 0)
        close(pidfd);
    if (doctor_is_before(host.release, 5, 3))
        doctor_say(doctor, DOCTOR_PROBLEM, "kernel", "version %s of Linux is too old (use a host with 5.3 or later)",
                   host.release);
    else if (pidfd < 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "kernel", "version %s of Linux: pidfd_open is refused: %s (%s)", host.release,
                   strerror(-pidfd), doctor_remedy(pidfd, "allow it in the container's seccomp profile"));
    else
        doctor_say(doctor, DOCTOR_OK, "kernel", "version %s of Linux has all calls that are needed", host.release);
}

static void doctor_check_libc(struct doctor *doctor)
{
    const char *version = gnu_get_libc_version();
    if (doctor_is_before(version, 2, 31))
        doctor_say(doctor, DOCTOR_PROBLEM, "libc", "glibc %s is too old (use a host with glibc 2.31 or later)", version);
    else
        doctor_say(doctor, DOCTOR_OK, "libc", "glibc %s is recent enough", version);
}

/* The directory of the user's own in it, if it is there already. */
static bool doctor_check_own_directory(struct doctor *doctor, const char *base)
{
    char own[PATH_MAX];
    struct stat stat;
    struct text t;
    text_init(&t, own, sizeof own);
    session_run_dirs(&t, base, geteuid());
    if (!text_ok(&t))
        return false;
    own[t.length - 1] = '\0'; /* a slash, with which a link would be followed */
    if (lstat(own, &stat) != 0) {
        if (errno != ENOENT)
            doctor_say(doctor, DOCTOR_PROBLEM, "run dir", "%s: cannot be looked at: %s (%s)", own, strerror(errno),
                       doctor_remedy(-errno, "set SHUNT_RUN_DIR to another directory"));
        return errno == ENOENT;
    }
    if (S_ISDIR(stat.st_mode) && stat.st_uid == geteuid() && (stat.st_mode & 077) == 0)
        return true;
    if (S_ISDIR(stat.st_mode) && stat.st_uid == geteuid())
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir",
                   "%s: not a directory that you alone may use (run 'chmod 700 %s', or set SHUNT_RUN_DIR to another directory)",
                   own, own);
    else
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir",
                   "%s: not a directory that you own (set SHUNT_RUN_DIR to another directory)", own);
    return false;
}

static void doctor_check_room(struct doctor *doctor, const char *base)
{
    struct statvfs room;
    const int has_server = doctor_has_server(base), error = statvfs(base, &room) != 0 ? -errno
                                                            : has_server < 0          ? has_server
                                                                                      : 0;
    if (error != 0) {
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir", "%s: cannot be measured: %s (%s)", base, strerror(-error),
                   doctor_remedy(error, "set SHUNT_RUN_DIR to another directory"));
        return;
    }
    const unsigned long long bytes = (unsigned long long)room.f_bavail * room.f_frsize, mib = bytes >> 20;
    if (has_server)
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir",
                   "%s: on a network file system (set SHUNT_RUN_DIR to a directory in memory, such as /dev/shm)", base);
    else if (bytes < DOCTOR_LEAST)
        doctor_say(
            doctor, DOCTOR_PROBLEM, "run dir",
            "%s: only %llu MiB are free, and a root takes 2 MiB or more (make room, or set SHUNT_RUN_DIR to another directory)",
            base, mib);
    else if (bytes < DOCTOR_ENOUGH)
        doctor_say(
            doctor, DOCTOR_WARNING, "run dir",
            "%s: only %llu MiB are free, and a million names take 70 MB (make room, or set SHUNT_RUN_DIR to another directory)",
            base, mib);
    else
        doctor_say(doctor, DOCTOR_OK, "run dir", "%s: %llu MiB are free", base, mib);
}

/* 0 or -errno. */
static int doctor_may_make_in(const char *base)
{
    struct stat stat_of;
    if (stat(base, &stat_of) != 0)
        return -errno;
    if (!S_ISDIR(stat_of.st_mode))
        return -ENOTDIR;
    return access(base, W_OK | X_OK) != 0 ? -errno : 0;
}

static void doctor_check_run_dir(struct doctor *doctor, const struct config *config)
{
    const char *base = config->run_base;
    const int code = doctor_may_make_in(base);
    if (config->bad != NULL && strcmp(config->bad, "SHUNT_RUN_DIR") == 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir", "SHUNT_RUN_DIR: not an absolute path (set it to one, or unset it)");
    else if (code != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "run dir", "%s: no directory can be made in it: %s (%s)", base, strerror(-code),
                   doctor_remedy(code, "set SHUNT_RUN_DIR to a local directory"));
    else if (doctor_check_own_directory(doctor, base))
        doctor_check_room(doctor, base);
}

static bool doctor_check_settings(struct doctor *doctor)
{
    const char *bad = site_bad_variable();
    if (bad != NULL)
        doctor_say(doctor, DOCTOR_PROBLEM, "settings", "%s: %s (correct it or unset it)", bad, settings_fault(bad));
    return bad == NULL;
}

/* A command's first line of standard output or error, and its exit status; 128 and the signal; -errno, with its words as the
 * line: no process could be started. */
static int doctor_run(char *const *words, const char *preload, char *line, size_t size)
{
    int ends[2], status = 0;
    size_t length = 0;
    char rest[256];
    const bool has_pipe = pipe2(ends, O_CLOEXEC) == 0;
    fflush(NULL);
    pid_t child = has_pipe ? fork() : -1;
    if (child < 0) {
        const int error = errno;
        snprintf(line, size, "%s", strerror(error));
        if (has_pipe) {
            close(ends[0]);
            close(ends[1]);
        }
        return -error;
    }
    if (child == 0) {
        launch_without_shim();
        if (preload != NULL)
            setenv("LD_PRELOAD", preload, 1);
        unsetenv("SHUNT_ROOT");
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        SYS3(SYS_execve, words[0], words, environ);
        _exit(LAUNCH_NOT_FOUND);
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && length<size - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], line + length, size - 1 - length);
    while (read(ends[0], rest, sizeof rest) > 0)
        continue;
    close(ends[0]);
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status))
        snprintf(line, size, "killed by signal %d", WTERMSIG(status));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void doctor_check_daemon(struct doctor *doctor)
{
    char program[PATH_MAX], line[1024];
    char *const words[] = {program, "--version", NULL};
    const bool is_found = places_daemon(program) == 0;
    const int status = is_found ? doctor_run(words, NULL, line, sizeof line) : 0;
    if (!is_found)
        doctor_say(doctor, DOCTOR_PROBLEM, "shuntd", "not found next to the shunt command (build or install shunt as a whole)");
    else if (status != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "shuntd", "%s: cannot be run: %s (%s)", program, line,
                   doctor_remedy(status, status == LAUNCH_NOT_FOUND ? "install the libraries that it needs"
                                                                    : "check it with 'shuntd --version'"));
    else if (strcmp(line, "shuntd " SHUNT_VERSION) != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "shuntd", "%s: %s, while this is shunt " SHUNT_VERSION " (install shunt as a whole)",
                   program, line);
    else
        doctor_say(doctor, DOCTOR_OK, "shuntd", "%s: runs, version " SHUNT_VERSION, program);
}

/* The shim in a process of its own, which looks for it in its own memory map. */
static void doctor_check_preload(struct doctor *doctor)
{
    char line[1024];
    char *preload = launch_preload(NULL);
    char *const words[] = {"/proc/self/exe", LAUNCH_PROVE, "--", "/proc/self/exe", "--version", NULL};
    const int status = preload != NULL ? doctor_run(words, preload, line, sizeof line) : -1;
    if (preload == NULL)
        doctor_say(doctor, DOCTOR_PROBLEM, "preload", "the library cannot be preloaded (install shunt as a whole)");
    else if (status != 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "preload", "%s: not loaded into a program: %s (%s)", preload, line,
                   doctor_remedy(status, "check it with 'ldd'"));
    else
        doctor_say(doctor, DOCTOR_OK, "preload", "%s: loaded into a test process", preload);
    free(preload);
}

/* Nothing but `shunt mount` needs it. */
static void doctor_check_fuse(struct doctor *doctor)
{
    char version[256];
    char *const words[] = {"fusermount3", "-V", NULL};
    int status = 0;
    const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const int error = device < 0 ? errno : 0;
    if (device >= 0)
        close(device);
    if (error)
        doctor_say(doctor, DOCTOR_WARNING, "fuse",
                   "/dev/fuse: cannot be opened, so 'shunt mount' has nothing to mount with: %s (%s)", strerror(error),
                   doctor_remedy(-error, "load the module fuse, or have the device made, with mode 666"));
    else if ((status = capture(words, version, sizeof version)) < 0)
        doctor_say(doctor, DOCTOR_WARNING, "fuse", "fusermount3: cannot be run: %s (%s)", strerror(-status),
                   doctor_remedy(status, "check it with 'fusermount3 -V'"));
    else if (status != 0)
        doctor_say(doctor, DOCTOR_WARNING, "fuse",
                   "fusermount3: not found, so 'shunt mount' works for root alone (install fuse3)");
    else
        doctor_say(doctor, DOCTOR_OK, "fuse", "'shunt mount' finds /dev/fuse and %.*s", (int)strcspn(version, "\n"), version);
}

void doctor_check_host(struct doctor *doctor)
{
    struct config config;
    config_read(&config, environ);
    doctor_check_kernel(doctor);
    doctor_check_libc(doctor);
    const bool is_understood = doctor_check_settings(doctor);
    doctor_check_run_dir(doctor, &config);
    if (is_understood) /* else it says the same, instead of its version */
        doctor_check_daemon(doctor);
    doctor_check_preload(doctor);
    doctor_check_fuse(doctor);
}
