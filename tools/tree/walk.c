/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "catalogue/known.h"
#include "session/stamp.h"
#include "union/disk.h"

#define WALK_BUFFER 32768

static int walk_push(struct walk *walk, const char *path)
{
    if (walk->count == walk->room) {
        size_t room = walk->room ? 2 * walk->room : 64;
        struct walk_step **more = realloc(walk->steps, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        walk->steps = more;
        walk->room = room;
    }
    struct walk_step *step = malloc(sizeof *step + strlen(path) + 1);
    if (!step)
        return -ENOMEM;
    *step = (struct walk_step){.state = WALK_WAITING};
    strcpy(step->path, path);
    walk->steps[walk->count++] = step;
    return 0;
}

/* What its markers say is of its own `.shunt`. A copy of one is none. */
static bool walk_has_stamp(const struct folder *folder)
{
    if (!strcmp(folder->path, "."))
        return false;
    int own = sys_openat(folder->fd, LAYOUT_OWN, DISK_DIRECTORY, 0);
    if (own < 0)
        return false;
    struct stamp stamp;
    bool is_one = stamp_read(own, &stamp) == 0 && stamp_is_copied(own) == 0;
    sys_close(own);
    return is_one;
}

bool walk_is_another_root(const struct folder *folder, int error)
{
    const struct listing *listing = &folder->listing;
    const bool may_be =
        error < 0 || listing->trunk_unlisted || listing_find(listing, LAYOUT_OWN, sizeof LAYOUT_OWN - 1) != NULL;
    return may_be && walk_has_stamp(folder);
}

/* Nothing of it is open any more. A path that is too long is cut: it is only told. */
static int walk_refuse(struct walk_visit *visit, const char *path, int error)
{
    folder_close(&visit->folder);
    snprintf(visit->folder.path, sizeof visit->folder.path, "%s", path);
    visit->partial = true;
    return error;
}

static int walk_list(const struct walk *walk, struct walk_visit *visit, const char *path)
{
    const bool settles = (walk->flags & WALK_SETTLE) != 0;
    int error = folder_list(&visit->folder, walk->root, settles ? LISTING_SETTLE : 0);
    if (!settles && walk_is_another_root(&visit->folder, error))
        return walk_refuse(visit, path, -EMULTIHOP);
    const struct listing *listing = &visit->folder.listing;
    visit->partial |= error < 0 ? error != -EBADMSG : listing->trunk_unlisted || listing->hides;
    return error < 0 ? error : 1;
}

/* Opens a step's directory: 0, 1 if it is not to be walked (it went meanwhile, or it is on another device), -errno. */
static int walk_open(const struct walk *walk, struct walk_visit *visit, const char *path)
{
    int error = folder_open(&visit->folder, walk->root_fd, path);
    if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP)
        return 1;
    if (error == 0)
        error = folder_stat(&visit->folder, walk->root, NULL, &visit->before);
    if (error == 0 && walk->flags & WALK_SETTLE && walk_has_stamp(&visit->folder))
        error = -EMULTIHOP; /* before it is settled; else its listing says whether it may be one */
    if (error < 0)
        return walk_refuse(visit, path, error);
    if (!(walk->flags & WALK_ONE_DEVICE) || disk_device(&visit->before) == walk->root->device)
        return 0;
    visit->partial = true;
    return 1;
}

/* By any thread. */
static void walk_visit(const struct walk *walk, struct walk_visit *visit, const char *path)
{
    *visit = (struct walk_visit){.folder.fd = -1};
    int opened = walk_open(walk, visit, path);
    visit->result = opened == 0 ? walk_list(walk, visit, path) : opened < 0 ? opened : 0;
}

/* Of the steps that come next, the first that waits, NULL: enough is done. Under the lock. */
static struct walk_step *walk_find_waiting(const struct walk *walk)
{
    if (walk->ahead >= walk->ahead_most)
        return NULL;
    for (size_t i = walk->count; i > 0 && walk->count - i < 2 * WALK_AHEAD_MAX; i--)
        if (walk->steps[i - 1]->state == WALK_WAITING)
            return walk->steps[i - 1];
    return NULL;
}

static void *walk_work(void *context)
{
    struct walk *walk = context;
    pthread_mutex_lock(&walk->lock);
    while (!walk->is_at_end) {
        struct walk_step *step = walk_find_waiting(walk);
        if (!step) {
            pthread_cond_wait(&walk->work, &walk->lock);
            continue;
        }
        step->state = WALK_TAKEN;
        walk->ahead++;
        pthread_mutex_unlock(&walk->lock);
        struct walk_visit *visit = malloc(sizeof *visit);
        if (visit)
            walk_visit(walk, visit, step->path);
        pthread_mutex_lock(&walk->lock);
        step->visit = visit;
        step->state = WALK_DONE;
        pthread_cond_signal(&walk->done);
    }
    pthread_mutex_unlock(&walk->lock);
    return NULL;
}

/* As soon as there is more to do than one thread's work. Without them it takes longer. */
static void walk_start_threads(struct walk *walk)
{
    if (!(walk->flags & WALK_AHEAD) || walk->threads_count > 0 || walk->count < 4)
        return;
    while (walk->threads_count < walk->threads_most &&
           pthread_create(&walk->threads[walk->threads_count], NULL, walk_work, walk) == 0)
        walk->threads_count++;
}

static void walk_end_threads(struct walk *walk)
{
    pthread_mutex_lock(&walk->lock);
    walk->is_at_end = true;
    pthread_cond_broadcast(&walk->work);
    pthread_mutex_unlock(&walk->lock);
    while (walk->threads_count > 0)
        pthread_join(walk->threads[--walk->threads_count], NULL);
}

/* What is listed ahead is open until its turn comes. */
static size_t walk_ahead_most(void)
{
    struct rlimit limit;
    const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return is_known && limit.rlim_cur / WALK_DESCRIPTORS < WALK_AHEAD_MAX ? (size_t)limit.rlim_cur / WALK_DESCRIPTORS
                                                                          : WALK_AHEAD_MAX;
}

int walk_init(struct walk *walk, struct union_root *root, const char *from, unsigned flags)
{
    *walk =
        (struct walk){.root = root, .flags = flags, .folder.fd = -1, .source = root->source, .ahead_most = walk_ahead_most()};
    pthread_mutex_init(&walk->lock, NULL);
    pthread_cond_init(&walk->work, NULL);
    pthread_cond_init(&walk->done, NULL);
    walk->root_fd = sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (walk->root_fd < 0)
        return walk->root_fd;
    walk->threads_most = disk_has_server(walk->root_fd) ? WALK_THREADS : WALK_THREADS_LOCAL;
    const unsigned known = flags & WALK_AHEAD ? KNOWN_FIRST | KNOWN_PREFETCH : KNOWN_FIRST;
    if (known_create(&walk->known, root, NULL, known) == 0)
        root->source = known_source(walk->known);
    return walk_push(walk, from);
}

static void walk_free_step(struct walk_step *step)
{
    if (step->visit)
        folder_close(&step->visit->folder);
    free(step->visit);
    free(step);
}

void walk_finish(struct walk *walk)
{
    walk_end_threads(walk);
    folder_close(&walk->folder);
    while (walk->count > 0)
        walk_free_step(walk->steps[--walk->count]);
    free(walk->steps);
    walk->steps = NULL;
    if (walk->root_fd >= 0)
        sys_close(walk->root_fd);
    walk->root_fd = -1;
    walk->root->source = walk->source;
    known_destroy(walk->known);
    walk->known = NULL;
    pthread_cond_destroy(&walk->done);
    pthread_cond_destroy(&walk->work);
    pthread_mutex_destroy(&walk->lock);
}

/* Also one whose path is too long: that it cannot be opened is told of it, and of no other. */
static int walk_push_below(struct walk *walk, const char *name)
{
    char path[PATH_MAX + 1 + NAME_MAX];
    int error = folder_path(&walk->folder, name, path, sizeof path);
    return error < 0 ? error : walk_push(walk, path);
}

/* Last first, so that the first is on top. */
static int walk_push_listed(struct walk *walk)
{
    const struct listing *listing = &walk->folder.listing;
    int error = 0;
    for (size_t i = listing->count; i-- > 0 && error == 0;)
        if (listing->names[i].type == DT_DIR && listing->names[i].branch == 0)
            error = walk_push_below(walk, listing->names[i].on_disk);
    return error;
}

/* A directory that cannot be listed as a union still has directories in it. */
static int walk_push_unlisted(struct walk *walk)
{
    char buffer[WALK_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    struct statx stat;
    bool in_root = !strcmp(walk->folder.path, ".");
    int more = disk_scan_init(&scan, walk->folder.fd, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0)
        if (!layout_is_ours(one->name, strlen(one->name), in_root) &&
            sys_statx(scan.fd, one->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0 && S_ISDIR(stat.stx_mode))
            more = walk_push_below(walk, one->name);
    disk_scan_finish(&scan);
    return more;
}

/* What is below a directory that was visited. The answer of walk_next. */
static int walk_go_below(struct walk *walk, int result)
{
    if (result != 1 && result != -EBADMSG)
        return result;
    pthread_mutex_lock(&walk->lock);
    int pushed = result == 1 ? walk_push_listed(walk) : walk_push_unlisted(walk);
    walk_start_threads(walk);
    pthread_cond_broadcast(&walk->work);
    pthread_mutex_unlock(&walk->lock);
    walk->partial |= pushed < 0;
    return result < 0 ? result : pushed < 0 ? pushed : 1;
}

/* The next step, which no thread has under way, NULL at the end. */
static struct walk_step *walk_pop(struct walk *walk)
{
    struct walk_step *step = NULL;
    pthread_mutex_lock(&walk->lock);
    if (walk->count > 0) {
        step = walk->steps[walk->count - 1];
        while (step->state == WALK_TAKEN)
            pthread_cond_wait(&walk->done, &walk->lock);
        walk->count--;
        walk->ahead -= step->state == WALK_DONE;
        pthread_cond_signal(&walk->work);
    }
    pthread_mutex_unlock(&walk->lock);
    return step;
}

int walk_next(struct walk *walk)
{
    struct walk_visit visit = {.result = 0};
    while (visit.result == 0) {
        folder_close(&walk->folder);
        struct walk_step *step = walk_pop(walk);
        if (!step)
            return 0;
        if (step->visit)
            visit = *step->visit;
        else
            walk_visit(walk, &visit, step->path);
        free(step->visit);
        free(step);
        walk->folder = visit.folder;
        walk->before = visit.before;
        walk->partial |= visit.partial;
    }
    return walk_go_below(walk, visit.result);
}
