/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/known.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "catalogue/take.h"
#include "union/disk.h"

struct known {
    const struct union_root *root;
    struct catalogue *live;
    struct listing_source source;
    pthread_mutex_t opening;
    bool is_open;
    size_t count;              /* of branches when the copies were opened */
    struct catalogue **copies; /* NULL: that branch has none; number N of a branch is copies[N - 1] */
    struct known_counts counts;
};

static int known_walk_source(void *context, int directory, uint16_t branch, listing_tell *tell, void *to);

int known_create(struct known **to, const struct union_root *root, struct catalogue *live, unsigned flags)
{
    struct known *known = calloc(1, sizeof *known);
    if (known == NULL)
        return -ENOMEM;
    known->root = root;
    known->live = live;
    known->source =
        (struct listing_source){.context = known, .walk = known_walk_source, .is_asked_first = (flags & KNOWN_FIRST) != 0};
    pthread_mutex_init(&known->opening, NULL);
    *to = known;
    return 0;
}

void known_destroy(struct known *known)
{
    if (known == NULL)
        return;
    for (size_t i = 0; i < known->count; i++)
        catalogue_close(known->copies[i]);
    free(known->copies);
    pthread_mutex_destroy(&known->opening);
    free(known);
}

const struct listing_source *known_source(const struct known *known)
{
    return &known->source;
}

static void known_open_copy(struct known *known, size_t i)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    layout_branch(&t, known->root->path, known->root->branches[i]);
    int fd = text_ok(&t) ? sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENAMETOOLONG;
    if (fd < 0)
        return;
    if (catalogue_open_copy(&known->copies[i], fd, LAYOUT_CATALOGUE, known->root->id) == 0)
        known->counts.copies++;
    sys_close(fd);
}

/* Branches that are made later have no copy while their sessions last. */
static void known_open_copies(struct known *known)
{
    if (__atomic_load_n(&known->is_open, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&known->opening);
    const size_t count = known->root->branch_count;
    if (!known->is_open && (known->copies = calloc(count + 1, sizeof *known->copies)) != NULL) {
        for (size_t i = 0; i < count; i++)
            known_open_copy(known, i);
        known->count = count;
    }
    __atomic_store_n(&known->is_open, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&known->opening);
}

/* The likely ones first. */
static struct catalogue *known_find(struct known *known, const struct catalogue_stamp *now, uint16_t branch)
{
    known_open_copies(known);
    struct catalogue *own = branch > 0 && branch <= known->count ? known->copies[branch - 1] : NULL;
    if (known->live != NULL && catalogue_proves(known->live, now, NULL) > 0)
        return known->live;
    if (own != NULL && catalogue_proves(own, now, NULL) > 0)
        return own;
    for (size_t i = 0; i < known->count; i++)
        if (known->copies[i] != NULL && known->copies[i] != own && catalogue_proves(known->copies[i], now, NULL) > 0)
            return known->copies[i];
    return NULL;
}

bool known_proves(struct known *known, const struct catalogue_stamp *now, uint16_t branch)
{
    return known_find(known, now, branch) != NULL;
}

struct known_walk {
    listing_tell *tell;
    void *to;
    uint64_t names;
};

static int known_tell(void *context, const struct catalogue_name *name, size_t length)
{
    struct known_walk *walk = context;
    walk->names++;
    return walk->tell(walk->to, name->name, length, name->ino, name->type);
}

static int known_walk_source(void *context, int directory, uint16_t branch, listing_tell *tell, void *to)
{
    struct known *known = context;
    struct known_walk walk = {.tell = tell, .to = to};
    struct catalogue_stamp now;
    struct catalogue *from = take_stamp(directory, &now) == 1 ? known_find(known, &now, branch) : NULL;
    int answer = from != NULL ? catalogue_walk(from, &now, known_tell, &walk) : 0;
    if (answer == 1) {
        __atomic_add_fetch(&known->counts.taken, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&known->counts.names, walk.names, __ATOMIC_RELAXED);
        return 1;
    }
    __atomic_add_fetch(&known->counts.unknown, 1, __ATOMIC_RELAXED);
    return answer == -ENOMEM ? answer : 0;
}

void known_count(struct known *known, struct known_counts *to)
{
    to->copies = __atomic_load_n(&known->counts.copies, __ATOMIC_RELAXED);
    to->taken = __atomic_load_n(&known->counts.taken, __ATOMIC_RELAXED);
    to->unknown = __atomic_load_n(&known->counts.unknown, __ATOMIC_RELAXED);
    to->names = __atomic_load_n(&known->counts.names, __ATOMIC_RELAXED);
}
