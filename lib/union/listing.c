/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hook.h"
#include "union/census.h"
#include "union/conflict.h"
#include "union/disk.h"
#include "union/identity.h"
#include "union/sort.h"

#define LISTING_BUFFER (256 * 1024)               /* for the names of one directory */
#define LISTING_FIRST 4096                        /* of the buffer, for a first part: if there is more, the source is asked */
#define LISTING_RECORD_MAX 280                    /* of getdents64: what does not fit any more into a buffer that it fills */
#define LISTING_LEAVES_BUFFER 32768               /* for the leaves of one mirror */
#define LISTING_LEAF_MAX (RECORD_MIRROR_MAX + 16) /* the path of a leaf below its branch */
#define LISTING_ARENA_FIRST 4096
#define LISTING_ARENA_MAX (1 << 20)

struct listing_arena {
    struct listing_arena *next;
    size_t size, used;
    char bytes[];
};

/* A listing while it is made. */
struct reader {
    struct listing *listing;
    const struct union_root *root;
    int directory;
    const char *path;
    uint16_t own_branch;
    unsigned flags;
    bool in_root;
    size_t room; /* of listing->names */
    void *buffer, *leaves_buffer;
};

char *listing_keep(struct listing *listing, const char *name, size_t length)
{
    struct listing_arena *arena = listing->arena;
    if (!arena || arena->size - arena->used < length + 1) {
        size_t size = arena ? arena->size * 2 : LISTING_ARENA_FIRST;
        if (size > LISTING_ARENA_MAX)
            size = LISTING_ARENA_MAX;
        if (!(arena = malloc(sizeof *arena + size)))
            return NULL;
        *arena = (struct listing_arena){.next = listing->arena, .size = size};
        listing->arena = arena;
    }
    char *to = arena->bytes + arena->used;
    memcpy(to, name, length);
    to[length] = '\0';
    arena->used += length + 1;
    return to;
}

static bool listing_make_room(struct reader *reader)
{
    if (reader->listing->count < reader->room)
        return true;
    size_t room = reader->room ? 2 * reader->room : 64;
    void *more = realloc(reader->listing->names, room * sizeof *reader->listing->names);
    if (!more)
        return false;
    reader->listing->names = more;
    reader->room = room;
    return true;
}

/* A physical directory while its names are read. */
struct part {
    struct reader *reader;
    struct disk_scan *scan; /* NULL: it is not open */
    uint16_t branch;
    uint32_t leaf;
};

/* File systems that keep no type in their directories answer DT_UNKNOWN; a source does not. */
static uint8_t listing_type_of(const struct part *part, const char *name, uint8_t type)
{
    struct statx stat;
    if (type != DT_UNKNOWN || part->scan == NULL ||
        sys_statx(part->scan->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &stat) < 0)
        return type;
    return (uint8_t)IFTODT(stat.stx_mode);
}

/* listing_tell */
static int listing_add(void *to, const char *name, size_t length, uint64_t ino, uint8_t type)
{
    const struct part *part = to;
    struct listing *listing = part->reader->listing;
    const char *kept = listing_keep(listing, name, length);
    if (!kept || !listing_make_room(part->reader))
        return -ENOMEM;
    listing->names[listing->count++] = (struct union_name){.name = kept,
                                                           .on_disk = kept,
                                                           .type = listing_type_of(part, kept, type),
                                                           .branch = part->branch,
                                                           .leaf = part->leaf,
                                                           .ino = ino};
    return 0;
}

static const struct listing_source *listing_asked_first(const struct reader *reader)
{
    const struct listing_source *source = reader->root->source;
    return source != NULL && source->is_asked_first ? source : NULL;
}

/* 1: all its names were told, and those that had been read before are forgotten; 0: it is to be read (on); -errno. `directory`
 * and `path` as the source has them. */
static int listing_ask_source(struct part *part, int directory, const char *path, size_t before)
{
    struct listing *listing = part->reader->listing;
    const struct listing_source *source = part->reader->root->source;
    const size_t read = listing->count;
    int answer = source->walk(source->context, directory, path, part->branch, listing_add, part);
    if (answer <= 0) {
        listing->count = read;
        return answer;
    }
    if (read > before)
        memmove(listing->names + before, listing->names + read, (listing->count - read) * sizeof *listing->names);
    listing->count -= read - before;
    return 1;
}

static void listing_note_ours(const struct part *part, const struct disk_name *one, size_t length)
{
    struct listing *listing = part->reader->listing;
    if (part->branch != 0 || length != LAYOUT_UNFINISHED)
        return;
    if (listing_type_of(part, one->name, one->type) == DT_DIR)
        listing->hides = true;
    else
        listing->unfinished = true;
}

static int listing_add_read(struct part *part, const struct disk_name *one)
{
    struct reader *reader = part->reader;
    const size_t length = strlen(one->name);
    if (!layout_is_ours(one->name, length, reader->in_root))
        return listing_add(part, one->name, length, one->ino, one->type);
    listing_note_ours(part, one, length);
    return 0;
}

static int listing_read_on(struct part *part)
{
    const struct disk_name *one;
    int more, error = 0;
    while (error == 0 && (more = disk_scan_next(part->scan, &one)) != 0) {
        if (more < 0)
            return more;
        error = listing_add_read(part, one);
    }
    return error;
}

/* What one call of getdents64 gives. 1 if there is probably more, 0 or -errno. */
static int listing_read_first(struct part *part)
{
    const struct disk_name *one;
    int more = 1, error = 0;
    part->scan->size = LISTING_FIRST;
    do {
        more = disk_scan_next(part->scan, &one);
        if (more > 0)
            error = listing_add_read(part, one);
    } while (error == 0 && more > 0 && part->scan->at < part->scan->filled);
    part->scan->size = LISTING_BUFFER;
    if (error < 0 || more <= 0)
        return error < 0 ? error : more;
    return part->scan->filled + LISTING_RECORD_MAX > LISTING_FIRST;
}

/* A small directory is read as quickly as its names are proven; of a large one, a first part has been read when that is seen.
 */
static int listing_read_names(struct part *part)
{
    const struct listing_source *source = part->reader->root->source;
    const size_t before = part->reader->listing->count;
    int more = source == NULL || source->is_asked_first ? 0 : listing_read_first(part);
    if (more == 1)
        more = listing_ask_source(part, part->scan->fd, "", before);
    if (more != 0)
        return more < 0 ? more : 0;
    return listing_read_on(part);
}

static int listing_read_trunk(struct reader *reader)
{
    struct disk_scan scan;
    struct part part = {.reader = reader};
    int known = listing_asked_first(reader) ? listing_ask_source(&part, reader->directory, "", reader->listing->count) : 0;
    if (known != 0)
        return known < 0 ? known : 0;
    part.scan = &scan;
    int fd = disk_reopen(reader->directory);
    if (fd == -EACCES) {
        reader->listing->trunk_unlisted = true;
        return 0;
    }
    if (fd < 0)
        return fd;
    disk_scan_of(&scan, fd, reader->buffer, LISTING_BUFFER);
    int error = listing_read_names(&part);
    disk_scan_finish(&scan);
    return error;
}

static int listing_count_leaf(struct listing *listing, uint32_t leaf, size_t count)
{
    if (leaf >= listing->leaves) {
        size_t *more = realloc(listing->leaf_counts, (leaf + (size_t)1) * sizeof *more);
        if (!more)
            return -ENOMEM;
        memset(more + listing->leaves, 0, (leaf + (size_t)1 - listing->leaves) * sizeof *more);
        listing->leaf_counts = more;
        listing->leaves = leaf + (size_t)1;
    }
    listing->leaf_counts[leaf] = count;
    return 0;
}

/* As listing_ask_source. */
static int listing_ask_leaf(struct part *part)
{
    char path[LISTING_LEAF_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, part->reader->listing->marker.mirror);
    text_add(&t, "/");
    text_number(&t, part->leaf, 10);
    return listing_ask_source(part, -1, path, part->reader->listing->count);
}

/* What went since its name was read, or is no directory, is no leaf. */
static int listing_open_leaf(const struct part *closed, int mirror, const char *path)
{
    struct disk_scan scan;
    struct part part = *closed;
    int error = disk_scan_init(&scan, mirror, path, part.reader->buffer, LISTING_BUFFER);
    if (error < 0)
        return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ? 0 : error;
    part.scan = &scan;
    error = listing_read_names(&part);
    disk_scan_finish(&scan);
    return error;
}

/* `path` is absolute, or relative to `mirror`. */
static int listing_read_leaf(struct reader *reader, int mirror, const char *path, uint16_t branch, uint32_t leaf)
{
    struct part part = {.reader = reader, .branch = branch, .leaf = leaf};
    const size_t before = reader->listing->count;
    int answer = listing_asked_first(reader) ? listing_ask_leaf(&part) : 0;
    if (answer == 0)
        answer = listing_open_leaf(&part, mirror, path);
    if (answer >= 0 && branch == reader->own_branch)
        answer = listing_count_leaf(reader->listing, leaf, reader->listing->count - before);
    return answer < 0 ? answer : 0;
}

/* Leaves being made have other names than numbers. */
static int listing_read_leaves(struct reader *reader, struct disk_scan *scan, uint16_t branch)
{
    const struct disk_name *one;
    uint32_t leaf;
    int more, error = 0;
    while (error == 0 && (more = disk_scan_next(scan, &one)) != 0) {
        if (more < 0)
            return more;
        if (layout_number(one->name, strlen(one->name), &leaf) && leaf < LAYOUT_LEAF_MAX)
            error = listing_read_leaf(reader, scan->fd, one->name, branch, leaf);
    }
    return error;
}

/* The leaves of a mirror that the source knows. */
struct leaves {
    uint32_t *leaves;
    size_t count, room;
};

/* listing_tell. Names that are no numbers are those of leaves that are being made. */
static int listing_note_leaf(void *to, const char *name, size_t length, uint64_t ino, uint8_t type)
{
    struct leaves *leaves = to;
    uint32_t leaf;
    (void)ino, (void)type;
    if (!layout_number(name, length, &leaf) || leaf >= LAYOUT_LEAF_MAX)
        return 0;
    if (leaves->count == leaves->room) {
        const size_t room = leaves->room > 0 ? 2 * leaves->room : 16;
        uint32_t *more = realloc(leaves->leaves, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        leaves->leaves = more;
        leaves->room = room;
    }
    leaves->leaves[leaves->count++] = leaf;
    return 0;
}

static int listing_read_known_leaf(struct reader *reader, const char *mirror, uint16_t branch, uint32_t leaf)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, mirror);
    text_add(&t, "/");
    text_number(&t, leaf, 10);
    return text_ok(&t) ? listing_read_leaf(reader, AT_FDCWD, path, branch, leaf) : -ENAMETOOLONG;
}

/* A mirror, at that path, whose leaves are known without reading it: 1; 0: it is to be read; -errno. */
static int listing_read_known_mirror(struct reader *reader, const char *path, uint16_t branch)
{
    const struct listing_source *source = listing_asked_first(reader);
    struct leaves leaves = {0};
    if (source == NULL)
        return 0;
    int answer = source->walk(source->context, -1, reader->listing->marker.mirror, branch, listing_note_leaf, &leaves);
    for (size_t i = 0; answer == 1 && i < leaves.count; i++) {
        const int error = listing_read_known_leaf(reader, path, branch, leaves.leaves[i]);
        answer = error < 0 ? error : 1;
    }
    free(leaves.leaves);
    return answer;
}

static int listing_read_mirror(struct reader *reader, uint16_t branch)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    layout_mirror(&t, reader->root->path, reader->root->branches[branch - 1], reader->listing->marker.mirror);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    const int known = listing_read_known_mirror(reader, path, branch);
    if (known != 0)
        return known < 0 ? known : 0;
    struct disk_scan scan;
    struct statx parent, stat;
    int error = disk_scan_init(&scan, AT_FDCWD, path, reader->leaves_buffer, LISTING_LEAVES_BUFFER);
    const size_t root = strlen(reader->root->path) + 1;
    if (error == -ENOENT && reader->root->keeps_names &&
        disk_look_freshly(reader->root->path, path + root, &parent, &stat) == 0)
        error = disk_scan_init(&scan, AT_FDCWD, path, reader->leaves_buffer, LISTING_LEAVES_BUFFER);
    if (error < 0)
        return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ? 0 : error;
    error = listing_read_leaves(reader, &scan, branch);
    disk_scan_finish(&scan);
    return error;
}

static int listing_read_all_mirrors(struct reader *reader)
{
    int error = 0;
    for (size_t i = 1; error == 0 && reader->listing->marked && i <= reader->root->branch_count; i++)
        error = listing_read_mirror(reader, (uint16_t)i);
    return error;
}

static int listing_read_trunk_alone(struct reader *reader)
{
    int error = listing_read_trunk(reader);
    reader->listing->trunk_alone = reader->listing->marked && !reader->listing->unfinished;
    return error < 0 || reader->listing->trunk_alone ? error : listing_read_all_mirrors(reader);
}

/* The trunk last: files leave mirrors for it while others read, as in an export. So each is seen in one of the two; in both, it
 * is one inode, and no conflict. */
static int listing_read_all(struct reader *reader)
{
    if (reader->flags & LISTING_TRUNK)
        return listing_read_trunk_alone(reader);
    int error = listing_read_all_mirrors(reader);
    return error < 0 ? error : listing_read_trunk(reader);
}

/* A marker that cannot be rewritten is judged again next time, with the same result. */
static int listing_claim(struct reader *reader)
{
    struct marker *marker = &reader->listing->marker;
    struct text t;
    text_init(&t, marker->path, sizeof marker->path);
    text_add(&t, reader->path);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    marker->directory = reader->listing->id;
    marker->root = reader->root->id;
    const int settles = union_root_settles(reader->root, reader->flags);
    if (settles > 0)
        marker_replace(reader->directory, marker);
    return settles < 0 ? settles : 0;
}

/* The marker was written for another directory. While that one stands, or another copy of it was taken for
 * what became of it, this is a native copy, and its mirrors are the other's; else this is what became of it,
 * and nothing must be hidden. */
static int listing_judge_foreign(struct reader *reader)
{
    struct listing *listing = reader->listing;
    const int holds = census_holds_owner(reader->root, &listing->marker, reader->path);
    if (holds <= 0)
        return holds < 0 ? holds : listing_claim(reader);
    HOOK("marker-foreign");
    const int settles = union_root_settles(reader->root, reader->flags);
    if (settles > 0)
        marker_remove(reader->directory);
    listing->marked = false;
    return settles < 0 ? settles : 0;
}

static bool listing_is_up_to_date(const struct reader *reader, const struct marker *marker)
{
    bool same_root = marker->root.ino == 0 || dirid_equal(marker->root, reader->root->id);
    return same_root && !strcmp(marker->path, reader->path);
}

/* Of several copies that are judged at the same time one is the first. */
static int listing_judge_marker(struct reader *reader)
{
    struct listing *listing = reader->listing;
    listing->marked = true;
    if (dirid_equal(listing->marker.directory, listing->id))
        return listing_is_up_to_date(reader, &listing->marker) ? 0 : listing_claim(reader);
    if (reader->flags & LISTING_SETTLE)
        census_lock(reader->root->census);
    int error = listing_judge_foreign(reader);
    if (reader->flags & LISTING_SETTLE)
        census_unlock(reader->root->census);
    return error;
}

/* Is what the source says all that matters of the marker? Where its directory was before matters if it is another one. */
static bool listing_knows_marker(const struct reader *reader)
{
    struct marker *marker = &reader->listing->marker;
    struct text t;
    text_init(&t, marker->path, sizeof marker->path);
    text_add(&t, reader->path);
    return text_ok(&t) && dirid_equal(marker->directory, reader->listing->id) && dirid_equal(marker->root, reader->root->id);
}

/* What settles it reads it, since one that says another path is to be rewritten. */
static int listing_read_marker(struct reader *reader)
{
    const struct listing_source *source = reader->flags & LISTING_SETTLE ? NULL : listing_asked_first(reader);
    int answer = source != NULL ? source->marker(source->context, reader->directory, &reader->listing->marker) : 0;
    if (answer < 0 || (answer == 1 && listing_knows_marker(reader)))
        return answer < 0 ? answer : 0;
    return marker_read(reader->directory, &reader->listing->marker);
}

static int listing_identify(struct reader *reader)
{
    struct statx stat;
    struct listing *listing = reader->listing;
    int error = identity_stat(reader->root->id, reader->directory, "", AT_EMPTY_PATH, &stat);
    if (error < 0)
        return error;
    listing->id = dirid_of(&stat);
    reader->in_root = dirid_equal(listing->id, reader->root->id);
    error = listing_read_marker(reader);
    if (error == -ENOENT)
        return 0;
    return error < 0 ? error : listing_judge_marker(reader);
}

static bool listing_is_directory(int at, const char *name)
{
    struct statx stat;
    return sys_statx(at, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &stat) == 0 && S_ISDIR(stat.stx_mode);
}

/* For each name of something unfinished, until it answers other than 0. */
static int listing_each_unfinished(int directory, int (*each)(int at, const char *name, void *context), void *context)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int more, answer = 0, fd = disk_reopen(directory);
    if (fd < 0)
        return fd;
    disk_scan_of(&scan, fd, buffer, sizeof buffer);
    while (answer == 0 && (more = disk_scan_next(&scan, &one)) != 0)
        if (more < 0)
            answer = more;
        else if (layout_is_unfinished(one->name, strlen(one->name)))
            answer = each(scan.fd, one->name, context);
    disk_scan_finish(&scan);
    return answer;
}

/* What else than EISDIR is said of a directory depends on the file system. */
static int listing_sweep_one(int at, const char *name, void *unused)
{
    (void)unused;
    const int error = sys_unlinkat(at, name, 0);
    return error < 0 && listing_is_directory(at, name) ? 0 : error;
}

int listing_sweep(int directory)
{
    return listing_each_unfinished(directory, listing_sweep_one, NULL);
}

static int listing_take_hidden(int at, const char *name, void *to)
{
    if (!listing_is_directory(at, name))
        return 0;
    memcpy(to, name, LAYOUT_UNFINISHED + 1);
    return 1;
}

bool listing_find_hidden(int directory, char name[LAYOUT_UNFINISHED + 1])
{
    return listing_each_unfinished(directory, listing_take_hidden, name) == 1;
}

static int listing_make(struct reader *reader, const uint16_t *branches, size_t count)
{
    int error = listing_identify(reader);
    if (error == 0)
        error = listing_read_all(reader);
    if (error < 0)
        return error;
    struct listing *listing = reader->listing;
    sort_names(listing->names, listing->count);
    const struct conflict_scene scene = {
        .listing = listing, .root = reader->root, .directory = reader->directory, .flags = reader->flags};
    error = conflict_settle(&scene);
    /* After the conflicts, which it may decide. It would keep the directory from being removed. */
    const int settles = error == 0 && listing->unfinished ? union_root_settles(reader->root, reader->flags) : error;
    if (settles > 0)
        listing_sweep(reader->directory);
    return settles < 0 ? settles : 0;
}

typedef int listing_maker(struct reader *, const uint16_t *branches, size_t count);

static int listing_begin(struct reader *reader, listing_maker *make, const uint16_t *branches, size_t count)
{
    reader->buffer = malloc(LISTING_BUFFER);
    reader->leaves_buffer = malloc(LISTING_LEAVES_BUFFER);
    int error = reader->buffer && reader->leaves_buffer ? make(reader, branches, count) : -ENOMEM;
    free(reader->buffer);
    free(reader->leaves_buffer);
    if (error < 0)
        listing_finish(reader->listing);
    return error;
}

int listing_init(struct listing *listing, const struct union_root *root, int directory, const char *path, uint16_t own_branch,
                 unsigned flags)
{
    *listing = (struct listing){0};
    struct reader reader = {
        .listing = listing, .root = root, .directory = directory, .path = path, .own_branch = own_branch, .flags = flags};
    return listing_begin(&reader, listing_make, NULL, 0);
}

static int listing_make_mirrors(struct reader *reader, const uint16_t *branches, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++)
        error = listing_read_mirror(reader, branches[i]);
    return error;
}

int listing_init_mirrors(struct listing *listing, const struct union_root *root, const char *mirror, const uint16_t *branches,
                         size_t count, uint16_t own_branch)
{
    *listing = (struct listing){.marked = true};
    struct reader reader = {.listing = listing, .root = root, .directory = -1, .path = "", .own_branch = own_branch};
    strcpy(listing->marker.mirror, mirror);
    return listing_begin(&reader, listing_make_mirrors, branches, count);
}

void listing_finish(struct listing *listing)
{
    while (listing->arena) {
        struct listing_arena *arena = listing->arena;
        listing->arena = arena->next;
        free(arena);
    }
    free(listing->names);
    free(listing->leaf_counts);
    listing->names = NULL;
    listing->leaf_counts = NULL;
    listing->count = listing->leaves = listing->conflicts = 0;
}

const struct union_name *listing_find(const struct listing *listing, const char *name, size_t length)
{
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct union_name *one = &listing->names[middle];
        int order = strncmp(name, one->name, length);
        if (order == 0 && one->name[length] == '\0')
            return one;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

int listing_where(const struct listing *listing, const struct union_root *root, const char *path, const struct union_name *name,
                  char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    if (name->branch > 0) {
        layout_leaf(&t, root->path, root->branches[name->branch - 1], listing->marker.mirror, name->leaf);
    } else {
        text_add(&t, root->path);
        if (strcmp(path, ".") != 0) {
            text_add(&t, "/");
            text_add(&t, path);
        }
    }
    text_add(&t, "/");
    text_add(&t, name->on_disk);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}
