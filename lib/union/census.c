/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/census.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/clock.h"
#include "union/disk.h"

#define CENSUS_BUFFER 32768
#define CENSUS_NO_PARENT UINT32_MAX

/* Every directory is a place: an inode number, a name and the place above. In the order of the walk, which
 * reads them from the front while it appends at the end. */
struct place {
    uint64_t ino;
    uint32_t parent;
    uint32_t name; /* offset in names */
};

struct walk {
    struct place *places;
    size_t count, room;
    char *names;
    size_t names_length, names_room;
    uint64_t began, took; /* ns */
};

/* A walk belongs to whom took it out of here; who finds none makes one, who puts a second one back frees the
 * first. */
struct census {
    struct walk *walk;
};

struct census *census_create(void)
{
    return calloc(1, sizeof(struct census));
}

static void walk_destroy(struct walk *walk)
{
    if (!walk)
        return;
    free(walk->places);
    free(walk->names);
    free(walk);
}

void census_destroy(struct census *census)
{
    if (!census)
        return;
    walk_destroy(census->walk);
    free(census);
}

static bool make_room(struct walk *walk, size_t name_size)
{
    if (walk->count == walk->room) {
        size_t room = walk->room ? 2 * walk->room : 64;
        void *more = realloc(walk->places, room * sizeof *walk->places);
        if (!more)
            return false;
        walk->places = more;
        walk->room = room;
    }
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

static bool walk_add(struct walk *walk, uint64_t ino, uint32_t parent, const char *name)
{
    size_t size = strlen(name) + 1;
    if (walk->count == CENSUS_MAX || walk->names_length > UINT32_MAX - size || !make_room(walk, size))
        return false;
    walk->places[walk->count++] = (struct place){ino, parent, (uint32_t)walk->names_length};
    memcpy(walk->names + walk->names_length, name, size);
    walk->names_length += size;
    return true;
}

/* Writes the path of a place from its end. NULL: longer than a path can be. */
static const char *place_path(const struct walk *walk, size_t index, char path[PATH_MAX])
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

static bool on_device(int fd, uint64_t device)
{
    struct statx stat;
    return sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stat) == 0 && disk_device(&stat) == device;
}

/* Appends the directories in place `index`. What cannot be read holds no owner that could be verified. */
static void walk_visit(struct walk *walk, const struct union_root *root, int root_fd, size_t index,
                       void *buffer)
{
    char path[PATH_MAX];
    const char *at = place_path(walk, index, path);
    struct disk_scan scan;
    const struct disk_name *one;
    if (!at || disk_scan_init(&scan, root_fd, at, buffer, CENSUS_BUFFER) < 0)
        return;
    if (on_device(scan.fd, root->device))
        while (disk_scan_next(&scan, &one) > 0)
            if ((one->type == DT_DIR || one->type == DT_UNKNOWN) &&
                !layout_is_ours(one->name, strlen(one->name), index == 0))
                walk_add(walk, one->ino, (uint32_t)index, one->name);
    disk_scan_finish(&scan);
}

static struct walk *walk_create(const struct union_root *root, int root_fd)
{
    struct walk *walk = calloc(1, sizeof *walk);
    void *buffer = malloc(CENSUS_BUFFER);
    if (walk)
        walk->began = clock_monotonic();
    if (walk && buffer && walk_add(walk, root->id.ino, CENSUS_NO_PARENT, ""))
        for (size_t i = 0; i < walk->count; i++)
            walk_visit(walk, root, root_fd, i, buffer);
    free(buffer);
    if (walk)
        walk->took = clock_monotonic() - walk->began;
    return walk;
}

bool census_is_owner(int root, const char *path, const struct marker *marker)
{
    int fd = sys_openat(root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    struct statx stat;
    struct marker there;
    bool owner = sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stat) == 0 &&
                 dirid_equal(dirid_of(&stat), marker->directory) && marker_read(fd, &there) == 0 &&
                 there.id == marker->id;
    sys_close(fd);
    return owner;
}

static bool walk_holds(const struct walk *walk, int root_fd, const struct marker *marker)
{
    for (size_t i = 0; i < walk->count; i++) {
        if (walk->places[i].ino != marker->directory.ino)
            continue;
        char path[PATH_MAX];
        const char *at = place_path(walk, i, path);
        if (at && census_is_owner(root_fd, at, marker))
            return true;
    }
    return false;
}

/* A "no" of an old walk is not worth much: the directory may have come or moved since. Walking again at most
 * a tenth of the time keeps a restored tree, whose every directory asks, from walking without end. */
static bool walk_is_old(const struct walk *walk)
{
    uint64_t lasts = 10 * walk->took;
    return clock_monotonic() - walk->began > (lasts > CLOCK_SECOND ? lasts : CLOCK_SECOND);
}

static bool ask(struct census *census, const struct union_root *root, int root_fd,
                const struct marker *marker)
{
    struct walk *walk = __atomic_exchange_n(&census->walk, NULL, __ATOMIC_ACQ_REL);
    bool holds = walk && walk_holds(walk, root_fd, marker);
    if (!holds && (!walk || walk_is_old(walk))) {
        walk_destroy(walk);
        walk = walk_create(root, root_fd);
        holds = walk && walk_holds(walk, root_fd, marker);
    }
    walk_destroy(__atomic_exchange_n(&census->walk, walk, __ATOMIC_ACQ_REL));
    return holds;
}

bool census_holds_owner(const struct union_root *root, const struct marker *marker)
{
    int fd = sys_openat(AT_FDCWD, root->path, DISK_DIRECTORY, 0);
    if (fd < 0)
        return false;
    bool holds = census_is_owner(fd, marker->path, marker) || ask(root->census, root, fd, marker);
    sys_close(fd);
    return holds;
}
