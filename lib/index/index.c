/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "index/blocks.h"

#define BUCKET_FULL 4096u /* bytes: what does not fit there is parted, if the array may grow */
#define BUCKET_LEAST 256u
#define ARRAY_SHARE 8                 /* records for each reference of an array, at least */
#define ROOM_RESERVE (1ull << 20)     /* bytes that are kept for what must be noted although there is no room for more */
#define ROOM_CHANGE (4 * BUCKET_FULL) /* that one change may take, next to a larger block */
#define RECORD_SIZE(LENGTH) ((uint32_t)sizeof(struct table_slot) + TABLE_VALUE + (uint32_t)(LENGTH))

struct index {
    struct blocks blocks;
    uint64_t used;          /* bytes of blocks that are taken */
    uint64_t widest;        /* of the largest array there ever was */
    uint64_t entries;       /* names, directories, branches */
    struct table_dir *last; /* that was found last; NULL: none, or it is gone */
    uint32_t last_at;       /* the reference to it */
    bool damaged;           /* -EBADMSG was answered */
};

static int index_note(struct index *index, int code)
{
    index->damaged |= code == -EBADMSG;
    return code;
}

static struct table *index_table_of(struct index *index)
{
    return &index->blocks.table;
}

static struct table_head *index_head_of(struct index *index)
{
    return table_head(index_table_of(index));
}

/* Readers that have looked meanwhile look again. */

static void index_begin_change(struct table_map *map)
{
    __atomic_store_n(&map->changes, map->changes + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void index_end_change(struct table_map *map)
{
    __atomic_store_n(&map->changes, map->changes + 1, __ATOMIC_RELEASE);
}

/* Blocks. */

static int index_take(struct index *index, unsigned class, uint32_t *reference, void *block)
{
    int code = blocks_take(&index->blocks, class, reference, block);
    index->used += code == 0 ? table_class_size(class) : 0;
    return code;
}

static void index_give(struct index *index, uint32_t reference, unsigned class)
{
    index->used -= table_class_size(class);
    blocks_give(&index->blocks, reference, class);
}

static unsigned index_array_class(uint32_t depth)
{
    return blocks_class(sizeof(uint32_t) << depth);
}

/* Buckets. */

static uint32_t index_slots_end(const struct table_bucket *bucket)
{
    return (uint32_t)sizeof *bucket + bucket->count * (uint32_t)sizeof *bucket->slots;
}

/* After all others. There is room. */
static void index_append(struct table_bucket *bucket, uint64_t hash, const void *value, const void *key, uint32_t length)
{
    bucket->low -= TABLE_VALUE + length;
    memcpy((char *)bucket + bucket->low, value, TABLE_VALUE);
    memcpy((char *)bucket + bucket->low + TABLE_VALUE, key, length);
    bucket->slots[bucket->count++] = (struct table_slot){.hash = hash, .at = bucket->low, .length = length};
    bucket->live += RECORD_SIZE(length);
}

/* With a quarter of room to grow. */
static unsigned index_class_for(uint32_t live)
{
    uint32_t size = (uint32_t)sizeof(struct table_bucket) + live;
    size += size / 4;
    return blocks_class(size > BUCKET_LEAST ? size : BUCKET_LEAST);
}

/* The records of slots of one bucket, of so many bytes, and room for more, in one that nobody sees yet. */
static int index_copy_bucket(struct index *index, const struct table_spot *old, uint32_t from, uint32_t to, unsigned class,
                             unsigned depth, uint32_t *reference)
{
    struct table_bucket *bucket;
    int code = index_take(index, class, reference, &bucket);
    if (code != 0)
        return code;
    *bucket = (struct table_bucket){.magic = TABLE_BUCKET_MAGIC,
                                    .depth = (uint8_t)depth,
                                    .class = (uint8_t) class,
                                    .low = (uint32_t)table_class_size(class)};
    for (; from < to; from++) {
        const struct table_slot *slot = &old->bucket->slots[from];
        const char *record = (const char *)old->bucket + slot->at;
        index_append(bucket, slot->hash, record, record + TABLE_VALUE, slot->length);
    }
    return 0;
}

/* Is it what it was when it was written? Then what it says of itself can be gone by. */
static int index_check_bucket(const struct table_spot *spot)
{
    const struct table_bucket *bucket = spot->bucket;
    uint32_t live = 0;
    if (bucket->low > spot->size || index_slots_end(bucket) > bucket->low || bucket->depth > TABLE_DEPTH_MAX)
        return -EBADMSG;
    for (uint32_t i = 0; i < bucket->count; i++) {
        const struct table_slot *slot = &bucket->slots[i];
        if (slot->at < bucket->low || slot->length > RECORD_NAME_MAX ||
            (uint64_t)slot->at + TABLE_VALUE + slot->length > spot->size)
            return -EBADMSG;
        live += RECORD_SIZE(slot->length);
    }
    return live == bucket->live ? 0 : -EBADMSG;
}

/* The references to the bucket of a hash: all of an array whose first bits are the bucket's. */
static int index_references_to(struct index *index, struct table_map *map, uint64_t hash, unsigned depth, uint32_t **first,
                               uint32_t *count)
{
    *first = &map->buckets;
    *count = 1;
    if (map->depth == 0)
        return 0;
    int code = table_block(index_table_of(index), map->buckets, sizeof **first << map->depth, first);
    if (code != 0 || depth > map->depth)
        return code != 0 ? code : -EBADMSG;
    *count = 1u << (map->depth - depth);
    *first += hash >> (TABLE_HASH_BITS - map->depth) & ~(uint64_t)(*count - 1);
    return 0;
}

static void index_refer(uint32_t *first, uint32_t count, uint32_t reference)
{
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&first[i], reference, __ATOMIC_RELAXED);
}

/* In a bucket of another class instead. */
static int index_replace(struct index *index, struct table_map *map, uint64_t hash, const struct table_spot *old,
                         unsigned class)
{
    const unsigned old_class = old->bucket->class, depth = old->bucket->depth;
    uint32_t reference, *first, count;
    int code = index_check_bucket(old);
    if (code == 0)
        code = index_references_to(index, map, hash, depth, &first, &count);
    if (code == 0)
        code = index_copy_bucket(index, old, 0, old->bucket->count, class, depth, &reference);
    if (code != 0)
        return code;
    index_begin_change(map);
    index_refer(first, count, reference);
    index_end_change(map);
    index_give(index, old->reference, old_class);
    return 0;
}

/* An array of twice as many references, or the first one. */
static int index_widen(struct index *index, struct table_map *map)
{
    const uint32_t old = map->buckets, count = 1u << map->depth;
    const unsigned class = index_array_class(map->depth + 1);
    uint32_t reference, *array, *from = &map->buckets;
    int code = map->depth > 0 ? table_block(index_table_of(index), old, sizeof *from * count, &from) : 0;
    if (code == 0)
        code = index_take(index, class, &reference, &array);
    if (code != 0)
        return code;
    for (uint32_t i = 0; i < count; i++)
        array[2 * i] = array[2 * i + 1] = from[i];
    index_begin_change(map);
    map->buckets = reference;
    map->depth++;
    index_end_change(map);
    if (map->depth > 1)
        index_give(index, old, index_array_class(map->depth - 1));
    if (index->widest < table_class_size(class))
        index->widest = table_class_size(class);
    return 0;
}

/* The first slot whose hash has the bit after the bucket's own. */
static uint32_t index_middle(const struct table_bucket *bucket)
{
    uint32_t slot = 0;
    while (slot < bucket->count && (bucket->slots[slot].hash >> (TABLE_HASH_BITS - 1 - bucket->depth) & 1) == 0)
        slot++;
    return slot;
}

static uint32_t index_live_in(const struct table_bucket *bucket, uint32_t from, uint32_t to)
{
    uint32_t live = 0;
    for (; from < to; from++)
        live += RECORD_SIZE(bucket->slots[from].length);
    return live;
}

/* Two of it. */
static int index_part(struct index *index, struct table_map *map, uint64_t hash, const struct table_spot *old)
{
    const unsigned old_class = old->bucket->class, depth = old->bucket->depth + 1;
    const uint32_t half = index_middle(old->bucket), end = old->bucket->count;
    const uint32_t live[2] = {index_live_in(old->bucket, 0, half), index_live_in(old->bucket, half, end)};
    uint32_t lower, upper, *first, count;
    int code = index_check_bucket(old);
    if (code == 0)
        code = index_references_to(index, map, hash, depth - 1, &first, &count);
    if (code == 0)
        code = index_copy_bucket(index, old, 0, half, index_class_for(live[0]), depth, &lower);
    if (code != 0)
        return code;
    code = index_copy_bucket(index, old, half, end, index_class_for(live[1]), depth, &upper);
    if (code != 0) {
        index_give(index, lower, index_class_for(live[0]));
        return code;
    }
    index_begin_change(map);
    index_refer(first, count / 2, lower);
    index_refer(first + count / 2, count / 2, upper);
    index_end_change(map);
    index_give(index, old->reference, old_class);
    return 0;
}

/* An array has a reference for every few records at most, whatever their hashes are. */
static bool index_may_part(const struct table_map *map, const struct table_bucket *bucket)
{
    return bucket->depth < map->depth || (map->depth < TABLE_DEPTH_MAX && map->count >> map->depth >= 2 * ARRAY_SHARE);
}

/* What a bucket would have left if it were put together, without what was removed, and with so many bytes more. */
static int64_t index_left(const struct table_spot *spot, uint32_t size)
{
    return (int64_t)spot->size - (int64_t)sizeof *spot->bucket - spot->bucket->live - size;
}

static bool index_is_to_part(const struct table_map *map, const struct table_bucket *bucket, uint32_t size)
{
    return table_class_size(index_class_for(bucket->live + size)) > BUCKET_FULL && index_may_part(map, bucket);
}

static int index_split(struct index *index, struct table_map *map, uint64_t hash, const struct table_spot *spot)
{
    if (spot->bucket->depth >= TABLE_DEPTH_MAX)
        return -ENOSPC;
    int code = spot->bucket->depth == map->depth ? index_widen(index, map) : 0;
    return code == 0 ? index_part(index, map, hash, spot) : code;
}

/* So that one more record may fit. Nothing more is taken if that leaves something; and where there is no block of the kind
 * that is best, another will do. */
static int index_enlarge(struct index *index, struct table_map *map, uint64_t hash, const struct table_spot *spot,
                         uint32_t size)
{
    const unsigned own = spot->bucket->class, class = index_class_for(spot->bucket->live + size);
    const bool parts = index_is_to_part(map, spot->bucket, size);
    const int64_t rest = index_left(spot, size);
    if (rest >= (int64_t)spot->size / 8)
        return index_replace(index, map, hash, spot, own);
    int code = parts ? index_split(index, map, hash, spot) : index_replace(index, map, hash, spot, class);
    if (code == -ENOSPC)
        code = parts ? index_replace(index, map, hash, spot, class) : index_split(index, map, hash, spot);
    return code == -ENOSPC && rest >= 0 ? index_replace(index, map, hash, spot, own) : code;
}

static int index_first_bucket(struct index *index, struct table_map *map)
{
    const struct table_spot none = {0};
    uint32_t reference;
    int code = index_copy_bucket(index, &none, 0, 0, index_class_for(0), 0, &reference);
    if (code != 0)
        return code;
    index_begin_change(map);
    map->depth = 0;
    map->buckets = reference;
    index_end_change(map);
    return 0;
}

static void index_insert(struct table_bucket *bucket, uint32_t slot, const struct table_key *key,
                         const uint8_t value[TABLE_VALUE])
{
    index_append(bucket, key->hash, value, key->bytes, (uint32_t)key->length);
    const struct table_slot last = bucket->slots[bucket->count - 1];
    memmove(&bucket->slots[slot + 1], &bucket->slots[slot], (bucket->count - 1 - slot) * sizeof last);
    bucket->slots[slot] = last;
}

static bool index_fits(const struct table_bucket *bucket, size_t length)
{
    return index_slots_end(bucket) + RECORD_SIZE(length) <= bucket->low;
}

static bool index_has_spot(const struct table_spot *spot, const struct table_key *key)
{
    return spot->bucket != NULL && (spot->same || index_fits(spot->bucket, key->length));
}

/* A spot where there is room, as far as it must be made. */
static int index_make_spot(struct index *index, struct table_map *map, const struct table_key *key, struct table_spot *spot)
{
    int code = table_seek(index_table_of(index), map, key, spot);
    while (code == 0 && !index_has_spot(spot, key)) {
        code = spot->bucket == NULL ? index_first_bucket(index, map)
                                    : index_enlarge(index, map, key->hash, spot, RECORD_SIZE(key->length));
        if (code == 0)
            code = table_seek(index_table_of(index), map, key, spot);
    }
    return code == 0 && spot->bucket->low > spot->size ? -EBADMSG : code;
}

static int index_put_at(struct index *index, struct table_map *map, const struct table_spot *spot, const struct table_key *key,
                        const uint8_t value[TABLE_VALUE])
{
    index_begin_change(map);
    if (spot->same)
        memcpy((char *)spot->bucket + spot->bucket->slots[spot->slot].at, value, TABLE_VALUE);
    else
        index_insert(spot->bucket, spot->slot, key, value);
    map->count += !spot->same;
    index_end_change(map);
    index->entries += !spot->same;
    return 0;
}

static int index_put(struct index *index, struct table_map *map, const struct table_key *key, const uint8_t value[TABLE_VALUE])
{
    struct table_spot spot;
    int code = index_make_spot(index, map, key, &spot);
    return code == 0 ? index_put_at(index, map, &spot, key, value) : code;
}

/* The largest block that it may take to put such a record there. */
static unsigned index_class_wanted(const struct table_map *map, const struct table_spot *spot, uint32_t size)
{
    if (spot->bucket == NULL)
        return index_class_for(size);
    if (!index_is_to_part(map, spot->bucket, size))
        return index_class_for(spot->bucket->live + size);
    const unsigned half = index_class_for(spot->bucket->live);
    const unsigned array = spot->bucket->depth == map->depth ? index_array_class(map->depth + 1) : 0;
    return half > array ? half : array;
}

/* ... and what is kept for others besides. */
static bool index_has_room(struct index *index, unsigned class, uint64_t bytes)
{
    return blocks_have(&index->blocks, class, ROOM_RESERVE + 4 * index->widest + bytes);
}

/* Can it be put without taking what is kept for others? */
static bool index_may_put(struct index *index, const struct table_map *map, const struct table_spot *spot,
                          const struct table_key *key)
{
    const uint32_t size = RECORD_SIZE(key->length);
    return index_has_spot(spot, key) || (spot->bucket != NULL && index_left(spot, size) >= 0) ||
           index_has_room(index, index_class_wanted(map, spot, size), ROOM_CHANGE);
}

/* -EEXIST: it is there, and with that value. What is kept for others is not for this one. */
static int index_add(struct index *index, struct table_map *map, const struct table_key *key, uint8_t value[TABLE_VALUE])
{
    struct table_spot spot;
    int code = table_seek(index_table_of(index), map, key, &spot);
    if (code == 0)
        code = index_may_put(index, map, &spot, key) ? index_make_spot(index, map, key, &spot) : -ENOSPC;
    if (code != 0)
        return code;
    if (!spot.same)
        return index_put_at(index, map, &spot, key, value);
    memcpy(value, (char *)spot.bucket + spot.bucket->slots[spot.slot].at, TABLE_VALUE);
    return -EEXIST;
}

/* The bucket of that hash, and on to the next: 1; 0: it was the last. What is damaged may be referred to again. */
static int index_give_bucket(struct index *index, const struct table_map *map, struct table_key *at)
{
    struct table_spot spot;
    int code = table_seek(index_table_of(index), map, at, &spot);
    if (code != 0 || spot.bucket->depth > map->depth)
        return -EBADMSG;
    const unsigned class = spot.bucket->class;
    const bool more = table_go_on(spot.bucket, &at->hash);
    index_give(index, spot.reference, class);
    return more;
}

/* The blocks of a map that nobody finds any more. */
static int index_give_all(struct index *index, const struct table_map *map)
{
    struct table_key at = {.bytes = ""};
    uint32_t *array;
    int code = map->buckets != 0;
    if (map->depth > TABLE_DEPTH_MAX)
        return -EBADMSG;
    if (map->depth > 0 && map->buckets != 0 &&
        table_block(index_table_of(index), map->buckets, sizeof *array << map->depth, &array) != 0)
        return -EBADMSG;
    while (code == 1)
        code = index_give_bucket(index, map, &at);
    if (code == 0 && map->depth > 0 && map->buckets != 0)
        index_give(index, map->buckets, index_array_class(map->depth));
    return code;
}

static int index_empty(struct index *index, struct table_map *map)
{
    struct table_map old = *map;
    index_begin_change(map);
    map->count = map->depth = map->buckets = 0;
    index_end_change(map);
    return index_give_all(index, &old);
}

/* Its record's bytes are free when the bucket is copied. */
static void index_take_out(struct table_bucket *bucket, uint32_t slot)
{
    bucket->live -= RECORD_SIZE(bucket->slots[slot].length);
    bucket->count--;
    memmove(&bucket->slots[slot], &bucket->slots[slot + 1], (bucket->count - slot) * sizeof *bucket->slots);
}

/* A bucket that is almost empty is replaced by a small one; without room it stays. */
static int index_del(struct index *index, struct table_map *map, const struct table_key *key)
{
    struct table_spot spot;
    int code = table_seek(index_table_of(index), map, key, &spot);
    if (code != 0 || !spot.same)
        return code;
    index_begin_change(map);
    index_take_out(spot.bucket, spot.slot);
    HOOK("index-removal");
    map->count--;
    index_end_change(map);
    index->entries--;
    if (map->count == 0)
        return index_empty(index, map);
    if (4 * table_class_size(index_class_for(spot.bucket->live)) > spot.size)
        return 0;
    code = index_replace(index, map, key->hash, &spot, index_class_for(spot.bucket->live));
    return code == -ENOSPC ? 0 : code;
}

/* Making it. */

int index_create(struct index **to, const char *directory, size_t map_size, const struct index_stamp *stamp)
{
    struct index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return -ENOMEM;
    int code = blocks_create(&index->blocks, directory, map_size);
    if (code != 0) {
        index_destroy(index);
        return code;
    }
    struct table_head *head = index_head_of(index);
    head->format = RECORD_FORMAT;
    head->stamp = *stamp;
    index->entries = 1;
    index->used = head->end;
    __atomic_store_n(&head->magic, TABLE_MAGIC, __ATOMIC_RELEASE);
    *to = index;
    return 0;
}

void index_destroy(struct index *index)
{
    if (index == NULL)
        return;
    blocks_destroy(&index->blocks);
    free(index);
}

bool index_is_damaged(const struct index *index)
{
    return index->damaged;
}

/* Things: directories and branches. */

static int index_find_dir(struct index *index, struct dirid id, struct table_dir **dir)
{
    if (index_head_of(index)->magic != TABLE_MAGIC)
        return index_note(index, -EBADMSG);
    *dir = index->last;
    if (*dir != NULL && dirid_equal((*dir)->id, id))
        return 0;
    int code = table_find(index_table_of(index), id, sizeof **dir, &index->last_at, dir);
    index->last = code == 0 ? *dir : NULL;
    return index_note(index, code);
}

static int index_add_thing(struct index *index, struct dirid id, const void *thing, size_t size)
{
    const struct table_key key = table_key_thing(&id);
    const unsigned class = blocks_class(size);
    uint8_t value[TABLE_VALUE] = {0};
    uint32_t reference;
    void *block;
    int code = index_take(index, class, &reference, &block);
    if (code != 0)
        return index_note(index, code);
    memcpy(block, thing, size);
    memcpy(value, &reference, sizeof reference);
    code = index_put(index, &index_head_of(index)->things, &key, value);
    if (code != 0)
        index_give(index, reference, class);
    return index_note(index, code);
}

static int index_make_dir(struct index *index, struct dirid id, struct table_dir **dir)
{
    int code = index_find_dir(index, id, dir);
    if (code != -ENOENT)
        return code;
    const struct table_dir new = {.id = id, .stamp = ++index_head_of(index)->stamps};
    code = index_add_thing(index, id, &new, sizeof new);
    return code == 0 ? index_find_dir(index, id, dir) : code;
}

/* The one that was found last. */
static int index_drop_dir(struct index *index)
{
    struct table_dir *dir = index->last;
    const struct dirid id = dir->id;
    const struct table_key key = table_key_thing(&id);
    int code = index_del(index, &index_head_of(index)->things, &key);
    if (code != 0)
        return index_note(index, code);
    index->last = NULL;
    index->entries -= dir->names.count;
    code = index_give_all(index, &dir->names);
    index_give(index, index->last_at, blocks_class(sizeof *dir));
    return index_note(index, code);
}

/* One without a record and without names is none. */
static int index_drop_if_idle(struct index *index, struct table_dir *dir)
{
    return dir->known || dir->names.count > 0 ? 0 : index_drop_dir(index);
}

int index_put_branch(struct index *index, uint16_t number, const char *name)
{
    struct table_branch *there, branch = {.id = table_branch_id(number)};
    struct table_map *things = &index_head_of(index)->things;
    size_t length = strlen(name);
    if (length >= sizeof branch.name)
        return -ENAMETOOLONG;
    memcpy(branch.name, name, length);
    uint32_t reference;
    int code = table_find(index_table_of(index), branch.id, sizeof branch, &reference, &there);
    if (code == -ENOENT)
        return index_add_thing(index, branch.id, &branch, sizeof branch);
    if (code != 0)
        return index_note(index, code);
    index_begin_change(things);
    *there = branch;
    index_end_change(things);
    return 0;
}

int index_get_dir(struct index *index, struct dirid id, struct record_dir *record)
{
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code != 0)
        return code;
    return dir->known ? index_note(index, record_dir_decode(record, dir->record, sizeof dir->record)) : -ENOENT;
}

int index_put_dir(struct index *index, struct dirid id, const struct record_dir *record)
{
    struct table_dir *dir;
    int code = index_make_dir(index, id, &dir);
    if (code != 0)
        return code;
    index_begin_change(&dir->names);
    record_dir_encode(dir->record, record);
    dir->known = 1;
    index_end_change(&dir->names);
    return 0;
}

int index_del_dir(struct index *index, struct dirid id)
{
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    return code == 0 ? index_drop_dir(index) : code == -ENOENT ? 0 : code;
}

int index_forget_dir(struct index *index, struct dirid id)
{
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    index_begin_change(&dir->names);
    dir->known = 0;
    index_end_change(&dir->names);
    return index_drop_if_idle(index, dir);
}

/* Names. */

int index_get_entry(struct index *index, struct dirid id, const char *name, size_t length, struct record_entry *entry)
{
    const struct table_key key = table_key_name(name, length);
    uint8_t value[TABLE_VALUE];
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code == 0)
        code = table_get(index_table_of(index), &dir->names, &key, value);
    return index_note(index, code == 0 ? record_entry_decode(entry, value, sizeof value) : code);
}

int index_put_entry(struct index *index, struct dirid id, const char *name, size_t length, const struct record_entry *entry)
{
    const struct table_key key = table_key_name(name, length);
    uint8_t value[TABLE_VALUE];
    struct table_dir *dir;
    if (length > RECORD_NAME_MAX)
        return -ENAMETOOLONG;
    record_entry_encode(value, entry);
    int code = index_make_dir(index, id, &dir);
    if (code != 0)
        return code;
    code = index_note(index, index_put(index, &dir->names, &key, value));
    if (code != 0)
        index_drop_if_idle(index, dir);
    return code;
}

int index_add_entry(struct index *index, struct dirid id, const char *name, size_t length, struct record_entry *entry)
{
    const struct table_key key = table_key_name(name, length);
    uint8_t value[TABLE_VALUE];
    struct table_dir *dir;
    if (length > RECORD_NAME_MAX)
        return -ENAMETOOLONG;
    record_entry_encode(value, entry);
    int code = index_find_dir(index, id, &dir);
    if (code == -ENOENT)
        code = index_has_room(index, 0, ROOM_CHANGE) ? index_make_dir(index, id, &dir) : -ENOSPC;
    if (code == 0)
        code = index_note(index, index_add(index, &dir->names, &key, value));
    int damaged = code == -EEXIST ? index_note(index, record_entry_decode(entry, value, sizeof value)) : 0;
    return damaged != 0 ? damaged : code;
}

int index_del_entry(struct index *index, struct dirid id, const char *name, size_t length)
{
    const struct table_key key = table_key_name(name, length);
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    code = index_note(index, index_del(index, &dir->names, &key));
    return code == 0 ? index_drop_if_idle(index, dir) : code;
}

static int index_del_some(struct index *index, struct table_dir *dir, index_is_meant *is_meant, void *context)
{
    struct table_record at = {0};
    int code;
    while ((code = table_next(index_table_of(index), &dir->names, &at)) > 0) {
        const struct table_key key = {.hash = at.hash, .bytes = at.key, .length = at.length};
        code = code == 1 && is_meant(context, at.hash) ? index_del(index, &dir->names, &key) : 0;
        if (code != 0)
            return code;
    }
    return code;
}

static int index_del_all(struct index *index, struct table_dir *dir)
{
    index->entries -= dir->names.count;
    return index_empty(index, &dir->names);
}

int index_del_names(struct index *index, struct dirid id, index_is_meant *is_meant, void *context)
{
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    index_begin_change(&dir->names);
    dir->stamp = ++index_head_of(index)->stamps;
    index_end_change(&dir->names);
    code = is_meant != NULL ? index_del_some(index, dir, is_meant, context) : index_del_all(index, dir);
    return code == 0 ? index_drop_if_idle(index, dir) : index_note(index, code);
}

int index_has_names(struct index *index, struct dirid id)
{
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    return code == 0 ? dir->names.count > 0 : code == -ENOENT ? 0 : code;
}

uint64_t index_count_names(struct index *index, struct dirid id)
{
    struct table_dir *dir;
    return index_find_dir(index, id, &dir) == 0 ? dir->names.count : 0;
}

int index_list(struct index *index, struct dirid id, uint64_t from, index_each *each, void *context)
{
    struct table_record record = {.hash = from};
    struct record_entry entry;
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    while ((code = table_next(index_table_of(index), &dir->names, &record)) > 0) {
        if (code == TABLE_ON)
            continue;
        code = index_note(index, record_entry_decode(&entry, record.value, sizeof record.value));
        if (code == 0)
            code = each(context, record.hash, record.key, record.length, &entry);
        if (code != 0)
            return code;
    }
    return index_note(index, code);
}

/* Room. */

int index_make_room(struct index *index, struct dirid id, const char *name, size_t length)
{
    const struct table_key key = table_key_name(name, length);
    const struct table_map none = {0};
    struct table_spot spot = {0};
    struct table_dir *dir;
    int code = index_find_dir(index, id, &dir);
    if (code == 0)
        code = index_note(index, table_seek(index_table_of(index), &dir->names, &key, &spot));
    if (code != 0 && code != -ENOENT)
        return code;
    return index_may_put(index, code == 0 ? &dir->names : &none, &spot, &key) ? 0 : -ENOSPC;
}

/* Buckets are half full, as a rule, when they have just been parted. */
uint64_t index_size_of(uint64_t names, uint64_t bytes)
{
    return 2 * (names * RECORD_SIZE(0) + bytes);
}

int index_make_room_for(struct index *index, uint64_t names, uint64_t bytes)
{
    const uint64_t array = 4 * (names / ARRAY_SHARE * sizeof(uint32_t));
    return index_has_room(index, blocks_class(array), index_size_of(names, bytes)) ? 0 : -ENOSPC;
}

void index_measure(struct index *index, struct index_size *size)
{
    *size = (struct index_size){.bytes_used = index->used, .bytes = index->blocks.there, .entries = index->entries};
}
