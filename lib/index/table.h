/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The file of an index as it is mapped, and how it is read while its writer changes it. FORMAT.md is the document.
 *
 * It consists of blocks. A **map** holds records in the order of their hashes: an array says for the first bits of a hash
 * which **bucket** it belongs to (extendible hashing: Fagin, Nievergelt, Pippenger and Strong, ACM TODS 1979; by the first
 * bits instead of the last, so that the buckets stand in the order of a listing), and in a bucket the records are sorted.
 *
 * There is one writer. Readers take no lock: a map has a number of changes, odd while it is being changed; a reader that sees
 * the same even number before and after has read what was there at one moment; else it reads again. So whatever is read may be
 * nonsense until that is known, and is checked to lie within the file before it is followed.
 *
 * Pure but for the memory: no calls, no allocation, async-signal-safe, any thread. Errors: -EBADMSG, what is there is no
 * index (or was changed meanwhile); -EOVERFLOW, it lies after what is mapped. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/index.h"

#define TABLE_FILE "index"
#define TABLE_MAGIC 0x7864692d746e6873ull /* "shnt-idx" */
#define TABLE_UNIT 64u                    /* bytes: blocks are referred to in units from the begin of the file; 0: none */
#define TABLE_CLASSES 21                  /* of blocks: a unit, twice that and so on */
#define TABLE_HASH_BITS 63
#define TABLE_DEPTH_MAX 24
#define TABLE_VALUE 16

struct table_map {
    uint64_t changes; /* odd while it is being changed */
    uint64_t count;   /* of records */
    uint32_t depth;   /* so many bits of a hash say which bucket */
    uint32_t buckets; /* an array of 1 << depth references to them; the only bucket if depth is 0; 0: it is empty */
};

/* The blocks of what is in the index: of a directory. */
struct table_dir {
    struct dirid id;
    struct table_map names;
    uint64_t stamp; /* unlike that of any directory before; another one once names were taken out of it wholesale */
    uint32_t known; /* there is a record */
    uint8_t record[RECORD_DIR_SIZE];
};

/* ... of a branch. */
struct table_branch {
    struct dirid id;
    char name[RECORD_BRANCH_MAX];
};

#define TABLE_BUCKET_MAGIC 0x6b637562u /* "buck" */

struct table_slot {
    uint64_t hash;
    uint32_t at;     /* of the record in the bucket: its value, its key */
    uint32_t length; /* of the key */
};

/* Slots from the begin on, records from the end. */
struct table_bucket {
    uint32_t magic;
    uint8_t depth; /* so many bits of their hashes are the same */
    uint8_t class;
    uint32_t count;
    uint32_t low;  /* where the lowest record is */
    uint32_t live; /* bytes of slots and records */
    struct table_slot slots[];
};

struct table_head {
    uint64_t magic; /* written last */
    uint32_t format;
    struct index_stamp stamp;
    uint64_t end; /* bytes of the file that may have been used */
    uint64_t stamps;
    struct table_map things; /* by identity: directories, and with inode number 0 and its number as birth, branches.
                              * The value begins with a reference, of 4 bytes */
};

/* What is mapped of it. */
struct table {
    char *at;
    uint64_t size;
};

static inline struct table_head *table_head(const struct table *table)
{
    return (struct table_head *)table->at;
}

static inline uint64_t table_class_size(unsigned class)
{
    return (uint64_t)TABLE_UNIT << class;
}

/* A block of that many bytes: 0. */
int table_block(const struct table *, uint32_t reference, uint64_t size, void *block);

/* What a record is found by. */
struct table_key {
    uint64_t hash;
    const void *bytes;
    size_t length;
};

/* Where a record is, or would be. */
struct table_spot {
    struct table_bucket *bucket; /* NULL: the map is empty */
    uint64_t size;               /* of the bucket */
    uint32_t reference;          /* to it */
    uint32_t slot;               /* the first whose key is not before that one */
    bool same;                   /* it is that one */
};

int table_seek(const struct table *, const struct table_map *, const struct table_key *, struct table_spot *);
/* Its value. 0, -ENOENT. */
int table_get(const struct table *, const struct table_map *, const struct table_key *, uint8_t value[TABLE_VALUE]);

/* A record, copied. */
struct table_record {
    uint64_t hash;
    size_t length;
    uint8_t value[TABLE_VALUE];
    char key[RECORD_NAME_MAX];
};

/* The first record after the one that is there (of which hash, length and key are looked at). 1; 0: none; TABLE_ON: none in
 * the bucket that was looked into, and what is there says where the next one begins. */
#define TABLE_ON 2
int table_next(const struct table *, const struct table_map *, struct table_record *);

/* To the least hash that belongs to the bucket after this one; false: it is the last. */
bool table_go_on(const struct table_bucket *, uint64_t *hash);

struct table_key table_key_name(const char *name, size_t length);
struct table_key table_key_thing(const struct dirid *);

/* What refers to the block of a thing: 0, -ENOENT. Takes little stack. */
int table_find_reference(const struct table *, const struct dirid *id, uint32_t *reference);
/* The block of a thing, of that size. 0, and it has that id; -ENOENT. */
int table_find(const struct table *, struct dirid id, uint64_t size, uint32_t *reference, void *block);

static inline struct dirid table_branch_id(uint16_t number)
{
    return (struct dirid){0, number};
}
