/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "wire/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* What each type must carry. */
enum { ONE_NAME = 1, TWO_NAMES = 2, WITH_TEXT = 4 };

static const uint8_t must_have[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = WITH_TEXT,    [MESSAGE_LOOKUP] = ONE_NAME,  [MESSAGE_CREATE] = ONE_NAME,   [MESSAGE_COMMIT] = ONE_NAME,
    [MESSAGE_ABORT] = ONE_NAME,    [MESSAGE_ADOPT] = ONE_NAME,   [MESSAGE_VANISHED] = ONE_NAME, [MESSAGE_UNLINK] = ONE_NAME,
    [MESSAGE_UNLINKED] = ONE_NAME, [MESSAGE_RENAME] = TWO_NAMES, [MESSAGE_RENAMED] = TWO_NAMES, [MESSAGE_RMDIR] = ONE_NAME,
    [MESSAGE_PROMOTE] = ONE_NAME,  [MESSAGE_PLACE] = ONE_NAME,   [MESSAGE_NAME] = ONE_NAME,
};

/* Little-endian, field after field, as WIRE.md lists them. The hosts that share a message are of one kind of
 * machine in practice (x86_64 and aarch64 are both little-endian); the fields are copied singly so that no
 * padding travels. */
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

static uint8_t *message_put_entry(uint8_t *to, const struct record_entry *entry)
{
    return to + record_entry_encode(to, entry);
}

/* An entry on the wire may be unset, all zero, which is no valid record. */
static const uint8_t *message_take_entry(const uint8_t *from, struct record_entry *entry, bool *valid)
{
    static const uint8_t unset[16];
    if (memcmp(from, unset, sizeof unset) == 0)
        *entry = (struct record_entry){0};
    else if (record_entry_decode(entry, from, 16) != 0)
        *valid = false;
    return from + 16;
}

static bool message_lengths_fit(const struct message *m)
{
    return m->name_length[0] <= RECORD_NAME_MAX && m->name_length[1] <= RECORD_NAME_MAX && m->text_length <= MESSAGE_TEXT_MAX;
}

size_t message_encode(uint8_t *to, size_t size, const struct message *m)
{
    const uint16_t version = WIRE_VERSION, unused = 0;
    const uint8_t *start = to;
    if (!message_lengths_fit(m) || message_size(m) > size)
        return 0;
    to = message_put(to, &version, 2);
    to = message_put(to, &m->type, 2);
    to = message_put(to, &m->flags, 2);
    to = message_put(to, &unused, 2);
    to = message_put(to, &m->tag, 4);
    to = message_put(to, &m->result, 4);
    to = message_put(to, m->dir, 32);
    to = message_put(to, &m->child, 16);
    to = message_put_entry(to, &m->entry[0]);
    to = message_put_entry(to, &m->entry[1]);
    to = message_put(to, m->name_length, 4);
    to = message_put(to, &m->text_length, 2);
    to = message_put(to, &unused, 2);
    for (int i = 0; i < 2; i++)
        if (m->name_length[i] > 0)
            to = message_put(to, m->name[i], m->name_length[i]);
    if (m->text_length > 0)
        to = message_put(to, m->text, m->text_length);
    return (size_t)(to - start);
}

static bool message_is_name(const char *name, size_t length)
{
    if (length == 0 || memchr(name, '/', length) != NULL || memchr(name, '\0', length) != NULL)
        return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

static bool message_has_what_it_must(const struct message *m)
{
    uint8_t must = m->type < MESSAGE_TYPES ? must_have[m->type] : 0;
    if (m->type == 0 || m->type >= MESSAGE_TYPES)
        return false;
    if ((must & (ONE_NAME | TWO_NAMES)) && !message_is_name(m->name[0], m->name_length[0]))
        return false;
    if ((must & TWO_NAMES) && !message_is_name(m->name[1], m->name_length[1]))
        return false;
    return !(must & WITH_TEXT) || (m->text_length > 0 && memchr(m->text, '\0', m->text_length) == NULL);
}

int message_decode(struct message *m, const uint8_t *bytes, size_t size)
{
    uint16_t version = 0, unused;
    bool valid = true;
    if (size < MESSAGE_FIXED)
        return -EBADMSG;
    bytes = message_take(bytes, &version, 2);
    if (version != WIRE_VERSION)
        return -EPROTO;
    bytes = message_take(bytes, &m->type, 2);
    bytes = message_take(bytes, &m->flags, 2);
    bytes = message_take(bytes, &unused, 2);
    bytes = message_take(bytes, &m->tag, 4);
    bytes = message_take(bytes, &m->result, 4);
    bytes = message_take(bytes, m->dir, 32);
    bytes = message_take(bytes, &m->child, 16);
    bytes = message_take_entry(bytes, &m->entry[0], &valid);
    bytes = message_take_entry(bytes, &m->entry[1], &valid);
    bytes = message_take(bytes, m->name_length, 4);
    bytes = message_take(bytes, &m->text_length, 2);
    bytes = message_take(bytes, &unused, 2);
    if (!valid || !message_lengths_fit(m) || message_size(m) != size)
        return -EBADMSG;
    m->name[0] = (const char *)bytes;
    m->name[1] = m->name[0] + m->name_length[0];
    m->text = m->name[1] + m->name_length[1];
    return message_has_what_it_must(m) ? 0 : -EBADMSG;
}
