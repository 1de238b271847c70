/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "wire/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* What a type has in its bytes after what all begin with: the fields of its row, in that order, of which texts are the last. A
 * type has one text of each kind of length at most, which the beginning says. */
enum message_field_kind {
    FIELD_NONE = 0, /* the row ends */
    FIELD_DIRID,
    FIELD_ENTRY,
    FIELD_U64,
    FIELD_U32,
    FIELD_U16,
    FIELD_BOOL,
    FIELD_FIRST,       /* up to 255 bytes */
    FIELD_FIRST_NAME,  /* ... that are a name */
    FIELD_SECOND,      /* likewise */
    FIELD_SECOND_NAME, /* ... */
    FIELD_TEXT,        /* up to 4095 bytes */
    FIELD_PATH,        /* ... at least one, and no zero */
};

enum { TEXT_FIRST, TEXT_SECOND, TEXT_LONG, TEXTS };

struct message_field {
    uint8_t kind;
    uint8_t offset; /* in struct message */
};

#define MESSAGE_FIELDS_MAX 13
#define FIELD(KIND, MEMBER)                                                                                                    \
    {                                                                                                                          \
        FIELD_##KIND, offsetof(struct message, MEMBER)                                                                         \
    }
#define DIR FIELD(DIRID, dir)
#define NAME FIELD(FIRST_NAME, name)
#define EPOCH FIELD(U32, epoch)
#define ENTRY_OF(MEMBER) FIELD(ENTRY, MEMBER.entry)
#define BRANCH_OF(MEMBER) FIELD(SECOND, MEMBER.branch)
#define RECORD_OF(MEMBER)                                                                                                      \
    FIELD(U64, MEMBER.record.marker), FIELD(U64, MEMBER.record.version), FIELD(BOOL, MEMBER.record.marked),                    \
        FIELD(BOOL, MEMBER.record.unlisted), FIELD(BOOL, MEMBER.record.watched), FIELD(FIRST, MEMBER.record.mirror)
#define TIMES_OF(MEMBER)                                                                                                       \
    FIELD(U64, MEMBER.round), FIELD(U64, MEMBER.changed), FIELD(U64, MEMBER.settled), FIELD(BOOL, MEMBER.written)

_Static_assert(sizeof(struct message) <= UINT8_MAX, "an offset is one byte");
_Static_assert(sizeof(struct message) - offsetof(struct message, coordinator_answer) ==
                   sizeof((struct message *)0)->coordinator_answer,
               "the first body is the largest");

static const struct message_field message_rows[MESSAGE_TYPES][MESSAGE_FIELDS_MAX + 1] = {
    [MESSAGE_LOAD] = {DIR, FIELD(PATH, load.path)},
    [MESSAGE_LOOKUP] = {DIR, NAME},
    [MESSAGE_CREATE] = {DIR, FIELD(ENTRY, create.entry), NAME},
    [MESSAGE_COMMIT] = {DIR, FIELD(ENTRY, commit.entry), FIELD(DIRID, commit.child), NAME},
    [MESSAGE_ABORT] = {DIR, NAME},
    [MESSAGE_ADOPT] = {DIR, FIELD(ENTRY, found.entry), NAME},
    [MESSAGE_VANISHED] = {DIR, FIELD(ENTRY, found.entry), NAME},
    [MESSAGE_UNLINK] = {DIR, NAME},
    [MESSAGE_UNLINKED] = {DIR, NAME},
    [MESSAGE_RENAME] = {DIR, FIELD(DIRID, rename.to_dir), FIELD(ENTRY, rename.found), NAME, FIELD(SECOND_NAME, rename.to_name)},
    [MESSAGE_RENAMED] = {DIR, FIELD(DIRID, rename.to_dir), FIELD(DIRID, rename.replaced), NAME,
                         FIELD(SECOND_NAME, rename.to_name)},
    [MESSAGE_RMDIR] = {DIR, FIELD(DIRID, rmdir.child), NAME},
    [MESSAGE_PROMOTE] = {DIR, NAME},
    [MESSAGE_ATTRIBUTES] = {DIR},
    [MESSAGE_SETTLE] = {DIR, FIELD(U64, settle.round)},
    [MESSAGE_SYNC] = {DIR},
    [MESSAGE_WATCH] = {DIR},
    [MESSAGE_PLACE] = {NAME},
    [MESSAGE_LIST] = {DIR, FIELD(U64, list.from), FIELD(U64, list.room), FIELD(U64, list.to)},
    [MESSAGE_VISITED] = {DIR, FIELD(ENTRY, found.entry), FIELD(FIRST, name)},
    [MESSAGE_ANSWER] = {FIELD(ENTRY, answer.entry[0]), FIELD(FIRST, answer.place[0])},
    [MESSAGE_RENAME_ANSWER] = {FIELD(ENTRY, answer.entry[0]), FIELD(ENTRY, answer.entry[1]), FIELD(FIRST, answer.place[0]),
                               FIELD(SECOND, answer.place[1])},
    [MESSAGE_TEXT_ANSWER] = {DIR, FIELD(U64, text_answer.limit), FIELD(U32, text_answer.bulk), FIELD(TEXT, text_answer.text)},
    [MESSAGE_NAME_QUESTION] = {DIR, EPOCH, FIELD(U16, name_question.op), ENTRY_OF(name_question.entry), NAME,
                               BRANCH_OF(name_question.entry)},
    [MESSAGE_NAME_ANSWER] = {DIR, EPOCH, ENTRY_OF(name_answer.entry), BRANCH_OF(name_answer.entry)},
    [MESSAGE_LISTED] = {DIR, EPOCH, FIELD(U64, listed.load_number), ENTRY_OF(listed.entry), NAME, BRANCH_OF(listed.entry)},
    [MESSAGE_MARK] = {DIR, FIELD(U32, leaf.leaf)},
    [MESSAGE_FREEZE] = {DIR, FIELD(U64, freeze.tried)},
    [MESSAGE_THAW] = {DIR},
    [MESSAGE_DROP] = {DIR},
    [MESSAGE_DIR_CREATED] = {DIR, FIELD(PATH, load.path)},
    [MESSAGE_RETURN] = {DIR, FIELD(U64, delegation.number)},
    [MESSAGE_COORDINATOR_ANSWER] = {DIR, FIELD(U32, coordinator_answer.node_count),
                                    FIELD(BOOL, coordinator_answer.leaf_is_made), FIELD(U32, coordinator_answer.why),
                                    FIELD(U64, coordinator_answer.delegation), FIELD(U64, coordinator_answer.names),
                                    RECORD_OF(coordinator_answer)},
    [MESSAGE_LOADED] = {DIR, EPOCH, RECORD_OF(record), FIELD(TEXT, record.path)},
    [MESSAGE_RECORD] = {DIR, RECORD_OF(record), FIELD(TEXT, record.path)},
    [MESSAGE_MOVED] = {FIELD(TEXT, moved.paths)},
    [MESSAGE_FENCE] = {FIELD(U64, fence.operation), FIELD(U16, fence.member), FIELD(BOOL, fence.ends)},
    [MESSAGE_HAS_MOVED] = {EPOCH},
    [MESSAGE_COLLECTIVE_ANSWER] = {FIELD(U64, collective_answer.limit), FIELD(U32, collective_answer.hops),
                                   FIELD(BOOL, collective_answer.lost)},
    [MESSAGE_NODES] = {DIR, FIELD(U32, nodes.count)},
    [MESSAGE_LEAF_VISITED] = {DIR, FIELD(U32, leaf.leaf)},
    [MESSAGE_IDLE] = {DIR},
    [MESSAGE_TIMES] = {DIR, TIMES_OF(times)},
    [MESSAGE_AWAITED] = {DIR},
    [MESSAGE_RECALL] = {DIR, FIELD(U64, delegation.number)},
    [MESSAGE_MIGRATED_DIR] = {DIR, EPOCH, FIELD(U64, migrated_dir.load_number), FIELD(BOOL, migrated_dir.frozen),
                              RECORD_OF(migrated_dir), FIELD(TEXT, migrated_dir.path)},
    [MESSAGE_MIGRATED_ENTRY] = {DIR, EPOCH, ENTRY_OF(migrated_entry.entry), NAME, BRANCH_OF(migrated_entry.entry)},
    [MESSAGE_MIGRATED_CLAIM] = {DIR, EPOCH, FIELD(U64, migrated_claim.operation), FIELD(U16, migrated_claim.member),
                                ENTRY_OF(migrated_claim.shown), NAME, BRANCH_OF(migrated_claim.shown)},
    [MESSAGE_MIGRATED_RECORD] = {DIR, EPOCH, RECORD_OF(record), FIELD(TEXT, record.path)},
    [MESSAGE_MIGRATED_COORDINATOR] = {DIR, EPOCH, FIELD(U64, migrated_coordinator.delegation),
                                      TIMES_OF(migrated_coordinator.times), FIELD(BOOL, migrated_coordinator.loaded),
                                      FIELD(BOOL, migrated_coordinator.created_empty),
                                      FIELD(BOOL, migrated_coordinator.closing), FIELD(BOOL, migrated_coordinator.sharded),
                                      FIELD(TEXT, migrated_coordinator.nodes)},
    [MESSAGE_MIGRATED_ALL] = {EPOCH},
    [MESSAGE_EVICT] = {DIR, EPOCH, FIELD(U64, evict.idle)},
    [MESSAGE_EVICTED] = {DIR},
    [MESSAGE_SHARE] = {DIR, EPOCH, FIELD(U64, share.load_number), FIELD(FIRST, share.mirror), FIELD(TEXT, share.branches)},
    [MESSAGE_AWAIT_THAW] = {DIR},
};

static const uint16_t message_text_max[TEXTS] = {MESSAGE_NAME_MAX, MESSAGE_NAME_MAX, MESSAGE_TEXT_MAX};

static int message_text_index(uint8_t kind)
{
    return kind >= FIELD_TEXT ? TEXT_LONG : kind >= FIELD_SECOND ? TEXT_SECOND : TEXT_FIRST;
}

static void *message_at(const struct message *m, const struct message_field *field)
{
    return (char *)m + field->offset;
}

static size_t message_field_size(const struct message *m, const struct message_field *field)
{
    static const uint8_t sizes[] = {
        [FIELD_DIRID] = 16, [FIELD_ENTRY] = 16, [FIELD_U64] = 8, [FIELD_U32] = 4, [FIELD_U16] = 2, [FIELD_BOOL] = 1};
    return field->kind < FIELD_FIRST ? sizes[field->kind] : ((const struct message_text *)message_at(m, field))->length;
}

uint16_t message_answer_type(uint16_t request)
{
    switch (request) {
    case MESSAGE_RENAME:
        return MESSAGE_RENAME_ANSWER;
    case MESSAGE_STATUS:
    case MESSAGE_LIST:
    case MESSAGE_PLACE:
        return MESSAGE_TEXT_ANSWER;
    default:
        return MESSAGE_ANSWER;
    }
}

size_t message_size(const struct message *m)
{
    size_t size = MESSAGE_FIXED;
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return 0;
    for (const struct message_field *field = message_rows[m->type]; field->kind != FIELD_NONE; field++)
        size += message_field_size(m, field);
    return size;
}

struct message_text *message_text_of(struct message *m)
{
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return NULL;
    for (const struct message_field *field = message_rows[m->type]; field->kind != FIELD_NONE; field++)
        if (field->kind >= FIELD_TEXT)
            return message_at(m, field);
    return NULL;
}

/* Numbers are little-endian: the hosts that share a message are of one kind of machine in practice, and x86_64 and aarch64
 * are both little-endian. Fields are copied singly, so that no padding travels. */
static uint8_t *message_put(uint8_t *to, const void *field, size_t size)
{
    memcpy(to, field, size);
    return to + size;
}

static const uint8_t *message_take(const uint8_t *from, void *field, size_t size)
{
    memcpy(field, from, size);
    return from + size;
}

static uint8_t *message_put_field(uint8_t *to, uint8_t kind, const void *value)
{
    switch (kind) {
    case FIELD_DIRID:
        return message_put(to, value, 16);
    case FIELD_ENTRY:
        return to + record_entry_encode(to, value);
    case FIELD_U64:
        return message_put(to, value, 8);
    case FIELD_U32:
        return message_put(to, value, 4);
    case FIELD_U16:
        return message_put(to, value, 2);
    default:
        *to = *(const bool *)value;
        return to + 1;
    }
}

/* An entry on the wire may be unset, all zero, which is no valid record. */
static bool message_take_entry(const uint8_t *from, struct record_entry *entry)
{
    static const uint8_t unset[16];
    return memcmp(from, unset, sizeof unset) == 0 || record_entry_decode(entry, from, 16) == 0;
}

static const uint8_t *message_take_field(const uint8_t *from, uint8_t kind, void *value, bool *valid)
{
    switch (kind) {
    case FIELD_DIRID:
        return message_take(from, value, 16);
    case FIELD_ENTRY:
        *valid &= message_take_entry(from, value);
        return from + 16;
    case FIELD_U64:
        return message_take(from, value, 8);
    case FIELD_U32:
        return message_take(from, value, 4);
    case FIELD_U16:
        return message_take(from, value, 2);
    default:
        *valid &= *from <= 1;
        *(bool *)value = *from == 1;
        return from + 1;
    }
}

/* What all begin with. */
static uint8_t *message_put_head(uint8_t *to, const struct message *m, const uint16_t lengths[TEXTS])
{
    const uint16_t version = WIRE_VERSION;
    to = message_put(to, &version, 2);
    to = message_put(to, &m->type, 2);
    to = message_put(to, &m->flags, 2);
    to = message_put(to, lengths, 2 * TEXTS);
    to = message_put(to, &m->tag, 4);
    return message_put(to, &m->result, 4);
}

size_t message_encode(uint8_t *to, size_t size, const struct message *m)
{
    uint8_t *const start = to;
    const size_t needed = message_size(m);
    uint16_t lengths[TEXTS] = {0};
    if (needed == 0 || needed > size)
        return 0;
    const struct message_field *field = message_rows[m->type];
    for (to += MESSAGE_FIXED; field->kind - 1u < FIELD_FIRST - 1u; field++)
        to = message_put_field(to, field->kind, message_at(m, field));
    for (; field->kind != FIELD_NONE; field++) {
        const struct message_text *text = message_at(m, field);
        const int i = message_text_index(field->kind);
        if (text->length > message_text_max[i])
            return 0;
        lengths[i] = text->length;
        if (text->length > 0)
            to = message_put(to, text->text, text->length);
    }
    message_put_head(start, m, lengths);
    return needed;
}

static bool message_is_name(const char *name, size_t length)
{
    if (length == 0 || memchr(name, '/', length) != NULL || memchr(name, '\0', length) != NULL)
        return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

static bool message_text_is_valid(uint8_t kind, const struct message_text *text)
{
    switch (kind) {
    case FIELD_FIRST_NAME:
    case FIELD_SECOND_NAME:
        return message_is_name(text->text, text->length);
    case FIELD_PATH:
        return text->length > 0 && memchr(text->text, '\0', text->length) == NULL;
    default:
        return true;
    }
}

/* The texts from `field` on, which end the bytes. */
static bool message_take_texts(struct message *m, const struct message_field *field, uint16_t lengths[TEXTS],
                               const uint8_t *bytes, const uint8_t *end)
{
    for (; field->kind != FIELD_NONE; field++) {
        const int i = message_text_index(field->kind);
        struct message_text *text = message_at(m, field);
        if (lengths[i] > message_text_max[i] || lengths[i] > end - bytes)
            return false;
        *text = (struct message_text){(const char *)bytes, lengths[i]};
        if (!message_text_is_valid(field->kind, text))
            return false;
        bytes += lengths[i];
        lengths[i] = 0;
    }
    return bytes == end && (lengths[TEXT_FIRST] | lengths[TEXT_SECOND] | lengths[TEXT_LONG]) == 0;
}

int message_decode(struct message *m, const uint8_t *bytes, size_t size)
{
    const uint8_t *const end = bytes + size;
    uint16_t version, lengths[TEXTS];
    bool valid = true;
    if (size < MESSAGE_FIXED)
        return -EBADMSG;
    memset(m, 0, sizeof *m);
    bytes = message_take(bytes, &version, 2);
    if (version != WIRE_VERSION)
        return -EPROTO;
    bytes = message_take(bytes, &m->type, 2);
    bytes = message_take(bytes, &m->flags, 2);
    bytes = message_take(bytes, lengths, sizeof lengths);
    bytes = message_take(bytes, &m->tag, 4);
    bytes = message_take(bytes, &m->result, 4);
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return -EBADMSG;
    const struct message_field *field = message_rows[m->type];
    for (; field->kind - 1u < FIELD_FIRST - 1u; field++) {
        if (end - bytes < (ptrdiff_t)message_field_size(m, field))
            return -EBADMSG;
        bytes = message_take_field(bytes, field->kind, message_at(m, field), &valid);
    }
    return valid && message_take_texts(m, field, lengths, bytes, end) ? 0 : -EBADMSG;
}
