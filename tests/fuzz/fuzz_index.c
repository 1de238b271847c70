/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The file of an index, as a process reads it. */

#include "fuzz.h"
#include "index/table.h"

static void look(const struct table *table, const struct table_map *map)
{
    struct table_record record = {0}, before;
    uint8_t value[TABLE_VALUE];
    do {
        before = record;
        const struct table_key key = {.hash = record.hash, .bytes = record.key, .length = record.length};
        table_get(table, map, &key, value);
    } while (table_next(table, map, &record) == 1 && (fuzz_must(record.hash >= before.hash), true));
}

static void look_into_all(const struct table *table)
{
    struct table_record thing = {0};
    while (table_next(table, &table_head(table)->things, &thing) == 1) {
        struct table_branch *branch;
        struct table_dir *dir;
        struct dirid id;
        if (thing.length != sizeof id)
            continue;
        memcpy(&id, thing.key, sizeof id);
        if (table_find_dir(table, id, &dir) == 0)
            look(table, &dir->names);
        table_find_branch(table, (uint16_t)id.birth, &branch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(struct table_head))
        return 0;
    struct table table = {.at = malloc(size), .size = size};
    memcpy(table.at, data, size);
    look_into_all(&table);
    table_head(&table)->end = size;
    look_into_all(&table);
    free(table.at);
    return 0;
}
