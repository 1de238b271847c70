/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* refused DIRECTORY CALL ERROR first|later: a program whose filter refuses one system call, statx or openat, with an error. It
 * looks at names and changes them: in DIRECTORY, then where it was started, by relative and absolute paths and from a
 * descriptor; prints what became of each call. later: it has worked where it was started before. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../old_libc.h"

static int refused_begin(int call, int error)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static void refused_tell(const char *what, int result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

/* All that opens nothing. */
static void refused_work(int at, const char *prefix)
{
    static const char *const names[] = {"kept", "absent", "new", "moved", "directory", "link"};
    char path[sizeof names / sizeof *names][500];
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        snprintf(path[i], sizeof path[i], "%s%s", prefix, names[i]);
    refused_tell("stat", fstatat(at, path[0], &st, 0));
    refused_tell("stat of what is absent", fstatat(at, path[1], &st, 0));
    refused_tell("access", faccessat(at, path[0], R_OK, 0));
    refused_tell("mkdir of what is there", mkdirat(at, path[0], 0700));
    refused_tell("make", mknodat(at, path[2], S_IFREG | 0600, 0));
    refused_tell("rename", renameat(at, path[2], at, path[3]));
    refused_tell("link", linkat(at, path[0], at, path[2], 0));
    refused_tell("unlink", unlinkat(at, path[2], 0));
    refused_tell("unlink it", unlinkat(at, path[3], 0));
    refused_tell("mkdir", mkdirat(at, path[4], 0700));
    refused_tell("rename a directory", renameat(at, path[4], at, path[3]));
    refused_tell("rmdir", unlinkat(at, path[3], AT_REMOVEDIR));
    refused_tell("symlink", symlinkat("kept", at, path[5]));
    refused_tell("stat of the link", fstatat(at, path[5], &st, 0));
    refused_tell("unlink the link", unlinkat(at, path[5], 0));
}

static void refused_open(const char *directory)
{
    char path[600];
    DIR *listed = opendir(directory);
    refused_tell("list", listed != NULL ? 0 : -1);
    if (listed != NULL)
        closedir(listed);
    snprintf(path, sizeof path, "%s/kept", directory);
    refused_tell("open", open(path, O_RDONLY));
    refused_tell("make it exclusively", open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

int main(int count, char **arguments)
{
    char started_in[500], inside[sizeof started_in + 1];
    struct stat st;
    if (count != 5 || getcwd(started_in, sizeof started_in) == NULL)
        return 2;
    const int call = strcmp(arguments[2], "statx") == 0 ? SYS_statx : SYS_openat, is_later = strcmp(arguments[4], "later") == 0,
              outside = open(arguments[1], O_RDONLY | O_DIRECTORY);
    if (outside < 0)
        return 3;
    const int directory = is_later ? open(".", O_RDONLY | O_DIRECTORY) : -1;
    if ((is_later && stat("kept", &st) != 0) || refused_begin(call, atoi(arguments[3])) != 0)
        return 4;
    snprintf(inside, sizeof inside, "%s/", started_in);
    printf("-- outside\n");
    refused_work(outside, "");
    if (call != SYS_openat)
        refused_open(arguments[1]);
    printf("-- inside\n");
    refused_work(AT_FDCWD, "");
    refused_work(AT_FDCWD, inside);
    if (is_later)
        refused_work(directory, "");
    if (call != SYS_openat)
        refused_open(".");
    return 0;
}
