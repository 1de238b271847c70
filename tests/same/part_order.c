/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The order in which rename and link make their checks: two names of all kinds, each in a directory in or outside the root
 * that may or may not be written to, with and without a slash after it. Where several errors apply, the first one is told.
 * Each case makes what it needs, tells what is left at both names, and removes it. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "scenario.h"

enum kind_trait {
    KIND_SLASH = 1,  /* tried with a slash after it, too */
    KIND_OLD = 2,    /* the first name of a call */
    KIND_NEW = 4,    /* the second one */
    KIND_FAILS = 8,  /* as the first name it fails whatever the flags are */
    KIND_OF_OLD = 16 /* it lies at the old name, not in the new name's directory */
};

static const struct kind {
    const char *name;
    const char *text; /* after the directory, or, with KIND_OF_OLD, after the old path */
    unsigned traits;
} kinds[] = {
    {"file", "NAME", KIND_SLASH | KIND_OLD | KIND_NEW},
    {"void", "NAME", KIND_SLASH | KIND_OLD | KIND_NEW},
    {"full", "NAME", KIND_SLASH | KIND_OLD | KIND_NEW},
    {"link", "NAME", KIND_SLASH | KIND_OLD | KIND_NEW},
    {"dir-link", "NAME", KIND_SLASH | KIND_OLD},
    {"fifo", "NAME", KIND_OLD | KIND_NEW},
    {"absent", "NAME", KIND_SLASH | KIND_OLD | KIND_NEW | KIND_FAILS},
    {"dots", "void/..", KIND_OLD | KIND_NEW | KIND_FAILS},
    {"long", NULL, KIND_OLD | KIND_NEW | KIND_FAILS},
    {"nowhere/long", NULL, KIND_OLD | KIND_NEW | KIND_FAILS},
    {"nowhere/x", "nowhere/x", KIND_OLD | KIND_NEW | KIND_FAILS},
    {"file/x", "NAME/x", KIND_OLD | KIND_NEW | KIND_FAILS},
    {"too-long", NULL, KIND_OLD | KIND_NEW | KIND_FAILS},
    {"nothing", "", KIND_OLD | KIND_NEW | KIND_FAILS},
    {"null", "", KIND_OLD | KIND_NEW | KIND_FAILS},
    {"same", "NAME", KIND_SLASH | KIND_NEW},
    {"itself", "", KIND_SLASH | KIND_NEW | KIND_OF_OLD},
    {"below", "/new", KIND_SLASH | KIND_NEW | KIND_OF_OLD},
    {"deeper", "/inner/new", KIND_NEW | KIND_OF_OLD},
    {"above", "/..", KIND_NEW | KIND_OF_OLD},
    {"parent", NULL, KIND_SLASH | KIND_NEW | KIND_OF_OLD},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const struct order_place {
    const char *label;
    bool outside, kept;
} places[] = {{"in/free", false, false}, {"in/kept", false, true}, {"out/free", true, false}, {"out/kept", true, true}};
#define PLACES (sizeof places / sizeof *places)

static const struct order_call {
    const char *name;
    bool links, fails; /* it is tried on pairs that fail anyway: what it does else depends on the file system */
    unsigned flags;
} calls[] = {
    {"rename", false, false, 0},
    {"rename(NOREPLACE)", false, false, RENAME_NOREPLACE},
    {"rename(EXCHANGE)", false, false, RENAME_EXCHANGE},
    {"rename(both)", false, true, RENAME_NOREPLACE | RENAME_EXCHANGE},
    {"rename(WHITEOUT)", false, true, RENAME_WHITEOUT},
    {"rename(unknown)", false, true, 64},
    {"link", true, false, 0},
    {"link(FOLLOW)", true, false, AT_SYMLINK_FOLLOW},
    {"link(unknown)", true, true, 64},
};

struct order_name {
    const struct kind *kind;
    const struct order_place *place;
    bool slash;
    char directory[2 * PATH_MAX];
    char path[4 * PATH_MAX];
};

static bool is_kind(const struct order_name *name, const char *kind)
{
    return strcmp(name->kind->name, kind) == 0;
}

static void order_make_directory(const struct order_name *name)
{
    struct stat st;
    if (lstat(name->directory, &st) == 0)
        return;
    make_directory(name->directory, 0755);
    make_directory(joined(name->directory, "void"), 0755);
}

static void order_make(const struct order_name *name, const char *path, const struct order_name *old)
{
    if (is_kind(name, "file") || is_kind(name, "file/x"))
        make_file(path, 0644, name->place->label, strlen(name->place->label));
    else if (is_kind(name, "void") || is_kind(name, "full"))
        make_directory(path, 0755);
    else if (is_kind(name, "link"))
        make_link("../../file", path);
    else if (is_kind(name, "dir-link"))
        make_link("void", path);
    else if (is_kind(name, "fifo") && mkfifo(path, 0644) < 0)
        give_up("cannot mkfifo", path);
    else if (is_kind(name, "same") && link(old->path, path) < 0)
        give_up("cannot link", path);
    if (is_kind(name, "full"))
        make_directory(joined(path, "inner"), 0700);
}

/* The path of a name that is made like none in the table. */
static void order_odd_path(struct order_name *name, const struct order_name *old)
{
    const char *directory = name->directory;
    if (is_kind(name, "parent"))
        snprintf(name->path, sizeof name->path, "%s", old->directory);
    else if (is_kind(name, "too-long"))
        snprintf(name->path, sizeof name->path, "%s%*s", directory, PATH_MAX, "/x");
    else
        snprintf(name->path, sizeof name->path, "%s/%s%s", directory, is_kind(name, "long") ? "" : "nowhere/", name_256);
}

static void order_name(struct order_name *name, const char *own, const struct order_name *old)
{
    const struct kind *kind = name->kind;
    snprintf(name->directory, sizeof name->directory, "%s/%s", name->place->outside ? fixture.outside : fixture.work,
             name->place->kept ? "kept" : "free");
    order_make_directory(name);
    if (kind->text == NULL)
        order_odd_path(name, old);
    else if (is_kind(name, "nothing"))
        name->path[0] = '\0';
    else if (kind->traits & KIND_OF_OLD)
        snprintf(name->path, sizeof name->path, "%s%s", old->path, kind->text);
    else if (strncmp(kind->text, "NAME", 4) != 0)
        snprintf(name->path, sizeof name->path, "%s/%s", name->directory, kind->text);
    else {
        snprintf(name->path, sizeof name->path, "%s/%s", name->directory, own);
        order_make(name, name->path, old);
        strcat(name->path, kind->text + 4);
    }
}

static void order_allow(const struct order_name *name, mode_t mode)
{
    if (name->place->kept && chmod(name->directory, mode) < 0)
        give_up("cannot chmod", name->directory);
}

static bool order_goes_together(const struct order_call *call, const struct order_name *old, const struct order_name *new)
{
    if (!(old->kind->traits & KIND_OLD) || !(new->kind->traits &KIND_NEW) || (old->place->outside && new->place->outside))
        return false;
    if (new->kind->traits & KIND_OF_OLD && (old->place != new->place || !(old->kind->traits & KIND_SLASH)))
        return false;
    if (is_kind(new, "same") && !is_kind(old, "file"))
        return false;
    return !call->fails || old->kind->traits & KIND_FAILS;
}

/* What is at the old or the new name: its type, how many names it has, and whether it was at the other name before. */
static void order_tell(const char *label, const char *path, ino_t other)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        detail(" %s %s", label, ended(-1));
    else
        detail(" %s %06o links %u%s", label, st.st_mode, (unsigned)st.st_nlink, st.st_ino == other ? " moved" : "");
}

static ino_t order_inode(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0 ? 0 : st.st_ino;
}

static const char *order_words(const struct order_name *name)
{
    return is_kind(name, "null") ? NULL : name->path;
}

static void order_call(const struct order_call *call, struct order_name *old, struct order_name *new)
{
    char where[200];
    const char *at_old = joined(old->directory, "old"), *at_new = joined(new->directory, "new");
    const ino_t one = order_inode(at_old), two = order_inode(at_new);
    order_allow(old, 0555);
    order_allow(new, 0555);
    errno = 0;
    long result = call->links ? linkat(AT_FDCWD, order_words(old), AT_FDCWD, order_words(new), (int)call->flags)
                              : renameat2(AT_FDCWD, order_words(old), AT_FDCWD, order_words(new), call->flags);
    int error = errno;
    order_allow(old, 0755);
    order_allow(new, 0755);
    order_tell("old", at_old, two);
    order_tell("new", at_new, one);
    snprintf(where, sizeof where, "%s/%s%s %s/%s%s", old->place->label, old->kind->name, old->slash ? "/" : "",
             new->place->label, new->kind->name, new->slash ? "/" : "");
    case_told(call->name, where, result, error, false);
}

static void order_run(const struct order_call *call, struct order_name *old, struct order_name *new)
{
    if (!case_is_due())
        return;
    order_name(old, "old", NULL);
    order_name(new, "new", old);
    if (old->slash)
        strcat(old->path, "/");
    if (new->slash)
        strcat(new->path, "/");
    order_call(call, old, new);
    remove_tree(old->directory);
    remove_tree(new->directory);
}

/* Without slashes, with one, with both: where the directories may be written to. Else without, or with all there can be. */
static void order_with_slashes(const struct order_call *call, struct order_name *old, struct order_name *new)
{
    const bool kept = old->place->kept || new->place->kept;
    for (int slashes = 0; slashes < 4; slashes += kept ? 3 : 1) {
        old->slash = (slashes & 1) && (old->kind->traits & KIND_SLASH);
        new->slash = (slashes & 2) && (new->kind->traits &KIND_SLASH);
        if (slashes == 2 * new->slash + old->slash || (slashes == 3 && kept && (old->slash || new->slash)))
            order_run(call, old, new);
    }
}

static void order_pair(const struct order_call *call, const struct kind *first, const struct kind *second)
{
    static struct order_name old, new;
    for (size_t from = 0; from < PLACES; from++)
        for (size_t to = 0; to < PLACES; to++) {
            old.kind = first;
            new.kind = second;
            old.place = &places[from];
            new.place = &places[to];
            if (order_goes_together(call, &old, &new))
                order_with_slashes(call, &old, &new);
        }
}

void part_order(void)
{
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t i = 0; i < KINDS; i++)
            for (size_t j = 0; j < KINDS; j++)
                order_pair(&calls[c], &kinds[i], &kinds[j]);
}
