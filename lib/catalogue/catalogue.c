/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/catalogue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue/codec.h"
#include "catalogue/environment.h"
#include "catalogue/order.h"

#define CATALOGUE_NODE 11       /* what LMDB adds to a record: header, offset, the byte that makes it even */
#define CATALOGUE_TOTAL "names" /* the key of how many there are */
#define CATALOGUE_PATHS 32      /* pages from a root to a leaf, in each of its trees, and what a split adds */

const char *catalogue_path(const struct catalogue *c)
{
    return c->path;
}

void catalogue_close(struct catalogue *c)
{
    environment_close(c);
}

int catalogue_begin(struct catalogue *c)
{
    return c->is_copy ? -EROFS : environment_begin(c);
}

int catalogue_end(struct catalogue *c)
{
    return c->batch == NULL ? -EINVAL : environment_commit(c);
}

void catalogue_undo(struct catalogue *c)
{
    if (c->batch != NULL)
        environment_give_up(c, 0);
}

/* What is known of a directory. A code (environment.h). */
static int catalogue_find(struct catalogue *c, MDB_txn *txn, struct dirid id, struct codec_directory *directory)
{
    uint8_t bytes[CODEC_DIRECTORY_KEY_SIZE];
    MDB_val key = {sizeof bytes, bytes}, value;
    codec_directory_key(bytes, id);
    int code = mdb_get(txn, c->directories, &key, &value);
    return code != 0 ? code : codec_directory_decode(directory, value.mv_data, value.mv_size);
}

/* 1: known with this stamp; 0: not; -errno. */
static int catalogue_find_proof(struct catalogue *c, MDB_txn *txn, const struct catalogue_stamp *now,
                                struct codec_directory *directory)
{
    int code = catalogue_find(c, txn, now->id, directory);
    if (code == MDB_NOTFOUND)
        return 0;
    if (code != 0)
        return environment_error(code);
    return directory->mtime == now->mtime && directory->ctime == now->ctime;
}

/* Sorts the names. Is each of them one? Then so many blocks have room for them, however they are cut. */
static int catalogue_sort(struct catalogue_name *names, size_t count, uint64_t *blocks)
{
    uint64_t bytes = count * CODEC_NAME_FIXED;
    order_names(names, count);
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(names[i].name);
        if (!codec_name_is_valid(names[i].name, length) || !record_type_is_known(names[i].type))
            return -EINVAL;
        if (i > 0 && !strcmp(names[i - 1].name, names[i].name))
            return -EINVAL;
        bytes += length;
    }
    *blocks = bytes / (CODEC_BLOCK_MAX - CODEC_NAME_FIXED - RECORD_NAME_MAX) + 1;
    return count <= CODEC_COUNT_MAX && *blocks <= UINT32_MAX ? 0 : -EINVAL;
}

/* At most so many pages hold these blocks, with the branches above them: each is filled until the next block does not fit. */
static uint64_t catalogue_pages(const struct catalogue *c, uint64_t blocks)
{
    const uint64_t leaves = blocks / (c->page / (CATALOGUE_NODE + CODEC_BLOCK_KEY_SIZE + CODEC_BLOCK_MAX)) + 1;
    return leaves + leaves / 8;
}

/* Moves a cursor to the first block of a list. */
static int catalogue_seek(MDB_cursor *cursor, uint8_t list[CODEC_LIST_SIZE], MDB_val *key, MDB_val *value)
{
    *key = (MDB_val){CODEC_LIST_SIZE, list};
    return mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
}

static bool catalogue_is_of_list(const MDB_val *key, const uint8_t list[CODEC_LIST_SIZE])
{
    return key->mv_size >= CODEC_LIST_SIZE && !memcmp(key->mv_data, list, CODEC_LIST_SIZE);
}

static int catalogue_delete_list(MDB_cursor *cursor, uint64_t number)
{
    uint8_t list[CODEC_LIST_SIZE];
    MDB_val key, value;
    codec_list(list, number);
    int code = catalogue_seek(cursor, list, &key, &value);
    while (code == 0 && catalogue_is_of_list(&key, list)) {
        code = mdb_cursor_del(cursor, 0);
        if (code == 0)
            /* After a deletion it is the one that has taken the place. */
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    return code == MDB_NOTFOUND ? 0 : code;
}

/* A number higher than all that are there: its blocks come after all others then, and fill the pages. */
static int catalogue_next_list(MDB_cursor *cursor, uint64_t *list)
{
    uint64_t last;
    uint32_t number;
    MDB_val key, value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    *list = 1;
    if (code == 0)
        code = codec_block_key_decode(&last, &number, key.mv_data, key.mv_size);
    if (code == 0)
        *list = last + 1;
    return code == MDB_NOTFOUND ? 0 : code;
}

/* One more block of a directory's list. */
static int catalogue_append_block(MDB_cursor *cursor, struct codec_directory *directory, uint8_t *block, size_t size)
{
    uint8_t key_bytes[CODEC_BLOCK_KEY_SIZE];
    MDB_val key = {sizeof key_bytes, key_bytes}, value = {size, block};
    codec_block_key(key_bytes, directory->list, (uint32_t)directory->blocks);
    directory->blocks++;
    directory->sum = codec_sum(directory->sum, block, size);
    return mdb_cursor_put(cursor, &key, &value, MDB_APPEND);
}

static int catalogue_append(MDB_cursor *cursor, struct codec_directory *directory, const struct catalogue_name *names)
{
    uint8_t block[CODEC_BLOCK_MAX];
    size_t used = 0;
    int code = 0;
    for (uint64_t i = 0; i < directory->count && code == 0; i++) {
        const struct codec_name name = {names[i].name, strlen(names[i].name), names[i].ino, names[i].type};
        const size_t more = codec_block_add(block, used, &name);
        if (more == 0)
            code = catalogue_append_block(cursor, directory, block, used);
        used = more != 0 ? more : codec_block_add(block, 0, &name);
    }
    return code == 0 && used > 0 ? catalogue_append_block(cursor, directory, block, used) : code;
}

/* How many names all lists have; a file that is new does not say. A code. */
static int catalogue_total(struct catalogue *c, MDB_txn *txn, uint64_t *total)
{
    MDB_val key = {sizeof CATALOGUE_TOTAL - 1, CATALOGUE_TOTAL}, value;
    int code = mdb_get(txn, c->about, &key, &value);
    *total = 0;
    return code == MDB_NOTFOUND ? 0 : code != 0 ? code : codec_total_decode(total, value.mv_data, value.mv_size);
}

/* A list of so many names goes, one of so many comes. */
static int catalogue_count(struct catalogue *c, uint64_t gone, uint64_t come)
{
    uint8_t bytes[CODEC_TOTAL_SIZE];
    MDB_val key = {sizeof CATALOGUE_TOTAL - 1, CATALOGUE_TOTAL}, value = {sizeof bytes, bytes};
    uint64_t total;
    int code = catalogue_total(c, c->batch, &total);
    if (code != 0)
        return code;
    codec_total_encode(bytes, total - gone + come);
    return mdb_put(c->batch, c->about, &key, &value, 0);
}

static int catalogue_put_directory(struct catalogue *c, struct dirid id, const struct codec_directory *directory)
{
    uint8_t key_bytes[CODEC_DIRECTORY_KEY_SIZE], value_bytes[CODEC_DIRECTORY_SIZE];
    MDB_val key = {sizeof key_bytes, key_bytes}, value = {sizeof value_bytes, value_bytes};
    codec_directory_key(key_bytes, id);
    codec_directory_encode(value_bytes, directory);
    return mdb_put(c->batch, c->directories, &key, &value, 0);
}

/* The names of a directory instead of the list that it had. */
static int catalogue_replace(struct catalogue *c, struct dirid id, const struct codec_directory *old,
                             struct codec_directory *directory, const struct catalogue_name *names)
{
    MDB_cursor *cursor;
    int code = mdb_cursor_open(c->batch, c->names, &cursor);
    if (code != 0)
        return code;
    if (directory->count > 0)
        code = catalogue_next_list(cursor, &directory->list);
    if (code == 0)
        code = catalogue_append(cursor, directory, names);
    if (code == 0 && old->list != 0)
        code = catalogue_delete_list(cursor, old->list);
    mdb_cursor_close(cursor);
    if (code == 0)
        code = catalogue_count(c, old->count, directory->count);
    return code != 0 ? code : catalogue_put_directory(c, id, directory);
}

/* Readies a batch for a directory with so many new pages; `old` is what was known of it: nothing if it is all zeros. */
static int catalogue_prepare(struct catalogue *c, struct dirid id, uint64_t pages, struct codec_directory *old)
{
    if (c->batch == NULL)
        return c->failed < 0 ? c->failed : -EINVAL;
    int code = catalogue_find(c, c->batch, id, old);
    if (code == MDB_NOTFOUND)
        *old = (struct codec_directory){0};
    else if (code != 0)
        return environment_give_up(c, code);
    return environment_make_room(c, pages + catalogue_pages(c, old->blocks) + CATALOGUE_PATHS);
}

int catalogue_put(struct catalogue *c, const struct catalogue_stamp *stamp, struct catalogue_name *names, size_t count,
                  unsigned flags)
{
    struct codec_directory old,
        directory = {
            .mtime = stamp->mtime, .ctime = stamp->ctime, .count = count, .is_public = (flags & CATALOGUE_PUBLIC) != 0};
    uint64_t blocks;
    int code = catalogue_sort(names, count, &blocks);
    if (code < 0)
        return code;
    code = catalogue_prepare(c, stamp->id, catalogue_pages(c, blocks), &old);
    if (code < 0)
        return code;
    code = catalogue_replace(c, stamp->id, &old, &directory, names);
    return code != 0 ? environment_give_up(c, code) : 0;
}

static int catalogue_write_marker(struct catalogue *c, struct dirid id, const struct codec_marker *marker)
{
    uint8_t key_bytes[CODEC_DIRECTORY_KEY_SIZE], value_bytes[CODEC_MARKER_MAX];
    MDB_val key = {sizeof key_bytes, key_bytes}, value = {codec_marker_encode(value_bytes, marker), value_bytes};
    codec_directory_key(key_bytes, id);
    return mdb_put(c->batch, c->markers, &key, &value, 0);
}

int catalogue_put_marker(struct catalogue *c, const struct catalogue_stamp *stamp, const struct marker *marker)
{
    const struct codec_marker record = {.mtime = stamp->mtime,
                                        .ctime = stamp->ctime,
                                        .id = marker->id,
                                        .directory = marker->directory,
                                        .root = marker->root,
                                        .mirror = marker->mirror,
                                        .length = strlen(marker->mirror)};
    if (record.id == 0 || !codec_name_is_valid(record.mirror, record.length))
        return -EINVAL;
    if (c->batch == NULL)
        return c->failed < 0 ? c->failed : -EINVAL;
    int code = environment_make_room(c, CATALOGUE_PATHS);
    if (code < 0)
        return code;
    code = catalogue_write_marker(c, stamp->id, &record);
    return code != 0 ? environment_give_up(c, code) : 0;
}

static int catalogue_delete_marker(struct catalogue *c, struct dirid id)
{
    uint8_t bytes[CODEC_DIRECTORY_KEY_SIZE];
    MDB_val key = {sizeof bytes, bytes};
    codec_directory_key(bytes, id);
    int code = mdb_del(c->batch, c->markers, &key, NULL);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int catalogue_delete(struct catalogue *c, struct dirid id, const struct codec_directory *old)
{
    uint8_t bytes[CODEC_DIRECTORY_KEY_SIZE];
    MDB_val key = {sizeof bytes, bytes};
    MDB_cursor *cursor;
    codec_directory_key(bytes, id);
    int code = mdb_del(c->batch, c->directories, &key, NULL);
    if (code == 0 && old->list != 0 && (code = mdb_cursor_open(c->batch, c->names, &cursor)) == 0) {
        code = catalogue_delete_list(cursor, old->list);
        mdb_cursor_close(cursor);
    }
    if (code == 0)
        code = catalogue_count(c, old->count, 0);
    return code == MDB_NOTFOUND ? 0 : code;
}

int catalogue_drop(struct catalogue *c, struct dirid id)
{
    struct codec_directory old;
    int code = catalogue_prepare(c, id, 0, &old);
    if (code < 0)
        return code;
    code = catalogue_delete(c, id, &old);
    if (code == 0)
        code = catalogue_delete_marker(c, id);
    return code != 0 ? environment_give_up(c, code) : 0;
}

int catalogue_proves(struct catalogue *c, const struct catalogue_stamp *now, struct catalogue_proof *proof)
{
    struct codec_directory directory;
    MDB_txn *txn;
    int answer = environment_read(c, &txn);
    if (answer < 0)
        return answer;
    answer = catalogue_find_proof(c, txn, now, &directory);
    if (answer == 1 && proof != NULL)
        *proof = (struct catalogue_proof){directory.count, directory.is_public};
    environment_read_end(c, txn);
    return answer;
}

/* Tells one name, which is terminated for that. */
static int catalogue_tell(const struct codec_name *record, catalogue_each *each, void *context)
{
    char terminated[RECORD_NAME_MAX + 1];
    memcpy(terminated, record->name, record->length);
    terminated[record->length] = '\0';
    const struct catalogue_name name = {terminated, record->ino, record->type};
    return each(context, &name, record->length);
}

/* All names of the block that comes next in its list. 0, -EBADMSG, or what `each` said. */
static int catalogue_walk_block(const MDB_val *key, const MDB_val *block, struct codec_directory *seen, catalogue_each *each,
                                void *context)
{
    struct codec_name name;
    uint32_t number;
    int answer = codec_block_key_decode(&seen->list, &number, key->mv_data, key->mv_size);
    if (answer == 0 && number != seen->blocks++)
        answer = -EBADMSG;
    for (size_t at = 0; answer == 0 && at < block->mv_size; seen->count++) {
        answer = codec_block_next(&name, block->mv_data, block->mv_size, &at);
        if (answer == 0)
            answer = catalogue_tell(&name, each, context);
    }
    return answer;
}

/* 1, -EBADMSG, or what `each` said. */
static int catalogue_walk_list(MDB_cursor *cursor, const struct codec_directory *directory, catalogue_each *each, void *context)
{
    struct codec_directory seen = {0};
    uint8_t list[CODEC_LIST_SIZE];
    MDB_val key, value;
    codec_list(list, directory->list);
    int code = catalogue_seek(cursor, list, &key, &value);
    for (; code == 0 && catalogue_is_of_list(&key, list); code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const int answer = catalogue_walk_block(&key, &value, &seen, each, context);
        if (answer != 0)
            return answer;
        seen.sum = codec_sum(seen.sum, value.mv_data, value.mv_size);
    }
    if (code != 0 && code != MDB_NOTFOUND)
        return environment_error(code);
    return seen.count == directory->count && seen.sum == directory->sum ? 1 : -EBADMSG;
}

int catalogue_walk(struct catalogue *c, const struct catalogue_stamp *now, catalogue_each *each, void *context)
{
    struct codec_directory directory;
    MDB_cursor *cursor;
    MDB_txn *txn;
    int answer = environment_read(c, &txn);
    if (answer < 0)
        return answer;
    answer = catalogue_find_proof(c, txn, now, &directory);
    if (answer == 1 && directory.count > 0) {
        answer = environment_error(mdb_cursor_open(txn, c->names, &cursor));
        if (answer == 0) {
            answer = catalogue_walk_list(cursor, &directory, each, context);
            mdb_cursor_close(cursor);
        }
    }
    environment_read_end(c, txn);
    return answer;
}

/* A code. */
static int catalogue_read_marker(struct catalogue *c, MDB_txn *txn, const struct catalogue_stamp *now, struct marker *marker)
{
    uint8_t bytes[CODEC_DIRECTORY_KEY_SIZE];
    MDB_val key = {sizeof bytes, bytes}, value;
    struct codec_marker record;
    codec_directory_key(bytes, now->id);
    int code = mdb_get(txn, c->markers, &key, &value);
    if (code == 0)
        code = codec_marker_decode(&record, value.mv_data, value.mv_size);
    if (code == 0 && (record.mtime != now->mtime || record.ctime != now->ctime))
        return MDB_NOTFOUND;
    if (code != 0)
        return code;
    *marker = (struct marker){.id = record.id, .directory = record.directory, .root = record.root};
    memcpy(marker->mirror, record.mirror, record.length);
    return 0;
}

int catalogue_marker(struct catalogue *c, const struct catalogue_stamp *now, struct marker *marker)
{
    MDB_txn *txn;
    int code = environment_read(c, &txn);
    if (code < 0)
        return code;
    code = catalogue_read_marker(c, txn, now, marker);
    environment_read_end(c, txn);
    if (code == MDB_NOTFOUND)
        return 0;
    return code == 0 ? 1 : environment_error(code);
}

int catalogue_measure(struct catalogue *c, struct catalogue_size *size)
{
    MDB_stat directories;
    MDB_txn *txn;
    uint64_t names;
    int error = environment_read(c, &txn);
    if (error < 0)
        return error;
    error = environment_error(mdb_stat(txn, c->directories, &directories));
    if (error == 0)
        error = environment_error(catalogue_total(c, txn, &names));
    if (error == 0)
        *size = (struct catalogue_size){environment_bytes(c), directories.ms_entries, names};
    environment_read_end(c, txn);
    return error;
}
