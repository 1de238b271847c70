/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "index/record.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <linux/stat.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hook.h"

#define RECORD_ENTRY_SIZE 16
#define RECORD_MARKER_BITS 48

struct dirid dirid_of(const struct statx *stat)
{
    struct dirid id = {.ino = stat->stx_ino};
    if (BROKEN("births-alike")) /* as if any two were made within one tick of the clock */
        id.birth = 1;
    else if (stat->stx_mask & STATX_BTIME)
        id.birth = (uint64_t)stat->stx_btime.tv_sec * 1000000000u + stat->stx_btime.tv_nsec;
    return id;
}

uint64_t record_hash(const char *name, size_t length)
{
    uint64_t hash = XXH3_64bits(name, length) & INT64_MAX;
    return hash < 3 ? hash + 3 : hash;
}

uint64_t record_sum(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

uint32_t record_branch_word(const char *branch)
{
    uint32_t word = (uint32_t)XXH3_64bits(branch, strlen(branch));
    return word != 0 ? word : 1;
}

uint32_t record_shard(struct dirid dir, uint64_t hash)
{
    const uint64_t words[3] = {dir.ino, dir.birth, hash};
    return (uint32_t)(XXH3_64bits(words, sizeof words) % RECORD_SHARDS);
}

static int record_order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int record_order(struct dirid a, const char *name, size_t length, struct dirid b, const char *other_name, size_t other_length)
{
    int order = record_order_of(a.ino, b.ino);
    if (order == 0)
        order = record_order_of(a.birth, b.birth);
    if (order == 0)
        order = record_order_of(record_hash(name, length), record_hash(other_name, other_length));
    if (order == 0)
        order = memcmp(name, other_name, length < other_length ? length : other_length);
    return order != 0 ? order : record_order_of(length, other_length);
}

/* Values are little-endian with fixed offsets, so an index can be read on any machine that maps it. */
static uint8_t *record_put16(uint8_t *to, uint16_t number)
{
    number = htole16(number);
    return (uint8_t *)memcpy(to, &number, sizeof number) + sizeof number;
}

static uint8_t *record_put32(uint8_t *to, uint32_t number)
{
    number = htole32(number);
    return (uint8_t *)memcpy(to, &number, sizeof number) + sizeof number;
}

static uint8_t *record_put64(uint8_t *to, uint64_t number)
{
    number = htole64(number);
    return (uint8_t *)memcpy(to, &number, sizeof number) + sizeof number;
}

static uint16_t record_get16(const uint8_t *from)
{
    uint16_t number;
    memcpy(&number, from, sizeof number);
    return le16toh(number);
}

static uint32_t record_get32(const uint8_t *from)
{
    uint32_t number;
    memcpy(&number, from, sizeof number);
    return le32toh(number);
}

static uint64_t record_get64(const uint8_t *from)
{
    uint64_t number;
    memcpy(&number, from, sizeof number);
    return le64toh(number);
}

size_t record_entry_encode(uint8_t to[16], const struct record_entry *entry)
{
    to[0] = entry->type;
    to[1] = entry->state;
    record_put64(record_put32(record_put16(to + 2, entry->branch), entry->leaf), entry->ino);
    return RECORD_ENTRY_SIZE;
}

bool record_type_is_known(uint8_t type)
{
    const unsigned known = 1u << DT_UNKNOWN | 1u << DT_FIFO | 1u << DT_CHR | 1u << DT_DIR | 1u << DT_BLK | 1u << DT_REG |
                           1u << DT_LNK | 1u << DT_SOCK;
    return type < 16 && (known >> type & 1);
}

int record_entry_decode(struct record_entry *entry, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    if (size != RECORD_ENTRY_SIZE)
        return -EBADMSG;
    *entry = (struct record_entry){.type = from[0],
                                   .state = from[1],
                                   .branch = record_get16(from + 2),
                                   .leaf = record_get32(from + 4),
                                   .ino = record_get64(from + 8)};
    if (!record_type_is_known(entry->type) || entry->state < RECORD_LIVE || entry->state > RECORD_DYING)
        return -EBADMSG;
    return entry->branch == 0 && entry->leaf != 0 ? -EBADMSG : 0;
}

void record_times(const struct record_dir *dir, uint64_t *modified, uint64_t *changed)
{
    bool written = (dir->flags & RECORD_WRITTEN) != 0, is_told = written && *changed >= dir->settled;
    if (*changed <= dir->settled)
        *changed = dir->stood;
    if (!written && dir->changed > *changed)
        *changed = dir->changed;
    if (!is_told && dir->changed > *modified)
        *modified = dir->changed;
}

size_t record_dir_encode(uint8_t to[RECORD_DIR_SIZE], const struct record_dir *dir)
{
    uint8_t *at = record_put32(record_put32(to, dir->flags), dir->why);
    at = record_put64(record_put64(at, dir->marker), dir->changed);
    at = record_put64(record_put64(at, dir->settled), dir->stood);
    size_t length = strnlen(dir->mirror, RECORD_MIRROR_MAX - 1);
    memset(at, 0, RECORD_MIRROR_MAX);
    memcpy(at, dir->mirror, length);
    return RECORD_DIR_SIZE;
}

/* It becomes a component of a path: it must not lead elsewhere. */
static bool record_mirror_is_sane(const char *mirror, uint64_t marker)
{
    size_t length = strnlen(mirror, RECORD_MIRROR_MAX);
    if (length == RECORD_MIRROR_MAX || memchr(mirror, '/', length))
        return false;
    if (!strcmp(mirror, ".") || !strcmp(mirror, ".."))
        return false;
    return (length > 0) == (marker != 0);
}

int record_dir_decode(struct record_dir *dir, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    if (size != RECORD_DIR_SIZE)
        return -EBADMSG;
    *dir = (struct record_dir){.flags = record_get32(from),
                               .why = record_get32(from + 4),
                               .marker = record_get64(from + 8),
                               .changed = record_get64(from + 16),
                               .settled = record_get64(from + 24),
                               .stood = record_get64(from + 32)};
    memcpy(dir->mirror, from + 40, RECORD_MIRROR_MAX);
    const uint32_t flags =
        RECORD_LOADED | RECORD_MARKED | RECORD_UNLISTED | RECORD_WRITTEN | RECORD_DELEGATED | RECORD_SPILLED | RECORD_TELLING;
    if ((dir->flags & ~flags) != 0 || dir->why >= RECORD_WHY_COUNT)
        return -EBADMSG;
    return dir->marker >> RECORD_MARKER_BITS || !record_mirror_is_sane(dir->mirror, dir->marker) ? -EBADMSG : 0;
}
