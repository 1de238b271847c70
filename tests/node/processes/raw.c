/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* raw DIRECTORY: every system call of this machine that takes a path, by its number, on files of the
 * directory; with an answer that shows whether the call found the file, and what it changed. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "../../old_libc.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static char buffer[4096];
static int directory;

static void raw_tell(const char *name, long result)
{
    printf("%s = ", name);
    if (result < 0)
        puts(strerrorname_np(errno));
    else
        puts("done");
}

/* What is there, as fstat of the file itself sees it. */
static void raw_show(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        printf("    %s: %s\n", path, strerrorname_np(errno));
    else
        printf("    %s: %o, %d:%d, %u links, %ld bytes, %ld.%09ld\n", path, st.st_mode, st.st_uid, st.st_gid,
               (unsigned)st.st_nlink, (long)st.st_size, st.st_mtim.tv_sec < 1000000 ? st.st_mtim.tv_sec : -1,
               st.st_mtim.tv_sec < 1000000 ? st.st_mtim.tv_nsec : 0);
    close(fd);
}

#define CALL(NAME, ...) raw_tell(#NAME, syscall(SYS_##NAME, __VA_ARGS__))
#define CALL_FD(NAME, ...)                                                                                                     \
    ({                                                                                                                         \
        long fd_ = syscall(SYS_##NAME, __VA_ARGS__);                                                                           \
        raw_tell(#NAME, fd_);                                                                                                  \
        if (fd_ >= 0)                                                                                                          \
            close((int)fd_);                                                                                                   \
    })

static void raw_opens(void)
{
    struct open_how how = {.flags = O_RDONLY};
    struct open_how beneath = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
#ifdef SYS_open
    CALL_FD(open, "file", O_RDONLY, 0);
    CALL_FD(open, "by-open", O_WRONLY | O_CREAT | O_EXCL, 0640);
    CALL_FD(open, "by-open", O_WRONLY | O_CREAT | O_EXCL, 0640);
    CALL_FD(creat, "by-creat", 0604);
    raw_show("by-open");
    raw_show("by-creat");
#endif
    CALL_FD(openat, directory, "file", O_RDONLY, 0);
    CALL_FD(openat, AT_FDCWD, "by-openat", O_WRONLY | O_CREAT | O_EXCL, 0600);
    raw_show("by-openat");
    CALL_FD(openat2, directory, "file", &how, sizeof how);
    how = (struct open_how){.flags = O_WRONLY | O_CREAT, .mode = 0611};
    CALL_FD(openat2, directory, "by-openat2", &how, sizeof how);
    raw_show("by-openat2");
    syscall(SYS_openat2, directory, "file", &beneath, sizeof beneath);
}

static void raw_looks(void)
{
    struct stat st;
    struct statx stx;
    struct statfs fs;
#ifdef SYS_open
    CALL(stat, "file", &st);
    printf("    %ld bytes\n", (long)st.st_size);
    CALL(lstat, "link", &st);
    printf("    is a link: %d\n", S_ISLNK(st.st_mode));
    CALL(access, "file", R_OK);
    CALL(access, "absent", R_OK);
    CALL(readlink, "link", buffer, sizeof buffer);
#endif
    CALL(newfstatat, directory, "file", &st, 0);
    CALL(newfstatat, directory, "link", &st, AT_SYMLINK_NOFOLLOW);
    printf("    is a link: %d\n", S_ISLNK(st.st_mode));
    CALL(statx, directory, "file", 0, STATX_SIZE, &stx);
    printf("    %ld bytes\n", (long)stx.stx_size);
    CALL(faccessat, directory, "file", W_OK);
    CALL(faccessat2, directory, "file", W_OK, AT_EACCESS);
    CALL(readlinkat, directory, "link", buffer, sizeof buffer);
    CALL(statfs, "file", &fs);
}

static void raw_changes(void)
{
    const struct timespec times[2] = {{1000, 1}, {2000, 2}};
    CALL(fchmodat, directory, "file", 0751);
    raw_show("file");
    CALL(fchownat, directory, "file", -1, -1, 0);
    CALL(utimensat, directory, "file", times, 0);
    raw_show("file");
    CALL(truncate, "file", 3L);
    raw_show("file");
#ifdef SYS_open
    const struct utimbuf seconds = {3000, 4000};
    const struct timeval values[2] = {{5000, 5}, {6000, 6}};
    CALL(chmod, "file", 0640);
    CALL(chown, "file", -1, -1);
    CALL(lchown, "link", -1, -1);
    CALL(utime, "file", &seconds);
    raw_show("file");
    CALL(utimes, "file", values);
    raw_show("file");
    CALL(futimesat, directory, "file", NULL);
    raw_show("file");
#endif
}

/* What older kernels do not have: they say so, and so may shunt. */
static void newer_changes(void)
{
    long result = syscall(SYS_fchmodat2, directory, "file", 0604, 0);
    printf("fchmodat2 = %s\n", result == 0 || errno == ENOSYS ? "done, or unknown" : strerrorname_np(errno));
    if (result < 0)
        chmod("file", 0604);
    raw_show("file");
}

static void raw_attributes(void)
{
    int fd = open("file", O_RDWR);
    CALL(setxattr, "file", "user.one", "1", 1, 0);
    CALL(lsetxattr, "file", "user.two", "22", 2, 0);
    CALL(fsetxattr, fd, "user.three", "333", 3, 0);
    CALL(fsetxattr, directory, "user.directory", "4444", 4, 0);
    CALL(getxattr, "file", "user.two", buffer, sizeof buffer);
    CALL(lgetxattr, "file", "user.three", buffer, sizeof buffer);
    printf("    %ld bytes\n", syscall(SYS_listxattr, "file", buffer, sizeof buffer));
    CALL(llistxattr, "file", buffer, sizeof buffer);
    CALL(removexattr, "file", "user.one");
    CALL(lremovexattr, "file", "user.two");
    CALL(fremovexattr, fd, "user.three");
    CALL(fremovexattr, directory, "user.directory");
    printf("    %ld bytes\n", syscall(SYS_listxattr, "file", buffer, sizeof buffer));
    close(fd);
}

static void raw_names(void)
{
    CALL(mkdirat, directory, "d1", 0700);
    CALL(mknodat, directory, "fifo", S_IFIFO | 0600, 0);
    CALL(mknodat, directory, "node", S_IFREG | 0600, 0);
    raw_show("node");
    CALL(linkat, directory, "file", directory, "hard", 0);
    raw_show("hard");
    CALL(symlinkat, "file", directory, "soft");
    CALL(renameat2, directory, "hard", directory, "moved", 0);
    CALL(renameat2, directory, "moved", directory, "node", RENAME_NOREPLACE);
    CALL(renameat2, directory, "moved", directory, "node", RENAME_EXCHANGE);
    raw_show("moved");
    raw_show("node");
    CALL(unlinkat, directory, "moved", 0);
    CALL(unlinkat, directory, "soft", 0);
    CALL(unlinkat, directory, "fifo", 0);
    CALL(unlinkat, directory, "d1", AT_REMOVEDIR);
    CALL(unlinkat, directory, "absent", 0);
#ifdef SYS_renameat
    CALL(renameat, directory, "node", directory, "renamed");
    raw_show("renamed");
    raw_show("node");
#endif
}

#ifdef SYS_open
static void old_names(void)
{
    CALL(mkdir, "d2", 0700);
    CALL(mknod, "n2", S_IFREG | 0600, 0);
    CALL(link, "file", "hard2");
    CALL(symlink, "file", "soft2");
    CALL(rename, "hard2", "n2");
    raw_show("n2");
    CALL(unlink, "n2");
    CALL(unlink, "soft2");
    CALL(rmdir, "d2");
    raw_show("file");
}
#endif

/* The entries' names, in an order of their own, with what is after their types' last bit. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tell_listing(const char *call, long number, size_t name_at)
{
    char *found[100];
    size_t count = 0;
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    for (long size; (size = syscall(number, fd, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < size && count < 100;) {
            uint16_t length = *(uint16_t *)(buffer + at + 16);
            char type = name_at == 19 ? buffer[at + 18] : buffer[at + length - 1];
            if (asprintf(&found[count++], "%s(%d)", buffer + at + name_at, type) < 0)
                exit(3);
            at += length;
        }
    close(fd);
    qsort(found, count, sizeof *found, by_name);
    printf("%s:", call);
    for (size_t i = 0; i < count; i++)
        printf(" %s", found[i]);
    puts("");
}

static void raw_listings(void)
{
    tell_listing("getdents64", SYS_getdents64, 19);
#ifdef SYS_getdents
    tell_listing("getdents", SYS_getdents, 18);
#endif
}

static void raw_program(const char *how)
{
    int status;
    char *const arguments[] = {"program", "-c", "echo program; test -s file && echo sees the file", NULL};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (strcmp(how, "execve") == 0)
            syscall(SYS_execve, "./program", arguments, NULL);
        else
            syscall(SYS_execveat, directory, "program", arguments, NULL, 0);
        _exit(errno);
    }
    waitpid(child, &status, 0);
    printf("%s: %x\n", how, status);
}

/* Paths would go through a ring without being seen: where there are roots there are no rings. */
static void raw_ring(const char *expected)
{
    struct io_uring_params parameters = {0};
    long fd = syscall(SYS_io_uring_setup, 1, &parameters);
    if (strcmp(expected, "no ring") == 0 && (fd >= 0 || errno != ENOSYS))
        puts("a ring was made");
    if (fd >= 0)
        close((int)fd);
}

int main(int argc, char **argv)
{
    if (argc != 3 || chdir(argv[1]) != 0 || system("echo content >file; ln -s file link; cp /bin/sh program") != 0)
        return 2;
    umask(022);
    directory = open(".", O_RDONLY | O_DIRECTORY);
    raw_opens();
    raw_looks();
    raw_changes();
    newer_changes();
    raw_attributes();
    raw_names();
#ifdef SYS_open
    old_names();
#endif
    raw_listings();
    raw_program("execve");
    raw_program("execveat");
    raw_ring(argv[2]);
    return 0;
}
