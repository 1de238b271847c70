/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/listing.h"

#include <sys/wait.h>

#include "place.h"
#include "union/census.h"
#include "union/sort.h"

#define OUT "out-5f3a9c01d2e4"

static struct dirid id_of(const char *path)
{
    struct statx stat;
    cr_assert_eq(statx(AT_FDCWD, place_path("%s", path), 0, STATX_INO | STATX_BTIME, (void *)&stat), 0);
    return dirid_of(&stat);
}

/* A root `r` with the branches n1.1, n2.1 and n10.1, and the directory `out`. */
static void scene_init(void)
{
    place_init();
    place_directory("r/.shunt/b/n1.1");
    place_directory("r/.shunt/b/n2.1");
    place_directory("r/.shunt/b/n10.1");
    place_directory("r/out");
}

static void mark_by_id(const char *path, uint64_t number, struct dirid id, const char *said)
{
    struct marker marker = {.id = number, .directory = id};
    strcpy(marker.path, "out");
    marker_name(&marker);
    strcpy(marker.path, said);
    int fd = place_open(path);
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
}

static void listing_mark(const char *path, struct dirid id, const char *said)
{
    mark_by_id(path, 0x5f3a9c01d2e4, id, said);
}

static struct union_root root;
static struct listing listing;

/* By what is known of the root already. */
static int list_in_root(const char *path, uint16_t own, unsigned flags)
{
    int fd = place_open(strcmp(path, ".") ? place_path("r/%s", path) + strlen(place) + 1 : "r");
    int error = listing_init(&listing, &root, fd, path, own, flags);
    close(fd);
    return error;
}

static int listing_list(const char *path, uint16_t own, unsigned flags)
{
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    return list_in_root(path, own, flags);
}

static void listing_forget(void)
{
    listing_finish(&listing);
    union_root_finish(&root);
}

static const struct union_name *test_listing_find(const char *name)
{
    return listing_find(&listing, name, strlen(name));
}

static void assert_sorted_and_found(void)
{
    for (size_t i = 0; i < listing.count; i++) {
        cr_assert(i == 0 || strcmp(listing.names[i - 1].name, listing.names[i].name) < 0);
        cr_assert_eq(test_listing_find(listing.names[i].name), &listing.names[i]);
    }
}

/* The entry stands where it says it does, as the file it says it is. */
static void assert_there(const char *path, const char *name, uint16_t branch)
{
    char where[PATH_MAX];
    struct stat stat;
    const struct union_name *one = test_listing_find(name);
    cr_assert(one, "%s", name);
    cr_assert_eq(one->branch, branch, "%s is in %u", name, one->branch);
    cr_assert_eq(listing_where(&listing, &root, path, one, where, sizeof where), 0);
    cr_assert_eq(lstat(where, &stat), 0, "%s", where);
    cr_assert_eq(stat.st_ino, one->ino);
    cr_assert_eq(IFTODT(stat.st_mode), one->type);
    cr_assert_eq(listing_where(&listing, &root, path, one, where, 10), -ENAMETOOLONG);
}

Test(root, any_spelling, .init = scene_init, .fini = place_finish)
{
    place_directory("r/.shunt/b/not-a-branch");
    place_directory("r/.shunt/b/n3.01");
    place_file("r/.shunt/b/n4.1", "");
    cr_assert_eq(symlink("r", place_path("link")), 0);
    cr_assert_eq(union_root_init(&root, place_path("r/out/..//./out/../../link"), 0), 0);
    cr_assert_str_eq(root.path, place_path("r"));
    cr_assert(dirid_equal(root.id, id_of("r")));
    cr_assert_eq(root.device, place_stat("r").st_dev);
    cr_assert_eq(root.branch_count, 3);
    cr_assert_str_eq(root.branches[0], "n1.1");
    cr_assert_str_eq(root.branches[1], "n10.1");
    cr_assert_str_eq(root.branches[2], "n2.1");
    for (int i = 4; i < 100; i++) {
        char name[LAYOUT_BRANCH_MAX];
        snprintf(name, sizeof name, "m%d.1", i);
        cr_assert_eq(union_root_add(&root, name), i);
        cr_assert_str_eq(root.branches[i - 1], name);
    }
    union_root_finish(&root);
}

Test(root, failures, .init = scene_init, .fini = place_finish)
{
    place_file("r/file", "");
    cr_assert_eq(union_root_init(&root, place_path("nothing"), 0), -ENOENT);
    cr_assert_eq(union_root_init(&root, place_path("nothing/more"), LISTING_FIND_ROOT), -ENOENT);
    cr_assert_eq(union_root_init(&root, place_path("r/file"), 0), -ENOTDIR);
    cr_assert_eq(union_root_init(&root, "", LISTING_FIND_ROOT), -ENOENT);
    cr_assert_eq(union_root_init(&root, place_path(""), LISTING_FIND_ROOT), -ENOTUNIQ);
    cr_assert_eq(union_root_init(&root, place_path("r/out"), 0), 0, "a root without .shunt");
    cr_assert_eq(root.branch_count, 0);
    union_root_finish(&root);
}

Test(root, is_found_from_beneath, .init = scene_init, .fini = place_finish)
{
    place_directory("r/out/deep/deeper");
    place_file("r/out/file", "");
    const char *const from[] = {
        "r", "r/", "r/out/deep/deeper", "r/out/file", "r/out/not-in-the-trunk", "r/out/new/", "r/.shunt/b/n1.1"};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        cr_assert_eq(union_root_init(&root, place_path("%s", from[i]), LISTING_FIND_ROOT), 0, "%s", from[i]);
        cr_assert_str_eq(root.path, place_path("r"), "%s", from[i]);
        cr_assert_eq(root.branch_count, 3);
        union_root_finish(&root);
    }
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(union_root_init(&root, "nothing", LISTING_FIND_ROOT), 0);
    cr_assert_str_eq(root.path, place_path("r"));
    union_root_finish(&root);
}

Test(listing, a_plain_directory, .init = scene_init, .fini = place_finish)
{
    place_file("r/out/b", "");
    place_directory("r/out/a");
    place_directory("r/out/.shunt");
    cr_assert_eq(symlink("nowhere", place_path("r/out/c")), 0);
    cr_assert_eq(listing_list("out", 1, LISTING_SETTLE), 0);
    cr_assert_not(listing.marked);
    cr_assert_not(listing.trunk_unlisted);
    cr_assert_eq(listing.count, 4, ".shunt is ours in the root alone");
    assert_sorted_and_found();
    assert_there("out", "a", 0);
    assert_there("out", "b", 0);
    assert_there("out", "c", 0);
    cr_assert_null(test_listing_find("d"));
    cr_assert_null(test_listing_find(""));
    cr_assert_null(listing_find(&listing, "bb", 2));
    cr_assert_not_null(listing_find(&listing, "bb", 1));
    listing_forget();
}

Test(listing, the_root_itself, .init = scene_init, .fini = place_finish)
{
    listing_mark("r", id_of("r"), ".");
    place_directory("r/.shunt/b/n2.1/" OUT "/0");
    place_file("r/.shunt/b/n2.1/" OUT "/0/f", "");
    cr_assert_eq(listing_list(".", 0, 0), 0);
    cr_assert_eq(listing.count, 2);
    assert_there(".", "out", 0);
    assert_there(".", "f", 3);
    listing_forget();
}

Test(listing, trunk_and_mirrors, .init = scene_init, .fini = place_finish)
{
    listing_mark("r/out", id_of("r/out"), "out");
    place_file("r/out/t", "");
    place_directory("r/.shunt/b/n1.1/" OUT "/0");
    place_directory("r/.shunt/b/n1.1/" OUT "/3/dir");
    place_directory("r/.shunt/b/n1.1/" OUT "/.new-1-2");
    place_directory("r/.shunt/b/n1.1/" OUT "/01");
    place_directory("r/.shunt/b/n1.1/" OUT "/99999999999");
    place_directory("r/.shunt/b/n10.1/" OUT "/0");
    place_file("r/.shunt/b/n1.1/" OUT "/2", "no directory");
    place_file("r/.shunt/b/n1.1/" OUT "/.new-1-2/hidden", "");
    place_file("r/.shunt/b/n1.1/" OUT "/0/x", "");
    place_file("r/.shunt/b/n1.1/" OUT "/0/y", "");
    place_file("r/.shunt/b/n1.1/" OUT "/3/a", "");
    place_file("r/.shunt/b/n10.1/" OUT "/0/z", "");
    cr_assert_eq(listing_list("out", 1, 0), 0);
    cr_assert(listing.marked);
    cr_assert_str_eq(listing.marker.mirror, OUT);
    cr_assert(dirid_equal(listing.id, id_of("r/out")));
    cr_assert_eq(listing.count, 6);
    assert_sorted_and_found();
    assert_there("out", "t", 0);
    assert_there("out", "x", 1);
    assert_there("out", "a", 1);
    assert_there("out", "z", 2);
    assert_there("out", "dir", 1);
    cr_assert_eq(test_listing_find("a")->leaf, 3);
    cr_assert_eq(listing.leaves, 4);
    cr_assert_eq(listing.leaf_counts[0], 2);
    cr_assert_eq(listing.leaf_counts[1], 0);
    cr_assert_eq(listing.leaf_counts[3], 2);
    cr_assert_eq(listing.conflicts, 0);
    listing_forget();
}

Test(listing, a_broken_marker_is_an_error, .init = scene_init, .fini = place_finish)
{
    place_file("r/out/.shunt-dir", "shunt-dir 1\nmirror ou");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), -EBADMSG);
    cr_assert(place_has("r/out/.shunt-dir"));
    union_root_finish(&root);
}

/* As an ordinary user: root may list everything. */
static int list_unlisted(void)
{
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 2;
    int error = listing_list("out", 0, 0);
    return error != 0 || !listing.trunk_unlisted || listing.count != 1 || !test_listing_find("x");
}

Test(listing, a_trunk_that_may_not_be_read, .init = scene_init, .fini = place_finish)
{
    listing_mark("r/out", id_of("r/out"), "out");
    place_file("r/out/t", "");
    place_directory("r/.shunt/b/n1.1/" OUT "/0");
    place_file("r/.shunt/b/n1.1/" OUT "/0/x", "");
    cr_assert_eq(chmod(place_path("r/out"), 0311), 0);
    cr_assert_eq(chmod(place, 0755), 0);
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(list_unlisted());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* Conflicts. */

static void conflict_init(void)
{
    scene_init();
    listing_mark("r/out", id_of("r/out"), "out");
    place_directory("r/.shunt/b/n1.1/" OUT "/0");
    place_directory("r/.shunt/b/n2.1/" OUT "/0");
}

static void listing_older(void)
{
    usleep(20000);
}

static void assert_conflict(const char *winner_words, const char *loser, const char *loser_words)
{
    char where[PATH_MAX], words[32] = {0};
    const char *const names[] = {"f", loser}, *const expected[] = {winner_words, loser_words};
    for (int i = 0; i < 2; i++) {
        cr_assert(test_listing_find(names[i]), "%s", names[i]);
        cr_assert_eq(listing_where(&listing, &root, "out", test_listing_find(names[i]), where, sizeof where), 0);
        FILE *file = fopen(where, "r");
        cr_assert(file, "%s", where);
        words[fread(words, 1, sizeof words - 1, file)] = '\0';
        fclose(file);
        cr_assert_str_eq(words, expected[i]);
    }
    cr_assert_eq(listing.conflicts, 1);
    assert_sorted_and_found();
}

Test(conflict, more_beats_nothing, .init = conflict_init, .fini = place_finish)
{
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "full");
    listing_older();
    place_file("r/out/f", "");
    cr_assert_eq(listing_list("out", 0, 0), 0);
    assert_conflict("full", "f.shunt-conflict-trunk", "");
    cr_assert_str_eq(test_listing_find("f.shunt-conflict-trunk")->on_disk, "f");
    cr_assert(place_has("r/out/f"), "looking changes nothing");
    listing_forget();
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    assert_conflict("full", "f.shunt-conflict-trunk", "");
    cr_assert(place_has("r/out/f.shunt-conflict-trunk") && !place_has("r/out/f"));
    listing_forget();
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_eq(listing.conflicts, 0);
    cr_assert_eq(listing.count, 2);
    listing_forget();
}

Test(conflict, newer_beats_older, .init = conflict_init, .fini = place_finish)
{
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "first");
    listing_older();
    place_file("r/.shunt/b/n2.1/" OUT "/0/f", "second");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    assert_conflict("second", "f.shunt-conflict-n1", "first");
    cr_assert(place_has("r/.shunt/b/n1.1/" OUT "/0/f.shunt-conflict-n1"));
    listing_forget();
}

/* What lists the others will see it. */
Test(listing, mirrors_of_some_branches_alone, .init = conflict_init, .fini = place_finish)
{
    const uint16_t first = 1, both[] = {1, 2, 3};
    place_file("r/out/of-trunk", "");
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "first");
    place_file("r/.shunt/b/n2.1/" OUT "/0/f", "second");
    cr_assert_eq(listing_list("out", 1, LISTING_SETTLE | LISTING_TRUNK), 0);
    cr_assert(listing.trunk_alone && listing.marked && listing.count == 1 && listing.leaves == 0);
    assert_there("out", "of-trunk", 0);
    listing_finish(&listing);
    cr_assert_eq(listing_init_mirrors(&listing, &root, OUT, &first, 1, 1), 0);
    cr_assert_eq(listing.count, 1);
    assert_there("out", "f", 1);
    cr_assert(listing.leaves == 1 && listing.leaf_counts[0] == 1);
    listing_finish(&listing);
    cr_assert_eq(listing_init_mirrors(&listing, &root, OUT, both, 3, 0), 0);
    cr_assert_eq(listing.count, 2, "a name in two places stands twice");
    listing_finish(&listing);
    cr_assert_eq(listing_init_mirrors(&listing, &root, "no-mirror", both, 3, 0), 0);
    cr_assert_eq(listing.count, 0);
    listing_forget();
}

/* It may decide a conflict. */
Test(listing, where_something_is_unfinished_one_lists_all, .init = conflict_init, .fini = place_finish)
{
    place_file("r/out/" LAYOUT_MARKER ".00000000000000ab", "");
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "first");
    cr_assert_eq(listing_list("out", 1, LISTING_SETTLE | LISTING_TRUNK), 0);
    cr_assert(!listing.trunk_alone && listing.count == 1);
    listing_forget();
}

/* Nothing but what shunt itself calls so is swept. */
Test(listing, a_copy_of_a_marker_is_the_users, .init = conflict_init, .fini = place_finish)
{
    place_file("r/out/" LAYOUT_MARKER ".before-the-crash", "a copy");
    place_directory("r/out/" LAYOUT_MARKER ".all-of-them-2025");
    place_file("r/out/" LAYOUT_MARKER ".00000000000000ab", "");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_eq(listing.count, 2);
    assert_there("out", LAYOUT_MARKER ".all-of-them-2025", 0);
    assert_there("out", LAYOUT_MARKER ".before-the-crash", 0);
    cr_assert(place_has("r/out/" LAYOUT_MARKER ".before-the-crash"));
    cr_assert_not(place_has("r/out/" LAYOUT_MARKER ".00000000000000ab"));
    listing_forget();
}

Test(conflict, two_leaves_of_one_branch, .init = conflict_init, .fini = place_finish)
{
    place_directory("r/.shunt/b/n1.1/" OUT "/1");
    place_file("r/.shunt/b/n1.1/" OUT "/1/f", "first");
    listing_older();
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "second");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    assert_conflict("second", "f.shunt-conflict-n1", "first");
    cr_assert_eq(test_listing_find("f")->leaf, 0);
    listing_forget();
}

Test(conflict, what_is_no_file_in_the_trunk_wins, .init = conflict_init, .fini = place_finish)
{
    place_directory("r/out/f");
    cr_assert_eq(symlink("x", place_path("r/out/g")), 0);
    listing_older();
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "full");
    place_file("r/.shunt/b/n2.1/" OUT "/0/g", "full");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_eq(test_listing_find("f")->type, DT_DIR);
    cr_assert_eq(test_listing_find("g")->type, DT_LNK);
    assert_there("out", "f.shunt-conflict-n1", 1);
    assert_there("out", "g.shunt-conflict-n2", 3);
    cr_assert_eq(listing.conflicts, 2);
    listing_forget();
}

Test(conflict, numbers_where_the_name_is_taken, .init = conflict_init, .fini = place_finish)
{
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "first");
    place_file("r/out/f.shunt-conflict-n1", "taken in the trunk");
    place_file("r/.shunt/b/n2.1/" OUT "/0/f.shunt-conflict-n1.2", "taken in another branch");
    listing_older();
    place_file("r/.shunt/b/n2.1/" OUT "/0/f", "second");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    assert_conflict("second", "f.shunt-conflict-n1.3", "first");
    listing_forget();
}

Test(conflict, many_of_one_name, .init = conflict_init, .fini = place_finish)
{
    place_directory("r/.shunt/b/n1.2/" OUT "/0");
    const char *const in[] = {"r/out", "r/.shunt/b/n1.1/" OUT "/0", "r/.shunt/b/n1.2/" OUT "/0", "r/.shunt/b/n2.1/" OUT "/0"};
    for (int n = 0; n < 50; n++)
        for (size_t i = 0; i < 4; i++) {
            char path[128];
            snprintf(path, sizeof path, "%s/f%d", in[i], n);
            place_file(path, "x");
        }
    for (int flags = 0; flags < 2; flags++) {
        cr_assert_eq(listing_list("out", 0, flags ? LISTING_SETTLE : 0), 0);
        cr_assert_eq(listing.count, 200);
        cr_assert_eq(listing.conflicts, 150);
        assert_sorted_and_found();
        for (size_t i = 0; i < listing.count; i++)
            assert_there("out", listing.names[i].name, listing.names[i].branch);
        listing_forget();
    }
    cr_assert_eq(listing_list("out", 0, 0), 0);
    cr_assert_eq(listing.count, 200);
    cr_assert_eq(listing.conflicts, 0);
    listing_forget();
}

Test(conflict, long_names_are_cut, .init = conflict_init, .fini = place_finish)
{
    char name[256] = {0}, path[512];
    for (size_t i = 0; i < 254; i += 2)
        memcpy(name + i, "\xc3\xa4", 2);
    snprintf(path, sizeof path, "r/.shunt/b/n1.1/" OUT "/0/%s", name);
    place_file(path, "first");
    snprintf(path, sizeof path, "r/out/%s", name);
    listing_older();
    place_file(path, "second");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_eq(listing.count, 2);
    cr_assert_eq(listing.conflicts, 1);
    const struct union_name *loser = test_listing_find(name) == &listing.names[0] ? &listing.names[1] : &listing.names[0];
    const char *tail = strstr(loser->name, ".shunt-conflict-n1");
    cr_assert(tail && strlen(loser->name) <= 255 && strlen(loser->name) > 250);
    cr_assert_eq((tail - loser->name) % 2, 0, "no half characters");
    assert_there("out", loser->name, 1);
    listing_forget();
}

Test(conflict, one_file_in_two_places_is_none, .init = conflict_init, .fini = place_finish)
{
    place_file("r/.shunt/b/n2.1/" OUT "/0/f", "x");
    place_file("r/.shunt/b/n2.1/" OUT "/0/g", "x");
    cr_assert_eq(link(place_path("r/.shunt/b/n2.1/" OUT "/0/f"), place_path("r/out/f")), 0);
    cr_assert_eq(link(place_path("r/.shunt/b/n2.1/" OUT "/0/g"), place_path("r/.shunt/b/n1.1/" OUT "/0/g")), 0);
    for (int flags = 0; flags < 2; flags++) {
        cr_assert_eq(listing_list("out", 0, flags ? LISTING_SETTLE : 0), 0);
        cr_assert_eq(listing.count, 2);
        cr_assert_eq(listing.conflicts, 0);
        assert_there("out", "f", 0);
        assert_there("out", "g", 1);
        listing_forget();
    }
    cr_assert_eq(place_stat("r/out/f").st_nlink, 1, "settled: the second link would bring the name back");
    cr_assert_not(place_has("r/.shunt/b/n2.1/" OUT "/0/g"));
}

/* Whose marker is it? */

static void owner_init(void)
{
    conflict_init();
    place_file("r/.shunt/b/n1.1/" OUT "/0/x", "");
}

static void copy_marker(const char *from, const char *to)
{
    int a = place_open(from), b = place_open(to);
    struct marker marker;
    cr_assert_eq(marker_read(a, &marker), 0);
    cr_assert_eq(marker_write(b, &marker), 0);
    close(a);
    close(b);
}

static void assert_marker(const char *path, const char *said)
{
    struct marker marker;
    int fd = place_open(path);
    cr_assert_eq(marker_read(fd, &marker), 0);
    cr_assert(dirid_equal(marker.directory, id_of(path)));
    cr_assert_str_eq(marker.path, said);
    close(fd);
}

Test(owner, a_renamed_directory_keeps_its_mirrors, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(rename(place_path("r/out"), place_path("r/elsewhere")), 0);
    cr_assert_eq(listing_list("elsewhere", 0, 0), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    listing_forget();
    cr_assert_eq(listing_list("elsewhere", 0, LISTING_SETTLE), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    assert_marker("r/elsewhere", "elsewhere");
    listing_forget();
}

Test(owner, a_copy_has_none, .init = owner_init, .fini = place_finish)
{
    place_directory("r/copy");
    copy_marker("r/out", "r/copy");
    cr_assert_eq(listing_list("copy", 0, 0), 0);
    cr_assert_not(listing.marked);
    cr_assert_eq(listing.count, 0);
    cr_assert(place_has("r/copy/.shunt-dir"), "looking changes nothing");
    listing_forget();
    cr_assert_eq(listing_list("copy", 0, LISTING_SETTLE), 0);
    cr_assert_not(listing.marked);
    cr_assert_not(place_has("r/copy/.shunt-dir"));
    listing_forget();
    assert_marker("r/out", "out");
}

Test(owner, what_was_not_written_to_its_end, .init = owner_init, .fini = place_finish)
{
    place_file("r/out/.shunt-dir.0123456789abcdef", "shunt-dir 1\nmir");
    cr_assert_eq(listing_list("out", 0, 0), 0);
    cr_assert(listing.unfinished && place_has("r/out/.shunt-dir.0123456789abcdef"));
    listing_forget();
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_not(place_has("r/out/.shunt-dir.0123456789abcdef"), "else the directory could not be removed");
    cr_assert(listing.marked && test_listing_find("x"));
    listing_forget();
}

static bool test_listing_refuses(const void *unused)
{
    (void)unused;
    return false;
}

/* As long as nothing is to be settled it is listed. */
static int list_refused(const char *path)
{
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    root.may_settle = test_listing_refuses;
    int error = list_in_root(path, 0, LISTING_SETTLE);
    listing_forget();
    return error;
}

Test(owner, who_may_not_settle_changes_nothing, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(list_refused("out"), 0);
    place_directory("r/copy");
    copy_marker("r/out", "r/copy");
    cr_assert_eq(list_refused("copy"), -ECANCELED);
    cr_assert(place_has("r/copy/.shunt-dir"));
    place_file("r/out/.shunt-dir.0123456789abcdef", "shunt-dir 1\nmir");
    cr_assert_eq(list_refused("out"), -ECANCELED);
    cr_assert(place_has("r/out/.shunt-dir.0123456789abcdef"));
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir.0123456789abcdef")), 0);
    place_file("r/out/x", "another");
    cr_assert_eq(list_refused("out"), -ECANCELED);
    cr_assert(place_has("r/out/x") && place_has("r/.shunt/b/n1.1/" OUT "/0/x"));
    cr_assert_eq(unlink(place_path("r/out/x")), 0);
    cr_assert_eq(link(place_path("r/.shunt/b/n1.1/" OUT "/0/x"), place_path("r/out/x")), 0);
    cr_assert_eq(list_refused("out"), -ECANCELED);
    cr_assert_eq(place_stat("r/out/x").st_nlink, 2);
    cr_assert_eq(rename(place_path("r/out"), place_path("r/elsewhere")), 0);
    cr_assert_eq(list_refused("elsewhere"), -ECANCELED);
    assert_marker("r/elsewhere", "out");
}

Test(owner, a_copy_of_a_directory_moved_since, .init = owner_init, .fini = place_finish)
{
    place_directory("r/a/b/c");
    place_directory("r/.shunt/trap");
    cr_assert_eq(symlink("..", place_path("r/a/loop")), 0);
    cr_assert_eq(rename(place_path("r/out"), place_path("r/a/b/c/moved")), 0);
    place_directory("r/out");
    copy_marker("r/a/b/c/moved", "r/out");
    cr_assert_eq(listing_list("out", 0, LISTING_SETTLE), 0);
    cr_assert_not(listing.marked);
    cr_assert_not(place_has("r/out/.shunt-dir"));
    listing_forget();
    cr_assert_eq(listing_list("a/b/c/moved", 0, LISTING_SETTLE), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    listing_forget();
}

Test(owner, a_restored_directory_claims_its_mirrors, .init = owner_init, .fini = place_finish)
{
    place_directory("r/new");
    copy_marker("r/out", "r/new");
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir")), 0);
    cr_assert_eq(rename(place_path("r/out"), place_path("gone")), 0);
    cr_assert_eq(listing_list("new", 0, 0), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    listing_forget();
    cr_assert_eq(listing_list("new", 0, LISTING_SETTLE), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    assert_marker("r/new", "new");
    listing_forget();
}

Test(owner, of_two_copies_of_what_is_gone_one_becomes_it_the_one_that_asks_first, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    place_directory("r/one");
    place_directory("r/two");
    copy_marker("r/out", "r/one");
    copy_marker("r/out", "r/two");
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir")), 0);
    const char *const copies[] = {"two", "one", "two", "one", "two"};
    for (int i = 0; i < 5; i++) { /* all within the time in which no second walk is made; at first nothing is settled */
        cr_assert_eq(list_in_root(copies[i], 0, i < 2 ? 0 : LISTING_SETTLE), 0);
        cr_assert_eq(listing.marked, i % 2 == 1);
        cr_assert_eq(test_listing_find("x") != NULL, i % 2 == 1);
        listing_finish(&listing);
    }
    assert_marker("r/one", "one");
    cr_assert_not(place_has("r/two/.shunt-dir"));
    union_root_finish(&root);
}

Test(owner, who_is_in_the_place_of_what_is_gone_goes_before_other_copies, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(rename(place_path("r/out"), place_path("r/old")), 0);
    place_directory("r/out");
    place_directory("r/another");
    copy_marker("r/old", "r/out");
    copy_marker("r/old", "r/another");
    for (int i = 0; i < 2; i++) { /* while the original is there, it is the owner */
        const char *path = i == 0 ? "another" : "out";
        cr_assert_eq(listing_list(path, 0, 0), 0);
        cr_assert_not(listing.marked);
        listing_forget();
    }
    cr_assert_eq(unlink(place_path("r/old/.shunt-dir")), 0);
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? "another" : "out";
        cr_assert_eq(listing_list(path, 0, LISTING_SETTLE), 0);
        cr_assert_eq(listing.marked, i == 1);
        listing_forget();
    }
    assert_marker("r/out", "out");
}

static void copy_from_another_root(const char *to, const char *said)
{
    struct marker marker = {.id = 77, .directory = {1000000000u, 5}, .root = {1000000001u, 6}};
    strcpy(marker.path, said);
    marker_name(&marker);
    int fd = place_open(to);
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
}

/* What stands where its marker says needs no look at others. */
Test(owner, a_copy_of_a_whole_root_is_not_walked, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    place_directory("r/new");
    place_directory("r/other");
    copy_from_another_root("r/new", "new");
    copy_from_another_root("r/other", "new");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(list_in_root(i == 0 ? "other" : "new", 0, LISTING_SETTLE), 0);
        cr_assert_eq(listing.marked, i == 1, "the other is a copy within the copy");
        listing_finish(&listing);
    }
    cr_assert_not(census_has_walked(root.census));
    assert_marker("r/new", "new");
    union_root_finish(&root);
}

Test(owner, the_same_directory_with_another_marker_is_not_it, .init = owner_init, .fini = place_finish)
{
    struct marker marker = {.id = 42, .directory = id_of("r/out"), .path = "out"};
    place_directory("r/new");
    copy_marker("r/out", "r/new");
    marker_name(&marker);
    int fd = place_open("r/out");
    cr_assert_eq(marker_replace(fd, &marker), 0);
    close(fd);
    cr_assert_eq(listing_list("new", 0, LISTING_SETTLE), 0);
    cr_assert(listing.marked && test_listing_find("x"));
    assert_marker("r/new", "new");
    listing_forget();
}

Test(owner, a_restored_tree_asks_for_each_directory, .init = owner_init, .fini = place_finish)
{
    cr_assert_eq(union_root_init(&root, place_path("r"), 0), 0);
    for (int i = 0; i < 300; i++) {
        char path[32];
        snprintf(path, sizeof path, "r/tree%d", i);
        place_directory(path);
        mark_by_id(path, 1 + (unsigned)i, (struct dirid){1000000000u + (unsigned)i, 5}, path + 2);
        cr_assert_eq(list_in_root(path + 2, 0, LISTING_SETTLE), 0);
        cr_assert(listing.marked);
        listing_finish(&listing);
        assert_marker(path, path + 2);
    }
    union_root_finish(&root);
}

/* union/sort.h */

static void sort_and_check(size_t count, size_t run)
{
    static char text[4096][24];
    static struct union_name names[4096], model[4096];
    for (size_t i = 0; i < count; i++) {
        /* Sorted runs of so many names, that lie in one another. */
        const size_t number = i % run * ((count + run - 1) / run) + i / run;
        snprintf(text[i], sizeof text[i], "%06zu", number / 2);
        names[i] = (struct union_name){.name = text[i], .branch = (uint16_t)(number % 2), .leaf = (uint32_t)i};
    }
    memcpy(model, names, sizeof model);
    for (size_t i = 1; i < count; i++) /* by insertion */
        for (size_t j = i; j > 0; j--) {
            const int order = strcmp(model[j - 1].name, model[j].name);
            if (order < 0 || (order == 0 && model[j - 1].branch <= model[j].branch))
                break;
            const struct union_name other = model[j];
            model[j] = model[j - 1];
            model[j - 1] = other;
        }
    sort_names(names, count);
    for (size_t i = 0; i < count; i++)
        cr_assert(names[i].leaf == model[i].leaf, "%zu in runs of %zu: %zu", count, run, i);
}

Test(listing_sort, runs_of_every_length)
{
    const size_t counts[] = {0, 1, 2, 3, 15, 16, 17, 100, 1000};
    const size_t runs[] = {1, 2, 7, 16, 33, 100, 999, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof runs / sizeof *runs; j++)
            sort_and_check(counts[i], runs[j]);
}
