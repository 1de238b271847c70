/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Directory streams over the union. */

#include "shim/dir_stream.h"

#include <sys/resource.h>

#include "shim/claim.h"
#include "shimmed.h"

TestSuite(stream, .init = shimmed_init, .fini = shimmed_finish, .timeout = 120);

/* A union of 30 files in a branch and 20 names in the trunk. */
static void shim_stream_fill(void)
{
    for (int i = 0; i < 30; i++)
        born(place_path("r/out/branch%d", i), "", 0644);
    for (int i = 0; i < 20; i++) {
        struct target t = hot(place_path("r/out/trunk%d", i), TARGET_MAKES);
        cr_assert_eq(operate_make(&t, i % 2 ? S_IFIFO | 0600 : S_IFDIR | 0755, 0, NULL), 0);
    }
}

/* What a listing gave, one name after the other. */
#define SEEN_MAX 4096
struct seen {
    size_t count;
    struct one {
        char name[32];
        uint8_t type;
        uint64_t ino;
    } one[SEEN_MAX];
};

static void shim_stream_see(struct seen *seen, const struct dirent64 *entry)
{
    cr_assert_lt(seen->count, SEEN_MAX);
    struct one *one = &seen->one[seen->count++];
    cr_assert_lt(strlen(entry->d_name), sizeof one->name);
    strcpy(one->name, entry->d_name);
    one->type = entry->d_type;
    one->ino = entry->d_ino;
}

static const struct one *shim_stream_find(const struct seen *seen, const char *name)
{
    const struct one *found = NULL;
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->one[i].name, name) == 0) {
            cr_assert_null(found, "%s twice", name);
            found = &seen->one[i];
        }
    return found;
}

static struct dir_stream *shim_stream_opened(const char *path)
{
    DIR *stream = dir_stream_over(opendir(path));
    cr_assert(stream != NULL && dir_stream_is_ours(stream), "%s: %m", path);
    return (struct dir_stream *)stream;
}

static void shim_stream_closed(struct dir_stream *stream)
{
    closedir(stream->libc);
    dir_stream_free(stream);
}

static struct seen *all_of(struct dir_stream *stream)
{
    static struct seen seen;
    seen.count = 0;
    errno = 0;
    for (struct dirent64 *entry; (entry = dir_stream_next(stream)) != NULL;)
        shim_stream_see(&seen, entry);
    cr_assert_eq(errno, 0);
    return &seen;
}

static const struct seen *shim_stream_listing(const char *path)
{
    struct dir_stream *stream = shim_stream_opened(path);
    const struct seen *seen = all_of(stream);
    shim_stream_closed(stream);
    return seen;
}

static void assert_all(const struct seen *seen)
{
    char name[16];
    cr_assert_eq(seen->count, 52);
    cr_assert_str_eq(seen->one[0].name, ".");
    cr_assert_str_eq(seen->one[1].name, "..");
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, i < 30 ? "branch%d" : "trunk%d", i < 30 ? i : i - 30);
        const struct one *one = shim_stream_find(seen, name);
        cr_assert_not_null(one, "%s", name);
        cr_assert_eq(one->type, i < 30 ? DT_REG : i % 2 ? DT_FIFO : DT_DIR, "%s", name);
    }
}

Test(stream, the_union_is_listed)
{
    shim_stream_fill();
    const struct seen *seen = shim_stream_listing(place_path("r/out"));
    assert_all(seen);
    cr_assert_eq(seen->one[0].ino, ino_at(place_path("r/out")));
    cr_assert_eq(seen->one[1].ino, ino_at(place_path("r")));
    cr_assert_eq(shim_stream_find(seen, "trunk3")->ino, ino_at(place_path("r/out/trunk3")));
    struct target t = hot(place_path("r/out/branch7"), 0);
    cr_assert_eq(shim_stream_find(seen, "branch7")->ino, t.found.entry.ino);
    target_done(&t);
}

Test(stream, the_root_without_what_is_shunt_s)
{
    const struct seen *seen = shim_stream_listing(place_path("r"));
    cr_assert_eq(seen->count, 4);
    cr_assert(shim_stream_find(seen, "out") && shim_stream_find(seen, "in"));
    cr_assert_eq(seen->one[1].ino, ino_at(place));
}

Test(stream, what_is_not_ours_stays_libc_s)
{
    DIR *libc = opendir(place_path("beside"));
    cr_assert_eq(dir_stream_over(libc), libc);
    cr_assert_not(dir_stream_is_ours(libc));
    closedir(libc);
    libc = opendir(place_path("r/.shunt"));
    cr_assert_eq(dir_stream_over(libc), libc);
    closedir(libc);
    errno = ENOTDIR;
    cr_assert_null(dir_stream_over(NULL));
    cr_assert_eq(errno, ENOTDIR, "as opendir left it");
    struct dir_stream *stream = shim_stream_opened(place_path("r/out"));
    cr_assert_not(dir_stream_is_ours(NULL));
    cr_assert_not(dir_stream_is_ours((DIR *)&stream));
    shim_stream_closed(stream);
}

Test(stream, without_its_daemon)
{
    DIR *libc = opendir(place_path("r/out"));
    int fd = dirfd(libc);
    served_stop(SIGKILL);
    cr_assert_null(dir_stream_over(libc));
    cr_assert_eq(errno, EIO);
    cr_assert_eq(fcntl(fd, F_GETFD), -1, "libc's is closed");
}

Test(stream, several_at_once)
{
    struct dir_stream *streams[100];
    shim_stream_fill();
    for (int i = 0; i < 100; i++)
        streams[i] = shim_stream_opened(place_path("r/out"));
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < i % 52; j++)
            cr_assert_not_null(dir_stream_next(streams[i]));
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(all_of(streams[i])->count, 52u - (unsigned)i % 52, "each goes its own way");
        shim_stream_closed(streams[i]);
    }
    struct dir_stream *again = shim_stream_opened(place_path("r/out"));
    cr_assert_eq(again, streams[0], "its room is used again");
    assert_all(all_of(again));
    cr_assert_null(dir_stream_next(again), "the end is the end");
    shim_stream_closed(again);
}

Test(stream, one_that_was_closed_halfway_leaves_nothing_after)
{
    shim_stream_fill();
    struct dir_stream *stream = shim_stream_opened(place_path("r/out"));
    for (int i = 0; i < 10; i++)
        cr_assert_not_null(dir_stream_next(stream));
    shim_stream_closed(stream);
    struct dir_stream *again = shim_stream_opened(place_path("r/in"));
    cr_assert(again == stream && again->told == 0);
    cr_assert_eq(all_of(again)->count, 2);
    shim_stream_closed(again);
}

Test(stream, more_than_there_is_room_for)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    static struct dir_stream *streams[100000];
    DIR *libc, *stream = NULL;
    int count = 0, fd = -1;
    while ((libc = opendir(place_path("r/out"))) != NULL) {
        fd = dirfd(libc);
        if ((stream = dir_stream_over(libc)) == NULL)
            break;
        cr_assert_lt(count, 100000);
        streams[count++] = (struct dir_stream *)stream;
    }
    cr_assert_eq(errno, EMFILE);
    cr_assert_gt(count, 500);
    cr_assert(libc == NULL || fcntl(fd, F_GETFD) == -1, "libc's is closed");
    while (count > 0)
        shim_stream_closed(streams[--count]);
    shim_stream_closed(shim_stream_opened(place_path("r/out")));
}

/* Positions. */

Test(stream, a_position_stays_valid_whatever_comes_and_goes)
{
    shim_stream_fill();
    struct dir_stream *stream = shim_stream_opened(place_path("r/out"));
    struct seen first = {0};
    for (int i = 0; i < 20; i++)
        shim_stream_see(&first, dir_stream_next(stream));
    uint64_t position = stream->told;
    for (int i = 0; i < 30; i += 3) {
        struct target t = hot(place_path("r/out/branch%d", i), TARGET_MAKES);
        cr_assert_eq(operate_unlink(&t), 0);
    }
    born(place_path("r/out/new"), "", 0644);
    stream->at.position = position; /* as seekdir does it */
    stream->next = stream->filled = 0;
    struct seen *rest = all_of(stream);
    shim_stream_closed(stream);
    for (size_t i = 0; i < first.count; i++)
        cr_assert_null(shim_stream_find(rest, first.one[i].name), "%s came again", first.one[i].name);
    char name[16];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "branch%d", i);
        if (i % 3 != 0)
            cr_assert(shim_stream_find(&first, name) || shim_stream_find(rest, name), "%s was there all the time", name);
        else
            cr_assert_null(shim_stream_find(rest, name), "%s was removed", name);
    }
}

Test(stream, the_positions_of_the_dots)
{
    struct dir_stream *stream = shim_stream_opened(place_path("r/out"));
    cr_assert_eq(stream->told, 0);
    dir_stream_next(stream);
    cr_assert_eq(stream->told, 1);
    dir_stream_next(stream);
    cr_assert_eq(stream->told, 2);
    shim_stream_closed(stream);
}

/* Buffers. */

static void read_by(struct listing_at *at, size_t size, struct seen *seen)
{
    char *buffer = aligned_alloc(8, (size + 7) & ~(size_t)7);
    long filled;
    seen->count = 0;
    while ((filled = dir_stream_fill(at, buffer, size)) > 0) {
        cr_assert_leq((size_t)filled, size);
        for (long i = 0; i < filled;) {
            const struct dirent64 *entry = (const struct dirent64 *)(buffer + i);
            cr_assert_eq(entry->d_reclen % 8, 0);
            shim_stream_see(seen, entry);
            i += entry->d_reclen;
        }
    }
    cr_assert_eq(filled, 0, "%ld with a buffer of %zu", filled, size);
    free(buffer);
}

Test(stream, a_buffer_of_any_size)
{
    static struct seen seen;
    static const size_t sizes[] = {40, 48, 100, 1000, 1 << 16};
    shim_stream_fill();
    struct target t = hot(place_path("r/out/x"), 0);
    struct listing_at at = {.root = t.root, .id = t.dir, .fd = place_open("r/out")};
    target_done(&t);
    char buffer[64] __attribute__((aligned(8)));
    cr_assert_eq(dir_stream_fill(&at, buffer, 16), -EINVAL, "not even one fits");
    cr_assert_eq(at.position, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        at.position = 0;
        read_by(&at, sizes[i], &seen);
        assert_all(&seen);
    }
}

Test(stream, a_name_that_does_not_fit_is_not_lost)
{
    char buffer[64] __attribute__((aligned(8)));
    born(place_path("r/out/a_name_of_more_than_thirty_bytes"), "", 0644);
    struct target t = hot(place_path("r/out/x"), 0);
    struct listing_at at = {.root = t.root, .id = t.dir, .fd = place_open("r/out"), .position = 2};
    target_done(&t);
    cr_assert_eq(dir_stream_fill(&at, buffer, 48), -EINVAL);
    cr_assert_eq(at.position, 2);
    cr_assert_eq(dir_stream_fill(&at, buffer, 56), 56, "one that just fits");
    cr_assert_str_eq(((struct dirent64 *)buffer)->d_name, "a_name_of_more_than_thirty_bytes");
}

Test(stream, a_large_directory)
{
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "r/in/f%d", i);
        place_file(name, "");
    }
    const struct seen *seen = shim_stream_listing(place_path("r/in"));
    cr_assert_eq(seen->count, 3002);
    bool met[3000] = {false};
    for (size_t i = 2; i < seen->count; i++) {
        int number = atoi(seen->one[i].name + 1);
        cr_assert(number >= 0 && number < 3000 && !met[number]);
        met[number] = true;
    }
}

/* Names that somebody is at work on. */

Test(stream, what_is_under_way_is_there_if_its_file_is)
{
    struct target begun = hot(place_path("r/out/begun"), TARGET_MAKES);
    cr_assert_eq(create_reserve(&begun, DT_REG, 0), 0);
    cr_assert_null(shim_stream_find(shim_stream_listing(place_path("r/out")), "begun"), "not made yet");
    close(open(begun.real_path, O_CREAT | O_EXCL | O_WRONLY, 0644));
    const struct one *one = shim_stream_find(shim_stream_listing(place_path("r/out")), "begun");
    cr_assert(one != NULL && one->ino == ino_at(begun.real_path) && one->type == DT_REG);
    born(place_path("r/out/ending"), "", 0644);
    struct target ending = hot(place_path("r/out/ending"), TARGET_MAKES);
    cr_assert_eq(claim_name(&ending, MESSAGE_UNLINK), 0);
    cr_assert_not_null(shim_stream_find(shim_stream_listing(place_path("r/out")), "ending"));
    cr_assert_eq(unlink(ending.real_path), 0);
    cr_assert_null(shim_stream_find(shim_stream_listing(place_path("r/out")), "ending"));
}

/* All that fits into one buffer may turn out not to be there: that is not the end. */
Test(stream, many_that_are_not_there_do_not_end_it)
{
    static struct seen seen;
    struct target t;
    for (int i = 0; i < 40; i++) {
        t = hot(place_path("r/out/begun%d", i), TARGET_MAKES);
        cr_assert_eq(create_reserve(&t, DT_REG, 0), 0);
        target_done(&t);
    }
    for (int i = 0; i < 4; i++)
        born(place_path("r/out/there%d", i), "", 0644);
    t = hot(place_path("r/out/x"), 0);
    struct listing_at at = {.root = t.root, .id = t.dir, .fd = place_open("r/out")};
    target_done(&t);
    read_by(&at, 48, &seen);
    cr_assert_eq(seen.count, 6);
}

Test(stream, a_directory_that_was_removed)
{
    struct dir_stream *stream = shim_stream_opened(place_path("r/out"));
    cr_assert_eq(rmdir(place_path("r/out")), 0);
    errno = 0;
    cr_assert_null(dir_stream_next(stream), "not even the dots");
    cr_assert_eq(errno, 0);
    shim_stream_closed(stream);
}
