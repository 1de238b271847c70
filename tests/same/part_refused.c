/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the file system refuses: others' files in a sticky directory, and a quota that is used up. There is no
 * quota to use up where this runs: a filter of the kernel's (seccomp) answers EDQUOT for it, to whatever
 * makes a name, in a child that is not to make any. */
#include "same.h"

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

#include "fixture.h"
#include "scenario.h"

/* Under root all that follows is done by somebody else; others find that they may not become him. */
#define SOMEBODY 4321

static const char *const stories[] = {"others", "own"};

static long in_sticky(const char *name)
{
    char path[64], other[64];
    snprintf(path, sizeof path, "bare/%s", name);
    snprintf(other, sizeof other, "bare/%s-renamed", name);
    detail(" %s: open %s", name, ended(open(path, O_WRONLY)));
    detail(" chmod %s", ended(chmod(path, 0600)));
    detail(" truncate %s", ended(truncate(path, 1)));
    detail(" rename %s", ended(rename(path, other)));
    detail(" replace %s", ended(rename("bare/spare", path)));
    detail(" exchange %s", ended(renameat2(AT_FDCWD, "bare/spare", AT_FDCWD, path, RENAME_EXCHANGE)));
    detail(" onto %s", ended(link("bare/spare", path)));
    detail(" again %s", ended(open(path, O_WRONLY | O_CREAT, 0644)));
    return unlink(path);
}

/* The channel to the daemon is there before the identity is changed, as with a program that gives up what it may
 * do once it has begun. */
static long refused_sticky(mode_t mode)
{
    make_file("bare/others", 0644, "of others", 9);
    if (chmod("bare", mode) < 0)
        return -1;
    long became = setegid(SOMEBODY) < 0 ? -1 : seteuid(SOMEBODY);
    detail(" became %s", ended(became));
    int fd = open("bare/own", O_WRONLY | O_CREAT | O_EXCL, 0644);
    int spare = open("bare/spare", O_WRONLY | O_CREAT | O_EXCL, 0644);
    detail(" made %s", ended(fd));
    close(fd);
    close(spare);
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)
        detail(" removed %s", ended(in_sticky(stories[i])));
    detail(" directory %s", ended(chmod("bare", 0755)));
    if (became == 0 && (seteuid(0) < 0 || setegid(0) < 0))
        give_up("cannot be again", "root");
    return 0;
}

static long sticky_for_all(void)
{
    return refused_sticky(01777);
}

static long for_all(void)
{
    return refused_sticky(0777);
}

static long sticky_for_none(void)
{
    return refused_sticky(01755);
}

#define LOAD(FIELD) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, FIELD))
#define REFUSE(CALL)                                                                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EDQUOT & SECCOMP_RET_DATA))
/* If bit O_CREAT of an argument is set. */
#define REFUSE_CREATION(CALL, ARGUMENT)                                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL, 0, 4), LOAD(args[ARGUMENT]),                                                     \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1),                                                                   \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EDQUOT & SECCOMP_RET_DATA)), LOAD(nr)

static const struct sock_filter out_of_quota[] = {
    LOAD(nr),
    REFUSE_CREATION(SYS_openat, 2),
    REFUSE(SYS_mkdirat),
    REFUSE(SYS_mknodat),
    REFUSE(SYS_symlinkat),
    REFUSE(SYS_linkat),
    REFUSE(SYS_renameat2),
    REFUSE(SYS_bind),
#ifdef SYS_open
    REFUSE_CREATION(SYS_open, 1),
    REFUSE(SYS_creat),
    REFUSE(SYS_mkdir),
    REFUSE(SYS_mknod),
    REFUSE(SYS_symlink),
    REFUSE(SYS_link),
    REFUSE(SYS_rename),
    REFUSE(SYS_renameat),
#endif
    REFUSE(SYS_truncate),
    REFUSE(SYS_setxattr),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static long open_new(const char *path)
{
    return open(path, O_WRONLY | O_CREAT, 0644);
}

static long creat_new(const char *path)
{
    return creat(path, 0644);
}

static long fopen_new(const char *path)
{
    return fopen(path, "w") ? 0 : -1;
}

static long mkstemp_new(const char *path)
{
    char template[] = "bare/tmp-XXXXXX";
    return mkstemp(template);
}

static long mkdir_new(const char *path)
{
    return mkdir(path, 0755);
}

static long mkfifo_new(const char *path)
{
    return mkfifo(path, 0644);
}

static long symlink_new(const char *path)
{
    return symlink("early", path);
}

static long link_new(const char *path)
{
    return link("bare/early", path);
}

static long link_in(const char *path)
{
    return link("dir/inner", path);
}

static long rename_new(const char *path)
{
    return rename("bare/early", path);
}

static long rename_in(const char *path)
{
    return rename("dir/inner", path);
}

static long rename_onto(const char *path)
{
    return rename("dir/inner", "bare/early");
}

static long refused_exchange(const char *path)
{
    return renameat2(AT_FDCWD, "dir/inner", AT_FDCWD, "bare/early", RENAME_EXCHANGE);
}

static long truncate_there(const char *path)
{
    return truncate("bare/early", 100000);
}

static const struct quota_call {
    const char *name;
    long (*run)(const char *path);
} quota_calls[] = {
    {"open", open_new},
    {"creat", creat_new},
    {"fopen", fopen_new},
    {"mkstemp", mkstemp_new},
    {"mkdir", mkdir_new},
    {"mkfifo", mkfifo_new},
    {"symlink", symlink_new},
    {"link", link_new},
    {"link from another", link_in},
    {"rename", rename_new},
    {"rename in", rename_in},
    {"rename onto", rename_onto},
    {"exchange", refused_exchange},
    {"truncate", truncate_there},
};

static long without_quota(void *which)
{
    const struct quota_call *call = which;
    struct sock_fprog program = {sizeof out_of_quota / sizeof *out_of_quota, (struct sock_filter *)out_of_quota};
    if (access("bare/early", F_OK) < 0) /* a quota of the root's does not concern the files of its daemon */
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
        errno = ENOSYS;
        return -1;
    }
    return call->run("bare/new");
}

/* What was refused is not there; and may come when there is room again. */
static void one_refusal(const struct quota_call *call)
{
    struct stat st;
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_file("bare/early", 0644, "early", 5);
    long result = in_child(without_quota, (void *)call);
    int error = errno;
    detail(" there %s", ended(lstat("bare/new", &st)));
    detail(" then %s", ended(call->run("bare/new")));
    if (call->run == mkstemp_new)
        remove_tree("bare");
    if (chdir("/") < 0)
        give_up("cannot leave", fixture.work);
    case_told("EDQUOT", call->name, result, error, true);
}

static const struct scenario scenarios[] = {
    {"for all, sticky", sticky_for_all},
    {"for all", for_all},
    {"for none, sticky", sticky_for_none},
};

void part_refused(void)
{
    SCENARIOS("sticky", scenarios);
    for (size_t i = 0; i < sizeof quota_calls / sizeof *quota_calls; i++)
        one_refusal(&quota_calls[i]);
}
