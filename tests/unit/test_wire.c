/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "wire/message.h"
#include "wire/page.h"

#include <dirent.h>

#include "place.h"

static struct message some_message(uint16_t type)
{
    return (struct message){
        .type = type,
        .flags = MESSAGE_EXCHANGE | MESSAGE_NOREPLACE,
        .tag = 0x01020304,
        .result = -ENOENT,
        .dir = {{0x1112131415161718, 0x2122232425262728}, {0x3132333435363738, 0x4142434445464748}},
        .child = {0x5152535455565758, 0x6162636465666768},
        .entry = {{DT_REG, RECORD_PENDING, 513, 0x01020304, 7}, {DT_DIR, RECORD_LIVE, 0, 0, UINT64_MAX}},
        .name = {"ckpt.0017", "latest"},
        .name_length = {9, 6},
        .text = "out/a",
        .text_length = 5,
    };
}

static void assert_equal(const struct message *a, const struct message *b)
{
    cr_assert(a->type == b->type && a->flags == b->flags && a->tag == b->tag && a->result == b->result);
    cr_assert(dirid_equal(a->child, b->child));
    for (int i = 0; i < 2; i++) {
        cr_assert(dirid_equal(a->dir[i], b->dir[i]));
        cr_assert(record_same(&a->entry[i], &b->entry[i]));
        cr_assert(a->entry[i].type == b->entry[i].type && a->entry[i].state == b->entry[i].state);
        cr_assert_eq(a->name_length[i], b->name_length[i]);
        cr_assert_eq(memcmp(a->name[i], b->name[i], a->name_length[i]), 0);
    }
    cr_assert_eq(a->text_length, b->text_length);
    cr_assert_eq(memcmp(a->text, b->text, a->text_length), 0);
}

Test(wire, every_type_survives)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
        uint8_t bytes[MESSAGE_SHORT];
        struct message back;
        size_t size = message_encode(bytes, sizeof bytes, &message);
        cr_assert_eq(size, MESSAGE_FIXED + 9 + 6 + 5, "type %u", type);
        cr_assert_eq(size, message_size(&message));
        cr_assert_eq(message_decode(&back, bytes, size), 0, "type %u", type);
        assert_equal(&message, &back);
        cr_assert_eq((const uint8_t *)back.name[0], bytes + MESSAGE_FIXED, "names point into the bytes");
    }
}

/* The layout as WIRE.md has it: it must not change without WIRE_VERSION. */
Test(wire, layout)
{
    const struct message message = some_message(MESSAGE_RENAME);
    uint8_t bytes[MESSAGE_SHORT];
    cr_assert_gt(message_encode(bytes, sizeof bytes, &message), 0);
    cr_assert_arr_eq(bytes, "\5\0\12\0\6\0\0\0\4\3\2\1\376\377\377\377", 16);
    cr_assert_arr_eq(bytes + 16, "\30\27\26\25\24\23\22\21\50\47\46\45\44\43\42\41", 16);
    cr_assert_arr_eq(bytes + 32, "\70\67\66\65\64\63\62\61\110\107\106\105\104\103\102\101", 16);
    cr_assert_arr_eq(bytes + 48, "\130\127\126\125\124\123\122\121\150\147\146\145\144\143\142\141", 16);
    cr_assert_arr_eq(bytes + 64, "\10\2\1\2\4\3\2\1\7\0\0\0\0\0\0\0", 16);
    cr_assert_arr_eq(bytes + 80, "\4\1\0\0\0\0\0\0\377\377\377\377\377\377\377\377", 16);
    cr_assert_arr_eq(bytes + 96, "\11\0\6\0\5\0\0\0ckpt.0017latestout/a", 8 + 20);
}

Test(wire, what_is_unset_stays_unset)
{
    const struct message message = {.type = MESSAGE_STATUS};
    uint8_t bytes[MESSAGE_FIXED];
    struct message back;
    cr_assert_eq(message_encode(bytes, sizeof bytes, &message), MESSAGE_FIXED);
    cr_assert_eq(message_decode(&back, bytes, sizeof bytes), 0);
    assert_equal(&message, &back);
}

Test(wire, every_truncation_is_malformed)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
        uint8_t bytes[MESSAGE_SHORT];
        struct message back;
        size_t size = message_encode(bytes, sizeof bytes, &message);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *copy = malloc(cut ? cut : 1);
            memcpy(copy, bytes, cut);
            cr_assert_eq(message_decode(&back, copy, cut), -EBADMSG, "type %u cut to %zu", type, cut);
            free(copy);
        }
        cr_assert_eq(message_decode(&back, bytes, size + 1), -EBADMSG, "one byte too many");
    }
}

Test(wire, what_does_not_fit_is_not_written)
{
    struct message message = some_message(MESSAGE_RENAME);
    static uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX + 1];
    cr_assert_eq(message_encode(bytes, message_size(&message) - 1, &message), 0);
    cr_assert_eq(message_encode(bytes, 0, &message), 0);
    message.name_length[1] = RECORD_NAME_MAX + 1;
    cr_assert_eq(message_encode(bytes, sizeof bytes, &message), 0);
    message = some_message(MESSAGE_LOAD);
    message.text_length = MESSAGE_TEXT_MAX + 1;
    cr_assert_eq(message_encode(bytes, sizeof bytes, &message), 0);
}

static int decode_of(const struct message *message, uint16_t version)
{
    static uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    struct message back;
    size_t size = message_encode(bytes, sizeof bytes, message);
    memcpy(bytes, &version, 2);
    return message_decode(&back, bytes, size);
}

Test(wire, another_version_is_told_apart)
{
    const struct message message = some_message(MESSAGE_LOOKUP);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), 0);
    cr_assert_eq(decode_of(&message, WIRE_VERSION + 1), -EPROTO);
    cr_assert_eq(decode_of(&message, 0), -EPROTO);
}

Test(wire, no_such_type)
{
    struct message message = some_message(0);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message.type = MESSAGE_TYPES;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message.type = UINT16_MAX;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
}

static const uint16_t with_a_name[] = {
    MESSAGE_LOOKUP, MESSAGE_CREATE,   MESSAGE_COMMIT, MESSAGE_ABORT,   MESSAGE_ADOPT, MESSAGE_VANISHED,
    MESSAGE_UNLINK, MESSAGE_UNLINKED, MESSAGE_RENAME, MESSAGE_RENAMED, MESSAGE_RMDIR, MESSAGE_PROMOTE,
};

static const struct {
    const char *bytes;
    uint16_t length;
} no_names[] = {{"", 0}, {".", 1}, {"..", 2}, {"/", 1}, {"a/b", 3}, {"/etc/passwd", 11}, {"a/", 2}, {"a\0b", 3}, {"\0", 1}};

Test(wire, bad_names_are_refused)
{
    for (size_t i = 0; i < sizeof with_a_name / sizeof *with_a_name; i++)
        for (size_t j = 0; j < sizeof no_names / sizeof *no_names; j++) {
            struct message message = some_message(with_a_name[i]);
            message.name[0] = no_names[j].bytes;
            message.name_length[0] = no_names[j].length;
            cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG, "type %u, name %zu", with_a_name[i], j);
        }
}

Test(wire, bad_second_names_are_refused)
{
    for (uint16_t type = MESSAGE_RENAME; type <= MESSAGE_RENAMED; type++)
        for (size_t j = 0; j < sizeof no_names / sizeof *no_names; j++) {
            struct message message = some_message(type);
            message.name[1] = no_names[j].bytes;
            message.name_length[1] = no_names[j].length;
            cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG, "type %u, name %zu", type, j);
        }
}

Test(wire, good_names_pass)
{
    char longest[RECORD_NAME_MAX];
    static const char *const names[] = {"...", "..a", ".a", "a b", "\xff\xfe", "\n", "-"};
    memset(longest, 'x', sizeof longest);
    struct message message = some_message(MESSAGE_LOOKUP);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        message.name[0] = names[i];
        message.name_length[0] = (uint16_t)strlen(names[i]);
        cr_assert_eq(decode_of(&message, WIRE_VERSION), 0, "%s", names[i]);
    }
    message.name[0] = longest;
    message.name_length[0] = sizeof longest;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), 0);
}

Test(wire, a_load_says_where)
{
    struct message message = some_message(MESSAGE_LOAD);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), 0);
    message.text_length = 0;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message.text = "a\0b";
    message.text_length = 3;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
}

Test(wire, bad_entries_are_refused)
{
    struct message message = some_message(MESSAGE_COMMIT);
    message.entry[0].state = 9;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message = some_message(MESSAGE_COMMIT);
    message.entry[1].leaf = 1;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG, "a leaf of the trunk");
}

static bool is_name(const char *name, size_t length)
{
    return length > 0 && length <= RECORD_NAME_MAX && !memchr(name, '/', length) && !memchr(name, '\0', length) &&
           !(length == 1 && name[0] == '.') && !(length == 2 && name[0] == '.' && name[1] == '.');
}

static bool needs_name(uint16_t type)
{
    for (size_t i = 0; i < sizeof with_a_name / sizeof *with_a_name; i++)
        if (with_a_name[i] == type)
            return true;
    return false;
}

static void decode_any(const char *bytes, size_t size)
{
    struct message message;
    int code = message_decode(&message, (const uint8_t *)bytes, size);
    cr_assert(code == 0 || code == -EBADMSG || code == -EPROTO);
    if (code != 0)
        return;
    cr_assert(message.type > 0 && message.type < MESSAGE_TYPES);
    cr_assert_eq(message_size(&message), size);
    cr_assert(!needs_name(message.type) || is_name(message.name[0], message.name_length[0]));
    if (message.type == MESSAGE_RENAME || message.type == MESSAGE_RENAMED)
        cr_assert(is_name(message.name[1], message.name_length[1]));
    uint8_t *copy = malloc(size);
    cr_assert_eq(message_encode(copy, size, &message), size);
    free(copy);
}

Test(wire, hostile_bytes)
{
    static const uint16_t types[] = {MESSAGE_LOAD, MESSAGE_CREATE, MESSAGE_RENAME, MESSAGE_ANSWER};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct message message = some_message(types[i]);
        uint8_t bytes[MESSAGE_SHORT];
        size_t size = message_encode(bytes, sizeof bytes, &message);
        place_mutate((const char *)bytes, size, decode_any);
    }
}

/* Pages of names. */

static size_t page_of(char *page, size_t size, unsigned count)
{
    size_t used = 0;
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        const struct page_name one = {
            .hash = 100 + i,
            .name = name,
            .length = (size_t)snprintf(name, sizeof name, "name-%u", i),
            .branch = i % 3 == 0 ? 7 + i : 0,
            .entry = {.type = DT_REG, .state = RECORD_LIVE, .leaf = i % 3 == 0 ? i : 0, .ino = 5000 + i}};
        cr_assert(page_add(page, size, &used, &one));
    }
    return used;
}

Test(page, names_survive)
{
    char page[1024];
    size_t used = page_of(page, sizeof page, 20), at = 0;
    struct page_name name;
    for (unsigned i = 0; i < 20; i++) {
        char expected[16];
        snprintf(expected, sizeof expected, "name-%u", i);
        cr_assert_eq(page_next(page, used, &at, &name), 1);
        cr_assert(name.hash == 100 + i && name.entry.ino == 5000 + i && name.entry.type == DT_REG);
        cr_assert_eq(name.entry.branch, i % 3 == 0, "its number is each daemon's own");
        cr_assert(name.branch == (i % 3 == 0 ? 7 + i : 0) && name.entry.leaf == (i % 3 == 0 ? i : 0));
        cr_assert(name.length == strlen(expected) && memcmp(name.name, expected, name.length) == 0);
    }
    cr_assert_eq(page_next(page, used, &at, &name), 0);
}

Test(page, what_does_not_fit_is_not_added)
{
    char page[PAGE_NAME_FIXED + 8];
    const struct page_name one = {.hash = 3, .name = "123456789", .length = 9, .entry.state = RECORD_LIVE};
    const struct page_name two = {.hash = 3, .name = "12345678", .length = 8, .entry.state = RECORD_LIVE};
    size_t used = 0;
    cr_assert_not(page_add(page, sizeof page, &used, &one));
    cr_assert_eq(used, 0);
    cr_assert(page_add(page, sizeof page, &used, &two));
    cr_assert_eq(used, sizeof page);
    cr_assert_not(page_add(page, sizeof page, &used, &two));
}

Test(page, cut_short_is_no_page)
{
    char page[1024];
    size_t used = page_of(page, sizeof page, 1);
    struct page_name name;
    for (size_t size = 1; size < used; size++) {
        size_t at = 0;
        cr_assert_eq(page_next(page, size, &at, &name), -EBADMSG, "%zu of %zu", size, used);
        cr_assert_eq(at, 0);
    }
}

Test(page, there_are_no_leaves_in_the_trunk)
{
    char page[64];
    const struct page_name one = {
        .hash = 3, .name = "x", .length = 1, .entry = {.type = DT_REG, .state = RECORD_LIVE, .leaf = 1}};
    struct page_name name;
    size_t used = 0, at = 0;
    cr_assert(page_add(page, sizeof page, &used, &one));
    cr_assert_eq(page_next(page, used, &at, &name), -EBADMSG);
}

Test(page, bad_names_are_refused)
{
    static const struct {
        size_t at;
        char byte;
    } bad[] = {{0, 2}, {25, 0}, {25, 4}, {24, 16}, {26, 0}, {27, '/'}, {28, '\0'}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char page[64] = {0};
        size_t used = page_of(page, sizeof page, 1), at = 0;
        struct page_name name;
        page[bad[i].at] = bad[i].byte;
        cr_assert_eq(page_next(page, used, &at, &name), -EBADMSG, "byte %zu", bad[i].at);
    }
}

/* The numbers of the names in a merged page, each plus its hash's; the page of part `i` has the names of `numbers`. */
static size_t wire_numbered(char *page, size_t size, const unsigned *numbers, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        char name[8];
        const struct page_name one = {.hash = 100 + numbers[i],
                                      .name = name,
                                      .length = (size_t)snprintf(name, sizeof name, "%u", numbers[i]),
                                      .entry = {.state = RECORD_LIVE}};
        cr_assert(page_add(page, size, &used, &one));
    }
    return used;
}

static void assert_merged(const char *page, size_t used, const unsigned *numbers, size_t count)
{
    struct page_name name;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(page_next(page, used, &at, &name), 1, "name %zu", i);
        cr_assert_eq(name.hash, 100 + numbers[i]);
    }
    cr_assert_eq(page_next(page, used, &at, &name), 0);
}

Test(page, two_become_one_in_order_and_each_name_is_told_once)
{
    static const unsigned one[] = {1, 4, 5, 9}, two[] = {2, 4, 10}, both[] = {1, 2, 4, 5, 9, 10};
    char a[512], b[512], merged[512];
    size_t used;
    const struct page_part parts[2] = {{a, wire_numbered(a, sizeof a, one, 4), PAGE_ALL},
                                       {b, wire_numbered(b, sizeof b, two, 3), PAGE_ALL}};
    cr_assert_eq(page_merge(merged, sizeof merged, &used, parts), PAGE_ALL);
    assert_merged(merged, used, both, 6);
}

Test(page, after_the_limit_of_one_nothing_is_known)
{
    static const unsigned one[] = {1, 5}, two[] = {2, 4, 6, 7}, both[] = {1, 2, 4, 5};
    char a[512], b[512], merged[512];
    size_t used;
    const struct page_part parts[2] = {{a, wire_numbered(a, sizeof a, one, 2), 105},
                                       {b, wire_numbered(b, sizeof b, two, 4), PAGE_ALL}};
    cr_assert_eq(page_merge(merged, sizeof merged, &used, parts), 105);
    assert_merged(merged, used, both, 4);
}

Test(page, what_does_not_fit_is_asked_for_later)
{
    static const unsigned one[] = {1, 4}, two[] = {2};
    char a[512], b[512], merged[2 * (PAGE_NAME_FIXED + 1)];
    size_t used;
    const struct page_part parts[2] = {{a, wire_numbered(a, sizeof a, one, 2), PAGE_ALL},
                                       {b, wire_numbered(b, sizeof b, two, 1), PAGE_ALL}};
    cr_assert_eq(page_merge(merged, sizeof merged, &used, parts), 103);
    assert_merged(merged, used, (const unsigned[]){1, 2}, 2);
}

Test(page, nothing_and_nothing_is_nothing)
{
    char merged[64];
    size_t used;
    const struct page_part parts[2] = {{merged, 0, PAGE_ALL}, {NULL, 0, PAGE_ALL}};
    cr_assert_eq(page_merge(merged, sizeof merged, &used, parts), PAGE_ALL);
    cr_assert_eq(used, 0);
}

Test(page, next_to_one_that_has_none_it_goes_as_far_as_both_do)
{
    static const unsigned one[] = {1, 5, 8};
    static const uint64_t limits[] = {105, 200, PAGE_ALL};
    static const size_t counts[] = {2, 3, 3};
    char a[512], merged[512];
    size_t used;
    for (int i = 0; i < 3; i++) {
        const struct page_part parts[2] = {{NULL, 0, limits[i]}, {a, wire_numbered(a, sizeof a, one, 3), 300}};
        cr_assert_eq(page_merge(merged, sizeof merged, &used, parts), limits[i] < 300 ? limits[i] : 300);
        assert_merged(merged, used, one, counts[i]);
    }
}

Test(page, one_that_is_too_long_is_cut)
{
    static const unsigned one[] = {1, 5, 8};
    char a[512], cut[2 * (PAGE_NAME_FIXED + 1)];
    size_t used;
    const struct page_part parts[2] = {{a, wire_numbered(a, sizeof a, one, 3), PAGE_ALL}, {NULL, 0, PAGE_ALL}};
    cr_assert_eq(page_merge(cut, sizeof cut, &used, parts), 107);
    assert_merged(cut, used, one, 2);
}
