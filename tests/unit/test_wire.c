/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "wire/message.h"
#include "wire/page.h"

#include <dirent.h>

#include "place.h"

/* One of each type: every field that its body has, each with a value of its own. */

#define WIRE_DIR                                                                                                               \
    {                                                                                                                          \
        0x1112131415161718, 0x2122232425262728                                                                                 \
    }
#define WIRE_OTHER                                                                                                             \
    {                                                                                                                          \
        0x3132333435363738, 0x4142434445464748                                                                                 \
    }
#define WIRE_ENTRY                                                                                                             \
    {                                                                                                                          \
        DT_REG, RECORD_PENDING, 513, 0x01020304, 7                                                                             \
    }
#define WIRE_TEXT(BYTES)                                                                                                       \
    {                                                                                                                          \
        BYTES, sizeof BYTES - 1                                                                                                \
    }
#define WIRE_RECORD                                                                                                            \
    {                                                                                                                          \
        .marker = 0xa1, .version = 0xa2, .marked = true, .watched = true, .mirror = WIRE_TEXT("out-5f")                        \
    }
#define WIRE_PLACED                                                                                                            \
    {                                                                                                                          \
        .entry = WIRE_ENTRY, .branch = WIRE_TEXT("n1.3")                                                                       \
    }
#define WIRE_TIMES                                                                                                             \
    {                                                                                                                          \
        .round = 0xb1, .changed = 0xb2, .settled = 0xb3, .written = true                                                       \
    }

static const struct message wire_bodies[MESSAGE_TYPES] = {
    [MESSAGE_LOAD].load.path = WIRE_TEXT("out/a"),
    [MESSAGE_CREATE].create.entry = WIRE_ENTRY,
    [MESSAGE_COMMIT].commit = {WIRE_ENTRY, WIRE_OTHER},
    [MESSAGE_ADOPT].found.entry = WIRE_ENTRY,
    [MESSAGE_VANISHED].found.entry = WIRE_ENTRY,
    [MESSAGE_RENAME].rename = {.to_dir = WIRE_OTHER, .to_name = WIRE_TEXT("latest"), .found = WIRE_ENTRY},
    [MESSAGE_RENAMED].rename = {WIRE_OTHER, WIRE_TEXT("latest"), {0x51, 0x52}},
    [MESSAGE_RMDIR].rmdir.child = WIRE_OTHER,
    [MESSAGE_SETTLE].settle.round = 0xc1,
    [MESSAGE_LIST].list = {.from = 0xc2, .room = 0xc3, .to = 0xc4},
    [MESSAGE_VISITED].found.entry = WIRE_ENTRY,
    [MESSAGE_ANSWER].answer = {.entry = {WIRE_ENTRY}, .place = {WIRE_TEXT("n1.3/out-5f/0")}},
    [MESSAGE_RENAME_ANSWER].answer = {.entry = {WIRE_ENTRY, {DT_DIR, RECORD_LIVE, 0, 0, UINT64_MAX}},
                                      .place = {WIRE_TEXT("n1.3/out-5f/0"), WIRE_TEXT("n1.3/out-5f/1")}},
    [MESSAGE_TEXT_ANSWER].text_answer = {.text = WIRE_TEXT("creates 3\n"), .limit = 0xc5, .bulk = 0xc6},
    [MESSAGE_NAME_QUESTION].name_question = {.entry = WIRE_PLACED, .op = 0xc7},
    [MESSAGE_NAME_ANSWER].name_answer.entry = WIRE_PLACED,
    [MESSAGE_LISTED].listed = {.entry = WIRE_PLACED, .load_number = 0xc8},
    [MESSAGE_MARK].leaf.leaf = 0xc9,
    [MESSAGE_FREEZE].freeze.tried = 0xca,
    [MESSAGE_DIR_CREATED].load.path = WIRE_TEXT("out/a"),
    [MESSAGE_RETURN].delegation.number = 0xcb,
    [MESSAGE_COORDINATOR_ANSWER].coordinator_answer =
        {.record = WIRE_RECORD, .node_count = 0xcc, .leaf_is_made = true, .why = 0xcd, .delegation = 0xce, .names = 0xcf},
    [MESSAGE_LOADED].record = {WIRE_RECORD, WIRE_TEXT("out/a")},
    [MESSAGE_RECORD].record = {WIRE_RECORD, WIRE_TEXT("out/a")},
    [MESSAGE_MOVED].moved.paths = WIRE_TEXT("a\0b"),
    [MESSAGE_FENCE].fence = {.operation = 0xd1, .member = 0xd2, .ends = true},
    [MESSAGE_COLLECTIVE_ANSWER].collective_answer = {.limit = 0xd3, .hops = 0xd4, .lost = true},
    [MESSAGE_NODES].nodes.count = 0xd5,
    [MESSAGE_LEAF_VISITED].leaf.leaf = 0xd6,
    [MESSAGE_TIMES].times = WIRE_TIMES,
    [MESSAGE_RECALL].delegation.number = 0xd7,
    [MESSAGE_MIGRATED_DIR].migrated_dir = {.record = WIRE_RECORD,
                                           .path = WIRE_TEXT("out/a"),
                                           .load_number = 0xd8,
                                           .frozen = true},
    [MESSAGE_MIGRATED_ENTRY].migrated_entry.entry = WIRE_PLACED,
    [MESSAGE_MIGRATED_CLAIM].migrated_claim = {.shown = WIRE_PLACED, .operation = 0xd9, .member = 0xda},
    [MESSAGE_MIGRATED_RECORD].record = {WIRE_RECORD, WIRE_TEXT("out/a")},
    [MESSAGE_SHARE].share = {.load_number = 0xdc, .mirror = WIRE_TEXT("out-5f"), .branches = WIRE_TEXT("\1\0n1.1\0")},
    [MESSAGE_MIGRATED_COORDINATOR].migrated_coordinator =
        {.nodes = WIRE_TEXT("\1\0\2\0"), .delegation = 0xdb, .times = WIRE_TIMES, .loaded = true, .closing = true},
    [MESSAGE_EVICT].evict.idle = 0xdc,
};

static struct message some_message(uint16_t type)
{
    struct message message = type < MESSAGE_TYPES ? wire_bodies[type] : wire_bodies[0];
    message.type = type;
    message.flags = MESSAGE_EXCHANGE | MESSAGE_NOREPLACE;
    message.tag = 0x01020304;
    message.result = -ENOENT;
    message.epoch = 0x05060708;
    message.dir = (struct dirid)WIRE_DIR;
    message.name = message_text("ckpt.0017", 9);
    return message;
}

/* What every type is as bytes, in hexadecimal digits, after version and type: recorded on 25 November 2026. A change of it is
 * another WIRE_VERSION. */
static const char *const wire_recorded[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = "060000000000050004030201feffffff181716151413121128272625242322216f75742f61",
    [MESSAGE_LOOKUP] = "060009000000000004030201feffffff18171615141312112827262524232221636b70742e30303137",
    [MESSAGE_CREATE] =
        "060009000000000004030201feffffff1817161514131211282726252423222108020102040302010700000000000000636b70742e30303137",
    [MESSAGE_COMMIT] = "060009000000000004030201feffffff18171615141312112827262524232221080201020403020107000000000000003837363"
                       "5343332314847464544434241636b70742e30303137",
    [MESSAGE_ABORT] = "060009000000000004030201feffffff18171615141312112827262524232221636b70742e30303137",
    [MESSAGE_ADOPT] =
        "060009000000000004030201feffffff1817161514131211282726252423222108020102040302010700000000000000636b70742e30303137",
    [MESSAGE_VANISHED] =
        "060009000000000004030201feffffff1817161514131211282726252423222108020102040302010700000000000000636b70742e30303137",
    [MESSAGE_UNLINK] = "060009000000000004030201feffffff18171615141312112827262524232221636b70742e30303137",
    [MESSAGE_UNLINKED] = "060009000000000004030201feffffff18171615141312112827262524232221636b70742e30303137",
    [MESSAGE_RENAME] = "060009000600000004030201feffffff18171615141312112827262524232221383736353433323148474645444342410802010"
                       "2040302010700000000000000636b70742e303031376c6174657374",
    [MESSAGE_RENAMED] = "060009000600000004030201feffffff1817161514131211282726252423222138373635343332314847464544434241510000"
                        "00000000005200000000000000636b70742e303031376c6174657374",
    [MESSAGE_RMDIR] =
        "060009000000000004030201feffffff1817161514131211282726252423222138373635343332314847464544434241636b70742e30303137",
    [MESSAGE_PROMOTE] = "060009000000000004030201feffffff18171615141312112827262524232221636b70742e30303137",
    [MESSAGE_ATTRIBUTES] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_SETTLE] = "060000000000000004030201feffffff18171615141312112827262524232221c100000000000000",
    [MESSAGE_SYNC] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_STATUS] = "060000000000000004030201feffffff",
    [MESSAGE_PING] = "060000000000000004030201feffffff",
    [MESSAGE_WATCH] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_PLACE] = "060009000000000004030201feffffff636b70742e30303137",
    [MESSAGE_LIST] =
        "060000000000000004030201feffffff18171615141312112827262524232221c200000000000000c300000000000000c400000000000000",
    [MESSAGE_VISITED] =
        "060009000000000004030201feffffff1817161514131211282726252423222108020102040302010700000000000000636b70742e30303137",
    [MESSAGE_STOP] = "060000000000000004030201feffffff",
    [MESSAGE_ANSWER] = "06000d000000000004030201feffffff080201020403020107000000000000006e312e332f6f75742d35662f30",
    [MESSAGE_RENAME_ANSWER] = "06000d000d00000004030201feffffff080201020403020107000000000000000401000000000000ffffffffffffffff"
                              "6e312e332f6f75742d35662f306e312e332f6f75742d35662f31",
    [MESSAGE_TEXT_ANSWER] =
        "0600000000000a0004030201feffffff18171615141312112827262524232221c500000000000000c60000006372656174657320330a",
    [MESSAGE_NAME_QUESTION] = "060009000400000004030201feffffff1817161514131211282726252423222108070605c70008020102040302010700"
                              "000000000000636b70742e303031376e312e33",
    [MESSAGE_NAME_ANSWER] =
        "060000000400000004030201feffffff1817161514131211282726252423222108070605080201020403020107000000000000006e312e33",
    [MESSAGE_LISTED] = "060009000400000004030201feffffff1817161514131211282726252423222108070605c800000000000000080201020403020"
                       "10700000000000000636b70742e303031376e312e33",
    [MESSAGE_MARK] = "060000000000000004030201feffffff18171615141312112827262524232221c9000000",
    [MESSAGE_FREEZE] = "060000000000000004030201feffffff18171615141312112827262524232221ca00000000000000",
    [MESSAGE_THAW] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_DROP] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_DIR_CREATED] = "060000000000050004030201feffffff181716151413121128272625242322216f75742f61",
    [MESSAGE_RETURN] = "060000000000000004030201feffffff18171615141312112827262524232221cb00000000000000",
    [MESSAGE_COORDINATOR_ANSWER] = "060006000000000004030201feffffff18171615141312112827262524232221cc00000001cd000000ce0000000"
                                   "0000000cf00000000000000a100000000000000a2000000000000000100016f75742d3566",
    [MESSAGE_LOADED] = "060006000000050004030201feffffff1817161514131211282726252423222108070605a100000000000000a20000000000000"
                       "00100016f75742d35666f75742f61",
    [MESSAGE_RECORD] = "060006000000050004030201feffffff18171615141312112827262524232221a100000000000000a2000000000000000100016"
                       "f75742d35666f75742f61",
    [MESSAGE_MOVED] = "060000000000030004030201feffffff610062",
    [MESSAGE_FENCE] = "060000000000000004030201feffffffd100000000000000d20001",
    [MESSAGE_HAS_MOVED] = "060000000000000004030201feffffff08070605",
    [MESSAGE_COLLECTIVE_ANSWER] = "060000000000000004030201feffffffd300000000000000d400000001",
    [MESSAGE_NODES] = "060000000000000004030201feffffff18171615141312112827262524232221d5000000",
    [MESSAGE_LEAF_VISITED] = "060000000000000004030201feffffff18171615141312112827262524232221d6000000",
    [MESSAGE_IDLE] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_TIMES] =
        "060000000000000004030201feffffff18171615141312112827262524232221b100000000000000b200000000000000b30000000000000001",
    [MESSAGE_AWAITED] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_RECALL] = "060000000000000004030201feffffff18171615141312112827262524232221d700000000000000",
    [MESSAGE_MIGRATED_DIR] = "060006000000050004030201feffffff1817161514131211282726252423222108070605d80000000000000001a100000"
                             "000000000a2000000000000000100016f75742d35666f75742f61",
    [MESSAGE_MIGRATED_ENTRY] = "060009000400000004030201feffffff181716151413121128272625242322210807060508020102040302010700000"
                               "000000000636b70742e303031376e312e33",
    [MESSAGE_MIGRATED_CLAIM] = "060009000400000004030201feffffff1817161514131211282726252423222108070605d900000000000000da00080"
                               "20102040302010700000000000000636b70742e303031376e312e33",
    [MESSAGE_MIGRATED_RECORD] = "060006000000050004030201feffffff1817161514131211282726252423222108070605a100000000000000a20000"
                                "00000000000100016f75742d35666f75742f61",
    [MESSAGE_MIGRATED_COORDINATOR] = "060000000000040004030201feffffff1817161514131211282726252423222108070605db00000000000000b"
                                     "100000000000000b200000000000000b300000000000000010100010001000200",
    [MESSAGE_EVICT] = "060000000000000004030201feffffff1817161514131211282726252423222108070605dc00000000000000",
    [MESSAGE_EVICTED] = "060000000000000004030201feffffff18171615141312112827262524232221",
    [MESSAGE_MIGRATED_ALL] = "060000000000000004030201feffffff08070605",
    [MESSAGE_SHARE] = "060006000000070004030201feffffff1817161514131211282726252423222108070605dc000000000000006f75742d356601"
                      "006e312e3100",
    [MESSAGE_AWAIT_THAW] = "060000000000000004030201feffffff18171615141312112827262524232221",
};

static void wire_hexadecimal(char *to, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sprintf(to + 2 * i, "%02x", bytes[i]);
}

Test(wire, every_type_is_as_recorded)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
        uint8_t bytes[MESSAGE_SHORT];
        char digits[2 * MESSAGE_SHORT + 1] = "";
        const size_t size = message_encode(bytes, sizeof bytes, &message);
        cr_assert_gt(size, 0, "type %u", type);
        wire_hexadecimal(digits, bytes + 4, size - 4);
        cr_assert_str_eq(digits, wire_recorded[type] != NULL ? wire_recorded[type] : "", "type %u", type);
    }
}

/* What is read is written again: each field was read where it was written from. */
Test(wire, every_type_survives)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
        struct message back;
        uint8_t bytes[MESSAGE_SHORT], again[MESSAGE_SHORT];
        const size_t size = message_encode(bytes, sizeof bytes, &message);
        cr_assert_eq(size, message_size(&message), "type %u", type);
        cr_assert_eq(message_decode(&back, bytes, size), 0, "type %u", type);
        cr_assert(back.type == type && back.flags == message.flags && back.tag == message.tag && back.result == -ENOENT);
        cr_assert_eq(message_encode(again, sizeof again, &back), size, "type %u", type);
        cr_assert_arr_eq(again, bytes, size, "type %u", type);
    }
}

Test(wire, names_point_into_the_bytes)
{
    const struct message message = some_message(MESSAGE_LOOKUP);
    struct message back;
    uint8_t bytes[MESSAGE_SHORT];
    const size_t size = message_encode(bytes, sizeof bytes, &message);
    cr_assert_eq(message_decode(&back, bytes, size), 0);
    cr_assert_eq((const uint8_t *)back.name.text, bytes + size - 9);
}

/* The layout as WIRE.md has it: it must not change without WIRE_VERSION. */
Test(wire, layout)
{
    const struct message message = some_message(MESSAGE_RENAME);
    uint8_t bytes[MESSAGE_SHORT];
    cr_assert_eq(message_encode(bytes, sizeof bytes, &message), 20 + 3 * 16 + 9 + 6);
    cr_assert_arr_eq(bytes, "\11\0\12\0\6\0\11\0\6\0\0\0\4\3\2\1\376\377\377\377", 20);
    cr_assert_arr_eq(bytes + 20, "\30\27\26\25\24\23\22\21\50\47\46\45\44\43\42\41", 16);
    cr_assert_arr_eq(bytes + 36, "\70\67\66\65\64\63\62\61\110\107\106\105\104\103\102\101", 16);
    cr_assert_arr_eq(bytes + 52, "\10\2\1\2\4\3\2\1\7\0\0\0\0\0\0\0", 16);
    cr_assert_arr_eq(bytes + 68, "ckpt.0017latest", 15);
}

Test(wire, a_text_may_come_from_elsewhere)
{
    struct message message = some_message(MESSAGE_LOAD), back;
    uint8_t bytes[MESSAGE_SHORT];
    uint16_t length = message_text_of(&message)->length;
    cr_assert_eq(length, 5);
    message_text_of(&message)->length = 0;
    const size_t size = message_encode(bytes, sizeof bytes, &message);
    memcpy(bytes + size, "out/a", 5);
    message_set_text_length(bytes, length);
    cr_assert_eq(message_text_length(bytes), 5);
    cr_assert_eq(message_decode(&back, bytes, size + 5), 0);
    cr_assert(back.load.path.length == 5 && memcmp(back.load.path.text, "out/a", 5) == 0);
    cr_assert_eq(memcmp(bytes + MESSAGE_TAG_AT, &message.tag, 4), 0);
    message = some_message(MESSAGE_LOOKUP);
    cr_assert_null(message_text_of(&message));
}

Test(wire, what_is_unset_stays_unset)
{
    const struct message message = {.type = MESSAGE_RENAME_ANSWER};
    uint8_t bytes[MESSAGE_FIXED + 2 * 16];
    struct message back;
    const size_t size = message_encode(bytes, sizeof bytes, &message);
    cr_assert_eq(size, sizeof bytes);
    cr_assert_eq(message_decode(&back, bytes, size), 0);
    cr_assert(back.answer.entry[0].state == 0 && back.answer.entry[1].ino == 0 && back.answer.place[1].length == 0);
}

Test(wire, no_body_is_larger_than_is_said)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++)
        cr_assert_leq(message_size(&(struct message){.type = type}), MESSAGE_FIXED + MESSAGE_BODY_MAX, "type %u", type);
}

Test(wire, every_truncation_is_malformed)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
        uint8_t bytes[MESSAGE_SHORT + 1] = {0};
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
    message.rename.to_name.length = MESSAGE_NAME_MAX + 1;
    cr_assert_eq(message_encode(bytes, sizeof bytes, &message), 0);
    message = some_message(MESSAGE_LOAD);
    message.load.path.length = MESSAGE_TEXT_MAX + 1;
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
    static const uint16_t types[] = {0, MESSAGE_TYPES, UINT16_MAX};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct message message = some_message(MESSAGE_STATUS), back;
        uint8_t bytes[MESSAGE_SHORT];
        const size_t size = message_encode(bytes, sizeof bytes, &message);
        memcpy(bytes + 2, &types[i], 2);
        cr_assert_eq(message_decode(&back, bytes, size), -EBADMSG);
        message.type = types[i];
        cr_assert_eq(message_encode(bytes, sizeof bytes, &message), 0);
        cr_assert_eq(message_size(&message), 0);
        cr_assert_null(message_text_of(&message));
    }
}

static const uint16_t with_a_name[] = {
    MESSAGE_LOOKUP, MESSAGE_CREATE,   MESSAGE_COMMIT, MESSAGE_ABORT,   MESSAGE_ADOPT, MESSAGE_VANISHED,
    MESSAGE_UNLINK, MESSAGE_UNLINKED, MESSAGE_RENAME, MESSAGE_RENAMED, MESSAGE_RMDIR, MESSAGE_PROMOTE,
};

static const struct message_text no_names[] = {{"", 0},   {".", 1},    {"..", 2}, {"/", 1}, {"a/b", 3}, {"/etc/passwd", 11},
                                               {"a/", 2}, {"a\0b", 3}, {"\0", 1}};

Test(wire, bad_names_are_refused)
{
    for (size_t i = 0; i < sizeof with_a_name / sizeof *with_a_name; i++)
        for (size_t j = 0; j < sizeof no_names / sizeof *no_names; j++) {
            struct message message = some_message(with_a_name[i]);
            message.name = no_names[j];
            cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG, "type %u, name %zu", with_a_name[i], j);
        }
}

Test(wire, bad_second_names_are_refused)
{
    for (uint16_t type = MESSAGE_RENAME; type <= MESSAGE_RENAMED; type++)
        for (size_t j = 0; j < sizeof no_names / sizeof *no_names; j++) {
            struct message message = some_message(type);
            message.rename.to_name = no_names[j];
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
        message.name = message_text(names[i], strlen(names[i]));
        cr_assert_eq(decode_of(&message, WIRE_VERSION), 0, "%s", names[i]);
    }
    message.name = message_text(longest, sizeof longest);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), 0);
}

Test(wire, a_load_says_where)
{
    struct message message = some_message(MESSAGE_LOAD);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), 0);
    message.load.path = message_text("", 0);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message.load.path = message_text("a\0b", 3);
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
}

Test(wire, a_text_that_the_type_has_not_is_refused)
{
    static const size_t lengths_at[] = {6, 8, MESSAGE_TEXT_LENGTH_AT};
    for (size_t i = 0; i < sizeof lengths_at / sizeof *lengths_at; i++) {
        const struct message message = {.type = MESSAGE_PING};
        struct message back;
        uint8_t bytes[MESSAGE_SHORT] = {0};
        const size_t size = message_encode(bytes, sizeof bytes, &message);
        bytes[lengths_at[i]] = 1;
        cr_assert_eq(message_decode(&back, bytes, size + 1), -EBADMSG);
    }
}

Test(wire, bad_entries_are_refused)
{
    struct message message = some_message(MESSAGE_COMMIT);
    message.commit.entry.state = 9;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG);
    message = some_message(MESSAGE_RENAME_ANSWER);
    message.answer.entry[1].leaf = 1;
    cr_assert_eq(decode_of(&message, WIRE_VERSION), -EBADMSG, "a leaf of the trunk");
}

Test(wire, a_truth_is_zero_or_one)
{
    const struct message message = some_message(MESSAGE_FENCE);
    uint8_t bytes[MESSAGE_SHORT];
    struct message back;
    const size_t size = message_encode(bytes, sizeof bytes, &message);
    bytes[size - 1] = 2;
    cr_assert_eq(message_decode(&back, bytes, size), -EBADMSG);
}

static bool is_name(const struct message_text *name)
{
    return name->length > 0 && name->length <= RECORD_NAME_MAX && !memchr(name->text, '/', name->length) &&
           !memchr(name->text, '\0', name->length) && !(name->length == 1 && name->text[0] == '.') &&
           !(name->length == 2 && name->text[0] == '.' && name->text[1] == '.');
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
    cr_assert(!needs_name(message.type) || is_name(&message.name));
    if (message.type == MESSAGE_RENAME || message.type == MESSAGE_RENAMED)
        cr_assert(is_name(&message.rename.to_name));
    uint8_t *copy = malloc(size);
    cr_assert_eq(message_encode(copy, size, &message), size);
    free(copy);
}

Test(wire, hostile_bytes)
{
    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message message = some_message(type);
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
