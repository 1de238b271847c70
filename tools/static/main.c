/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* shunt-static PATH ARGUMENT... or shunt-static "" FD[:PASSED] ARGUMENT...: executes a program that the shim cannot be loaded
 * into, with ARGUMENTs from the zeroth on, under a filter that asks a helper about its paths. The shim's exec does so
 * (lib/shim/wrap_exec.c); it is not for users. With a zeroth argument that begins with '-' it unblocks SIGTRAP first. */

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "config/config.h"
#include "filter.h"
#include "guard.h"
#include "kernel.h"

enum { MAIN_USAGE = 2, MAIN_CANNOT_EXECUTE = 126, MAIN_NOT_FOUND = 127 };

/* One thread of a program that may trace no other: Yama's restriction lets only ancestors look into a process. */
static bool main_may_look(void)
{
    char level = '0';
    const int fd = sys_openat(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return true;
    sys_read(fd, &level, 1);
    sys_close(fd);
    return level == '0' || geteuid() == 0;
}

/* NULL: it is served. Else why not. `is_bound`: it cannot go without, since a process takes no filter back. */
static const char *main_serve(const struct config *config, bool *is_bound)
{
    if (!main_may_look())
        return "kernel.yama.ptrace_scope is not 0";
    const int socket = guard_start(config);
    if (socket < 0)
        return "no process can be started for it";
    const int listener = filter_install();
    if (listener < 0) {
        sys_close(socket);
        return listener == -EBUSY    ? "another filter has a listener"
               : listener == -EINVAL ? "this kernel is older than 5.19"
                                     : "the kernel takes no filter";
    }
    *is_bound = guard_hand_over(socket, listener) != 0;
    return *is_bound ? "its helper has ended" : NULL;
}

static void main_warn(const char *path, const char *why, const char *roots)
{
    dprintf(
        2,
        "shunt: %s: warning: statically linked, and not served, since %s, so shunt does not see what it does with files under "
        "%.*s\n",
        path, why, (int)strcspn(roots, ":"), roots);
}

/* The program's descriptor. One that is to be closed on exec, as it was for the caller, came as a duplicate; it was FD. */
static int main_take_open(const char *word)
{
    char *end;
    const int fd = (int)strtol(word, &end, 10), passed = *end == ':' ? (int)strtol(end + 1, NULL, 10) : -1;
    if (passed < 0)
        return fd;
    dup3(passed, fd, O_CLOEXEC);
    close(passed);
    return fd;
}

static const char *main_name_of(int fd, char to[PATH_MAX])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, to, PATH_MAX - 1);
    to[length > 0 ? length : 0] = '\0';
    return to;
}

/* The shim had blocked it for this program alone: a debugger is not to be told of its exec. */
static void main_take_trap(void)
{
    const struct timespec none = {0};
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigtimedwait(&trap, NULL, &none);
    sigprocmask(SIG_UNBLOCK, &trap, NULL);
}

int main(int argc, char **argv)
{
    struct config config;
    char of_open[PATH_MAX];
    bool is_bound = false;
    if (argc > 0 && argv[0][0] == '-')
        main_take_trap();
    config_read(&config, environ);
    const bool is_open = argc > 1 && argv[1][0] == '\0';
    if (argc < 3 + is_open || config.roots == NULL)
        return MAIN_USAGE;
    const int fd = is_open ? main_take_open(argv[2]) : AT_FDCWD;
    const char *path = is_open ? main_name_of(fd, of_open) : argv[1], *why = main_serve(&config, &is_bound);
    if (is_bound) {
        dprintf(2, "shunt: %s: cannot be executed: %s (run it again, or set SHUNT_STATIC=warn to go without)\n", path, why);
        return MAIN_CANNOT_EXECUTE;
    }
    if (why != NULL)
        main_warn(path, why, config.roots);
    const long code =
        is_open ? SYS5(SYS_execveat, fd, "", argv + 3, environ, AT_EMPTY_PATH) : SYS3(SYS_execve, argv[1], argv + 2, environ);
    dprintf(2, "shunt: %s: cannot be executed: %s\n", path, strerror((int)-code));
    return code == -ENOENT ? MAIN_NOT_FOUND : MAIN_CANNOT_EXECUTE;
}
