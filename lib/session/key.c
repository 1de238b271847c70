/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a founder leaves for daemons that join: the key, and the probe that shows them whether they see the same
 * file system. Each is whole before the epoch that names its session is published. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "session/stamp.h"
#include "session/store.h"
#include "union/disk.h"
#include "union/lines.h"

#define KEY "key" /* what its name begins with */
#define KEY_PREFIX KEY "."

#define KEY_HEAD "shunt-key 1"
#define PROBE_HEAD "shunt-probe 1"
#define TEXT_MAX 256

static bool key_add_key(struct text *t)
{
    uint8_t key[SESSION_KEY_SIZE];
    if (SYS3(SYS_getrandom, key, sizeof key, 0) != (long)sizeof key)
        return false;
    text_add(t, "key ");
    for (size_t i = 0; i < sizeof key; i++) {
        text_number(t, key[i] >> 4, 16);
        text_number(t, key[i] & 15, 16);
    }
    text_add(t, "\n");
    return true;
}

int key_make(int directory, const struct session *session)
{
    char text[TEXT_MAX], name[STORE_NAME_MAX];
    struct text t;
    text_init(&t, text, sizeof text);
    text_add(&t, KEY_HEAD " ");
    text_number(&t, session->id, 16);
    text_add(&t, "\n");
    if (!key_add_key(&t))
        return -EIO;
    store_name(name, KEY, session, 0);
    return disk_write_new(directory, name, text, t.length, 0600);
}

static int key_parse_key(const char *text, size_t length, const struct session *session, uint8_t key[SESSION_KEY_SIZE])
{
    struct lines lines = {text, length};
    struct lines_value id, words;
    uint64_t owner, byte;
    if (!lines_take(&lines, KEY_HEAD, &id) || !lines_number(id, 16, &owner))
        return -EBADMSG;
    if (owner != session->id)
        return -ESTALE;
    if (!lines_take(&lines, "key", &words) || words.length != 2 * SESSION_KEY_SIZE || lines.left > 0)
        return -EBADMSG;
    for (size_t i = 0; i < SESSION_KEY_SIZE; i++) {
        if (!lines_number((struct lines_value){words.at + 2 * i, 2}, 16, &byte))
            return -EBADMSG;
        key[i] = (uint8_t)byte;
    }
    return 0;
}

/* Whose a file is that this user makes there: an NFS server may map users. */
static int key_made_by_us(int directory, uid_t *uid)
{
    char name[STORE_NAME_MAX];
    struct statx stat;
    struct text t;
    text_init(&t, name, sizeof name);
    disk_temporary(&t, ".owner-");
    const int fd = sys_openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fd;
    const int error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_UID, &stat);
    sys_close(fd);
    sys_unlinkat(directory, name, 0);
    if (error == 0)
        *uid = stat.stx_uid;
    return error;
}

static bool key_is_ours(int directory, uid_t owner)
{
    uid_t uid;
    return owner == (uid_t)SYS0(SYS_geteuid) || (key_made_by_us(directory, &uid) == 0 && uid == owner);
}

static int key_read_key(int directory, int fd, const struct session *session, uint8_t key[SESSION_KEY_SIZE])
{
    char text[TEXT_MAX];
    struct statx stat;
    int error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_UID, &stat);
    if (error < 0)
        return error;
    if (!S_ISREG(stat.stx_mode) || (stat.stx_mode & 077) != 0 || !key_is_ours(directory, stat.stx_uid))
        return -EPERM;
    ssize_t length = disk_read_all(fd, text, sizeof text);
    return length < 0 ? (int)length : key_parse_key(text, (size_t)length, session, key);
}

int session_key(const char *root, const struct session *session, uint8_t key[SESSION_KEY_SIZE])
{
    char name[STORE_NAME_MAX];
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    store_name(name, KEY, session, 0);
    int fd = sys_openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    int error = fd == -ELOOP || fd == -ENXIO || fd == -EACCES ? -EPERM : fd;
    if (fd >= 0) {
        error = key_read_key(directory, fd, session, key);
        sys_close(fd);
    }
    sys_close(directory);
    return error;
}

static size_t key_probe_text(const struct session *session, char to[TEXT_MAX])
{
    struct text t;
    text_init(&t, to, TEXT_MAX);
    text_add(&t, PROBE_HEAD "\n");
    lines_add_number(&t, "session", session->id, 16);
    return t.length;
}

static int key_look_at_root(int directory, struct session *session)
{
    const int own = sys_openat(directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (own < 0)
        return own;
    const int error = stamp_root_of(own, &session->root);
    sys_close(own);
    return error;
}

/* Root, probe and file system as they are from here. */
static int key_look(int directory, struct session *session)
{
    char name[STORE_NAME_MAX];
    struct statx stat;
    struct statfs system;
    store_name(name, "probe", session, 0);
    int error = sys_statx(directory, name, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &stat);
    if (error == 0) {
        session->probe = dirid_of(&stat);
        error = key_look_at_root(directory, session);
    }
    if (error == 0)
        error = (int)SYS2(SYS_fstatfs, directory, &system);
    if (error == 0)
        session->system = (uint64_t)system.f_type;
    return error;
}

int probe_make(int directory, struct session *session)
{
    char text[TEXT_MAX], name[STORE_NAME_MAX];
    size_t length = key_probe_text(session, text);
    store_name(name, "probe", session, 0);
    int error = disk_write_new(directory, name, text, length, 0644);
    return error < 0 ? error : key_look(directory, session);
}

/* Not by its birth: of a file that a client of CephFS makes without waiting for the server (nowsync), that client and the
 * others tell another one. */
int probe_check(int directory, const struct session *session)
{
    char name[STORE_NAME_MAX], expected[TEXT_MAX], found[TEXT_MAX];
    struct session here = *session;
    size_t length = key_probe_text(session, expected);
    store_name(name, "probe", session, 0);
    if (key_look(directory, &here) < 0 || here.probe.ino != session->probe.ino || !dirid_equal(here.root, session->root) ||
        here.system != session->system)
        return -EXDEV;
    ssize_t size = disk_read(directory, name, found, sizeof found);
    return size == (ssize_t)length && memcmp(found, expected, length) == 0 ? 0 : -EXDEV;
}

int session_user(const char *root, uid_t *uid)
{
    char buffer[512] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    struct statx stat;
    int directory = store_open(root), found = -ENOENT;
    if (directory < 0)
        return directory;
    int more = disk_scan_init(&scan, directory, ".", buffer, sizeof buffer);
    while (more >= 0 && found != 0 && (more = disk_scan_next(&scan, &one)) > 0)
        if (strncmp(one->name, KEY_PREFIX, sizeof KEY_PREFIX - 1) == 0)
            found = sys_statx(directory, one->name, AT_SYMLINK_NOFOLLOW, STATX_UID, &stat);
    disk_scan_finish(&scan);
    sys_close(directory);
    if (found == 0)
        *uid = stat.stx_uid;
    return found;
}
