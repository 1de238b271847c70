/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/helper_process.h"
#include "base/adaptive_spin.h"
#include "base/sys.h"
#include "index/table.h"

/* Not all that the index may grow to is mapped: the address space of a process may be limited (RLIMIT_AS). */
#define MAP_LEAST (16u << 20)
#define MAP_GRAIN (64u << 10)

/* A change takes less than a microsecond; but its writer may lose the processor in the middle of it. */
#define LOOKS 64
#define YIELDS 4096

/* What was found last, a directory and a branch: a reference, and above it the number of changes of things at that time,
 * halved. As long as that is the same (threads write there as they come, 2^32 changes would be needed to be mistaken, and
 * the thing still has to be the one that is looked for) nothing is searched. */
struct view {
    struct table table;
    uint64_t last_dir, last_branch;
};

/* Reading next to the writer: what was read between the two is of one moment if view_settled_still says so. */

static bool view_settled_still(const struct table_map *map, uint64_t changes)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&map->changes, __ATOMIC_RELAXED) == changes;
}

static int view_settle(const struct table_map *map, uint64_t *changes)
{
    for (unsigned i = 0; i < LOOKS + YIELDS; i++) {
        *changes = __atomic_load_n(&map->changes, __ATOMIC_ACQUIRE);
        if ((*changes & 1) == 0)
            return 0;
        if (i < LOOKS)
            adaptive_spin_pause();
        else
            SYS0(SYS_sched_yield);
    }
    return -EBUSY;
}

static const struct table_map *view_things_of(const struct view *view)
{
    return &table_head(&view->table)->things;
}

static int view_find_thing(struct view *view, uint64_t *last, uint64_t changes, struct dirid id, uint64_t size, void *block)
{
    const uint64_t seen = __atomic_load_n(last, __ATOMIC_RELAXED), when = changes >> 1 << 32;
    uint32_t reference = (uint32_t)seen;
    if (reference != 0 && (seen ^ when) >> 32 == 0 && table_block(&view->table, reference, size, block) == 0 &&
        dirid_equal(**(struct dirid **)block, id))
        return 0;
    int code = table_find(&view->table, id, size, &reference, block);
    if (code == 0)
        __atomic_store_n(last, when | reference, __ATOMIC_RELAXED);
    return code;
}

static int view_find_dir(struct view *view, uint64_t changes, struct dirid id, struct table_dir **dir)
{
    return view_find_thing(view, &view->last_dir, changes, id, sizeof **dir, dir);
}

static int view_search_branch(struct view *view, uint64_t changes, uint16_t number, char name[RECORD_BRANCH_MAX])
{
    struct table_branch *branch;
    int code = view_find_thing(view, &view->last_branch, changes, table_branch_id(number), sizeof *branch, &branch);
    if (code != 0)
        return code;
    memcpy(name, branch->name, RECORD_BRANCH_MAX);
    const size_t length = strnlen(name, RECORD_BRANCH_MAX); /* it becomes a part of a path */
    return length > 0 && length < RECORD_BRANCH_MAX && memchr(name, '/', length) == NULL && name[0] != '.' ? 0 : -EBADMSG;
}

static int view_find_name(struct view *view, uint64_t changes, const struct table_dir *dir, const char *name, size_t length,
                          struct view_found *found)
{
    const struct table_key key = table_key_name(name, length);
    uint8_t value[TABLE_VALUE];
    int code = table_get(&view->table, &dir->names, &key, value);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    code = record_entry_decode(&found->entry, value, sizeof value);
    if (code == 0 && found->entry.branch != 0)
        code = view_search_branch(view, changes, found->entry.branch, found->branch);
    found->known = code == 0;
    return code == -ENOENT ? -EBADMSG : code;
}

/* What is read of a directory at one moment, by what is to be found. */
typedef int read_dir(struct view *, uint64_t changes, const struct table_dir *, void *what);

/* -EAGAIN: it has changed meanwhile; -ENOENT: there is no such directory. */
static int view_look(struct view *view, struct dirid id, read_dir *read, void *what)
{
    const struct table_map *things = view_things_of(view);
    uint64_t changes, names_changes;
    struct table_dir *dir;
    int code = view_settle(things, &changes);
    if (code != 0)
        return code;
    code = view_find_dir(view, changes, id, &dir);
    if (code == 0)
        code = view_settle(&dir->names, &names_changes);
    if (code == 0) {
        code = read(view, changes, dir, what);
        if (!view_settled_still(&dir->names, names_changes))
            code = -EAGAIN;
    }
    return view_settled_still(things, changes) ? code : -EAGAIN;
}

struct finding {
    const char *name;
    size_t length;
    struct view_found *found;
};

static int view_read_found(struct view *view, uint64_t changes, const struct table_dir *dir, void *what)
{
    const struct finding *finding = what;
    struct view_found *found = finding->found;
    found->known = false;
    found->dir_known = dir->known;
    if (!found->dir_known)
        return 0;
    int code = record_dir_decode(&found->dir, dir->record, sizeof dir->record);
    return code == 0 && finding->length > 0 ? view_find_name(view, changes, dir, finding->name, finding->length, found) : code;
}

int view_find(struct view *view, struct dirid id, const char *name, size_t length, struct view_found *found)
{
    struct finding finding = {.name = name, .length = length <= RECORD_NAME_MAX ? length : 0, .found = found};
    int code;
    found->dir_known = found->known = false;
    found->branch[0] = '\0';
    while ((code = view_look(view, id, view_read_found, &finding)) == -EAGAIN)
        found->branch[0] = '\0';
    if (code == -ENOENT)
        found->dir_known = found->known = false;
    return code == -ENOENT ? 0 : code;
}

/* view_find_dir in 120 bytes of stack less, and without a wait. What is found in the middle of a change is remembered with the
 * count of changes from before it. The end of the change raises that count, so no later look takes what is remembered. Each
 * look that takes it compares the identity, too. */
bool view_knows(struct view *view, const struct dirid *id)
{
    const uint64_t seen = __atomic_load_n(&view->last_dir, __ATOMIC_RELAXED);
    const uint64_t when = __atomic_load_n(&view_things_of(view)->changes, __ATOMIC_ACQUIRE) >> 1 << 32;
    uint32_t reference = (uint32_t)seen;
    const struct dirid *there;
    if (reference != 0 && (seen ^ when) >> 32 == 0 && table_block(&view->table, reference, sizeof *there, &there) == 0 &&
        dirid_equal(*there, *id))
        return true;
    if (table_find_reference(&view->table, id, &reference) != 0)
        return false;
    __atomic_store_n(&view->last_dir, when | reference, __ATOMIC_RELAXED);
    return true;
}

static int view_look_for_branch(struct view *view, uint16_t number, char branch[RECORD_BRANCH_MAX])
{
    uint64_t changes;
    int code = view_settle(view_things_of(view), &changes);
    if (code == 0)
        code = view_search_branch(view, changes, number, branch);
    return view_settled_still(view_things_of(view), changes) ? code : -EAGAIN;
}

int view_find_branch(struct view *view, uint32_t word, char branch[RECORD_BRANCH_MAX])
{
    int code = 0;
    for (uint16_t number = 1; number != 0 && (code == 0 || code == -EAGAIN); number += code == 0) {
        code = view_look_for_branch(view, number, branch);
        if (code == 0 && record_branch_word(branch) == word)
            return 0;
    }
    return code == 0 ? -ENOENT : code;
}

/* Listing. */

struct listing {
    struct view_place *place;
    uint64_t stamp;
    struct table_record record;
};

/* Is it the directory that is being listed, and are all its names there? */
static bool view_is_whole(const struct table_dir *dir, const struct view_place *place)
{
    struct record_dir record;
    return dir->known && record_dir_decode(&record, dir->record, sizeof dir->record) == 0 && (record.flags & RECORD_LOADED) &&
           (place->stamp == 0 || place->stamp == dir->stamp);
}

/* As table_next, after the place. */
static int view_read_next(struct view *view, uint64_t changes, const struct table_dir *dir, void *what)
{
    struct listing *listing = what;
    const struct view_place *place = listing->place;
    struct table_record *record = &listing->record;
    if (!view_is_whole(dir, place))
        return -ENODATA;
    listing->stamp = dir->stamp;
    record->hash = place->hash;
    record->length = place->length;
    memcpy(record->key, place->name, place->length);
    return table_next(&view->table, &dir->names, record);
}

static void view_go_behind(struct view_place *place, const struct listing *listing)
{
    const struct table_record *record = &listing->record;
    place->stamp = listing->stamp;
    place->hash = record->hash;
    place->length = record->length;
    memcpy(place->name, record->key, record->length);
}

int view_list(struct view *view, struct dirid id, struct view_place *place, index_each *each, void *context)
{
    struct listing listing = {.place = place};
    const struct table_record *record = &listing.record;
    struct record_entry entry;
    int code;
    while ((code = view_look(view, id, view_read_next, &listing)) > 0 || code == -EAGAIN) {
        if (code == -EAGAIN)
            continue;
        view_go_behind(place, &listing);
        if (code == TABLE_ON)
            continue;
        code = record_entry_decode(&entry, record->value, sizeof record->value);
        if (code == 0)
            code = each(context, record->hash, record->key, record->length, &entry);
        if (code != 0)
            return code;
    }
    return code == -ENOENT ? -ENODATA : code;
}

/* Opening. */

static size_t view_map_size(uint64_t used)
{
    uint64_t size = 2 * used > MAP_LEAST ? 2 * used : MAP_LEAST;
    return (size + MAP_GRAIN - 1) / MAP_GRAIN * MAP_GRAIN;
}

/* Its head, and is all of it there that is used? What is cut off would be a SIGBUS. */
static int view_check_head(const struct table_head *head, uint64_t size, const struct index_stamp *expected)
{
    if (__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE) != TABLE_MAGIC || head->format != RECORD_FORMAT || head->end > size)
        return -EBADMSG;
    return head->stamp.session == expected->session && dirid_equal(head->stamp.root, expected->root) ? 0 : -ESTALE;
}

struct opening {
    const char *directory;
    const struct index_stamp *expected;
    struct table table;
};

/* The head before the size: the file grows before the head says so. */
static int view_map(struct opening *opening, int fd)
{
    struct table_head head;
    struct statx stat;
    if (sys_read(fd, &head, sizeof head) != sizeof head)
        return -EBADMSG;
    int code = sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stat);
    if (code == 0)
        code = view_check_head(&head, stat.stx_size, opening->expected);
    if (code != 0)
        return code;
    const size_t mapped = view_map_size(head.end);
    void *at = sys_mmap(NULL, mapped, PROT_READ, MAP_SHARED, fd, 0);
    if (sys_is_error(at))
        return (int)(long)at;
    opening->table = (struct table){.at = at, .size = mapped};
    return 0;
}

/* A descriptor of the file. No path is put together: the stack may be a signal's. */
static int view_open_in(const char *directory)
{
    int dir = sys_openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    int fd = sys_openat(dir, TABLE_FILE, O_RDONLY | O_CLOEXEC, 0);
    sys_close(dir);
    return fd;
}

/* What needs descriptors. */
static int view_open_file(void *context)
{
    struct opening *opening = context;
    int fd = view_open_in(opening->directory);
    if (fd < 0)
        return fd;
    int code = view_map(opening, fd);
    sys_close(fd);
    return code;
}

static int view_make(struct view **to, const struct table *table)
{
    struct view *view = sys_mmap(NULL, sizeof *view, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(view)) {
        sys_munmap(table->at, table->size);
        return (int)(long)view;
    }
    *view = (struct view){.table = *table};
    *to = view;
    return 0;
}

int view_open(struct view **to, const char *directory, const struct index_stamp *expected)
{
    struct opening opening = {.directory = directory, .expected = expected};
    int code = view_open_file(&opening);
    if (code == -EMFILE)
        code = helper_run(view_open_file, &opening, -1);
    return code == 0 ? view_make(to, &opening.table) : code;
}

/* An old size of 0 asks for a second mapping of the same file. */
int view_grow(struct view **to, const struct view *old)
{
    const size_t size = view_map_size(table_head(&old->table)->end);
    if (size <= old->table.size)
        return -EBADMSG;
    void *at = (void *)SYS4(SYS_mremap, old->table.at, 0, size, MREMAP_MAYMOVE);
    return sys_is_error(at) ? (int)(long)at : view_make(to, &(struct table){.at = at, .size = size});
}

void view_abandon(struct view *view)
{
    sys_munmap(view->table.at, view->table.size);
    sys_munmap(view, sizeof *view);
}
