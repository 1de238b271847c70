/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "home/state.h"
#include "shuntd.h"

int home_create(struct home **to)
{
    struct home *home = calloc(1, sizeof *home);
    if (home == NULL)
        return -ENOMEM;
    list_init(&home->flights);
    list_init(&home->woken);
    list_init(&home->changed);
    *to = home;
    return 0;
}

static void free_parked(struct link *waiting)
{
    for (struct link *link; (link = list_take(waiting)) != NULL;)
        free(LINK_OF(link, struct home_parked, link));
}

static void dir_free(struct home_dir *dir)
{
    free_parked(&dir->waiting);
    home_shares_free(dir);
    free(dir->path);
    free(dir);
}

void home_destroy(struct home *home)
{
    if (home == NULL)
        return;
    for (struct link *link; (link = list_take(&home->flights)) != NULL;) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        free_parked(&flight->waiting);
        free(flight);
    }
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct home_dir *dir = home->dirs[i], *next; dir != NULL; dir = next) {
            next = dir->next;
            dir_free(dir);
        }
    free_parked(&home->woken);
    free(home);
}

static struct home_dir **bucket_of(struct home *home, struct dirid id)
{
    return &home->dirs[(id.ino * 0x9e3779b97f4a7c15ull ^ id.birth) >> 32 & (HOME_BUCKETS - 1)];
}

struct home_dir *home_dir_find(struct home *home, struct dirid id)
{
    struct home_dir *dir = *bucket_of(home, id);
    while (dir != NULL && !dirid_equal(dir->id, id))
        dir = dir->next;
    return dir;
}

struct home_dir *home_dir_add(struct home *home, struct dirid id, const char *path)
{
    struct home_dir *dir = home_dir_find(home, id);
    if (dir != NULL)
        return home_dir_set_path(dir, path) == 0 ? dir : NULL;
    dir = calloc(1, sizeof *dir);
    if (dir == NULL)
        return NULL;
    dir->id = id;
    list_init(&dir->waiting);
    list_init(&dir->changed);
    if (home_dir_set_path(dir, path) != 0) {
        free(dir);
        return NULL;
    }
    struct home_dir **bucket = bucket_of(home, id);
    dir->next = *bucket;
    *bucket = dir;
    home->dir_count++;
    return dir;
}

void home_dir_drop(struct home *home, struct home_dir *dir)
{
    struct home_dir **at = bucket_of(home, dir->id);
    while (*at != dir)
        at = &(*at)->next;
    *at = dir->next;
    home->dir_count--;
    list_remove(&dir->changed);
    home_wake(home, &dir->waiting);
    dir_free(dir);
}

int home_dir_set_path(struct home_dir *dir, const char *path)
{
    if (dir->path != NULL && strcmp(dir->path, path) == 0)
        return 0;
    char *copy = strdup(path);
    if (copy == NULL)
        return -ENOMEM;
    free(dir->path);
    dir->path = copy;
    return 0;
}

struct move {
    const char *from, *to;
};

/* A path that does not fit any more keeps its old text: whoever uses it compares identities and asks for a
 * new one. */
static void move_one(struct home_dir *dir, void *context)
{
    const struct move *move = context;
    size_t length = strlen(move->from);
    char path[PATH_MAX];
    if (strncmp(dir->path, move->from, length) != 0 ||
        (dir->path[length] != '/' && dir->path[length] != '\0'))
        return;
    if (snprintf(path, sizeof path, "%s%s", move->to, dir->path + length) < (int)sizeof path)
        home_dir_set_path(dir, path);
}

void home_dirs_moved(struct home *home, const char *from, const char *to)
{
    struct move move = {from, to};
    home_dirs_each(home, move_one, &move);
}

bool home_dir_is_loaded(const struct home_dir *dir)
{
    return dir != NULL && (dir->record.flags & RECORD_LOADED) != 0;
}

int home_dir_store(struct shuntd *shuntd, struct home_dir *dir)
{
    return index_put_dir(shuntd->index, dir->id, &dir->record);
}

int home_dir_touch(struct shuntd *shuntd, struct home_dir *dir)
{
    uint64_t now = clock_files();
    dir->changed_at = clock_monotonic();
    dir->touches++;
    if (now <= dir->record.changed)
        return 0;
    listen_set_redirected(shuntd->listen);
    return home_dir_set_changed(shuntd, dir, now);
}

int home_dir_set_changed(struct shuntd *shuntd, struct home_dir *dir, uint64_t changed)
{
    dir->record.changed = changed;
    list_remove(&dir->changed);
    if (changed != 0)
        list_append(&shuntd->home->changed, &dir->changed);
    return home_dir_store(shuntd, dir);
}

void home_dirs_each(struct home *home, void (*each)(struct home_dir *, void *), void *context)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct home_dir *dir = home->dirs[i], *next; dir != NULL; dir = next) {
            next = dir->next;
            each(dir, context);
        }
}

/* The list is in the order of the last change whose time differed; the first is the longest quiet but for
 * ticks. One whose rmdir is in flight may be dropped before a job on it would end. */
struct home_dir *home_dir_next_quiet(struct home *home, uint64_t quiet)
{
    for (struct link *link = home->changed.next; link != &home->changed; link = link->next) {
        struct home_dir *dir = LINK_OF(link, struct home_dir, changed);
        if (dir->changed_at > quiet)
            return NULL;
        if (!dir->working && !dir->closing)
            return dir;
    }
    return NULL;
}

bool home_has_changed(struct home *home)
{
    return !list_empty(&home->changed);
}

struct home_dir *home_dir_of_mirror(struct home *home, const char *mirror, size_t length)
{
    if (length == 0 || length >= RECORD_MIRROR_MAX)
        return NULL;
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct home_dir *dir = home->dirs[i]; dir != NULL; dir = dir->next)
            if (memcmp(dir->record.mirror, mirror, length) == 0 && dir->record.mirror[length] == '\0')
                return dir;
    return NULL;
}

uint64_t home_dir_count(struct home *home)
{
    return home->dir_count;
}
