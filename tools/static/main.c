/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* shunt-static PATH ARGUMENT...: executes a program that the shim cannot be loaded into, with ARGUMENTs from the zeroth on,
 * under a filter that asks a helper about its paths. The shim's exec does so (lib/shim/wrap_exec.c); it is not for users. */

#include <stdio.h>
#include <string.h>
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

/* NULL: it is served. Else why not. */
static const char *main_serve(const char *roots)
{
    if (!main_may_look())
        return "kernel.yama.ptrace_scope is not 0";
    const int socket = guard_start(roots);
    if (socket < 0)
        return "no process can be started for it";
    const int listener = filter_install();
    if (listener < 0) {
        sys_close(socket);
        return listener == -EBUSY    ? "another filter has a listener"
               : listener == -EINVAL ? "this kernel is older than 5.19"
                                     : "the kernel takes no filter";
    }
    return guard_hand_over(socket, listener) == 0 ? NULL : "its helper has ended";
}

static void main_warn(const char *path, const char *why, const char *roots)
{
    dprintf(
        2,
        "shunt: %s: warning: statically linked, and not served, since %s, so shunt does not see what it does with files under "
        "%.*s\n",
        path, why, (int)strcspn(roots, ":"), roots);
}

int main(int argc, char **argv)
{
    struct config config;
    config_read(&config, environ);
    if (argc < 3 || config.roots == NULL)
        return MAIN_USAGE;
    const char *why = main_serve(config.roots);
    if (why != NULL)
        main_warn(argv[1], why, config.roots);
    const long code = SYS3(SYS_execve, argv[1], argv + 2, environ);
    dprintf(2, "shunt: %s: cannot be executed: %s\n", argv[1], strerror((int)-code));
    return code == -ENOENT ? MAIN_NOT_FOUND : MAIN_CANNOT_EXECUTE;
}
