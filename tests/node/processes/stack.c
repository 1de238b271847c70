/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* stack FILE DIRECTORY: how many bytes of stack calls on that file take, and such as change names in that directory, in which
 * there is a program `true`. Each is made on a painted stack of its own. */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../old_libc.h"

#define SIZE 65536
#define PAINT 0xa5

static unsigned char stack[SIZE] __attribute__((aligned(64)));
static ucontext_t back, there;
static const char *path;
static char new[PATH_MAX], newer[PATH_MAX], file[PATH_MAX], resolved[PATH_MAX], program[PATH_MAX];
static const char *where, *name = "file";
static int directory, below, opened;

static void call_nothing(void)
{
}

static void call_stat(void)
{
    static struct stat to;
    stat(path, &to);
}

static void call_open(void)
{
    close(open(path, O_RDONLY));
}

static void call_access(void)
{
    access(path, F_OK);
}

static void call_absent(void)
{
    static struct stat to;
    stat("/proc/self/absent", &to);
}

static void call_absent_open(void)
{
    close(open(newer, O_RDONLY));
}

static void call_mkdir(void)
{
    mkdir(new, 0700);
    rmdir(new);
}

static void call_create(void)
{
    close(open(new, O_CREAT | O_EXCL | O_WRONLY, 0600));
    unlink(new);
}

static void call_absent_unlink(void)
{
    unlink(newer);
}

static void call_link(void)
{
    link(file, new);
    unlink(new);
}

static void call_symlink(void)
{
    symlink("nowhere", new);
    unlink(new);
}

static void call_rename(void)
{
    rename(file, new);
    rename(new, file);
}

static void call_chdir(void)
{
    chdir(where);
}

static void call_opendir(void)
{
    closedir(opendir(where));
}

static void call_execve(void)
{
    static char *words[] = {"absent", NULL};
    execve(newer, words, environ);
}

static void call_execve_there(void)
{
    static char *words[] = {"true", NULL};
    pid_t child = vfork();
    if (child == 0) {
        execve(program, words, environ);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void call_execvp(void)
{
    static char *words[] = {"absent", NULL};
    execvp("no-program-of-this-name", words);
}

static void call_stat_relative(void)
{
    static struct stat to;
    stat(name, &to);
}

static void call_open_relative(void)
{
    close(open(name, O_RDONLY));
}

static void call_create_relative(void)
{
    close(open("new", O_CREAT | O_EXCL | O_WRONLY, 0600));
    unlink("new");
}

static void call_rename_relative(void)
{
    rename("file", "new");
    rename("new", "file");
}

static void call_fstatat(void)
{
    static struct stat to;
    fstatat(directory, name, &to, 0);
}

static void call_openat(void)
{
    close(openat(directory, name, O_RDONLY));
}

static void call_createat(void)
{
    close(openat(directory, "new", O_CREAT | O_EXCL | O_WRONLY, 0600));
    unlinkat(directory, "new", 0);
}

static void call_renameat(void)
{
    renameat(directory, "file", directory, "new");
    renameat(directory, "new", directory, "file");
}

static void call_upat(void)
{
    static struct stat to;
    fstatat(directory, "..", &to, 0);
}

static void call_absentat(void)
{
    static struct stat to;
    fstatat(directory, "absent", &to, 0);
}

static void call_absent_parentat(void)
{
    static struct stat to;
    fstatat(directory, "absent/name", &to, 0);
}

static void call_beneathat(void)
{
    static struct stat to;
    fstatat(directory, "below/.././file", &to, 0);
}

static void call_mkdirat(void)
{
    mkdirat(directory, "new", 0700);
    unlinkat(directory, "new/", AT_REMOVEDIR);
}

static void call_linkat(void)
{
    linkat(directory, "file", directory, "new", 0);
    unlinkat(directory, "new", 0);
}

static void call_linkat_two(void)
{
    linkat(directory, "file", below, "new", 0);
    renameat(below, "new", directory, "below/newer");
    unlinkat(below, "newer", 0);
}

static void call_symlinkat(void)
{
    symlinkat("nowhere", directory, "new");
    readlinkat(directory, "new", resolved, sizeof resolved);
    unlinkat(directory, "new", 0);
}

static void call_fchmodat(void)
{
    fchmodat(directory, "file", 0600, 0);
}

static void call_faccessat(void)
{
    faccessat(directory, "file", R_OK, 0);
}

static void call_utimensatat(void)
{
    utimensat(directory, "file", NULL, 0);
}

static void call_openat2(void)
{
    static struct open_how how = {.flags = O_RDONLY};
    close((int)syscall(SYS_openat2, directory, name, &how, sizeof how));
}

static void call_execveat(void)
{
    static char *words[] = {"absent", NULL};
    execveat(directory, "absent", words, environ, 0);
}

static void call_execveat_there(void)
{
    static char *words[] = {"true", NULL};
    pid_t child = vfork();
    if (child == 0) {
        execveat(directory, "true", words, environ, 0);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void call_stat_directory(void)
{
    static struct stat to;
    stat(where, &to);
}

static void call_fstat_directory(void)
{
    static struct stat to;
    fstat(directory, &to);
}

static void call_statx_directory(void)
{
    static struct statx to;
    statx(directory, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &to);
}

static void call_chmod_directory(void)
{
    chmod(where, 0700);
}

static void call_fchmod_directory(void)
{
    fchmod(directory, 0700);
}

static void call_utimensat_directory(void)
{
    utimensat(AT_FDCWD, where, NULL, 0);
}

static void call_fsync(void)
{
    fsync(opened);
}

static void call_fsync_directory(void)
{
    fsync(directory);
}

static void call_getdents(void)
{
    static char entries[4096];
    lseek(directory, 0, SEEK_SET);
    getdents64(directory, entries, sizeof entries);
}

static void call_fopen(void)
{
    fclose(fopen(path, "r"));
}

static void call_realpath(void)
{
    realpath(path, resolved);
}

static void call_readlink(void)
{
    readlink("/proc/self/exe", resolved, sizeof resolved);
}

static void call_chmod(void)
{
    chmod(file, 0600);
}

static void call_utimensat(void)
{
    utimensat(AT_FDCWD, file, NULL, 0);
}

static void call_truncate(void)
{
    truncate(file, 0);
}

static void call_getxattr(void)
{
    getxattr(file, "user.none", resolved, sizeof resolved);
}

static void call_mkstemp(void)
{
    char *end = stpcpy(resolved, newer);
    strcpy(end, "XXXXXX");
    close(mkstemp(resolved));
    unlink(resolved);
}

static void call_getcwd(void)
{
    getcwd(resolved, sizeof resolved);
}

static void call_posix_spawn(void)
{
    static char *words[] = {"absent", NULL};
    pid_t child;
    posix_spawn(&child, newer, NULL, NULL, words, environ);
}

static void call_posix_spawn_there(void)
{
    static char *words[] = {"true", NULL};
    pid_t child;
    if (posix_spawn(&child, program, NULL, NULL, words, environ) == 0)
        waitpid(child, NULL, 0);
}

static void call_fdopendir(void)
{
    closedir(fdopendir(open(where, O_RDONLY | O_DIRECTORY)));
}

static size_t stack_used(void (*call)(void))
{
    size_t at = 0;
    memset(stack, PAINT, SIZE);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = SIZE;
    there.uc_link = &back;
    makecontext(&there, call, 0);
    swapcontext(&back, &there);
    while (at < SIZE && stack[at] == PAINT)
        at++;
    return SIZE - at;
}

int main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"stat", call_stat},
                 {"open", call_open},
                 {"access", call_access},
                 {"absent", call_absent},
                 {"absent-open", call_absent_open},
                 {"mkdir", call_mkdir},
                 {"create", call_create},
                 {"absent-unlink", call_absent_unlink},
                 {"link", call_link},
                 {"symlink", call_symlink},
                 {"rename", call_rename},
                 {"chdir", call_chdir},
                 {"opendir", call_opendir},
                 {"execve", call_execve},
                 {"execve-there", call_execve_there},
                 {"execvp", call_execvp},
                 {"stat-relative", call_stat_relative},
                 {"open-relative", call_open_relative},
                 {"create-relative", call_create_relative},
                 {"rename-relative", call_rename_relative},
                 {"fstatat", call_fstatat},
                 {"openat", call_openat},
                 {"createat", call_createat},
                 {"renameat", call_renameat},
                 {"upat", call_upat},
                 {"absentat", call_absentat},
                 {"absent-parentat", call_absent_parentat},
                 {"beneathat", call_beneathat},
                 {"mkdirat", call_mkdirat},
                 {"linkat", call_linkat},
                 {"linkat-two", call_linkat_two},
                 {"symlinkat", call_symlinkat},
                 {"fchmodat", call_fchmodat},
                 {"faccessat", call_faccessat},
                 {"utimensatat", call_utimensatat},
                 {"openat2", call_openat2},
                 {"execveat", call_execveat},
                 {"execveat-there", call_execveat_there},
                 {"stat-directory", call_stat_directory},
                 {"fstat-directory", call_fstat_directory},
                 {"statx-directory", call_statx_directory},
                 {"chmod-directory", call_chmod_directory},
                 {"fchmod-directory", call_fchmod_directory},
                 {"utimensat-directory", call_utimensat_directory},
                 {"fsync", call_fsync},
                 {"fsync-directory", call_fsync_directory},
                 {"getdents", call_getdents},
                 {"fopen", call_fopen},
                 {"realpath", call_realpath},
                 {"readlink", call_readlink},
                 {"chmod", call_chmod},
                 {"utimensat", call_utimensat},
                 {"truncate", call_truncate},
                 {"getxattr", call_getxattr},
                 {"mkstemp", call_mkstemp},
                 {"getcwd", call_getcwd},
                 {"posix-spawn", call_posix_spawn},
                 {"posix-spawn-there", call_posix_spawn_there},
                 {"fdopendir", call_fdopendir}};
    if (argc != 3)
        return 1;
    path = argv[1];
    where = argv[2];
    directory = open(where, O_RDONLY | O_DIRECTORY);
    snprintf(new, sizeof new, "%s/new", argv[2]);
    snprintf(newer, sizeof newer, "%s/newer", argv[2]);
    snprintf(program, sizeof program, "%s/true", argv[2]);
    snprintf(file, sizeof file, "%s/file", argv[2]);
    opened = open(file, O_CREAT | O_WRONLY, 0600);
    mkdirat(directory, "below", 0700);
    below = openat(directory, "below", O_RDONLY | O_DIRECTORY);
    fstat(directory, &(struct stat){0}); /* the library knows its root */
    size_t nothing = stack_used(call_nothing);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        stack_used(calls[i].call); /* the loader's own business is done */
        printf("%s %zu\n", calls[i].name, stack_used(calls[i].call) - nothing);
    }
    return unlink(file) + unlinkat(directory, "below", AT_REMOVEDIR);
}
