/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP (1ull << 20) /* the file grows by as much, or by less if it cannot */
#define LEAST (64ull << 10)
#define LARGE 6 /* the class of 4,096 bytes */

static int make_file(struct blocks *blocks, const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" TABLE_FILE, directory) >= (int)sizeof path)
        return -ENAMETOOLONG;
    if (unlink(path) != 0 && errno != ENOENT)
        return -errno;
    blocks->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return blocks->fd < 0 ? -errno : 0;
}

static bool extend_to(struct blocks *blocks, uint64_t size)
{
    if (size > blocks->table.size ||
        posix_fallocate(blocks->fd, (off_t)blocks->there, (off_t)(size - blocks->there)) != 0)
        return false;
    blocks->there = size;
    return true;
}

static uint64_t round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

static bool extend(struct blocks *blocks, uint64_t size)
{
    return size <= blocks->there || extend_to(blocks, round_up(size, STEP)) || extend_to(blocks, round_up(size, LEAST));
}

int blocks_create(struct blocks *blocks, const char *directory, uint64_t most)
{
    *blocks = (struct blocks){.fd = -1};
    int code = make_file(blocks, directory);
    if (code != 0)
        return code;
    void *at = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, blocks->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    blocks->table = (struct table){.at = at, .size = most};
    const uint64_t head = round_up(sizeof(struct table_head), TABLE_UNIT);
    if (!extend(blocks, head))
        return -ENOSPC;
    table_head(&blocks->table)->end = head;
    return 0;
}

void blocks_destroy(struct blocks *blocks)
{
    if (blocks->table.at != NULL)
        munmap(blocks->table.at, blocks->table.size);
    if (blocks->fd >= 0)
        close(blocks->fd);
}

unsigned blocks_class(uint64_t size)
{
    unsigned class = 0;
    while (table_class_size(class) < size)
        class++;
    return class;
}

void blocks_give(struct blocks *blocks, uint32_t reference, unsigned class)
{
    memcpy(blocks->table.at + (uint64_t)reference * TABLE_UNIT, &blocks->given_back[class], sizeof reference);
    blocks->given_back[class] = reference;
    blocks->free += class >= LARGE ? table_class_size(class) : 0;
}

static int take_back(struct blocks *blocks, unsigned class, uint32_t *reference, void *block)
{
    *reference = blocks->given_back[class];
    int code = table_block(&blocks->table, *reference, table_class_size(class), block);
    if (code != 0)
        return code;
    memcpy(&blocks->given_back[class], *(char **)block, sizeof *reference);
    blocks->free -= class >= LARGE ? table_class_size(class) : 0;
    return 0;
}

/* The rest of a larger one is given back, in halves. */
static int take_part(struct blocks *blocks, unsigned class, uint32_t *reference, void *block)
{
    unsigned larger = class;
    while (larger < TABLE_CLASSES && blocks->given_back[larger] == 0)
        larger++;
    if (larger == TABLE_CLASSES)
        return -ENOENT;
    int code = take_back(blocks, larger, reference, block);
    while (code == 0 && larger-- > class)
        blocks_give(blocks, *reference + (1u << larger), larger);
    return code;
}

int blocks_take(struct blocks *blocks, unsigned class, uint32_t *reference, void *block)
{
    if (class >= TABLE_CLASSES)
        return -ENOSPC;
    int code = take_part(blocks, class, reference, block);
    if (code != -ENOENT)
        return code;
    struct table_head *head = table_head(&blocks->table);
    const uint64_t at = head->end, size = table_class_size(class);
    if (at / TABLE_UNIT > UINT32_MAX || !extend(blocks, at + size))
        return -ENOSPC;
    *reference = (uint32_t)(at / TABLE_UNIT);
    *(void **)block = blocks->table.at + at;
    __atomic_store_n(&head->end, at + size, __ATOMIC_RELEASE);
    return 0;
}

bool blocks_have(struct blocks *blocks, uint64_t bytes)
{
    return blocks->free >= bytes || extend(blocks, table_head(&blocks->table)->end + bytes - blocks->free);
}
