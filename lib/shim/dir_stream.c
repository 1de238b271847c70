/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/dir_stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/sys.h"
#include "shim/operations.h"
#include "shim/outsiders.h"
#include "shim/process.h"
#include "shim/real.h"
#include "shim/root_of.h"
#include "shim/state.h"
#include "union/layout.h"

#define LOADS_MAX 100
#define LOOKS_MAX 100 /* of a name that comes and goes meanwhile; then its home says */
#define STREAMS 4096  /* open at once in a process; more are EMFILE */

static struct dir_stream *dir_stream_map_range(void)
{
    struct dir_stream **range = &shim_state.dir_stream.range, *none = NULL;
    struct dir_stream *at = __atomic_load_n(range, __ATOMIC_ACQUIRE);
    if (at != NULL)
        return at;
    at = sys_mmap(NULL, STREAMS * sizeof *at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_is_error(at))
        return NULL;
    if (__atomic_compare_exchange_n(range, &none, at, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return at;
    sys_munmap(at, STREAMS * sizeof *at);
    return none;
}

void dir_stream_map(void)
{
    dir_stream_map_range();
}

void dir_stream_unmap(void)
{
    struct dir_stream *range = shim_state.dir_stream.range;
    for (unsigned i = 0; range != NULL && i < STREAMS; i++)
        if (range[i].taken != 0)
            return;
    shim_state.dir_stream.range = NULL;
    if (range != NULL)
        sys_munmap(range, STREAMS * sizeof *range);
}

bool dir_stream_is_ours(const DIR *stream)
{
    const struct dir_stream *at = (const struct dir_stream *)stream;
    const struct dir_stream *range = shim_state.dir_stream.range;
    return range != NULL && at >= range && at < range + STREAMS;
}

static struct dir_stream *dir_stream_take(void)
{
    struct dir_stream *at = dir_stream_map_range();
    for (unsigned i = 0; at != NULL && i < STREAMS; i++)
        if (__atomic_load_n(&at[i].taken, __ATOMIC_RELAXED) == 0 && __atomic_exchange_n(&at[i].taken, 1, __ATOMIC_ACQUIRE) == 0)
            return &at[i];
    errno = at != NULL ? EMFILE : ENOMEM;
    return NULL;
}

void dir_stream_free(struct dir_stream *stream)
{
    if (stream->large != NULL)
        sys_munmap(stream->large, STREAM_LARGE);
    stream->large = NULL;
    __atomic_store_n(&stream->taken, 0, __ATOMIC_RELEASE);
}

static DIR *dir_stream_give_up(DIR *libc, int error)
{
    REAL(closedir)(libc);
    errno = error;
    return NULL;
}

static bool dir_stream_is_removed(int fd)
{
    struct statx stat;
    return sys_statx(fd, "", AT_EMPTY_PATH, STATX_NLINK, &stat) == 0 && stat.stx_nlink == 0;
}

bool dir_stream_finds_removed(int code, int fd)
{
    return (code == -ENOENT || code == -ESTALE) && dir_stream_is_removed(fd);
}

DIR *dir_stream_over(DIR *libc)
{
    struct names_root *root = NULL;
    struct dirid id;
    int saved = errno;
    if (libc == NULL)
        return NULL;
    int fd = REAL(dirfd)(libc);
    int code = root_of_directory(fd, "", AT_EMPTY_PATH, &root, &id, NULL);
    errno = saved;
    if (code == 0 || dir_stream_finds_removed(code, fd))
        return libc;
    if (code < 0)
        return dir_stream_give_up(libc, -code);
    struct dir_stream *stream = dir_stream_take();
    if (stream == NULL)
        return dir_stream_give_up(libc, errno);
    stream->libc = libc;
    stream->at = (struct listing_at){.root = root, .id = id, .fd = fd};
    stream->told = 0;
    stream->next = stream->filled = 0;
    return (DIR *)stream;
}

/* Filling a buffer: entries that are pending or dying, or may go without a call (NFS), are marked, and looked at afterwards. */
struct filling {
    char *to;
    size_t size, used;
    uint64_t position;
    bool doubtful;
};

#define DOUBTFUL 255 /* no DT_ of any system */

static bool dir_stream_put(struct filling *filling, const char *name, size_t length, uint8_t type, uint64_t ino, uint64_t after)
{
    size_t size = (offsetof(struct dirent64, d_name) + length + 1 + 7) & ~(size_t)7;
    if (size > filling->size - filling->used)
        return false;
    struct dirent64 *entry = (struct dirent64 *)(filling->to + filling->used);
    memset(entry, 0, size);
    entry->d_ino = ino;
    entry->d_off = (off64_t)after;
    entry->d_reclen = (unsigned short)size;
    entry->d_type = type;
    memcpy(entry->d_name, name, length);
    filling->used += size;
    filling->position = after;
    return true;
}

static int dir_stream_each(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct filling *filling = context;
    bool doubtful = entry->state != RECORD_LIVE || (entry->branch != 0 && layout_is_held_open(name, length));
    if (!dir_stream_put(filling, name, length, doubtful ? DOUBTFUL : entry->type, entry->ino, hash + 1))
        return 1;
    filling->doubtful |= doubtful;
    return 0;
}

static void dir_stream_put_dots(struct filling *filling, int fd)
{
    static const char *const dots[] = {".", ".."};
    struct statx stat;
    while (filling->position < 2) {
        const char *dot = dots[filling->position];
        uint64_t ino = sys_statx(fd, dot, 0, STATX_INO, &stat) == 0 ? stat.stx_ino : 1;
        if (!dir_stream_put(filling, dot, strlen(dot), DT_DIR, ino, filling->position + 1))
            return;
    }
}

/* As its home has it: 0, or it is not there: -ENOENT. */
static int dir_stream_take_known(const struct target *t, struct dirent64 *entry)
{
    entry->d_type = t->found.entry.type;
    entry->d_ino = t->found.entry.ino;
    return t->found.known ? 0 : -ENOENT;
}

static int dir_stream_ask_home(struct target *t, struct dirent64 *entry)
{
    int code = target_settled(t);
    return code != 0 ? code : dir_stream_take_known(t, entry);
}

/* -EACCES: names may be read here, files may not be looked at. Its home knows. */
static int dir_stream_look_at_file(struct target *t, struct dirent64 *entry)
{
    struct statx stat;
    int code = target_place(t);
    if (code == 0)
        code = sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &stat);
    if (code == -ENOENT && target_was_away(t) && process_root_has_moved(t->root, t->path, t->scratch->text[0]))
        return dir_stream_ask_home(t, entry);
    if (code != 0)
        return code == -ENOENT ? code : dir_stream_ask_home(t, entry);
    entry->d_type = (unsigned char)IFTODT(stat.stx_mode);
    entry->d_ino = stat.stx_ino;
    return 0;
}

/* If it has gone, its home hears of that. */
static int dir_stream_look_at_held_open(struct target *t, struct dirent64 *entry)
{
    struct statx stat;
    const int code =
        (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &stat));
    return code != 0 ? code : dir_stream_take_known(t, entry);
}

/* A branch that was lost has another name, and its number still. */
static bool dir_stream_is_the_same(const struct view_found *now, const struct view_found *before)
{
    return now->known && record_same(&now->entry, &before->entry) && now->entry.state == before->entry.state &&
           (now->entry.branch == 0 || strcmp(now->branch, before->branch) == 0);
}

/* A name whose create or unlink is under way is there if its file is: 0. Where its home knows by now, the file is not looked
 * at: that would be a look into a leaf that its owner is at work in. A file that is not where it was known to be has come
 * elsewhere if by now something else is known. */
static int dir_stream_look_at_name(struct target *t, struct dirent64 *entry)
{
    HOOK("list-pending");
    int code = target_peek(t);
    if (code == 0 && t->found.known && t->found.entry.state == RECORD_LIVE)
        return layout_is_held_open(t->name, t->length) ? dir_stream_look_at_held_open(t, entry)
                                                       : dir_stream_take_known(t, entry);
    for (int i = 0; code == 0 && i < LOOKS_MAX; i++) {
        const struct view_found before = t->found;
        HOOK("list-doubts");
        code = t->found.known ? dir_stream_look_at_file(t, entry) : -ENOENT;
        if (code != -ENOENT || !t->found.known || BROKEN("peeked-once"))
            return code;
        code = target_peek(t);
        if (code == 0 && dir_stream_is_the_same(&t->found, &before))
            return target_may_be_missed(t) ? dir_stream_ask_home(t, entry) : -ENOENT;
    }
    return code == 0 ? dir_stream_ask_home(t, entry) : code;
}

/* 0; it is not there: -ENOENT. Another -errno: it cannot be told. */
static int dir_stream_resolve(const struct listing_at *at, struct dirent64 *entry)
{
    struct target t;
    int code = target_in_directory(&t, at->root, at->id, at->fd, entry->d_name, strlen(entry->d_name));
    if (code != 0)
        return code;
    code = dir_stream_look_at_name(&t, entry);
    scratch_give(t.scratch);
    return code;
}

/* How much is kept. A listing that leaves out what may be there is none. */
static long dir_stream_resolve_doubtful(const struct listing_at *at, char *bytes, size_t used)
{
    size_t kept = 0, size;
    for (size_t i = 0; i < used; i += size) {
        struct dirent64 *entry = (struct dirent64 *)(bytes + i);
        int code = entry->d_type == DOUBTFUL ? dir_stream_resolve(at, entry) : 0;
        size = entry->d_reclen;
        if (code != 0 && code != -ENOENT)
            return code;
        if (code != 0)
            continue;
        memmove(bytes + kept, entry, size);
        kept += size;
    }
    return (long)kept;
}

/* 1: there is more. */
static int dir_stream_list_some(const struct listing_at *at, struct filling *filling)
{
    size_t used = filling->used;
    uint64_t from = filling->position;
    int code;
    do
        code = names_list(at->root, at->id, &from, filling->size, dir_stream_each, filling);
    while (code == 0 && from != 0 && filling->used == used);
    return code == 0 && from != 0 ? 1 : code;
}

/* The daemons may have forgotten the directory, as they do when one of them dies: then it is loaded again. One that
 * was removed has no names. */
static int dir_stream_list_names(const struct listing_at *at, struct filling *filling)
{
    const struct filling before = *filling;
    int code = -ESTALE;
    for (int i = 0; code == -ESTALE && i < LOADS_MAX; i++) {
        *filling = before;
        code = dir_stream_list_some(at, filling);
        int loaded = code == -ESTALE ? directory_load(at->fd, at->root, at->id) : 1;
        if (loaded != 1)
            return dir_stream_is_removed(at->fd) ? 0 : loaded < 0 ? loaded : -EIO;
    }
    return code;
}

/* 1; 0: it was removed, and not even the dots are left; or -errno. */
static int dir_stream_begin(const struct listing_at *at)
{
    const uint64_t now = clock_files();
    struct statx stat;
    int code = sys_statx(at->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_NLINK | OUTSIDERS_MASK, &stat);
    if (code == 0 && stat.stx_nlink == 0)
        return 0;
    if (code == 0 && at->position == 0)
        code = outsiders_see(at->root, at->id, at->fd, &stat, now);
    if (code == 0)
        return 1;
    return dir_stream_is_removed(at->fd) ? 0 : code;
}

long dir_stream_fill(struct listing_at *at, char *to, size_t size)
{
    struct filling filling = {.to = to, .size = size, .position = at->position};
    int code;
    long kept;
    if (at->end != 0 && at->position == at->end)
        return 0; /* that was told with the names: the daemons need not be asked again */
    code = at->position < 2 ? dir_stream_begin(at) : 1;
    if (code <= 0)
        return code;
    do {
        filling.used = 0;
        filling.doubtful = false;
        dir_stream_put_dots(&filling, at->fd);
        code = filling.position < 2 ? 1 : dir_stream_list_names(at, &filling);
        if (code < 0)
            return code;
        if (code == 1 && filling.used == 0)
            return -EINVAL;
        kept = filling.doubtful ? dir_stream_resolve_doubtful(at, to, filling.used) : (long)filling.used;
        if (kept < 0)
            return kept;
    } while (kept == 0 && filling.used > 0);
    at->position = filling.position;
    at->end = code == 0 ? at->position : 0;
    return kept;
}

static char *dir_stream_buffer_of(struct dir_stream *stream)
{
    return stream->large != NULL ? stream->large : stream->first;
}

/* What was not told by the first buffer is worth a large one. Without the memory the first one does. */
static long dir_stream_fill_page(struct dir_stream *stream)
{
    bool goes_on = stream->at.position != 0 && stream->at.position != stream->at.end;
    if (goes_on && stream->large == NULL) {
        char *large = sys_mmap(NULL, STREAM_LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stream->large = sys_is_error(large) ? NULL : large;
    }
    return dir_stream_fill(&stream->at, dir_stream_buffer_of(stream), stream->large != NULL ? STREAM_LARGE : STREAM_BUFFER);
}

struct dirent64 *dir_stream_next(struct dir_stream *stream)
{
    if (stream->next == stream->filled) {
        long filled = dir_stream_fill_page(stream);
        stream->next = stream->filled = 0;
        if (filled < 0)
            errno = (int)-filled;
        if (filled <= 0)
            return NULL;
        stream->filled = (size_t)filled;
    }
    struct dirent64 *entry = (struct dirent64 *)(dir_stream_buffer_of(stream) + stream->next);
    stream->next += entry->d_reclen;
    stream->told = (uint64_t)entry->d_off;
    return entry;
}
