/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/store.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "session/stamp.h"
#include "union/disk.h"
#include "union/lines.h"

#define EPOCH_PREFIX "epoch."
#define EPOCH_NEW ".epoch-"
#define SCAN_SIZE 32768 /* so much that one call to the kernel answers: most of them list at one moment */

int store_open(const char *root)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int directory = sys_openat(fd, LAYOUT_OWN "/session", DISK_DIRECTORY, 0);
    sys_close(fd);
    return directory;
}

bool store_is_copied(int directory)
{
    int own = sys_openat(directory, "..", DISK_DIRECTORY, 0);
    bool copied = own >= 0 && stamp_is_copied(own) == 1;
    if (own >= 0)
        sys_close(own);
    return copied;
}

/* Again until none is removed any more: names that are removed may hide others from a listing. */
static int store_remove_if(int directory, bool (*want)(const char *name, const void *what), const void *what)
{
    char buffer[SCAN_SIZE] __attribute__((aligned(8)));
    int gone, error = 0;
    do {
        struct disk_scan scan;
        const struct disk_name *one;
        gone = 0;
        error = disk_scan_init(&scan, directory, ".", buffer, sizeof buffer);
        while (error >= 0 && (error = disk_scan_next(&scan, &one)) > 0)
            if (want(one->name, what)) {
                error = sys_unlinkat(directory, one->name, 0);
                gone += error == 0;
                if (error == -ENOENT)
                    error = 0;
            }
        disk_scan_finish(&scan);
    } while (error == 0 && gone > 0);
    return error;
}

static bool store_is_any(const char *name, const void *what)
{
    return true;
}

/* The text goes before the new stamp is written: after an interruption a copy is found again. */
static int store_part_from_original(int directory, int own)
{
    struct dirid root;
    int error = stamp_root_of(own, &root);
    if (error == 0)
        error = store_remove_if(directory, store_is_any, NULL);
    return error < 0 ? error : stamp_renew(own, root);
}

int store_part(int directory, bool *parted)
{
    int own = sys_openat(directory, "..", DISK_DIRECTORY, 0);
    *parted = false;
    if (own < 0)
        return own;
    /* Two that part one copy, on hosts that share locks: the second finds it done. */
    SYS2(SYS_flock, directory, LOCK_EX);
    int copied = stamp_is_copied(own);
    int error = copied == 1 ? store_part_from_original(directory, own) : 0;
    *parted = copied == 1 && error == 0;
    SYS2(SYS_flock, directory, LOCK_UN);
    sys_close(own);
    return error;
}

/* Memory. */

static void *store_map(size_t size)
{
    void *at = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sys_is_error(at) ? NULL : at;
}

void session_finish(struct session *session)
{
    if (session->members)
        sys_munmap(session->members, session->room * sizeof *session->members);
    *session = (struct session){0};
}

int store_room(struct session *session, size_t room)
{
    struct session_member *members = store_map(room * sizeof *members);
    if (!members)
        return -ENOMEM;
    if (session->members) {
        memcpy(members, session->members, session->count * sizeof *members);
        sys_munmap(session->members, session->room * sizeof *members);
    }
    session->members = members;
    session->room = room;
    return 0;
}

/* Epochs. */

static void store_epoch_name(char to[STORE_NAME_MAX], uint64_t epoch)
{
    struct text t;
    text_init(&t, to, STORE_NAME_MAX);
    text_add(&t, EPOCH_PREFIX);
    text_number(&t, epoch, 10);
}

/* The number of an epoch's file, 0 if it is none. */
static uint64_t store_epoch_of(const char *name)
{
    const size_t prefix = sizeof EPOCH_PREFIX - 1;
    uint64_t number;
    if (strncmp(name, EPOCH_PREFIX, prefix) != 0 || name[prefix] == '0')
        return 0;
    struct lines_value value = {name + prefix, strlen(name + prefix)};
    return lines_number(value, 10, &number) ? number : 0;
}

int store_highest(int directory, uint64_t *epoch)
{
    char buffer[SCAN_SIZE] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    *epoch = 0;
    int more = disk_scan_init(&scan, directory, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        uint64_t number = store_epoch_of(one->name);
        if (number > *epoch)
            *epoch = number;
    }
    disk_scan_finish(&scan);
    return more;
}

static int store_parse_epoch(struct session *session, uint64_t epoch, const char *text, size_t length)
{
    /* The end, where there was no room for words. */
    if (length == 0) {
        session->epoch = session->founded = epoch;
        return 0;
    }
    int members = session_count(text, length);
    if (members < 0)
        return members;
    int error = store_room(session, (size_t)members + 1);
    if (error == 0)
        error = session_parse(session, text, length);
    return error == 0 && session->epoch != epoch ? -EBADMSG : error;
}

static int store_read_epoch(int directory, uint64_t epoch, struct session *session)
{
    char name[STORE_NAME_MAX];
    struct statx stat;
    store_epoch_name(name, epoch);
    int error = sys_statx(directory, name, AT_SYMLINK_NOFOLLOW, STATX_SIZE, &stat);
    if (error < 0)
        return error;
    if (stat.stx_size > session_text_max(SESSION_MEMBERS_MAX))
        return -EBADMSG;
    size_t size = (size_t)stat.stx_size + 1;
    char *text = store_map(size);
    if (!text)
        return -ENOMEM;
    ssize_t length = disk_read(directory, name, text, size);
    error = length < 0 ? (int)length : store_parse_epoch(session, epoch, text, (size_t)length);
    sys_munmap(text, size);
    return error;
}

/* A listing need not be of one moment, and what was highest may be removed once it is two after. So it is
 * believed when a second one, after the file was read, says the same. */
int store_read(int directory, struct session *session)
{
    uint64_t epoch, now;
    *session = (struct session){0};
    int error = store_highest(directory, &now);
    if (error < 0)
        return error;
    do {
        session_finish(session);
        epoch = now;
        int answer = epoch > 0 ? store_read_epoch(directory, epoch, session) : -ENOENT;
        error = store_highest(directory, &now);
        if (error == 0)
            error = answer;
    } while (now > epoch);
    if (error < 0)
        session_finish(session);
    return error == -ENOENT && epoch > 0 ? -ESTALE : error;
}

struct older {
    uint64_t epoch;
};

static bool store_is_older(const char *name, const void *what)
{
    const struct older *older = what;
    uint64_t epoch = store_epoch_of(name);
    return epoch > 0 && epoch + 1 < older->epoch;
}

static bool store_is_same_file(int directory, const char *a, const char *b)
{
    struct statx one, other;
    return sys_statx(directory, a, AT_SYMLINK_NOFOLLOW, STATX_INO, &one) == 0 &&
           sys_statx(directory, b, AT_SYMLINK_NOFOLLOW, STATX_INO, &other) == 0 && one.stx_ino == other.stx_ino;
}

static bool store_has_no_room(int error)
{
    return error == -ENOSPC || error == -EDQUOT;
}

/* NFS repeats a call whose answer was lost, and says of the second that the name is there. The temporary is
 * gone if a founder swept it away: then there is a newer epoch. Where a second name takes room as a file does
 * (tmpfs), the temporary becomes the epoch. */
static int store_link_epoch(int directory, const char *temporary, uint64_t epoch)
{
    char name[STORE_NAME_MAX];
    store_epoch_name(name, epoch);
    int error = sys_linkat(directory, temporary, directory, name, 0);
    if (store_has_no_room(error)) {
        const int renamed = sys_renameat2(directory, temporary, directory, name, RENAME_NOREPLACE);
        error = renamed == -EINVAL || renamed == -ENOSYS ? error : renamed;
    }
    if (error == -EEXIST && store_is_same_file(directory, temporary, name))
        error = 0;
    return error == -EEXIST || error == -ENOENT ? -EAGAIN : error;
}

static void store_remove_older(int directory, const struct session *session)
{
    store_remove_if(directory, store_is_older, &(struct older){session->epoch});
}

/* An end must always be possible, and members leave by epochs of their own: the one before that in force makes room. One that
 * is about to be read is found not to be the last. */
static int store_write_epoch(int directory, const char *temporary, const struct session *session)
{
    size_t size = session_text_max(session->count);
    char *text = store_map(size);
    if (!text)
        return -ENOMEM;
    ssize_t length = session_format(session, text, size);
    int error = length < 0 ? (int)length : disk_write_new(directory, temporary, text, (size_t)length, 0644);
    if (store_has_no_room(error)) {
        store_remove_older(directory, session);
        error = disk_write_new(directory, temporary, text, (size_t)length, 0644);
    }
    if (store_has_no_room(error) && session->count == 0)
        error = disk_write_new(directory, temporary, "", 0, 0644);
    sys_munmap(text, size);
    return error;
}

int store_publish(int directory, const struct session *session)
{
    char temporary[STORE_NAME_MAX];
    struct text t;
    text_init(&t, temporary, sizeof temporary);
    disk_temporary(&t, EPOCH_NEW);
    int error = store_write_epoch(directory, temporary, session);
    if (error < 0)
        return error;
    error = store_link_epoch(directory, temporary, session->epoch);
    sys_unlinkat(directory, temporary, 0);
    if (error == 0)
        store_remove_older(directory, session);
    return error;
}

/* What is next to the epochs carries its session in its name: no daemon that comes late, founder or last member,
 * can hit the files of another session. */

void store_name(char to[STORE_NAME_MAX], const char *what, const struct session *session, uint16_t number)
{
    struct text t;
    text_init(&t, to, STORE_NAME_MAX);
    text_add(&t, what);
    text_add(&t, ".");
    text_number(&t, session->founded, 10);
    text_add(&t, "-");
    for (int shift = 60; shift >= 0; shift -= 4)
        text_number(&t, session->id >> shift & 15, 16);
    if (number > 0) {
        text_add(&t, ".");
        text_number(&t, number, 10);
    }
}

/* WHAT.FOUNDED-ID taken apart. */
static bool store_belongs(const char *name, uint64_t *founded, uint64_t *id)
{
    const char *dot = strchr(name, '.'), *dash = dot ? strchr(dot, '-') : NULL;
    if (!dash || dot == name)
        return false;
    struct lines_value first = {dot + 1, (size_t)(dash - dot) - 1}, second = {dash + 1, strcspn(dash + 1, ".")};
    return second.length == 16 && lines_number(first, 10, founded) && lines_number(second, 16, id);
}

static bool store_is_of_the_past(const char *name, const void *what)
{
    const struct older *older = what;
    uint64_t founded, id;
    if (strncmp(name, EPOCH_NEW, sizeof EPOCH_NEW - 1) == 0)
        return true;
    return store_belongs(name, &founded, &id) && founded < older->epoch;
}

void store_sweep(int directory, uint64_t founded)
{
    store_remove_if(directory, store_is_of_the_past, &(struct older){founded});
}

static bool store_is_of_session(const char *name, const void *what)
{
    const struct session *session = what;
    uint64_t founded, id;
    return store_belongs(name, &founded, &id) && founded == session->founded && id == session->id;
}

void store_clear(int directory, const struct session *session)
{
    store_remove_if(directory, store_is_of_session, session);
}
