/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "inode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_FIRST 1024 /* a power of two, as every later number of slots */

static size_t inode_slot(const struct inode_table *table, dev_t device, ino_t number)
{
    const uint64_t mixed = (number ^ ((uint64_t)device << 40)) * 0x9e3779b97f4a7c15u;
    return (mixed >> 24) & (table->slots_count - 1);
}

static struct inode *inode_new(int fd, const struct stat *stat)
{
    struct inode *inode = calloc(1, sizeof *inode);
    if (inode)
        *inode = (struct inode){
            .fd = fd, .device = stat->st_dev, .number = stat->st_ino, .type = stat->st_mode & S_IFMT, .lookups = 1};
    return inode;
}

static void inode_free(struct inode *inode)
{
    if (inode->fd >= 0)
        close(inode->fd);
    free(inode->name);
    free(inode);
}

int inode_table_init(struct inode_table *table, int root_fd, size_t enough)
{
    struct stat stat;
    *table = (struct inode_table){.slots_count = SLOTS_FIRST, .enough = enough};
    pthread_mutex_init(&table->lock, NULL);
    pthread_cond_init(&table->crowded, NULL);
    TAILQ_INIT(&table->used);
    if (fstat(root_fd, &stat) < 0)
        return -errno;
    table->slots = calloc(SLOTS_FIRST, sizeof(struct inode *));
    table->root = inode_new(root_fd, &stat);
    return table->slots && table->root ? 0 : -ENOMEM;
}

/* Without memory the slots stay as many as they are. */
static void inode_grow(struct inode_table *table)
{
    struct inode **slots = calloc(2 * table->slots_count, sizeof *slots);
    if (!slots)
        return;
    free(table->slots);
    table->slots = slots;
    table->slots_count *= 2;
    for (struct inode *inode = TAILQ_FIRST(&table->used); inode; inode = TAILQ_NEXT(inode, used)) {
        struct inode **slot = &slots[inode_slot(table, inode->device, inode->number)];
        inode->next = *slot;
        *slot = inode;
    }
}

static void inode_use(struct inode_table *table, struct inode *inode, uint64_t parent, const char *name)
{
    inode->lookups++;
    TAILQ_REMOVE(&table->used, inode, used);
    TAILQ_INSERT_TAIL(&table->used, inode, used);
    if (inode->parent == parent && inode->name && strcmp(inode->name, name) == 0)
        return;
    free(inode->name);
    inode->name = strdup(name); /* NULL: is not trimmed */
    inode->parent = parent;
}

static struct inode *inode_known(struct inode_table *table, const struct stat *stat)
{
    struct inode *inode = table->slots[inode_slot(table, stat->st_dev, stat->st_ino)];
    while (inode && (inode->device != stat->st_dev || inode->number != stat->st_ino))
        inode = inode->next;
    return inode;
}

uint64_t inode_now(struct inode_table *table)
{
    return __atomic_load_n(&table->births, __ATOMIC_ACQUIRE);
}

struct inode *inode_find(struct inode_table *table, const struct stat *stat, uint64_t since, uint64_t parent, const char *name)
{
    pthread_mutex_lock(&table->lock);
    struct inode *inode = inode_known(table, stat);
    if (inode && inode->birth > since)
        inode = NULL;
    if (inode)
        inode_use(table, inode, parent, name);
    pthread_mutex_unlock(&table->lock);
    return inode;
}

static void inode_insert(struct inode_table *table, struct inode *inode)
{
    if (table->count == table->slots_count)
        inode_grow(table);
    struct inode **slot = &table->slots[inode_slot(table, inode->device, inode->number)];
    inode->next = *slot;
    *slot = inode;
    TAILQ_INSERT_TAIL(&table->used, inode, used);
    inode->birth = __atomic_add_fetch(&table->births, 1, __ATOMIC_RELEASE);
    if (++table->count > table->enough) {
        table->is_crowded = true;
        pthread_cond_signal(&table->crowded);
    }
}

struct inode *inode_take(struct inode_table *table, int fd, const struct stat *stat, uint64_t parent, const char *name)
{
    struct inode *made = inode_new(fd, stat);
    if (!made) {
        close(fd);
        return NULL;
    }
    pthread_mutex_lock(&table->lock);
    struct inode *inode = inode_known(table, stat), *spare = inode ? made : NULL;
    if (!inode) {
        inode = made;
        inode_insert(table, inode);
        inode->lookups = 0;
    }
    inode_use(table, inode, parent, name);
    pthread_mutex_unlock(&table->lock);
    if (spare)
        inode_free(spare);
    return inode;
}

#define INODE_NOWHERE ((dev_t)-1) /* a device that is none */

struct inode *inode_take_gone(struct inode_table *table, mode_t type)
{
    const struct stat stat = {.st_dev = INODE_NOWHERE, .st_mode = type};
    struct inode *made = inode_new(-1, &stat);
    if (!made)
        return NULL;
    made->number = (uintptr_t)made;
    pthread_mutex_lock(&table->lock);
    inode_insert(table, made);
    pthread_mutex_unlock(&table->lock);
    return made;
}

void inode_look(struct inode_table *table, struct inode *inode, uint64_t parent, const char *name)
{
    pthread_mutex_lock(&table->lock);
    inode_use(table, inode, parent, name);
    pthread_mutex_unlock(&table->lock);
}

void inode_forget(struct inode_table *table, struct inode *inode, uint64_t lookups)
{
    if (inode == table->root)
        return;
    pthread_mutex_lock(&table->lock);
    inode->lookups -= lookups;
    const bool is_last = inode->lookups == 0;
    if (is_last) {
        struct inode **from = &table->slots[inode_slot(table, inode->device, inode->number)];
        while (*from != inode)
            from = &(*from)->next;
        *from = inode->next;
        TAILQ_REMOVE(&table->used, inode, used);
        table->count--;
    }
    pthread_mutex_unlock(&table->lock);
    if (is_last)
        inode_free(inode);
}

void inode_open(struct inode_table *table, struct inode *inode, int by)
{
    pthread_mutex_lock(&table->lock);
    inode->opened += (uint64_t)(int64_t)by;
    pthread_mutex_unlock(&table->lock);
}

/* The next one to be trimmed goes to the end: it may be in use without being open, and is then found again last. */
static char *inode_oldest(struct inode_table *table, size_t *budget, uint64_t *parent)
{
    while (*budget > 0) {
        struct inode *inode = TAILQ_FIRST(&table->used);
        --*budget;
        TAILQ_REMOVE(&table->used, inode, used);
        TAILQ_INSERT_TAIL(&table->used, inode, used);
        if (S_ISDIR(inode->type) || inode->opened > 0 || !inode->name)
            continue;
        *parent = inode->parent;
        return strdup(inode->name);
    }
    return NULL;
}

void inode_trim(struct inode_table *table, void (*forget)(void *context, uint64_t parent, const char *name), void *context)
{
    pthread_mutex_lock(&table->lock);
    while (!table->is_crowded)
        pthread_cond_wait(&table->crowded, &table->lock);
    table->is_crowded = false;
    size_t budget = table->count, goal = table->count / 4;
    while (goal-- > 0) {
        uint64_t parent;
        if (budget > table->count)
            budget = table->count;
        char *name = inode_oldest(table, &budget, &parent);
        if (!name)
            break;
        pthread_mutex_unlock(&table->lock);
        forget(context, parent, name);
        free(name);
        pthread_mutex_lock(&table->lock);
    }
    pthread_mutex_unlock(&table->lock);
}
