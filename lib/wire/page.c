/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "wire/page.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

bool page_add(char *page, size_t size, size_t *used, const struct page_name *name)
{
    const uint64_t numbers[] = {htole64(name->hash), htole64(name->entry.ino)};
    const uint32_t place[] = {htole32(name->branch), htole32(name->entry.leaf)};
    const uint8_t rest[] = {name->entry.type, name->entry.state, (uint8_t)name->length};
    char *to = page + *used;
    if (name->length > RECORD_NAME_MAX || size - *used < PAGE_NAME_FIXED + name->length)
        return false;
    memcpy(to, numbers, 16);
    memcpy(to + 16, place, 8);
    memcpy(to + 24, rest, sizeof rest);
    memcpy(to + PAGE_NAME_FIXED, name->name, name->length);
    *used += PAGE_NAME_FIXED + name->length;
    return true;
}

static bool page_is_name(const struct page_name *name)
{
    return name->length > 0 && memchr(name->name, '/', name->length) == NULL &&
           memchr(name->name, '\0', name->length) == NULL && name->hash > 2 && name->entry.state >= RECORD_LIVE &&
           name->entry.state <= RECORD_DYING && name->entry.type <= 15 && (name->branch != 0 || name->entry.leaf == 0);
}

int page_next(const char *page, size_t size, size_t *at, struct page_name *name)
{
    const char *from = page + *at;
    if (*at == size)
        return 0;
    if (size - *at < PAGE_NAME_FIXED)
        return -EBADMSG;
    uint64_t numbers[2];
    uint32_t place[2];
    memcpy(numbers, from, 16);
    memcpy(place, from + 16, 8);
    name->hash = le64toh(numbers[0]);
    name->branch = le32toh(place[0]);
    name->entry = (struct record_entry){.ino = le64toh(numbers[1]),
                                        .leaf = le32toh(place[1]),
                                        .type = (uint8_t)from[24],
                                        .state = (uint8_t)from[25],
                                        .branch = name->branch != 0};
    name->length = (uint8_t)from[26];
    name->name = from + PAGE_NAME_FIXED;
    if (size - *at - PAGE_NAME_FIXED < name->length || !page_is_name(name))
        return -EBADMSG;
    *at += PAGE_NAME_FIXED + name->length;
    return 1;
}

int page_order(const struct page_name *a, const struct page_name *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    int names = memcmp(a->name, b->name, a->length < b->length ? a->length : b->length);
    return names != 0 ? names : (a->length > b->length) - (a->length < b->length);
}

/* Is all that both know together just what one of them knows? */
static bool page_is_all(const struct page_part *part, const struct page_part *other, size_t size)
{
    return other->size == 0 && part->size <= size && part->limit <= other->limit;
}

uint64_t page_merge(char *to, size_t size, size_t *used, const struct page_part parts[2])
{
    uint64_t limit = parts[0].limit < parts[1].limit ? parts[0].limit : parts[1].limit;
    for (int i = 0; i < 2; i++)
        if (page_is_all(&parts[i], &parts[1 - i], size)) {
            *used = parts[i].size;
            if (*used > 0)
                memcpy(to, parts[i].page, *used);
            return limit;
        }
    struct page_name names[2];
    size_t next[2] = {0, 0};
    bool there[2];
    *used = 0;
    for (int i = 0; i < 2; i++)
        there[i] = page_next(parts[i].page, parts[i].size, &next[i], &names[i]) == 1;
    while (there[0] || there[1]) {
        int compared = !there[1] ? -1 : !there[0] ? 1 : page_order(&names[0], &names[1]);
        int which = compared <= 0 ? 0 : 1;
        if (names[which].hash > limit)
            break;
        if (!page_add(to, size, used, &names[which]))
            return names[which].hash - 1;
        for (int i = 0; i < 2; i++)
            if (i == which || compared == 0)
                there[i] = page_next(parts[i].page, parts[i].size, &next[i], &names[i]) == 1;
    }
    return limit;
}
