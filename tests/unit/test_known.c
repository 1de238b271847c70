/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/known.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "catalogue/take.h"
#include "place.h"
#include "union/disk.h"

#define MIRROR "out-5f3a9c01d2e4"
#define LEAF "r/.shunt/b/n1.1/" MIRROR "/0"
#define NAMES 400

static struct union_root root;
static struct catalogue *live;

/* A root `r` with the branches n1.1 and n2.1; directory `out` has NAMES files in the leaf of the first. */
static void known_init(void)
{
    char name[64];
    place_init();
    place_directory(LEAF);
    place_directory("r/.shunt/b/n2.1");
    place_directory("r/out");
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    struct marker marker = {.id = 0x5f3a9c01d2e4, .mirror = MIRROR, .path = "out"};
    int fd = place_open("r/out");
    struct statx stat;
    cr_assert_eq(sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stat), 0);
    marker.directory = dirid_of(&stat);
    marker.root = root.id;
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, LEAF "/n%d", i);
        place_file(name, "");
    }
    cr_assert_eq(catalogue_open(&live, place_path("live"), root.id), 0);
}

static void known_finish(void)
{
    catalogue_close(live);
    union_root_finish(&root);
    place_finish();
}

TestSuite(known, .init = known_init, .fini = known_finish);

static int open_to_read(const char *path)
{
    int fd = open(place_path("%s", path), DISK_DIRECTORY);
    cr_assert_geq(fd, 0);
    return fd;
}

/* As the recorder does. */
static int known_record(const char *path, unsigned flags)
{
    const struct timespec stands = clock_split(TAKE_STANDS);
    struct catalogue_stamp stood;
    int fd = open_to_read(path);
    cr_assert_eq(take_stamp(fd, &stood), 1);
    nanosleep(&stands, NULL);
    cr_assert_eq(catalogue_begin(live), 0);
    int code = take(live, fd, &stood, flags);
    cr_assert_eq(catalogue_end(live), 0);
    close(fd);
    return code;
}

static int known_record_marker(void)
{
    const struct timespec stands = clock_split(TAKE_STANDS);
    struct catalogue_stamp stood;
    int fd = open(place_path("r/out/" LAYOUT_MARKER), O_RDONLY);
    cr_assert_eq(take_stamp(fd, &stood), 1);
    nanosleep(&stands, NULL);
    cr_assert_eq(catalogue_begin(live), 0);
    int code = take_marker(live, fd, &stood);
    cr_assert_eq(catalogue_end(live), 0);
    close(fd);
    return code;
}

/* How many names the union of `out` has, and how many of its directories came from a catalogue. */
static size_t known_list(struct known *known, uint64_t *taken)
{
    struct listing listing;
    struct known_counts before, after;
    known_count(known, &before);
    root.source = known_source(known);
    int fd = place_open("r/out");
    cr_assert_eq(listing_init(&listing, &root, fd, "out", 0, 0), 0);
    close(fd);
    root.source = NULL;
    size_t count = listing.count;
    for (size_t i = 0; i < count; i++)
        cr_assert(listing.names[i].branch == 1 && listing.names[i].type == DT_REG && listing.names[i].ino != 0);
    listing_finish(&listing);
    known_count(known, &after);
    *taken = after.taken - before.taken;
    return count;
}

static struct known *make_known(struct catalogue *from, unsigned flags)
{
    struct known *known;
    cr_assert_eq(known_create(&known, &root, from, flags), 0);
    return known;
}

Test(known, a_listing_is_taken_from_the_live_one_while_it_proves)
{
    uint64_t taken;
    struct known *known = make_known(live, 0);
    cr_assert_eq(known_list(known, &taken), NAMES);
    cr_assert_eq(taken, 0);
    cr_assert_eq(known_record(LEAF, TAKE_PUBLIC), 1);
    cr_assert_eq(known_list(known, &taken), NAMES);
    cr_assert_eq(taken, 1);
    place_file(LEAF "/new", "");
    cr_assert_eq(known_list(known, &taken), NAMES + 1);
    cr_assert_eq(taken, 0, "what has changed is read");
    known_destroy(known);
}

Test(known, a_small_directory_is_asked_about_only_by_who_asks_first)
{
    uint64_t taken;
    for (int i = 20; i < NAMES; i++)
        cr_assert_eq(unlink(place_path(LEAF "/n%d", i)), 0);
    cr_assert_eq(known_record(LEAF, TAKE_PUBLIC), 1);
    struct known *known = make_known(live, 0), *first = make_known(live, KNOWN_FIRST);
    cr_assert_eq(known_list(known, &taken), 20);
    cr_assert_eq(taken, 0);
    cr_assert_eq(known_list(first, &taken), 20);
    cr_assert_eq(taken, 1);
    known_destroy(known);
    known_destroy(first);
}

Test(known, a_directory_that_changes_while_its_stamp_stands_is_not_put)
{
    struct catalogue_stamp stood;
    int fd = open_to_read(LEAF);
    cr_assert_eq(take_stamp(fd, &stood), 1);
    nanosleep(&(const struct timespec){.tv_nsec = TAKE_STANDS}, NULL);
    place_file(LEAF "/new", "");
    cr_assert_eq(catalogue_begin(live), 0);
    cr_assert_eq(take(live, fd, &stood, 0), 0);
    cr_assert_eq(catalogue_end(live), 0);
    close(fd);
    struct catalogue_size size;
    cr_assert_eq(catalogue_measure(live, &size), 0);
    cr_assert_eq(size.directories, 0);
}

Test(known, names_of_shunts_own_are_none_and_one_that_is_being_written_puts_it_off)
{
    struct catalogue_size size;
    cr_assert_eq(known_record("r/out", 0), 1);
    cr_assert_eq(known_record("r", TAKE_IN_ROOT), 1);
    cr_assert_eq(catalogue_measure(live, &size), 0);
    cr_assert_eq(size.names, 1, "of the root, `out`; of that, none but its marker");
    place_file("r/out/.shunt-dir.0123456789abcdef", "");
    cr_assert_eq(known_record("r/out", 0), 0);
}

Test(known, a_copy_in_any_branch_proves)
{
    uint64_t taken;
    cr_assert_eq(known_record(LEAF, TAKE_PUBLIC), 1);
    for (int i = 1; i <= 2; i++) {
        int branch = place_open(place_path("r/.shunt/b/n%d.1", i) + strlen(place) + 1);
        cr_assert_eq(catalogue_copy(live, branch, LAYOUT_CATALOGUE), 0);
        close(branch);
        struct known *known = make_known(NULL, KNOWN_FIRST);
        cr_assert_eq(known_list(known, &taken), NAMES);
        cr_assert_eq(taken, 1);
        known_destroy(known);
        cr_assert_eq(unlink(place_path("r/.shunt/b/n%d.1/" LAYOUT_CATALOGUE, i)), 0);
    }
    struct known *known = make_known(NULL, KNOWN_FIRST);
    cr_assert_eq(known_list(known, &taken), NAMES);
    cr_assert_eq(taken, 0);
    known_destroy(known);
}

static mode_t mode_of_copy(void)
{
    struct stat stat;
    int branch = place_open("r/.shunt/b/n1.1");
    cr_assert_eq(catalogue_copy(live, branch, LAYOUT_CATALOGUE), 0);
    cr_assert_eq(fstatat(branch, LAYOUT_CATALOGUE, &stat, 0), 0);
    close(branch);
    return stat.st_mode & 0777;
}

Test(known, a_copy_with_one_private_directory_is_private)
{
    cr_assert_eq(known_record(LEAF, TAKE_PUBLIC), 1);
    cr_assert_eq(mode_of_copy(), 0644);
    cr_assert_eq(known_record("r/out", 0), 1);
    cr_assert_eq(mode_of_copy(), 0600);
    cr_assert_eq(known_record("r/out", TAKE_PUBLIC), 1);
    cr_assert_eq(mode_of_copy(), 0644);
}

Test(known, permissions_of_the_directory_itself_make_a_copy_private)
{
    char text[64];
    cr_assert_eq(chmod(place_path("r/out"), 0750), 0);
    cr_assert_eq(known_record("r/out", TAKE_PUBLIC), 1);
    cr_assert_eq(mode_of_copy(), 0600);
    cr_assert_eq(chmod(place_path("r/out"), 0755), 0);
    cr_assert_eq(known_record("r/out", TAKE_PUBLIC), 1);
    cr_assert_eq(mode_of_copy(), 0644);
    snprintf(text, sizeof text, "setfacl -m u:65534:--- %s", "\"$PLACE/r/out\" 2>/dev/null");
    setenv("PLACE", place, 1);
    if (system(text) != 0)
        return; /* no access control lists on this file system */
    cr_assert_eq(known_record("r/out", TAKE_PUBLIC), 1);
    cr_assert_eq(mode_of_copy(), 0600, "somebody is excepted");
}

struct lister {
    struct union_root root;
    volatile bool *ended;
    uint64_t listed;
};

static void *list_on(void *context)
{
    struct lister *lister = context;
    while (!*lister->ended) {
        struct listing listing;
        char path[PATH_MAX + 8];
        snprintf(path, sizeof path, "%s/out", lister->root.path);
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || listing_init(&listing, &lister->root, fd, "out", 0, 0) != 0 || listing.count != NAMES)
            break;
        close(fd);
        listing_finish(&listing);
        lister->listed++;
    }
    return NULL;
}

/* Its map moves: 200 lists of 20,000 names do not fit into 64 MiB. */
static void put_much(void)
{
    enum { MANY = 20000 };
    static char words[MANY][16];
    static struct catalogue_name names[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(words[i], sizeof words[i], "name-%08u", i);
        names[i] = (struct catalogue_name){.name = words[i], .ino = i + 1, .type = DT_REG};
    }
    for (unsigned i = 0; i < 200; i++) {
        const struct catalogue_stamp stamp = {.id = {i + 1, 1}, .mtime = 1, .ctime = 1};
        cr_assert_eq(catalogue_begin(live), 0);
        cr_assert_eq(catalogue_put(live, &stamp, names, MANY, 0), 0);
        cr_assert_eq(catalogue_end(live), 0);
    }
}

Test(known, threads_list_while_it_is_written_and_grows)
{
    enum { LISTERS = 3 };
    struct lister listers[LISTERS];
    pthread_t threads[LISTERS];
    volatile bool ended = false;
    cr_assert_eq(known_record(LEAF, 0), 1);
    struct known *known = make_known(live, KNOWN_FIRST);
    for (int i = 0; i < LISTERS; i++) {
        listers[i] = (struct lister){.ended = &ended};
        cr_assert_eq(union_root_init(&listers[i].root, root.path, 0), 0);
        listers[i].root.source = known_source(known);
        cr_assert_eq(pthread_create(&threads[i], NULL, list_on, &listers[i]), 0);
    }
    put_much();
    ended = true;
    for (int i = 0; i < LISTERS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_gt(listers[i].listed, 0);
        union_root_finish(&listers[i].root);
    }
    struct known_counts counts;
    known_count(known, &counts);
    cr_assert_geq(counts.taken, listers[0].listed + listers[1].listed + listers[2].listed);
    known_destroy(known);
}

Test(known, an_empty_directory_is_known_too)
{
    uint64_t taken;
    for (int i = 0; i < NAMES; i++)
        cr_assert_eq(unlink(place_path(LEAF "/n%d", i)), 0);
    cr_assert_eq(known_record(LEAF, 0), 1);
    struct known *known = make_known(live, KNOWN_FIRST);
    cr_assert_eq(known_list(known, &taken), 0);
    cr_assert_eq(taken, 1);
    known_destroy(known);
}

/* `out`, its marker, and its mirror in n1.1. */
static void record_all(void)
{
    cr_assert_eq(known_record("r/out", TAKE_PUBLIC), 1);
    cr_assert_eq(known_record("r/.shunt/b/n1.1/" MIRROR, TAKE_PUBLIC), 1);
    cr_assert_eq(known_record(LEAF, TAKE_PUBLIC), 1);
    cr_assert_eq(known_record_marker(), 1);
}

static struct listing_source counted;
static const struct listing_source *beneath;
static unsigned markers_known;

static int count_markers(void *context, int directory, struct marker *to)
{
    const int answer = beneath->marker(context, directory, to);
    markers_known += answer == 1;
    return answer;
}

/* As known_list, and whether the marker was known. */
static size_t known_list_all(struct known *known, uint64_t *taken, bool *is_marker_known)
{
    struct listing listing;
    struct known_counts before, after;
    beneath = known_source(known);
    counted = *beneath;
    counted.marker = count_markers;
    markers_known = 0;
    known_count(known, &before);
    root.source = &counted;
    int fd = place_open("r/out");
    cr_assert_eq(listing_init(&listing, &root, fd, "out", 0, 0), 0);
    close(fd);
    root.source = NULL;
    const size_t count = listing.count;
    cr_assert(listing.marked && !strcmp(listing.marker.mirror, MIRROR) && !strcmp(listing.marker.path, "out"));
    listing_finish(&listing);
    known_count(known, &after);
    *taken = after.taken - before.taken;
    *is_marker_known = markers_known == 1;
    return count;
}

Test(known, trunk_mirror_leaf_and_marker_are_known_without_opening_them)
{
    uint64_t taken;
    bool is_marker_known;
    record_all();
    struct known *known = make_known(live, KNOWN_FIRST);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), NAMES);
    cr_assert(taken == 3 && is_marker_known);
    known_destroy(known);
}

Test(known, a_leaf_that_is_made_in_a_known_mirror_is_seen)
{
    uint64_t taken;
    bool is_marker_known;
    record_all();
    place_directory("r/.shunt/b/n1.1/" MIRROR "/1");
    place_file("r/.shunt/b/n1.1/" MIRROR "/1/more", "");
    place_directory("r/.shunt/b/n2.1/" MIRROR "/0");
    place_file("r/.shunt/b/n2.1/" MIRROR "/0/another", "");
    struct known *known = make_known(live, KNOWN_FIRST);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), NAMES + 2);
    cr_assert(taken == 2 && is_marker_known, "the trunk and the old leaf");
    known_destroy(known);
}

Test(known, a_leaf_that_went_and_a_mirror_that_went_have_no_names)
{
    uint64_t taken;
    bool is_marker_known;
    record_all();
    struct known *known = make_known(live, KNOWN_FIRST);
    cr_assert_eq(rename(place_path(LEAF), place_path("leaf")), 0);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), 0);
    cr_assert_eq(rename(place_path("r/.shunt/b/n1.1/" MIRROR), place_path("mirror")), 0);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), 0);
    known_destroy(known);
}

Test(known, a_marker_that_is_written_again_is_read)
{
    uint64_t taken;
    bool is_marker_known;
    char text[MARKER_SIZE_MAX];
    record_all();
    struct known *known = make_known(live, KNOWN_FIRST);
    /* In place, so that its directory does not change. */
    int fd = open(place_path("r/out/" LAYOUT_MARKER), O_RDWR);
    ssize_t length = read(fd, text, sizeof text);
    cr_assert_eq(pwrite(fd, text, (size_t)length, 0), length);
    close(fd);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), NAMES);
    cr_assert_not(is_marker_known);
    cr_assert_eq(known_record_marker(), 1);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), NAMES);
    cr_assert(is_marker_known);
    cr_assert_eq(unlink(place_path("r/out/" LAYOUT_MARKER)), 0);
    struct listing listing;
    root.source = known_source(known);
    int directory = place_open("r/out");
    cr_assert_eq(listing_init(&listing, &root, directory, "out", 0, 0), 0);
    close(directory);
    root.source = NULL;
    cr_assert(!listing.marked && listing.count == 0);
    listing_finish(&listing);
    known_destroy(known);
}

Test(known, what_may_not_be_read_is_not_told_either)
{
    uint64_t taken;
    bool is_marker_known;
    if (geteuid() == 0)
        cr_assert_eq(chmod(place, 0755), 0);
    record_all();
    int branch = place_open("r/.shunt/b/n1.1");
    cr_assert_eq(catalogue_copy(live, branch, LAYOUT_CATALOGUE), 0);
    close(branch);
    cr_assert_eq(chmod(place_path("r/out"), 0711), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        struct known *known = make_known(NULL, KNOWN_FIRST);
        struct listing listing;
        root.source = known_source(known);
        int fd = place_open("r/out");
        const int error = listing_init(&listing, &root, fd, "out", 0, 0);
        _exit(error == 0 && listing.trunk_unlisted ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(geteuid() != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%x", status);
    struct known *known = make_known(live, KNOWN_FIRST);
    cr_assert_eq(known_list_all(known, &taken, &is_marker_known), NAMES);
    known_destroy(known);
}
