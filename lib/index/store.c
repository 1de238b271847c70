/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/store.h"

#include <errno.h>
#include <string.h>

static const char magic[8] = "shuntix";

void store_stamp_encode(uint8_t to[STORE_STAMP_SIZE], const struct index_stamp *stamp)
{
    uint64_t fields[3] = {stamp->session, stamp->root.ino, stamp->root.birth};
    memcpy(to, magic, sizeof magic);
    to[7] = RECORD_FORMAT;
    memcpy(to + sizeof magic, fields, sizeof fields);
}

int store_stamp_check(const MDB_val *value, const struct index_stamp *expected)
{
    uint8_t wanted[STORE_STAMP_SIZE];
    store_stamp_encode(wanted, expected);
    if (value->mv_size != sizeof wanted || memcmp(value->mv_data, wanted, sizeof magic) != 0)
        return -EBADMSG;
    return memcmp(value->mv_data, wanted, sizeof wanted) == 0 ? 0 : -ESTALE;
}

void store_branch_key(struct record_key *key, uint16_t number)
{
    record_key_from(key, (struct dirid){0, 0}, number);
}

int store_error(int code)
{
    switch (code) {
    case MDB_SUCCESS:
        return 0;
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_KEYEXIST:
        return -EEXIST;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
        return -ENOSPC;
    case MDB_READERS_FULL:
        return -EMFILE;
    case MDB_MAP_RESIZED:
        return -EOVERFLOW;
    case MDB_BAD_RSLOT:
        return -ESTALE;
    case MDB_CORRUPTED:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
        return -EBADMSG;
    default:
        return code > 0 ? -code : -EBADMSG;
    }
}

int store_each(const MDB_val *key, const MDB_val *value, index_each *each, void *context)
{
    const uint8_t *bytes = key->mv_data;
    struct record_entry entry;
    uint64_t hash = 0;
    int code = record_entry_decode(&entry, value->mv_data, value->mv_size);
    if (code != 0)
        return code;
    for (int i = 16; i < 24; i++)
        hash = hash << 8 | bytes[i];
    return each(context, hash, (const char *)bytes + 24, key->mv_size - 24, &entry);
}
