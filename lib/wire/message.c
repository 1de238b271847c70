/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "wire/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* What a type has in its bytes after what all begin with: its fields in the order of its row, then its texts. A type has one
 * text of each kind of length at most: the header says how long they are. */
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
#define PLACED(MEMBER) FIELD(ENTRY, MEMBER.entry), FIELD(SECOND, MEMBER.branch)
#define RECORD_OF(MEMBER)                                                                                                      \
    FIELD(U64, MEMBER.record.marker), FIELD(U64, MEMBER.record.version), FIELD(BOOL, MEMBER.record.marked),                    \
        FIELD(BOOL, MEMBER.record.unlisted), FIELD(BOOL, MEMBER.record.watched), FIELD(FIRST, MEMBER.record.mirror)
#define TIMES_OF(MEMBER)                                                                                                       \
    FIELD(U64, MEMBER.round), FIELD(U64, MEMBER.changed), FIELD(U64, MEMBER.settled), FIELD(BOOL, MEMBER.written)

_Static_assert(sizeof(struct message) <= UINT8_MAX, "an offset is one byte");

static const struct message_field message_rows[MESSAGE_TYPES][MESSAGE_FIELDS_MAX + 1] = {
    [MESSAGE_LOAD] = {DIR, FIELD(PATH, load.path)},
    [MESSAGE_LOOKUP] = {DIR, NAME},
    [MESSAGE_CREATE] = {DIR, NAME, FIELD(ENTRY, create.entry)},
    [MESSAGE_COMMIT] = {DIR, NAME, FIELD(ENTRY, commit.entry), FIELD(DIRID, commit.child)},
    [MESSAGE_ABORT] = {DIR, NAME},
    [MESSAGE_ADOPT] = {DIR, NAME, FIELD(ENTRY, found.entry)},
    [MESSAGE_VANISHED] = {DIR, NAME, FIELD(ENTRY, found.entry)},
    [MESSAGE_UNLINK] = {DIR, NAME},
    [MESSAGE_UNLINKED] = {DIR, NAME},
    [MESSAGE_RENAME] = {DIR, NAME, FIELD(DIRID, rename.to_dir), FIELD(SECOND_NAME, rename.to_name)},
    [MESSAGE_RENAMED] = {DIR, NAME, FIELD(DIRID, rename.to_dir), FIELD(DIRID, rename.replaced),
                         FIELD(SECOND_NAME, rename.to_name)},
    [MESSAGE_RMDIR] = {DIR, NAME, FIELD(DIRID, rmdir.child)},
    [MESSAGE_PROMOTE] = {DIR, NAME},
    [MESSAGE_ATTRIBUTES] = {DIR},
    [MESSAGE_SETTLE] = {DIR, FIELD(U64, settle.round)},
    [MESSAGE_SYNC] = {DIR},
    [MESSAGE_WATCH] = {DIR},
    [MESSAGE_PLACE] = {NAME},
    [MESSAGE_LIST] = {DIR, FIELD(U64, list.from), FIELD(U64, list.room), FIELD(U64, list.to)},
    [MESSAGE_VISITED] = {DIR, FIELD(FIRST, name), FIELD(ENTRY, found.entry)},
    [MESSAGE_ANSWER] = {DIR, FIELD(ENTRY, answer.entry[0]), FIELD(ENTRY, answer.entry[1]), FIELD(U64, answer.limit),
                        FIELD(U32, answer.bulk), FIELD(FIRST, answer.place[0]), FIELD(SECOND, answer.place[1]),
                        FIELD(TEXT, answer.text)},
    [MESSAGE_NAME_QUESTION] = {DIR, NAME, EPOCH, FIELD(U16, name_question.op), PLACED(name_question.entry)},
    [MESSAGE_NAME_ANSWER] = {DIR, EPOCH, PLACED(name_answer.entry)},
    [MESSAGE_LISTED] = {DIR, NAME, EPOCH, FIELD(U64, listed.load_number), PLACED(listed.entry)},
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
    [MESSAGE_MIGRATED_ENTRY] = {DIR, NAME, EPOCH, PLACED(migrated_entry.entry)},
    [MESSAGE_MIGRATED_CLAIM] = {DIR, NAME, EPOCH, FIELD(U64, migrated_claim.operation), FIELD(U16, migrated_claim.member),
                                PLACED(migrated_claim.shown)},
    [MESSAGE_MIGRATED_RECORD] = {DIR, EPOCH, RECORD_OF(record), FIELD(TEXT, record.path)},
    [MESSAGE_MIGRATED_COORDINATOR] = {DIR, EPOCH, FIELD(U64, migrated_coordinator.delegation),
                                      TIMES_OF(migrated_coordinator.times), FIELD(BOOL, migrated_coordinator.loaded),
                                      FIELD(BOOL, migrated_coordinator.created_empty),
                                      FIELD(BOOL, migrated_coordinator.closing), FIELD(BOOL, migrated_coordinator.sharded),
                                      FIELD(TEXT, migrated_coordinator.nodes)},
    [MESSAGE_MIGRATED_ALL] = {EPOCH},
};

static const uint8_t message_sizes[] = {
    [FIELD_DIRID] = 16, [FIELD_ENTRY] = 16, [FIELD_U64] = 8,  [FIELD_U32] = 4,
    [FIELD_U16] = 2,    [FIELD_BOOL] = 1,   [FIELD_PATH] = 0,
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

/* The fixed fields, and the texts by their kinds of length: NULL where the type has none. */
struct message_layout {
    size_t fixed;
    const struct message_field *text[TEXTS];
};

static void message_lay_out(uint16_t type, struct message_layout *layout)
{
    *layout = (struct message_layout){.fixed = MESSAGE_FIXED};
    for (const struct message_field *field = message_rows[type]; field->kind != FIELD_NONE; field++) {
        layout->fixed += message_sizes[field->kind];
        if (field->kind >= FIELD_FIRST)
            layout->text[message_text_index(field->kind)] = field;
    }
}

static const struct message_text *message_text_in(const struct message *m, const struct message_layout *layout, int i)
{
    static const struct message_text none;
    return layout->text[i] != NULL ? message_at(m, layout->text[i]) : &none;
}

static size_t message_size_of(const struct message *m, const struct message_layout *layout)
{
    size_t size = layout->fixed;
    for (int i = 0; i < TEXTS; i++)
        size += message_text_in(m, layout, i)->length;
    return size;
}

size_t message_size(const struct message *m)
{
    struct message_layout layout;
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return 0;
    message_lay_out(m->type, &layout);
    return message_size_of(m, &layout);
}

struct message_text *message_text_of(struct message *m)
{
    struct message_layout layout;
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return NULL;
    message_lay_out(m->type, &layout);
    return layout.text[TEXT_LONG] != NULL ? message_at(m, layout.text[TEXT_LONG]) : NULL;
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

static uint8_t *message_put_field(uint8_t *to, const struct message *m, const struct message_field *field)
{
    const void *value = message_at(m, field);
    switch (field->kind) {
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
    case FIELD_BOOL:
        *to = *(const bool *)value;
        return to + 1;
    default:
        return to;
    }
}

/* An entry on the wire may be unset, all zero, which is no valid record. */
static bool message_take_entry(const uint8_t *from, struct record_entry *entry)
{
    static const uint8_t unset[16];
    return memcmp(from, unset, sizeof unset) == 0 || record_entry_decode(entry, from, 16) == 0;
}

static const uint8_t *message_take_field(const uint8_t *from, struct message *m, const struct message_field *field, bool *valid)
{
    void *value = message_at(m, field);
    switch (field->kind) {
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
    case FIELD_BOOL:
        *valid &= *from <= 1;
        *(bool *)value = *from == 1;
        return from + 1;
    default:
        return from;
    }
}

size_t message_encode(uint8_t *to, size_t size, const struct message *m)
{
    const uint16_t version = WIRE_VERSION;
    const uint8_t *start = to;
    struct message_layout layout;
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return 0;
    message_lay_out(m->type, &layout);
    if (message_size_of(m, &layout) > size)
        return 0;
    to = message_put(to, &version, 2);
    to = message_put(to, &m->type, 2);
    to = message_put(to, &m->flags, 2);
    for (int i = 0; i < TEXTS; i++) {
        const struct message_text *text = message_text_in(m, &layout, i);
        if (text->length > message_text_max[i])
            return 0;
        to = message_put(to, &text->length, 2);
    }
    to = message_put(to, &m->tag, 4);
    to = message_put(to, &m->result, 4);
    for (const struct message_field *field = message_rows[m->type]; field->kind != FIELD_NONE; field++)
        to = message_put_field(to, m, field);
    for (int i = 0; i < TEXTS; i++) {
        const struct message_text *text = message_text_in(m, &layout, i);
        if (text->length > 0)
            to = message_put(to, text->text, text->length);
    }
    return (size_t)(to - start);
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

/* The texts, which end the bytes. */
static bool message_take_texts(struct message *m, const struct message_layout *layout, const uint16_t lengths[TEXTS],
                               const uint8_t *bytes, const uint8_t *end)
{
    for (int i = 0; i < TEXTS; i++) {
        const struct message_field *field = layout->text[i];
        if (lengths[i] > (field != NULL ? message_text_max[i] : 0) || lengths[i] > end - bytes)
            return false;
        if (field == NULL)
            continue;
        struct message_text *text = message_at(m, field);
        *text = (struct message_text){(const char *)bytes, lengths[i]};
        if (!message_text_is_valid(field->kind, text))
            return false;
        bytes += lengths[i];
    }
    return bytes == end;
}

int message_decode(struct message *m, const uint8_t *bytes, size_t size)
{
    const uint8_t *end = bytes + size;
    uint16_t version, lengths[TEXTS];
    struct message_layout layout;
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
    message_lay_out(m->type, &layout);
    if (size < layout.fixed)
        return -EBADMSG;
    for (const struct message_field *field = message_rows[m->type]; field->kind != FIELD_NONE; field++)
        bytes = message_take_field(bytes, m, field, &valid);
    return valid && message_take_texts(m, &layout, lengths, bytes, end) ? 0 : -EBADMSG;
}
