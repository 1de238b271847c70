/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP (1ull << 20) /* the file grows by as much, or by less if it cannot, or while it is small */
#define LEAST (64ull << 10)
#define SMALL (4 * STEP)

/* At the begin of what was given back. */
struct link {
    uint32_t next, before; /* in its list; 0: none */
};

static int blocks_make_file(struct blocks *blocks, const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" TABLE_FILE, directory) >= (int)sizeof path)
        return -ENAMETOOLONG;
    if (unlink(path) != 0 && errno != ENOENT)
        return -errno;
    blocks->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return blocks->fd < 0 ? -errno : 0;
}

static uint64_t blocks_round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

static bool blocks_extend_classes(struct blocks *blocks, uint64_t size)
{
    uint8_t *classes = realloc(blocks->classes, size / TABLE_UNIT);
    if (classes == NULL)
        return false;
    memset(classes + blocks->there / TABLE_UNIT, 0, (size - blocks->there) / TABLE_UNIT);
    blocks->classes = classes;
    return true;
}

static bool blocks_extend_to(struct blocks *blocks, uint64_t size)
{
    if (size > blocks->table.size || !blocks_extend_classes(blocks, size) ||
        posix_fallocate(blocks->fd, (off_t)blocks->there, (off_t)(size - blocks->there)) != 0)
        return false;
    blocks->there = size;
    return true;
}

static bool blocks_extend(struct blocks *blocks, uint64_t size)
{
    return size <= blocks->there || (size > SMALL && blocks_extend_to(blocks, blocks_round_up(size, STEP))) ||
           blocks_extend_to(blocks, blocks_round_up(size, LEAST));
}

static void blocks_use(struct blocks *blocks, uint64_t end)
{
    blocks->end = end;
    __atomic_store_n(&table_head(&blocks->table)->end, end, __ATOMIC_RELEASE);
}

int blocks_create(struct blocks *blocks, const char *directory, uint64_t most)
{
    *blocks = (struct blocks){.fd = -1};
    int code = blocks_make_file(blocks, directory);
    if (code != 0)
        return code;
    void *at = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, blocks->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    blocks->table = (struct table){.at = at, .size = most};
    if (!blocks_extend(blocks, sizeof(struct table_head)))
        return -ENOSPC;
    blocks_use(blocks, blocks_round_up(sizeof(struct table_head), TABLE_UNIT));
    return 0;
}

void blocks_destroy(struct blocks *blocks)
{
    if (blocks->table.at != NULL)
        munmap(blocks->table.at, blocks->table.size);
    if (blocks->fd >= 0)
        close(blocks->fd);
    free(blocks->classes);
}

unsigned blocks_class(uint64_t size)
{
    unsigned class = 0;
    while (table_class_size(class) < size)
        class ++;
    return class;
}

/* What was given back. A reference that leads elsewhere is not ours: NULL. */
static struct link *blocks_link_at(const struct blocks *blocks, uint32_t reference)
{
    return reference != 0 && (uint64_t)reference * TABLE_UNIT < blocks->end && blocks->classes[reference] != 0
               ? (struct link *)(blocks->table.at + (uint64_t)reference * TABLE_UNIT)
               : NULL;
}

static void blocks_put_in(struct blocks *blocks, uint32_t reference, unsigned class)
{
    struct link *first = blocks_link_at(blocks, blocks->given_back[class]);
    blocks->classes[reference] = (uint8_t)(1 + class);
    blocks->free += table_class_size(class);
    *blocks_link_at(blocks, reference) = (struct link){.next = blocks->given_back[class]};
    blocks->given_back[class] = reference;
    if (first != NULL)
        first->before = reference;
}

static void blocks_take_out(struct blocks *blocks, uint32_t reference, unsigned class)
{
    const struct link link = *blocks_link_at(blocks, reference);
    struct link *before = blocks_link_at(blocks, link.before), *next = blocks_link_at(blocks, link.next);
    if (before != NULL)
        before->next = link.next;
    else
        blocks->given_back[class] = next != NULL ? link.next : 0;
    if (next != NULL)
        next->before = link.before;
    blocks->classes[reference] = 0;
    blocks->free -= table_class_size(class);
}

void blocks_give(struct blocks *blocks, uint32_t reference, unsigned class)
{
    for (; class + 1 < TABLE_CLASSES; class ++) {
        const uint32_t other = reference ^ 1u << class;
        if ((uint64_t)other * TABLE_UNIT >= blocks->end || blocks->classes[other] != 1 + class)
            break;
        blocks_take_out(blocks, other, class);
        reference &= ~(1u << class);
    }
    blocks_put_in(blocks, reference, class);
}

/* The least that is large enough; TABLE_CLASSES: there is none. */
static unsigned blocks_class_there(const struct blocks *blocks, unsigned class)
{
    while (class < TABLE_CLASSES && blocks_link_at(blocks, blocks->given_back[class]) == NULL)
        class ++;
    return class;
}

/* The other halves go back. */
static uint32_t blocks_take_part(struct blocks *blocks, unsigned class, unsigned larger)
{
    const uint32_t reference = blocks->given_back[larger];
    blocks_take_out(blocks, reference, larger);
    while (larger-- > class)
        blocks_put_in(blocks, reference + (1u << larger), larger);
    return reference;
}

/* After all that was used; what lies between is given back. */
static int blocks_take_new(struct blocks *blocks, unsigned class, uint32_t *reference)
{
    const uint64_t size = table_class_size(class), at = blocks_round_up(blocks->end, size);
    uint64_t between = blocks->end;
    if (at / TABLE_UNIT > UINT32_MAX || !blocks_extend(blocks, at + size))
        return -ENOSPC;
    blocks_use(blocks, at + size);
    while (between < at) {
        const uint32_t units = (uint32_t)(between / TABLE_UNIT);
        blocks_give(blocks, units, (unsigned)__builtin_ctz(units));
        between += (uint64_t)TABLE_UNIT << __builtin_ctz(units);
    }
    *reference = (uint32_t)(at / TABLE_UNIT);
    return 0;
}

int blocks_take(struct blocks *blocks, unsigned class, uint32_t *reference, void *block)
{
    if (class >= TABLE_CLASSES)
        return -ENOSPC;
    const unsigned larger = blocks_class_there(blocks, class);
    int code = 0;
    if (larger < TABLE_CLASSES)
        *reference = blocks_take_part(blocks, class, larger);
    else
        code = blocks_take_new(blocks, class, reference);
    return code == 0 ? table_block(&blocks->table, *reference, table_class_size(class), block) : code;
}

bool blocks_have(struct blocks *blocks, unsigned class, uint64_t bytes)
{
    const uint64_t beside = blocks->free < bytes ? bytes - blocks->free : 0;
    const bool there = blocks_class_there(blocks, class) < TABLE_CLASSES;
    const uint64_t end = there ? blocks->end : blocks_round_up(blocks->end, table_class_size(class)) + table_class_size(class);
    return class < TABLE_CLASSES && blocks_extend(blocks, end + beside);
}
