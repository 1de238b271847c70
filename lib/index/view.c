/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/apart.h"
#include "base/moment.h"
#include "base/sys.h"
#include "index/table.h"

/* Not all that the index may grow to is mapped: the address space of a process may be limited (RLIMIT_AS). */
#define MAP_LEAST (16u << 20)
#define MAP_GRAIN (64u << 10)

/* A change takes less than a microsecond; but its writer may lose the processor in the middle of it. */
#define LOOKS 64
#define YIELDS 4096

struct view {
    struct table table;
};

/* Reading beside the writer: what was read between the two is of one moment if settled_still says so. */

static int settle(const struct table_map *map, uint64_t *changes)
{
    for (unsigned i = 0; i < LOOKS + YIELDS; i++) {
        *changes = __atomic_load_n(&map->changes, __ATOMIC_ACQUIRE);
        if ((*changes & 1) == 0)
            return 0;
        if (i < LOOKS)
            moment_pause();
        else
            SYS0(SYS_sched_yield);
    }
    return -EBUSY;
}

static bool settled_still(const struct table_map *map, uint64_t changes)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&map->changes, __ATOMIC_RELAXED) == changes;
}

static const struct table_map *things_of(const struct view *view)
{
    return &table_head(&view->table)->things;
}

static int find_branch(const struct view *view, uint16_t number, char name[LAYOUT_BRANCH_MAX])
{
    struct table_branch *branch;
    int code = table_find_branch(&view->table, number, &branch);
    if (code != 0)
        return code;
    memcpy(name, branch->name, LAYOUT_BRANCH_MAX);
    return memchr(name, '\0', LAYOUT_BRANCH_MAX) != NULL ? 0 : -EBADMSG;
}

static int find_name(const struct view *view, const struct table_dir *dir, const char *name, size_t length,
                     struct view_found *found)
{
    const struct table_key key = table_key_name(name, length);
    uint8_t value[TABLE_VALUE];
    int code = table_get(&view->table, &dir->names, &key, value);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    code = record_entry_decode(&found->entry, value, sizeof value);
    if (code == 0 && found->entry.branch != 0)
        code = find_branch(view, found->entry.branch, found->branch);
    found->known = code == 0;
    return code == -ENOENT ? -EBADMSG : code;
}

static int read_dir(const struct view *view, const struct table_dir *dir, const char *name, size_t length,
                    struct view_found *found)
{
    if (!dir->known)
        return 0;
    int code = record_dir_decode(&found->dir, dir->record, sizeof dir->record);
    found->dir_known = code == 0;
    return code == 0 && length > 0 ? find_name(view, dir, name, length, found) : code;
}

/* -EAGAIN: it has changed meanwhile. */
static int look(const struct view *view, struct dirid id, const char *name, size_t length, struct view_found *found)
{
    uint64_t changes, names_changes;
    struct table_dir *dir;
    found->dir_known = found->known = false;
    found->branch[0] = '\0';
    int code = settle(things_of(view), &changes);
    if (code != 0)
        return code;
    code = table_find_dir(&view->table, id, &dir);
    if (code == 0) {
        code = settle(&dir->names, &names_changes);
        if (code == 0)
            code = read_dir(view, dir, name, length, found);
        if (!settled_still(&dir->names, names_changes))
            code = -EAGAIN;
    }
    return !settled_still(things_of(view), changes) ? -EAGAIN : code == -ENOENT ? 0 : code;
}

int view_find(struct view *view, struct dirid id, const char *name, size_t length, struct view_found *found)
{
    int code;
    if (length > RECORD_NAME_MAX)
        length = 0;
    do
        code = look(view, id, name, length, found);
    while (code == -EAGAIN);
    return code;
}

static int look_for_branch(const struct view *view, uint16_t number, char branch[LAYOUT_BRANCH_MAX])
{
    uint64_t changes;
    int code = settle(things_of(view), &changes);
    if (code == 0)
        code = find_branch(view, number, branch);
    return settled_still(things_of(view), changes) ? code : -EAGAIN;
}

int view_find_branch(struct view *view, uint32_t word, char branch[LAYOUT_BRANCH_MAX])
{
    int code = 0;
    for (uint16_t number = 1; number != 0 && (code == 0 || code == -EAGAIN); number += code == 0) {
        code = look_for_branch(view, number, branch);
        if (code == 0 && record_branch_word(branch) == word)
            return 0;
    }
    return code == 0 ? -ENOENT : code;
}

/* Listing. */

/* Is it the directory that is being listed, and are all its names there? */
static bool is_whole(const struct table_dir *dir, const struct view_place *place)
{
    struct record_dir record;
    return dir->known && record_dir_decode(&record, dir->record, sizeof dir->record) == 0 &&
           (record.flags & RECORD_LOADED) && (place->stamp == 0 || place->stamp == dir->stamp);
}

/* The first name behind the place: 1; 0: none. */
static int read_next(const struct view *view, const struct table_dir *dir, const struct view_place *place, uint64_t *stamp,
                     struct table_record *record)
{
    if (!is_whole(dir, place))
        return -ENODATA;
    *stamp = dir->stamp;
    record->hash = place->hash;
    record->length = place->length;
    memcpy(record->key, place->name, place->length);
    return table_next(&view->table, &dir->names, record);
}

static int next(const struct view *view, struct dirid id, struct view_place *place, struct table_record *record)
{
    uint64_t changes, names_changes, stamp = 0;
    struct table_dir *dir;
    int code = settle(things_of(view), &changes);
    if (code != 0)
        return code;
    code = table_find_dir(&view->table, id, &dir);
    if (code == 0) {
        code = settle(&dir->names, &names_changes);
        if (code == 0)
            code = read_next(view, dir, place, &stamp, record);
        if (!settled_still(&dir->names, names_changes))
            code = -EAGAIN;
    }
    if (!settled_still(things_of(view), changes))
        return -EAGAIN;
    if (code >= 0)
        place->stamp = stamp;
    return code == -ENOENT ? -ENODATA : code;
}

static void go_behind(struct view_place *place, const struct table_record *record)
{
    place->hash = record->hash;
    place->length = record->length;
    memcpy(place->name, record->key, record->length);
}

int view_list(struct view *view, struct dirid id, struct view_place *place, index_each *each, void *context)
{
    struct table_record record;
    struct record_entry entry;
    for (;;) {
        int code = next(view, id, place, &record);
        if (code == -EAGAIN)
            continue;
        if (code == 1) {
            code = record_entry_decode(&entry, record.value, sizeof record.value);
            go_behind(place, &record);
        } else {
            return code;
        }
        if (code == 0)
            code = each(context, record.hash, record.key, record.length, &entry);
        if (code != 0)
            return code;
    }
}

/* Opening. */

static size_t map_size(uint64_t used)
{
    uint64_t size = 2 * used > MAP_LEAST ? 2 * used : MAP_LEAST;
    return (size + MAP_GRAIN - 1) / MAP_GRAIN * MAP_GRAIN;
}

/* Its head, and is all of it there that is used? What is cut off would be a SIGBUS. */
static int check_head(const struct table_head *head, uint64_t size, const struct index_stamp *expected)
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

static int map(struct opening *opening, int fd, uint64_t size)
{
    struct table_head head;
    if (size < sizeof head || sys_read(fd, &head, sizeof head) != sizeof head)
        return -EBADMSG;
    int code = check_head(&head, size, opening->expected);
    if (code != 0)
        return code;
    const size_t mapped = map_size(head.end);
    void *at = sys_mmap(NULL, mapped, PROT_READ, MAP_SHARED, fd, 0);
    if (sys_is_error(at))
        return (int)(long)at;
    opening->table = (struct table){.at = at, .size = mapped};
    return 0;
}

/* A descriptor of the file. No path is put together: the stack may be a signal's. */
static int open_in(const char *directory)
{
    int dir = sys_openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    int fd = sys_openat(dir, TABLE_FILE, O_RDONLY | O_CLOEXEC, 0);
    sys_close(dir);
    return fd;
}

/* What needs descriptors. */
static int open_file(void *context)
{
    struct opening *opening = context;
    struct statx stat;
    int fd = open_in(opening->directory);
    if (fd < 0)
        return fd;
    int code = sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stat);
    if (code == 0)
        code = map(opening, fd, stat.stx_size);
    sys_close(fd);
    return code;
}

static int make(struct view **to, const struct table *table)
{
    struct view *view = sys_mmap(NULL, sizeof *view, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(view)) {
        sys_munmap(table->at, table->size);
        return (int)(long)view;
    }
    view->table = *table;
    *to = view;
    return 0;
}

int view_open(struct view **to, const char *directory, const struct index_stamp *expected)
{
    struct opening opening = {.directory = directory, .expected = expected};
    int code = open_file(&opening);
    if (code == -EMFILE)
        code = apart_run(open_file, &opening, -1);
    return code == 0 ? make(to, &opening.table) : code;
}

/* An old size of 0 asks for a second mapping of the same file. */
int view_grow(struct view **to, const struct view *old)
{
    const size_t size = map_size(table_head(&old->table)->end);
    void *at = (void *)SYS4(SYS_mremap, old->table.at, 0, size, MREMAP_MAYMOVE);
    return sys_is_error(at) ? (int)(long)at : make(to, &(struct table){.at = at, .size = size});
}

void view_abandon(struct view *view)
{
    sys_munmap(view->table.at, view->table.size);
    sys_munmap(view, sizeof *view);
}
