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
    cr_assert_eq(index_create(&index, place, map_size, 16, &stamp), 0);
    return index;
}

static struct index *begun(void)
{
    struct index *index = make_index(MAP);
    cr_assert_eq(index_begin(index), 0);
    return index;
}

static struct record_entry file(uint64_t ino)
{
    return (struct record_entry){DT_REG, RECORD_LIVE, 1, 4, ino};
}

static void put(struct index *index, struct dirid dir, const char *name, uint64_t ino)
{
    struct record_entry entry = file(ino);
    cr_assert_eq(index_put_entry(index, dir, name, strlen(name), &entry), 0, "%s", name);
}

/* The inode number, or 0. */
static uint64_t get(struct index *index, struct dirid dir, const char *name)
{
    struct record_entry entry;
    int code = index_get_entry(index, dir, name, strlen(name), &entry);
    cr_assert(code == 0 || code == -ENOENT, "%d", code);
    return code == 0 ? entry.ino : 0;
}

TestSuite(index, .init = place_init, .fini = place_finish);

Test(index, add_where_there_is_none)
{
    struct index *index = begun();
    struct record_entry entry = file(5);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), 0);
    entry = file(6);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), -EEXIST);
    cr_assert_eq(entry.ino, 5, "what is there");
    cr_assert_eq(get(index, one, "a"), 5);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0);
    entry = file(6);
    cr_assert_eq(index_add_entry(index, one, "a", 1, &entry), 0);
    cr_assert_eq(get(index, one, "a"), 6);
    cr_assert_eq(index_commit(index), 0);
    index_destroy(index);
}

Test(index, put_get_del)
{
    struct index *index = begun();
    struct record_entry entry;
    cr_assert_eq(index_get_entry(index, one, "a", 1, &entry), -ENOENT);
    put(index, one, "a", 5);
    put(index, one, "b", 6);
    put(index, two, "a", 7);
    put(index, one, "a", 8);
    cr_assert_eq(index_get_entry(index, one, "a", 1, &entry), 0);
    cr_assert(entry.type == DT_REG && entry.state == RECORD_LIVE && entry.branch == 1 && entry.leaf == 4);
    cr_assert_eq(entry.ino, 8, "the last one stands");
    cr_assert_eq(get(index, two, "a"), 7);
    cr_assert_eq(get(index, three, "a"), 0);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0);
    cr_assert_eq(index_del_entry(index, one, "a", 1), 0, "of what is not there");
    cr_assert_eq(get(index, one, "a"), 0);
    cr_assert_eq(get(index, one, "b"), 6);
    index_destroy(index);
}

Test(index, names_of_every_length)
{
    struct index *index = begun();
    char name[RECORD_NAME_MAX + 2];
    struct record_entry entry = file(1);
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
    struct index *index = begun();
    struct record_dir dir = {.flags = RECORD_LOADED | RECORD_MARKED,
                             .marker = 5,
                             .mirror = "out-000000000005"},
                      back;
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
    struct index *index = begun();
    struct record_dir dir = {.flags = RECORD_LOADED};
    cr_assert_eq(index_has_names(index, one), 0, "of an empty index");
    put(index, two, "a", 1);
    put(index, three, "a", 1);
    cr_assert_eq(index_put_dir(index, one, &dir), 0);
    cr_assert_eq(index_has_names(index, one), 0, "others have");
    put(index, one, "z", 1);
    cr_assert_eq(index_has_names(index, one), 1);
    cr_assert_eq(index_del_entry(index, one, "z", 1), 0);
    cr_assert_eq(index_has_names(index, one), 0);
    index_destroy(index);
}

Test(index, a_directory_goes_with_all_its_names)
{
    struct index *index = begun();
    struct record_dir dir = {.flags = RECORD_LOADED};
    char name[16];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        put(index, two, name, i + 1);
    }
    put(index, one, "a", 1);
    put(index, three, "a", 1);
    cr_assert_eq(index_put_dir(index, one, &dir), 0);
    cr_assert_eq(index_put_dir(index, two, &dir), 0);
    cr_assert_eq(index_del_dir(index, two), 0);
    cr_assert_eq(index_has_names(index, two), 0);
    cr_assert_eq(index_get_dir(index, two, &dir), -ENOENT);
    cr_assert_eq(index_get_dir(index, one, &dir), 0, "its neighbours stay");
    cr_assert_eq(get(index, one, "a"), 1);
    cr_assert_eq(get(index, three, "a"), 1);
    cr_assert_eq(index_del_dir(index, two), 0, "again");
    cr_assert_eq(index_del_dir(index, three), 0, "the last of the index");
    index_destroy(index);
}

Test(index, branches_and_stamp_are_nobodys_names)
{
    struct index *index = begun();
    cr_assert_eq(index_put_branch(index, 1, "n017.1"), 0);
    cr_assert_eq(index_put_branch(index, UINT16_MAX, "n042.1"), 0);
    cr_assert_eq(index_has_names(index, one), 0);
    cr_assert_eq(index_del_dir(index, one), 0);
    cr_assert_eq(index_commit(index), 0);
    struct index_size size;
    cr_assert_eq(index_measure(index, &size), 0);
    cr_assert_eq(size.entries, 3);
    index_destroy(index);
}

Test(index, abort_takes_it_all_back)
{
    struct index *index = begun();
    put(index, one, "a", 1);
    cr_assert_eq(index_commit(index), 0);
    cr_assert_eq(index_begin(index), 0);
    put(index, one, "a", 2);
    put(index, one, "b", 3);
    index_abort(index);
    index_abort(index);
    cr_assert_eq(index_begin(index), 0);
    cr_assert_eq(get(index, one, "a"), 1);
    cr_assert_eq(get(index, one, "b"), 0);
    index_destroy(index);
    index_destroy(NULL);
}

Test(index, created_anew_it_is_empty)
{
    struct index *index = begun();
    put(index, one, "a", 1);
    cr_assert_eq(index_commit(index), 0);
    index_destroy(index);
    index = begun();
    cr_assert_eq(get(index, one, "a"), 0);
    index_destroy(index);
}

/* It is soft state: whatever lies there is replaced, never read. */
Test(index, foreign_files_are_replaced)
{
    static const char *const words[] = {"", "not an index", "\xde\xef\xc0\xbe"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        place_file("data.mdb", words[i]);
        place_file("lock.mdb", words[i]);
        struct index *index = begun();
        put(index, one, "a", 1);
        cr_assert_eq(index_commit(index), 0);
        index_destroy(index);
    }
}

Test(index, no_directory)
{
    struct index *index = NULL;
    cr_assert_eq(index_create(&index, place_path("missing"), MAP, 16, &stamp), -ENOENT);
    place_file("file", "");
    cr_assert_eq(index_create(&index, place_path("file"), MAP, 16, &stamp), -ENOTDIR);
    place_directory("data/data.mdb");
    cr_assert_eq(index_create(&index, place_path("data"), MAP, 16, &stamp), -EISDIR);
    cr_assert_null(index);
}

Test(index, a_full_map)
{
    struct index *index = make_index(256 * 1024);
    struct record_entry entry = file(1);
    char name[201];
    int code = 0;
    unsigned count = 0;
    cr_assert_eq(index_begin(index), 0);
    for (; code == 0 && count < 100000; count++) {
        snprintf(name, sizeof name, "%0200u", count);
        code = index_put_entry(index, one, name, 200, &entry);
    }
    cr_assert_eq(code, -ENOSPC);
    cr_assert_gt(count, 100);
    index_abort(index);
    cr_assert_eq(index_begin(index), 0, "it goes on");
    put(index, one, "a", 1);
    cr_assert_eq(index_commit(index), 0);
    index_destroy(index);
}

/* Puts a name of 200 bytes in a transaction of its own, if there is room. */
static bool add(struct index *index, unsigned number)
{
    char name[201];
    snprintf(name, sizeof name, "%0200u", number);
    cr_assert_eq(index_begin(index), 0);
    int code = index_make_room(index, 1);
    cr_assert(code == 0 || code == -ENOSPC, "%d", code);
    if (code == 0)
        put(index, one, name, number + 1);
    cr_assert_eq(index_commit(index), 0, "what was let in was not too much");
    return code == 0;
}

static void take_away(struct index *index, unsigned number)
{
    char name[201];
    snprintf(name, sizeof name, "%0200u", number);
    cr_assert_eq(index_begin(index), 0);
    cr_assert_eq(index_del_entry(index, one, name, 200), 0);
    cr_assert_eq(index_commit(index), 0);
}

static unsigned fill(struct index *index)
{
    unsigned count = 0;
    while (count < 100000 && add(index, count))
        count++;
    return count;
}

Test(index, no_room_is_told_before_it_is_needed)
{
    struct index *index = make_index(4 << 20);
    unsigned count = fill(index);
    cr_assert(count > 5000 && count < 100000, "%u", count);
    cr_assert_eq(index_begin(index), 0);
    cr_assert_eq(index_make_room_for(index, 10000, 2000000), -ENOSPC);
    cr_assert_eq(index_commit(index), 0);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < count; i += 2)
            take_away(index, i);
        for (unsigned i = 0; i < count; i += 2)
            cr_assert(add(index, i), "what was given back is there: %u of %u", i, count);
    }
    index_destroy(index);
}

Test(index, room_for_many_names)
{
    struct index *index = make_index(64 << 20);
    char name[201];
    cr_assert_eq(index_begin(index), 0);
    cr_assert_eq(index_make_room_for(index, 50000, 50000 * 200), 0);
    for (unsigned i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "%0200u", i);
        put(index, one, name, i + 1);
    }
    cr_assert_eq(index_commit(index), 0);
    struct stat stat = place_stat("data.mdb");
    struct index_size size;
    cr_assert_eq(index_measure(index, &size), 0);
    cr_assert_geq((uint64_t)stat.st_blocks * 512, size.bytes_used, "more was needed than was said");
    cr_assert_lt(stat.st_size, 48 << 20);
    index_destroy(index);
}

/* The file cannot grow: the limit of a process stands in for a file system that is full. */
Test(index, a_full_file_system)
{
    struct index *index = make_index(64 << 20);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 << 20, RLIM_INFINITY});
    unsigned count = fill(index);
    cr_assert(count > 2000 && count < 100000, "%u", count);
    take_away(index, 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    cr_assert(add(index, count), "it goes on");
    index_destroy(index);
}

static int change(struct index *index, unsigned number)
{
    struct record_entry entry = file(number);
    char name[256];
    size_t length = 1 + number % 255;
    snprintf(name, sizeof name, "%0255u", number);
    const char *tail = name + 255 - length; /* as different in length as names are */
    return index_make_room(index, 1) == 0 ? index_put_entry(index, one, tail, length, &entry)
                                          : index_del_entry(index, one, tail, length);
}

/* Small transactions and large ones, while there is no more room than that; now and then much is free, in no order. */
Test(index, a_full_file_system_for_long)
{
    struct index *index = make_index(64 << 20);
    unsigned seed = 5, refused = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){6 << 20, RLIM_INFINITY});
    for (unsigned round = 0; round < 2000; round++) {
        unsigned count = place_next(&seed) % 8 ? place_next(&seed) % 16 : place_next(&seed) % 3000;
        cr_assert_eq(index_begin(index), 0);
        for (unsigned i = 0; i < count; i++)
            cr_assert_eq(change(index, place_next(&seed) % 40000), 0);
        refused += index_make_room(index, 1) != 0;
        cr_assert_eq(index_commit(index), 0, "round %u", round);
    }
    cr_assert_gt(refused, 100);
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
        cr_assert_eq(index_begin(index), 0);
        cr_assert_eq(index_make_room_for(index, 50000, 50000 * 200), -ENOSPC);
        for (unsigned i = 0; i < 200; i++) {
            snprintf(name, sizeof name, "%0200u", round * 1000 + i);
            put(index, one, name, i + 1);
        }
        cr_assert_eq(index_make_room(index, 1), 0);
        cr_assert_eq(index_commit(index), 0);
    }
    index_destroy(index);
}

/* What nobody asked room for is the end of the transaction, and nothing worse. */
Test(index, a_full_file_system_and_nobody_asks)
{
    struct index *index = make_index(64 << 20);
    struct record_entry entry = file(1);
    char name[201];
    int code = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 << 20, RLIM_INFINITY});
    for (unsigned count = 0; code == 0 && count < 100000; count++) {
        snprintf(name, sizeof name, "%0200u", count);
        code = index_begin(index);
        if (code == 0)
            code = index_put_entry(index, one, name, 200, &entry);
        if (code == 0)
            code = index_commit(index);
    }
    cr_assert(code == -ENOSPC || code == -EFBIG, "%d", code);
    index_destroy(index);
}

Test(index, measure)
{
    struct index *index = begun();
    struct index_size small, large;
    char name[16];
    cr_assert_eq(index_commit(index), 0);
    cr_assert_eq(index_measure(index, &small), 0);
    cr_assert_eq(small.entries, 1, "the stamp");
    cr_assert_gt(small.bytes_used, 0);
    cr_assert_eq(small.readers, 0);
    cr_assert_eq(index_begin(index), 0);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        put(index, one, name, i + 1);
    }
    cr_assert_eq(index_commit(index), 0);
    cr_assert_eq(index_measure(index, &large), 0);
    cr_assert_eq(large.entries, 5001);
    cr_assert_gt(large.bytes_used, 5000 * 40);
    cr_assert_lt(large.bytes_used, MAP);
    cr_assert_eq(index_retire_readers(index), 0);
    index_destroy(index);
}

/* Bytes that are no page of an index, from that page on. */
static void overwrite(long page)
{
    static char bytes[1 << 20];
    int fd = open(place_path("data.mdb"), O_WRONLY | O_CLOEXEC);
    off_t at = page * sysconf(_SC_PAGESIZE), end = place_stat("data.mdb").st_size;
    memset(bytes, 0xf0, sizeof bytes);
    cr_assert(at < end && end - at <= (off_t)sizeof bytes);
    cr_assert_eq(pwrite(fd, bytes, (size_t)(end - at), at), end - at);
    close(fd);
}

Test(index, that_is_overwritten)
{
    struct record_entry entry;
    for (long page = 0; page <= 2; page += 2) { /* of which the first two say where all others are */
        struct index *index = begun();
        put(index, one, "a", 1);
        cr_assert_eq(index_commit(index), 0);
        cr_assert_not(index_is_damaged(index));
        overwrite(page);
        int code = index_begin(index);
        cr_assert_eq(code == 0 ? index_get_entry(index, one, "a", 1, &entry) : code, -EBADMSG, "%ld: %d", page, code);
        cr_assert(index_is_damaged(index));
        index_destroy(index);
    }
}

Test(index, that_is_full_is_not_damaged)
{
    struct index *index = make_index(256 << 10);
    struct record_entry entry = file(1);
    char name[16];
    int code = index_begin(index);
    for (unsigned i = 0; i < 5000 && code == 0; i++) {
        snprintf(name, sizeof name, "n%u", i);
        code = index_put_entry(index, one, name, strlen(name), &entry);
    }
    cr_assert_eq(code, -ENOSPC);
    cr_assert_not(index_is_damaged(index));
    index_destroy(index);
}
