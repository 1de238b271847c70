/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue/environment.h"
#include "index/record.h"

#define SPILL_KEY (8 + RECORD_NAME_MAX)
#define SPILL_VALUE 16
#define SPILL_WRITES 256        /* in a transaction */
#define SPILL_SPARE (16u << 20) /* more than these take: each a path of new pages, twice where pages split */
#define SPILL_STEP (32u << 20)  /* the least by which the file grows */
#define SPILL_FIRST (1u << 20)  /* LMDB takes a file that is not empty for one of its own: it grows once it is */

struct spill {
    MDB_env *env;
    MDB_txn *txn; /* there always is one, unless the last call failed */
    MDB_dbi names;
    unsigned writes; /* in it */
    uint64_t bytes;  /* of the file and of the map */
    size_t page;
};

struct spill_key {
    uint8_t bytes[SPILL_KEY];
    size_t size;
};

static struct spill_key spill_key_of(uint64_t hash, const char *name, size_t length)
{
    struct spill_key key = {.size = 8 + length};
    for (unsigned i = 0; i < 8; i++)
        key.bytes[i] = (uint8_t)(hash >> (56 - 8 * i));
    memcpy(key.bytes + 8, name, length);
    return key;
}

static uint64_t spill_hash_of(const MDB_val *key)
{
    const uint8_t *from = key->mv_data;
    uint64_t hash = 0;
    for (unsigned i = 0; i < 8; i++)
        hash = hash << 8 | from[i];
    return hash;
}

static uint64_t spill_used(const struct spill *spill)
{
    MDB_envinfo info;
    mdb_env_info(spill->env, &info);
    return ((uint64_t)info.me_last_pgno + 1) * spill->page;
}

/* Between two transactions. */
static int spill_grow(struct spill *spill)
{
    const uint64_t step = spill->bytes / 4 > SPILL_STEP ? spill->bytes / 4 : SPILL_STEP;
    int file, code = mdb_env_get_fd(spill->env, &file);
    if (code == 0)
        code = posix_fallocate(file, 0, (off_t)(spill->bytes + step));
    if (code == EDQUOT || code == EFBIG)
        code = ENOSPC;
    if (code == 0)
        code = mdb_env_set_mapsize(spill->env, spill->bytes + step);
    if (code == 0)
        spill->bytes += step;
    return environment_error(code);
}

static int spill_begin(struct spill *spill)
{
    spill->writes = 0;
    return environment_error(mdb_txn_begin(spill->env, NULL, 0, &spill->txn));
}

static int spill_commit(struct spill *spill)
{
    MDB_txn *txn = spill->txn;
    spill->txn = NULL;
    return txn != NULL ? environment_error(mdb_txn_commit(txn)) : -EIO;
}

/* Bytes of pages that were given back. LMDB keeps their numbers in its database 0, behind their count. */
static uint64_t spill_given_back(const struct spill *spill)
{
    MDB_val key, value;
    MDB_txn *txn;
    MDB_cursor *cursor;
    uint64_t pages = 0;
    if (mdb_txn_begin(spill->env, NULL, MDB_RDONLY, &txn) != 0)
        return 0;
    if (mdb_cursor_open(txn, 0, &cursor) == 0) {
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
            pages += *(const size_t *)value.mv_data;
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return pages * spill->page;
}

/* Between two transactions. */
static int spill_see_to_room(struct spill *spill)
{
    if (spill_used(spill) + SPILL_SPARE <= spill->bytes)
        return 0;
    const int code = spill_grow(spill);
    return code == -ENOSPC && spill_given_back(spill) >= SPILL_SPARE ? 0 : code;
}

/* So that a write can be done. -ENOSPC: none that needs room. */
static int spill_open_to_write(struct spill *spill)
{
    if (spill->writes < SPILL_WRITES)
        return spill->txn != NULL ? 0 : -EIO;
    int code = spill_commit(spill);
    const int room = code == 0 ? spill_see_to_room(spill) : 0;
    if (code == 0)
        code = spill_begin(spill);
    if (code == 0 && room != 0)
        spill->writes = SPILL_WRITES; /* it is tried again */
    return code != 0 ? code : room;
}

static int spill_open(struct spill *spill, const char *path)
{
    const unsigned flags =
        MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NOMETASYNC | MDB_WRITEMAP | MDB_NORDAHEAD | MDB_NOMEMINIT;
    MDB_stat stat;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int code = file < 0 ? errno : 0;
    if (file >= 0)
        close(file);
    spill->bytes = SPILL_FIRST;
    if (code == 0)
        code = mdb_env_create(&spill->env);
    if (code == 0)
        code = mdb_env_set_mapsize(spill->env, spill->bytes);
    if (code == 0)
        code = mdb_env_open(spill->env, path, flags, 0600);
    if (code == 0)
        code = mdb_env_stat(spill->env, &stat);
    if (code != 0)
        return environment_error(code);
    spill->page = stat.ms_psize;
    code = spill_grow(spill);
    if (code == 0)
        code = spill_begin(spill);
    return code == 0 ? environment_error(mdb_dbi_open(spill->txn, NULL, 0, &spill->names)) : code;
}

int spill_create(struct spill **to, const char *path)
{
    struct spill *spill = calloc(1, sizeof *spill);
    if (spill == NULL)
        return -ENOMEM;
    int code = spill_open(spill, path);
    if (code != -EEXIST)
        unlink(path);
    if (code == 0)
        *to = spill;
    else
        spill_destroy(spill);
    return code;
}

void spill_destroy(struct spill *spill)
{
    if (spill == NULL)
        return;
    if (spill->txn != NULL)
        mdb_txn_abort(spill->txn);
    if (spill->env != NULL)
        mdb_env_close(spill->env);
    free(spill);
}

static int spill_decode(const MDB_val *value, struct record_entry *entry)
{
    return record_entry_decode(entry, value->mv_data, value->mv_size);
}

int spill_get(struct spill *spill, const char *name, size_t length, struct record_entry *entry)
{
    struct spill_key key = spill_key_of(record_hash(name, length), name, length);
    MDB_val at = {key.size, key.bytes}, value;
    if (spill->txn == NULL)
        return -EIO;
    int code = environment_error(mdb_get(spill->txn, spill->names, &at, &value));
    return code == 0 ? spill_decode(&value, entry) : code;
}

static int spill_write(struct spill *spill, const char *name, size_t length, const struct record_entry *entry, unsigned flags,
                       MDB_val *there)
{
    struct spill_key key = spill_key_of(record_hash(name, length), name, length);
    uint8_t bytes[SPILL_VALUE];
    MDB_val at = {key.size, key.bytes};
    *there = (MDB_val){record_entry_encode(bytes, entry), bytes};
    spill->writes++;
    return mdb_put(spill->txn, spill->names, &at, there, flags);
}

/* What is there has its room. */
int spill_put(struct spill *spill, const char *name, size_t length, const struct record_entry *entry)
{
    MDB_val there;
    int code = spill_open_to_write(spill);
    if (code != 0 && code != -ENOSPC)
        return code;
    return environment_error(spill_write(spill, name, length, entry, 0, &there));
}

int spill_append(struct spill *spill, const char *name, size_t length, const struct record_entry *entry)
{
    MDB_val there;
    int code = spill_open_to_write(spill);
    return code != 0 ? code : environment_error(spill_write(spill, name, length, entry, MDB_APPEND, &there));
}

int spill_add(struct spill *spill, const char *name, size_t length, struct record_entry *entry)
{
    MDB_val there;
    int code = spill_open_to_write(spill);
    if (code != 0)
        return code;
    code = spill_write(spill, name, length, entry, MDB_NOOVERWRITE, &there);
    if (code != MDB_KEYEXIST)
        return environment_error(code);
    code = spill_decode(&there, entry);
    return code == 0 ? -EEXIST : code;
}

int spill_del(struct spill *spill, const char *name, size_t length)
{
    struct spill_key key = spill_key_of(record_hash(name, length), name, length);
    MDB_val at = {key.size, key.bytes};
    int code = spill_open_to_write(spill);
    if (code != 0 && code != -ENOSPC)
        return code;
    spill->writes++;
    code = mdb_del(spill->txn, spill->names, &at, NULL);
    return code == MDB_NOTFOUND ? 0 : environment_error(code);
}

static int spill_tell(const MDB_val *key, const MDB_val *value, index_each *each, void *context)
{
    struct record_entry entry;
    int code = spill_decode(value, &entry);
    return code == 0 ? each(context, spill_hash_of(key), (const char *)key->mv_data + 8, key->mv_size - 8, &entry) : code;
}

int spill_list(struct spill *spill, uint64_t from, index_each *each, void *context)
{
    struct spill_key first = spill_key_of(from, "", 0);
    MDB_val key = {first.size, first.bytes}, value;
    MDB_cursor *cursor;
    int told = 0;
    if (spill->txn == NULL)
        return -EIO;
    int code = mdb_cursor_open(spill->txn, spill->names, &cursor);
    if (code != 0)
        return environment_error(code);
    for (code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); code == 0 && told == 0;
         code = told == 0 ? mdb_cursor_get(cursor, &key, &value, MDB_NEXT) : 0)
        told = spill_tell(&key, &value, each, context);
    mdb_cursor_close(cursor);
    return told != 0 ? told : code == MDB_NOTFOUND ? 0 : environment_error(code);
}

/* The next one from `from` on that is meant: 1, 0: there is none, or -errno. */
struct spill_meant {
    index_is_meant *is_meant;
    void *context;
    char name[RECORD_NAME_MAX];
    size_t length;
    uint64_t hash;
};

static int spill_is_meant(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct spill_meant *meant = context;
    (void)entry;
    if (meant->is_meant != NULL && !meant->is_meant(meant->context, hash))
        return 0;
    memcpy(meant->name, name, length);
    meant->length = length;
    meant->hash = hash;
    return 1;
}

int spill_del_names(struct spill *spill, index_is_meant *is_meant, void *context)
{
    struct spill_meant meant = {.is_meant = is_meant, .context = context};
    int code = 0;
    while (code == 0 && (code = spill_list(spill, meant.hash, spill_is_meant, &meant)) == 1)
        code = spill_del(spill, meant.name, meant.length);
    return code;
}

static int spill_stop(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    (void)context;
    (void)hash;
    (void)name;
    (void)length;
    (void)entry;
    return 1;
}

int spill_has_names(struct spill *spill)
{
    return spill_list(spill, 0, spill_stop, NULL);
}

int spill_make_room(struct spill *spill)
{
    return spill_open_to_write(spill);
}

uint64_t spill_bytes(const struct spill *spill)
{
    return spill->bytes;
}
