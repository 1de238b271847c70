/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The file of an index, as a process reads it. */

#include "fuzz.h"
#include "index/table.h"

static bool is_behind(const struct table_record *record, const struct table_record *before)
{
    if (record->hash != before->hash)
        return record->hash > before->hash;
    int order = memcmp(record->key, before->key, record->length < before->length ? record->length : before->length);
    return order > 0 || (order == 0 && record->length > before->length);
}

static void fuzz_index_look(const struct table *table, const struct table_map *map)
{
    struct table_record record = {0}, before;
    uint8_t value[TABLE_VALUE];
    int code;
    do {
        before = record;
        const struct table_key key = {.hash = record.hash, .bytes = record.key, .length = record.length};
        table_get(table, map, &key, value);
        code = table_next(table, map, &record);
        fuzz_must(code <= 0 || is_behind(&record, &before));
    } while (code > 0);
}

static void look_into_all(const struct table *table)
{
    struct table_record thing = {0};
    while (table_next(table, &table_head(table)->things, &thing) > 0) {
        struct table_branch *branch;
        struct table_dir *dir;
        uint32_t reference;
        struct dirid id;
        if (thing.length != sizeof id)
            continue;
        memcpy(&id, thing.key, sizeof id);
        if (table_find(table, id, sizeof *dir, &reference, &dir) == 0)
            fuzz_index_look(table, &dir->names);
        table_find(table, table_branch_id((uint16_t)id.birth), sizeof *branch, &reference, &branch);
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
