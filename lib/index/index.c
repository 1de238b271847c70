/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/index.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "index/store.h"

#define ROOM_STEP (1ull << 20)  /* the file grows by as much */
#define ROOM_RESERVE 256        /* pages that are kept for what must be noted although there is no room for more */
#define ROOM_REST 16            /* ... of them for what LMDB notes of pages that were freed */
#define ROOM_NOTE 500           /* pages that it notes in one page; more take several that are together */
#define ROOM_CHANGE 4           /* pages that one change may take: a leaf, its other half, and as much above */
#define ROOM_QUARTER 1024       /* bytes of a page, no page is smaller */
#define ROOM_NODE 10            /* bytes of a record in a page beside its key and value */
#define ROOM_RECORD (24 + 16 + ROOM_NODE) /* bytes of a name's record without the name */

/* In pages, while a transaction is under way; but for bytes. */
struct room {
    uint64_t end;     /* of what the last one used of the file */
    uint64_t tree;    /* that hold something */
    uint64_t there;   /* of what the file has on disk */
    uint64_t free;    /* within that, as far as they were counted */
    uint64_t changes; /* of this one, but for */
    uint64_t bytes;   /* ... how much they put */
    uint64_t prepaid; /* ... those to come that were counted before, */
    uint64_t paid;    /* for which these are kept */
    uint64_t refused; /* a size that the file could not have */
    bool counted;
};

struct index {
    MDB_env *env;
    MDB_dbi names;
    MDB_txn *txn; /* between begin and commit */
    int table;    /* a descriptor of the lock file */
    int data;     /* ... of the data file */
    uint64_t page, map_size;
    bool mapped; /* written through the map */
    struct room room;
    bool damaged; /* -EBADMSG was answered */
};

static int note(struct index *index, int code)
{
    index->damaged |= code == -EBADMSG;
    return code;
}

/* Of LMDB's code. Nobody else writes here, so pages beyond the map are none that were written here. */
static int answer(struct index *index, int code)
{
    return note(index, code == MDB_MAP_RESIZED ? -EBADMSG : store_error(code));
}

static MDB_val key_value(struct record_key *key)
{
    return (MDB_val){.mv_size = key->size, .mv_data = key->bytes};
}

/* By this transaction, at most. Many changes meet in the same pages: each is taken anew once, and may be halved; and a
 * quarter of a page, at least, must be put before a half is full. */
static uint64_t spent(const struct room *room)
{
    uint64_t singly = room->changes * ROOM_CHANGE;
    uint64_t together = 2 * room->tree + ROOM_CHANGE + room->bytes / ROOM_QUARTER;
    return room->paid + (singly < together ? singly : together);
}

/* What is free is not together, but what is noted of pages that were freed is. */
static bool has(const struct room *room, uint64_t pages)
{
    uint64_t tail = room->there > room->end ? room->there - room->end : 0;
    uint64_t all = spent(room) + pages, most = tail >= ROOM_REST ? ROOM_REST * ROOM_NOTE : ROOM_NOTE;
    return all <= tail || (all <= tail + room->free && all <= most);
}

static void extend_to(struct index *index, uint64_t size)
{
    struct room *room = &index->room;
    uint64_t there = room->there * index->page;
    if (size <= there || size >= room->refused || size > index->map_size)
        return;
    if (posix_fallocate(index->data, (off_t)there, (off_t)(size - there)) == 0)
        room->there = size / index->page;
    else
        room->refused = size;
}

/* In large steps, but for the last one. */
static void extend(struct index *index, uint64_t pages)
{
    uint64_t end = (index->room.end + spent(&index->room) + pages) * index->page;
    extend_to(index, (end + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP);
    extend_to(index, end);
}

/* One line of mdb_reader_list: process, thread, and the transaction that it looks at, if it does. */
static int note_oldest(const char *line, void *oldest)
{
    size_t looks_at;
    if (sscanf(line, "%*d %*x %zu", &looks_at) == 1 && looks_at < *(size_t *)oldest)
        *(size_t *)oldest = looks_at;
    return 0;
}

/* LMDB notes the pages that a transaction freed under its number, and uses them again when nobody looks at one that is
 * as old. */
static int count_free_in(struct index *index, MDB_txn *txn)
{
    size_t oldest = mdb_txn_id(txn);
    MDB_cursor *cursor;
    MDB_val key, value;
    mdb_reader_list(index->env, note_oldest, &oldest);
    int code = mdb_cursor_open(txn, 0, &cursor);
    if (code != 0)
        return code;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0 && *(size_t *)key.mv_data < oldest)
        index->room.free += *(size_t *)value.mv_data;
    mdb_cursor_close(cursor);
    return code;
}

static void count_free(struct index *index)
{
    MDB_txn *txn;
    index->room.counted = true;
    if (mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn) != 0)
        return;
    count_free_in(index, txn);
    mdb_txn_abort(txn);
}

/* Are there so many pages beside those that are spent? */
static bool find_room(struct index *index, uint64_t pages)
{
    struct room *room = &index->room;
    if (!has(room, pages))
        extend(index, pages);
    if (!has(room, pages) && !room->counted)
        count_free(index);
    return has(room, pages);
}

/* A page that is written through the map must be there, or it is a SIGBUS. */
static int spend(struct index *index, size_t bytes)
{
    if (index->room.prepaid > 0) {
        index->room.prepaid--;
        return 0;
    }
    index->room.changes++;
    index->room.bytes += bytes;
    return !index->mapped || find_room(index, ROOM_REST) ? 0 : -ENOSPC;
}

/* Neighbours share their pages. */
static void spend_in_a_row(struct index *index, unsigned before)
{
    if (before % 32 == 0)
        spend(index, 0);
}

static int put_as(struct index *index, struct record_key *key, MDB_val *value, unsigned flags)
{
    MDB_val at = key_value(key);
    int code = spend(index, key->size + value->mv_size + ROOM_NODE);
    return code != 0 ? code : answer(index, mdb_put(index->txn, index->names, &at, value, flags));
}

static int put(struct index *index, struct record_key *key, const void *bytes, size_t size)
{
    return put_as(index, key, &(MDB_val){.mv_size = size, .mv_data = (void *)bytes}, 0);
}

static int get(struct index *index, struct record_key *key, MDB_val *value)
{
    MDB_val at = key_value(key);
    return answer(index, mdb_get(index->txn, index->names, &at, value));
}

static int del(struct index *index, struct record_key *key)
{
    MDB_val at = key_value(key);
    spend(index, 0); /* a removal may need less than that, and gives pages back */
    int code = mdb_del(index->txn, index->names, &at, NULL);
    return code == MDB_NOTFOUND ? 0 : answer(index, code);
}

static int remove_old(const char *directory)
{
    char path[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        if (snprintf(path, sizeof path, "%s/%s", directory, i ? "lock.mdb" : "data.mdb") >= (int)sizeof path)
            return -ENAMETOOLONG;
        if (unlink(path) != 0 && errno != ENOENT)
            return -errno;
    }
    return 0;
}

/* A descriptor of one of its files and what fstat says, or -errno. */
static int open_file(const char *directory, const char *name, struct stat *stat)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, stat) == 0)
        return fd;
    int error = -errno;
    if (fd >= 0)
        close(fd);
    return error;
}

/* Readers write into LMDB's table of them. On a full tmpfs a page that is not there yet would be a SIGBUS in
 * the application, so the whole table is filled from the start. The descriptor stays open as long as LMDB's
 * own: closing any descriptor of a file gives up a process's record locks on it. */
static int fill_reader_table(struct index *index, const char *directory)
{
    struct stat stat;
    index->table = open_file(directory, "lock.mdb", &stat);
    return index->table < 0 ? index->table : -posix_fallocate(index->table, 0, stat.st_size);
}

/* To find out how much room there is, and to take it before it is needed (index_make_room). */
static int open_data(struct index *index, const char *directory)
{
    struct stat stat;
    index->data = open_file(directory, "data.mdb", &stat);
    if (index->data < 0)
        return index->data;
    index->room.there = (uint64_t)stat.st_size / index->page;
    return 0;
}

static int write_stamp(struct index *index, const struct index_stamp *stamp)
{
    struct record_key key;
    uint8_t bytes[STORE_STAMP_SIZE];
    int code = index_begin(index);
    if (code != 0)
        return code;
    code = answer(index, mdb_dbi_open(index->txn, NULL, 0, &index->names));
    record_key_from(&key, (struct dirid){0, 0}, 0);
    store_stamp_encode(bytes, stamp);
    if (code == 0)
        code = put(index, &key, bytes, sizeof bytes);
    if (code == 0)
        return index_commit(index);
    index_abort(index);
    return code;
}

/* In memory a page that was allocated stays there. On a disk it may have to be allocated anew when it is changed (a copy
 * on write), and written to the disk first. */
static bool is_in_memory(const char *directory)
{
    struct statfs system;
    return statfs(directory, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/* MDB_NOSYNC: the index is soft state. MDB_WRITEMAP: a batch's pages are changed where they are, instead of being copied
 * and written, each by a call. On a full file system a page that is not there would be a SIGBUS instead of ENOSPC: so they
 * are allocated before (spend), and only where that holds. */
static int open_env(struct index *index, const char *directory, size_t map_size, unsigned readers)
{
    const unsigned flags = MDB_NOSYNC | MDB_NOMETASYNC | MDB_NOTLS | MDB_NOMEMINIT;
    MDB_stat stat;
    index->mapped = is_in_memory(directory);
    int code = mdb_env_create(&index->env);
    if (code == 0)
        code = mdb_env_set_mapsize(index->env, map_size);
    if (code == 0)
        code = mdb_env_set_maxreaders(index->env, readers);
    if (code == 0)
        code = mdb_env_open(index->env, directory, flags | (index->mapped ? MDB_WRITEMAP : 0), 0600);
    if (code == 0)
        code = mdb_env_stat(index->env, &stat);
    if (code == 0)
        index->page = stat.ms_psize;
    index->map_size = map_size;
    return store_error(code);
}

int index_create(struct index **to, const char *directory, size_t map_size, unsigned readers,
                 const struct index_stamp *stamp)
{
    int code = remove_old(directory);
    if (code != 0)
        return code;
    struct index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return -ENOMEM;
    index->table = index->data = -1;
    code = open_env(index, directory, map_size, readers);
    if (code == 0)
        code = fill_reader_table(index, directory);
    if (code == 0)
        code = open_data(index, directory);
    if (code == 0)
        code = write_stamp(index, stamp);
    if (code != 0) {
        index_destroy(index);
        return code;
    }
    *to = index;
    return 0;
}

void index_destroy(struct index *index)
{
    if (index == NULL)
        return;
    index_abort(index);
    if (index->env != NULL)
        mdb_env_close(index->env);
    if (index->table >= 0)
        close(index->table);
    if (index->data >= 0)
        close(index->data);
    free(index);
}

int index_begin(struct index *index)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(index->env, &info);
    mdb_env_stat(index->env, &stat);
    index->room = (struct room){.end = info.me_last_pgno + 1,
                                .there = index->room.there,
                                .refused = UINT64_MAX,
                                .tree = stat.ms_branch_pages + stat.ms_leaf_pages};
    return answer(index, mdb_txn_begin(index->env, NULL, 0, &index->txn));
}

int index_commit(struct index *index)
{
    MDB_txn *txn = index->txn;
    index->txn = NULL;
    return answer(index, mdb_txn_commit(txn));
}

void index_abort(struct index *index)
{
    if (index->txn != NULL)
        mdb_txn_abort(index->txn);
    index->txn = NULL;
}

bool index_is_damaged(const struct index *index)
{
    return index->damaged;
}

static int make_room(struct index *index, uint64_t pages)
{
    return find_room(index, pages + ROOM_RESERVE) ? 0 : -ENOSPC;
}

int index_make_room(struct index *index, unsigned changes)
{
    return make_room(index, (uint64_t)changes * ROOM_CHANGE);
}

/* They stand together, so they fill pages, if only by half; half as many may be in the way. */
int index_make_room_for(struct index *index, uint64_t names, uint64_t bytes)
{
    uint64_t size = 3 * (names * ROOM_RECORD + bytes);
    uint64_t pages = size / index->page + 2 * ROOM_CHANGE;
    void *memory = malloc(size); /* what is not written yet is there */
    free(memory);
    int code = memory != NULL ? make_room(index, pages) : -ENOMEM;
    if (code != 0)
        return code;
    index->room.paid += pages;
    index->room.prepaid = names;
    return 0;
}

int index_get_entry(struct index *index, struct dirid dir, const char *name, size_t length,
                    struct record_entry *entry)
{
    struct record_key key;
    MDB_val value;
    record_key_name(&key, dir, name, length);
    int code = get(index, &key, &value);
    return code == 0 ? note(index, record_entry_decode(entry, value.mv_data, value.mv_size)) : code;
}

int index_put_entry(struct index *index, struct dirid dir, const char *name, size_t length,
                    const struct record_entry *entry)
{
    struct record_key key;
    uint8_t bytes[16];
    record_key_name(&key, dir, name, length);
    return put(index, &key, bytes, record_entry_encode(bytes, entry));
}

int index_add_entry(struct index *index, struct dirid dir, const char *name, size_t length, struct record_entry *entry)
{
    struct record_key key;
    uint8_t bytes[16];
    MDB_val value = {.mv_data = bytes};
    record_key_name(&key, dir, name, length);
    value.mv_size = record_entry_encode(bytes, entry);
    int code = put_as(index, &key, &value, MDB_NOOVERWRITE);
    int damaged = code == -EEXIST ? record_entry_decode(entry, value.mv_data, value.mv_size) : 0;
    return damaged != 0 ? damaged : code;
}

int index_del_entry(struct index *index, struct dirid dir, const char *name, size_t length)
{
    struct record_key key;
    record_key_name(&key, dir, name, length);
    return del(index, &key);
}

int index_get_dir(struct index *index, struct dirid id, struct record_dir *dir)
{
    struct record_key key;
    MDB_val value;
    record_key_dir(&key, id);
    int code = get(index, &key, &value);
    return code == 0 ? note(index, record_dir_decode(dir, value.mv_data, value.mv_size)) : code;
}

int index_put_dir(struct index *index, struct dirid id, const struct record_dir *dir)
{
    struct record_key key;
    uint8_t bytes[RECORD_DIR_SIZE];
    record_key_dir(&key, id);
    return put(index, &key, bytes, record_dir_encode(bytes, dir));
}

/* Is the cursor's key one of this directory's? All share the first 16 bytes. */
static bool belongs(const MDB_val *key, const struct record_key *of)
{
    return key->mv_size >= 24 && memcmp(key->mv_data, of->bytes, 16) == 0;
}

int index_del_dir(struct index *index, struct dirid id)
{
    struct record_key from;
    MDB_cursor *cursor;
    MDB_val value;
    unsigned count = 0;
    record_key_dir(&from, id);
    int code = mdb_cursor_open(index->txn, index->names, &cursor);
    if (code != 0)
        return answer(index, code);
    for (;;) {
        MDB_val key = key_value(&from);
        code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        if (code != 0 || !belongs(&key, &from))
            break;
        spend_in_a_row(index, count++);
        code = mdb_cursor_del(cursor, 0);
        if (code != 0)
            break;
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : answer(index, code);
}

int index_forget_dir(struct index *index, struct dirid id)
{
    struct record_key key;
    record_key_dir(&key, id);
    return del(index, &key);
}

static uint64_t hash_of(const MDB_val *key)
{
    uint64_t hash;
    memcpy(&hash, (const char *)key->mv_data + 16, sizeof hash);
    return be64toh(hash);
}

int index_del_names(struct index *index, struct dirid id, index_is_meant *is_meant, void *context)
{
    struct record_key from;
    MDB_cursor *cursor;
    MDB_val value;
    unsigned count = 0;
    record_key_from(&from, id, 1);
    MDB_val key = key_value(&from);
    int code = mdb_cursor_open(index->txn, index->names, &cursor);
    if (code != 0)
        return answer(index, code);
    code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (code == 0 && belongs(&key, &from)) {
        if (is_meant == NULL || is_meant(context, hash_of(&key))) {
            spend_in_a_row(index, count++);
            code = mdb_cursor_del(cursor, 0);
        }
        if (code == 0)
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : answer(index, code);
}

int index_has_names(struct index *index, struct dirid id)
{
    struct record_key from;
    MDB_cursor *cursor;
    MDB_val value;
    record_key_from(&from, id, 1);
    int code = mdb_cursor_open(index->txn, index->names, &cursor);
    if (code != 0)
        return answer(index, code);
    MDB_val key = key_value(&from);
    code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    bool has = code == 0 && belongs(&key, &from);
    mdb_cursor_close(cursor);
    return code == 0 || code == MDB_NOTFOUND ? has : answer(index, code);
}

int index_list(struct index *index, struct dirid id, uint64_t start, index_each *each, void *context)
{
    struct record_key from;
    MDB_cursor *cursor;
    MDB_val value;
    record_key_from(&from, id, start > 0 ? start : 1);
    MDB_val key = key_value(&from);
    int code = answer(index, mdb_cursor_open(index->txn, index->names, &cursor));
    if (code != 0)
        return code;
    code = answer(index, mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE));
    while (code == 0 && belongs(&key, &from)) {
        code = note(index, store_each(&key, &value, each, context));
        if (code == 0)
            code = answer(index, mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
    }
    mdb_cursor_close(cursor);
    return code == -ENOENT ? 0 : code;
}

int index_put_branch(struct index *index, uint16_t number, const char *branch)
{
    struct record_key key;
    store_branch_key(&key, number);
    return put(index, &key, branch, strlen(branch));
}

static int count_reader(const char *line, void *count)
{
    /* mdb_reader_list writes a heading first, or one line "(no active readers)". */
    if (line[0] != '(' && strstr(line, "pid") == NULL)
        ++*(uint64_t *)count;
    return 0;
}

int index_measure(struct index *index, struct index_size *size)
{
    MDB_stat stat;
    int code = mdb_env_stat(index->env, &stat);
    if (code != 0)
        return answer(index, code);
    uint64_t pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    *size = (struct index_size){.bytes_used = pages * stat.ms_psize, .entries = stat.ms_entries};
    mdb_reader_list(index->env, count_reader, &size->readers);
    return 0;
}

unsigned index_readers(struct index *index)
{
    MDB_envinfo info;
    return mdb_env_info(index->env, &info) == 0 ? info.me_numreaders : 0;
}

int index_retire_readers(struct index *index)
{
    int dead = 0;
    int code = mdb_reader_check(index->env, &dead);
    return code != 0 ? answer(index, code) : dead;
}
