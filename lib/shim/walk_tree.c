/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <limits.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"
#include "shim/walk_tree.h"

FTSENT *entry_new(const FTS *tree, const char *name, size_t length)
{
    size_t size = offsetof(FTSENT, fts_name) + length + 1;
    size = (size + alignof(FTSENT) - 1) & ~(alignof(FTSENT) - 1);
    FTSENT *entry = calloc(1, size + (tree_has(tree, FTS_NOSTAT) ? 0 : sizeof(struct stat)));
    if (entry == NULL)
        return NULL;
    if (!tree_has(tree, FTS_NOSTAT))
        entry->fts_statp = (struct stat *)((char *)entry + size);
    memcpy(entry->fts_name, name, length);
    entry->fts_namelen = (unsigned short)length;
    entry->fts_path = tree->fts_path;
    entry->fts_instr = FTS_NOINSTR;
    return entry;
}

void entries_free(FTSENT *list)
{
    while (list != NULL) {
        FTSENT *next = list->fts_link;
        free(list);
        list = next;
    }
}

/* What a directory is to the walk. */
static unsigned short walk_tree_directory_kind(FTSENT *entry, const struct stat *st)
{
    entry->fts_dev = st->st_dev;
    entry->fts_ino = st->st_ino;
    entry->fts_nlink = st->st_nlink;
    if (tree_is_dots(entry->fts_name))
        return FTS_DOT;
    for (FTSENT *above = entry->fts_parent; above->fts_level >= FTS_ROOTLEVEL; above = above->fts_parent)
        if (above->fts_ino == entry->fts_ino && above->fts_dev == entry->fts_dev) {
            entry->fts_cycle = above;
            return FTS_DC;
        }
    return FTS_D;
}

unsigned short entry_look(const FTS *tree, FTSENT *entry, bool follows)
{
    struct stat own, *st = tree_has(tree, FTS_NOSTAT) ? &own : entry->fts_statp;
    follows |= tree_has(tree, FTS_LOGICAL);
    int error = (follows ? stat(entry->fts_accpath, st) : lstat(entry->fts_accpath, st)) == 0 ? 0 : errno;
    if (error != 0 && follows && lstat(entry->fts_accpath, st) == 0) {
        errno = 0;
        return FTS_SLNONE;
    }
    if (error != 0) {
        entry->fts_errno = error;
        memset(st, 0, sizeof *st);
        return FTS_NS;
    }
    if (S_ISDIR(st->st_mode))
        return walk_tree_directory_kind(entry, st);
    return S_ISLNK(st->st_mode) ? FTS_SL : S_ISREG(st->st_mode) ? FTS_F : FTS_DEFAULT;
}

FTSENT *entries_sorted(const FTS *tree, FTSENT *list, size_t count)
{
    const FTSENT **order = count > 1 && tree->fts_compar != NULL ? malloc(count * sizeof *order) : NULL;
    size_t i = 0;
    if (order == NULL)
        return list;
    for (FTSENT *entry = list; entry != NULL; entry = entry->fts_link)
        order[i++] = entry;
    qsort(order, count, sizeof *order, tree->fts_compar);
    for (i = 0; i < count; i++)
        ((FTSENT *)order[i])->fts_link = i + 1 < count ? (FTSENT *)order[i + 1] : NULL;
    list = (FTSENT *)order[0];
    free(order);
    return list;
}

static void walk_tree_path_moved(FTSENT *entry, const FTS *tree, char *now)
{
    uintptr_t access = (uintptr_t)entry->fts_accpath, before = (uintptr_t)tree->fts_path;
    if (access >= before && access < before + (size_t)tree->fts_pathlen)
        entry->fts_accpath = now + (access - before);
    entry->fts_path = now;
}

int path_grow(FTS *tree, size_t more, FTSENT *fresh)
{
    size_t before = (size_t)tree->fts_pathlen, size = before + more + 256;
    if (size > INT_MAX)
        return (int)wrap_answer(-ENAMETOOLONG);
    char *path = malloc(size);
    if (path == NULL)
        return -1;
    if (before > 0)
        memcpy(path, tree->fts_path, before);
    for (FTSENT *entry = fresh; entry != NULL; entry = entry->fts_link)
        walk_tree_path_moved(entry, tree, path);
    FTSENT *entry = tree->fts_cur;
    for (; entry != NULL && entry->fts_level >= FTS_ROOTLEVEL; entry = entry_after(entry))
        walk_tree_path_moved(entry, tree, path);
    free(tree->fts_path);
    tree->fts_path = path;
    tree->fts_pathlen = (int)size;
    return 0;
}

size_t path_slash(const FTSENT *entry)
{
    size_t length = entry->fts_pathlen;
    return entry->fts_path[length - 1] == '/' ? length - 1 : length;
}

FTSENT *path_to(FTS *tree, FTSENT *entry)
{
    char *end = tree->fts_path + path_slash(entry->fts_parent);
    *end++ = '/';
    memcpy(end, entry->fts_name, entry->fts_namelen + 1u);
    return entry;
}

/* A start's whole text is its path, the last part of it its name; it is reached by the path. */
FTSENT *path_to_start(FTS *tree, FTSENT *entry)
{
    char *slash = strrchr(entry->fts_name, '/');
    memcpy(tree->fts_path, entry->fts_name, entry->fts_namelen);
    tree->fts_path[entry->fts_namelen] = '\0';
    entry->fts_pathlen = entry->fts_namelen;
    if (slash != NULL && (slash != entry->fts_name || slash[1] != '\0')) {
        entry->fts_namelen = (unsigned short)strlen(slash + 1);
        memmove(entry->fts_name, slash + 1, entry->fts_namelen + 1u);
    }
    entry->fts_accpath = entry->fts_path = tree->fts_path;
    tree->fts_dev = entry->fts_dev;
    return entry;
}

int tree_go(const FTS *tree, int fd)
{
    return tree_has(tree, FTS_NOCHDIR) ? 0 : fchdir(fd);
}

int tree_go_to(const FTS *tree, const FTSENT *entry, int fd)
{
    struct stat st;
    if (tree_has(tree, FTS_NOCHDIR))
        return 0;
    long code = SYS2(SYS_fstat, fd, &st);
    if (code == 0 && (st.st_dev != entry->fts_dev || st.st_ino != entry->fts_ino))
        code = -ENOENT;
    return code == 0 ? fchdir(fd) : (int)wrap_answer(code);
}

int tree_open_directory(const char *path)
{
    return (int)wrap_answer(sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
}

int tree_go_by_path(const FTS *tree, const FTSENT *entry, const char *path)
{
    if (tree_has(tree, FTS_NOCHDIR))
        return 0;
    int fd = tree_open_directory(path);
    if (fd < 0)
        return -1;
    int result = tree_go_to(tree, entry, fd);
    sys_close(fd);
    return result;
}
