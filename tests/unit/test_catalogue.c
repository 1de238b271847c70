/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/catalogue.h"
#include "catalogue/order.h"

#include <linux/stat.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "catalogue/codec.h"
#include "leaks.h"
#include "place.h"

#define FILE_NAME "catalogue"
#define COPY_NAME "copy"
#define NAME_SIZE 32 /* 17, and what a compiler takes for possible */

static const struct dirid root = {2, 3}, other_root = {2, 4};

static struct catalogue *catalogue_made(void)
{
    struct catalogue *c;
    cr_assert_eq(catalogue_open(&c, place_path(FILE_NAME), root), 0);
    return c;
}

static struct catalogue_stamp stamp_of_number(uint64_t number, int64_t time)
{
    return (struct catalogue_stamp){{number, number * 7}, time, time + 1};
}

/* Names of 16 bytes, of a directory and a version of it; the memory is the caller's to free. */
struct some_names {
    struct catalogue_name *at;
    char (*text)[NAME_SIZE];
};

static struct some_names names_made(uint64_t number, int64_t version, size_t count)
{
    struct some_names names = {malloc((count + 1) * sizeof *names.at), malloc((count + 1) * NAME_SIZE)};
    for (size_t i = 0; i < count; i++) {
        /* In an order that is not theirs. */
        const size_t each = count - 1 - i;
        snprintf(names.text[i], NAME_SIZE, "%02u%04u-%09zu", (unsigned)number % 100, (unsigned)version % 10000, each);
        names.at[i] = (struct catalogue_name){names.text[i], each + 1, each % 5 ? DT_REG : DT_DIR};
    }
    return names;
}

static void names_free(struct some_names *names)
{
    free(names->at);
    free(names->text);
}

static int put_some(struct catalogue *c, uint64_t number, int64_t version, size_t count)
{
    const struct catalogue_stamp stamp = stamp_of_number(number, version);
    struct some_names names = names_made(number, version, count);
    int answer = catalogue_put(c, &stamp, names.at, count, CATALOGUE_PUBLIC);
    names_free(&names);
    return answer;
}

static void put_alone(struct catalogue *c, uint64_t number, int64_t version, size_t count)
{
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_some(c, number, version, count), 0);
    cr_assert_eq(catalogue_end(c), 0);
}

struct expected {
    uint64_t number;
    int64_t version;
    size_t seen;
};

static int expect_one(void *context, const struct catalogue_name *name, size_t length)
{
    struct expected *expected = context;
    char text[NAME_SIZE];
    snprintf(text, sizeof text, "%02u%04u-%09zu", (unsigned)expected->number % 100, (unsigned)expected->version % 10000,
             expected->seen);
    const bool right = length == 16 && !strcmp(name->name, text) && name->ino == expected->seen + 1 &&
                       name->type == (expected->seen % 5 ? DT_REG : DT_DIR);
    expected->seen++;
    return right ? 0 : -ENOTNAM;
}

/* Whether it has exactly the names that put_some gave it: 1; 0: not known; another answer of the walk. */
static int walk_some(struct catalogue *c, uint64_t number, int64_t version, size_t count)
{
    const struct catalogue_stamp stamp = stamp_of_number(number, version);
    struct expected expected = {number, version, 0};
    struct catalogue_proof proven = {0};
    int answer = catalogue_walk(c, &stamp, expect_one, &expected);
    cr_assert(answer == -EBADMSG || catalogue_proves(c, &stamp, &proven) == answer, "%d", answer);
    cr_assert(answer != 1 || (expected.seen == count && (proven.count == count && proven.is_public)), "%zu of %zu",
              expected.seen, count);
    cr_assert(answer != 0 || expected.seen == 0);
    return answer;
}

TestSuite(catalogue, .init = place_init, .fini = place_finish);

static int marker_said(struct catalogue *c, uint64_t number, int64_t time)
{
    const struct catalogue_stamp stamp = stamp_of_number(number, time);
    struct marker marker;
    int answer = catalogue_marker(c, &stamp, &marker);
    cr_assert(answer != 1 || (marker.id == number && !strcmp(marker.mirror, "out-5f3a9c01d2e4") && marker.path[0] == '\0' &&
                              marker.directory.ino == number + 1 && dirid_equal(marker.root, root)));
    return answer;
}

static int put_marker(struct catalogue *c, uint64_t number, int64_t time, const char *mirror)
{
    const struct catalogue_stamp stamp = stamp_of_number(number, time);
    struct marker marker = {.id = number, .directory = {number + 1, 9}, .root = root, .path = "where/it/was"};
    strcpy(marker.mirror, mirror);
    return catalogue_put_marker(c, &stamp, &marker);
}

static int order_by_strcmp(const void *a, const void *b)
{
    const struct catalogue_name *one = a, *other = b;
    return strcmp(one->name, other->name);
}

/* Names of one to 24 bytes behind `prefix`, of so many kinds of bytes, none twice. */
static void order_both(const char *prefix, size_t count, int kinds)
{
    struct catalogue_name *names = calloc(count, sizeof *names), *model = calloc(count, sizeof *model);
    char(*texts)[64] = calloc(count, sizeof *texts);
    cr_assert(names != NULL && model != NULL && texts != NULL);
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)snprintf(texts[i], 40, "%s", prefix), end = at + 1 + (size_t)random() % 24;
        while (at < end)
            texts[i][at++] = (char)(255 - random() % kinds);
        names[i] = model[i] = (struct catalogue_name){texts[i], i + 1, DT_REG};
    }
    order_names(names, count);
    qsort(model, count, sizeof *model, order_by_strcmp);
    for (size_t i = 0; i < count; i++) {
        cr_assert_str_eq(names[i].name, model[i].name);
        cr_assert_eq(names[i].name, texts[names[i].ino - 1]);
    }
    free(names);
    free(model);
    free(texts);
}

Test(catalogue, names_are_put_in_the_order_of_strcmp)
{
    static const size_t counts[] = {0, 1, 2, 63, 64, 65, 200, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        order_both("", counts[i], 254);
        order_both("", counts[i], 2);
        order_both("checkpoint-", counts[i], 10);
        order_both("x", counts[i], 1);
    }
}

Test(catalogue, markers)
{
    struct catalogue *c = catalogue_made();
    cr_assert_eq(put_marker(c, 7, 100, "out-5f3a9c01d2e4"), -EINVAL, "there is no batch");
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_marker(c, 7, 100, "out-5f3a9c01d2e4"), 0);
    cr_assert_eq(put_marker(c, 8, 100, "../b"), -EINVAL);
    cr_assert_eq(put_marker(c, 0, 100, "out-5f3a9c01d2e4"), -EINVAL);
    cr_assert_eq(put_some(c, 7, 100, 3), 0);
    cr_assert_eq(catalogue_end(c), 0);
    cr_assert_eq(marker_said(c, 7, 100), 1);
    cr_assert_eq(marker_said(c, 7, 101), 0, "it has been written since");
    cr_assert_eq(marker_said(c, 8, 100), 0);
    cr_assert_eq(walk_some(c, 7, 100, 3), 1, "a directory is another record");
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_marker(c, 7, 101, "out-5f3a9c01d2e4"), 0);
    cr_assert_eq(catalogue_end(c), 0);
    cr_assert(marker_said(c, 7, 100) == 0 && marker_said(c, 7, 101) == 1);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(catalogue_drop(c, stamp_of_number(7, 0).id), 0);
    cr_assert_eq(catalogue_end(c), 0);
    cr_assert_eq(marker_said(c, 7, 101), 0);
    catalogue_close(c);
}

Test(catalogue, put_walk_drop)
{
    struct catalogue *c = catalogue_made();
    struct catalogue_size size;
    cr_assert_eq(walk_some(c, 1, 10, 3), 0);
    put_alone(c, 1, 10, 3);
    put_alone(c, 2, 10, 0);
    put_alone(c, 3, 10, 5);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1);
    cr_assert_eq(walk_some(c, 2, 10, 0), 1, "empty, and known to be");
    cr_assert_eq(walk_some(c, 1, 11, 3), 0, "it changed since");
    cr_assert_eq(walk_some(c, 4, 10, 3), 0);
    put_alone(c, 1, 11, 4);
    cr_assert_eq(walk_some(c, 1, 10, 3), 0);
    cr_assert_eq(walk_some(c, 1, 11, 4), 1);
    cr_assert(catalogue_measure(c, &size) == 0 && size.directories == 3 && size.names == 9);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(catalogue_drop(c, stamp_of_number(1, 0).id), 0);
    cr_assert_eq(catalogue_drop(c, stamp_of_number(1, 0).id), 0, "of what is not there");
    cr_assert_eq(catalogue_end(c), 0);
    cr_assert_eq(walk_some(c, 1, 11, 4), 0);
    cr_assert(catalogue_measure(c, &size) == 0 && size.directories == 2 && size.names == 5);
    catalogue_close(c);
    leaks_none();
}

static int stop_at_once(void *context, const struct catalogue_name *name, size_t length)
{
    ++*(int *)context;
    return -EINTR;
}

Test(catalogue, a_walk_can_be_stopped)
{
    struct catalogue *c = catalogue_made();
    const struct catalogue_stamp stamp = stamp_of_number(1, 10);
    int count = 0;
    put_alone(c, 1, 10, 3);
    cr_assert(catalogue_walk(c, &stamp, stop_at_once, &count) == -EINTR && count == 1);
    catalogue_close(c);
}

static int names_in_order(void *context, const struct catalogue_name *name, size_t length)
{
    char *before = context;
    cr_assert(length == strlen(name->name) && strcmp(before, name->name) < 0);
    strcpy(before, name->name);
    return 0;
}

Test(catalogue, names_are_told_in_the_order_of_memcmp)
{
    static char text[512][RECORD_NAME_MAX + 1];
    struct catalogue_name names[512];
    char before[RECORD_NAME_MAX + 1] = "";
    const struct catalogue_stamp stamp = stamp_of_number(1, 10);
    struct catalogue *c = catalogue_made();
    size_t count = 0;
    for (; count < RECORD_NAME_MAX; count++)
        memset(text[count], 'x', count + 1);
    for (unsigned byte = 1; byte < 256; byte++)
        if (byte != '/' && byte != '.' && byte != 'x')
            text[count++][0] = (char)byte;
    for (size_t i = 0; i < count; i++)
        names[i] = (struct catalogue_name){text[i], i, DT_LNK};
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(catalogue_put(c, &stamp, names, count, CATALOGUE_PUBLIC), 0);
    cr_assert_eq(catalogue_walk(c, &stamp, names_in_order, before), 0, "not before its end");
    cr_assert_eq(catalogue_end(c), 0);
    *before = '\0';
    cr_assert_eq(catalogue_walk(c, &stamp, names_in_order, before), 1);
    catalogue_close(c);
}

Test(catalogue, what_is_no_name_is_refused)
{
    struct catalogue *c = catalogue_made();
    const struct catalogue_stamp stamp = stamp_of_number(2, 10);
    static char longest[RECORD_NAME_MAX + 2];
    memset(longest, 'x', RECORD_NAME_MAX + 1);
    const char *const bad[] = {"", ".", "..", "a/b", longest, "same"};
    cr_assert_eq(put_some(c, 1, 10, 3), -EINVAL, "without a batch");
    cr_assert_eq(catalogue_end(c), -EINVAL);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(catalogue_begin(c), -EINVAL);
    cr_assert_eq(put_some(c, 1, 10, 3), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct catalogue_name names[] = {{"same", 1, DT_REG}, {bad[i], 2, DT_REG}};
        cr_assert_eq(catalogue_put(c, &stamp, names, 2, 0), -EINVAL, "%zu", i);
    }
    struct catalogue_name odd = {"odd", 1, 3};
    cr_assert_eq(catalogue_put(c, &stamp, &odd, 1, 0), -EINVAL);
    cr_assert_eq(catalogue_end(c), 0);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1, "the batch went on");
    cr_assert_eq(walk_some(c, 2, 10, 2), 0);
    catalogue_close(c);
}

#define MODEL_DIRECTORIES 12

/* What must be there: how many names of which version; 0 is not known. */
struct model {
    int64_t version[MODEL_DIRECTORIES];
    size_t count[MODEL_DIRECTORIES];
};

static void compare_with(struct catalogue *c, const struct model *model)
{
    struct catalogue_size size;
    uint64_t names = 0, directories = 0;
    for (unsigned i = 0; i < MODEL_DIRECTORIES; i++) {
        const int64_t version = model->version[i];
        cr_assert_eq(walk_some(c, i + 1, version ? version : 1, model->count[i]), version != 0);
        directories += version != 0;
        names += version != 0 ? model->count[i] : 0;
    }
    cr_assert_eq(catalogue_measure(c, &size), 0);
    cr_assert(size.directories == directories && size.names == names, "%lu and %lu, not %lu and %lu", size.directories,
              size.names, directories, names);
}

static void change_once(struct catalogue *c, struct model *model, int64_t version, unsigned *seed)
{
    static const unsigned sizes[] = {1, 5, 100, 100, 3000};
    const unsigned which = place_next(seed) % MODEL_DIRECTORIES;
    if (place_next(seed) % 4 == 0) {
        cr_assert_eq(catalogue_drop(c, stamp_of_number(which + 1, 0).id), 0);
        model->version[which] = 0;
        return;
    }
    model->count[which] = place_next(seed) % sizes[place_next(seed) % 5];
    model->version[which] = version;
    cr_assert_eq(put_some(c, which + 1, version, model->count[which]), 0);
}

static struct catalogue *catalogue_again(struct catalogue *c)
{
    catalogue_close(c);
    return catalogue_made();
}

Test(catalogue, is_what_was_put)
{
    struct catalogue *c = catalogue_made(), *copy;
    struct model model = {0}, before;
    unsigned seed = 1;
    const int directory = place_open(".");
    for (int64_t version = 2; version < 300; version++) {
        before = model;
        cr_assert_eq(catalogue_begin(c), 0);
        for (unsigned i = place_next(&seed) % 6; i > 0; i--)
            change_once(c, &model, version * 10 + i, &seed);
        if (place_next(&seed) % 5 == 0) {
            catalogue_undo(c);
            model = before;
        } else {
            cr_assert_eq(catalogue_end(c), 0);
        }
        if (place_next(&seed) % 10 == 0)
            c = catalogue_again(c);
        compare_with(c, &model);
        if (version % 20 != 0)
            continue;
        cr_assert_eq(catalogue_copy(c, directory, COPY_NAME), 0);
        cr_assert_eq(catalogue_open_copy(&copy, directory, COPY_NAME, root), 0);
        compare_with(copy, &model);
        catalogue_close(copy);
    }
    catalogue_close(c);
    close(directory);
    leaks_none();
}

Test(catalogue, what_was_not_ended_is_undone)
{
    struct catalogue *c = catalogue_made();
    put_alone(c, 1, 10, 3);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_some(c, 1, 11, 30), 0);
    cr_assert_eq(walk_some(c, 1, 11, 30), 0);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1);
    catalogue_undo(c);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_some(c, 1, 12, 40), 0);
    c = catalogue_again(c);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1);
    catalogue_close(c);
}

#define LARGE 2700000 /* 27 bytes each in the file */

static void limit_addresses(size_t most)
{
    const struct rlimit limit = {most, most};
    if (__lsan_do_recoverable_leak_check == NULL) /* a sanitizer needs terabytes of them */
        cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

/* More than the map has room for in the beginning, and then once more instead. */
Test(catalogue, a_large_directory)
{
    struct catalogue *c = catalogue_made();
    limit_addresses((size_t)1 << 30);
    put_alone(c, 2, 10, 100);
    put_alone(c, 1, 10, LARGE);
    cr_assert_eq(walk_some(c, 1, 10, LARGE), 1);
    put_alone(c, 1, 11, LARGE);
    cr_assert_eq(walk_some(c, 1, 10, LARGE), 0);
    c = catalogue_again(c);
    cr_assert_eq(walk_some(c, 1, 11, LARGE), 1);
    cr_assert_eq(walk_some(c, 2, 10, 100), 1);
    catalogue_close(c);
}

/* A batch is committed in parts, and loses nothing when the map grows. */
Test(catalogue, a_large_batch)
{
    struct catalogue *c = catalogue_made();
    limit_addresses((size_t)1 << 30);
    cr_assert_eq(catalogue_begin(c), 0);
    for (uint64_t i = 1; i <= 40; i++)
        cr_assert_eq(put_some(c, i, 10, 70000), 0);
    for (uint64_t i = 41; i <= 3000; i++)
        cr_assert_eq(put_some(c, i, 10, i % 7), 0);
    cr_assert_eq(catalogue_end(c), 0);
    c = catalogue_again(c);
    for (uint64_t i = 1; i <= 3000; i++)
        cr_assert_eq(walk_some(c, i, 10, i <= 40 ? 70000 : i % 7), 1, "%lu", i);
    catalogue_close(c);
}

Test(catalogue, without_addresses_what_was_there_stays)
{
    struct catalogue *c = catalogue_made();
    struct some_names names = names_made(1, 11, LARGE);
    const struct catalogue_stamp stamp = stamp_of_number(1, 11);
    if (__lsan_do_recoverable_leak_check != NULL)
        cr_skip_test("a sanitizer needs terabytes of addresses");
    put_alone(c, 1, 10, 100);
    limit_addresses((size_t)300 << 20);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_some(c, 2, 10, 100), 0);
    int error = 0;
    for (uint64_t i = 1; i <= 12 && error == 0; i++)
        error = catalogue_put(c, &(struct catalogue_stamp){{100 + i, 0}, 1, 1}, names.at, LARGE, 0);
    cr_assert_eq(error, -ENOMEM);
    cr_assert_eq(catalogue_end(c), -EINVAL, "there is no batch any more");
    cr_assert_eq(walk_some(c, 1, 10, 100), 1);
    cr_assert_eq(walk_some(c, 2, 10, 100), 1, "it was committed before the map was to grow");
    cr_assert_eq(catalogue_proves(c, &stamp, NULL), 0);
    put_alone(c, 2, 11, 100);
    cr_assert_eq(walk_some(c, 2, 11, 100), 1);
    catalogue_close(c);
    names_free(&names);
}

/* Puts until that fails; what was there before is there, and small things may be put again. */
static void fill_up(struct catalogue *c, int wanted, int as_well)
{
    put_alone(c, 1, 10, 100);
    cr_assert_eq(catalogue_begin(c), 0);
    int error = put_some(c, 2, 10, 100000);
    if (error == 0)
        error = catalogue_end(c);
    cr_assert(error == wanted || error == as_well, "%d", error);
    cr_assert_eq(walk_some(c, 1, 10, 100), 1);
    cr_assert_eq(walk_some(c, 2, 10, 100000), 0);
    put_alone(c, 3, 10, 100);
    cr_assert_eq(walk_some(c, 3, 10, 100), 1);
}

Test(catalogue, a_file_that_may_not_grow)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    struct catalogue *c = catalogue_made();
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill_up(c, -EFBIG, -EIO);
    const int directory = place_open(".");
    cr_assert_eq(catalogue_copy(c, directory, COPY_NAME), 0);
    close(directory);
    c = catalogue_again(c);
    cr_assert_eq(walk_some(c, 1, 10, 100), 1);
    catalogue_close(c);
}

Test(catalogue, a_full_file_system)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0 ||
        mount("none", place, "tmpfs", 0, "size=2m") < 0)
        cr_skip_test("a file system may not be mounted");
    struct catalogue *c = catalogue_made();
    fill_up(c, -ENOSPC, -ENOSPC);
    const int directory = place_open(".");
    put_alone(c, 4, 10, 45000);
    cr_assert_eq(catalogue_copy(c, directory, COPY_NAME), -ENOSPC);
    cr_assert_eq(place_count("."), 3, "the temporary file is gone");
    close(directory);
    cr_assert_eq(walk_some(c, 4, 10, 45000), 1);
    catalogue_close(c);
    umount2(place, MNT_DETACH);
}

static void put_bytes(const char *name, off_t at, const void *bytes, size_t size)
{
    const int file = open(place_path("%s", name), O_WRONLY | O_CLOEXEC);
    cr_assert(file >= 0 && pwrite(file, bytes, size, at) == (ssize_t)size && close(file) == 0);
}

Test(catalogue, a_foreign_file_is_made_again)
{
    struct catalogue *c = catalogue_made();
    put_alone(c, 1, 10, 3);
    catalogue_close(c);
    cr_assert_eq(catalogue_open(&c, place_path(FILE_NAME), other_root), 0);
    cr_assert_eq(walk_some(c, 1, 10, 3), 0, "of another root");
    put_alone(c, 1, 10, 3);
    catalogue_close(c);
    c = catalogue_made();
    cr_assert_eq(walk_some(c, 1, 10, 3), 0);
    put_alone(c, 1, 10, 3);
    c = catalogue_again(c);
    cr_assert_eq(walk_some(c, 1, 10, 3), 1);
    catalogue_close(c);
    put_bytes(FILE_NAME "-boot", 30, "x", 1);
    c = catalogue_made();
    cr_assert_eq(walk_some(c, 1, 10, 3), 0, "of another boot");
    put_alone(c, 1, 10, 3);
    catalogue_close(c);
    cr_assert_eq(truncate(place_path(FILE_NAME), 8192), 0);
    c = catalogue_made();
    cr_assert_eq(walk_some(c, 1, 10, 3), 0, "cut");
    catalogue_close(c);
    cr_assert_eq(truncate(place_path(FILE_NAME), 0), 0);
    c = catalogue_made();
    cr_assert_eq(walk_some(c, 1, 10, 3), 0, "empty");
    catalogue_close(c);
    static char noise[8192];
    memset(noise, 'n', sizeof noise);
    put_bytes(FILE_NAME, 0, noise, sizeof noise);
    c = catalogue_made();
    put_alone(c, 1, 10, 3);
    catalogue_close(c);
    cr_assert_eq(unlink(place_path(FILE_NAME)), 0);
    c = catalogue_made();
    cr_assert_eq(walk_some(c, 1, 10, 3), 0, "gone");
    catalogue_close(c);
    cr_assert_eq(catalogue_open(&c, place_path("none/there"), root), -ENOENT);
    leaks_none();
}

static void make_copy(int directory)
{
    struct catalogue *c = catalogue_made();
    put_alone(c, 1, 10, 20);
    put_alone(c, 2, 10, 0);
    cr_assert_eq(catalogue_copy(c, directory, COPY_NAME), 0);
    catalogue_close(c);
}

static int open_copy(int directory, struct dirid of)
{
    struct catalogue *c = NULL;
    int error = catalogue_open_copy(&c, directory, COPY_NAME, of);
    if (error == 0) {
        cr_assert_eq(walk_some(c, 1, 10, 20), 1);
        cr_assert_eq(walk_some(c, 2, 10, 0), 1);
        cr_assert_eq(catalogue_begin(c), -EROFS);
        catalogue_close(c);
    }
    return error;
}

Test(catalogue, a_copy)
{
    const int directory = place_open(".");
    struct catalogue *c;
    cr_assert_eq(catalogue_open_copy(&c, directory, COPY_NAME, root), -ENOENT);
    umask(077);
    place_file(COPY_NAME, "what had the name before");
    cr_assert_eq(open_copy(directory, root), -EBADMSG);
    make_copy(directory);
    make_copy(directory);
    cr_assert_eq(open_copy(directory, root), 0);
    cr_assert_eq(place_stat(COPY_NAME).st_mode & 07777, 0644);
    cr_assert_eq(place_count("."), 4, "nothing is left of its making");
    cr_assert_eq(open_copy(directory, other_root), -ESTALE);
    c = catalogue_made();
    cr_assert_eq(catalogue_copy(c, directory, "none/there"), -ENOENT);
    cr_assert_eq(place_count("."), 4);
    catalogue_close(c);
    close(directory);
    leaks_none();
}

Test(catalogue, a_copy_of_a_copy_while_a_batch_is_open)
{
    const int directory = place_open(".");
    struct catalogue *c = catalogue_made(), *copy;
    put_alone(c, 1, 10, 20);
    put_alone(c, 2, 10, 0);
    cr_assert_eq(catalogue_begin(c), 0);
    cr_assert_eq(put_some(c, 1, 11, 30), 0);
    cr_assert_eq(catalogue_copy(c, directory, "first"), 0);
    cr_assert_eq(catalogue_open_copy(&copy, directory, "first", root), 0);
    cr_assert_eq(catalogue_copy(copy, directory, COPY_NAME), 0);
    cr_assert_eq(open_copy(directory, root), 0);
    catalogue_close(copy);
    catalogue_close(c);
    close(directory);
}

Test(catalogue, what_is_no_copy)
{
    const int directory = place_open(".");
    cr_assert_eq(symlink("first", place_path(COPY_NAME)), 0);
    cr_assert_eq(open_copy(directory, root), -EBADMSG);
    unlink(place_path(COPY_NAME));
    cr_assert_eq(mkfifo(place_path(COPY_NAME), 0600), 0);
    cr_assert_eq(open_copy(directory, root), -EBADMSG);
    unlink(place_path(COPY_NAME));
    place_directory(COPY_NAME);
    cr_assert_eq(open_copy(directory, root), -EBADMSG);
    rmdir(place_path(COPY_NAME));
    make_copy(directory);
    /* The fields of a trailer, of which only the hash would be wrong: the reason is another. */
    const off_t trailer = place_stat(COPY_NAME).st_size - CODEC_TRAILER_SIZE;
    const uint32_t foreign = 0x04030201;
    put_bytes(COPY_NAME, trailer + 8, &foreign, sizeof foreign);
    cr_assert_eq(open_copy(directory, root), -EBADMSG, "another byte order");
    close(directory);
}

Test(catalogue, a_damaged_copy, .timeout = 300)
{
    const int directory = place_open(".");
    make_copy(directory);
    const off_t size = place_stat(COPY_NAME).st_size;
    const int file = open(place_path(COPY_NAME), O_RDWR | O_CLOEXEC);
    char *good = malloc((size_t)size);
    cr_assert_eq(pread(file, good, (size_t)size, 0), size);
    for (off_t at = 0; at < size; at++) {
        const char bad = (char)(good[at] ^ (1 << at % 8));
        cr_assert_eq(pwrite(file, &bad, 1, at), 1);
        const int error = open_copy(directory, root);
        cr_assert(error == -EBADMSG || error == -ESTALE, "%d with another byte at %ld", error, at);
        cr_assert_eq(pwrite(file, good + at, 1, at), 1);
    }
    cr_assert_eq(open_copy(directory, root), 0);
    for (off_t cut = size - 1; cut >= 0; cut--) {
        cr_assert_eq(ftruncate(file, cut), 0);
        cr_assert_eq(open_copy(directory, root), -EBADMSG, "of %ld bytes", cut);
    }
    cr_assert_eq(pwrite(file, good, (size_t)size, 0), size);
    cr_assert_eq(pwrite(file, "x", 1, size), 1);
    cr_assert_eq(open_copy(directory, root), -EBADMSG, "longer");
    free(good);
    close(file);
    close(directory);
    leaks_none();
}

/* What a command prints to its standard output; NULL if it fails, or is not there. */
static char *output_of(const char *command)
{
    static char output[1 << 16];
    FILE *pipe = popen(command, "r");
    const size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    return pclose(pipe) == 0 ? output : NULL;
}

static const char with_python[] = "/usr/bin/python3 -c 'import lmdb, struct, sys\n"
                                  "env = lmdb.open(sys.argv[1], subdir=False, readonly=True, lock=False, max_dbs=3)\n"
                                  "names = env.open_db(b\"names\", create=False)\n"
                                  "with env.begin(db=names) as txn:\n"
                                  "    for key, block in txn.cursor():\n"
                                  "        at = 0\n"
                                  "        while at < len(block):\n"
                                  "            ino, kind, length = struct.unpack_from(\"<QBB\", block, at)\n"
                                  "            at += 10 + length\n"
                                  "            print(*struct.unpack(\">QL\", key), block[at - length:at].decode(), ino, kind)\n"
                                  "' %s";

/* In spite of the trailer. */
Test(catalogue, the_tools_of_lmdb_read_a_copy)
{
    char command[2 * PATH_MAX], line[64];
    const int directory = place_open(".");
    make_copy(directory);
    close(directory);
    if (output_of("mdb_stat -V && mdb_dump -V && /usr/bin/python3 -c 'import lmdb'") == NULL)
        cr_skip_test("lmdb-utils or python3-lmdb are not here");
    snprintf(command, sizeof command, "mdb_stat -n -s names %s", place_path(COPY_NAME));
    const char *output = output_of(command);
    cr_assert(output != NULL && strstr(output, "Entries: 1\n") != NULL, "%s", output);
    snprintf(command, sizeof command, "mdb_dump -n -p -s names %s", place_path(COPY_NAME));
    output = output_of(command);
    cr_assert(output != NULL && strstr(output, "\\14\\00\\00\\00\\00\\00\\00\\00\\08\\10010010-000000019\n") != NULL, "%s",
              output);
    snprintf(command, sizeof command, with_python, place_path(COPY_NAME));
    output = output_of(command);
    cr_assert_not_null(output);
    for (int i = 0; i < 20; i++) {
        const size_t length = (size_t)snprintf(line, sizeof line, "1 0 010010-%09d %d %d\n", i, i + 1, i % 5 ? DT_REG : DT_DIR);
        cr_assert(!strncmp(output, line, length), "%s", output);
        output += length;
    }
    cr_assert_str_empty(output);
}

#define KILLED_DIRECTORIES 8

static size_t killed_count(uint64_t number, int64_t version)
{
    return (size_t)(version * 37 + (int64_t)number * 11) % 400;
}

/* Puts all directories again and again, each batch with the next version; `done` is the last one that was ended. */
static void put_for_ever(volatile int64_t *done)
{
    struct catalogue *c;
    if (catalogue_open(&c, place_path(FILE_NAME), root) != 0)
        _exit(1);
    for (int64_t version = *done + 1;; version++) {
        int error = catalogue_begin(c);
        for (uint64_t i = 1; i <= KILLED_DIRECTORIES && error == 0; i++)
            error = put_some(c, i, version, killed_count(i, version));
        if (error != 0 || catalogue_end(c) != 0)
            _exit(1);
        *done = version;
    }
}

Test(catalogue, a_killed_writer)
{
    volatile int64_t *done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned seed = (unsigned)clock_monotonic();
    int64_t kept = 0;
    for (int round = 0; round < 20; round++) {
        const int64_t before = *done;
        const pid_t child = fork();
        cr_assert_geq(child, 0, "fork: %m");
        if (child == 0)
            put_for_ever(done);
        while (*done < before + 3)
            usleep(100);
        usleep(place_next(&seed) % 20000);
        int status;
        cr_assert(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        struct catalogue *c = catalogue_made();
        /* The last batch may have been ended without its process having said so. */
        const int64_t version = *done + walk_some(c, 1, *done + 1, killed_count(1, *done + 1));
        for (uint64_t i = 1; i <= KILLED_DIRECTORIES; i++)
            kept += walk_some(c, i, version, killed_count(i, version)) == 1;
        catalogue_close(c);
        *done = version;
    }
    cr_assert_eq(kept, 20 * KILLED_DIRECTORIES, "%ld", kept);
    munmap((void *)done, sizeof *done);
}

/* A file of LMDB with pages that are full: that is what the numbers of lists are for. */
Test(catalogue, bytes_a_name)
{
    struct catalogue *c = catalogue_made();
    const int directory = place_open(".");
    cr_assert_eq(catalogue_begin(c), 0);
    for (uint64_t i = 1; i <= 100; i++)
        cr_assert_eq(put_some(c, i, 10, 1000), 0);
    cr_assert_eq(catalogue_end(c), 0);
    for (uint64_t i = 1; i <= 100; i += 3)
        put_alone(c, i, 11, 1000);
    cr_assert_eq(catalogue_copy(c, directory, COPY_NAME), 0);
    const double each = (double)place_stat(COPY_NAME).st_size / 100000;
    cr_assert(each <= 31, "%.2f bytes a name", each);
    cr_log_info("%.2f bytes a name", each);
    catalogue_close(c);
    close(directory);
}

/* stamp.h */

static struct statx some_stat(void)
{
    return (struct statx){.stx_mask = CATALOGUE_STAMP_MASK,
                          .stx_ino = 7,
                          .stx_btime = {.tv_sec = 1, .tv_nsec = 2},
                          .stx_mtime = {.tv_sec = 3, .tv_nsec = 4},
                          .stx_ctime = {.tv_sec = -5, .tv_nsec = 6}};
}

Test(catalogue_stamp, is_what_statx_says)
{
    struct statx stat = some_stat();
    struct catalogue_stamp stamp, other;
    cr_assert(catalogue_stamp_of(&stat, &stamp));
    cr_assert(stamp.id.ino == 7 && stamp.id.birth == 1000000002);
    cr_assert(stamp.mtime == 3000000004 && stamp.ctime == -4999999994);
    stat.stx_mask &= ~STATX_BTIME;
    cr_assert(catalogue_stamp_of(&stat, &other) && other.id.birth == 0, "a file system without birth times");
    cr_assert(!catalogue_stamp_equal(&stamp, &other));
    other.id = stamp.id;
    cr_assert(catalogue_stamp_equal(&stamp, &other));
    other.mtime++;
    cr_assert(!catalogue_stamp_equal(&stamp, &other));
    other = stamp;
    other.ctime++;
    cr_assert(!catalogue_stamp_equal(&stamp, &other));
}

Test(catalogue_stamp, proves_nothing_without_fine_times)
{
    static const unsigned needed[] = {STATX_INO, STATX_MTIME, STATX_CTIME};
    struct catalogue_stamp stamp;
    struct statx stat = some_stat();
    stat.stx_mtime.tv_nsec = 0;
    cr_assert(catalogue_stamp_of(&stat, &stamp), "a program may have set it");
    stat.stx_ctime.tv_nsec = 0;
    cr_assert_not(catalogue_stamp_of(&stat, &stamp));
    for (size_t i = 0; i < 3; i++) {
        stat = some_stat();
        stat.stx_mask &= ~needed[i];
        cr_assert_not(catalogue_stamp_of(&stat, &stamp));
    }
    stat = some_stat();
    stat.stx_mtime.tv_sec = INT64_MAX / 2;
    cr_assert_not(catalogue_stamp_of(&stat, &stamp));
}

Test(catalogue_stamp, is_old)
{
    const int64_t hour = 3600ll * 1000000000, now = 1700000000ll * 1000000000;
    struct catalogue_stamp stamp = {{1, 1}, now - hour, now - hour};
    cr_assert(catalogue_stamp_is_old(&stamp, now));
    stamp.ctime++;
    cr_assert_not(catalogue_stamp_is_old(&stamp, now));
    stamp = (struct catalogue_stamp){{1, 1}, now - hour + 1, now - hour};
    cr_assert_not(catalogue_stamp_is_old(&stamp, now));
    stamp = (struct catalogue_stamp){{1, 1}, now - hour, now + 1};
    cr_assert_not(catalogue_stamp_is_old(&stamp, now), "of a clock that is ahead");
    stamp = (struct catalogue_stamp){{1, 1}, INT64_MIN, INT64_MAX};
    cr_assert(catalogue_stamp_is_old(&stamp, now), "without overflow");
}

/* codec.h */

Test(catalogue_codec, about)
{
    uint8_t bytes[CODEC_ABOUT_SIZE];
    struct dirid back;
    codec_about_encode(bytes, root);
    cr_assert_arr_eq(bytes, "shnt-cat\3\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", sizeof bytes);
    cr_assert(codec_about_decode(&back, bytes, sizeof bytes) == 0 && dirid_equal(back, root));
    cr_assert_eq(codec_about_decode(&back, bytes, sizeof bytes - 1), -EBADMSG);
    bytes[8]++;
    cr_assert_eq(codec_about_decode(&back, bytes, sizeof bytes), -EBADMSG, "another format");
}

Test(catalogue_codec, directory)
{
    const struct codec_directory directory = {
        .mtime = -1, .ctime = 2, .list = 3, .count = 5, .blocks = 4, .sum = 6, .is_public = true};
    uint8_t bytes[CODEC_DIRECTORY_SIZE], key[CODEC_DIRECTORY_KEY_SIZE];
    struct codec_directory back;
    codec_directory_key(key, root);
    cr_assert_arr_eq(key, "\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3", sizeof key);
    codec_directory_encode(bytes, &directory);
    cr_assert_arr_eq(bytes, "\377\377\377\377\377\377\377\377\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\5", 25);
    cr_assert_eq(codec_directory_decode(&back, bytes, sizeof bytes), 0);
    cr_assert(back.mtime == -1 && back.ctime == 2 && back.list == 3 && back.count == 5 && back.blocks == 4 && back.sum == 6 &&
              back.is_public);
    cr_assert_eq(codec_directory_decode(&back, bytes, sizeof bytes - 1), -EBADMSG);
    const struct codec_directory bad[] = {
        {.count = 5, .blocks = 4},
        {.list = 3},
        {.list = 3, .count = 3, .blocks = 4},
        {.list = 3, .count = 91, .blocks = 1},
        {.list = 3, .count = 1ull << 33, .blocks = 1ull << 32},
        {.list = 3, .count = 1ull << 63, .blocks = 1ull << 63},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        codec_directory_encode(bytes, &bad[i]);
        cr_assert_eq(codec_directory_decode(&back, bytes, sizeof bytes), -EBADMSG, "%zu", i);
    }
    codec_directory_encode(bytes, &directory);
    bytes[48] = 2;
    cr_assert_eq(codec_directory_decode(&back, bytes, sizeof bytes), -EBADMSG, "an unknown flag");
}

Test(catalogue_codec, marker)
{
    const struct codec_marker marker = {
        .mtime = 1, .ctime = 2, .id = 0xabc, .directory = {3, 4}, .root = {5, 6}, .mirror = "out-000000000abc", .length = 16};
    uint8_t bytes[CODEC_MARKER_MAX + 1] = {0};
    struct codec_marker back;
    cr_assert_eq(codec_marker_encode(bytes, &marker), CODEC_MARKER_FIXED + 16);
    cr_assert_arr_eq(bytes + 48, "\xbc\x0a\0\0\0\0\0\0out-000000000abc", 24);
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_FIXED + 16), 0);
    cr_assert(back.mtime == 1 && back.ctime == 2 && back.id == 0xabc && dirid_equal(back.directory, marker.directory) &&
              dirid_equal(back.root, marker.root) && back.length == 16 && !memcmp(back.mirror, marker.mirror, 16));
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_FIXED), -EBADMSG, "without mirrors");
    memset(bytes + CODEC_MARKER_FIXED, 'x', RECORD_MIRROR_MAX);
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_MAX - 1), 0);
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_MAX), -EBADMSG, "no name of mirrors is so long");
    bytes[CODEC_MARKER_FIXED + 1] = '/';
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_FIXED + 16), -EBADMSG, "it becomes a part of a path");
    bytes[CODEC_MARKER_FIXED + 1] = 'x';
    bytes[48] = bytes[49] = 0;
    cr_assert_eq(codec_marker_decode(&back, bytes, CODEC_MARKER_FIXED + 16), -EBADMSG, "no marker has this id");
}

Test(catalogue_codec, total)
{
    uint8_t bytes[CODEC_TOTAL_SIZE];
    uint64_t back;
    codec_total_encode(bytes, 0x0102);
    cr_assert_arr_eq(bytes, "\2\1\0\0\0\0\0\0", sizeof bytes);
    cr_assert(codec_total_decode(&back, bytes, sizeof bytes) == 0 && back == 0x0102);
    cr_assert_eq(codec_total_decode(&back, bytes, sizeof bytes - 1), -EBADMSG);
}

Test(catalogue_codec, block_key)
{
    uint8_t key[CODEC_BLOCK_KEY_SIZE];
    uint64_t list;
    uint32_t number;
    codec_block_key(key, 0x0102, 0x0304);
    cr_assert_arr_eq(key, "\0\0\0\0\0\0\1\2\0\0\3\4", sizeof key);
    cr_assert(codec_block_key_decode(&list, &number, key, sizeof key) == 0 && list == 0x0102 && number == 0x0304);
    cr_assert_eq(codec_block_key_decode(&list, &number, key, sizeof key - 1), -EBADMSG);
    codec_block_key(key, 0, 1);
    cr_assert_eq(codec_block_key_decode(&list, &number, key, sizeof key), -EBADMSG, "there is no such list");
}

/* The only name of a block of `size` bytes: 0, or -EBADMSG. */
static int only_name(const uint8_t *block, size_t size)
{
    struct codec_name back;
    size_t at = 0;
    const int code = codec_block_next(&back, block, size, &at);
    cr_assert(code != 0 || (at == size && !memcmp(back.name, block + CODEC_NAME_FIXED, back.length)));
    return code;
}

Test(catalogue_codec, names_of_a_block)
{
    const struct codec_name one = {"abc", 3, 7, DT_DIR}, other = {"de", 2, 8, DT_REG};
    uint8_t block[CODEC_BLOCK_MAX] = {0};
    struct codec_name back;
    size_t at = 0;
    cr_assert_eq(codec_block_add(block, 0, &one), 13);
    cr_assert_arr_eq(block, "\7\0\0\0\0\0\0\0\4\3abc", 13);
    cr_assert_eq(codec_block_add(block, 13, &other), 25);
    cr_assert_eq(codec_block_next(&back, block, 25, &at), 0);
    cr_assert(at == 13 && back.length == 3 && !memcmp(back.name, "abc", 3) && back.ino == 7 && back.type == DT_DIR);
    cr_assert_eq(codec_block_next(&back, block, 25, &at), 0);
    cr_assert(at == 25 && back.length == 2 && !memcmp(back.name, "de", 2) && back.ino == 8 && back.type == DT_REG);
    cr_assert_eq(codec_block_add(block, CODEC_BLOCK_MAX - 12, &one), 0, "it does not fit");
    cr_assert_eq(codec_block_add(block, CODEC_BLOCK_MAX - 13, &one), CODEC_BLOCK_MAX);
    for (size_t size = 0; size < 13; size++)
        cr_assert_eq(only_name(block, size), -EBADMSG, "of %zu bytes", size);
    cr_assert_eq(only_name(block, 13), 0);
    block[8] = 3;
    cr_assert_eq(only_name(block, 13), -EBADMSG, "an unknown type");
    block[8] = DT_REG;
    block[9] = 0;
    cr_assert_eq(only_name(block, 13), -EBADMSG, "an empty name");
    block[9] = 2;
    memcpy(block + 10, "..", 2);
    cr_assert_eq(only_name(block, 12), -EBADMSG);
    block[11] = '/';
    cr_assert_eq(only_name(block, 12), -EBADMSG);
    cr_assert_neq(codec_sum(0, block, 12), codec_sum(1, block, 12));
}
