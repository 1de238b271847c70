/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue/spill.h"
#include "home/home.h"
#include "index/index.h"
#include "home/state.h"

int home_create(struct home **to, const struct home_uses *uses)
{
    struct home *home = calloc(1, sizeof *home);
    if (home == NULL)
        return -ENOMEM;
    home->uses = *uses;
    list_init(&home->operations);
    list_init(&home->ready_requests);
    list_init(&home->questions);
    list_init(&home->notifications);
    list_init(&home->ready_collectives);
    list_init(&home->unwritten);
    list_init(&home->unannounced);
    list_init(&home->clock);
    list_init(&home->spilled);
    *to = home;
    return 0;
}

static void dirs_dir_free(struct home_dir *dir)
{
    list_remove(&dir->spilled);
    spill_destroy(dir->spill);
    home_blocked_free(&dir->blocked);
    home_asking_free(&dir->frozen_questions);
    home_list_end(dir);
    home_leaves_forget(&dir->leaves);
    if (dir->coordinator != NULL)
        free(dir->coordinator->nodes);
    free(dir->coordinator);
    free(dir->path);
    free(dir);
}

void home_destroy(struct home *home)
{
    if (home == NULL)
        return;
    for (struct link *link; (link = list_take(&home->operations)) != NULL;) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        home_blocked_free(&operation->blocked);
        free(operation->request);
        free(operation);
    }
    home_names_free(home);
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct home_dir *dir = home->dirs[i], *next; dir != NULL; dir = next) {
            next = dir->next;
            dirs_dir_free(dir);
        }
    home_blocked_free(&home->ready_requests);
    free(home);
}

static struct home_dir **dirs_bucket_of(struct home *home, struct dirid id)
{
    return &home->dirs[(id.ino * 0x9e3779b97f4a7c15ull ^ id.birth) >> 32 & (HOME_BUCKETS - 1)];
}

struct home_dir *home_dir_find(struct home *home, struct dirid id)
{
    struct home_dir *dir = *dirs_bucket_of(home, id);
    while (dir != NULL && !dirid_equal(dir->id, id))
        dir = dir->next;
    return dir;
}

struct home_dir *home_dir_add(struct home *home, struct dirid id, const char *path)
{
    struct home_dir *dir = home_dir_find(home, id);
    if (dir != NULL)
        return home_dir_set_path(home, dir, path) == 0 ? dir : NULL;
    dir = calloc(1, sizeof *dir);
    if (dir == NULL)
        return NULL;
    dir->id = id;
    list_init(&dir->blocked);
    list_init(&dir->unwritten);
    list_init(&dir->unannounced);
    list_init(&dir->frozen_questions);
    list_init(&dir->blocked_collectives);
    list_init(&dir->ended_claims);
    list_init(&dir->use.clock);
    list_init(&dir->spilled);
    dir->nodes = 1;
    if (home_dir_set_path(home, dir, path) != 0) {
        free(dir);
        return NULL;
    }
    struct home_dir **bucket = dirs_bucket_of(home, id);
    dir->next = *bucket;
    *bucket = dir;
    home->dir_count++;
    home_dir_note_use(home, dir);
    return dir;
}

/* It keeps how full its leaves are. */
void home_dir_release(struct home *home, struct home_dir *dir)
{
    struct home_dir **at = dirs_bucket_of(home, dir->id);
    if (home_dir_is_loaded(dir) || dir->complete || home_dir_is_busy(dir) || dir->writing || dir->operations > 0 ||
        dir->claims > 0 || dir->listed > 0 || dir->leaves.count > 0 || dir->coordinator != NULL || dir->keeps_mirror ||
        dir->reports_idle || dir->record.why == RECORD_WHY_WATCHED || !list_empty(&dir->ended_claims) ||
        !list_empty(&dir->unwritten))
        return;
    while (*at != dir)
        at = &(*at)->next;
    *at = dir->next;
    home->dir_count--;
    list_remove(&dir->use.clock);
    list_remove(&dir->unannounced);
    home_wake(home, &dir->blocked);
    list_move(&home->questions, &dir->frozen_questions);
    list_move(&home->ready_collectives, &dir->blocked_collectives);
    dirs_dir_free(dir);
}

bool home_dir_is_busy(const struct home_dir *dir)
{
    return dir->disk_jobs > 0 || dir->awaits_coordinator;
}

int home_dir_wake(struct home *home, struct home_dir *dir)
{
    home_wake(home, &dir->blocked);
    list_move(&home->ready_collectives, &dir->blocked_collectives);
    return home_names_wake(home, dir);
}

void home_collectives_ready(struct home *home, struct link *collectives)
{
    list_move(&home->ready_collectives, collectives);
}

struct link *home_next_collective(struct home *home)
{
    return list_take(&home->ready_collectives);
}

void home_note_forgotten(struct home *home)
{
    home->forgotten++;
}

bool home_has_forgotten_since(const struct home *home, const struct operation *operation)
{
    return home->forgotten != operation->forgotten;
}

/* What waits for something of it begins again. */
static void dirs_forget_names(struct home *home, struct home_dir *dir)
{
    dir->complete = dir->frozen = dir->mirrored = dir->recalled = false;
    dir->delegation = 0;
    dir->listed = 0;
    home_list_end(dir);
    home_wake(home, &dir->blocked);
    list_move(&home->questions, &dir->frozen_questions);
    list_move(&home->ready_collectives, &dir->blocked_collectives);
}

void home_dir_drop(struct home *home, struct home_dir *dir)
{
    home_dir_drop_but(home, dir, &(struct record_dir){0});
}

void home_dir_drop_but(struct home *home, struct home_dir *dir, const struct record_dir *record)
{
    dir->record = *record;
    dir->keeps_mirror = false;
    home_leaves_forget(&dir->leaves);
    dirs_forget_names(home, dir);
    home_dir_release(home, dir);
}

static bool dirs_has_more_than_names(const struct home_dir *dir)
{
    static const struct home_times nothing;
    return !home_times_equal(&dir->times, &nothing) || dir->leaves.count > 0 ||
           ((dir->record.flags & RECORD_MARKED) && dir->use.by_processes);
}

/* Its coordinator counts the leaves again when it lists them. */
void home_dir_evict(struct home *home, struct home_dir *dir)
{
    struct record_dir record = {.flags = dir->record.flags & RECORD_MARKED, .marker = dir->record.marker};
    memcpy(record.mirror, dir->record.mirror, sizeof record.mirror);
    if (dir->coordinator != NULL)
        home_leaves_forget(&dir->leaves);
    else
        home_leaves_retire(&dir->leaves);
    if (!dirs_has_more_than_names(dir)) {
        home_dir_drop(home, dir);
        return;
    }
    dir->record = record;
    dir->keeps_mirror = true;
    list_remove(&dir->use.clock);
    dirs_forget_names(home, dir);
}

void home_dir_note_use(struct home *home, struct home_dir *dir)
{
    dir->use.last = *home->uses.now;
    if (!list_empty(&dir->use.clock))
        return;
    dir->use.visited_at = dir->use.last;
    list_append(&home->clock, &dir->use.clock);
}

uint64_t home_clock_hand(const struct home *home)
{
    return list_empty(&home->clock) ? UINT64_MAX : LINK_OF(home->clock.next, struct home_dir, use.clock)->use.visited_at;
}

struct home_dir *home_dir_next_on_clock(struct home *home, uint64_t until)
{
    if (home_clock_hand(home) > until)
        return NULL;
    struct home_dir *dir = LINK_OF(list_take(&home->clock), struct home_dir, use.clock);
    dir->use.visited_at = *home->uses.now;
    list_append(&home->clock, &dir->use.clock);
    return dir;
}

struct home_coordinator *home_coordinator(struct home_dir *dir)
{
    if (dir->coordinator == NULL && (dir->coordinator = calloc(1, sizeof *dir->coordinator)) != NULL) {
        list_init(&dir->coordinator->queued);
        list_init(&dir->coordinator->awaiting_idle);
    }
    return dir->coordinator;
}

int home_dir_set_path(struct home *home, struct home_dir *dir, const char *path)
{
    if (dir->path != NULL && strcmp(dir->path, path) == 0)
        return 0;
    size_t size = strlen(path) + 1;
    char *copy = malloc(size); /* not libc's strdup, which would not ask the spare */
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, path, size);
    free(dir->path);
    dir->path = copy;
    home_dir_found(home, dir);
    return 0;
}

struct move {
    struct home *home;
    const char *from, *to;
};

/* A path that does not fit any more keeps its old text: its users compare identities and asks for a
 * new one. */
static void dirs_move_one(struct home_dir *dir, void *context)
{
    const struct move *move = context;
    size_t length = strlen(move->from);
    char path[PATH_MAX];
    if (strncmp(dir->path, move->from, length) != 0 || (dir->path[length] != '/' && dir->path[length] != '\0'))
        return;
    if (snprintf(path, sizeof path, "%s%s", move->to, dir->path + length) < (int)sizeof path)
        home_dir_set_path(move->home, dir, path);
}

void home_dirs_moved(struct home *home, const char *from, const char *to)
{
    struct move move = {home, from, to};
    home_dirs_each(home, dirs_move_one, &move);
}

bool home_dir_is_loaded(const struct home_dir *dir)
{
    return dir != NULL && (dir->record.flags & RECORD_LOADED) != 0;
}

int home_dir_store(struct home *home, struct home_dir *dir)
{
    return home_dir_is_loaded(dir) ? index_put_dir(home->uses.index, dir->id, &dir->record) : 0;
}

void home_dirs_each(struct home *home, void (*each)(struct home_dir *, void *), void *context)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct home_dir *dir = home->dirs[i], *next; dir != NULL; dir = next) {
            next = dir->next;
            each(dir, context);
        }
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
