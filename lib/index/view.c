/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/apart.h"
#include "base/sys.h"
#include "index/lmdb_host.h"
#include "index/store.h"

/* A thread that looks takes a seat: a transaction that is renewed, used and reset. A seat belongs to nobody
 * between two lookups: no thread exit to notice, a signal handler that interrupts a lookup takes another
 * seat, and a vfork child uses its parent's. LMDB registers a reader slot with each, so they are made only as
 * they are needed. */
#define SEATS 64
#define LOCK_FILE_LEAST 256 /* LMDB's head of it, with one reader */

/* Not all that the index may grow to is mapped: the address space of a process may be limited (RLIMIT_AS). */
#define MAP_LEAST (16u << 20)
#define MAP_GRAIN (64u << 10) /* no page is larger */

/* What a seat found last. It is so until there is another snapshot: who looks at one file several times (its attributes, each
 * of its extended ones, then open) finds its name again, who looks at many of one directory that directory and branch. */
struct last {
    size_t snapshot; /* 0: nothing */
    struct dirid dir;
    struct view_found found;
    uint16_t length; /* of the name; 0: the directory alone */
    char name[RECORD_NAME_MAX];
};

struct seat {
    uint32_t taken;
    MDB_txn *txn;
    MDB_cursor *cursor;
    struct last last;
};

struct view {
    MDB_env *env;
    MDB_dbi names;
    uint32_t making; /* one seat is made at a time: LMDB's memory here is no allocator for threads */
    struct lmdb_memory memory; /* what LMDB allocated and mapped, this struct included */
    struct seat seats[SEATS];
};

static int seat_make(struct view *view, struct seat *seat)
{
    uint64_t before = sys_block_signals();
    while (__atomic_exchange_n(&view->making, 1, __ATOMIC_ACQUIRE) != 0)
        SYS0(SYS_sched_yield);
    lmdb_enter(&view->memory);
    size_t used = view->memory.used;
    int code = mdb_txn_begin(view->env, NULL, MDB_RDONLY, &seat->txn);
    if (code == 0 && view->names == 0)
        code = mdb_dbi_open(seat->txn, NULL, 0, &view->names);
    if (code == 0)
        code = mdb_cursor_open(seat->txn, view->names, &seat->cursor);
    if (code == 0)
        mdb_txn_reset(seat->txn);
    else if (seat->txn != NULL)
        mdb_txn_abort(seat->txn), seat->txn = NULL;
    if (code != 0)
        view->memory.used = used; /* there may be many tries before a slot becomes free */
    lmdb_leave();
    __atomic_store_n(&view->making, 0, __ATOMIC_RELEASE);
    sys_set_signals(before);
    return code;
}

static struct seat *seat_take(struct view *view)
{
    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < SEATS; i++)
            if (__atomic_exchange_n(&view->seats[i].taken, 1, __ATOMIC_ACQUIRE) == 0)
                return &view->seats[i];
        SYS0(SYS_sched_yield); /* 64 threads are inside lookups of 200 ns: one ends soon */
    }
}

static void seat_give(struct seat *seat)
{
    __atomic_store_n(&seat->taken, 0, __ATOMIC_RELEASE);
}

/* Has a fresh snapshot for the seat, which is given back else. */
static int snapshot_take(struct view *view, struct seat *seat)
{
    int code = seat->txn == NULL ? seat_make(view, seat) : 0;
    if (code == 0)
        code = mdb_txn_renew(seat->txn);
    if (code == 0 && (code = mdb_cursor_renew(seat->txn, seat->cursor)) != 0)
        mdb_txn_reset(seat->txn);
    if (code != 0)
        seat_give(seat);
    return store_error(code);
}

/* Takes a seat with a fresh snapshot. */
static int look_begin(struct view *view, struct seat **to)
{
    *to = seat_take(view);
    return snapshot_take(view, *to);
}

static void look_end(struct seat *seat)
{
    mdb_txn_reset(seat->txn);
    seat_give(seat);
}

/* By the seat's cursor: mdb_get has one of its own on the stack, which may be a signal's. */
static int get(struct seat *seat, struct record_key *key, MDB_val *value)
{
    MDB_val at = {.mv_size = key->size, .mv_data = key->bytes};
    return store_error(mdb_cursor_get(seat->cursor, &at, value, MDB_SET));
}

static int find_branch(struct seat *seat, uint16_t number, char branch[LAYOUT_BRANCH_MAX])
{
    struct record_key key;
    MDB_val value;
    store_branch_key(&key, number);
    int code = get(seat, &key, &value);
    if (code != 0 || value.mv_size >= LAYOUT_BRANCH_MAX)
        return code == 0 || code == -ENOENT ? -EBADMSG : code;
    memcpy(branch, value.mv_data, value.mv_size);
    branch[value.mv_size] = '\0';
    return 0;
}

/* In the snapshot at hand, of which `last` may say the branch. */
static int find_name(struct seat *seat, struct record_key *key, const struct view_found *last, struct view_found *found)
{
    MDB_val value;
    int code = get(seat, key, &value);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    code = record_entry_decode(&found->entry, value.mv_data, value.mv_size);
    if (code == 0 && found->entry.branch != 0) {
        if (last != NULL && last->known && last->entry.branch == found->entry.branch)
            memcpy(found->branch, last->branch, sizeof found->branch);
        else
            code = find_branch(seat, found->entry.branch, found->branch);
    }
    found->known = code == 0;
    return code;
}

static int find_dir(struct seat *seat, struct record_key *key, struct view_found *found)
{
    MDB_val value;
    int code = get(seat, key, &value);
    if (code == 0)
        code = record_dir_decode(&found->dir, value.mv_data, value.mv_size);
    found->dir_known = code == 0;
    return code == -ENOENT ? 0 : code;
}

/* LMDB's newest, without taking it. */
static size_t newest_snapshot(const struct view *view)
{
    MDB_envinfo info;
    return mdb_env_info(view->env, &info) == 0 ? info.me_last_txnid : 0;
}

/* LMDB takes a transaction's number first and its roots then, from one of two pages that take turns: they are those of the
 * number if no other has been written since. */
static bool is_still_newest(const struct view *view, size_t snapshot)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return newest_snapshot(view) == snapshot;
}

static bool is_same_again(const struct last *last, size_t snapshot, struct dirid dir, const char *name, size_t length)
{
    return last->snapshot == snapshot && snapshot != 0 && last->length == length && dirid_equal(last->dir, dir) &&
           (length == 0 || memcmp(last->name, name, length) == 0);
}

static void note(struct last *last, size_t snapshot, struct dirid dir, const char *name, size_t length,
                 const struct view_found *found)
{
    last->snapshot = snapshot;
    last->dir = dir;
    last->found = *found;
    last->length = (uint16_t)length;
    if (length > 0)
        memcpy(last->name, name, length);
}

/* In a snapshot of the seat's. */
static int look(struct view *view, struct seat *seat, struct dirid dir, const char *name, size_t length, struct view_found *found)
{
    struct record_key key;
    const size_t snapshot = mdb_txn_id(seat->txn);
    const bool same = seat->last.snapshot == snapshot && is_still_newest(view, snapshot);
    const struct view_found *last = same ? &seat->last.found : NULL;
    int code = 0;
    record_key_dir(&key, dir);
    if (last != NULL && last->dir_known && dirid_equal(seat->last.dir, dir)) {
        found->dir = last->dir;
        found->dir_known = true;
    } else {
        code = find_dir(seat, &key, found);
    }
    if (code == 0 && found->dir_known && length > 0) {
        record_key_name(&key, dir, name, length);
        code = find_name(seat, &key, last, found);
    }
    if (code == 0)
        note(&seat->last, snapshot, dir, name, length, found);
    return code;
}

int view_find(struct view *view, struct dirid dir, const char *name, size_t length, struct view_found *found)
{
    found->dir_known = found->known = false;
    found->branch[0] = '\0';
    if (length > RECORD_NAME_MAX)
        length = 0;
    struct seat *seat = seat_take(view);
    if (is_same_again(&seat->last, newest_snapshot(view), dir, name, length)) {
        *found = seat->last.found;
        seat_give(seat);
        return 0;
    }
    int code = snapshot_take(view, seat);
    if (code != 0)
        return code;
    code = look(view, seat, dir, name, length, found);
    look_end(seat);
    return code;
}

int view_find_branch(struct view *view, uint32_t word, char branch[LAYOUT_BRANCH_MAX])
{
    struct seat *seat;
    int code = look_begin(view, &seat);
    if (code != 0)
        return code;
    for (uint16_t number = 1; code == 0 && number != 0; number++)
        if ((code = find_branch(seat, number, branch)) == 0 && record_branch_word(branch) == word)
            break;
    look_end(seat);
    return code == -EBADMSG ? -ENOENT : code;
}

static int check_loaded(struct seat *seat, struct dirid dir)
{
    struct record_key key;
    struct view_found found;
    record_key_dir(&key, dir);
    int code = find_dir(seat, &key, &found);
    return code != 0 ? code : found.dir_known && (found.dir.flags & RECORD_LOADED) ? 0 : -ENODATA;
}

int view_list(struct view *view, struct dirid dir, uint64_t from, index_each *each, void *context)
{
    struct record_key start;
    struct seat *seat;
    MDB_val value;
    int code = look_begin(view, &seat);
    if (code != 0)
        return code;
    code = check_loaded(seat, dir);
    record_key_from(&start, dir, from > 0 ? from : 1);
    MDB_val key = {.mv_size = start.size, .mv_data = start.bytes};
    if (code == 0)
        code = store_error(mdb_cursor_get(seat->cursor, &key, &value, MDB_SET_RANGE));
    while (code == 0 && key.mv_size > 24 && memcmp(key.mv_data, start.bytes, 16) == 0) {
        code = store_each(&key, &value, each, context);
        if (code == 0)
            code = store_error(mdb_cursor_get(seat->cursor, &key, &value, MDB_NEXT));
    }
    look_end(seat);
    return code == -ENOENT ? 0 : code;
}

static int check_stamp(struct view *view, const struct index_stamp *expected)
{
    struct record_key key;
    struct seat *seat;
    MDB_val value;
    int code = look_begin(view, &seat);
    if (code != 0)
        return code;
    record_key_from(&key, (struct dirid){0, 0}, 0);
    code = get(seat, &key, &value);
    code = code == 0 ? store_stamp_check(&value, expected) : code == -ENOENT ? -EBADMSG : code;
    look_end(seat);
    return code;
}

/* LMDB trusts its files: one that was cut would be a SIGBUS at the first look behind its end. */
static int check_size(const char *directory, const char *file, uint64_t least, uint64_t *size)
{
    struct statx stat;
    int dir = sys_openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    int code = sys_statx(dir, file, 0, STATX_SIZE, &stat);
    sys_close(dir);
    *size = stat.stx_size;
    return code != 0 ? code : stat.stx_size < least ? -EBADMSG : 0;
}

static int check_data(struct view *view, const char *directory)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(view->env, &info);
    mdb_env_stat(view->env, &stat);
    uint64_t size;
    return check_size(directory, "data.mdb", (info.me_last_pgno + 1) * stat.ms_psize, &size);
}

static size_t map_size(uint64_t used)
{
    uint64_t size = 2 * used > MAP_LEAST ? 2 * used : MAP_LEAST;
    return (size + MAP_GRAIN - 1) / MAP_GRAIN * MAP_GRAIN;
}

struct opening {
    struct view *view;
    const char *directory;
};

/* What needs descriptors. */
static int open_files(void *context)
{
    const struct opening *opening = context;
    struct view *view = opening->view;
    uint64_t size;
    int code = check_size(opening->directory, "lock.mdb", LOCK_FILE_LEAST, &size);
    if (code == 0)
        code = check_size(opening->directory, "data.mdb", 0, &size);
    if (code != 0)
        return code;
    lmdb_enter(&view->memory);
    mdb_env_set_mapsize(view->env, map_size(size));
    code = mdb_env_open(view->env, opening->directory, MDB_RDONLY | MDB_NOTLS, 0600);
    lmdb_leave();
    lmdb_close_files(&view->memory);
    /* LMDB takes an empty file for a new index, whose first pages it cannot write (EBADF), and cannot map an
     * empty lock file (EINVAL). */
    if (code != 0)
        return code == EBADF || code == EINVAL ? -EBADMSG : store_error(code);
    return check_data(view, opening->directory);
}

/* LMDB remembers whose process it is in, so this is not done apart. */
static int create_env(struct view *view)
{
    lmdb_enter(&view->memory);
    int code = mdb_env_create(&view->env);
    lmdb_leave();
    return store_error(code);
}

static int open_env(struct view *view, const char *directory)
{
    struct opening opening = {view, directory};
    int code = create_env(view);
    if (code == 0)
        code = open_files(&opening);
    if (code == -EMFILE && (code = create_env(view)) == 0) /* one that failed to open is of no more use */
        code = apart_run(open_files, &opening, -1);
    return code;
}

static int open_inherited(struct view *view)
{
    int code = create_env(view);
    lmdb_enter(&view->memory);
    if (code == 0)
        code = store_error(mdb_env_set_mapsize(view->env, view->memory.files[0].size));
    if (code == 0)
        code = store_error(mdb_env_open(view->env, "", MDB_RDONLY | MDB_NOTLS, 0600));
    lmdb_leave();
    return code;
}

static struct view *make(const struct lmdb_memory *memory)
{
    struct lmdb_memory taken = *memory;
    struct view *view = lmdb_memory_take(&taken, sizeof *view);
    view->memory = taken;
    return view;
}

int view_open(struct view **to, const char *directory, const struct index_stamp *expected)
{
    struct lmdb_memory memory;
    int code = lmdb_memory_init(&memory);
    if (code != 0)
        return code;
    struct view *view = make(&memory);
    code = open_env(view, directory);
    if (code == 0)
        code = check_stamp(view, expected);
    if (code != 0) {
        view_abandon(view);
        return code;
    }
    *to = view;
    return 0;
}

/* Whose index it is was checked when the files were mapped. */
int view_inherit(struct view **to, struct view *inherited)
{
    struct lmdb_memory memory;
    int code = lmdb_memory_inherit(&memory, &inherited->memory);
    struct view *view = code == 0 ? make(&memory) : inherited;
    if (code == 0)
        code = open_inherited(view);
    if (code != 0) {
        view_abandon(view);
        return code;
    }
    *to = view;
    return 0;
}

int view_grow(struct view **to, const struct view *old)
{
    struct lmdb_memory memory;
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(old->env, &info);
    mdb_env_stat(old->env, &stat);
    int code = lmdb_memory_grow(&memory, &old->memory, map_size((info.me_last_pgno + 1) * stat.ms_psize));
    if (code != 0)
        return code;
    struct view *view = make(&memory);
    code = open_inherited(view);
    if (code == 0)
        *to = view;
    return code; /* what is mapped then is the old one's, too */
}

void view_abandon(struct view *view)
{
    struct lmdb_memory memory = view->memory; /* the view lies in it */
    lmdb_memory_finish(&memory);
}
