/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* From the words of a call to a name under a root, and what is done with it at its home. */

#include "shim/root_of.h"
#include "shim/target.h"

#include <dirent.h>
#include <pthread.h>

#include "request/channel.h"
#include "shim/claim.h"
#include "shim/promote.h"
#include "shim/fdcache.h"
#include "shim/parent_guess.h"
#include "shimmed.h"

TestSuite(target, .init = shimmed_init, .fini = shimmed_finish, .timeout = 120);
TestSuite(held, .init = shimmed_init, .fini = shimmed_finish, .timeout = 120);

static int shim_target_how(const char *path, unsigned want)
{
    struct target t;
    int found = target_find(&t, AT_FDCWD, path, want);
    if (found == TARGET_MANAGED)
        target_done(&t);
    return found;
}

/* Which words mean which name. */

struct spelling {
    int at;
    const char *path, *directory, *name;
    size_t parent_length;
    bool slash;
};

static void assert_means(const struct spelling *spelling)
{
    struct target t;
    int found = target_find(&t, spelling->at, spelling->path, 0);
    cr_assert_eq(found, TARGET_MANAGED, "%s: %d", spelling->path, found);
    cr_assert_eq(t.root, &shim_state.roots[0]);
    cr_assert(dirid_equal(t.dir, id_at(place_path("%s", spelling->directory))), "%s", spelling->path);
    cr_assert(t.length == strlen(spelling->name) && memcmp(t.name, spelling->name, t.length) == 0, "%s", spelling->path);
    cr_assert_eq(t.parent_length, spelling->parent_length, "%s: %zu", spelling->path, t.parent_length);
    cr_assert_eq(t.slash, spelling->slash, "%s", spelling->path);
    cr_assert(t.at == spelling->at && t.path == spelling->path, "the caller's words are kept");
    cr_assert(t.found.dir_known && (t.found.dir.flags & RECORD_LOADED) && !t.found.known);
    target_done(&t);
}

Test(target, spellings_of_a_name)
{
    cr_assert_eq(symlink("out", place_path("r/link")), 0);
    cr_assert_eq(symlink("../beside", place_path("r/away")), 0);
    cr_assert_eq(symlink("../r", place_path("beside/back")), 0);
    static const struct {
        const char *words;
        size_t behind; /* what stands after the parent */
        const char *directory;
        bool slash;
    } absolute[] = {
        {"r/out/f", 1, "r/out", false},           {"r/f", 1, "r", false},
        {"r/out/f/", 2, "r/out", true},           {"r/out/f///", 4, "r/out", true},
        {"r//out///f", 1, "r/out", false},        {"r/out/./f", 1, "r/out", false},
        {"r/out/../in/f", 1, "r/in", false},      {"r/out/../../r/f", 1, "r", false},
        {"beside/../r/out/f", 1, "r/out", false}, {"r/link/f", 1, "r/out", false},
        {"r/link/../f", 1, "r", false},           {"r/away/back/out/f", 1, "r/out", false},
    };
    for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++) {
        const char *path = place_path("%s", absolute[i].words);
        assert_means(&(struct spelling){AT_FDCWD, path, absolute[i].directory, "f", strlen(path) - absolute[i].behind,
                                        absolute[i].slash});
    }
}

Test(target, spellings_seen_from_somewhere)
{
    int out = place_open("r/out"), beside = place_open("beside");
    assert_means(&(struct spelling){out, "f", "r/out", "f", 0, false});
    assert_means(&(struct spelling){out, "./f/", "r/out", "f", 2, true});
    assert_means(&(struct spelling){out, "../in/f", "r/in", "f", 6, false});
    assert_means(&(struct spelling){beside, "../r/out/f", "r/out", "f", 9, false});
    assert_means(&(struct spelling){beside, place_path("r/in/f"), "r/in", "f", strlen(place) + 6, false});
    cr_assert_eq(chdir(place_path("r/out")), 0);
    assert_means(&(struct spelling){AT_FDCWD, "f", "r/out", "f", 0, false});
    assert_means(&(struct spelling){AT_FDCWD, "../f", "r", "f", 3, false});
    cr_assert_eq(chdir(place_path("beside")), 0);
    assert_means(&(struct spelling){AT_FDCWD, "../r/f", "r", "f", 5, false});
    assert_means(&(struct spelling){out, "f", "r/out", "f", 0, false});
}

Test(target, a_working_directory_that_was_moved)
{
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(rename(place_path("r/out"), place_path("r/moved")), 0);
    assert_means(&(struct spelling){AT_FDCWD, "f", "r/moved", "f", 0, false});
}

Test(target, what_is_not_ours)
{
    int beside = place_open("beside");
    struct target t;
    static const char *const outside[] = {"/", "//", "/etc/passwd", "/.", "/..", "relative", ".", ".."};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        for (unsigned want = 0; want < 8; want++)
            cr_assert_eq(shim_target_how(outside[i], want), TARGET_FOREIGN, "%s", outside[i]);
    cr_assert_eq(shim_target_how(NULL, TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(shim_target_how("", TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(shim_target_how(place_path("beside/f"), TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(shim_target_how(place_path("root/f"), TARGET_MAKES), TARGET_FOREIGN, "it begins like it");
    cr_assert_eq(shim_target_how(place_path("r/../beside/f"), 0), TARGET_FOREIGN);
    cr_assert_eq(target_find(&t, beside, "f", TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(target_find(&t, beside, "../f", TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(target_find(&t, 999, "f", 0), TARGET_FOREIGN, "the kernel says EBADF");
}

Test(target, the_root_itself_by_its_text)
{
    static const char *const roots[] = {"r", "r/", "r//", "r/.", "r/out/..", "./r", "beside/../r"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        cr_assert_eq(shim_target_how(place_path("%s", roots[i]), 0), TARGET_ROOT, "%s", roots[i]);
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(shim_target_how("..", 0), TARGET_ROOT);
    cr_assert_eq(shim_target_how("../../r", TARGET_FOLLOW), TARGET_ROOT);
    cr_assert_eq(shim_target_how("../../beside", 0), TARGET_FOREIGN);
}

Test(target, words_that_the_kernel_is_to_judge)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    cr_assert_eq(shim_target_how(place_path("r/%s", name), TARGET_MAKES), TARGET_MANAGED);
    strcpy(name + 255, "n");
    cr_assert_eq(shim_target_how(place_path("r/%s", name), TARGET_MAKES), TARGET_FOREIGN, "too long");
    place_file("r/out/file", "");
    static const char *const words[] = {"r/none/f", "r/none/none/f", "r/out/file/f", "r/out/.", "r/in/..//", "r/out/none/.."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        cr_assert_leq(shim_target_how(place_path("%s", words[i]), TARGET_FOLLOW), TARGET_ROOT, "%s", words[i]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        cr_assert_neq(shim_target_how(place_path("%s", words[i]), TARGET_FOLLOW), TARGET_MANAGED, "%s", words[i]);
    cr_assert_eq(shim_target_how(place_path("r/none/f"), TARGET_FOLLOW), TARGET_FOREIGN);
    cr_assert_eq(shim_target_how(place_path("r/out/file/f"), TARGET_FOLLOW), TARGET_FOREIGN);
}

Test(target, a_file_in_a_branch_is_no_directory)
{
    born(place_path("r/out/f"), "", 0644);
    cr_assert_eq(shim_target_how(place_path("r/out/f/x"), 0), -ENOTDIR, "the kernel, which does not see it, would say ENOENT");
    cr_assert_eq(shim_target_how(place_path("r/out/f/x/y"), 0), -ENOTDIR);
    cr_assert_eq(shim_target_how(place_path("r/out/none/x"), 0), TARGET_FOREIGN);
}

Test(target, names_that_shunt_keeps_for_itself)
{
    born(place_path("r/out/f"), "", 0644);
    static const char *const own[] = {"r/.shunt", "r/.shunt/", "r/out/../.shunt", "r/out/.shunt-dir"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        cr_assert_eq(shim_target_how(place_path("%s", own[i]), 0), -ENOENT, "%s", own[i]);
        cr_assert_eq(shim_target_how(place_path("%s", own[i]), TARGET_MAKES), -EPERM, "%s", own[i]);
    }
    cr_assert_eq(shim_target_how(place_path("r/out/.shunt"), 0), TARGET_MANAGED, "in the root alone");
    cr_assert_eq(shim_target_how(place_path("r/.shunt-di"), 0), TARGET_MANAGED);
}

Test(target, a_directory_made_natively)
{
    place_directory("r/out/new/deep");
    place_file("r/out/new/deep/f", "");
    struct target t = hot(place_path("r/out/new/deep/f"), 0);
    cr_assert(t.found.dir_known && t.found.known, "it was loaded on the way");
    cr_assert(t.found.entry.ino == ino_at(place_path("r/out/new/deep/f")) && t.found.entry.branch == 0);
    target_done(&t);
}

/* Symbolic links. */

Test(target, a_link_at_the_end)
{
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    cr_assert_eq(symlink("out/f", place_path("r/link")), 0);
    cr_assert_eq(symlink(place_path("r/link"), place_path("r/in/chain")), 0);
    cr_assert_eq(symlink("none", place_path("r/in/dangling")), 0);
    struct target t = hot(place_path("r/in/chain"), TARGET_FOLLOW);
    cr_assert(dirid_equal(t.dir, id_at(place_path("r/out"))) && t.found.known && t.found.entry.ino == ino);
    target_done(&t);
    t = hot(place_path("r/in/chain"), 0);
    cr_assert(dirid_equal(t.dir, id_at(place_path("r/in"))));
    cr_assert(t.found.known && t.found.entry.type == DT_LNK);
    target_done(&t);
    t = hot(place_path("r/in/chain/"), 0);
    cr_assert(t.found.entry.ino == ino && t.slash, "a slash leads through it");
    target_done(&t);
    t = hot(place_path("r/in/chain/"), TARGET_MAKES);
    cr_assert_eq(t.found.entry.type, DT_LNK, "but not where the name itself is meant");
    target_done(&t);
    t = hot(place_path("r/in/dangling"), TARGET_FOLLOW);
    cr_assert(!t.found.known && t.length == 4 && memcmp(t.name, "none", 4) == 0, "where it would be");
    target_done(&t);
}

Test(target, links_that_lead_in_circles_or_out)
{
    cr_assert_eq(symlink("loop", place_path("r/loop")), 0);
    cr_assert_eq(symlink("pong", place_path("r/ping")), 0);
    cr_assert_eq(symlink("ping", place_path("r/pong")), 0);
    cr_assert_eq(symlink("../beside/f", place_path("r/exit")), 0);
    cr_assert_eq(shim_target_how(place_path("r/loop"), TARGET_FOLLOW), -ELOOP);
    cr_assert_eq(shim_target_how(place_path("r/ping"), TARGET_FOLLOW), -ELOOP);
    cr_assert_eq(shim_target_how(place_path("r/loop"), 0), TARGET_MANAGED);
    cr_assert_eq(shim_target_how(place_path("r/exit"), TARGET_FOLLOW), TARGET_FOREIGN);
    char from[16], to[16];
    for (int i = 0; i < 42; i++) {
        snprintf(from, sizeof from, "%d", i);
        snprintf(to, sizeof to, "%d", i + 1);
        cr_assert_eq(symlink(to, place_path("r/in/%s", from)), 0);
    }
    struct target t = hot(place_path("r/in/2"), TARGET_FOLLOW);
    cr_assert(t.length == 2 && memcmp(t.name, "42", 2) == 0, "40 links are followed");
    target_done(&t);
    cr_assert_eq(shim_target_how(place_path("r/in/1"), TARGET_FOLLOW), -ELOOP, "41 are not");
}

Test(target, aliases_from_outside)
{
    born(place_path("r/out/f"), "", 0644);
    cr_assert_eq(symlink("../r/out", place_path("beside/alias")), 0);
    cr_assert_eq(symlink("../r/out/f", place_path("beside/file")), 0);
    cr_assert_eq(shim_target_how(place_path("beside/alias/f"), 0), TARGET_FOREIGN, "its text is foreign");
    cr_assert_eq(shim_target_how(place_path("beside/alias/f"), TARGET_MAKES), TARGET_MANAGED);
    cr_assert_eq(shim_target_how(place_path("beside/alias/f"), TARGET_ALIAS), TARGET_MANAGED);
    struct target t = hot(place_path("beside/file"), TARGET_FOLLOW | TARGET_ALIAS);
    cr_assert(t.found.known && t.found.entry.branch != 0);
    target_done(&t);
    cr_assert_eq(shim_target_how(place_path("beside/file"), TARGET_ALIAS), TARGET_FOREIGN, "the link itself is not ours");
}

Test(target, a_root_that_was_given_through_a_link)
{
    cr_assert_eq(symlink("../r", place_path("beside/given")), 0);
    const char *path = place_path("beside/given/out/f");
    cr_assert_eq(shim_target_how(path, 0), TARGET_FOREIGN);
    shimmed_enter(place_path("beside/given"));
    assert_means(&(struct spelling){AT_FDCWD, path, "r/out", "f", strlen(path) - 1, false});
    cr_assert_eq(shim_target_how(place_path("beside/given"), 0), TARGET_ROOT);
}

/* Old kernels say nothing of mounts, nor does qemu-user: then that a path leads beside the root is not certain. */
static bool are_mounts_told(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &stat) == 0 && mount_of(&stat) != 0;
}

/* Which the second path of a call shares with the first. */
Test(target, a_parent_by_the_same_words)
{
    static const struct {
        const char *first, *second;
        int how;
        bool is_same;
    } pairs[] = {
        {"r/out/f", "r/out/g", TARGET_MANAGED, true},     {"r/out/f", "r/in/g", TARGET_MANAGED, false},
        {"r/out/f", "r/out//g", TARGET_MANAGED, false},   {"r/out/f", "beside/g", TARGET_FOREIGN, false},
        {"beside/f", "beside/g", TARGET_FOREIGN, false},  {"beside/f", "r/out/g", TARGET_MANAGED, false},
        {"beside/f", "beside/..", TARGET_FOREIGN, false}, {"f", "r", TARGET_ROOT, false},
        {"r/out/none/f", "r/out/none/g", -ENOENT, false}, {"beside/none/f", "beside/none/g", TARGET_FOREIGN, false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct target one = {0}, two;
        const char *first = place_path("%s", pairs[i].first), *second = place_path("%s", pairs[i].second);
        int how_first = target_find(&one, AT_FDCWD, first, TARGET_MAKES);
        one.dir.ino ^= 1ull << 40; /* so that it shows whence the second has its */
        int found = target_find_second(&two, &(struct target_pair){0}, &one, AT_FDCWD, second, TARGET_MAKES);
        cr_assert_eq(found, pairs[i].how, "%s, %s: %d", first, second, found);
        if (found == TARGET_MANAGED) {
            cr_assert_eq(dirid_equal(one.dir, two.dir), pairs[i].is_same, "%s, %s", first, second);
            target_done(&two);
        }
        struct target_pair pair;
        const bool are_foreign = target_are_foreign(&pair, AT_FDCWD, first, TARGET_MAKES, AT_FDCWD, second);
        target_give_seen(pair.seen);
        if (how_first != TARGET_FOREIGN || pairs[i].how != TARGET_FOREIGN)
            cr_assert_not(are_foreign, "%s, %s", first, second);
        else /* that a path ends in dots says nothing for certain */
            cr_assert_eq(are_foreign, are_mounts_told() && strstr(second, "..") == NULL, "%s, %s", first, second);
        if (how_first == TARGET_MANAGED)
            target_done(&one);
    }
}

static int how_alias(const char *path)
{
    struct target t;
    int found = target_find_alias(&t, AT_FDCWD, path, 0);
    if (found == TARGET_MANAGED)
        target_done(&t);
    return found;
}

/* Natively: by another program. */
Test(target, an_alias_that_another_program_makes_is_seen_at_once)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", place_path("beside/alias/f"));
    cr_assert_eq(how_alias(path), TARGET_FOREIGN);
    cr_assert_eq(how_alias(path), TARGET_FOREIGN);
    cr_assert_eq(symlink("../r/out", place_path("beside/alias")), 0);
    cr_assert_eq(how_alias(path), TARGET_MANAGED);
    cr_assert_eq(unlink(place_path("beside/alias")), 0);
    cr_assert_eq(how_alias(path), TARGET_FOREIGN);
}

/* What is none may lead to a root or not. */
Test(target, dead_ends)
{
    static const struct {
        const char *path;
        unsigned want;
        bool is_one;
    } looks[] = {
        {"beside/none", TARGET_FOLLOW, true},
        {"beside/none/f", TARGET_FOLLOW, true},
        {"beside//none//./f", TARGET_FOLLOW, false},
        {"none/none/none/f", 0, true},
        {"beside/to_file", TARGET_FOLLOW, false},
        {"beside/to_file", 0, true},
        {"beside/to_out/f", 0, false},
        {"beside/to_out/none/f", 0, false},
        {"beside/to_none/f", 0, false},
        {"beside/../r/out/f", 0, false},
        {"r/out/f", 0, false},
        {"r/none/f", 0, false},
        {"beside/none/", 0, false},
        {"beside/..", 0, false},
        {"beside/by_link/none", 0, true},
        {"beside/plain/f", TARGET_FOLLOW, true},
    };
    const bool is_told = are_mounts_told();
    place_file("beside/plain", "");
    cr_assert_eq(symlink("../r/out/f", place_path("beside/to_file")), 0);
    cr_assert_eq(symlink("../r/out", place_path("beside/to_out")), 0);
    cr_assert_eq(symlink("../r/none", place_path("beside/to_none")), 0);
    cr_assert_eq(symlink("../beside", place_path("beside/by_link")), 0);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        const bool is_certain = dead_end(AT_FDCWD, place_path("%s", looks[i].path), looks[i].want);
        cr_assert(is_told ? is_certain == looks[i].is_one : !is_certain || looks[i].is_one, "%s", looks[i].path);
    }
    int beside = place_open("beside"), out = place_open("r/out");
    cr_assert(dead_end(beside, "none", 0) == is_told && !dead_end(out, "none", 0) && !dead_end(beside, "../r/out/none", 0));
    cr_assert(chdir(place_path("beside")) == 0);
    cr_assert(dead_end(AT_FDCWD, "none", 0) == is_told && !dead_end(AT_FDCWD, "to_out/none", 0));
    cr_assert(chdir(place_path("r/out")) == 0 && !dead_end(AT_FDCWD, "none", 0));
    cr_assert_eq(dead_end(AT_FDCWD, "../../beside/none", 0), is_told);
}

Test(target, a_directory_that_another_program_moves_under_the_root_is_seen_at_once)
{
    int fd = place_open("beside");
    struct target t;
    cr_assert_eq(shim_target_how(place_path("beside/f"), TARGET_MAKES), TARGET_FOREIGN);
    cr_assert_eq(target_find(&t, fd, "f", 0), TARGET_FOREIGN);
    cr_assert_eq(rename(place_path("beside"), place_path("r/beside")), 0);
    cr_assert_eq(target_find(&t, fd, "f", 0), TARGET_MANAGED);
    target_done(&t);
    cr_assert_eq(shim_target_how(place_path("r/beside/f"), TARGET_MAKES), TARGET_MANAGED);
    close(fd);
}

/* What is guessed, and given back. */

static bool is_guessed(const char *path, const char *directory)
{
    struct parent parent;
    struct path_parts parts;
    path_split(&parts, path);
    if (!parent_guess(parent_guess_word(AT_FDCWD, path, parts.parent_length), &parent))
        return false;
    cr_assert(dirid_equal(parent.dir, id_at(directory)));
    cr_assert(parent.root == &shim_state.roots[0] && (parent.mount != 0) == are_mounts_told());
    return true;
}

static void use_often(const char *path, unsigned want)
{
    struct target t;
    for (int i = 0; i < 10; i++)
        if (target_find(&t, AT_FDCWD, path, want) == TARGET_MANAGED)
            target_done(&t);
}

#define MAKES_LATER (TARGET_MAKES | TARGET_ASKS | TARGET_LATER)

Test(target, where_words_lead_is_guessed_for_files_that_are_to_be_made)
{
    char path[PATH_MAX], out[PATH_MAX];
    struct target t;
    snprintf(path, sizeof path, "%s", place_path("r/out/f"));
    snprintf(out, sizeof out, "%s", place_path("r/out"));
    use_often(path, 0);
    use_often(path, TARGET_MAKES);
    cr_assert_not(is_guessed(path, out));
    use_often(path, MAKES_LATER);
    cr_assert(is_guessed(path, out));
    cr_assert_eq(target_find(&t, AT_FDCWD, path, MAKES_LATER), TARGET_MANAGED);
    cr_assert(t.unseen);
    target_done(&t);
    cr_assert_eq(target_find(&t, AT_FDCWD, path, TARGET_MAKES), TARGET_MANAGED);
    cr_assert_not(t.unseen, "nothing else goes by that");
    target_done(&t);
    cr_assert_eq(target_find(&t, AT_FDCWD, place_path("r/out/.shunt-dir"), MAKES_LATER), -EPERM, "the kernel was asked");
}

Test(target, a_guess_that_was_wrong_is_dropped)
{
    struct message reserve = {.type = MESSAGE_CREATE, .create.entry = {.type = DT_REG, .state = RECORD_PENDING}};
    struct target t;
    cr_assert_eq(chdir(place_path("r/out")), 0);
    use_often("f", MAKES_LATER);
    cr_assert(is_guessed("f", "."));
    cr_assert_eq(mkdir(place_path("r/other"), 0700), 0);
    cr_assert_eq(chdir(place_path("r/other")), 0);
    cr_assert_eq(target_find(&t, AT_FDCWD, "f", MAKES_LATER), TARGET_MANAGED);
    cr_assert(t.unseen);
    cr_assert_eq(target_hold(&t, &reserve), TARGET_ASTRAY);
    target_done(&t);
    cr_assert_not(is_guessed("f", "."));
}

Test(target, no_room_is_kept)
{
    struct scratch *first = scratch_take();
    scratch_give(first);
    cr_assert_eq(symlink("loop", place_path("r/loop")), 0);
    shim_target_how(place_path("r/out/f"), 0);
    shim_target_how(place_path("r/none/f"), TARGET_MAKES);
    shim_target_how(place_path("beside/f"), TARGET_MAKES | TARGET_ALIAS);
    shim_target_how(place_path("r"), 0);
    shim_target_how(place_path("r/.shunt"), 0);
    shim_target_how(place_path("r/loop"), TARGET_FOLLOW);
    shim_target_how("relative", 0);
    cr_assert_eq(scratch_take(), first);
}

Test(target, without_its_daemon_a_root_fails_closed)
{
    cr_assert_eq(shim_target_how(place_path("r/out/f"), 0), TARGET_MANAGED);
    served_stop(SIGKILL);
    cr_assert_eq(shim_target_how(place_path("r/out/f"), 0), -EIO);
    cr_assert_eq(shim_target_how(place_path("r/out/f"), TARGET_MAKES), -EIO);
    cr_assert_eq(shim_target_how(place_path("beside/f"), TARGET_MAKES), TARGET_FOREIGN, "what is not under it is served");
    cr_assert_eq(shim_target_how("/etc/passwd", TARGET_ALIAS), TARGET_FOREIGN);
}

/* Where a name is. */

static void assert_place(struct target *t, int at, const char *path)
{
    cr_assert_eq(target_place(t), 0);
    cr_assert_eq(t->real_at, at);
    cr_assert_eq(strcmp(t->real_path, path), 0, "%s is not %s", t->real_path, path);
}

Test(target, places)
{
    char expected[PATH_MAX];
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    int out = place_open("r/out");
    struct target t;
    place_file("r/in/plain", "");
    cr_assert_eq(target_find(&t, out, "none", 0), TARGET_MANAGED);
    assert_place(&t, out, "none");
    target_done(&t);
    cr_assert_eq(target_find(&t, out, "../in//plain", 0), TARGET_MANAGED);
    assert_place(&t, out, "../in//plain");
    target_done(&t);
    cr_assert_eq(target_find(&t, out, "f", 0), TARGET_MANAGED);
    cr_assert(target_is_away(&t));
    snprintf(expected, sizeof expected, "%s/.shunt/b/n1.1/%s/0/f", place_path("r"), t.found.dir.mirror);
    assert_place(&t, AT_FDCWD, expected);
    cr_assert_eq(ino_at(t.real_path), ino);
    t.slash = true;
    strcat(expected, "/");
    assert_place(&t, AT_FDCWD, expected);
    target_done(&t);
}

Test(target, places_as_the_daemon_says_them)
{
    int out = place_open("r/out");
    char place_text[RECORD_NAME_MAX + 1];
    struct target t;
    cr_assert_eq(target_find(&t, out, "./f", 0), TARGET_MANAGED);
    cr_assert_eq(target_place_at(&t, "n2.7/out-5f3a9c01d2e4/12xx", 24), 0);
    cr_assert_eq(t.real_at, AT_FDCWD);
    cr_assert_str_eq(t.real_path, place_path("r/.shunt/b/n2.7/out-5f3a9c01d2e4/12/f"));
    cr_assert_eq(target_place_at(&t, NULL, 0), 0);
    cr_assert_eq(t.real_at, out);
    cr_assert_str_eq(t.real_path, "./f");
    memset(place_text, 'p', sizeof place_text);
    static char path[PATH_MAX - 199] = "/";
    const char *kept = shim_state.roots[0].path;
    memset(path + 1, 'r', PATH_MAX - 201);
    shim_state.roots[0].path = path;
    cr_assert_eq(target_place_at(&t, place_text, 200), -ENAMETOOLONG);
    shim_state.roots[0].path = kept;
    target_done(&t);
}

/* Calls whose answer must hold. */

static long shim_target_look(struct target *t)
{
    struct statx stat;
    return TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &stat));
}

static const char *real_place(const char *path)
{
    static char real[PATH_MAX];
    struct target t = hot(path, 0);
    cr_assert_eq(target_place(&t), 0);
    strcpy(real, t.real_path);
    target_done(&t);
    return real;
}

Test(target, a_file_found_in_the_trunk_is_adopted)
{
    cr_assert_eq(shim_target_how(place_path("r/out/f"), 0), TARGET_MANAGED);
    place_file("r/out/f", "");
    struct target t = hot(place_path("r/out/f"), 0);
    cr_assert_not(t.found.known);
    cr_assert_eq(shim_target_look(&t), 0);
    cr_assert_eq(target_look(&t), 0);
    cr_assert(t.found.known && t.found.entry.ino == ino_at(place_path("r/out/f")));
    cr_assert(t.found.entry.type == DT_REG && t.found.entry.branch == 0);
    target_done(&t);
    t = hot(place_path("r/out/none"), 0);
    cr_assert_eq(shim_target_look(&t), -ENOENT);
    cr_assert(target_look(&t) == 0 && !t.found.known);
    target_done(&t);
}

Test(target, a_file_that_vanished_is_forgotten)
{
    born(place_path("r/out/f"), "", 0644);
    cr_assert_eq(unlink(real_place(place_path("r/out/f"))), 0);
    struct target t = hot(place_path("r/out/f"), 0);
    cr_assert(t.found.known);
    cr_assert_eq(shim_target_look(&t), -ENOENT);
    cr_assert(target_look(&t) == 0 && !t.found.known);
    target_done(&t);
}

Test(target, a_file_that_is_remote_by_now_is_found_there)
{
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    struct target before = hot(place_path("r/out/f"), 0), t = hot(place_path("r/out/f"), 0);
    cr_assert_eq(operate_promote(&t), 0);
    struct statx stat;
    cr_assert(before.found.entry.branch != 0, "that was before");
    long code = TARGET_CALL(&before, sys_statx(before.real_at, before.real_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &stat));
    cr_assert_eq(code, 0);
    cr_assert(stat.stx_ino == ino && before.found.entry.branch == 0);
    target_done(&before);
}

/* The file is there: it is something else that the call misses, and it ends. */
Test(target, a_call_that_misses_something_else_ends)
{
    born(place_path("r/out/f"), "", 0644);
    struct target t = hot(place_path("r/out/f"), 0);
    int calls = 0;
    cr_assert_eq(TARGET_CALL(&t, (calls++, -ENOENT)), -ENOENT);
    cr_assert(calls > 1 && calls < 100, "%d", calls);
    cr_assert(target_look(&t) == 0 && t.found.known);
    target_done(&t);
}

/* Creates. */

static int state_of(const char *path)
{
    struct target t = hot(path, 0);
    int state = t.found.known ? t.found.entry.state : 0;
    target_done(&t);
    return state;
}

static struct statx stat_at(int at, const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(at, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, &stat), 0);
    return stat;
}

Test(held, a_create_is_confirmed)
{
    struct target t = hot(place_path("r/out/f"), TARGET_MAKES);
    cr_assert_eq(create_reserve(&t, DT_REG, 0), 0);
    cr_assert_eq(state_of(place_path("r/out/f")), RECORD_PENDING);
    cr_assert(t.real_at == AT_FDCWD && strstr(t.real_path, "/.shunt/b/n1.1/out-") != NULL);
    close(open(t.real_path, O_CREAT | O_WRONLY | O_EXCL, 0600));
    struct statx stat = stat_at(AT_FDCWD, t.real_path);
    create_commit(&t, &stat);
    cr_assert_eq(target_settled(&t), 0, "nothing is known yet: nobody to wait for");
    cr_assert_eq(create_reserve(&t, DT_REG, 0), TARGET_RETRY);
    cr_assert(t.found.known && t.found.entry.ino == stat.stx_ino && t.found.entry.state == RECORD_LIVE);
    target_done(&t);
}

/* As the daemon of a root on a file system in user space has it. */
static void set_far(void)
{
    const uint16_t far = 1;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/channel", shim_state.roots[0].run_dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert_eq(pwrite(fd, &far, sizeof far, offsetof(struct channel, far)), sizeof far);
    close(fd);
}

enum way { BY_PATH, FROM_BRANCHES, FROM_LEAF };

static int kept_leaf(const struct target *t)
{
    return shim_state.fdcache.roots[0].leaves[t->leaf].kept.fd;
}

/* How a file was reached that was looked at, and the descriptor that was used, or that the call's own one was opened from. */
static enum way way_to(const char *path, int *at)
{
    struct target t = hot(path, TARGET_LOOKS);
    struct statx stat;
    int code;
    enum way way;
    cr_assert_eq(target_place(&t), 0);
    target_come_to_leaf(&t);
    do {
        *at = t.by_leaf ? kept_leaf(&t) : t.real_at;
        way = t.real_path[0] == '/' ? BY_PATH : strchr(t.real_path, '/') != NULL ? FROM_BRANCHES : FROM_LEAF;
        cr_assert((way == FROM_LEAF) == t.by_leaf && (way == BY_PATH) == (*at == AT_FDCWD));
        cr_assert(!t.by_leaf || (t.real_at == t.leaf_pin && t.leaf_pin < FDCACHE_LOWEST));
        code = sys_statx(t.real_at, t.real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    } while (target_looks_again(&t, code));
    cr_assert(code == 0 && S_ISREG(stat.stx_mode));
    cr_assert_eq(target_place(&t), 0);
    target_come_near(&t);
    cr_assert(t.real_at == AT_FDCWD || strchr(t.real_path, '/') != NULL, "what changes it goes by its branch's name");
    int fd = operate_open(&t, O_RDONLY, 0);
    cr_assert_geq(fd, 0);
    close(fd);
    return way;
}

static void make_file(const char *path, char content)
{
    struct target t = hot(path, TARGET_MAKES);
    int fd = operate_open(&t, O_CREAT | O_WRONLY, 0600);
    cr_assert(fd >= 0 && write(fd, &content, 1) == 1);
    close(fd);
}

static void assert_kept(int fd)
{
    cr_assert(fd >= FDCACHE_LOWEST && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

Test(held, a_file_in_a_branch_is_looked_at_from_its_leaf_where_paths_are_far)
{
    char path[PATH_MAX];
    int at;
    snprintf(path, sizeof path, "%s", place_path("r/out/f"));
    make_file(path, 'f');
    for (int i = 0; i < 100; i++)
        cr_assert_eq(way_to(path, &at), BY_PATH);
    set_far();
    cr_assert_eq(way_to(path, &at), FROM_LEAF);
    assert_kept(at);
    int leaf = at;
    cr_assert(way_to(path, &at) == FROM_LEAF && at == leaf);
    dup2(place_open("r/out"), leaf);
    cr_assert_eq(way_to(path, &at), FROM_BRANCHES, "the program has another file there");
    assert_kept(at);
    int branches = at;
    cr_assert(way_to(path, &at) == FROM_LEAF && at != leaf, "opened again, the program's is left alone");
    dup2(place_open("r/.shunt/b"), branches);
    dup2(place_open("r/out"), at);
    cr_assert(way_to(path, &at) == FROM_BRANCHES && at == branches, "it is the same directory");
    cr_assert_eq(way_to(path, &at), FROM_LEAF);
    close(at);
    dup2(place_open("r/out"), branches);
    cr_assert_eq(way_to(path, &at), BY_PATH);
    cr_assert(way_to(path, &at) == FROM_LEAF && at != branches);
    cr_assert(fcntl(leaf, F_GETFD) == 0 && fcntl(branches, F_GETFD) == 0);
}

static unsigned count_kept(void)
{
    unsigned count = 0;
    for (int fd = FDCACHE_LOWEST; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* As by threads that have tables of their own, in which each finds the other's descriptors closed. */
Test(held, so_many_are_opened_and_no_more)
{
    char path[PATH_MAX];
    int at, null = open("/dev/null", O_RDONLY);
    snprintf(path, sizeof path, "%s", place_path("r/out/f"));
    make_file(path, 'f');
    set_far();
    for (int i = 0; i < 200; i++) {
        way_to(path, &at);
        if (at >= FDCACHE_LOWEST)
            dup2(null, at);
    }
    cr_assert_eq(way_to(path, &at), BY_PATH);
    cr_assert_leq(count_kept(), FDCACHE_TRIES + FDCACHE_LEAVES);
}

/* Put there between the question and the look, with a file of that name: in the place of the call's own descriptor; in that of
 * the kept one, for as long as the look takes. */
Test(held, what_was_looked_at_in_another_directory_is_looked_at_again)
{
    char path[PATH_MAX];
    int at;
    struct statx stat;
    snprintf(path, sizeof path, "%s", place_path("r/out/f"));
    make_file(path, 'f');
    cr_assert_eq(mkdir(place_path("r/d"), 0700), 0);
    place_file("r/d/f", "another one");
    int other = place_open("r/d");
    set_far();
    for (int kept = 0; kept < 2; kept++) {
        cr_assert_eq(way_to(path, &at), FROM_LEAF);
        struct target t = hot(path, TARGET_LOOKS);
        cr_assert_eq(target_place(&t), 0);
        target_come_to_leaf(&t);
        cr_assert_eq(kept_leaf(&t), at);
        int saved = dup(at);
        dup2(other, kept ? at : t.real_at);
        cr_assert_eq(sys_statx(t.real_at, t.real_path, 0, STATX_SIZE, &stat), 0);
        cr_assert_eq(stat.stx_size, kept ? 1 : 11);
        dup2(saved, at);
        close(saved);
        if (!kept) {
            int taken = t.real_at;
            cr_assert(target_looks_again(&t, 0) && fcntl(taken, F_GETFD) == 0, "the number is the program's");
            close(taken);
            cr_assert_eq(sys_statx(t.real_at, t.real_path, 0, STATX_SIZE, &stat), 0);
            cr_assert_eq(stat.stx_size, 1);
        }
        cr_assert_not(target_looks_again(&t, 0));
        target_done(&t);
    }
}

static void place_of(const char *path, char to[PATH_MAX])
{
    struct target t = hot(path, 0);
    cr_assert_eq(target_place(&t), 0);
    snprintf(to, PATH_MAX, "%s", t.real_path);
    target_done(&t);
}

/* The leaf of a file that this process has just reached from there, and which is replaced by an empty one. */
static void replace_leaf(const char *path)
{
    char file[PATH_MAX], leaf[PATH_MAX];
    int at;
    set_far();
    cr_assert_eq(way_to(path, &at), FROM_LEAF);
    place_of(path, file);
    snprintf(leaf, sizeof leaf, "%.*s", (int)(strrchr(file, '/') - file), file);
    cr_assert(unlink(file) == 0 && rmdir(leaf) == 0 && mkdir(leaf, 0755) == 0);
}

Test(held, a_leaf_that_was_removed_is_looked_for_again)
{
    char path[PATH_MAX], file[PATH_MAX];
    int at;
    snprintf(path, sizeof path, "%s", place_path("r/out/g"));
    make_file(path, 'g');
    place_of(path, file);
    cr_assert_eq(unlink(file), 0);
    make_file(place_path("r/out/f"), 'f');
    replace_leaf(place_path("r/out/f"));
    close(open(file, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600));
    struct target t = hot(path, 0);
    cr_assert_eq(target_place(&t), 0);
    target_come_to_leaf(&t);
    cr_assert(t.by_leaf && openat(t.real_at, t.real_path, O_RDONLY | O_CLOEXEC) == -1 && errno == ENOENT);
    cr_assert(target_looks_again(&t, -ENOENT) && faccessat(t.real_at, t.real_path, F_OK, 0) == 0);
    cr_assert(!target_looks_again(&t, 0));
    target_done(&t);
    cr_assert_eq(way_to(path, &at), FROM_LEAF);
}

Test(held, a_file_is_made_where_its_path_leads_if_its_leaf_was_removed)
{
    char path[PATH_MAX], file[PATH_MAX];
    make_file(place_path("r/out/f"), 'f');
    replace_leaf(place_path("r/out/f"));
    snprintf(path, sizeof path, "%s", place_path("r/out/g"));
    make_file(path, 'g');
    place_of(path, file);
    cr_assert_eq(faccessat(AT_FDCWD, file, F_OK, 0), 0);
}

#define DIRECTORIES 40 /* more than a process keeps leaves of */

static void path_in(int which, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/r/out%d/f", place, which);
}

/* The file of each directory says which one that is. */
static void make_directories(void)
{
    for (int i = 0; i < DIRECTORIES; i++) {
        char path[PATH_MAX];
        cr_assert_eq(mkdir(place_path("r/out%d", i), 0700), 0);
        path_in(i, path);
        make_file(path, (char)('0' + i));
    }
}

Test(held, a_process_keeps_some_leaves_and_no_more)
{
    char path[PATH_MAX];
    int at, highest = 0;
    make_directories();
    set_far();
    for (int i = 0; i < 2 * DIRECTORIES; i++) {
        path_in(i % DIRECTORIES, path);
        cr_assert_eq(way_to(path, &at), i % DIRECTORIES < FDCACHE_LEAVES ? FROM_LEAF : FROM_BRANCHES);
        highest = at > highest ? at : highest;
    }
    cr_assert_eq(highest, FDCACHE_LOWEST + FDCACHE_LEAVES, "and the branches");
}

static void *read_all(void *from)
{
    for (int i = 0; i < 3000; i++) {
        const int which = (i + (int)(intptr_t)from) % DIRECTORIES;
        char path[PATH_MAX], said = 0;
        path_in(which, path);
        struct target t = hot(path, 0);
        int fd = operate_open(&t, O_RDONLY, 0);
        cr_assert(fd >= 0 && read(fd, &said, 1) == 1 && said == '0' + which, "%s is that of %c", path, said);
        close(fd);
    }
    return NULL;
}

Test(held, threads_find_each_file_in_its_own_leaf)
{
    pthread_t threads[4];
    make_directories();
    set_far();
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_all, (void *)(intptr_t)(3 * i)), 0);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

Test(held, what_is_in_the_trunk_is_named_by_the_caller)
{
    const char *path = place_path("r/out/sub");
    set_far();
    cr_assert_eq(mkdir(path, 0700), 0);
    struct target t = hot(path, 0);
    cr_assert_eq(target_place(&t), 0);
    target_come_near(&t);
    cr_assert(t.real_at == t.at && t.real_path == t.path);
    target_done(&t);
}

Test(held, a_create_is_withdrawn)
{
    struct target t = hot(place_path("r/out/f"), TARGET_MAKES);
    cr_assert_eq(create_reserve(&t, DT_REG, MESSAGE_TRUNK), 0);
    cr_assert(t.pin >= 0 && t.real_at == t.pin && strcmp(t.real_path, "f") == 0, "to be made in the trunk, from its directory");
    target_withdraw(&t);
    cr_assert_eq(create_reserve(&t, DT_REG, 0), 0, "the name is free again");
    target_withdraw(&t);
    target_done(&t);
}

Test(held, a_directory_born_needs_no_loading)
{
    struct view_found found;
    struct target t = hot(place_path("r/out/sub"), TARGET_MAKES);
    cr_assert_eq(create_reserve(&t, DT_DIR, 0), 0);
    cr_assert_eq(mkdirat(t.real_at, t.real_path, 0755), 0);
    struct statx stat = stat_at(t.real_at, t.real_path);
    create_commit(&t, &stat);
    cr_assert_eq(create_reserve(&t, DT_DIR, 0), TARGET_RETRY);
    target_done(&t);
    cr_assert_eq(names_find(&shim_state.roots[0], dirid_of(&stat), "", 0, &found), 0);
    cr_assert(found.dir_known && (found.dir.flags & RECORD_LOADED));
}

static uint64_t shim_target_blocked(void)
{
    struct request_answer answer;
    char text[4096];
    cr_assert_eq(names_ask(&shim_state.roots[0], &(struct message){.type = MESSAGE_STATUS}, &answer), 0);
    snprintf(text, sizeof text, "%.*s", answer.message.text_answer.text.length, answer.message.text_answer.text.text);
    return strtoull(strstr(text, "\nblocked ") + 9, NULL, 10);
}

static void *shim_target_settle(void *target)
{
    return (void *)(intptr_t)target_settled(target);
}

Test(held, who_meets_a_create_can_wait_for_it)
{
    pthread_t thread;
    void *code;
    struct target t = hot(place_path("r/out/f"), TARGET_MAKES);
    cr_assert_eq(create_reserve(&t, DT_REG, 0), 0);
    struct target other = hot(place_path("r/out/f"), 0);
    cr_assert_eq(other.found.entry.state, RECORD_PENDING);
    uint64_t before = shim_target_blocked();
    cr_assert_eq(pthread_create(&thread, NULL, shim_target_settle, &other), 0);
    while (shim_target_blocked() == before)
        usleep(1000);
    close(open(t.real_path, O_CREAT | O_WRONLY | O_EXCL, 0600));
    struct statx stat = stat_at(AT_FDCWD, t.real_path);
    create_commit(&t, &stat);
    shim_target_blocked(); /* the daemon is woken */
    cr_assert_eq(pthread_join(thread, &code), 0);
    cr_assert_null(code);
    cr_assert(other.found.known && other.found.entry.state == RECORD_LIVE);
    cr_assert_eq(other.found.entry.ino, stat.stx_ino);
    target_done(&t);
    target_done(&other);
}

/* Holding. */

Test(held, a_name)
{
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    struct target t = hot(place_path("r/out/f"), TARGET_MAKES);
    cr_assert_eq(claim_name(&t, MESSAGE_UNLINK), 0);
    cr_assert_eq(ino_at(t.real_path), ino, "and where it is");
    cr_assert_eq(state_of(place_path("r/out/f")), RECORD_DYING);
    target_withdraw(&t);
    cr_assert_eq(target_look(&t), 0);
    cr_assert_eq(target_settled(&t), 0);
    cr_assert_eq(t.found.entry.state, RECORD_LIVE);
    target_done(&t);
    t = hot(place_path("r/out/none"), TARGET_MAKES);
    cr_assert_eq(claim_name(&t, MESSAGE_UNLINK), MESSAGE_ABSENT);
    cr_assert_eq(claim_name(&t, MESSAGE_PROMOTE), MESSAGE_ABSENT);
    target_done(&t);
}

Test(held, a_directory)
{
    born(place_path("r/out/f"), "", 0644);
    place_directory("r/in/native");
    struct target t = hot(place_path("r/out"), TARGET_MAKES);
    struct statx stat = stat_at(AT_FDCWD, t.path);
    cr_assert_eq(target_place_at(&t, NULL, 0), 0);
    cr_assert_eq(claim_directory(&t, &stat), MESSAGE_NOT_EMPTY, "of files in a branch");
    struct target f = hot(place_path("r/out/f"), TARGET_MAKES);
    cr_assert_eq(operate_unlink(&f), 0);
    cr_assert(place_has("r/out/.shunt-dir"));
    cr_assert_eq(claim_directory(&t, &stat), 0);
    cr_assert_eq(place_count("r/out"), 0, "bare");
    target_withdraw(&t);
    target_done(&t);
    t = hot(place_path("r/in/native"), TARGET_MAKES);
    stat = stat_at(AT_FDCWD, t.path);
    cr_assert_eq(target_place_at(&t, NULL, 0), 0);
    cr_assert_eq(claim_directory(&t, &stat), 0, "it was loaded for that");
    target_withdraw(&t);
    cr_assert_eq(sys_renameat2(AT_FDCWD, place_path("r/in/native"), AT_FDCWD, place_path("r/in/moved"), 0), 0);
    place_directory("r/in/native");
    cr_assert_eq(claim_directory(&t, &stat), -ESTALE, "another one is there");
    cr_assert_eq(claim_name_of_directory(&t, dirid_of(&stat)), -ESTALE);
    stat = stat_at(AT_FDCWD, t.path);
    cr_assert_eq(claim_name_of_directory(&t, dirid_of(&stat)), 0);
    target_withdraw(&t);
    target_done(&t);
}

Test(held, to_the_trunk)
{
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    struct target t = hot(place_path("r/out/f"), 0);
    cr_assert_eq(promote_target(&t), 0);
    cr_assert_eq(ino_at(place_path("r/out/f")), ino);
    target_done(&t);
    heard(place_path("r/out/f"));
    t = hot(place_path("r/out/f"), 0);
    cr_assert(t.found.known && !target_is_away(&t) && t.found.entry.ino == ino);
    cr_assert_eq(promote_target(&t), 0, "there it is");
    target_done(&t);
    t = hot(place_path("r/out/none"), 0);
    cr_assert_eq(promote_target(&t), 0, "nothing to be moved");
    target_done(&t);
}

Test(held, not_to_the_trunk_if_something_is_there)
{
    uint64_t ino = born(place_path("r/out/f"), "", 0644);
    place_file("r/out/f", "native");
    struct target t = hot(place_path("r/out/f"), 0);
    cr_assert_eq(promote_target(&t), -EEXIST);
    cr_assert_eq(target_settled(&t), 0);
    cr_assert(target_is_away(&t) && target_place(&t) == 0 && ino_at(t.real_path) == ino);
    target_done(&t);
}

/* A handler that wants the name that its own thread holds would wait for itself. */
static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled++;
}

static int raise_it(void)
{
    raise(SIGUSR1);
    return handled;
}

Test(held, undisturbed)
{
    sigset_t before, after;
    signal(SIGUSR1, on_signal);
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    cr_assert_eq(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    cr_assert_eq(CLAIM_UNINTERRUPTED(raise_it()), 0, "not while it is held");
    cr_assert_eq(handled, 1, "but then");
    cr_assert_eq(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    cr_assert(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGUSR1), "as it was before");
}

/* Directories, and what is outside. */

Test(target, directories)
{
    struct names_root *root;
    struct view_found found;
    struct dirid id;
    int out = place_open("r/out"), beside = place_open("beside");
    born(place_path("r/out/f"), "", 0644);
    cr_assert_eq(root_of_directory(AT_FDCWD, place_path("r"), 0, &root, &id, &found), 1);
    cr_assert(root == &shim_state.roots[0] && dirid_equal(id, root->id));
    cr_assert_eq(root_of_directory(out, "", AT_EMPTY_PATH, &root, &id, &found), 1);
    cr_assert(dirid_equal(id, id_at(place_path("r/out"))) && (found.dir.flags & RECORD_MARKED));
    cr_assert_eq(symlink("../r/in", place_path("beside/link")), 0);
    cr_assert_eq(root_of_directory(AT_FDCWD, place_path("beside/link"), 0, &root, &id, &found), 1);
    cr_assert(dirid_equal(id, id_at(place_path("r/in"))) && (found.dir.flags & RECORD_LOADED));
    cr_assert_eq(root_of_directory(AT_FDCWD, place_path("beside/link"), AT_SYMLINK_NOFOLLOW, &root, &id, &found), 0);
    cr_assert_eq(root_of_directory(beside, "", AT_EMPTY_PATH, &root, &id, &found), 0);
    cr_assert_eq(root_of_directory(AT_FDCWD, "/proc", 0, &root, &id, &found), 0);
    cr_assert_eq(root_of_directory(AT_FDCWD, place_path("r/none"), 0, &root, &id, &found), 0);
    cr_assert_eq(root_of_directory(AT_FDCWD, place_path("r/.shunt"), 0, &root, &id, &found), 0);
    served_stop(SIGKILL);
    cr_assert_eq(root_of_directory(out, "", AT_EMPTY_PATH, &root, &id, &found), -EIO);
    cr_assert_eq(root_of_directory(beside, "", AT_EMPTY_PATH, &root, &id, &found), 0);
}

Test(target, the_other_side_of_a_rename)
{
    char name[300];
    int beside = place_open("beside");
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    place_file("beside/file", "");
    cr_assert_eq(target_outside(AT_FDCWD, place_path("beside/none")), 0);
    cr_assert_eq(target_outside(beside, "none"), 0);
    cr_assert_eq(target_outside(beside, "none/none"), -ENOENT);
    cr_assert_eq(target_outside(beside, "file/none"), -ENOTDIR);
    cr_assert_eq(target_outside(beside, name), 0, "what the path ends in is not looked at");
    cr_assert_eq(target_outside(beside, ".."), 0);
    cr_assert_eq(target_outside(AT_FDCWD, "/"), 0);
}
