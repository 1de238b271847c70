/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/census.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "union/disk.h"
#include "union/identity.h"

#define CENSUS_BUFFER 32768
#define CENSUS_NO_PARENT UINT32_MAX

/* Every directory is a place: a name and the place above. In the order of the walk, which reads them from the
 * front while it appends at the end. */
struct place {
    uint32_t parent;
    uint32_t name; /* offset in names */
};

/* A directory with a marker. */
struct mark {
    uint64_t id;
    uint32_t place;
};

struct walk {
    struct place *places;
    size_t count, room;
    struct mark *marks;
    size_t mark_count, mark_room;
    char *names;
    size_t names_length, names_room;
    uint64_t began, took; /* ns */
    int error;            /* 0, or the -errno with which something could not be read that may hold an owner */
};

/* A walk belongs to the thread that took it out of here; a thread that finds none makes one; one that puts a second one back
 * frees the first. */
struct census {
    struct walk *walk;
    pthread_mutex_t claims;
};

struct census *census_create(void)
{
    struct census *census = calloc(1, sizeof *census);
    if (census)
        pthread_mutex_init(&census->claims, NULL);
    return census;
}

static void census_walk_destroy(struct walk *walk)
{
    if (!walk)
        return;
    free(walk->places);
    free(walk->marks);
    free(walk->names);
    free(walk);
}

void census_destroy(struct census *census)
{
    if (!census)
        return;
    census_walk_destroy(census->walk);
    pthread_mutex_destroy(&census->claims);
    free(census);
}

bool census_has_walked(const struct census *census)
{
    return __atomic_load_n(&census->walk, __ATOMIC_ACQUIRE) != NULL;
}

void census_lock(struct census *census)
{
    pthread_mutex_lock(&census->claims);
}

void census_unlock(struct census *census)
{
    pthread_mutex_unlock(&census->claims);
}

/* The items, with room for one more. NULL: no memory, and they are where they were. */
static void *census_grown(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t twice = *room ? 2 * *room : 64;
    void *more = realloc(items, twice * size);
    if (more)
        *room = twice;
    return more;
}

static bool census_make_room(struct walk *walk, size_t name_size)
{
    struct place *places = census_grown(walk->places, walk->count, &walk->room, sizeof *places);
    if (!places)
        return false;
    walk->places = places;
    if (walk->names_room - walk->names_length < name_size) {
        size_t room = 2 * walk->names_room + name_size;
        void *more = realloc(walk->names, room);
        if (!more)
            return false;
        walk->names = more;
        walk->names_room = room;
    }
    return true;
}

/* What is not there, or may not be looked at, is no owner that could be verified. */
static void census_walk_note(struct walk *walk, int code)
{
    if (walk->error == 0)
        walk->error = disk_look_failure(code);
}

/* Beyond CENSUS_MAX nothing is looked for. */
static void census_walk_add(struct walk *walk, uint32_t parent, const char *name)
{
    size_t size = strlen(name) + 1;
    if (walk->count == CENSUS_MAX || walk->names_length > UINT32_MAX - size)
        return;
    if (!census_make_room(walk, size)) {
        census_walk_note(walk, -ENOMEM);
        return;
    }
    walk->places[walk->count++] = (struct place){parent, (uint32_t)walk->names_length};
    memcpy(walk->names + walk->names_length, name, size);
    walk->names_length += size;
}

/* What is no marker names no mirrors. */
static void census_walk_mark(struct walk *walk, int directory, size_t index)
{
    struct marker marker;
    const int error = marker_read(directory, &marker);
    struct mark *marks = error == 0 ? census_grown(walk->marks, walk->mark_count, &walk->mark_room, sizeof *marks) : NULL;
    if (marks == NULL) {
        census_walk_note(walk, error == 0 ? -ENOMEM : error);
        return;
    }
    walk->marks = marks;
    walk->marks[walk->mark_count++] = (struct mark){marker.id, (uint32_t)index};
}

/* Writes the path of a place from its end. NULL: longer than a path can be. */
static const char *census_place_path(const struct walk *walk, size_t index, char path[PATH_MAX])
{
    size_t at = PATH_MAX - 1;
    path[at] = '\0';
    for (; walk->places[index].parent != CENSUS_NO_PARENT; index = walk->places[index].parent) {
        const char *name = walk->names + walk->places[index].name;
        size_t length = strlen(name);
        if (length + 1 > at)
            return NULL;
        if (path[at] != '\0')
            path[--at] = '/';
        at -= length;
        memcpy(path + at, name, length);
    }
    return path[at] ? path + at : ".";
}

/* 1, 0 or -errno. */
static int census_on_device(int fd, uint64_t device)
{
    struct statx stat;
    const int error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stat);
    return error < 0 ? error : disk_device(&stat) == device;
}

/* Appends the directories in place `index`. */
static void census_walk_visit(struct walk *walk, const struct union_root *root, int root_fd, size_t index, void *buffer)
{
    char path[PATH_MAX];
    const char *at = census_place_path(walk, index, path);
    struct disk_scan scan;
    const struct disk_name *one;
    bool marked = false;
    int more = at ? disk_scan_init(&scan, root_fd, at, buffer, CENSUS_BUFFER) : -ENAMETOOLONG;
    census_walk_note(walk, more);
    if (more < 0)
        return;
    more = census_on_device(scan.fd, root->device);
    while (more > 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        bool ours = layout_is_ours(one->name, strlen(one->name), index == 0);
        marked |= ours && !strcmp(one->name, LAYOUT_MARKER);
        if ((one->type == DT_DIR || one->type == DT_UNKNOWN) && !ours)
            census_walk_add(walk, (uint32_t)index, one->name);
    }
    census_walk_note(walk, more);
    if (marked)
        census_walk_mark(walk, scan.fd, index);
    disk_scan_finish(&scan);
}

static struct walk *census_walk_create(const struct union_root *root, int root_fd)
{
    struct walk *walk = calloc(1, sizeof *walk);
    void *buffer = malloc(CENSUS_BUFFER);
    if (walk)
        walk->began = clock_monotonic();
    if (walk && !buffer)
        walk->error = -ENOMEM;
    if (walk && buffer)
        census_walk_add(walk, CENSUS_NO_PARENT, "");
    for (size_t i = 0; walk && buffer && i < walk->count; i++)
        census_walk_visit(walk, root, root_fd, i, buffer);
    free(buffer);
    if (walk)
        walk->took = clock_monotonic() - walk->began;
    return walk;
}

/* Was it written in another root, of which this one is a copy? */
static bool census_came_along(const struct union_root *root, const struct marker *marker)
{
    return marker->root.ino != 0 && !dirid_equal(marker->root, root->id);
}

/* What a directory has to do with the mirrors of an id; a higher value goes before a lower one. */
enum standing {
    NOTHING,  /* no marker of that id */
    COPY,     /* a marker that was written for another directory, */
    IN_PLACE, /* ... in whose place it is */
    OWNER,
};

/* An enum standing, or -errno. */
static int census_standing_of(const struct union_root *root, int root_fd, const char *path, uint64_t id)
{
    int fd = sys_openat(root_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return disk_look_failure(fd);
    struct statx stat;
    struct marker marker;
    int standing = NOTHING, error = identity_stat(root->id, fd, "", AT_EMPTY_PATH, &stat);
    if (error == 0)
        error = marker_read(fd, &marker);
    if (error == 0 && marker.id == id) {
        standing = strcmp(marker.path, path) == 0 ? IN_PLACE : COPY;
        if (dirid_equal(dirid_of(&stat), marker.directory) || (standing == IN_PLACE && census_came_along(root, &marker)))
            standing = OWNER;
    }
    sys_close(fd);
    return error < 0 ? disk_look_failure(error) : standing;
}

/* The directory that asks: it is no owner, and has a marker of this id. */
struct question {
    const struct union_root *root;
    int root_fd;
    uint64_t id;
    const char *path;
    enum standing standing;
};

/* Of copies, none of which has the mirrors yet, all must come to the same decision. 1, 0 or -errno. */
static int census_goes_before(const struct question *question, const char *path)
{
    int order = strcmp(path, question->path);
    if (order == 0)
        return 0;
    const int standing = census_standing_of(question->root, question->root_fd, path, question->id);
    if (standing < 0)
        return standing;
    return standing > (int)question->standing || (standing == (int)question->standing && order < 0);
}

/* 1, 0 or -errno: none does that could be looked at. */
static int census_walk_holds(const struct walk *walk, const struct question *question)
{
    int error = walk->error;
    for (size_t i = 0; i < walk->mark_count; i++) {
        if (walk->marks[i].id != question->id)
            continue;
        char path[PATH_MAX];
        const char *at = census_place_path(walk, walk->marks[i].place, path);
        const int goes_before = at ? census_goes_before(question, at) : 0;
        if (goes_before > 0)
            return 1;
        error = error == 0 ? goes_before : error;
    }
    return error;
}

/* A "no" of an old walk is not worth much: the directory may have come or moved since. Walking again at most
 * a tenth of the time keeps a restored tree, whose every directory asks, from walking without end. */
static bool census_walk_is_old(const struct walk *walk)
{
    uint64_t lasts = 10 * walk->took;
    return clock_monotonic() - walk->began > (lasts > CLOCK_SECOND ? lasts : CLOCK_SECOND);
}

/* A walk that did not see all is not kept. */
static int census_ask(const struct question *question)
{
    struct census *census = question->root->census;
    struct walk *walk = __atomic_exchange_n(&census->walk, NULL, __ATOMIC_ACQ_REL);
    int holds = walk ? census_walk_holds(walk, question) : 0;
    if (holds <= 0 && (!walk || census_walk_is_old(walk))) {
        census_walk_destroy(walk);
        walk = census_walk_create(question->root, question->root_fd);
        holds = walk ? census_walk_holds(walk, question) : -ENOMEM;
    }
    if (walk && walk->error < 0) {
        census_walk_destroy(walk);
        walk = NULL;
    }
    census_walk_destroy(__atomic_exchange_n(&census->walk, walk, __ATOMIC_ACQ_REL));
    return holds;
}

int census_holds_owner(const struct union_root *root, const struct marker *marker, const char *path)
{
    bool is_there = !strcmp(marker->path, path); /* this very directory is where it says */
    if (is_there && census_came_along(root, marker))
        return 0;
    int fd = sys_openat(AT_FDCWD, root->path, DISK_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    const struct question question = {
        .root = root, .root_fd = fd, .id = marker->id, .path = path, .standing = is_there ? IN_PLACE : COPY};
    const int standing = census_standing_of(root, fd, marker->path, marker->id);
    const int holds = standing > (int)question.standing ? 1 : standing < 0 ? standing : census_ask(&question);
    sys_close(fd);
    return holds;
}
