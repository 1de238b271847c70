/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* How fts reads one directory. */

#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "shim/wrap.h"
#include "shim/walk_tree.h"

struct reading {
    FTS *tree;
    FTSENT *of;
    enum tree_purpose purpose;
    DIR *stream;
    long directories; /* how many are still to be found by looking at files; negative: look at all */
    bool by_type;     /* what readdir says is no directory is not looked at */
    bool entered;
    size_t before; /* of a path: up to and with the slash */
    FTSENT *first, *last;
    size_t count;
};

/* A physical walk that wants no stat only needs to know which are directories, and a directory's link count
 * says of how many that can be true. */
static void walk_read_reading_plan(struct reading *r)
{
    const FTS *tree = r->tree;
    r->by_type = r->purpose != TO_TELL_NAMES && tree_has(tree, FTS_NOSTAT) && tree_has(tree, FTS_PHYSICAL);
    if (r->purpose == TO_TELL_NAMES)
        r->directories = 0;
    else if (r->by_type)
        r->directories = (long)r->of->fts_nlink - (tree_has(tree, FTS_SEEDOT) ? 0 : 2);
    else
        r->directories = -1;
}

/* Makes it the working directory, if something of it is to be looked at, or the walk goes on there. One that
 * cannot be entered is as good as empty, but its error is told at its end. */
static void walk_read_reading_enter(struct reading *r)
{
    FTSENT *of = r->of;
    if (r->directories == 0 && r->purpose != TO_DESCEND)
        return;
    r->entered = tree_go_to(r->tree, of, dirfd(r->stream)) == 0;
    if (r->entered)
        return;
    if (r->directories != 0 && r->purpose == TO_DESCEND)
        of->fts_errno = errno;
    of->fts_flags |= FTS_DONTCHDIR;
    closedir(r->stream);
    r->stream = NULL;
}

static int walk_read_reading_start(struct reading *r)
{
    FTSENT *of = r->of;
    r->stream = opendir(of->fts_accpath);
    if (r->stream == NULL && r->purpose == TO_DESCEND) {
        of->fts_info = FTS_DNR;
        of->fts_errno = errno;
    }
    if (r->stream == NULL)
        return -1;
    walk_read_reading_plan(r);
    r->before = path_slash(of) + 1;
    if (tree_has(r->tree, FTS_NOCHDIR))
        r->tree->fts_path[r->before - 1] = '/';
    walk_read_reading_enter(r);
    return 0;
}

static void walk_read_reading_append(struct reading *r, FTSENT *entry)
{
    if (r->last != NULL)
        r->last->fts_link = entry;
    else
        r->first = entry;
    r->last = entry;
    r->count++;
}

/* Looks at a new entry, if need be. */
static void walk_read_reading_look(struct reading *r, FTSENT *entry, unsigned char type)
{
    FTS *tree = r->tree;
    bool is_known = r->by_type && type != DT_DIR && type != DT_UNKNOWN;
    entry->fts_accpath = tree_has(tree, FTS_NOCHDIR) ? entry->fts_path : entry->fts_name;
    if (r->directories == 0 || is_known) {
        entry->fts_info = FTS_NSOK;
        return;
    }
    if (tree_has(tree, FTS_NOCHDIR))
        memcpy(tree->fts_path + r->before, entry->fts_name, entry->fts_namelen + 1u);
    entry->fts_info = entry_look(tree, entry, false);
    bool is_directory = entry->fts_info == FTS_D || entry->fts_info == FTS_DC || entry->fts_info == FTS_DOT;
    r->directories -= r->directories > 0 && is_directory;
}

/* 0, or -1 and errno: the walk cannot go on. */
static int walk_read_reading_add(struct reading *r, const struct dirent *from)
{
    size_t length = strlen(from->d_name), needs = r->before + length;
    if (needs >= USHRT_MAX) /* fts_pathlen could not tell it */
        return (int)wrap_answer(-ENAMETOOLONG);
    if (needs >= (size_t)r->tree->fts_pathlen && path_grow(r->tree, needs + 1, r->first) != 0)
        return -1;
    FTSENT *entry = entry_new(r->tree, from->d_name, length);
    if (entry == NULL)
        return -1;
    entry->fts_level = (short)(r->of->fts_level + 1);
    entry->fts_parent = r->of;
    entry->fts_pathlen = (unsigned short)needs;
    walk_read_reading_look(r, entry, from->d_type);
    walk_read_reading_append(r, entry);
    return 0;
}

static int walk_read_reading_all(struct reading *r)
{
    struct dirent *entry;
    int result = 0;
    while (result == 0 && r->stream != NULL && (entry = readdir(r->stream)) != NULL)
        if (tree_has(r->tree, FTS_SEEDOT) || !tree_is_dots(entry->d_name))
            result = walk_read_reading_add(r, entry);
    int saved = errno;
    if (r->stream != NULL)
        closedir(r->stream);
    errno = saved;
    return result;
}

static FTSENT *walk_read_reading_failed(struct reading *r)
{
    entries_free(r->first);
    r->of->fts_info = FTS_ERR;
    return tree_stop(r->tree);
}

static int walk_read_go_back(const FTS *tree, const FTSENT *from)
{
    return from->fts_level == FTS_ROOTLEVEL ? tree_go(tree, tree->fts_rfd) : tree_go_by_path(tree, from->fts_parent, "..");
}

FTSENT *tree_read(FTS *tree, enum tree_purpose purpose)
{
    struct reading r = {.tree = tree, .of = tree->fts_cur, .purpose = purpose};
    if (walk_read_reading_start(&r) != 0)
        return NULL;
    if (walk_read_reading_all(&r) != 0)
        return walk_read_reading_failed(&r);
    if (tree_has(tree, FTS_NOCHDIR)) /* as glibc leaves it: with a slash if there was anything */
        tree->fts_path[r.before - (r.count == 0)] = '\0';
    if (r.entered && (purpose == TO_TELL || r.count == 0) && walk_read_go_back(tree, r.of) != 0)
        return walk_read_reading_failed(&r);
    if (r.count == 0 && purpose == TO_DESCEND)
        r.of->fts_info = FTS_DP;
    return entries_sorted(tree, r.first, r.count);
}
