/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "index/index.h"

#include <signal.h>
#include <sys/resource.h>

#include "place.h"

#define MAP (64u << 20)

static const struct index_stamp stamp = {.session = 77, .root = {2, 3}};
static const struct dirid one = {100, 1}, two = {100, 2}, three = {101, 1};

static struct index *make_index(size_t map_size)
{
    struct index *index;
    cr_assert_eq(index_create(&index, place, map_size, &stamp), 0);
    return index;
}

static struct index *index_made(void)
{
    return make_index(MAP);
}

static struct record_entry index_file(uint64_t ino)
{
    return (struct record_entry){DT_REG, RECORD_LIVE, 1, 4, ino};
}

static void index_put(struct index *index, struct dirid dir, const char *name, uint64_t ino)
{
    struct record_entry entry = index_file(ino);
    cr_assert_eq(index_put_entry(index, dir, name, strlen(name), &entry), 0, "%s", name);
}

/* The inode number, or 0. */
static uint64_t index_get(struct index *index, struct dirid dir, const char *name)
{
    struct record_entry entry;
    int code = index_get_entry(index, dir, name, strlen(name), &entry);
    cr_assert(code == 0 || code == -ENOENT, "%d", code);
    return code == 0 ? entry.ino : 0;
}

TestSuite(index, .init = place_init, .fini = place_finish);

Test(index, add_where_there_is_none)
{
    struct index *index = index_made();
    struct record_entry entry = index_file(5);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), 0);
    entry = index_file(6);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), -EEXIST);
    cr_assert_eq(entry.ino, 5, "what is there");
    cr_assert_eq(index_get(index, one, "a"), 5);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0);
    entry = index_file(6);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), 0);
    cr_assert_eq(index_get(index, one, "a"), 6);
    index_destroy(index);
}

Test(index, put_get_del)
{
    struct index *index = index_made();
    struct record_entry entry;
    cr_assert_eq(index_get_entry(index, one, "a", 1, &entry), -ENOENT);
    index_put(index, one, "a", 5);
    index_put(index, one, "b", 6);
    index_put(index, two, "a", 7);
    index_put(index, one, "a", 8);
    cr_assert_eq(index_get_entry(index, one, "a", 1, &entry), 0);
    cr_assert(entry.type == DT_REG && entry.state == RECORD_LIVE && entry.branch == 1 && entry.leaf == 4);
    cr_assert_eq(entry.ino, 8, "the last one stands");
    cr_assert_eq(index_get(index, two, "a"), 7);
    cr_assert_eq(index_get(index, three, "a"), 0);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0, "of what is not there");
    cr_assert_eq(index_get(index, one, "a"), 0);
    cr_assert_eq(index_get(index, one, "b"), 6);
    index_destroy(index);
}

Test(index, names_of_every_length)
{
    struct index *index = index_made();
    char name[RECORD_NAME_MAX + 2];
    struct record_entry entry = index_file(1);
    memset(name, 'x', sizeof name);
    for (size_t length = 1; length <= RECORD_NAME_MAX; length++) {
        entry.ino = length;
        cr_assert_eq(index_put_entry(index, one, name, length, &entry), 0);
    }
    for (size_t length = 1; length <= RECORD_NAME_MAX; length++) {
        cr_assert_eq(index_get_entry(index, one, name, length, &entry), 0);
        cr_assert_eq(entry.ino, length);
    }
    cr_assert_lt(index_put_entry(index, one, name, RECORD_NAME_MAX + 1, &entry), 0);
    cr_assert_lt(index_get_entry(index, one, name, RECORD_NAME_MAX + 1, &entry), 0);
    index_destroy(index);
}

Test(index, directories)
{
    struct index *index = index_made();
    struct record_dir dir = {.flags = RECORD_LOADED | RECORD_MARKED, .marker = 5, .mirror = "out-000000000005"}, back;
    cr_assert_eq(index_get_dir(index, one, &back), -ENOENT);
    cr_assert_eq(index_put_dir(index, one, &dir), 0);
    cr_assert_eq(index_get_dir(index, one, &back), 0);
    cr_assert_eq(back.flags, dir.flags);
    cr_assert_str_eq(back.mirror, dir.mirror);
    cr_assert_eq(index_get_dir(index, two, &back), -ENOENT);
    cr_assert_eq(index_has_names(index, one), 0, "its own record is no name");
    index_destroy(index);
}

Test(index, has_names)
{
    struct index *index = index_made();
    struct record_dir dir = {.flags = RECORD_LOADED};
    cr_assert_eq(index_has_names(index, one), 0, "of an empty index");
    index_put(index, two, "a", 1);
    index_put(index, three, "a", 1);
    cr_assert_eq(index_put_dir(index, one, &dir), 0);
    cr_assert_eq(index_has_names(index, one), 0, "others have");
    index_put(index, one, "z", 1);
    cr_assert_eq(index_has_names(index, one), 1);
    cr_assert_eq(index_del_entry(index, one, "z", 1), 0);
    cr_assert_eq(index_has_names(index, one), 0);
    index_destroy(index);
}

Test(index, a_directory_goes_with_all_its_names)
{
    struct index *index = index_made();
    struct record_dir dir = {.flags = RECORD_LOADED};
    char name[16];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        index_put(index, two, name, i + 1);
    }
    index_put(index, one, "a", 1);
    index_put(index, three, "a", 1);
    cr_assert_eq(index_put_dir(index, one, &dir), 0);
    cr_assert_eq(index_put_dir(index, two, &dir), 0);
    cr_assert_eq(index_del_dir(index, two), 0);
    cr_assert_eq(index_has_names(index, two), 0);
    cr_assert_eq(index_get_dir(index, two, &dir), -ENOENT);
    cr_assert_eq(index_get_dir(index, one, &dir), 0, "its neighbours stay");
    cr_assert_eq(index_get(index, one, "a"), 1);
    cr_assert_eq(index_get(index, three, "a"), 1);
    cr_assert_eq(index_del_dir(index, two), 0, "again");
    cr_assert_eq(index_del_dir(index, three), 0, "the last of the index");
    index_destroy(index);
}

Test(index, branches_and_stamp_are_nobodys_names)
{
    struct index *index = index_made();
    cr_assert_eq(index_put_branch(index, 1, "n017.1"), 0);
    cr_assert_eq(index_put_branch(index, UINT16_MAX, "n042.1"), 0);
    cr_assert_eq(index_has_names(index, one), 0);
    cr_assert_eq(index_del_dir(index, one), 0);
    struct index_size size;
    index_measure(index, &size);
    cr_assert_eq(size.entries, 3);
    index_destroy(index);
}

Test(index, a_branch_gets_another_name)
{
    struct index *index = index_made();
    struct index_size size;
    char name[RECORD_BRANCH_MAX + 1];
    cr_assert_eq(index_put_branch(index, 7, "n017.1"), 0);
    cr_assert_eq(index_put_branch(index, 7, "n017.2"), 0);
    index_measure(index, &size);
    cr_assert_eq(size.entries, 2);
    memset(name, 'x', sizeof name);
    name[RECORD_BRANCH_MAX] = '\0';
    cr_assert_eq(index_put_branch(index, 8, name), -ENAMETOOLONG);
    index_destroy(index);
    index_destroy(NULL);
}

Test(index, created_again_it_is_empty)
{
    struct index *index = index_made();
    index_put(index, one, "a", 1);
    index_destroy(index);
    index = index_made();
    cr_assert_eq(index_get(index, one, "a"), 0);
    index_destroy(index);
}

/* It is soft state: whatever lies there is replaced, never read. */
Test(index, foreign_files_are_replaced)
{
    static const char *const words[] = {"", "not an index", "\xde\xef\xc0\xbe"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        place_file("index", words[i]);
        struct index *index = index_made();
        index_put(index, one, "a", 1);
        index_destroy(index);
    }
}

Test(index, no_directory)
{
    struct index *index = NULL;
    cr_assert_eq(index_create(&index, place_path("missing"), MAP, &stamp), -ENOENT);
    place_file("file", "");
    cr_assert_eq(index_create(&index, place_path("file"), MAP, &stamp), -ENOTDIR);
    place_directory("data/index");
    cr_assert_eq(index_create(&index, place_path("data"), MAP, &stamp), -EISDIR);
    cr_assert_null(index);
}

/* What is refused changes nothing. */
Test(index, a_full_map)
{
    struct index *index = make_index(256 * 1024);
    struct record_entry entry = index_file(1);
    struct index_size size;
    char name[201];
    int code = 0;
    unsigned count = 0;
    for (; code == 0 && count < 100000; count++) {
        snprintf(name, sizeof name, "%0200u", count);
        code = index_put_entry(index, one, name, 200, &entry);
    }
    cr_assert_eq(code, -ENOSPC);
    cr_assert_gt(count, 100);
    index_measure(index, &size);
    cr_assert_eq(size.entries, 1 + 1 + count - 1, "the stamp, the directory and what was put");
    for (unsigned i = 0; i < count - 1; i++) {
        snprintf(name, sizeof name, "%0200u", i);
        cr_assert_eq(index_get(index, one, name), 1);
        cr_assert_eq(index_put_entry(index, one, name, 200, &entry), 0, "what is there may change");
    }
    for (unsigned i = 0; i < count - 1; i++) {
        snprintf(name, sizeof name, "%0200u", i);
        cr_assert_eq(index_del_entry(index, one, name, 200), 0);
    }
    index_put(index, one, "a", 1);
    cr_assert_not(index_is_damaged(index));
    index_destroy(index);
}

/* Puts a name of 200 bytes, if there is room. */
static bool index_add(struct index *index, unsigned number)
{
    char name[201];
    snprintf(name, sizeof name, "%0200u", number);
    int code = index_make_room(index, one, name, 200);
    struct record_entry entry = index_file(number + 1);
    cr_assert(code == 0 || code == -ENOSPC, "%d", code);
    cr_assert_eq(index_add_entry(index, one, name, 200, &entry), code);
    return code == 0;
}

static void take_away(struct index *index, unsigned number)
{
    char name[201];
    snprintf(name, sizeof name, "%0200u", number);
    cr_assert_eq(index_del_entry(index, one, name, 200), 0);
}

static unsigned index_fill(struct index *index)
{
    unsigned count = 0;
    while (count < 100000 && index_add(index, count))
        count++;
    return count;
}

Test(index, no_room_is_told_before_it_is_needed)
{
    struct index *index = make_index(4 << 20);
    unsigned count = index_fill(index);
    cr_assert(count > 5000 && count < 100000, "%u", count);
    cr_assert_eq(index_make_room_for(index, 10000, 2000000), -ENOSPC);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < count; i += 2)
            take_away(index, i);
        for (unsigned i = 0; i < count; i += 2)
            cr_assert(index_add(index, i), "what was given back is there: %u of %u", i, count);
    }
    index_destroy(index);
}

/* As many as were predicted need no more than was made for them, whatever their lengths. */
Test(index, room_for_many_names)
{
    static const unsigned lengths[] = {8, 16, 60, 112, 200, 232, 255};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned count = 20000; count < 60000; count += count / 4) {
            struct index *index = make_index(128 << 20);
            char name[256];
            cr_assert_eq(index_make_room_for(index, count, (uint64_t)count * lengths[i]), 0);
            struct stat before = place_stat("index");
            for (unsigned j = 0; j < count; j++) {
                snprintf(name, sizeof name, "%0*u", (int)lengths[i], j);
                index_put(index, one, name, j + 1);
            }
            cr_assert_eq(place_stat("index").st_size, before.st_size, "more was needed than was said");
            cr_assert_lt((uint64_t)before.st_size, (4ull << 20) + 3ull * count * (lengths[i] + 32));
            index_destroy(index);
        }
}

/* What is free is in pieces: names are refused before they are needed, too. */
Test(index, room_that_is_in_pieces)
{
    struct record_entry entry = index_file(1);
    char name[256];
    for (unsigned length = 100; length < 256; length += 31) {
        struct index *index = make_index(8 << 20);
        unsigned count = 0;
        for (unsigned i = 0; index_make_room(index, one, name, (size_t)snprintf(name, sizeof name, "n%u", i)) == 0; i++)
            index_put(index, one, name, 1);
        cr_assert_eq(index_del_dir(index, one), 0);
        for (;; count++) {
            snprintf(name, sizeof name, "%0*u", (int)length, count);
            if (index_make_room(index, two, name, length) != 0)
                break;
            cr_assert_eq(index_put_entry(index, two, name, length, &entry), 0, "%u of length %u", count, length);
        }
        cr_assert_gt(count, 5000000 / (2 * (length + 32)), "%u of length %u", count, length);
        index_destroy(index);
    }
}

/* What is refused takes nothing of what is kept. */
Test(index, refused_in_a_new_directory)
{
    struct index *index = make_index(4 << 20);
    struct record_entry entry = index_file(1);
    struct index_size before, after;
    index_fill(index);
    while (index_make_room(index, three, "name", 4) == 0)
        cr_assert_eq(index_put_dir(index, (struct dirid){++entry.ino, 7}, &(struct record_dir){0}), 0);
    index_measure(index, &before);
    for (unsigned i = 0; i < 10000; i++)
        cr_assert_eq(index_add_entry(index, (struct dirid){1000000 + i, 8}, "name", 4, &entry), -ENOSPC);
    index_measure(index, &after);
    cr_assert(after.entries == before.entries && after.bytes_used == before.bytes_used);
    index_destroy(index);
}

/* Directories that come and go leave room for a large one. */
Test(index, what_was_given_back_is_whole_again)
{
    struct index *index = make_index(128 << 20);
    char name[32];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 50000; i++)
            index_put(index, (struct dirid){1 + i, 9}, "name", 1);
        for (unsigned i = 0; i < 50000; i++)
            cr_assert_eq(index_del_entry(index, (struct dirid){1 + i, 9}, "name", 4), 0);
        off_t size = place_stat("index").st_size;
        for (unsigned i = 0; i < 200000; i++)
            index_put(index, one, (snprintf(name, sizeof name, "n%u", i), name), 1);
        cr_assert_eq(index_del_names(index, one, NULL, NULL), 0);
        cr_assert_leq(place_stat("index").st_size, size + (2 << 20));
    }
    index_destroy(index);
}

/* The file cannot grow: the limit of a process stands in for a file system that is full. */
Test(index, a_full_file_system)
{
    struct index *index = make_index(64 << 20);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 << 20, RLIM_INFINITY});
    unsigned count = index_fill(index);
    cr_assert(count > 2000 && count < 100000, "%u", count);
    take_away(index, 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    cr_assert(index_add(index, count), "it goes on");
    index_destroy(index);
}

static int index_change(struct index *index, unsigned number)
{
    struct record_entry entry = index_file(number);
    char name[256];
    size_t length = 1 + number % 255;
    snprintf(name, sizeof name, "%0255u", number);
    const char *tail = name + 255 - length; /* as different in length as names are */
    return index_make_room(index, one, tail, length) == 0 ? index_put_entry(index, one, tail, length, &entry)
                                                          : index_del_entry(index, one, tail, length);
}

/* While there is no more room than that; what is free is so in no order. */
Test(index, a_full_file_system_for_long)
{
    struct index *index = make_index(64 << 20);
    unsigned seed = 5, refused = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){6 << 20, RLIM_INFINITY});
    for (unsigned i = 0; i < 400000; i++) {
        cr_assert_eq(index_change(index, place_next(&seed) % 40000), 0, "change %u", i);
        refused += index_make_room(index, one, "?", 1) != 0;
    }
    cr_assert_gt(refused, 100);
    cr_assert_not(index_is_damaged(index));
    index_destroy(index);
}

/* There is none for many names: that is no reason to refuse a few, or to fail where nobody asks. */
Test(index, room_for_few_where_there_is_none_for_many)
{
    struct index *index = make_index(64 << 20);
    char name[201];
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){8 << 20, RLIM_INFINITY});
    for (unsigned round = 0; round < 20; round++) {
        cr_assert_eq(index_make_room_for(index, 50000, 50000 * 200), -ENOSPC);
        for (unsigned i = 0; i < 200; i++) {
            snprintf(name, sizeof name, "%0200u", round * 1000 + i);
            index_put(index, one, name, i + 1);
        }
        cr_assert_eq(index_make_room(index, one, "?", 1), 0);
    }
    index_destroy(index);
}

/* What nobody asked room for is refused at last, and nothing worse. */
Test(index, a_full_file_system_and_nobody_asks)
{
    struct index *index = make_index(64 << 20);
    struct record_entry entry = index_file(1);
    char name[201];
    int code = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 << 20, RLIM_INFINITY});
    for (unsigned count = 0; code == 0 && count < 100000; count++) {
        snprintf(name, sizeof name, "%0200u", count);
        code = index_put_entry(index, one, name, 200, &entry);
    }
    cr_assert_eq(code, -ENOSPC);
    index_destroy(index);
}

Test(index, measure)
{
    struct index *index = index_made();
    struct index_size small, large;
    char name[16];
    index_measure(index, &small);
    cr_assert_eq(small.entries, 1, "the stamp");
    cr_assert_gt(small.bytes_used, 0);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        index_put(index, one, name, i + 1);
    }
    index_measure(index, &large);
    cr_assert_eq(large.entries, 5002, "and the directory");
    cr_assert_gt(large.bytes_used, 5000 * 40);
    cr_assert_lt(large.bytes_used, MAP);
    index_destroy(index);
}

/* A plain table next to it says what must be there. */

#define MODEL_NAMES 3000

struct model {
    struct index *index;
    uint64_t ino[2][MODEL_NAMES]; /* 0: it is not there */
    unsigned count[2];
};

static size_t model_name(unsigned number, char name[RECORD_NAME_MAX + 1])
{
    snprintf(name, RECORD_NAME_MAX + 1, "%0255u", number);
    size_t length = 4 + number % 97;
    memmove(name, name + RECORD_NAME_MAX - length, length + 1);
    return length;
}

static void model_change(struct model *model, unsigned dir, unsigned number, uint64_t ino)
{
    const struct dirid id = dir ? two : one;
    struct record_entry entry = index_file(ino);
    char name[RECORD_NAME_MAX + 1];
    size_t length = model_name(number, name);
    uint64_t *there = &model->ino[dir][number];
    if (ino == 0)
        cr_assert_eq(index_del_entry(model->index, id, name, length), 0);
    else if (ino % 2)
        cr_assert_eq(index_put_entry(model->index, id, name, length, &entry), 0);
    else
        cr_assert_eq(index_add_entry(model->index, id, name, length, &entry), *there != 0 ? -EEXIST : 0);
    cr_assert(*there == 0 || ino == 0 || ino % 2 || entry.ino == *there);
    ino = ino != 0 && ino % 2 == 0 && *there != 0 ? *there : ino;
    model->count[dir] += (ino != 0) - (*there != 0);
    *there = ino;
}

struct model_listing {
    const struct model *model;
    unsigned dir, count;
    uint64_t last;
};

static int model_each(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct model_listing *listing = context;
    char same[RECORD_NAME_MAX + 1], copy[RECORD_NAME_MAX + 1];
    memcpy(copy, name, length);
    copy[length] = '\0';
    unsigned number = (unsigned)strtoul(copy, NULL, 10);
    cr_assert(number < MODEL_NAMES && model_name(number, same) == length && memcmp(same, name, length) == 0);
    cr_assert_eq(listing->model->ino[listing->dir][number], entry->ino);
    cr_assert(hash == record_hash(name, length) && hash >= listing->last);
    listing->last = hash;
    listing->count++;
    return 0;
}

static void model_check(struct model *model)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        struct model_listing listing = {.model = model, .dir = dir};
        cr_assert_eq(index_list(model->index, dir ? two : one, 0, model_each, &listing), 0);
        cr_assert_eq(listing.count, model->count[dir]);
        cr_assert_eq(index_has_names(model->index, dir ? two : one), model->count[dir] > 0);
    }
}

static bool is_odd_hash(void *context, uint64_t hash)
{
    return hash & 1;
}

static void model_wholesale(struct model *model, unsigned dir, unsigned what)
{
    const struct dirid id = dir ? two : one;
    char name[RECORD_NAME_MAX + 1];
    cr_assert_eq(what == 0   ? index_del_dir(model->index, id)
                 : what == 1 ? index_del_names(model->index, id, NULL, NULL)
                             : index_del_names(model->index, id, is_odd_hash, NULL),
                 0);
    for (unsigned i = 0; i < MODEL_NAMES; i++)
        if (what < 2 || (record_hash(name, model_name(i, name)) & 1)) {
            model->count[dir] -= model->ino[dir][i] != 0;
            model->ino[dir][i] = 0;
        }
}

Test(index, whatever_is_done_to_it)
{
    static struct model model;
    struct index_size size, most = {0};
    unsigned seed = 3;
    model.index = index_made();
    for (unsigned round = 0; round < 300; round++) {
        unsigned share = place_next(&seed) % 5; /* of unlinks: it grows, and it shrinks */
        for (unsigned i = 0; i < 1000; i++)
            model_change(&model, place_next(&seed) % 2, place_next(&seed) % MODEL_NAMES,
                         place_next(&seed) % 4 < share ? 0 : 1 + place_next(&seed));
        if (place_next(&seed) % 4 == 0)
            model_wholesale(&model, place_next(&seed) % 2, place_next(&seed) % 3);
        model_check(&model);
        index_measure(model.index, &size);
        cr_assert_eq(size.entries, 1 + (model.count[0] > 0) + (model.count[1] > 0) + model.count[0] + model.count[1]);
        most.bytes_used = size.bytes_used > most.bytes_used ? size.bytes_used : most.bytes_used;
    }
    cr_assert_eq(index_del_dir(model.index, one), 0);
    cr_assert_eq(index_del_dir(model.index, two), 0);
    index_measure(model.index, &size);
    cr_assert_eq(size.entries, 1);
    cr_assert_leq(size.bytes_used, 4096, "all blocks were given back: %lu of %lu are used", size.bytes_used, most.bytes_used);
    /* The file grows by 1 MiB at a time. */
    cr_assert_leq((uint64_t)place_stat("index").st_size, 4 * most.bytes_used + (1 << 20), "they are used again");
    cr_assert_not(index_is_damaged(model.index));
    index_destroy(model.index);
}

/* Whatever its hashes are: names that fall into one bucket all. */
Test(index, names_of_almost_one_hash)
{
    struct index *index = index_made();
    char name[16];
    unsigned found = 0;
    for (unsigned i = 0; found < 500; i++) {
        size_t length = (size_t)snprintf(name, sizeof name, "c%u", i);
        if (record_hash(name, length) >> (63 - 12) != 1)
            continue;
        index_put(index, one, name, i + 1);
        cr_assert_eq(index_get(index, one, name), i + 1);
        found++;
    }
    struct index_size size;
    index_measure(index, &size);
    cr_assert_lt(size.bytes_used, 500 * 200);
    cr_assert_eq(size.entries, 502);
    cr_assert_eq(index_del_names(index, one, NULL, NULL), 0);
    index_destroy(index);
}

Test(index, names_of_one_hash)
{
    static const char names[][17] = {"\xb9\x39\x42\xea\x7b\x73\x82\x67\xd5\x9f\x3d\x99\x43\xea\x62\xbd",
                                     "\xa9\x39\x42\xea\x7b\x73\x82\x67\xc5\xbf\x4a\x6b\x69\xfd\x66\xa0",
                                     "\x0f\x3d\x42\xea\x7b\x73\x82\x67\xb3\xaa\x3e\x25\xb1\x31\x45\xaf",
                                     "\xa1\x30\x42\xea\x7b\x73\x82\x67\x7d\xda\x62\xe9\xb1\xc3\x4d\xaf",
                                     "\x7b\xfd\x42\xea\x7b\x73\x82\x67\x5f\x1d\xf4\xe2\x61\xdb\x56\xaf"};
    const unsigned count = sizeof names / sizeof *names;
    struct index *index = index_made();
    for (unsigned i = 0; i < count; i++) {
        cr_assert_eq(record_hash(names[i], 16), record_hash(names[0], 16));
        index_put(index, one, names[i], i + 1);
    }
    for (unsigned i = 0; i < count; i += 2)
        cr_assert_eq(index_del_entry(index, one, names[i], 16), 0);
    for (unsigned i = 0; i < count; i++)
        cr_assert_eq(index_get(index, one, names[i]), i % 2 ? i + 1 : 0);
    index_destroy(index);
}

Test(index, holds_a_million_names_in_200_mb)
{
    struct index *index = make_index(1u << 30);
    struct record_entry entry = index_file(1);
    struct index_size size;
    char name[32];
    for (unsigned i = 0; i < 1000000; i++)
        cr_assert_eq(index_put_entry(index, one, name, (size_t)snprintf(name, sizeof name, "checkpoint%06u", i), &entry), 0);
    index_measure(index, &size);
    cr_assert_lt(place_stat("index").st_size, 200 << 20);
    cr_assert_eq(size.entries, 1000002);
    cr_assert_eq(index_get(index, one, "checkpoint777777"), 1);
    cr_assert_eq(index_get(index, one, "checkpoint1000000"), 0);
    index_destroy(index);
}

/* Bytes that are no index, from there on. */
static void index_overwrite(off_t at)
{
    static char bytes[1 << 20];
    int fd = open(place_path("index"), O_WRONLY | O_CLOEXEC);
    off_t end = place_stat("index").st_size;
    memset(bytes, 0xf0, sizeof bytes);
    cr_assert(at < end && end - at <= (off_t)sizeof bytes);
    cr_assert_eq(pwrite(fd, bytes, (size_t)(end - at), at), end - at);
    close(fd);
}

/* It is there, or the index is damaged: never is it absent. */
Test(index, that_is_overwritten)
{
    struct record_entry entry;
    unsigned damaged = 0;
    for (off_t at = 0; at < 8192; at += 64) {
        struct index *index = index_made();
        index_put(index, one, "a", 1);
        index_overwrite(at);
        int code = index_get_entry(index, one, "a", 1, &entry);
        cr_assert(code == -EBADMSG || (code == 0 && at > 0), "from %ld: %d", (long)at, code);
        cr_assert_eq(index_is_damaged(index), code != 0);
        damaged += code != 0;
        index_destroy(index);
    }
    cr_assert_gt(damaged, 5);
}

/* Whatever its bytes are, what reads or changes them goes on or is told. */
Test(index, of_any_bytes)
{
    unsigned seed = 11, damaged = 0;
    for (unsigned round = 0; round < 2000; round++) {
        struct index *index = make_index(1 << 20);
        struct record_entry entry = index_file(1);
        char name[RECORD_NAME_MAX + 1];
        for (unsigned i = 0; i < 40; i++)
            cr_assert_eq(index_put_entry(index, one, name, model_name(i, name), &entry), 0);
        int fd = open(place_path("index"), O_WRONLY | O_CLOEXEC);
        for (unsigned i = 0; i < 1 + round % 8; i++) {
            const uint32_t noise = place_next(&seed) % 2 ? place_next(&seed) : place_next(&seed) % 128;
            const size_t size = 1 + place_next(&seed) % 4;
            cr_assert_eq(pwrite(fd, &noise, size, 64 + place_next(&seed) % 9000), (ssize_t)size);
        }
        close(fd);
        for (unsigned i = 0; i < 80; i++) {
            index_get_entry(index, one, name, model_name(i, name), &entry);
            entry = index_file(2);
            if (i % 2)
                index_put_entry(index, one, name, model_name(i, name), &entry);
            else
                index_del_entry(index, one, name, model_name(i, name));
        }
        if (round % 2)
            index_del_names(index, one, round % 4 == 1 ? is_odd_hash : NULL, NULL);
        index_del_dir(index, one);
        for (unsigned i = 0; i < 80; i++)
            index_put_entry(index, two, name, model_name(i, name), &entry);
        damaged += index_is_damaged(index);
        index_destroy(index);
    }
    cr_assert_gt(damaged, 100);
}

Test(index, that_is_full_is_not_damaged)
{
    struct index *index = make_index(256 << 10);
    struct record_entry entry = index_file(1);
    char name[16];
    int code = 0;
    for (unsigned i = 0; i < 50000 && code == 0; i++) {
        snprintf(name, sizeof name, "n%u", i);
        code = index_put_entry(index, one, name, strlen(name), &entry);
    }
    cr_assert_eq(code, -ENOSPC);
    cr_assert_not(index_is_damaged(index));
    index_destroy(index);
}

/* Directories come and go, of which a few fit at once: as one that is bounded is used. */
Test(index, what_was_forgotten_is_room_for_others)
{
    struct index *index = index_made();
    struct index_size size;
    uint64_t after_few = 0;
    char name[24];
    for (unsigned turn = 0; turn < 600; turn++) {
        const struct dirid dir = {1000 + turn, 1}, oldest = {1000 + turn - 8, 1};
        cr_assert_eq(index_del_dir(index, oldest), 0);
        for (unsigned i = 0; i < 500 + turn * 7 % 1000; i++) {
            snprintf(name, sizeof name, "name.%u.%u", turn, i);
            index_put(index, dir, name, i + 1);
        }
        cr_assert_eq(index_put_dir(index, dir, &(struct record_dir){.flags = RECORD_LOADED}), 0);
        index_measure(index, &size);
        if (turn == 150)
            after_few = size.bytes;
    }
    cr_assert_leq(size.bytes, after_few + after_few / 4, "%lu bytes after %lu", size.bytes, after_few);
    for (unsigned turn = 592; turn < 600; turn++) {
        snprintf(name, sizeof name, "name.%u.%u", turn, 499u);
        cr_assert_eq(index_get(index, (struct dirid){1000 + turn, 1}, name), 500);
        cr_assert_eq(index_del_dir(index, (struct dirid){1000 + turn, 1}), 0);
    }
    index_measure(index, &size);
    cr_assert_eq(size.entries, 1);
    cr_assert_leq(size.bytes_used, 4096);
    index_destroy(index);
}
