/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "calls.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "kernel.h"

#define TIMES (2 * sizeof(struct timespec))

/* Those that are made often come first: the filter and the search go through it in this order. */
const struct calls_entry calls_table[] = {
#ifdef SYS_open
    {SYS_open, SYS_openat, "@pxi", CALLS_OPEN, CALLS_FOLLOWS | CALLS_MAKES},
    {SYS_creat, SYS_openat, "@pCi", CALLS_OPEN, CALLS_FOLLOWS | CALLS_MAKES},
    {SYS_stat, SYS_newfstatat, "@po0", .how = CALLS_FOLLOWS, .out = sizeof(struct stat)},
    {SYS_lstat, SYS_newfstatat, "@poN", .out = sizeof(struct stat)},
    {SYS_access, SYS_faccessat, "@pi", .how = CALLS_FOLLOWS},
    {SYS_unlink, SYS_unlinkat, "@p0"},
    {SYS_rmdir, SYS_unlinkat, "@pR"},
    {SYS_rename, SYS_renameat2, "@p@p0"},
    {SYS_link, SYS_linkat, "@p@p0"},
    {SYS_symlink, SYS_symlinkat, "s@p"},
    {SYS_readlink, SYS_readlinkat, "@pOi"},
    {SYS_mkdir, SYS_mkdirat, "@pi", .how = CALLS_MAKES},
    {SYS_mknod, SYS_mknodat, "@pii", .how = CALLS_MAKES},
    {SYS_chmod, SYS_fchmodat, "@pi", .how = CALLS_FOLLOWS},
    {SYS_chown, SYS_fchownat, "@pii0", .how = CALLS_FOLLOWS},
    {SYS_lchown, SYS_fchownat, "@piiN"},
    {SYS_utime, SYS_utime, "Pt", .how = CALLS_FOLLOWS, .in = 2 * sizeof(time_t)},
    {SYS_utimes, SYS_utimes, "Pt", .how = CALLS_FOLLOWS, .in = TIMES},
    {SYS_futimesat, SYS_futimesat, "dpt", .how = CALLS_FOLLOWS, .in = TIMES},
    {SYS_getdents, SYS_getdents, "fOi"},
#endif
    {SYS_openat, SYS_openat, "dpxi", CALLS_OPEN, CALLS_FOLLOWS | CALLS_MAKES},
    {SYS_openat2, SYS_openat2, "dpbi", CALLS_OPEN_HOW, CALLS_FOLLOWS | CALLS_MAKES},
    {SYS_newfstatat, SYS_newfstatat, "dpoa", .how = CALLS_FOLLOWS, .out = sizeof(struct stat)},
    {SYS_statx, SYS_statx, "dpaio", .how = CALLS_FOLLOWS, .out = sizeof(struct statx)},
    {SYS_fstat, SYS_fstat, "fo", .out = sizeof(struct stat)},
    {SYS_faccessat, SYS_faccessat, "dpi", .how = CALLS_FOLLOWS},
    {SYS_faccessat2, SYS_faccessat2, "dpia", .how = CALLS_FOLLOWS},
    {SYS_unlinkat, SYS_unlinkat, "dpi"},
    {SYS_renameat2, SYS_renameat2, "dpdpi"},
    {SYS_linkat, SYS_linkat, "dpdpa"},
    {SYS_symlinkat, SYS_symlinkat, "sdp"},
    {SYS_readlinkat, SYS_readlinkat, "dpOi"},
    {SYS_mkdirat, SYS_mkdirat, "dpi", .how = CALLS_MAKES},
    {SYS_mknodat, SYS_mknodat, "dpii", .how = CALLS_MAKES},
    {SYS_fchmodat, SYS_fchmodat, "dpi", .how = CALLS_FOLLOWS},
    {SYS_fchmodat2, SYS_fchmodat2, "dpia", .how = CALLS_FOLLOWS},
    {SYS_fchownat, SYS_fchownat, "dpiia", .how = CALLS_FOLLOWS},
    {SYS_utimensat, SYS_utimensat, "dpta", .how = CALLS_FOLLOWS, .in = TIMES},
    {SYS_truncate, SYS_truncate, "Pi", .how = CALLS_FOLLOWS},
    {SYS_statfs, SYS_statfs, "Po", .how = CALLS_FOLLOWS, .out = sizeof(struct statfs)},
    {SYS_chdir, SYS_chdir, "P", CALLS_CHDIR, CALLS_FOLLOWS},
    {SYS_setxattr, SYS_setxattr, "Psbii", .how = CALLS_FOLLOWS},
    {SYS_lsetxattr, SYS_lsetxattr, "Psbii"},
    {SYS_getxattr, SYS_getxattr, "PsOi", .how = CALLS_FOLLOWS},
    {SYS_lgetxattr, SYS_lgetxattr, "PsOi"},
    {SYS_listxattr, SYS_listxattr, "POi", .how = CALLS_FOLLOWS},
    {SYS_llistxattr, SYS_llistxattr, "POi"},
    {SYS_removexattr, SYS_removexattr, "Ps", .how = CALLS_FOLLOWS},
    {SYS_lremovexattr, SYS_lremovexattr, "Ps"},
    {SYS_fsetxattr, SYS_fsetxattr, "fsbii"},
    {SYS_fremovexattr, SYS_fremovexattr, "fs"},
    {SYS_fchmod, SYS_fchmod, "fi"},
    {SYS_fchown, SYS_fchown, "fii"},
    {SYS_fsync, SYS_fsync, "f"},
    {SYS_fdatasync, SYS_fdatasync, "f"},
    {SYS_getdents64, SYS_getdents64, "fOi"},
    {SYS_execve, SYS_execve, "P", CALLS_EXEC, CALLS_FOLLOWS},
    {SYS_execveat, SYS_execveat, "dpiia", CALLS_EXEC, CALLS_FOLLOWS},
    {SYS_name_to_handle_at, 0, "dpiia", CALLS_TRUNK},
    {SYS_open_tree, 0, "dpa", CALLS_TRUNK, CALLS_FOLLOWS},
    {SYS_mount, 0, "PP", CALLS_TRUNK, CALLS_FOLLOWS},
    {SYS_umount2, 0, "Pu", CALLS_TRUNK, CALLS_FOLLOWS},
    {SYS_move_mount, 0, "dpdpm", CALLS_TRUNK, CALLS_ADMIN},
    {SYS_fspick, 0, "dpv", CALLS_TRUNK, CALLS_FOLLOWS | CALLS_ADMIN},
    {SYS_mount_setattr, 0, "dpa", CALLS_TRUNK, CALLS_FOLLOWS | CALLS_ADMIN},
    {SYS_swapon, 0, "P", CALLS_TRUNK, CALLS_FOLLOWS | CALLS_ADMIN},
    {SYS_swapoff, 0, "P", CALLS_TRUNK, CALLS_FOLLOWS | CALLS_ADMIN},
    {SYS_acct, 0, "P", CALLS_TRUNK, CALLS_FOLLOWS | CALLS_ADMIN},
    {SYS_quotactl, 0, "iPiQ", CALLS_TRUNK, CALLS_FOLLOWS},
    {SYS_inotify_add_watch, SYS_inotify_add_watch, "FPw", .how = CALLS_FOLLOWS},
    {SYS_fanotify_mark, SYS_fanotify_mark, "Fiidp", .how = CALLS_FOLLOWS},
    {SYS_connect, 0, "ik", CALLS_TRUNK, CALLS_FOLLOWS},
    {SYS_bind, SYS_bind, "Fki", CALLS_BIND, CALLS_MAKES},
    {SYS_setuid, 0, "", CALLS_RIGHTS},
    {SYS_setgid, 0, "", CALLS_RIGHTS},
    {SYS_setreuid, 0, "", CALLS_RIGHTS},
    {SYS_setregid, 0, "", CALLS_RIGHTS},
    {SYS_setresuid, 0, "", CALLS_RIGHTS},
    {SYS_setresgid, 0, "", CALLS_RIGHTS},
    {SYS_setfsuid, 0, "", CALLS_RIGHTS},
    {SYS_setfsgid, 0, "", CALLS_RIGHTS},
    {SYS_setgroups, 0, "", CALLS_RIGHTS},
    {SYS_chroot, 0, "", CALLS_RIGHTS},
    {SYS_pivot_root, 0, "", CALLS_RIGHTS},
    {SYS_unshare, 0, "", CALLS_RIGHTS},
    {SYS_setns, 0, "", CALLS_RIGHTS},
    {SYS_capset, 0, "", CALLS_RIGHTS},
    {SYS_clone3, 0, "", CALLS_RIGHTS},
    {SYS_landlock_create_ruleset, 0, "", CALLS_REFUSED},
    {SYS_prctl, 0, "", CALLS_CONTROL},
#ifdef SYS_renameat
    {SYS_renameat, SYS_renameat2, "dpdp0"},
#endif
};

const size_t calls_count = sizeof calls_table / sizeof *calls_table;

const struct calls_entry *calls_find(int number)
{
    for (size_t i = 0; i < calls_count; i++)
        if (calls_table[i].number == number)
            return &calls_table[i];
    return NULL;
}
