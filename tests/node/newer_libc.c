/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Stands in for functions of a newer libc than this one may be, after the shim's: pidfd_spawn and pidfd_spawnp (glibc 2.39),
 * openat2 (2.43). */

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../old_libc.h"

#define STAND_IN __attribute__((visibility("default")))

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                           char *const[]);

static int newer_spawn(const char *name, int *child, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    pid_t pid;
    spawn_function *spawn = (spawn_function *)dlsym(RTLD_NEXT, name);
    int error = spawn(&pid, path, actions, attributes, arguments, environment);
    if (error == 0)
        *child = (int)syscall(SYS_pidfd_open, pid, 0);
    return error;
}

int pidfd_spawn(int *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const arguments[], char *const environment[]);
STAND_IN int pidfd_spawn(int *child, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    return newer_spawn("posix_spawn", child, path, actions, attributes, arguments, environment);
}

int pidfd_spawnp(int *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const arguments[], char *const environment[]);
STAND_IN int pidfd_spawnp(int *child, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    return newer_spawn("posix_spawnp", child, path, actions, attributes, arguments, environment);
}

int openat2(int at, const char *path, const void *how, size_t size);
STAND_IN int openat2(int at, const char *path, const void *how, size_t size)
{
    long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return (int)call(SYS_openat2, at, path, how, size);
}
