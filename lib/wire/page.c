/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "wire/page.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

bool page_add(char *page, size_t size, size_t *used, const struct page_name *name)
{
    const uint64_t hash = htole64(name->hash), ino = htole64(name->entry.ino);
    const uint8_t rest[] = {name->entry.type, name->entry.state, name->entry.branch != 0,
                            (uint8_t)name->length};
    char *to = page + *used;
    if (name->length > RECORD_NAME_MAX || size - *used < PAGE_NAME_FIXED + name->length)
        return false;
    memcpy(to, &hash, 8);
    memcpy(to + 8, &ino, 8);
    memcpy(to + 16, rest, sizeof rest);
    memcpy(to + PAGE_NAME_FIXED, name->name, name->length);
    *used += PAGE_NAME_FIXED + name->length;
    return true;
}

static bool is_name(const struct page_name *name)
{
    return name->length > 0 && memchr(name->name, '/', name->length) == NULL &&
           memchr(name->name, '\0', name->length) == NULL && name->hash > 2 &&
           name->entry.state >= RECORD_LIVE && name->entry.state <= RECORD_DYING && name->entry.type <= 15 &&
           name->entry.branch <= 1;
}

int page_next(const char *page, size_t size, size_t *at, struct page_name *name)
{
    const char *from = page + *at;
    if (*at == size)
        return 0;
    if (size - *at < PAGE_NAME_FIXED)
        return -EBADMSG;
    memcpy(&name->hash, from, 8);
    memcpy(&name->entry.ino, from + 8, 8);
    name->hash = le64toh(name->hash);
    name->entry = (struct record_entry){.ino = le64toh(name->entry.ino),
                                        .type = (uint8_t)from[16],
                                        .state = (uint8_t)from[17],
                                        .branch = (uint8_t)from[18]};
    name->length = (uint8_t)from[19];
    name->name = from + PAGE_NAME_FIXED;
    if (size - *at - PAGE_NAME_FIXED < name->length || !is_name(name))
        return -EBADMSG;
    *at += PAGE_NAME_FIXED + name->length;
    return 1;
}
