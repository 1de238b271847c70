/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Programs, scripts and shared objects beneath the root: exec, posix_spawn, dlopen. The programs that are run
 * write to this program's standard output, in turn with it. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

extern char **environ;

static char *const scrubbed[] = {"PATH=/usr/bin:/bin", "SAME=scrubbed", NULL};

static void exec_copy(const char *from, const char *to, mode_t mode)
{
    char block[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (in < 0 || out < 0)
        give_up("cannot copy to", to);
    for (ssize_t count; (count = read(in, block, sizeof block)) > 0;)
        if (write(out, block, (size_t)count) != count)
            give_up("cannot write", to);
    fchmod(out, mode);
    close(in);
    close(out);
}

static void exec_script(const char *name, mode_t mode, const char *text)
{
    make_file(name, mode, text, strlen(text));
}

static void make_programs(const char *plugin)
{
    if (chdir(fixture.work) < 0 || mkdir("bin", 0755) < 0 || chdir("bin") < 0)
        give_up("cannot enter", "bin");
    exec_copy("/bin/echo", "echo", 0755);
    exec_copy("/bin/cat", "cat", 0755);
    exec_copy("/bin/sh", "shell", 0755);
    exec_copy(plugin, "plugin.so", 0644);
    exec_script("script", 0755, "#!/bin/sh\necho \"script $0 $*\"; cat ../file\n");
    exec_script("with-argument", 0755, "#!/bin/sh -e\necho \"with-argument $0 $*\"; false; echo not reached\n");
    exec_script("spaced", 0755, "#!  /bin/sh  \t\necho \"spaced $0 $*\"\n");
    exec_script("no-line", 0755, "echo \"no-line $0 $*\"\n");
    exec_script("no-interpreter", 0755, "#!/nowhere/at/all\n");
    exec_script("empty", 0755, "");
    exec_script("plain", 0644, "#!/bin/sh\necho not reached\n");
    exec_script("environment", 0755, "#!/bin/sh\necho \"environment $SAME\"; cat ../file ../absent 2>/dev/null\n");
    exec_script("writer", 0755, "#!/bin/sh\nset -e; echo by script >../bare/by-script; cat ../bare/by-script\n");
    exec_script("untouched", 0755, "#!/bin/sh\necho not reached\n");
    make_file("nested", 0755, NULL, 0);
    FILE *nested = fopen("nested", "w");
    fprintf(nested, "#!%s/bin/shell\necho \"nested $0 $*\"\n", fixture.work);
    fclose(nested);
    nested = fopen("twice", "w");
    fprintf(nested, "#!%s/bin/nested with\nis read by nested\n", fixture.work);
    fclose(nested);
    chmod("twice", 0755);
    make_link("script", "link-to-script");
    make_link("absent", "dangling");
    make_directory("directory", 0755);
}

enum exec_way { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLE, EXECLP, FEXECVE, EXECVEAT, RAW_EXECVE, EXEC_WAYS };
static const char *const way_names[] = {"execve", "execv",  "execvp",  "execvpe",  "execl",
                                        "execle", "execlp", "fexecve", "execveat", "syscall(execve)"};

static void exec_by(enum exec_way way, const char *path)
{
    char *argv[] = {"argument zero", "one", "two", NULL};
    int fd;
    switch (way) {
    case EXECVE:
        execve(path, argv, scrubbed);
        break;
    case EXECV:
        execv(path, argv);
        break;
    case EXECVP:
        execvp(path, argv);
        break;
    case EXECVPE:
        execvpe(path, argv, scrubbed);
        break;
    case EXECL:
        execl(path, argv[0], argv[1], argv[2], (char *)NULL);
        break;
    case EXECLE:
        execle(path, argv[0], argv[1], (char *)NULL, scrubbed);
        break;
    case EXECLP:
        execlp(path, argv[0], argv[1], argv[2], (char *)NULL);
        break;
    case FEXECVE:
        fd = open(path, O_RDONLY);
        if (fd >= 0)
            fexecve(fd, argv, scrubbed);
        break;
    case EXECVEAT:
        execveat(AT_FDCWD, path, argv, scrubbed, 0);
        break;
    default:
        syscall(SYS_execve, path, argv, scrubbed);
    }
}

static long exec_ended(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    detail(WIFSIGNALED(status) ? " signal %d" : " status %d", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    errno = 0;
    return 0;
}

/* The child tells why it could not be replaced. */
static long run_by(enum exec_way way, const char *path)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        errno = 0;
        exec_by(way, path);
        printf("cannot exec: %s\n", strerrorname_np(errno));
        fflush(stdout);
        _exit(99);
    }
    return exec_ended(child);
}

static const char *const programs[] = {
    "echo",   "script",      "with-argument", "spaced",          "no-line",        "no-interpreter", "empty",
    "plain",  "environment", "nested",        "twice",           "link-to-script", "dangling",       "directory",
    "absent", "script/",     "script/x",      "shell/../script", "writer",         "untouched/x",    "untouched/../script",
};

static void exec_all(void)
{
    char where[300];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (enum exec_way way = 0; way < EXEC_WAYS; way++) {
            const char *path = i % 2 == way % 2 ? joined(fixture.work, joined("bin", programs[i])) : joined(".", programs[i]);
            snprintf(where, sizeof where, "%s %s", path[0] == '.' ? "relative" : "absolute", programs[i]);
            long result = run_by(way, path);
            case_told(way_names[way], where, result, errno, false);
        }
}

/* Names without a slash are looked for along PATH. */
static void exec_by_search(const char *path_variable, const char *label)
{
    static const enum exec_way ways[] = {EXECVP, EXECVPE, EXECLP};
    static const char *const wanted[] = {"script", "plain", "absent", "no-line", "echo", ""};
    char *before = strdup(getenv("PATH")), where[300];
    setenv("PATH", path_variable, 1);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (size_t w = 0; w < 3; w++) {
            snprintf(where, sizeof where, "%s along %s", wanted[i], label);
            long result = run_by(ways[w], wanted[i]);
            case_told(way_names[ways[w]], where, result, errno, false);
        }
    setenv("PATH", before, 1);
    free(before);
}

static long exec_spawn(bool searches, const char *path, const posix_spawn_file_actions_t *actions, char *const *environment)
{
    char *argv[] = {"spawned", "one", NULL};
    pid_t child;
    fflush(stdout);
    int error = searches ? posix_spawnp(&child, path, actions, NULL, argv, environment)
                         : posix_spawn(&child, path, actions, NULL, argv, environment);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return exec_ended(child);
}

static void spawn_all(void)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *path = joined(fixture.work, joined("bin", programs[i]));
        long result = exec_spawn(false, path, NULL, environ);
        case_told("posix_spawn", programs[i], result, errno, false);
        result = exec_spawn(true, path, NULL, scrubbed);
        case_told("posix_spawnp", programs[i], result, errno, false);
    }
}

static long spawn_with(const char *path, int flags, int fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int error = posix_spawn_file_actions_addopen(&actions, fd, path, flags, 0640);
    long result = -1;
    if (error != 0)
        errno = error;
    else
        result = exec_spawn(false, fd == 0 ? "./cat" : "./echo", &actions, environ);
    error = errno;
    posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return result;
}

static void tell_content(const char *path)
{
    char content[64];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return;
    ssize_t count = read(fd, content, sizeof content);
    detail_bytes(content, count > 0 ? (size_t)count : 0);
    close(fd);
}

static void spawn_actions(void)
{
    static const struct {
        const char *label, *path;
        int flags, fd;
    } actions[] = {
        {"reads a file", "../file", O_RDONLY, 0},
        {"reads a link", "../lfile", O_RDONLY, 0},
        {"reads what is absent", "../absent", O_RDONLY, 0},
        {"reads a directory", "../dir", O_RDONLY | O_DIRECTORY, 0},
        {"makes a file", "../bare/spawned", O_WRONLY | O_CREAT | O_EXCL, 1},
        {"makes it again", "../bare/spawned", O_WRONLY | O_CREAT | O_EXCL, 1},
        {"appends to it", "../bare/spawned", O_WRONLY | O_APPEND, 1},
        {"truncates it", "../bare/spawned", O_WRONLY | O_CREAT | O_TRUNC, 1},
        {"makes one in a missing directory", "../absent/x", O_WRONLY | O_CREAT, 1},
        {"makes one through a link", "../ldangling", O_WRONLY | O_CREAT, 1},
    };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        long result = spawn_with(actions[i].path, actions[i].flags, actions[i].fd);
        int error = errno;
        if (actions[i].fd == 1)
            tell_content(actions[i].path);
        case_told("posix_spawn(addopen)", actions[i].label, result, error, false);
        result = spawn_with(joined(fixture.work, actions[i].path + 3), actions[i].flags, actions[i].fd);
        case_told("posix_spawn(addopen) absolute", actions[i].label, result, errno, false);
    }
}

static void exec_load(const char *path, const char *label)
{
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) {
        case_told("dlopen", label, 0, 0, false);
        return;
    }
    int (*answer)(void) = dlsym(handle, "plugin_answer");
    detail(" answers %d", answer ? answer() : -1);
    dlclose(handle);
    case_told("dlopen", label, 1, 0, false);
}

static void load_all(void)
{
    make_link("plugin.so", "link.so");
    exec_load("./plugin.so", "relative");
    exec_load(joined(fixture.work, "bin/plugin.so"), "absolute");
    exec_load("./link.so", "link");
    exec_load(joined(fixture.outside, "into/w/bin/plugin.so"), "through a link outside");
    exec_load("plugin.so", "without a slash");
    exec_load("./absent.so", "absent");
    exec_load("./script", "no shared object");
    exec_load("./directory", "directory");
}

static void tell_listing(void)
{
    fixture_tell_changes();
    case_told("exec", "tree afterwards", 0, 0, false);
}

void part_exec(const char *plugin)
{
    char path_variable[4 * PATH_MAX];
    make_programs(plugin);
    exec_all();
    snprintf(path_variable, sizeof path_variable, "/nowhere:%s/bin:/usr/bin:/bin", fixture.work);
    exec_by_search(path_variable, "bin");
    snprintf(path_variable, sizeof path_variable, "%s/dark:%s/ro:%s/bin", fixture.work, fixture.work, fixture.work);
    exec_by_search(path_variable, "dark, ro and bin");
    exec_by_search("", "the working directory");
    exec_by_search("../bin:/bin", "a relative directory");
    spawn_all();
    spawn_actions();
    load_all();
    tell_listing();
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    fixture_rebuild();
}
