/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <sys/stat.h>

#include "session/session.h"
#include "session/stamp.h"
#include "session/store.h"
#include "union/disk.h"
#include "union/identity.h"

static const char readme[] =
    "This directory belongs to shunt, which keeps files that were created on many nodes here, each under its "
    "own\n"
    "name, in directories of its own for each node. They belong to the directory above: do not remove this "
    "one.\n"
    "\n"
    "    b/NODE.N/NAME-ID/LEAF/FILE   FILE of the directory whose .shunt-dir says `mirror NAME-ID`\n"
    "    root                         which directory this belongs to\n"
    "    session/                     who works on it now\n"
    "\n"
    "`shunt ls` lists everything, `shunt export` puts all files back where they belong and removes this "
    "directory.\n";

/* What the preparation works on, and what of it is new and goes again if it fails. */
struct preparation {
    int root, own, session;
    struct dirid id;
    bool made_own, made_session, made_branches, made_readme;
};

static bool prepare_holds_stamp(const char *directory)
{
    char path[PATH_MAX + 16];
    struct statx stat;
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, directory);
    text_add(&t, "/" LAYOUT_OWN "/" STAMP_NAME);
    return text_ok(&t) && sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0;
}

/* 0; -ELOOP: a directory above is a root; -EBUSY: it is the one above all. */
static int prepare_check_above(int root)
{
    char path[PATH_MAX];
    int length = disk_canonical(root, path, sizeof path);
    if (length < 0)
        return length;
    if (!strcmp(path, "/"))
        return -EBUSY;
    for (char *slash; (slash = strrchr(path, '/')) && path[1];) {
        *slash = '\0';
        if (prepare_holds_stamp(path))
            return -ELOOP;
    }
    return 0;
}

/* A directory that is there has its mode; a new one gets it whatever the umask and ACLs of the root say. */
static int prepare_ensure_directory(int dir, const char *name, mode_t mode, bool *made)
{
    int error = sys_mkdirat(dir, name, 0700);
    *made = error == 0;
    if (error == 0)
        error = (int)SYS3(SYS_fchmodat, dir, name, 0700);
    if (error < 0 && error != -EEXIST)
        return error;
    int fd = sys_openat(dir, name, DISK_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    struct statx stat;
    error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_MODE, &stat);
    if (error == 0 && (stat.stx_mode & 07777) != mode)
        error = sys_fchmod(fd, mode);
    /* Another user's: what is permitted will do, or will fail by itself. */
    if (error < 0 && (*made || error != -EPERM)) {
        sys_close(fd);
        return error;
    }
    return fd;
}

static bool prepare_has_ino(int dir, const char *name, uint64_t ino)
{
    struct statx stat;
    return sys_statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_INO, &stat) == 0 && stat.stx_ino == ino;
}

/* Listings take inode numbers from the directory, and compare them with those of stat. */
static bool prepare_lists_ino(int dir, const char *name, uint64_t ino)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    bool found = false;
    if (disk_scan_init(&scan, dir, ".", buffer, sizeof buffer) == 0)
        while (!found && disk_scan_next(&scan, &one) > 0)
            found = !strcmp(one->name, name) && one->ino == ino;
    disk_scan_finish(&scan);
    return found;
}

static int prepare_probe_names(int dir, const char *first, const char *second)
{
    struct statx stat;
    int error = sys_statx(dir, first, AT_SYMLINK_NOFOLLOW, STATX_INO, &stat);
    if (error < 0)
        return error;
    uint64_t ino = stat.stx_ino;
    error = sys_linkat(dir, first, dir, second, 0);
    if (error == -EPERM || error == -ENOSYS || error == -EMLINK)
        return -EOPNOTSUPP;
    if (error < 0)
        return error;
    bool stable = prepare_has_ino(dir, first, ino) && prepare_has_ino(dir, second, ino) && prepare_lists_ino(dir, second, ino);
    error = sys_unlinkat(dir, second, 0);
    if (error == 0)
        error = sys_renameat2(dir, first, dir, second, 0);
    if (error < 0)
        return error;
    return stable && prepare_has_ino(dir, second, ino) ? 0 : -EMEDIUMTYPE;
}

/* Will this file system do? */
static int prepare_probe(int dir)
{
    char first[32], second[32];
    struct text t;
    text_init(&t, first, sizeof first);
    disk_temporary(&t, ".probe-");
    text_init(&t, second, sizeof second);
    disk_temporary(&t, ".probe-");
    int error = disk_write_new(dir, first, "", 0, 0600);
    if (error < 0)
        return error;
    error = prepare_probe_names(dir, first, second);
    sys_unlinkat(dir, first, 0);
    sys_unlinkat(dir, second, 0);
    return error;
}

static int prepare_settle_stamp(const struct preparation *p, bool *restamped)
{
    struct stamp stamp;
    int error = stamp_read(p->own, &stamp);
    if (error == 0 && dirid_equal(stamp.directory, p->id))
        return 0;
    if (error == 0)
        return store_part(p->session, restamped);
    return error == -ENOENT ? stamp_renew(p->own, p->id) : error;
}

static int prepare_make_readme(struct preparation *p)
{
    int error = disk_write_new(p->own, "README", readme, sizeof readme - 1, 0644);
    p->made_readme = error == 0;
    return error == -EEXIST ? 0 : error;
}

static int prepare_make_branches(struct preparation *p)
{
    int fd = prepare_ensure_directory(p->own, "b", 0755, &p->made_branches);
    if (fd >= 0)
        sys_close(fd);
    return fd < 0 ? fd : 0;
}

/* A file system that makes no directories may say ENOENT (/proc), as a directory says that has been removed. */
static int prepare_make_own(struct preparation *p)
{
    struct statx stat;
    p->own = prepare_ensure_directory(p->root, LAYOUT_OWN, 0755, &p->made_own);
    if (p->own != -ENOENT || p->made_own || sys_statx(p->root, "", AT_EMPTY_PATH, STATX_NLINK, &stat) != 0)
        return p->own;
    return stat.stx_nlink == 0 ? -ENOENT : -EPERM;
}

/* The stamp comes last: where it is, all is. */
static int prepare_make_all(struct preparation *p, bool *restamped)
{
    const int own = prepare_make_own(p);
    if (own < 0)
        return own;
    p->session = prepare_ensure_directory(p->own, "session", 0755, &p->made_session);
    if (p->session < 0)
        return p->session;
    int error = prepare_probe(p->session);
    if (error == 0)
        error = prepare_make_branches(p);
    if (error == 0)
        error = prepare_make_readme(p);
    return error == 0 ? prepare_settle_stamp(p, restamped) : error;
}

static void prepare_unmake(const struct preparation *p)
{
    if (p->made_readme)
        sys_unlinkat(p->own, "README", 0);
    if (p->made_branches)
        sys_unlinkat(p->own, "b", AT_REMOVEDIR);
    if (p->made_session)
        sys_unlinkat(p->own, "session", AT_REMOVEDIR);
    if (p->made_own)
        sys_unlinkat(p->root, LAYOUT_OWN, AT_REMOVEDIR);
}

static int prepare_prepare(struct preparation *p, bool *restamped)
{
    struct statx stat;
    int error = identity_stat_root(p->root, &stat);
    if (error == 0)
        error = prepare_check_above(p->root);
    if (error < 0)
        return error;
    p->id = dirid_of(&stat);
    error = prepare_make_all(p, restamped);
    if (error < 0)
        prepare_unmake(p);
    if (p->own >= 0)
        sys_close(p->own);
    if (p->session >= 0)
        sys_close(p->session);
    return error;
}

int session_prepare_root(const char *root, bool *restamped)
{
    struct preparation p = {.own = -1, .session = -1};
    *restamped = false;
    p.root = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (p.root < 0)
        return p.root;
    int error = prepare_prepare(&p, restamped);
    sys_close(p.root);
    return error;
}
