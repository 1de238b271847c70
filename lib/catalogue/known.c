/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/known.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "catalogue/take.h"
#include "union/disk.h"

#define KNOWN_MANY 16

struct known {
    const struct union_root *root;
    struct catalogue *live;
    struct listing_source source;
    pthread_mutex_t opening;
    bool is_open;
    size_t count;              /* of branches when the copies were opened */
    struct catalogue **copies; /* NULL: that branch has none; number N of a branch is copies[N - 1] */
    int branches;              /* the directory of the branches; -errno */
    bool prefetches;
    unsigned *walks; /* of directories of each branch; NULL: nothing is prefetched */
    size_t last;     /* of the copies: the one that knew a directory of the trunk */
    struct known_counts counts;
};

static listing_walk known_walk;
static listing_marker known_marker;

int known_create(struct known **to, const struct union_root *root, struct catalogue *live, unsigned flags)
{
    struct known *known = calloc(1, sizeof *known);
    if (known == NULL)
        return -ENOMEM;
    known->root = root;
    known->live = live;
    known->branches = -1;
    known->prefetches = (flags & KNOWN_PREFETCH) != 0;
    known->source = (struct listing_source){
        .context = known, .walk = known_walk, .marker = known_marker, .is_asked_first = (flags & KNOWN_FIRST) != 0};
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
    free(known->walks);
    if (known->branches >= 0)
        sys_close(known->branches);
    pthread_mutex_destroy(&known->opening);
    free(known);
}

const struct listing_source *known_source(const struct known *known)
{
    return &known->source;
}

/* May another one be opened? */
static bool known_open_copy(struct known *known, size_t i)
{
    const int fd = sys_openat(known->branches, known->root->branches[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd != -EMFILE;
    const int code = catalogue_open_copy(&known->copies[i], fd, LAYOUT_CATALOGUE, known->root->id);
    known->counts.copies += code == 0;
    sys_close(fd);
    return code != -EMFILE;
}

static void known_open_all(struct known *known, size_t count)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, known->root->path);
    text_add(&t, "/" LAYOUT_BRANCHES);
    known->branches =
        text_ok(&t) ? sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENAMETOOLONG;
    for (size_t i = 0; known->branches >= 0 && i < count && known_open_copy(known, i); i++)
        ;
    known->prefetches = known->prefetches && known->branches >= 0 && disk_has_server(known->branches);
    if (known->prefetches)
        known->walks = calloc(count + 1, sizeof *known->walks);
    known->count = count;
}

/* Branches that are made later have no copy while their sessions last. */
static void known_open_copies(struct known *known)
{
    if (__atomic_load_n(&known->is_open, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&known->opening);
    const size_t count = known->root->branch_count;
    if (!known->is_open && (known->copies = calloc(count + 1, sizeof *known->copies)) != NULL)
        known_open_all(known, count);
    __atomic_store_n(&known->is_open, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&known->opening);
}

/* Answers 1 if a catalogue, which is not NULL, knows it; `to` is the caller's. */
typedef int known_ask(struct catalogue *, const struct catalogue_stamp *now, void *to);

/* The first one that does, NULL: none. The likely ones are asked first: what is in a branch was recorded by that branch's node,
 * a marker by the daemon that recorded its directory. */
static struct catalogue *known_find(struct known *known, const struct catalogue_stamp *now, uint16_t branch, known_ask *ask,
                                    void *to)
{
    known_open_copies(known);
    const size_t likely = branch > 0 ? (size_t)branch - 1 : __atomic_load_n(&known->last, __ATOMIC_RELAXED);
    struct catalogue *own = likely < known->count ? known->copies[likely] : NULL;
    if (known->live != NULL && ask(known->live, now, to) == 1)
        return known->live;
    if (own != NULL && ask(own, now, to) == 1)
        return own;
    for (size_t i = 0; i < known->count; i++)
        if (known->copies[i] != NULL && known->copies[i] != own && ask(known->copies[i], now, to) == 1) {
            if (branch == 0)
                __atomic_store_n(&known->last, i, __ATOMIC_RELAXED);
            return known->copies[i];
        }
    return NULL;
}

static int known_ask_names(struct catalogue *catalogue, const struct catalogue_stamp *now, void *to)
{
    return catalogue_proves(catalogue, now, to);
}

static int known_ask_marker(struct catalogue *catalogue, const struct catalogue_stamp *now, void *to)
{
    return catalogue_marker(catalogue, now, to);
}

bool known_proves(struct known *known, const struct catalogue_stamp *now, uint16_t branch)
{
    return known_find(known, now, branch, known_ask_names, NULL) != NULL;
}

bool known_proves_marker(struct known *known, const struct catalogue_stamp *now)
{
    struct marker marker;
    return known_find(known, now, 0, known_ask_marker, &marker) != NULL;
}

struct known_walk {
    listing_tell *tell;
    void *to;
    uint64_t names, directories;
    bool wants_types;
};

enum { KNOWN_UNTYPED = 2 };

/* Whose directory is not open asks for no types. */
static int known_tell(void *context, const struct catalogue_name *name, size_t length)
{
    struct known_walk *walk = context;
    if (walk->wants_types && name->type == DT_UNKNOWN)
        return KNOWN_UNTYPED;
    walk->names++;
    walk->directories += name->type == DT_DIR;
    return walk->tell(walk->to, name->name, length, name->ino, name->type);
}

/* Relative to the directory of the branches. -ENAMETOOLONG */
static int known_path(const struct known *known, uint16_t branch, const char *path, char to[PATH_MAX])
{
    struct text t;
    text_init(&t, to, PATH_MAX);
    text_add(&t, known->root->branches[branch - 1]);
    text_add(&t, "/");
    text_add(&t, path);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}

/* Of what not everybody may read the kernel is asked, which before Linux 5.8 cannot say it of a descriptor: then it is read. */
static bool known_may_read(const struct catalogue_proof *proof, int directory, const char *path)
{
    return proof->is_public ||
           SYS4(SYS_faccessat2, directory, path, R_OK, AT_EACCESS | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0;
}

/* The directories in one that has little else are looked at next. */
static void known_prefetch_below(const struct known *known, int directory, const struct known_walk *walk)
{
    if (known->prefetches && walk->directories >= KNOWN_MANY && walk->directories >= walk->names / 2)
        disk_prefetch_names(directory, ".");
}

/* Once some mirrors of a branch were looked at, all of them are likely to be. */
static void known_prefetch_mirrors(struct known *known, uint16_t branch)
{
    if (known->walks != NULL && branch <= known->count &&
        __atomic_add_fetch(&known->walks[branch - 1], 1, __ATOMIC_RELAXED) == KNOWN_MANY)
        disk_prefetch_names(known->branches, known->root->branches[branch - 1]);
}

static int known_walk_at(struct known *known, int directory, const char *path, uint16_t branch, struct known_walk *walk)
{
    struct catalogue_stamp now;
    struct catalogue_proof proof;
    struct catalogue *from =
        take_stamp_at(directory, path, &now) == 1 ? known_find(known, &now, branch, known_ask_names, &proof) : NULL;
    int answer = from != NULL && known_may_read(&proof, directory, path) ? catalogue_walk(from, &now, known_tell, walk) : 0;
    if (answer == 1) {
        __atomic_add_fetch(&known->counts.taken, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&known->counts.names, walk->names, __ATOMIC_RELAXED);
        return 1;
    }
    __atomic_add_fetch(&known->counts.unknown, 1, __ATOMIC_RELAXED);
    return answer == -ENOMEM ? answer : 0;
}

static int known_walk(void *context, int directory, const char *path, uint16_t branch, listing_tell *tell, void *to)
{
    struct known *known = context;
    char below[PATH_MAX];
    struct known_walk walk = {.tell = tell, .to = to, .wants_types = known->source.is_asked_first};
    if (*path == '\0') {
        const int answer = known_walk_at(known, directory, "", branch, &walk);
        if (answer == 1 && branch == 0)
            known_prefetch_below(known, directory, &walk);
        return answer;
    }
    known_open_copies(known);
    known_prefetch_mirrors(known, branch);
    if (known->branches < 0 || known_path(known, branch, path, below) < 0)
        return 0;
    return known_walk_at(known, known->branches, below, branch, &walk);
}

static int known_marker(void *context, int directory, struct marker *to)
{
    struct catalogue_stamp now;
    const int code = take_stamp_at(directory, LAYOUT_MARKER, &now);
    if (code == 1)
        return known_find(context, &now, 0, known_ask_marker, to) != NULL;
    return code == -ENOENT ? code : 0;
}

void known_count(struct known *known, struct known_counts *to)
{
    to->copies = __atomic_load_n(&known->counts.copies, __ATOMIC_RELAXED);
    to->taken = __atomic_load_n(&known->counts.taken, __ATOMIC_RELAXED);
    to->unknown = __atomic_load_n(&known->counts.unknown, __ATOMIC_RELAXED);
    to->names = __atomic_load_n(&known->counts.names, __ATOMIC_RELAXED);
}
