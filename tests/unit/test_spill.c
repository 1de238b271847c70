/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A spilled directory answers as the index does, which is the model here. */

#include "catalogue/spill.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "place.h"

#define NAMES 3000
#define STEPS 60000

static const struct index_stamp stamp = {.session = 77, .root = {2, 3}};
static const struct dirid dir = {100, 1};
static struct spill *spill;
static struct index *model;

static void spill_init(void)
{
    place_init();
    cr_assert_eq(spill_create(&spill, place_path("spilled.1")), 0);
    cr_assert_eq(index_create(&model, place, 64u << 20, &stamp), 0);
}

static void spill_finish(void)
{
    spill_destroy(spill);
    index_destroy(model);
    place_finish();
}

TestSuite(spill, .init = spill_init, .fini = spill_finish, .timeout = 120);

static struct record_entry spill_file(uint64_t ino)
{
    return (struct record_entry){DT_REG, RECORD_LIVE, 1, (uint32_t)(ino % 7), ino};
}

struct spill_told {
    char text[64 * NAMES];
    size_t length;
    unsigned count, most;
};

static int spill_note(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct spill_told *told = context;
    cr_assert_eq(hash, record_hash(name, length));
    told->length += (size_t)snprintf(told->text + told->length, sizeof told->text - told->length, "%.*s:%lu,", (int)length,
                                     name, entry->ino);
    return ++told->count >= told->most ? 1 : 0;
}

static void spill_both_list(uint64_t from, unsigned most)
{
    static struct spill_told a, b;
    a = (struct spill_told){.most = most};
    b = (struct spill_told){.most = most};
    cr_assert_eq(spill_list(spill, from, spill_note, &a), index_list(model, dir, from, spill_note, &b));
    cr_assert_str_eq(a.text, b.text);
}

static void spill_both_step(unsigned number)
{
    char name[32];
    struct record_entry entry = spill_file(number + 1), other = entry;
    const size_t length = (size_t)snprintf(name, sizeof name, "n%ld", random() % NAMES);
    switch (random() % 4) {
    case 0:
        cr_assert_eq(spill_put(spill, name, length, &entry), index_put_entry(model, dir, name, length, &entry));
        break;
    case 1:
        cr_assert_eq(spill_add(spill, name, length, &entry), index_add_entry(model, dir, name, length, &other));
        break;
    case 2:
        cr_assert_eq(spill_del(spill, name, length), index_del_entry(model, dir, name, length));
        break;
    default:
        cr_assert_eq(spill_get(spill, name, length, &entry), index_get_entry(model, dir, name, length, &other));
    }
    cr_assert(record_same(&entry, &other), "%s", name);
}

static bool spill_is_odd(void *context, uint64_t hash)
{
    (void)context;
    return hash & 1;
}

Test(spill, it_answers_as_the_index_does)
{
    for (unsigned i = 0; i < STEPS; i++) {
        spill_both_step(i);
        if (i % 500 == 0)
            spill_both_list((uint64_t)random() << 33, (unsigned)random() % 100 + 1);
    }
    spill_both_list(0, UINT32_MAX);
    cr_assert_eq(spill_has_names(spill), 1);
    const int code = spill_del_names(spill, spill_is_odd, NULL);
    cr_assert_eq(code, 0, "%d", code);
    cr_assert_eq(index_del_names(model, dir, spill_is_odd, NULL), 0);
    spill_both_list(0, UINT32_MAX);
    cr_assert_eq(spill_del_names(spill, NULL, NULL), 0);
    cr_assert_eq(spill_has_names(spill), 0);
}

static int spill_take(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    (void)hash;
    return spill_append(context, name, length, entry);
}

Test(spill, it_takes_what_the_index_has_in_its_order)
{
    for (unsigned i = 0; i < STEPS; i++) {
        const struct record_entry entry = spill_file(i + 1);
        char name[32];
        const size_t length = (size_t)snprintf(name, sizeof name, "n%ld", random() % NAMES);
        cr_assert_eq(index_put_entry(model, dir, name, length, &entry), 0);
    }
    cr_assert_eq(index_list(model, dir, 0, spill_take, spill), 0);
    spill_both_list(0, UINT32_MAX);
    for (unsigned i = 0; i < STEPS; i++)
        spill_both_step(i);
    spill_both_list(0, UINT32_MAX);
}

Test(spill, its_file_has_no_name)
{
    cr_assert_neq(access(place_path("spilled.1"), F_OK), 0);
}

Test(spill, what_is_there_already_stays)
{
    struct spill *other = NULL;
    place_file("spilled.2", "somebody's");
    cr_assert_eq(spill_create(&other, place_path("spilled.2")), -EEXIST);
    cr_assert_eq(access(place_path("spilled.2"), F_OK), 0);
    cr_assert_null(other);
}

/* Names of 200 bytes until there is no room: what was there stays, and may be changed and removed. */
Test(spill, a_file_system_that_is_full_refuses_names_and_nothing_else)
{
    const struct rlimit limit = {128u << 20, 128u << 20};
    char name[200];
    struct record_entry entry = spill_file(1);
    unsigned count = 0;
    int code;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    do {
        memset(name, 'x', sizeof name);
        snprintf(name, sizeof name, "%u", count);
        entry = spill_file(count + 1);
        code = spill_add(spill, name, sizeof name, &entry);
        count += code == 0;
    } while (code == 0 && count < 1000000);
    cr_assert_eq(code, -ENOSPC, "%d after %u", code, count);
    cr_assert_lt(spill_make_room(spill), 0);
    for (unsigned i = 0; i < count; i++) {
        memset(name, 'x', sizeof name);
        snprintf(name, sizeof name, "%u", i);
        cr_assert(spill_get(spill, name, sizeof name, &entry) == 0 && entry.ino == i + 1, "%u", i);
        entry.ino += 7;
        cr_assert_eq(i % 16 == 0 ? spill_put(spill, name, sizeof name, &entry) : spill_del(spill, name, sizeof name), 0, "%u",
                     i);
    }
    code = spill_make_room(spill);
    cr_assert_eq(code, 0, "most of them are gone: %d", code);
}
