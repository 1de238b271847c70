/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <limits.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"
#include "shim/wrap_open.h"
#include "shim/walk.h"

/* A directory on the way down. */
struct level {
    struct level *above;
    DIR *stream; /* NULL: its descriptor was needed further down */
    char *rest;  /* the names that were still to be read then, an empty one at the end */
};

struct walk {
    struct walk_visitor visitor;
    int flags;
    dev_t device;  /* of the start */
    struct FTW at; /* base: where in `path` the name begins */
    char *path;
    size_t room;
    int streams, limit; /* open at once */
    void *seen;         /* directories, unless FTW_PHYS: a tree of struct identity */
};

struct identity {
    dev_t device;
    ino_t inode;
};

static int walk_nftw_by_identity(const void *one, const void *other)
{
    const struct identity *a = one, *b = other;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* 1 the first time, 0 later, or -1 and errno. */
static int walk_nftw_is_first_time(struct walk *w, const struct stat *st)
{
    struct identity *own = malloc(sizeof *own);
    if (own == NULL)
        return -1;
    *own = (struct identity){.device = st->st_dev, .inode = st->st_ino};
    struct identity **kept = tsearch(own, &w->seen, walk_nftw_by_identity);
    if (kept != NULL && *kept == own)
        return 1;
    free(own);
    if (kept == NULL)
        errno = ENOMEM;
    return kept != NULL ? 0 : -1;
}

static int walk_nftw_make_room(struct walk *w, size_t size)
{
    if (size <= w->room)
        return 0;
    char *path = realloc(w->path, 2 * size);
    if (path == NULL)
        return -1;
    w->path = path;
    w->room = 2 * size;
    return 0;
}

static int walk_nftw_visit(struct walk *w, const struct stat *st, int kind)
{
    static const int for_ftw[] = {
        [FTW_F] = FTW_F,  [FTW_D] = FTW_D,  [FTW_DNR] = FTW_DNR, [FTW_NS] = FTW_NS,
        [FTW_SL] = FTW_F, [FTW_DP] = FTW_D, [FTW_SLN] = FTW_NS,
    };
    return w->visitor.ftw != NULL ? w->visitor.ftw(w->path, st, for_ftw[kind]) : w->visitor.nftw(w->path, st, kind, &w->at);
}

/* How to say to the kernel what is at the path: (descriptor, name). */
static int walk_nftw_locate(const struct walk *w, const struct level *in, const char **name)
{
    bool by_name = (in != NULL && in->stream != NULL) || (w->flags & FTW_CHDIR);
    *name = by_name ? w->path + w->at.base : w->path;
    if (**name == '\0')
        *name = ".";
    return in != NULL && in->stream != NULL ? dirfd(in->stream) : AT_FDCWD;
}

/* Which FTW_ kind is at the path, or -1 and errno. */
static int walk_nftw_look(const struct walk *w, const struct level *in, struct stat *st)
{
    const char *name;
    int at = walk_nftw_locate(w, in, &name);
    if (fstatat(at, name, st, w->flags & FTW_PHYS ? AT_SYMLINK_NOFOLLOW : 0) == 0)
        return S_ISDIR(st->st_mode) ? FTW_D : S_ISLNK(st->st_mode) ? FTW_SL : FTW_F;
    if (errno != EACCES && errno != ENOENT)
        return -1;
    bool is_link = !(w->flags & FTW_PHYS) && fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st->st_mode);
    return is_link ? FTW_SLN : FTW_NS;
}

/* Gives a stream's descriptor back and keeps the names that it has not told yet. */
static int walk_nftw_put_by(struct walk *w, struct level *level)
{
    size_t used = 0, room = 0, length;
    struct dirent64 *entry;
    do {
        entry = readdir64(level->stream);
        length = entry != NULL ? strlen(entry->d_name) + 1 : 1;
        if (used + length > room) {
            room = 2 * (room + length);
            char *rest = realloc(level->rest, room);
            if (rest == NULL)
                return -1;
            level->rest = rest;
        }
        memcpy(level->rest + used, entry != NULL ? entry->d_name : "", length);
        used += length;
    } while (entry != NULL);
    closedir(level->stream);
    level->stream = NULL;
    w->streams--;
    return 0;
}

static struct level *walk_nftw_highest_open(struct level *from)
{
    struct level *found = NULL;
    for (; from != NULL; from = from->above)
        if (from->stream != NULL)
            found = from;
    return found;
}

static DIR *walk_nftw_open_beneath(int at, const char *name)
{
    int fd = (int)wrap_openat(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && stream == NULL)
        sys_close(fd);
    return stream;
}

static int walk_nftw_open_level(struct walk *w, struct level *level)
{
    const char *name;
    if (w->streams == w->limit && walk_nftw_put_by(w, walk_nftw_highest_open(level->above)) != 0)
        return -1;
    int at = walk_nftw_locate(w, level->above, &name);
    level->stream = at == AT_FDCWD ? opendir(name) : walk_nftw_open_beneath(at, name);
    w->streams += level->stream != NULL;
    return level->stream != NULL ? 0 : -1;
}

static void walk_nftw_close_level(struct walk *w, struct level *level)
{
    int saved = errno;
    if (level->stream != NULL) {
        closedir(level->stream);
        w->streams--;
    }
    free(level->rest);
    errno = saved;
}

static int walk_nftw_change_to(int fd)
{
    return fchdir(fd);
}

static int walk_nftw_walk_directory(struct walk *, const struct stat *, struct level *above);

static int walk_nftw_walk_once(struct walk *w, const struct stat *st, struct level *in)
{
    int first = w->flags & FTW_PHYS ? 1 : walk_nftw_is_first_time(w, st);
    return first == 1 ? walk_nftw_walk_directory(w, st, in) : first;
}

static int walk_nftw_walk_entry(struct walk *w, struct level *in, const char *name)
{
    struct stat st = {0};
    size_t length = strlen(name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (walk_nftw_make_room(w, (size_t)w->at.base + length + 2) != 0) /* 2: with a slash after it */
        return -1;
    memcpy(w->path + w->at.base, name, length + 1);
    int kind = walk_nftw_look(w, in, &st);
    if (kind < 0)
        return -1;
    if ((w->flags & FTW_MOUNT) && kind != FTW_NS && st.st_dev != w->device)
        return 0;
    int result = kind == FTW_D ? walk_nftw_walk_once(w, &st, in) : walk_nftw_visit(w, &st, kind);
    return (w->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SUBTREE ? 0 : result;
}

static int walk_nftw_walk_entries(struct walk *w, struct level *in)
{
    struct dirent64 *entry;
    int result = 0;
    while (result == 0 && in->stream != NULL && (entry = readdir64(in->stream)) != NULL)
        result = walk_nftw_walk_entry(w, in, entry->d_name);
    for (const char *name = in->rest; result == 0 && name != NULL && *name != '\0'; name += strlen(name) + 1)
        result = walk_nftw_walk_entry(w, in, name);
    return (w->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SIBLINGS ? 0 : result;
}

/* The directory's name is at the end of the path; it is there again afterwards. */
static int walk_nftw_walk_beneath(struct walk *w, struct level *here)
{
    struct FTW before = w->at;
    size_t length = strlen(w->path);
    if (w->path[length - 1] != '/')
        w->path[length++] = '/';
    w->at = (struct FTW){.base = (int)length, .level = before.level + 1};
    int result = walk_nftw_walk_entries(w, here);
    w->path[length - 1] = '\0'; /* of the start `/` nothing is left, as with glibc */
    w->at = before;
    return result;
}

/* Is the walk to go on, as far as the working directory is concerned? */
static bool walk_nftw_goes_on(const struct walk *w, int result)
{
    return result == 0 || ((w->flags & FTW_ACTIONRETVAL) && result != -1 && result != FTW_STOP);
}

static int walk_nftw_change_back(struct walk *w, struct level *above)
{
    if (above->stream != NULL && walk_nftw_change_to(dirfd(above->stream)) == 0)
        return 0;
    return chdir(w->at.base == 1 ? "/" : "..");
}

static int walk_nftw_walk_directory(struct walk *w, const struct stat *st, struct level *above)
{
    struct level here = {.above = above};
    bool changes = w->flags & FTW_CHDIR;
    if (walk_nftw_open_level(w, &here) != 0)
        return errno == EACCES ? walk_nftw_visit(w, st, FTW_DNR) : -1;
    int result = w->flags & FTW_DEPTH ? 0 : walk_nftw_visit(w, st, FTW_D);
    if (result == 0 && changes)
        result = walk_nftw_change_to(dirfd(here.stream));
    if (result != 0) {
        walk_nftw_close_level(w, &here);
        return result;
    }
    result = walk_nftw_walk_beneath(w, &here);
    walk_nftw_close_level(w, &here);
    if (result == 0 && (w->flags & FTW_DEPTH))
        result = walk_nftw_visit(w, st, FTW_DP);
    if (above != NULL && changes && walk_nftw_goes_on(w, result) && walk_nftw_change_back(w, above) != 0)
        result = -1;
    return result;
}

static int walk_nftw_walk_start(struct walk *w)
{
    struct stat st;
    int kind = walk_nftw_look(w, NULL, &st);
    if (kind < 0 || kind == FTW_NS || (kind == FTW_SLN && errno != ENOENT))
        return -1; /* there is nothing to tell */
    if (kind != FTW_D)
        return walk_nftw_visit(w, &st, kind);
    w->device = st.st_dev;
    if (!(w->flags & FTW_PHYS) && walk_nftw_is_first_time(w, &st) < 0)
        return -1;
    return walk_nftw_walk_directory(w, &st, NULL);
}

static int walk_nftw_change_to_parent(struct walk *w)
{
    if (w->at.base <= 1)
        return w->at.base == 0 ? 0 : chdir("/");
    w->path[w->at.base - 1] = '\0';
    int result = chdir(w->path);
    w->path[w->at.base - 1] = '/';
    return result;
}

/* FTW_CHDIR begins next to the start and ends where it was called: through a descriptor, or, where that
 * directory can be searched but not read, through its path. */
static int walk_nftw_walk_with_changes(struct walk *w)
{
    char *home_path = NULL;
    int home = sys_openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (home < 0 && (home != -EACCES || (home_path = getcwd(NULL, 0)) == NULL))
        return home != -EACCES ? (int)wrap_answer(home) : -1;
    w->limit -= home >= 0 && w->limit > 1;
    int result = walk_nftw_change_to_parent(w);
    if (result == 0)
        result = walk_nftw_walk_start(w);
    if (home >= 0) {
        walk_nftw_change_to(home);
        sys_close(home);
    } else {
        chdir(home_path);
    }
    int saved = errno;
    free(home_path);
    errno = saved;
    return result;
}

/* The path without the slashes at its end, and where its last name begins. */
static int walk_nftw_set_start(struct walk *w, const char *start)
{
    size_t length = strlen(start);
    if (walk_nftw_make_room(w, length < PATH_MAX ? PATH_MAX : length + 2) != 0)
        return -1;
    while (length > 1 && start[length - 1] == '/')
        length--;
    memcpy(w->path, start, length);
    w->path[length] = '\0';
    while (length > 0 && w->path[length - 1] != '/')
        length--;
    w->at.base = (int)length;
    return 0;
}

int walk_nftw(const char *start, struct walk_visitor visitor, int descriptors, int flags)
{
    struct walk w = {.visitor = visitor, .flags = flags, .limit = descriptors < 1 ? 1 : descriptors};
    if (start[0] == '\0')
        return (int)wrap_answer(-ENOENT);
    if (walk_nftw_set_start(&w, start) != 0)
        return -1;
    int result = flags & FTW_CHDIR ? walk_nftw_walk_with_changes(&w) : walk_nftw_walk_start(&w);
    int saved = errno;
    tdestroy(w.seen, free);
    free(w.path);
    errno = saved;
    if ((flags & FTW_ACTIONRETVAL) && (result == FTW_SKIP_SUBTREE || result == FTW_SKIP_SIBLINGS))
        return 0;
    return result;
}
