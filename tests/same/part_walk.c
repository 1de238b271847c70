/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* ftw and nftw. What they visit is told sorted; a walk that ends before its time has seen what the order of
 * directories let it see, so then only how it ended is told, and what was seen around its end. */
#include "same.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deeper.h"
#include "fixture.h"
#include "lines.h"

#define MANY 300

typedef int nftw_function(const char *, __nftw_func_t, int, int);
typedef int ftw_function(const char *, __ftw_func_t, int);

/* The spelling by its name: the headers would make one of the two. */
static nftw_function *nftw_named(const char *name)
{
    return (nftw_function *)dlsym(RTLD_DEFAULT, name);
}

static ftw_function *ftw_named(const char *name)
{
    return (ftw_function *)dlsym(RTLD_DEFAULT, name);
}

static struct {
    const char *start;
    int flags;
    const char *at;  /* where to answer something else, NULL: nowhere */
    int answer;      /* and what */
    bool answered;   /* it was */
    unsigned visits; /* of its siblings, later */
} walk;

static const char *const kinds[] = {
    [FTW_F] = "F", [FTW_D] = "D", [FTW_DNR] = "DNR", [FTW_NS] = "NS", [FTW_SL] = "SL", [FTW_DP] = "DP", [FTW_SLN] = "SLN",
};

/* Is the file where the walk says that it is? With FTW_CHDIR that is a matter of the working directory. */
static bool is_reached(const char *path, int base, const struct stat *st)
{
    struct stat seen;
    const char *name = walk.flags & FTW_CHDIR ? path + base : path;
    bool links = (walk.flags & FTW_PHYS) || S_ISLNK(st->st_mode);
    return fstatat(AT_FDCWD, *name ? name : ".", &seen, links ? AT_SYMLINK_NOFOLLOW : 0) == 0 && seen.st_ino == st->st_ino &&
           seen.st_dev == st->st_dev;
}

static void tell_visit(const char *path, const struct stat *st, int kind, const struct FTW *at)
{
    int base = at ? at->base : 0;
    if (kind == FTW_NS) {
        lines_add("%s NS level %d", lines_path(path, walk.start), at ? at->level : -1);
        return;
    }
    lines_add("%s %s level %d name %d %06o %u%s", lines_path(path, walk.start), kinds[kind], at ? at->level : -1,
              (int)strlen(path) - base, st->st_mode, (unsigned)st->st_nlink, is_reached(path, base, st) ? "" : " elsewhere");
}

static int walk_visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    tell_visit(path, st, kind, at);
    return 0;
}

static int visit_of_ftw(const char *path, const struct stat *st, int kind)
{
    tell_visit(path, st, kind, NULL);
    return 0;
}

static ino_t walk_here(void)
{
    struct stat st;
    return stat(".", &st) == 0 ? st.st_ino : 0;
}

static long walk_walked(int result, ino_t before)
{
    int error = errno;
    if (result == 0)
        lines_tell(true);
    lines_forget();
    if (walk_here() != before)
        detail(" and is elsewhere");
    errno = error;
    return result;
}

static long walk_from(const char *name, const char *start, int flags, int descriptors)
{
    ino_t before = walk_here();
    walk.start = start;
    walk.flags = flags;
    return walk_walked(nftw_named(name)(start, walk_visit, descriptors, flags), before);
}

static long by_nftw(const struct place *place, long flags)
{
    return walk_from("nftw", place->path, (int)flags, 20);
}

static long by_nftw64(const struct place *place, long flags)
{
    return walk_from("nftw64", place->path, (int)flags, 3);
}

static long by_nftw_one(const struct place *place, long flags)
{
    return walk_from("nftw", place->path, (int)flags, 1);
}

static long by_ftw(const struct place *place, long is_64)
{
    ino_t before = walk_here();
    walk.start = place->path;
    walk.flags = 0;
    return walk_walked(ftw_named(is_64 ? "ftw64" : "ftw")(place->path, visit_of_ftw, 5), before);
}

static const struct call calls[] = {
    {"nftw(0)", CALL_NO_NULL, by_nftw, 0},
    {"nftw(PHYS)", CALL_NO_NULL, by_nftw, FTW_PHYS},
    {"nftw(PHYS), one descriptor", CALL_NO_NULL, by_nftw_one, FTW_PHYS},
    {"nftw(PHYS | DEPTH)", CALL_NO_NULL, by_nftw, FTW_PHYS | FTW_DEPTH},
    {"nftw64(PHYS | CHDIR)", CALL_NO_NULL, by_nftw64, FTW_PHYS | FTW_CHDIR},
    {"nftw(PHYS | CHDIR | DEPTH)", CALL_NO_NULL, by_nftw, FTW_PHYS | FTW_CHDIR | FTW_DEPTH},
    {"nftw(PHYS | CHDIR), one descriptor", CALL_NO_NULL, by_nftw_one, FTW_PHYS | FTW_CHDIR},
    {"nftw64(PHYS | MOUNT)", CALL_NO_NULL, by_nftw64, FTW_PHYS | FTW_MOUNT},
    {"nftw64(DEPTH)", CALL_NO_NULL, by_nftw64, FTW_DEPTH},
    {"nftw(CHDIR)", CALL_NO_NULL, by_nftw, FTW_CHDIR},
    {"nftw(ACTIONRETVAL | PHYS)", CALL_NO_NULL, by_nftw, FTW_ACTIONRETVAL | FTW_PHYS},
    {"nftw(32)", CALL_NO_NULL, by_nftw, 32},
    {"ftw", CALL_NO_NULL, by_ftw, 0},
    {"ftw64", CALL_NO_NULL, by_ftw, 1},
};

/* A tree without links that lead around for ever: from `t` every way leads to every file once. */
static void make_tree(void)
{
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_directory("bare/t", 0755);
    make_file("bare/t/a", 0644, "a", 1);
    make_file("bare/t/b", 0600, "bb", 2);
    make_directory("bare/t/sub", 0755);
    make_file("bare/t/sub/c", 0644, "", 0);
    make_link("../../t", "bare/t/sub/up");
    make_directory("bare/t/sub/deep", 0755);
    make_file("bare/t/sub/deep/d", 0644, "", 0);
    make_file("bare/t/sub/deep/e", 0644, "", 0);
    make_directory("bare/t/sub/deep/deeper", 0755);
    make_file("bare/t/sub/deep/deeper/f", 0644, "", 0);
    make_directory("bare/t/hollow", 0755);
    make_link("a", "bare/t/link");
    make_link("nowhere", "bare/t/broken");
    make_link("../other", "bare/t/other");
    make_link("secret/x", "bare/t/behind");
    make_directory("bare/t/secret", 0755);
    make_file("bare/t/secret/x", 0644, "", 0);
    make_directory("bare/t/listed", 0755);
    make_file("bare/t/listed/y", 0644, "", 0);
    make_directory("bare/other", 0755);
    make_file("bare/other/g", 0644, "", 0);
    if (chmod("bare/t/secret", 0) < 0 || chmod("bare/t/listed", 0444) < 0)
        give_up("cannot chmod", "bare/t");
}

static void walk_told(const char *call, const char *where, int number, long result, int error)
{
    char label[128];
    snprintf(label, sizeof label, "%s %d", where, number);
    case_told(call, label, result, error, false);
}

/* With FTW_CHDIR and no descriptor to spare, the way back from a directory is `..`, even if the way there was
 * a link: where that leads to depends on the order of the directory. */
static bool is_led_astray(int flags, int descriptors)
{
    return (flags & FTW_CHDIR) && !(flags & FTW_PHYS) && descriptors < 20;
}

static void tree_with_all_flags(void)
{
    static const int limits[] = {-1, 1, 2, 3, 20};
    static const char *const starts[] = {"bare/t", "bare/t///", "bare//t/sub/.."};
    for (int flags = 0; flags < 32; flags++)
        for (size_t i = 0; i < 15; i++) {
            if (is_led_astray(flags, limits[i % 5]) || !case_is_due())
                continue;
            errno = 0;
            long result = walk_from(i % 2 ? "nftw" : "nftw64", starts[i / 5], flags, limits[i % 5]);
            int error = errno;
            detail(" from %s, flags %d", starts[i / 5], flags);
            walk_told("nftw, tree", "descriptors", limits[i % 5], result, error);
        }
}

/* Is one beneath the other, or the same? */
static bool is_related(const char *a, const char *b)
{
    size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return strncmp(a, b, length) == 0 && (a[length] == '\0' || a[length] == '/') && (b[length] == '\0' || b[length] == '/');
}

static bool are_siblings(const char *a, const char *b)
{
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    return end_a && end_b && end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

static int visit_and_answer(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (is_related(path, walk.at))
        tell_visit(path, st, kind, at);
    if (strcmp(path, walk.at) == 0) {
        walk.answered = true;
        errno = EXDEV;
        return walk.answer;
    }
    walk.visits += walk.answered && are_siblings(path, walk.at);
    return 0;
}

static void answer_once(const char *path, int answer, int flags)
{
    ino_t before = walk_here();
    walk.start = "bare/t";
    walk.flags = flags;
    walk.at = path;
    walk.answer = answer;
    walk.answered = false;
    walk.visits = 0;
    errno = 0;
    int result = nftw("bare/t", visit_and_answer, is_led_astray(flags, 2) ? 20 : 2, flags);
    int error = errno;
    lines_tell(true);
    if (answer == FTW_SKIP_SIBLINGS || result != 0)
        detail(" later siblings %u", walk.visits);
    detail(" flags %d%s", flags, walk_here() == before ? "" : " and is elsewhere");
    walk_told("nftw, answer at", path, answer, result, error);
}

/* What cannot be entered would end a walk that is to be ended by its answers. */
static void walk_answers(void)
{
    if (chmod("bare/t/listed", 0755) < 0)
        give_up("cannot chmod", "bare/t/listed");
    static const char *const at[] = {"bare/t",          "bare/t/a",          "bare/t/sub",
                                     "bare/t/sub/deep", "bare/t/sub/deep/d", "bare/t/hollow"};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int answer = -1; answer <= 4; answer++)
            for (int flags = 0; flags < 16; flags++)
                if (case_is_due())
                    answer_once(at[i], answer,
                                (flags & 8 ? FTW_ACTIONRETVAL : 0) | (flags & 4 ? FTW_DEPTH : 0) | (flags & 2 ? FTW_CHDIR : 0) |
                                    (flags & 1 ? FTW_PHYS : 0));
}

/* A directory's entries are visited in readdir's order, whether they are read at once or not. */
static char order[MANY + 64][32];
static size_t visited, out_of_order;

static int visit_in_order(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (at->level == 1)
        out_of_order += strcmp(order[visited++], path + at->base) != 0;
    return 0;
}

static void visits_in_order(void)
{
    char path[64];
    size_t count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        sprintf(path, i % 50 ? "bare/file-%u" : "bare/directory-%u", i);
        if (i % 50)
            make_file(path, 0644, "", 0);
        else
            make_directory(path, 0755);
    }
    DIR *stream = opendir("bare");
    if (!stream)
        give_up("cannot list", "bare");
    for (struct dirent *entry; (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            snprintf(order[count++], sizeof order[0], "%.31s", entry->d_name);
    closedir(stream);
    for (int descriptors = 1; descriptors < 3; descriptors++) {
        visited = out_of_order = 0;
        errno = 0;
        long result = nftw("bare", visit_in_order, descriptors, FTW_PHYS);
        detail(" %zu visited, %zu out of order", visited, out_of_order);
        walk_told("nftw, order", "descriptors", descriptors, result, errno);
    }
}

/* The start `/`: the first visit beneath it ends it. */
static int visit_beneath_slash(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (at->level == 0)
        detail(" \"%s\" %s base %d", path, kinds[kind], at->base);
    return at->level == 0 ? FTW_CONTINUE : FTW_SKIP_SIBLINGS;
}

static void start_at_slash(void)
{
    for (int flags = 0; flags < 16; flags++) {
        errno = 0;
        long result = nftw(flags & 1 ? "/" : "///", visit_beneath_slash, 2, FTW_ACTIONRETVAL | FTW_PHYS | (flags & 14));
        walk_told("nftw", "/", flags, result, errno);
    }
}

static int count_visits(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    visited++;
    return 0;
}

/* Names that lie deeper than a path can say: descriptors or the working directory reach them. (glibc 2.36
 * loses the path of such a name, and aborts, if it has both, i.e. with FTW_CHDIR and several descriptors.) */
static void walk_deep(void)
{
    if (chdir(fixture.outside) < 0)
        give_up("cannot enter", fixture.outside);
    for (int flags = 0; flags < 16; flags++)
        for (int descriptors = 1; descriptors < 60; descriptors += 29) {
            if ((flags & FTW_CHDIR && descriptors > 1) || !case_is_due())
                continue;
            visited = 0;
            errno = 0;
            long result = nftw("deep", count_visits, descriptors, flags);
            int error = errno;
            if (result == 0)
                detail(" %zu visited", visited);
            detail(" flags %d", flags);
            walk_told("nftw, deep", "descriptors", descriptors, result, error);
        }
}

static void enter_fresh(void)
{
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    fixture_rebuild();
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
}

void part_walk(void)
{
    CASES(calls, true);
    make_tree();
    tree_with_all_flags();
    walk_answers();
    enter_fresh();
    visits_in_order();
    enter_fresh();
    start_at_slash();
    deeper_make(fixture.outside);
    walk_deep();
    deeper_remove(fixture.outside);
    enter_fresh();
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
