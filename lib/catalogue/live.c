/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The live catalogue of a daemon, in its run directory. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "catalogue/codec.h"
#include "catalogue/environment.h"
#include "union/disk.h"

#define LIVE_BOOT_ID "/proc/sys/kernel/random/boot_id"
#define LIVE_WORDS_MAX 256
#define LIVE_MAP ((size_t)64 << 20)

/* No MDB_WRITEMAP: on a full tmpfs a page of the map that is not there would be a SIGBUS, where pwrite says ENOSPC. No sync:
 * what a crash of the machine leaves is not read again, and after one of the process alone the kernel has everything that was
 * written, in order. No MDB_NOMEMINIT: what memory held before would get into copies, which others may read. MDB_NOTLS: a
 * transaction that reads is not tied to a thread, and so may begin while a batch is open in the same one. */
#define LIVE_FLAGS (MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOMETASYNC | MDB_NOTLS)

/* The file, and what lies next to it. */
struct live {
    char file[PATH_MAX], lock[PATH_MAX], boot[PATH_MAX];
    char words[LIVE_WORDS_MAX]; /* what PATH-boot must say */
    size_t length;
};

static int live_path(char to[PATH_MAX], const char *path, const char *suffix)
{
    struct text t;
    text_init(&t, to, PATH_MAX);
    text_add(&t, path);
    text_add(&t, suffix);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}

static int live_init(struct live *live, const char *path, struct dirid root)
{
    char boot[64];
    struct text t;
    int error = live_path(live->file, path, "");
    if (error == 0)
        error = live_path(live->lock, path, "-lock");
    if (error == 0)
        error = live_path(live->boot, path, "-boot");
    if (error < 0)
        return error;
    ssize_t length = disk_read(AT_FDCWD, LIVE_BOOT_ID, boot, sizeof boot);
    if (length < 0)
        return (int)length;
    text_init(&t, live->words, sizeof live->words);
    text_add(&t, "shunt-catalogue ");
    text_number(&t, CATALOGUE_FORMAT, 10);
    text_add(&t, "\nroot ");
    text_number(&t, root.ino, 10);
    text_add(&t, " ");
    text_number(&t, root.birth, 10);
    text_add(&t, "\nboot ");
    text_bytes(&t, boot, (size_t)length);
    live->length = t.length;
    return 0;
}

/* LMDB is shown no file that another boot or another version left: it checks little of what it reads. */
static bool live_is_known(const struct live *live)
{
    char words[LIVE_WORDS_MAX];
    ssize_t length = disk_read(AT_FDCWD, live->boot, words, sizeof words);
    return length == (ssize_t)live->length && !memcmp(words, live->words, live->length);
}

static int live_remove(const char *path)
{
    int error = sys_unlinkat(AT_FDCWD, path, 0);
    return error == -ENOENT ? 0 : error;
}

/* PATH-boot goes first and comes last, so that it never stands for less than a whole file. */
static int live_make(struct catalogue *c, const struct live *live, struct dirid root)
{
    int error = live_remove(live->boot);
    if (error == 0)
        error = live_remove(live->lock);
    if (error == 0)
        error = live_remove(live->file);
    if (error == 0)
        error = environment_open(c, live->file, LIVE_FLAGS, LIVE_MAP, root);
    if (error == 0)
        error = disk_write_new(AT_FDCWD, live->boot, live->words, live->length, 0600);
    return error;
}

void catalogue_remove(const char *path)
{
    struct live live;
    if (live_init(&live, path, (struct dirid){0}) < 0)
        return;
    live_remove(live.boot);
    live_remove(live.lock);
    live_remove(live.file);
}

int catalogue_open(struct catalogue **catalogue, const char *path, struct dirid root)
{
    struct live live;
    struct catalogue *c = NULL;
    int error = live_init(&live, path, root);
    if (error == 0)
        error = environment_create(&c);
    if (error == 0)
        error = live_is_known(&live) ? environment_open(c, path, LIVE_FLAGS, LIVE_MAP, root) : -ESTALE;
    if (error == -ESTALE || error == -EBADMSG || error == -ENOENT)
        error = live_make(c, &live, root);
    if (error == 0 && (c->path = strdup(path)) == NULL)
        error = -ENOMEM;
    if (error < 0)
        environment_close(c);
    else
        *catalogue = c;
    return error;
}
