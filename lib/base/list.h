/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A doubly linked list that lives inside the things it links. A link that is on no list points at itself. */

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *next, *previous;
};

#define LINK_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void list_init(struct link *list)
{
    list->next = list->previous = list;
}

static inline bool list_empty(const struct link *list)
{
    return list->next == list;
}

/* The same without the lock that others append under: a thread that was told of it since (by a futex, a doorbell) sees what
 * they appended before. */
static inline bool list_seems_empty(const struct link *list)
{
    return __atomic_load_n(&list->next, __ATOMIC_ACQUIRE) == list;
}

static inline void list_append(struct link *list, struct link *one)
{
    one->next = list;
    one->previous = list->previous;
    __atomic_store_n(&list->previous->next, one, __ATOMIC_RELEASE);
    list->previous = one;
}

static inline void list_remove(struct link *one)
{
    one->previous->next = one->next;
    one->next->previous = one->previous;
    list_init(one);
}

/* Takes the first, or NULL. */
static inline struct link *list_take(struct link *list)
{
    struct link *first = list->next;
    if (first == list)
        return NULL;
    list_remove(first);
    return first;
}

/* Moves all of `from` to the end of `to`. */
static inline void list_move(struct link *to, struct link *from)
{
    if (list_empty(from))
        return;
    from->next->previous = to->previous;
    from->previous->next = to;
    to->previous->next = from->next;
    to->previous = from->previous;
    list_init(from);
}
