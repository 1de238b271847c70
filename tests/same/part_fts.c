/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* fts, in both spellings, with all options. With a comparison its order is certain, and it is told as it
 * comes; without one it is told sorted. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deeper.h"
#include "fixture.h"
#include "lines.h"
#include "../old_libc.h"

typedef int fts_order(const FTSENT **, const FTSENT **);

/* A spelling by its names: the headers would make one of the two. */
static struct {
    FTS *(*open)(char *const *, int, fts_order *);
    FTSENT *(*read)(FTS *);
    FTSENT *(*children)(FTS *, int);
    int (*set)(FTS *, FTSENT *, int);
    int (*close)(FTS *);
} fts;

static void *fts_named(const char *before, const char *after)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%s", before, after);
    return dlsym(RTLD_DEFAULT, name);
}

static void fts_spell(const char *before)
{
    fts.open = fts_named(before, "open");
    fts.read = fts_named(before, "read");
    fts.children = fts_named(before, "children");
    fts.set = fts_named(before, "set");
    fts.close = fts_named(before, "close");
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static const char *const infos[] = {"?", "D",    "DC", "DEFAULT", "DNR", "DOT",    "DP", "ERR",
                                    "F", "INIT", "NS", "NSOK",    "SL",  "SLNONE", "W"};

static const char *start;
static int options;

static bool is_link_kind(const FTSENT *entry)
{
    return entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE;
}

/* Does the access path lead to the file, from the working directory? */
static const char *fts_reach(const FTSENT *entry)
{
    struct stat seen;
    if (options & FTS_NOSTAT || entry->fts_info == FTS_NS || entry->fts_info == FTS_NSOK || entry->fts_info == FTS_INIT)
        return "";
    int flags = is_link_kind(entry) ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(AT_FDCWD, entry->fts_accpath, &seen, flags) < 0)
        return " not reached";
    return seen.st_ino == entry->fts_statp->st_ino && seen.st_dev == entry->fts_statp->st_dev ? "" : " leads elsewhere";
}

static const char *access_kind(const FTSENT *entry)
{
    bool is_name = strcmp(entry->fts_accpath, entry->fts_name) == 0;
    bool is_path = strcmp(entry->fts_accpath, entry->fts_path) == 0;
    return is_name && is_path ? "both" : is_name ? "name" : is_path ? "path" : "other";
}

static void tell_entry(const FTSENT *entry)
{
    lines_add("%s %s level %d lengths %d %d %s of %s %s%s%s%s", lines_path(entry->fts_path, start), infos[entry->fts_info],
              entry->fts_level, (int)strlen(entry->fts_path) - entry->fts_pathlen,
              (int)strlen(entry->fts_name) - entry->fts_namelen, entry->fts_name,
              entry->fts_parent ? entry->fts_parent->fts_name : "nothing", access_kind(entry), fts_reach(entry),
              entry->fts_errno ? " " : "", entry->fts_errno ? strerrorname_np(entry->fts_errno) : "");
    if (!(options & FTS_NOSTAT) && entry->fts_info != FTS_NS && entry->fts_info != FTS_NSOK)
        lines_add("%s mode %06o", lines_path(entry->fts_path, start), entry->fts_statp->st_mode);
    if (entry->fts_info == FTS_DC)
        lines_add("%s goes back to level %d", lines_path(entry->fts_path, start), entry->fts_cycle->fts_level);
}

static ino_t fts_here(void)
{
    struct stat st;
    return stat(".", &st) == 0 ? st.st_ino : 0;
}

static FTS *fts_opened(char *const *paths, int how, fts_order *order)
{
    start = paths[0];
    options = how;
    errno = 0;
    return fts.open(paths, how, order);
}

static long fts_closed(FTS *tree, ino_t before, bool sorted)
{
    lines_tell(sorted);
    errno = 0;
    long result = fts.close(tree);
    int error = errno;
    if (fts_here() != before)
        detail(" and is elsewhere");
    errno = error;
    return result;
}

static long walk_from(const char *path, int how, fts_order *order)
{
    char *const paths[] = {(char *)path, NULL};
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, order);
    if (!tree)
        return -1;
    for (FTSENT *entry; errno = EXDEV, (entry = fts.read(tree));)
        tell_entry(entry);
    detail(" ends with %s;", errno ? strerrorname_np(errno) : "nothing");
    return fts_closed(tree, before, order == NULL);
}

static long by_fts(const struct place *place, long how)
{
    fts_spell("fts");
    return walk_from(place->path, (int)how, by_name);
}

static long by_fts64(const struct place *place, long how)
{
    fts_spell("fts64");
    return walk_from(place->path, (int)how, by_name);
}

static long by_fts_unsorted(const struct place *place, long how)
{
    fts_spell("fts64");
    return walk_from(place->path, (int)how, NULL);
}

static const struct call calls[] = {
    {"fts(PHYSICAL)", CALL_NO_NULL, by_fts, FTS_PHYSICAL},
    {"fts64(PHYSICAL)", CALL_NO_NULL, by_fts64, FTS_PHYSICAL},
    {"fts64(PHYSICAL), unsorted", CALL_NO_NULL, by_fts_unsorted, FTS_PHYSICAL},
    {"fts(PHYSICAL | NOCHDIR)", CALL_NO_NULL, by_fts, FTS_PHYSICAL | FTS_NOCHDIR},
    {"fts64(LOGICAL)", CALL_NO_NULL, by_fts64, FTS_LOGICAL},
    {"fts(PHYSICAL | COMFOLLOW)", CALL_NO_NULL, by_fts, FTS_PHYSICAL | FTS_COMFOLLOW},
    {"fts(PHYSICAL | NOSTAT), unsorted", CALL_NO_NULL, by_fts_unsorted, FTS_PHYSICAL | FTS_NOSTAT},
    {"fts64(PHYSICAL | NOSTAT | NOCHDIR)", CALL_NO_NULL, by_fts64, FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR},
    {"fts(PHYSICAL | NOSTAT | SEEDOT)", CALL_NO_NULL, by_fts, FTS_PHYSICAL | FTS_NOSTAT | FTS_SEEDOT},
    {"fts(LOGICAL | NOSTAT)", CALL_NO_NULL, by_fts, FTS_LOGICAL | FTS_NOSTAT},
    {"fts(PHYSICAL | SEEDOT | XDEV)", CALL_NO_NULL, by_fts, FTS_PHYSICAL | FTS_SEEDOT | FTS_XDEV},
    {"fts(0)", CALL_NO_NULL, by_fts, 0},
    {"fts(wrong)", CALL_NO_NULL, by_fts, 0x400},
};

static void make_tree(void)
{
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_directory("bare/t", 0755);
    make_file("bare/t/a", 0644, "a", 1);
    make_directory("bare/t/sub", 0755);
    make_file("bare/t/sub/c", 0644, "", 0);
    make_link("../../t", "bare/t/sub/up");
    make_directory("bare/t/sub/deep", 0755);
    make_file("bare/t/sub/deep/d", 0644, "", 0);
    make_directory("bare/t/hollow", 0755);
    make_link("a", "bare/t/link");
    make_link("hollow", "bare/t/link-to-hollow");
    make_link("sub/deep", "bare/t/link-to-deep");
    make_link("nowhere", "bare/t/broken");
    make_directory("bare/t/secret", 0755);
    make_file("bare/t/secret/x", 0644, "", 0);
    make_directory("bare/t/listed", 0755);
    make_file("bare/t/listed/y", 0644, "", 0);
    if (chmod("bare/t/secret", 0) < 0 || chmod("bare/t/listed", 0444) < 0)
        give_up("cannot chmod", "bare/t");
}

static void fts_told(const char *call, const char *where, int number, long result, int error)
{
    char label[128];
    snprintf(label, sizeof label, "%s %d", where, number);
    case_told(call, label, result, error, false);
}

static void tree_with_all_options(void)
{
    for (int how = 0; how < 256; how++) {
        if (!case_is_due())
            continue;
        fts_spell(how % 3 ? "fts64" : "fts");
        errno = 0;
        long result = walk_from("bare/t", how, by_name);
        fts_told("fts, tree", "options", how, result, errno);
    }
}

static void several_starts(int how, fts_order *order)
{
    static char *const paths[] = {"dir", "file", "ldangling", ".", "absent", "dir/sub/", "ldir", "..", "dir", NULL};
    if (!case_is_due())
        return;
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, order);
    if (!tree)
        give_up("cannot open", "fts");
    for (FTSENT *entry; (entry = fts.read(tree));)
        if (entry->fts_level > 0 && entry->fts_info == FTS_D)
            fts.set(tree, entry, FTS_SKIP);
        else if (entry->fts_level == 0 || entry->fts_name[0] == 'i')
            tell_entry(entry);
    long result = fts_closed(tree, before, !order);
    fts_told("fts, several starts", order ? "sorted" : "as given", how, result, errno);
}

/* The children of the starts, and of every directory, are asked for before they are told. */
static void tell_children(FTS *tree, const FTSENT *of, int names_only)
{
    errno = EXDEV;
    FTSENT *child = fts.children(tree, names_only);
    lines_add("children %s, path is %s",
              child   ? "there"
              : errno ? strerrorname_np(errno)
                      : "none",
              of ? lines_path(of->fts_path, start) : "none");
    for (; child; child = child->fts_link) {
        lines_add("child %s %s %s", child->fts_name, infos[child->fts_info], access_kind(child));
        child->fts_number = 7;
        child->fts_pointer = child;
    }
}

static void children_first(int how, int names_only, fts_order *order, const char *path)
{
    char *const paths[] = {(char *)path, NULL};
    if (!case_is_due())
        return;
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, order);
    if (!tree)
        give_up("cannot open", "fts");
    tell_children(tree, NULL, names_only);
    for (FTSENT *entry; (entry = fts.read(tree));) {
        tell_entry(entry);
        lines_add("number %ld %s", entry->fts_number, entry->fts_pointer == entry ? "pointer" : "");
        if (entry->fts_info == FTS_D || entry->fts_info == FTS_F)
            tell_children(tree, entry, names_only);
    }
    errno = 0;
    fts.children(tree, 3);
    detail(" wrong says %s, options %d", strerrorname_np(errno), how);
    long result = fts_closed(tree, before, !order);
    fts_told("fts, children", path, names_only, result, errno);
}

/* An instruction for one of the entries when it is told, or with its siblings when they are asked for. */
static void fts_instructed(const char *name, int instruction, int how, bool prefetch)
{
    static char *const paths[] = {"bare/t", NULL};
    if (!case_is_due())
        return;
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, by_name);
    if (!tree)
        give_up("cannot open", "fts");
    unsigned count = 0;
    for (FTSENT *entry; count < 100 && (entry = fts.read(tree)); count++) {
        tell_entry(entry);
        if (!prefetch && strcmp(entry->fts_name, name) == 0 && entry->fts_number++ == 0)
            lines_add("set %d", fts.set(tree, entry, instruction));
        if (!prefetch || entry->fts_info != FTS_D)
            continue;
        for (FTSENT *child = fts.children(tree, 0); child; child = child->fts_link)
            if (strcmp(child->fts_name, name) == 0)
                lines_add("set %d", fts.set(tree, child, instruction));
    }
    detail(" options %d %s ends with %s", how, prefetch ? "ahead" : "when told", errno ? strerrorname_np(errno) : "nothing");
    long result = fts_closed(tree, before, false);
    fts_told("fts, instruction", name, instruction, result, errno);
}

static void fts_instructions(void)
{
    static const char *const at[] = {"t",      "a", "sub", "deep", "d", "link", "broken", "link-to-hollow", "link-to-deep",
                                     "hollow", "up"};
    static const int hows[] = {FTS_PHYSICAL, FTS_PHYSICAL | FTS_NOCHDIR, FTS_LOGICAL, FTS_PHYSICAL | FTS_NOSTAT};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (size_t h = 0; h < sizeof hows / sizeof *hows; h++)
            for (int instruction = 0; instruction <= FTS_SKIP; instruction++) {
                fts_instructed(at[i], instruction, hows[h], false);
                fts_instructed(at[i], instruction, hows[h], true);
            }
}

static void wrong_instruction(void)
{
    FTSENT entry = {.fts_instr = FTS_NOINSTR};
    errno = 0;
    int result = fts.set(NULL, &entry, 17);
    detail(" says %s, is %d", strerrorname_np(errno), entry.fts_instr);
    fts_told("fts_set", "wrong", 17, result, 0);
    static char *const paths[] = {"file", "", NULL};
    errno = 0;
    FTS *tree = fts.open(paths, FTS_PHYSICAL, NULL);
    fts_told("fts_open", "empty path", 0, tree ? 0 : -1, errno);
}

/* Closed after so many entries: the working directory is the old one. */
static void closed_early(int after, int how)
{
    static char *const paths[] = {"bare/t", "dir", NULL};
    if (!case_is_due())
        return;
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, by_name);
    for (int i = 0; i < after; i++) {
        FTSENT *entry = fts.read(tree);
        if (!entry)
            break;
        tell_entry(entry);
    }
    long result = fts_closed(tree, before, false);
    fts_told("fts, closed early", "after", after, result, errno);
}

/* What becomes of directories between the time they are told and the time they are entered. */
static void changed_meanwhile(int how, bool replaced, bool read)
{
    static char *const paths[] = {"bare", NULL};
    make_directory("bare/one", 0755);
    make_file("bare/one/file", 0644, "", 0);
    make_directory("bare/two", 0755);
    ino_t before = fts_here();
    int home = open(".", O_RDONLY | O_DIRECTORY);
    FTS *tree = fts_opened(paths, how, by_name);
    for (FTSENT *entry; (entry = fts.read(tree));) {
        tell_entry(entry);
        if (entry->fts_info != FTS_D || strcmp(entry->fts_name, "one") != 0)
            continue;
        if (read)
            tell_children(tree, entry, 0);
        if (renameat(home, "bare/one", home, "bare/three") < 0 || (replaced && mkdirat(home, "bare/one", 0755) < 0))
            give_up("cannot rename", "bare/one");
    }
    close(home);
    detail(" options %d%s", how, read ? ", children first" : "");
    long result = fts_closed(tree, before, false);
    int error = errno;
    case_told("fts", replaced ? "replaced meanwhile" : "renamed meanwhile", result, error, true);
}

static void all_changed_meanwhile(void)
{
    static const int hows[] = {FTS_PHYSICAL, FTS_PHYSICAL | FTS_NOCHDIR};
    for (int i = 0; i < 8; i++) {
        if (chdir(fixture.work) < 0)
            give_up("cannot enter", fixture.work);
        changed_meanwhile(hows[i & 1], i & 2, i & 4);
    }
}

static void fts_deep(int how)
{
    static char *const paths[] = {"deep", NULL};
    unsigned counts[16] = {0};
    size_t longest = 0;
    if (!case_is_due())
        return;
    ino_t before = fts_here();
    FTS *tree = fts_opened(paths, how, by_name);
    for (FTSENT *entry; (entry = fts.read(tree));) {
        counts[entry->fts_info]++;
        if (strlen(entry->fts_path) > longest)
            longest = strlen(entry->fts_path);
        counts[0] += strlen(entry->fts_path) != entry->fts_pathlen || entry->fts_path != tree->fts_path;
        counts[15] += *fts_reach(entry) != '\0';
        if (how & FTS_SEEDOT && entry->fts_info == FTS_D && !fts.children(tree, 0))
            counts[14]++;
    }
    for (size_t i = 0; i < 16; i++)
        detail(" %u", counts[i]);
    detail(" longest %zu", longest);
    long result = fts_closed(tree, before, false);
    fts_told("fts, deep", "options", how, result, errno);
}

static void enter_fresh(void)
{
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    fixture_rebuild();
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
}

static void all_children_first(void)
{
    static const int hows[] = {FTS_PHYSICAL, FTS_PHYSICAL | FTS_NOCHDIR, FTS_LOGICAL, FTS_PHYSICAL | FTS_NOSTAT,
                               FTS_PHYSICAL | FTS_SEEDOT};
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        for (int how_much = 0; how_much <= FTS_NAMEONLY; how_much += FTS_NAMEONLY) {
            children_first(hows[i], how_much, by_name, "bare/t");
            children_first(hows[i], how_much, by_name, joined(fixture.work, "bare/t/"));
            children_first(hows[i], how_much, NULL, "dir/sub");
        }
}

void part_fts(void)
{
    CASES(calls, true);
    make_tree();
    tree_with_all_options();
    for (int how = 0; how < 32; how++) {
        several_starts(how, by_name);
        several_starts(how, NULL);
    }
    all_children_first();
    fts_instructions();
    wrong_instruction();
    for (int after = 0; after < 16; after++)
        closed_early(after, after & 1 ? FTS_PHYSICAL : FTS_PHYSICAL | FTS_NOCHDIR);
    enter_fresh();
    all_changed_meanwhile();
    enter_fresh();
    deeper_make(fixture.outside);
    if (chdir(fixture.outside) < 0)
        give_up("cannot enter", fixture.outside);
    for (int how = 0; how < 64; how++)
        fts_deep(how);
    deeper_remove(fixture.outside);
    enter_fresh();
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
