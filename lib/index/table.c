/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/table.h"

#include <errno.h>
#include <string.h>

/* What another process may be writing is loaded once, and what was checked is what is used. */
#define LOAD(AT) __atomic_load_n(&(AT), __ATOMIC_RELAXED)

int table_block(const struct table *table, uint32_t reference, uint64_t size, void *block)
{
    uint64_t at = (uint64_t)reference * TABLE_UNIT;
    if (reference == 0 || at + size > LOAD(table_head(table)->end))
        return -EBADMSG;
    if (at + size > table->size)
        return -EOVERFLOW;
    *(void **)block = table->at + at;
    return 0;
}

static int table_get_bucket(const struct table *table, uint32_t reference, struct table_spot *spot)
{
    struct table_bucket *bucket;
    int code = table_block(table, reference, sizeof *bucket, &bucket);
    if (code != 0)
        return code;
    const unsigned class = LOAD(bucket->class);
    if (LOAD(bucket->magic) != TABLE_BUCKET_MAGIC || class >= TABLE_CLASSES)
        return -EBADMSG;
    spot->reference = reference;
    spot->size = table_class_size(class);
    return table_block(table, reference, spot->size, &spot->bucket);
}

static int table_find_bucket(const struct table *table, const struct table_map *map, uint64_t hash, struct table_spot *spot)
{
    const uint32_t depth = LOAD(map->depth), reference = LOAD(map->buckets);
    uint32_t *array;
    *spot = (struct table_spot){0};
    if (reference == 0 || hash >> TABLE_HASH_BITS != 0)
        return 0;
    if (depth == 0)
        return table_get_bucket(table, reference, spot);
    if (depth > TABLE_DEPTH_MAX)
        return -EBADMSG;
    int code = table_block(table, reference, sizeof *array << depth, &array);
    return code == 0 ? table_get_bucket(table, LOAD(array[hash >> (TABLE_HASH_BITS - depth)]), spot) : code;
}

/* The record of a slot, of `length` bytes of key, is within the bucket: where it is, else NULL. */
static const char *table_record_at(const struct table_spot *spot, uint32_t slot, uint32_t *length)
{
    const uint32_t at = LOAD(spot->bucket->slots[slot].at);
    *length = LOAD(spot->bucket->slots[slot].length);
    return *length <= RECORD_NAME_MAX && (uint64_t)at + TABLE_VALUE + *length <= spot->size ? (const char *)spot->bucket + at
                                                                                            : NULL;
}

/* In the order of page_order (wire/page.h). */
static int table_compare(const char *bytes, size_t length, const struct table_key *key)
{
    int order = memcmp(bytes, key->bytes, length < key->length ? length : key->length);
    return order != 0 ? order : (length > key->length) - (length < key->length);
}

/* Of those that have the key's hash: one as a rule, and it is the key's or the file is damaged. */
static int table_seek_key(const struct table_key *key, uint32_t count, struct table_spot *spot)
{
    for (; spot->slot < count && LOAD(spot->bucket->slots[spot->slot].hash) == key->hash; spot->slot++) {
        uint32_t length;
        const char *record = table_record_at(spot, spot->slot, &length);
        if (record == NULL)
            return -EBADMSG;
        int order = table_compare(record + TABLE_VALUE, length, key);
        spot->same = order == 0;
        if (!spot->same && key->length > 0 && record_hash(record + TABLE_VALUE, length) != key->hash)
            return -EBADMSG;
        if (order >= 0)
            return 0;
    }
    return 0;
}

static bool table_holds(const struct table_spot *spot, uint32_t count)
{
    return sizeof *spot->bucket + count * (uint64_t)sizeof *spot->bucket->slots <= spot->size;
}

int table_seek(const struct table *table, const struct table_map *map, const struct table_key *key, struct table_spot *spot)
{
    int code = table_find_bucket(table, map, key->hash, spot);
    if (code != 0 || spot->bucket == NULL)
        return code;
    const uint32_t count = LOAD(spot->bucket->count);
    if (!table_holds(spot, count))
        return -EBADMSG;
    for (uint32_t rest = count; rest > 0;) { /* those before `slot` are before the key; those `rest` after it nobody knows */
        const uint32_t half = rest / 2;
        const bool before = LOAD(spot->bucket->slots[spot->slot + half].hash) < key->hash;
        spot->slot += before ? half + 1 : 0;
        rest = before ? rest - half - 1 : half;
    }
    return table_seek_key(key, count, spot);
}

/* All in one frame. */
__attribute__((flatten)) int table_get(const struct table *table, const struct table_map *map, const struct table_key *key,
                                       uint8_t value[TABLE_VALUE])
{
    struct table_spot spot;
    uint32_t length;
    int code = table_seek(table, map, key, &spot);
    if (code != 0 || !spot.same)
        return code != 0 ? code : -ENOENT;
    const char *record = table_record_at(&spot, spot.slot, &length);
    if (record == NULL)
        return -EBADMSG;
    memcpy(value, record, TABLE_VALUE);
    return 0;
}

/* It must come after the one that is there: a listing comes to an end, whatever the file says. */
static int table_copy(const struct table_spot *spot, uint32_t slot, struct table_record *to)
{
    const struct table_key before = {.hash = to->hash, .bytes = to->key, .length = to->length};
    const uint64_t hash = LOAD(spot->bucket->slots[slot].hash);
    uint32_t length;
    const char *record = table_record_at(spot, slot, &length);
    if (record == NULL || hash < before.hash ||
        (hash == before.hash && table_compare(record + TABLE_VALUE, length, &before) <= 0))
        return -EBADMSG;
    to->hash = hash;
    to->length = length;
    memcpy(to->value, record, TABLE_VALUE);
    memcpy(to->key, record + TABLE_VALUE, length);
    return 1;
}

bool table_go_on(const struct table_bucket *bucket, uint64_t *hash)
{
    const unsigned depth = LOAD(bucket->depth);
    if (depth == 0 || depth > TABLE_DEPTH_MAX)
        return false;
    const uint64_t next = (*hash >> (TABLE_HASH_BITS - depth)) + 1;
    *hash = next << (TABLE_HASH_BITS - depth);
    return next >> depth == 0;
}

int table_next(const struct table *table, const struct table_map *map, struct table_record *record)
{
    const struct table_key key = {.hash = record->hash, .bytes = record->key, .length = record->length};
    struct table_spot spot;
    int code = table_seek(table, map, &key, &spot);
    if (code != 0 || spot.bucket == NULL)
        return code;
    const uint32_t next = spot.slot + spot.same, count = LOAD(spot.bucket->count);
    if (next < count)
        return table_holds(&spot, count) ? table_copy(&spot, next, record) : -EBADMSG;
    record->length = 0;
    return table_go_on(spot.bucket, &record->hash) ? TABLE_ON : 0;
}

struct table_key table_key_name(const char *name, size_t length)
{
    return (struct table_key){.hash = record_hash(name, length), .bytes = name, .length = length};
}

struct table_key table_key_thing(const struct dirid *id)
{
    return (struct table_key){.hash = record_hash((const char *)id, sizeof *id), .bytes = id, .length = sizeof *id};
}

/* All in one frame; clang flattens one level of calls only. */
__attribute__((flatten)) int table_find_reference(const struct table *table, const struct dirid *id, uint32_t *reference)
{
    const struct table_key key = table_key_thing(id);
    uint8_t value[TABLE_VALUE];
    int code = table_get(table, &table_head(table)->things, &key, value);
    if (code == 0)
        memcpy(reference, value, sizeof *reference);
    return code;
}

int table_find(const struct table *table, struct dirid id, uint64_t size, uint32_t *reference, void *block)
{
    int code = table_find_reference(table, &id, reference);
    if (code == 0)
        code = table_block(table, *reference, size, block);
    return code == 0 && !dirid_equal(**(struct dirid **)block, id) ? -EBADMSG : code;
}
