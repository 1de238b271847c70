/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* mounts: makes files in the working directory, gives them to the calls that take a path and are no business of most programs,
 * and says what came of each. In a mount namespace of its own if it may, unless the first argument is "here". */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

/* Numbers that are the same on every machine; the functions are those of glibc 2.36. */
enum {
    NUMBER_OPEN_TREE = 428,
    NUMBER_MOVE_MOUNT,
    NUMBER_FSOPEN,
    NUMBER_FSCONFIG,
    NUMBER_FSPICK = 433,
    NUMBER_MOUNT_SETATTR = 442,
    NUMBER_OPEN_TREE_ATTR = 467
};

#define SAY(CALL)                                                                                                              \
    do {                                                                                                                       \
        errno = 0;                                                                                                             \
        long said = (long)(CALL);                                                                                              \
        printf("%s: %s\n", #CALL, said >= 0 ? "done" : strerror(errno));                                                       \
        if (said > 2)                                                                                                          \
            close((int)said);                                                                                                  \
    } while (0)

static void mounts_make(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) != 0)
        exit(2);
}

static void mounts_show(const char *name)
{
    char text[16] = "";
    int fd = open(name, O_RDONLY);
    long length = read(fd, text, sizeof text - 1);
    printf("  %s: %s\n", name, length >= 0 ? text : strerror(errno));
    close(fd);
}

static void mounts_of_files(void)
{
    SAY(mount("source", "point", NULL, MS_BIND, NULL));
    mounts_show("point");
    SAY(umount("point"));
    mounts_show("point");
    SAY(mount("/etc/hostname", "link", NULL, MS_BIND, NULL));
    SAY(umount2("point", UMOUNT_NOFOLLOW));
    mounts_show("point");
    int tree = (int)syscall(NUMBER_OPEN_TREE, AT_FDCWD, "tree", 1L /* a copy of it */);
    printf("open_tree: %s\n", tree >= 0 ? "done" : strerror(errno));
    SAY(syscall(NUMBER_MOVE_MOUNT, tree, "", AT_FDCWD, "onto", 4L /* the descriptor itself */));
    mounts_show("onto");
    SAY(umount2("onto", MNT_DETACH));
    SAY(syscall(NUMBER_MOVE_MOUNT, AT_FDCWD, "from", AT_FDCWD, "to", 0L));
    SAY(syscall(NUMBER_FSPICK, AT_FDCWD, "picked", 0L));
    SAY(syscall(NUMBER_MOUNT_SETATTR, AT_FDCWD, "set", 0L, NULL, 0L));
    SAY(syscall(NUMBER_OPEN_TREE_ATTR, AT_FDCWD, "attr", 1L, NULL, 0L));
    SAY(mount("image", "directory", "ext4", 0, NULL));
    SAY(syscall(SYS_mount, "image", "directory/sub", "ext4", 0L, NULL));
    SAY(syscall(SYS_pivot_root, "new-root", "old-root"));
    SAY(mount("source/", "point", NULL, MS_BIND, NULL));
    SAY(mount("source", "point/below", NULL, MS_BIND, NULL));
    SAY(mount("source", "none", NULL, MS_BIND, NULL));
}

/* Is it where the kernel itself finds it, which is asked past every library? */
static void mounts_find(const char *name)
{
    printf("  %s: %s\n", name, SYS3(SYS_faccessat, AT_FDCWD, name, R_OK) == 0 ? "found" : "not found");
}

static void mounts_of_file_systems(void)
{
    enum { STRING = 1, A_PATH = 3, PATH_EMPTY, DESCRIPTOR, CREATE };
    int fs = (int)syscall(NUMBER_FSOPEN, "ext4", 0);
    SAY(syscall(NUMBER_FSCONFIG, fs, STRING, "source", "fs-source", 0));
    mounts_find("fs-source");
    SAY(syscall(NUMBER_FSCONFIG, fs, A_PATH, "journal_path", "fs-journal", AT_FDCWD));
    mounts_find("fs-journal");
    SAY(syscall(NUMBER_FSCONFIG, fs, PATH_EMPTY, "journal_path", "fs-empty", AT_FDCWD));
    mounts_find("fs-empty");
    int fd = open("fs-descriptor", O_RDONLY);
    SAY(syscall(NUMBER_FSCONFIG, fs, PATH_EMPTY, "journal_path", "", fd));
    SAY(syscall(NUMBER_FSCONFIG, fs, DESCRIPTOR, "journal_path", NULL, fd));
    SAY(syscall(NUMBER_FSCONFIG, fs, CREATE, NULL, NULL, 0));
    SAY(syscall(NUMBER_FSCONFIG, fs, STRING, "source", NULL, 0));
    close(fd);
    close(fs);
}

static void mounts_of_quota(void)
{
    SAY(quotactl(QCMD(Q_QUOTAON, USRQUOTA), "quota-device", QFMT_VFS_V0, (char *)"quota-on"));
    mounts_find("quota-on");
    SAY(syscall(SYS_quotactl, QCMD(Q_QUOTAON, GRPQUOTA), "quota-device", QFMT_VFS_V0, "quota-on-by-number"));
    mounts_find("quota-on-by-number");
    SAY(quotactl(QCMD(Q_QUOTAON, USRQUOTA), "quota-device", QFMT_VFS_V0, (char *)"none"));
}

static void mounts_other(void)
{
    SAY(swapon("swap", 0));
    SAY(swapoff("swap-off"));
    SAY(syscall(SYS_swapon, "swap-by-number", 0L));
    SAY(syscall(SYS_swapoff, "swap-off-by-number"));
    SAY(quotactl(QCMD(Q_GETFMT, USRQUOTA), "quota", 0, NULL));
    SAY(syscall(SYS_quotactl, QCMD(Q_GETFMT, USRQUOTA), "quota-by-number", 0L, NULL));
    SAY(acct("account/"));
    SAY(syscall(SYS_acct, "account-by-number/"));
    SAY(chroot("changed"));
    SAY(syscall(SYS_chroot, "changed-by-number"));
    SAY(umount("unmounted"));
}

int main(int count, char **words)
{
    static const char *const names[] = {"source",
                                        "point",
                                        "tree",
                                        "onto",
                                        "from",
                                        "to",
                                        "picked",
                                        "set",
                                        "attr",
                                        "image",
                                        "new-root",
                                        "old-root",
                                        "swap",
                                        "quota",
                                        "swap-off",
                                        "swap-by-number",
                                        "account",
                                        "swap-off-by-number",
                                        "changed",
                                        "quota-by-number",
                                        "account-by-number",
                                        "changed-by-number",
                                        "unmounted",
                                        "fs-source",
                                        "fs-journal",
                                        "fs-empty",
                                        "fs-descriptor",
                                        "quota-device",
                                        "quota-on",
                                        "quota-on-by-number"};
    const bool is_here = count > 1 && strcmp(words[1], "here") == 0;
    if (!is_here && unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return 2;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        mounts_make(names[i], names[i]);
    if (mkdir("directory", 0755) != 0 || symlink("point", "link") != 0)
        return 2;
    mounts_make("directory/sub", "sub");
    mounts_of_files();
    mounts_of_file_systems();
    mounts_of_quota();
    mounts_other();
    return 0;
}
