/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "catalogue/codec.h"

#define ENVIRONMENT_DATABASES 4
#define ENVIRONMENT_ABOUT "about"
#define ENVIRONMENT_DIRECTORIES "directories"
#define ENVIRONMENT_NAMES "names"
#define ENVIRONMENT_MARKERS "markers"
#define ENVIRONMENT_FULL (1u << 20)           /* less than that is left on a file system: it is full */
#define ENVIRONMENT_BATCH (8u << 20)          /* a transaction keeps its new pages in memory: it is committed at that size */
#define ENVIRONMENT_SPARE 64                  /* pages that are kept free for what LMDB itself writes at a commit */
#define ENVIRONMENT_GRANULE ((size_t)1 << 20) /* sizes of the map are multiples of it */

int environment_error(int code)
{
    if (code >= 0)
        return -code;
    switch (code) {
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_MAP_FULL:
        return -ENOSPC;
    case MDB_TXN_FULL:
    case MDB_READERS_FULL:
    case MDB_DBS_FULL:
        return -ENOMEM;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PAGE_FULL:
    case MDB_CURSOR_FULL:
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_VALSIZE:
    case MDB_BAD_DBI:
        return -EBADMSG;
    default:
        return code <= MDB_KEYEXIST && code >= MDB_LAST_ERRCODE ? -EIO : code;
    }
}

int environment_create(struct catalogue **catalogue)
{
    *catalogue = calloc(1, sizeof **catalogue);
    if (*catalogue == NULL)
        return -ENOMEM;
    pthread_rwlock_init(&(*catalogue)->map, NULL);
    return 0;
}

static void environment_stop(struct catalogue *c)
{
    if (c->batch != NULL)
        mdb_txn_abort(c->batch);
    if (c->env != NULL)
        mdb_env_close(c->env);
    c->batch = NULL;
    c->env = NULL;
}

void environment_close(struct catalogue *c)
{
    if (c == NULL)
        return;
    environment_stop(c);
    pthread_rwlock_destroy(&c->map);
    free(c->path);
    free(c);
}

/* Is this the record of this root? A file that is new is given it. */
static int environment_about(struct catalogue *c, MDB_txn *txn, unsigned create, struct dirid root)
{
    uint8_t own[CODEC_ABOUT_SIZE];
    MDB_val key = {sizeof ENVIRONMENT_ABOUT - 1, ENVIRONMENT_ABOUT}, value;
    struct dirid other;
    int code = mdb_dbi_open(txn, ENVIRONMENT_ABOUT, create, &c->about);
    if (code == 0)
        code = mdb_get(txn, c->about, &key, &value);
    if (code == MDB_NOTFOUND && create) {
        codec_about_encode(own, root);
        value = (MDB_val){sizeof own, own};
        return mdb_put(txn, c->about, &key, &value, 0);
    }
    if (code == 0)
        code = codec_about_decode(&other, value.mv_data, value.mv_size);
    if (code == 0 && !dirid_equal(root, other))
        code = -ESTALE;
    return code == MDB_NOTFOUND ? -EBADMSG : code;
}

static int environment_databases(struct catalogue *c, unsigned flags, struct dirid root)
{
    MDB_txn *txn;
    MDB_stat stat;
    const unsigned create = flags & MDB_RDONLY ? 0 : MDB_CREATE;
    int code = mdb_txn_begin(c->env, NULL, flags & MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    code = environment_about(c, txn, create, root);
    if (code == 0)
        code = mdb_dbi_open(txn, ENVIRONMENT_DIRECTORIES, create, &c->directories);
    if (code == 0)
        code = mdb_dbi_open(txn, ENVIRONMENT_NAMES, create, &c->names);
    if (code == 0)
        code = mdb_dbi_open(txn, ENVIRONMENT_MARKERS, create, &c->markers);
    if (code == 0)
        code = mdb_stat(txn, c->names, &stat);
    if (code != 0) {
        mdb_txn_abort(txn);
        return code == MDB_NOTFOUND ? -EBADMSG : code;
    }
    c->page = stat.ms_psize;
    return mdb_txn_commit(txn);
}

uint64_t environment_bytes(struct catalogue *c)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(c->env, &info);
    mdb_env_stat(c->env, &stat);
    return ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
}

/* A page beyond the end of the file would be a SIGBUS. */
static int environment_is_whole(struct catalogue *c)
{
    struct stat stat;
    int file, code = mdb_env_get_fd(c->env, &file);
    if (code != 0)
        return code;
    if (fstat(file, &stat) < 0)
        return -errno;
    return (uint64_t)stat.st_size < environment_bytes(c) ? -EBADMSG : 0;
}

int environment_open(struct catalogue *c, const char *path, unsigned flags, size_t map, struct dirid root)
{
    c->root = root;
    int code = mdb_env_create(&c->env);
    if (code == 0)
        code = mdb_env_set_maxdbs(c->env, ENVIRONMENT_DATABASES);
    if (code == 0)
        code = mdb_env_set_mapsize(c->env, map);
    if (code == 0)
        code = mdb_env_open(c->env, path, flags, 0600);
    if (code == 0)
        code = environment_is_whole(c);
    if (code == 0)
        code = environment_databases(c, flags, root);
    if (code != 0)
        environment_stop(c);
    return environment_error(code);
}

int environment_read(struct catalogue *c, MDB_txn **txn)
{
    pthread_rwlock_rdlock(&c->map);
    int error = c->failed;
    if (error == 0)
        error = environment_error(mdb_txn_begin(c->env, NULL, MDB_RDONLY, txn));
    if (error < 0)
        pthread_rwlock_unlock(&c->map);
    return error;
}

void environment_read_end(struct catalogue *c, MDB_txn *txn)
{
    mdb_txn_abort(txn);
    pthread_rwlock_unlock(&c->map);
}

/* Makes the file as long as its pages say. It is longer after a transaction that was undone: what would be written there next
 * takes the room of others until then. It is shorter where LMDB allocated the last page and then did not need it. */
static void environment_fit(struct catalogue *c)
{
    struct stat stat;
    int file;
    const uint64_t bytes = environment_bytes(c);
    if (mdb_env_get_fd(c->env, &file) == 0 && fstat(file, &stat) == 0 && (uint64_t)stat.st_size != bytes)
        /* Without it the file is only longer, or made again when it is opened next. */
        (void)!ftruncate(file, (off_t)bytes);
}

int environment_begin(struct catalogue *c)
{
    if (c->failed < 0 || c->batch != NULL)
        return c->failed < 0 ? c->failed : -EINVAL;
    c->reserved = 0;
    return environment_error(mdb_txn_begin(c->env, NULL, 0, &c->batch));
}

/* LMDB says EIO where a file system took only a part of what it wrote, which is what a full one does. */
static int environment_write_error(struct catalogue *c, int error)
{
    struct statvfs fs;
    int file;
    if (error != -EIO || mdb_env_get_fd(c->env, &file) != 0 || fstatvfs(file, &fs) < 0)
        return error;
    return (uint64_t)fs.f_bavail * fs.f_frsize < ENVIRONMENT_FULL ? -ENOSPC : error;
}

static bool environment_has_addresses(size_t size)
{
    void *probe = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    munmap(probe, size);
    return true;
}

/* Makes the map twice as large or more, or just as large as it has to be. Only without a transaction. LMDB gives the old map
 * back before it asks for the new one, and if it does not get that, nothing works any more: so it is tried first. */
static int environment_grow(struct catalogue *c, uint64_t pages)
{
    MDB_envinfo info;
    mdb_env_info(c->env, &info);
    const uint64_t needed = ((uint64_t)info.me_last_pgno + 1 + pages + ENVIRONMENT_SPARE) * c->page;
    size_t size = info.me_mapsize * 2;
    while (size < needed)
        size *= 2;
    if (!environment_has_addresses(size - info.me_mapsize))
        size = (needed / ENVIRONMENT_GRANULE + 1) * ENVIRONMENT_GRANULE;
    if (size <= info.me_mapsize)
        return 0;
    if (!environment_has_addresses(size - info.me_mapsize))
        return -ENOMEM;
    pthread_rwlock_wrlock(&c->map);
    c->failed = environment_error(mdb_env_set_mapsize(c->env, size));
    pthread_rwlock_unlock(&c->map);
    return c->failed;
}

int environment_give_up(struct catalogue *c, int code)
{
    if (c->batch != NULL)
        mdb_txn_abort(c->batch);
    c->batch = NULL;
    if (c->failed < 0)
        return c->failed;
    const int error = environment_write_error(c, environment_error(code));
    environment_fit(c);
    /* It was thought to be enough; a second attempt has more. */
    if (code == MDB_MAP_FULL)
        environment_grow(c, 0);
    return error;
}

int environment_commit(struct catalogue *c)
{
    MDB_txn *txn = c->batch;
    c->batch = NULL;
    int code = mdb_txn_commit(txn);
    if (code != 0)
        return environment_give_up(c, code);
    environment_fit(c);
    return 0;
}

static bool environment_has_room(struct catalogue *c, uint64_t pages)
{
    MDB_envinfo info;
    if (c->reserved > 0 && (c->reserved + pages) * c->page > ENVIRONMENT_BATCH)
        return false;
    mdb_env_info(c->env, &info);
    return (uint64_t)info.me_last_pgno + 1 + c->reserved + pages + ENVIRONMENT_SPARE <= info.me_mapsize / c->page;
}

int environment_make_room(struct catalogue *c, uint64_t pages)
{
    int error = 0;
    if (!environment_has_room(c, pages)) {
        error = environment_commit(c);
        c->reserved = 0;
        if (error == 0 && !environment_has_room(c, pages))
            error = environment_grow(c, pages);
        if (error == 0)
            error = environment_begin(c);
    }
    c->reserved += pages;
    return error;
}
