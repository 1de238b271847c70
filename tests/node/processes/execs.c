/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* execs DIRECTORY: executes programs with environments that lack everything, and programs that cannot be
 * executed, after which it goes on. Every program that is started tells whether it sees a redirected file. */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../old_libc.h"

static char self[4096];
static char *const looks[] = {"execs", "--look", NULL};
static char *const nothing[] = {NULL};

static int execs_look(const char *who)
{
    struct stat st;
    int found = stat("kept", &st);
    printf("%s: kept %s, %s\n", who, found == 0 ? "is seen" : strerrorname_np(errno),
           getenv("HOME") ? "HOME is set" : "no HOME");
    fflush(stdout);
    return found != 0;
}

static void by_execve_null(void)
{
    execve(self, looks, NULL);
}

static void by_execve_empty(void)
{
    execve(self, looks, nothing);
}

static void by_execv_without_environ(void)
{
    environ = NULL;
    execv(self, looks);
}

static void by_execv_after_clearenv(void)
{
    clearenv();
    execv(self, looks);
}

static void by_execvp_after_unsetenv(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("SHUNT_ROOT");
    execvp(self, looks);
}

static void by_env_i(void)
{
    execlp("env", "env", "-i", self, "--look", (char *)NULL);
}

static void by_env_twice(void)
{
    execlp("env", "env", "-i", "env", "-u", "LD_PRELOAD", self, "--look", (char *)NULL);
}

static void by_fexecve(void)
{
    fexecve(open(self, O_RDONLY), looks, nothing);
}

static void by_spawn(void)
{
    pid_t child;
    int status = -1;
    if (posix_spawn(&child, self, NULL, NULL, looks, nothing) == 0)
        waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"execve(NULL)", by_execve_null},
    {"execve({})", by_execve_empty},
    {"environ = NULL", by_execv_without_environ},
    {"clearenv", by_execv_after_clearenv},
    {"unsetenv", by_execvp_after_unsetenv},
    {"env -i", by_env_i},
    {"env -i env -u", by_env_twice},
    {"fexecve({})", by_fexecve},
    {"posix_spawn({})", by_spawn},
};

static void execs_run(const char *name, void (*way)(void))
{
    int status;
    printf("%s: ", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        way();
        printf("failed: %s\n", strerrorname_np(errno));
        fflush(stdout);
        _exit(1);
    }
    waitpid(child, &status, 0);
    if (status != 0)
        printf("status %x\n", status);
}

static void execs_make(const char *name, mode_t mode, const char *content)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd < 0 || write(fd, content, strlen(content)) < 0)
        printf("%s: %s\n", name, strerror(errno));
    fchmod(fd, mode);
    close(fd);
}

/* In this process itself: a failed exec leaves all as it was. */
static void execs_fail(const char *path, char *const arguments[])
{
    struct stat st;
    errno = 0;
    execve(path, arguments, environ);
    printf("execve %.20s: %s", path, strerrorname_np(errno));
    if (errno != ENOEXEC) { /* for which a shell is tried */
        execvp(path, arguments);
        printf(", execvp: %s", strerrorname_np(errno));
    }
    pid_t child;
    printf(", posix_spawn: %s", strerrorname_np(posix_spawn(&child, path, NULL, NULL, arguments, environ)));
    printf(", then stat: %d\n", stat("kept", &st));
}

static void fail_all(void)
{
    static char large[3 << 20];
    char *const too_much[] = {"execs", large, NULL};
    memset(large, 'x', sizeof large - 1);
    execs_make("garbage", 0755, "\177ELF and no more");
    execs_make("not executable", 0644, "#!/bin/sh\n");
    execs_make("no interpreter", 0755, "#!/no/such/interpreter\n");
    execs_make("itself", 0755, "#!./itself\n");
    mkdir("directory", 0755);
    symlink("symlink", "symlink");
    static const char *const bad[] = {"garbage",   "not executable", "no interpreter", "itself",
                                      "directory", "symlink",        "absent"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[64];
        snprintf(path, sizeof path, "./%s", bad[i]);
        execs_fail(path, looks);
    }
    execs_fail(self, too_much);
    execs_fail("", looks);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--look") == 0)
        return execs_look("it");
    if (argc != 2 || chdir(argv[1]) != 0 || realpath("/proc/self/exe", self) == NULL)
        return 2;
    execs_make("kept", 0644, "kept");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        execs_run(ways[i].name, ways[i].run);
    fail_all();
    return execs_look("in the end");
}
